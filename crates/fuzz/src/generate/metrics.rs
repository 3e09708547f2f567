//! The responses of the metrics APIs: usually amounts at a boundary of the decision, with changes
//! at the end of a window.

use std::sync::Arc;

use super::edge::Edge;
use super::{Aim, CUSTOM, Draft, RESOURCES, numbers};
use crate::area::Area;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{
    Entries, Exception, Metrics, Point, ResourceUsage, Sampling, Signal, Sine, UsageSource,
};

pub(super) fn metrics(draft: &mut Draft) -> Metrics {
    let mut resources = Vec::new();
    for (index, name) in RESOURCES.into_iter().enumerate() {
        let aim = draft.aims.iter().find(|aim| aim.resource == index).copied();
        // A metric without values, and values without a metric, are rare.
        let Some(aim) = aim.filter(|_| !draft.dice.percent(2)) else { continue };
        let source = source(draft, aim);
        let exceptions = exceptions(draft, aim);
        resources.push(ResourceUsage { name: Arc::from(name), source, exceptions });
    }
    let sampling = sampling(draft);
    Metrics { resources, sampling, ..std::mem::take(&mut draft.served) }
}

fn source(draft: &mut Draft, aim: Aim) -> UsageSource {
    match draft.dice.below(10) {
        0..=2 => {
            let pods = i64::from(draft.replicas.max(1));
            let total = signal(draft, aim, pods, 1);
            let limit = draft.dice.percent(40).then(|| {
                let limit = numbers::usage(draft, aim).max(1);
                numbers::positive(draft, limit)
            });
            UsageSource::Load { total, limit }
        }
        3 | 4 if draft.containers.len() > 1 => {
            let containers = draft.containers.clone();
            let count = i64::try_from(containers.len()).unwrap_or(1);
            let usages = containers.into_iter().filter_map(|(name, _)| {
                let reported = !draft.dice.percent(5);
                reported.then(|| (name, signal(draft, aim, 1, count)))
            });
            let usages: Vec<_> = usages.collect();
            match usages.is_empty() {
                true => UsageSource::PerPod(signal(draft, aim, 1, 1)),
                false => UsageSource::PerContainer(Entries(usages)),
            }
        }
        _ => UsageSource::PerPod(signal(draft, aim, 1, 1)),
    }
}

/// A signal around the aim of one pod, multiplied by a fraction.
pub(super) fn signal(draft: &mut Draft, aim: Aim, times: i64, by: i64) -> Signal {
    let value = |draft: &mut Draft| {
        let usage = i128::from(numbers::usage(draft, aim)) * i128::from(times) / i128::from(by);
        let usage = i64::try_from(usage).unwrap_or(i64::MAX);
        // Memory is in bytes.
        let usage = if aim.resource == 1 { usage / 1000 * 1000 } else { usage };
        numbers::quantity(draft, usage)
    };
    let values = |draft: &mut Draft| {
        let count = draft.dice.weighted(&[(3, 2), (3, 4), (1, 10)]);
        let instants = draft.instants(count);
        instants.into_iter().map(|at| Point { at, value: value(draft) }).collect()
    };
    if draft.edge == Edge::Zero && aim.resource == CUSTOM && draft.dice.percent(70) {
        return Signal::Steps(on_and_off(draft, value));
    }
    match draft.dice.below(10) {
        0..=3 => Signal::Constant(value(draft)),
        4..=7 => Signal::Steps(values(draft)),
        8 => Signal::Points(values(draft)),
        _ => {
            let amount = |milli: i128| {
                let milli = i64::try_from(milli).unwrap_or(i64::MAX / 4);
                // The same form as parsed from a file.
                Quantity::from_milli(milli, Format::DecimalSI).read_again()
            };
            let mean = i128::from(aim.milli.max(1)) * i128::from(times) / i128::from(by);
            let until = draft.until().since_start();
            let period = draft.dice.pick(&[until, Span(until.0 / 3), Span::from_mins(5)]);
            let offset = draft.span();
            // Usage can't be negative.
            let most = if aim.resource == CUSTOM { 1200 } else { 1000 };
            Signal::Sine(Sine {
                mean: amount(mean),
                amplitude: amount(mean * i128::from(draft.dice.between(0, most)) / 1000),
                period: Span(period.0.max(1_000_000)),
                offset: if draft.dice.percent(50) { offset } else { Span::ZERO },
            })
        }
    }
}

/// Alternates between zero and a value.
fn on_and_off(draft: &mut Draft, mut value: impl FnMut(&mut Draft) -> Quantity) -> Vec<Point> {
    let mut values = Vec::new();
    let mut at = Time::ZERO;
    let mut on = draft.dice.percent(50);
    while values.len() < 8 && at <= draft.until() {
        let now = if on { value(draft) } else { numbers::parsed("0") };
        values.push(Point { at, value: now });
        on = !on;
        at = at + Span(draft.flags.sync_period.0 * draft.dice.between(1, 6));
    }
    values
}

/// Pods with a higher or lower usage than the others.
pub(super) fn exceptions(draft: &mut Draft, aim: Aim) -> Vec<Exception> {
    let count = draft.dice.weighted(&[(6, 0), (3, 1), (1, 2)]);
    let count = if draft.replicas == 0 { 0 } else { count };
    let mut exception = || {
        let pods = draft.pods();
        Exception::new(pods, signal(draft, aim, 1, 1))
    };
    (0..count).map(|_| exception()).collect()
}

fn sampling(draft: &mut Draft) -> Sampling {
    let mut sampling = Sampling::default();
    let seconds = Span::from_secs;
    if draft.edge == Edge::Sample {
        return sampling;
    }
    if draft.likely(Area::Readiness, 15, 60) {
        sampling.window = draft.dice.pick(&[seconds(15), seconds(60), seconds(10), Span::ZERO]);
        sampling.lag = draft.dice.pick(&[Span::ZERO, seconds(1), seconds(15), seconds(45)]);
    }
    if draft.dice.percent(15) {
        sampling.resolution = Some(draft.dice.pick(&[seconds(15), seconds(60), seconds(7)]));
    }
    sampling
}
