//! The histograms of durations among the controller's own Prometheus metrics.

use std::collections::BTreeMap;

use crate::series::SeriesChange;
use crate::time::Span;

/// The upper bounds of the buckets in seconds, the label `le`: each is twice the previous one, from
/// a millisecond on. They are the same on all releases.
///
/// Upstream: podautoscaler/monitor/metrics.go
const BOUNDS: [&str; 15] = [
    "0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064", "0.128", "0.256", "0.512",
    "1.024", "2.048", "4.096", "8.192", "16.384",
];

/// The bound of the last bucket.
const INFINITY: &str = "+Inf";

/// The lowest bound.
const SHORTEST: Span = Span(1_000_000);

/// The changes of one histogram in a reconcile, by series.
pub(super) struct Durations {
    /// The name of the histogram.
    name: &'static str,
    /// The number of observations in each bucket that are not in a lower one. Those in the lowest
    /// bucket are not reported: they follow from the counter with the same labels.
    buckets: BTreeMap<String, u32>,
    sums: BTreeMap<String, Span>,
}

impl Durations {
    pub(super) fn new(name: &'static str) -> Durations {
        Durations { name, buckets: BTreeMap::new(), sums: BTreeMap::new() }
    }

    /// Observes a duration. `counter` is the series of the counter with the same labels.
    pub(super) fn observe(&mut self, counter: &str, duration: Span) {
        if duration == Span::ZERO {
            return;
        }
        let (_, labels) = counter.split_once('{').unwrap_or_default();
        let labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
        let name = self.name;
        let sum = format!("{name}_sum{{{}}}", labels.join(","));
        let sum = self.sums.entry(sum).or_insert(Span::ZERO);
        *sum = Span(sum.0 + duration.0);
        if let Some(bound) = bound_above_the_lowest(duration) {
            let le = format!("le={bound}");
            let mut labels = labels;
            labels.push(&le);
            labels.sort_unstable();
            let bucket = format!("{name}_bucket{{{}}}", labels.join(","));
            *self.buckets.entry(bucket).or_default() += 1;
        }
    }

    /// The changes, sorted by series.
    pub(super) fn changes(self) -> impl Iterator<Item = SeriesChange> {
        let buckets = self.buckets.into_iter();
        let sums = self.sums.into_iter();
        buckets
            .map(|(series, count)| SeriesChange::increase(series, f64::from(count)))
            .chain(sums.map(|(series, sum)| SeriesChange::increase(series, seconds(sum))))
    }
}

/// The upper bound of the bucket of a duration, unless it is the lowest one. A bucket includes its
/// bound.
fn bound_above_the_lowest(duration: Span) -> Option<&'static str> {
    let mut bound = SHORTEST;
    for (index, text) in BOUNDS.iter().enumerate() {
        if duration <= bound {
            return (index > 0).then_some(text);
        }
        bound = Span(bound.0 * 2);
    }
    Some(INFINITY)
}

/// A time in seconds, as the nearest floating-point number.
pub(super) fn seconds(time: Span) -> f64 {
    time.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_bound() {
        for (nanos, bound) in [
            (0, None),
            (1, None),
            (1_000_000, None),
            (1_000_001, Some("0.002")),
            (2_000_000, Some("0.002")),
            (1_024_000_000, Some("1.024")),
            (1_024_000_001, Some("2.048")),
            (16_384_000_000, Some("16.384")),
            (16_384_000_001, Some("+Inf")),
        ] {
            assert_eq!(bound_above_the_lowest(Span(nanos)), bound, "{nanos}");
        }
    }

    /// Prometheus compares floating-point numbers: durations in seconds and bounds.
    #[test]
    fn durations_next_to_a_bound_are_distinct_numbers() {
        let go_seconds = |nanos: i64| {
            let (whole, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            whole as f64 + rest as f64 / 1e9
        };
        let mut bound = 0.001_f64;
        for (index, text) in BOUNDS.iter().enumerate() {
            let nanos = SHORTEST.0 << index;
            assert_eq!(text.parse(), Ok(bound));
            assert!(go_seconds(nanos) <= bound && go_seconds(nanos + 1) > bound, "{text}");
            bound *= 2.0;
        }
    }

    #[test]
    fn changes_are_in_order_of_their_series() {
        let mut durations = Durations::new("d");
        for (counter, millis) in [("c{a=2,m=x}", 3), ("c{a=1,m=x}", 3), ("c{a=1,m=x}", 20_000)] {
            durations.observe(counter, Span(millis * 1_000_000));
        }
        durations.observe("c{a=3,m=x}", Span::ZERO);
        durations.observe("c{a=3,m=y}", Span(1));
        let changes: Vec<String> = durations.changes().map(|it| it.to_string()).collect();
        assert_eq!(
            changes,
            [
                "d_bucket{a=1,le=+Inf,m=x} +1",
                "d_bucket{a=1,le=0.004,m=x} +1",
                "d_bucket{a=2,le=0.004,m=x} +1",
                "d_sum{a=1,m=x} +20.003",
                "d_sum{a=2,m=x} +0.003",
                "d_sum{a=3,m=y} +0.000000001",
            ]
        );
    }
}
