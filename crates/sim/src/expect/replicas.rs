//! Expected numbers of replicas over the whole run: at regular times, or in their order.

use super::amount::{Amount, List};
use super::tick::Tick;
use super::unmet::{Miss, UnmetValue};
use super::when::{ExpectedTick as _, near, tolerance_text};
use kube_lockstep_scenario::resolved::ExpectedSeries;

/// Why the replicas at regular times are not as expected.
pub(super) fn series(
    ticks: &[Tick<'_>],
    series: &ExpectedSeries,
    tolerance: usize,
) -> Option<Miss> {
    let mut first = None;
    let mut values = Vec::new();
    for (at, range) in series.values() {
        let until = ticks.partition_point(|tick| tick.at() <= at);
        let Some(index) = until.checked_sub(1) else {
            return Some(Miss::plain(format!("no tick at or before t={at}")));
        };
        let meets = |tick: &Tick<'_>| range.contains(&tick.replicas);
        if near(ticks, index, tolerance).iter().any(meets) {
            continue;
        }
        let tick = &ticks[index];
        let value = UnmetValue::new("replicas", &Amount::Numbers(range), &tick.replicas);
        let value = UnmetValue { of: Some(at.to_string()), ..value };
        first.get_or_insert((at, tick));
        values.push(value);
    }
    let (at, tick) = first?;
    let UnmetValue { expected, observed, .. } = &values[0];
    let more = match values.len() - 1 {
        0 => String::new(),
        1 => format!("; 1 more of {} values differs", series.replicas.len()),
        more => format!("; {more} more of {} values differ", series.replicas.len()),
    };
    let near = tolerance_text(tolerance);
    let what = format!("t={at}, {tick}: replicas: expected {expected}, was {observed}{near}{more}");
    Some(Miss { what, tick: Some(tick.name()), values })
}

/// Why the numbers of replicas in the order of the run are not as expected.
pub(super) fn sequence(ticks: &[Tick<'_>], expected: &[i32]) -> Option<Miss> {
    let Some(start) = ticks.first() else {
        return Some(Miss::plain("there was no tick".to_owned()));
    };
    // Each number with the reconcile at which it is first seen.
    let mut seen = vec![(start.before, start)];
    for tick in ticks {
        for replicas in [tick.before, tick.replicas] {
            if seen.last().is_none_or(|(last, _)| *last != replicas) {
                seen.push((replicas, tick));
            }
        }
    }
    let sequence: Vec<i32> = seen.iter().map(|(replicas, _)| *replicas).collect();
    if sequence == expected {
        return None;
    }
    let agreeing = sequence.iter().zip(expected).take_while(|(seen, expected)| seen == expected);
    let agreeing = agreeing.count();
    let (_, tick) = seen.get(agreeing).unwrap_or(&seen[seen.len() - 1]);
    let number =
        |replicas: Option<&i32>| replicas.map_or_else(|| "no change".to_owned(), i32::to_string);
    let (expected_number, found) = (number(expected.get(agreeing)), number(sequence.get(agreeing)));
    let value = UnmetValue::new("sequence of replicas", &List(expected.to_vec()), &List(sequence));
    let what = format!(
        "sequence of replicas: expected {}, was {}; number {} differs first, at {tick}: expected \
         {expected_number}, was {found}",
        value.expected,
        value.observed,
        agreeing + 1
    );
    Some(Miss { what, tick: Some(tick.name()), values: vec![value] })
}
