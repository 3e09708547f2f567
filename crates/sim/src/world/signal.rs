//! Signals: values over time, bitwise identical on all platforms.
//!
//! A signal is first *read* at a time, which is cheap and comparable; only a changed reading is
//! converted to a quantity. Noise is a function of the time and a seed.

use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Modified, Modifier, Noise, Point, Signal, Sine};
use kube_lockstep_scenario::signal::count_until;

/// The value of a signal at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reading {
    /// The n-th quantity of the signal, as written in the scenario.
    Written(usize),
    /// A computed value in milli-units, rounded to the grain.
    Computed(i64),
    /// There is no sample: a gap of a recorded signal.
    Absent,
}

impl Reading {
    /// Returns true if there is no sample.
    pub(super) fn is_absent(self) -> bool {
        self == Reading::Absent
    }
}

/// The unit to which computed values are rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grain {
    /// Milli-units, as for cpu.
    Milli,
    /// Whole units, as for memory.
    Whole,
    /// Milli-units of values that may be negative, as in custom and external metrics.
    Signed,
}

impl Grain {
    /// The grain of a resource.
    pub(super) fn of(resource: &str) -> Grain {
        if resource == "memory" { Grain::Whole } else { Grain::Milli }
    }

    /// The grain in milli-units.
    fn milli(self) -> i64 {
        match self {
            Grain::Milli | Grain::Signed => 1,
            Grain::Whole => 1000,
        }
    }

    /// A computed value as a quantity in the form of the API.
    pub(super) fn quantity(self, milli: i64) -> Quantity {
        let format = match self {
            Grain::Milli | Grain::Signed => Format::DecimalSI,
            Grain::Whole => Format::BinarySI,
        };
        Quantity::from_milli(milli, format).read_again()
    }

    /// Replaces a negative value by zero, except for signed values: usage is never negative.
    fn at_least<N: PartialOrd + From<u8>>(self, value: N) -> N {
        let zero = N::from(0);
        if self != Grain::Signed && value < zero { zero } else { value }
    }

    /// A value in milli-units rounded to the grain, halves up.
    fn round(self, milli: i64) -> i64 {
        let grain = self.milli();
        let rounded = self.at_least(milli).saturating_add(grain / 2).div_euclid(grain);
        rounded.saturating_mul(grain)
    }

    /// An even share of a total, rounded down to the grain.
    pub(super) fn share(self, total_milli: i64, among: usize) -> i64 {
        let Ok(among) = i64::try_from(among) else {
            return 0;
        };
        if among == 0 {
            return 0;
        }
        let grain = self.milli();
        self.at_least(total_milli).div_euclid(grain).div_euclid(among) * grain
    }
}

/// Reads a signal at a time.
pub(super) fn read(signal: &Signal, at: Time, grain: Grain) -> Reading {
    match signal {
        Signal::Constant(_) => Reading::Written(0),
        Signal::Steps(steps) => {
            let passed = count_until(steps, at, |step| step.at);
            if steps.is_empty() {
                Reading::Computed(0)
            } else {
                Reading::Written(passed.max(1) - 1)
            }
        }
        Signal::Points(points) => read_points(points, at, grain),
        Signal::Sine(sine) => Reading::Computed(read_sine(sine, at, grain)),
        Signal::Recorded(recorded) => computed(recorded.at(at), grain),
        // Only the arriving work: the backlog itself depends on the pods.
        Signal::Backlog(backlog) => read(&backlog.arrivals, at, grain),
        Signal::Modified(Modified { by: Modifier::Noise(noise), of }) => {
            let value = milli(of, read(of, at, grain));
            computed(value.map(|milli| with_noise(noise, at, milli)), grain)
        }
        Signal::Modified(Modified { by: Modifier::Factor(factor), of }) => {
            let factor_and_value = signal_at(factor, at).zip(signal_at(of, at));
            computed(factor_and_value.map(|(factor, milli)| times(factor, milli)), grain)
        }
        Signal::Modified(Modified { by: Modifier::Shift(span), of }) => {
            computed(signal_at(of, at - *span), grain)
        }
        Signal::Modified(Modified { by: Modifier::Repeat(span), of }) => {
            computed(signal_at(of, Time(at.0.rem_euclid(span.0.max(1)))), grain)
        }
        Signal::Sum(parts) => {
            let values = parts.iter().map(|part| signal_at(part, at));
            let sum =
                values.into_iter().try_fold(0_i64, |sum, milli| Some(sum.saturating_add(milli?)));
            computed(sum, grain)
        }
    }
}

/// A computed value, rounded to the grain. None: there is no sample.
fn computed(milli: Option<i64>, grain: Grain) -> Reading {
    milli.map_or(Reading::Absent, |milli| Reading::Computed(grain.round(milli)))
}

/// The product of two values in milli-units, with halves rounded up.
fn times(factor: i64, milli: i64) -> i64 {
    let product = (i128::from(factor) * i128::from(milli) + 500).div_euclid(1000);
    let limit = if product < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(product).unwrap_or(limit)
}

/// The quantity of a reading of a signal. None: there is no sample.
pub(super) fn quantity(signal: &Signal, reading: Reading, grain: Grain) -> Option<Quantity> {
    match reading {
        Reading::Computed(milli) => Some(grain.quantity(milli)),
        Reading::Written(index) => {
            Some(written(signal, index).cloned().unwrap_or_else(|| grain.quantity(0)))
        }
        Reading::Absent => None,
    }
}

/// The value of a signal at a time in milli-units, before it is shared by pods or rounded to whole
/// units: for charts of the load. None: there is no sample.
#[must_use]
pub fn signal_at(signal: &Signal, at: Time) -> Option<i64> {
    milli(signal, read(signal, at, Grain::Signed))
}

/// The times up to `until` at which the value of a signal may change, in any order. Signals that
/// change all the time are read every second.
#[must_use]
pub fn signal_changes(signal: &Signal, until: Time) -> Vec<Time> {
    changes(signal, Time::ZERO, until)
}

/// The times at which the value of a signal may change, at least those between two times.
fn changes(signal: &Signal, from: Time, to: Time) -> Vec<Time> {
    let second = Span::from_secs(1);
    match signal {
        Signal::Constant(_) => Vec::new(),
        Signal::Steps(steps) => steps.iter().map(|step| step.at).collect(),
        Signal::Points(points) => match (points.first(), points.last()) {
            (Some(first), Some(last)) => {
                every(second, first.at.max(from), (last.at + second).min(to))
            }
            _ => Vec::new(),
        },
        Signal::Sine(_) => every(second, from, to),
        Signal::Recorded(recorded) => recorded.samples.iter().map(|sample| sample.at).collect(),
        Signal::Sum(_) => of_parts(signal, from, to),
        Signal::Backlog(_) => [of_parts(signal, from, to), every(second, from, to)].concat(),
        Signal::Modified(Modified { by, of }) => match by {
            Modifier::Factor(_) => of_parts(signal, from, to),
            Modifier::Noise(noise) => {
                [changes(of, from, to), every(noise.every, from, to)].concat()
            }
            Modifier::Shift(span) => {
                let shifted = changes(of, from - *span, to - *span);
                shifted.into_iter().map(|at| at + *span).collect()
            }
            Modifier::Repeat(span) => {
                let end = Time::ZERO + *span;
                let first = changes(of, Time::ZERO, end).into_iter();
                let first = first.filter(|at| (Time::ZERO..end).contains(at));
                let repeated = |at: Time| {
                    every(*span, from, to).into_iter().map(move |begin| begin + at.since_start())
                };
                first.chain([Time::ZERO]).flat_map(repeated).collect()
            }
        },
    }
}

fn of_parts(signal: &Signal, from: Time, to: Time) -> Vec<Time> {
    signal.parts().into_iter().flat_map(|part| changes(part, from, to)).collect()
}

/// The multiples of `span`, from the last one that is not after `from`, up to `to`.
fn every(span: Span, from: Time, to: Time) -> Vec<Time> {
    let step = span.0.max(1);
    let first = from.0.div_euclid(step) * step;
    (0..).map(|n| Time(first + n * step)).take_while(|at| *at <= to).collect()
}

/// The reading of a signal in milli-units. None: there is no sample.
pub(super) fn milli(signal: &Signal, reading: Reading) -> Option<i64> {
    match reading {
        Reading::Computed(milli) => Some(milli),
        Reading::Written(index) => Some(written(signal, index).map_or(0, Quantity::milli)),
        Reading::Absent => None,
    }
}

fn written(signal: &Signal, index: usize) -> Option<&Quantity> {
    match signal {
        Signal::Constant(quantity) => Some(quantity),
        Signal::Steps(values) | Signal::Points(values) => {
            values.get(index).map(|point| &point.value)
        }
        Signal::Backlog(backlog) => written(&backlog.arrivals, index),
        Signal::Sine(_) | Signal::Sum(_) | Signal::Modified(_) | Signal::Recorded(_) => None,
    }
}

/// At a point and outside the range of the points, a value is as written; between two points it is
/// computed.
fn read_points(points: &[Point], at: Time, grain: Grain) -> Reading {
    let passed = count_until(points, at, |point| point.at);
    if points.is_empty() {
        return Reading::Computed(0);
    }
    if passed == 0 {
        return Reading::Written(0);
    }
    let Point { at: from, value: low } = &points[passed - 1];
    if passed == points.len() || *from == at {
        return Reading::Written(passed - 1);
    }
    let Point { at: to, value: high } = &points[passed];
    // Integers of 128 bits: exact, and independent of the order of floating-point operations.
    let (span, into) = (i128::from((*to - *from).0), i128::from((at - *from).0));
    let weighted = i128::from(low.milli()) * (span - into) + i128::from(high.milli()) * into;
    let divisor = span * i128::from(grain.milli());
    // Both ends fit into 64 bits, and so does each value between them.
    let rounded = (grain.at_least(weighted) + divisor / 2).div_euclid(divisor);
    let rounded = i64::try_from(rounded).unwrap_or(i64::MAX);
    Reading::Computed(rounded.saturating_mul(grain.milli()))
}

/// Removes whole periods in integers, so that the argument of the sine stays exact.
fn read_sine(sine: &Sine, at: Time, grain: Grain) -> i64 {
    let Sine { mean, amplitude, period, offset } = sine;
    let since = at - *offset;
    let wave = if period.0 > 0 {
        let phase = since.0.rem_euclid(period.0) as f64 / period.0 as f64;
        libm::sin(std::f64::consts::TAU * phase)
    } else {
        0.0
    };
    let value = mean.milli() as f64 + amplitude.milli() as f64 * wave;
    let steps = libm::round(grain.at_least(value) / grain.milli() as f64);
    (steps as i64).saturating_mul(grain.milli())
}

/// Adds the difference of an interval of time: up to `percent` of the value.
fn with_noise(noise: &Noise, at: Time, milli: i64) -> i64 {
    let interval = at.since_start().0.div_euclid(noise.every.0.max(1));
    let random = random((u64::from(noise.seed) << 32) ^ interval.cast_unsigned());
    // From -2^31 to 2^31, in integers: the same on all platforms.
    let difference = i128::from(random >> 32) - (1 << 31);
    let difference = i128::from(milli) * i128::from(noise.percent) * difference;
    let value = i128::from(milli) + difference.div_euclid(100 << 31);
    i64::try_from(value).unwrap_or(milli)
}

/// The n-th number of SplitMix64, a published generator, with the seed 0.
fn random(number: u64) -> u64 {
    let state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_lockstep_scenario::recorded::{Recorded, RecordedSample, RecordedSource};

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).expect("a quantity")
    }

    fn point(seconds: i64, value: &str) -> Point {
        Point { at: Time::from_secs(seconds), value: q(value) }
    }

    fn at(signal: &Signal, seconds: i64, grain: Grain) -> String {
        let reading = read(signal, Time::from_secs(seconds), grain);
        quantity(signal, reading, grain).map_or_else(|| "none".to_owned(), |it| it.to_string())
    }

    #[test]
    fn a_constant_signal_keeps_its_value() {
        assert_eq!(at(&Signal::Constant(q("1500u")), 7, Grain::Milli), "1500u");
    }

    #[test]
    fn a_step_holds_from_its_time_on_and_the_first_step_before() {
        let steps = [(10, "1"), (20, "250m"), (30, "3")];
        let signal = Signal::Steps(steps.iter().map(|(t, v)| point(*t, v)).collect());
        for (seconds, value) in [(0, "1"), (10, "1"), (19, "1"), (20, "250m"), (30, "3"), (99, "3")]
        {
            assert_eq!(at(&signal, seconds, Grain::Milli), value, "t={seconds}");
        }
    }

    #[test]
    fn points_are_joined_by_straight_lines() {
        let points = |values: [(i64, &str); 2]| {
            Signal::Points(values.iter().map(|(t, v)| point(*t, v)).collect())
        };
        let cpu = points([(10, "100m"), (40, "200m")]);
        for (seconds, value) in
            [(0, "100m"), (10, "100m"), (11, "103m"), (25, "150m"), (40, "200m")]
        {
            assert_eq!(at(&cpu, seconds, Grain::Milli), value, "t={seconds}");
        }
        let memory = points([(0, "10"), (30, "0")]);
        assert_eq!(at(&memory, 10, Grain::Whole), "7");
        assert_eq!(at(&memory, 15, Grain::Whole), "5");
    }

    #[test]
    fn a_sine_is_computed_and_never_negative() {
        let signal = Signal::Sine(Sine {
            mean: q("100m"),
            amplitude: q("200m"),
            period: Span::from_secs(60),
            offset: Span::from_secs(5),
        });
        for (seconds, value) in [(5, "100m"), (10, "200m"), (20, "300m"), (50, "0"), (-40, "300m")]
        {
            assert_eq!(at(&signal, seconds, Grain::Milli), value, "t={seconds}");
        }
    }

    #[test]
    fn custom_metrics_may_be_negative() {
        let points = [(0, "-1"), (10, "500m")].map(|(t, v)| point(t, v));
        let points = Signal::Points(points.to_vec());
        for (seconds, signed, usage) in [(0, "-1", "-1"), (3, "-550m", "0"), (9, "350m", "350m")] {
            assert_eq!(at(&points, seconds, Grain::Signed), signed, "t={seconds}");
            assert_eq!(at(&points, seconds, Grain::Milli), usage, "t={seconds}");
        }
        let sine = Signal::Sine(Sine {
            mean: q("1"),
            amplitude: q("3"),
            period: Span::from_secs(60),
            offset: Span::from_secs(0),
        });
        assert_eq!(at(&sine, 45, Grain::Signed), "-2");
        assert_eq!(at(&sine, 45, Grain::Milli), "0");
    }

    #[test]
    fn halves_are_rounded_up() {
        for (low, high, middle) in [("1m", "2m", "2m"), ("-2m", "-1m", "-1m"), ("-1m", "0", "0")] {
            let points = [(0, low), (10, high)].map(|(t, v)| point(t, v));
            assert_eq!(at(&Signal::Points(points.to_vec()), 5, Grain::Signed), middle);
        }
    }

    #[test]
    fn noise_depends_on_the_seed_and_the_interval_only() {
        let noisy = |seed, percent| {
            let of = Box::new(Signal::Constant(q("1")));
            let by = Modifier::Noise(Noise { percent, every: Span::from_secs(15), seed });
            Signal::Modified(Modified { by, of })
        };
        let values = |signal: &Signal| -> Vec<i64> {
            let read = |i: i64| read(signal, Time::from_secs(15 * i), Grain::Milli);
            (0..1000).filter_map(|i| milli(signal, read(i))).collect()
        };
        let some = values(&noisy(7, 10));
        assert_eq!(some, values(&noisy(7, 10)));
        assert_ne!(some, values(&noisy(8, 10)));
        assert!(some.iter().all(|value| (900..=1100).contains(value)), "{some:?}");
        let (least, most) = (some.iter().min(), some.iter().max());
        assert!(least < Some(&905) && most > Some(&1095), "{least:?} {most:?}");
        let mean = some.iter().sum::<i64>() / 1000;
        assert!((995..=1005).contains(&mean), "{mean}");
        let signal = noisy(7, 10);
        assert_eq!(at(&signal, 15, Grain::Milli), at(&signal, 29, Grain::Milli));
        // These values are part of recorded traces.
        assert_eq!(some[..4], [1044, 931, 988, 987]);
    }

    fn modified(by: Modifier, of: Signal) -> Signal {
        Signal::Modified(Modified { by, of: Box::new(of) })
    }

    fn recording(values: &[(i64, Option<i64>)]) -> Signal {
        let sample = |(at, milli): &(i64, Option<i64>)| RecordedSample {
            at: Time::from_secs(*at),
            milli: *milli,
        };
        let samples = values.iter().map(sample).collect();
        Signal::Recorded(Recorded {
            samples,
            ..Recorded::new(RecordedSource::Csv("load.csv".to_owned()))
        })
    }

    fn steps(values: &[(i64, &str)]) -> Signal {
        Signal::Steps(values.iter().map(|(at, value)| point(*at, value)).collect())
    }

    #[test]
    fn a_factor_multiplies_a_signal_and_may_change() {
        let load = recording(&[(0, Some(1501)), (20, None), (30, Some(2000))]);
        let twice = modified(Modifier::Factor(Box::new(Signal::Constant(q("1.5")))), load.clone());
        for (seconds, value) in [(0, "2252m"), (19, "2252m"), (20, "none"), (30, "3")] {
            assert_eq!(at(&twice, seconds, Grain::Milli), value, "t={seconds}");
        }
        assert_eq!(at(&twice, 0, Grain::Whole), "2");
        let later = modified(Modifier::Factor(Box::new(steps(&[(0, "0"), (30, "1")]))), load);
        for (seconds, value) in [(0, "0"), (20, "none"), (30, "2")] {
            assert_eq!(at(&later, seconds, Grain::Milli), value, "t={seconds}");
        }
        let huge = |milli: &str| Box::new(Signal::Constant(q(milli)));
        let product = modified(Modifier::Factor(huge("-9e15")), Signal::Constant(q("9e15")));
        assert_eq!(read(&product, Time::ZERO, Grain::Signed), Reading::Computed(i64::MIN));
    }

    #[test]
    fn a_sum_has_no_sample_where_a_part_has_none() {
        let load = recording(&[(0, Some(500)), (20, None), (30, Some(2000))]);
        let less = modified(Modifier::Factor(Box::new(Signal::Constant(q("-1")))), load.clone());
        let sum = Signal::Sum(vec![less, Signal::Constant(q("1")), Signal::Constant(q("1m"))]);
        for (seconds, signed, usage) in
            [(0, "501m", "501m"), (20, "none", "none"), (30, "-999m", "0")]
        {
            assert_eq!(at(&sum, seconds, Grain::Signed), signed, "t={seconds}");
            assert_eq!(at(&sum, seconds, Grain::Milli), usage, "t={seconds}");
        }
    }

    #[test]
    fn signals_can_be_shifted_and_repeated() {
        let load = || recording(&[(0, Some(1000)), (20, Some(2000))]);
        let later = modified(Modifier::Shift(Span::from_secs(10)), load());
        for (seconds, value) in [(0, "none"), (10, "1"), (29, "1"), (30, "2")] {
            assert_eq!(at(&later, seconds, Grain::Milli), value, "t={seconds}");
        }
        let earlier = modified(Modifier::Shift(Span::from_secs(-15)), load());
        for (seconds, value) in [(0, "1"), (5, "2"), (500, "2")] {
            assert_eq!(at(&earlier, seconds, Grain::Milli), value, "t={seconds}");
        }
        let again = modified(Modifier::Repeat(Span::from_secs(30)), load());
        for (seconds, value) in [(0, "1"), (20, "2"), (30, "1"), (49, "1"), (50, "2"), (-5, "2")] {
            assert_eq!(at(&again, seconds, Grain::Milli), value, "t={seconds}");
        }
    }

    /// Every signal is constant between two neighbouring changes, except for those that change all
    /// the time, which are read every second.
    #[test]
    fn changes_are_complete() {
        let load = || recording(&[(0, Some(1000)), (7, None), (20, Some(2000))]);
        let span = Span::from_secs;
        let wave = Signal::Sine(Sine {
            mean: q("2"),
            amplitude: q("1"),
            period: span(60),
            offset: span(0),
        });
        let noise = Modifier::Noise(Noise { percent: 20, every: span(9), seed: 3 });
        let ramp = Signal::Points(vec![point(5, "1"), point(15, "3")]);
        let all = [
            modified(Modifier::Repeat(span(13)), load()),
            modified(Modifier::Repeat(span(31)), modified(Modifier::Shift(span(4)), load())),
            modified(Modifier::Shift(span(-6)), modified(Modifier::Repeat(span(25)), load())),
            modified(Modifier::Shift(span(40)), wave),
            modified(Modifier::Shift(span(33)), ramp),
            Signal::Sum(vec![load(), modified(noise.clone(), steps(&[(0, "1"), (50, "9")]))]),
            modified(Modifier::Shift(span(5)), modified(noise, load())),
            modified(Modifier::Factor(Box::new(steps(&[(0, "1"), (33, "2")]))), load()),
        ];
        for signal in all {
            let changes = signal_changes(&signal, Time::from_secs(120));
            for second in 1..120 {
                let at = |second: i64| signal_at(&signal, Time::from_secs(second));
                let changed = changes.contains(&Time::from_secs(second));
                assert!(changed || at(second - 1) == at(second), "t={second} {signal:?}");
            }
        }
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!(Grain::Milli.share(1000, 3), 333);
        assert_eq!(Grain::Whole.share(1_000_000, 3), 333_000);
        assert_eq!(Grain::Whole.share(10_999, 1), 10_000);
        assert_eq!(Grain::Milli.share(1000, 0), 0);
        assert_eq!(Grain::Milli.share(-5, 1), 0);
        assert_eq!(Grain::Signed.share(-5, 2), -3);
        assert_eq!(Grain::Signed.share(5, 2), 2);
    }
}
