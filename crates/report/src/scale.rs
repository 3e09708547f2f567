//! Scales of charts: from values to coordinates, with labels at round values.

use kube_autoscaler_models::time::Time;

/// The width of every chart in the units of its coordinates. Charts are stretched to the width of
/// the page.
#[cfg(feature = "pages")]
pub(crate) const WIDTH: f64 = 1000.0;

/// The axis of time, from t=0 to the end of the scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TimeAxis {
    /// The end, at least one second after the start.
    pub end: Time,
}

/// A label of an axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Label {
    /// The time.
    #[cfg(feature = "pages")]
    pub at: Time,
    /// The place, in percent of the axis.
    pub percent: f64,
    pub text: String,
}

const SECOND: i64 = 1_000_000_000;

/// The distances of labels of time, in seconds.
const TIME_STEPS: [i64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800,
];

/// The maximum number of labels of time.
const TIME_LABELS: i64 = 8;

impl TimeAxis {
    /// An axis that ends at a time.
    pub(crate) fn until(end: Time) -> TimeAxis {
        TimeAxis { end: end.max(Time::from_secs(1)) }
    }

    /// The place of a time, in percent of the width.
    pub(crate) fn percent(self, at: Time) -> f64 {
        (at.0 as f64 / self.end.0 as f64 * 100.0).clamp(0.0, 100.0)
    }

    /// The coordinate of a time.
    #[cfg(feature = "pages")]
    pub(crate) fn x(self, at: Time) -> f64 {
        self.percent(at) / 100.0 * WIDTH
    }

    /// The labels, at multiples of a round duration.
    pub(crate) fn labels(self) -> Vec<Label> {
        let seconds = self.end.0 / SECOND;
        let fits = |step: &&i64| seconds / **step <= TIME_LABELS;
        let step = TIME_STEPS.iter().find(fits).copied();
        let step = step.unwrap_or_else(|| (seconds / TIME_LABELS / 86_400 + 1) * 86_400);
        let times = (0..=seconds / step).map(|index| Time::from_secs(index * step));
        let label = |at: Time| Label {
            #[cfg(feature = "pages")]
            at,
            percent: self.percent(at),
            text: self.text(at),
        };
        times.map(label).collect()
    }

    /// The text of a label. An axis of two days or more has days: `2d`, `2d12h`.
    fn text(self, at: Time) -> String {
        const DAY: i64 = 86_400;
        let hours = at.0 / SECOND / 3600;
        match (hours / 24, hours % 24) {
            _ if self.end.0 / SECOND < 2 * DAY => at.to_string(),
            (0, _) => at.to_string(),
            (days, 0) => format!("{days}d"),
            (days, hours) => format!("{days}d{hours}h"),
        }
    }
}

/// An axis of values, from 0 upwards.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ValueAxis {
    /// The largest value.
    pub max: f64,
    /// The height of the chart.
    pub height: f64,
    /// The distance of labels.
    step: f64,
}

impl ValueAxis {
    /// An axis for values up to `largest`, with about `labels` labels above 0. The values of an
    /// axis of whole numbers have no labels between them.
    pub(crate) fn up_to(largest: f64, height: f64, labels: usize, whole: bool) -> ValueAxis {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let digits: &[f64] = if whole { &[1.0, 2.0, 5.0] } else { &[1.0, 2.0, 2.5, 5.0] };
        let mut step = round_up(largest / labels as f64, digits);
        if whole {
            step = step.max(1.0);
        }
        // A value at the edge would be cut in half by it.
        let max = (largest / step).ceil().max(1.0) * step;
        ValueAxis { max, height, step }
    }

    /// The axis in another unit: the values are multiplied.
    pub(crate) fn times(self, factor: f64) -> ValueAxis {
        ValueAxis { max: self.max * factor, step: self.step * factor, ..self }
    }

    /// The coordinate of a value, from the top. Values outside the axis are drawn at its edge.
    #[cfg(feature = "pages")]
    pub(crate) fn y(&self, value: f64) -> f64 {
        let part = (value / self.max).clamp(0.0, 1.0);
        // A line has a width, half of which is needed at both edges.
        1.0 + (1.0 - part) * (self.height - 2.0)
    }

    /// The values with labels, from 0.
    pub(crate) fn values(&self) -> Vec<f64> {
        let count = (self.max / self.step).round() as usize;
        (0..=count).map(|index| index as f64 * self.step).collect()
    }
}

/// The next number that is one of the digits times a power of ten.
fn round_up(value: f64, digits: &[f64]) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digit = digits.iter().find(|digit| *digit * power >= value * 0.999_999);
    digit.map_or(10.0 * power, |digit| digit * power)
}

/// A linear axis over the range of some values.
#[cfg(feature = "pages")]
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LinearAxis {
    least: f64,
    most: f64,
    /// The coordinates of the least and of the most.
    from: f64,
    to: f64,
}

#[cfg(feature = "pages")]
impl LinearAxis {
    /// An axis over values that are not negative, with some room on both sides.
    pub(crate) fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> LinearAxis {
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let room = ((most - least) * 0.06).max(most * 0.01).max(0.01);
        LinearAxis { least: (least.min(most) - room).max(0.0), most: most + room, from, to }
    }

    /// The coordinate of a value.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let LinearAxis { least, most, from, to } = self;
        from + (value - least) / (most - least) * (to - from)
    }

    /// Round values on the axis, with their texts.
    pub(crate) fn labels(&self) -> Vec<(f64, String)> {
        let step = round_up((self.most - self.least) / 6.0, &[1.0, 2.0, 5.0, 10.0]);
        let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        let first = (self.least / step).ceil() as i64;
        let last = (self.most / step).floor() as i64;
        let values = (first..=last).map(|index| index as f64 * step);
        values.map(|value| (value, format!("{value:.digits$}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_labels_at_round_durations() {
        let texts = |seconds| {
            let labels = TimeAxis::until(Time::from_secs(seconds)).labels();
            labels.into_iter().map(|label| label.text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(60), "0s 10s 20s 30s 40s 50s 1m");
        assert_eq!(texts(16 * 60), "0s 2m 4m 6m 8m 10m 12m 14m 16m");
        assert_eq!(texts(86_400), "0s 3h 6h 9h 12h 15h 18h 21h 24h");
        assert_eq!(texts(2 * 86_400), "0s 6h 12h 18h 1d 1d6h 1d12h 1d18h 2d");
        assert_eq!(texts(8 * 86_400), "0s 1d 2d 3d 4d 5d 6d 7d 8d");
        assert!(texts(30 * 86_400).split(' ').count() <= 9);
        assert_eq!(texts(0), "0s 1s");
    }

    #[test]
    fn values_have_labels_at_round_numbers() {
        let values = |largest, whole| ValueAxis::up_to(largest, 100.0, 4, whole).values();
        assert_eq!(values(7.0, true), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(values(10.0, true), [0.0, 5.0, 10.0]);
        assert_eq!(values(1.0, true), [0.0, 1.0]);
        assert_eq!(values(305.0, false), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(values(0.0, false), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert!(values(f64::NAN, false).len() > 1 && values(1e300, true).len() < 10);
    }

    #[cfg(feature = "pages")]
    #[cfg(feature = "pages")]
    #[test]
    fn a_linear_axis_has_round_labels_inside_its_range() {
        for values in [vec![3.2, 9.7], vec![0.0, 0.0], vec![5.0], vec![0.001, 1234.5], vec![]] {
            let axis = LinearAxis::over(values.iter().copied(), 0.0, 100.0);
            let labels = axis.labels();
            assert!((2..=8).contains(&labels.len()), "{values:?}: {labels:?}");
            let places = values.into_iter().chain(labels.iter().map(|(value, _)| *value));
            for place in places.map(|value| axis.place(value)) {
                assert!((0.0..=100.0).contains(&place), "{place}");
            }
        }
        let axis = LinearAxis::over([3.2, 9.7].into_iter(), 0.0, 100.0);
        let texts: Vec<String> = axis.labels().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["4", "6", "8", "10"]);
    }

    #[test]
    fn every_value_is_inside_the_chart() {
        let axis = ValueAxis::up_to(7.0, 100.0, 4, true);
        for value in [-1.0, 0.0, 3.5, 8.0, 1e9] {
            assert!((1.0..=99.0).contains(&axis.y(value)), "{value}");
        }
        assert!(axis.y(8.0) < axis.y(0.0));
    }
}
