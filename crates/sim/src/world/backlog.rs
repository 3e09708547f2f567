//! Work that is not done yet: queues, and load that exceeds the limits of the pods.
//!
//! Work arrives as a signal says, and each ready pod does a fixed amount per second. Between two
//! changes of the signal or of the number of ready pods, the backlog changes linearly, until it is
//! empty. All amounts are integers, so that the results are the same on all platforms.

use std::collections::VecDeque;
use std::sync::Arc;

use super::signal::{signal_at, signal_changes};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{SECOND, Span, Time};
use kube_lockstep_scenario::resolved::{self, Metrics, Scenario, Signal, UsageSource};

/// One backlog over time.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    /// What arrives, in thousandths per second, from each time on, in order.
    arrivals: Arc<[(Time, i64)]>,
    /// What a pod does, in thousandths per second.
    per_pod: i64,
    /// The number of elements of `arrivals` that have begun.
    begun: usize,
    /// The backlog at the times at which its slope has changed, in order, in thousandths times
    /// nanoseconds. The last element is the current state.
    knots: VecDeque<(Time, i128)>,
    /// How long past values are kept.
    kept: Span,
}

impl Backlog {
    /// The backlog of a signal. `limit`: what each pod does per second, if the signal does not say.
    fn new(
        backlog: &resolved::Backlog,
        limit: Option<&Quantity>,
        until: Time,
        kept: Span,
    ) -> Backlog {
        let mut times = signal_changes(&backlog.arrivals, until);
        times.push(Time::ZERO);
        times.retain(|at| *at >= Time::ZERO);
        times.sort_unstable();
        times.dedup();
        // In a gap of a recording, nothing arrives.
        let arrival = |at: Time| (at, signal_at(&backlog.arrivals, at).unwrap_or(0));
        let per_pod = backlog.per_pod.as_ref().or(limit).map_or(0, Quantity::milli);
        let initial = backlog.initial.as_ref().map_or(0, Quantity::milli);
        Backlog {
            arrivals: times.into_iter().map(arrival).collect(),
            per_pod,
            begun: 1,
            knots: VecDeque::from([(Time::ZERO, i128::from(initial) * i128::from(SECOND))]),
            kept,
        }
    }

    /// What a pod does, in thousandths per second.
    pub(crate) fn per_pod(&self) -> i64 {
        self.per_pod
    }

    /// Continues to a time, with this number of ready pods since the last one.
    pub(crate) fn advance(&mut self, to: Time, serving: usize) {
        let done = i128::from(self.per_pod) * serving as i128;
        loop {
            let (at, level) = self.last();
            if at >= to {
                break;
            }
            let change = self.arrivals.get(self.begun).map(|(change, _)| *change);
            let end = change.map_or(to, |change| change.min(to));
            let slope = i128::from(self.arrivals[self.begun - 1].1) - done;
            self.move_to(end, level, slope);
            self.begun += usize::from(change == Some(end));
        }
        let oldest = to - self.kept;
        while self.knots.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.knots.pop_front();
        }
    }

    /// Continues to a time with a constant slope, in thousandths per second.
    fn move_to(&mut self, end: Time, level: i128, slope: i128) {
        let (at, _) = self.last();
        let reached = level + slope * i128::from((end - at).0);
        if reached >= 0 {
            self.knots.push_back((end, reached));
            return;
        }
        // The backlog is empty from a time on, rounded up to a nanosecond.
        let nanos = i64::try_from((level - slope - 1) / -slope).unwrap_or(i64::MAX);
        let empty = at + Span(nanos);
        if empty > at && empty < end {
            self.knots.push_back((empty, 0));
        }
        self.knots.push_back((end, 0));
    }

    /// The backlog at the last time, in thousandths times nanoseconds.
    pub(crate) fn level(&self) -> i128 {
        self.last().1
    }

    fn last(&self) -> (Time, i128) {
        self.knots.back().copied().unwrap_or((Time::ZERO, 0))
    }

    /// The backlog in thousandths at a time, which is not after the last one. Before the oldest
    /// time that is kept, it is that of this time.
    pub(crate) fn at(&self, at: Time) -> i64 {
        let after = self.knots.partition_point(|(knot, _)| *knot <= at);
        let level = match (after.checked_sub(1), self.knots.get(after)) {
            (Some(before), Some((to, high))) => {
                let (from, low) = self.knots[before];
                let (into, span) = (i128::from((at - from).0), i128::from((*to - from).0));
                low + (high - low) * into / span
            }
            (Some(before), None) => self.knots[before].1,
            (None, _) => self.knots.front().map_or(0, |(_, level)| *level),
        };
        i64::try_from(level / i128::from(SECOND)).unwrap_or(i64::MAX)
    }
}

/// All backlogs of a scenario, each at the place of its signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlogs {
    /// Those of loads of `metrics.resource`.
    pub(crate) resources: Vec<Option<Backlog>>,
    /// Those of loads of `metrics.pods`.
    pub(crate) pods: Vec<Option<Backlog>>,
    /// Those of the series of `metrics.object`.
    pub(crate) objects: Vec<Vec<Option<Backlog>>>,
    /// Those of the series of `metrics.external`.
    pub(crate) externals: Vec<Vec<Option<Backlog>>>,
    /// True if there is one.
    exist: bool,
}

impl Backlogs {
    pub(crate) fn new(scenario: &Scenario) -> Backlogs {
        let Metrics { resources, pods, objects, externals, .. } = &scenario.metrics;
        let exist = scenario.metrics.signals().any(|it| matches!(it, Signal::Backlog(_)));
        if !exist {
            return Backlogs::default();
        }
        let kept = oldest_sample(scenario);
        let of = |signal: &Signal, limit: Option<&Quantity>| match signal {
            Signal::Backlog(it) => Some(Backlog::new(it, limit, scenario.until, kept)),
            _ => None,
        };
        let load = |source: &UsageSource| match source {
            UsageSource::Load { total, limit } => of(total, limit.as_ref()),
            _ => None,
        };
        Backlogs {
            resources: resources.iter().map(|it| load(&it.source)).collect(),
            pods: pods.iter().map(|it| load(&it.source)).collect(),
            objects: objects
                .iter()
                .map(|it| it.all_series().map(|(_, signal)| of(signal, None)).collect())
                .collect(),
            externals: externals
                .iter()
                .map(|it| it.all_series().map(|(_, signal)| of(signal, None)).collect())
                .collect(),
            exist,
        }
    }

    /// Continues to a time, with this number of ready pods since the last one.
    pub(crate) fn advance(&mut self, to: Time, serving: usize) {
        if self.exist {
            self.all_mut().for_each(|backlog| backlog.advance(to, serving));
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Backlog> {
        let loads = self.resources.iter_mut().chain(&mut self.pods);
        let series = self.objects.iter_mut().chain(&mut self.externals).flatten();
        loads.chain(series).flatten()
    }

    /// All backlogs, in a fixed order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Backlog> {
        let loads = self.resources.iter().chain(&self.pods);
        let series = self.objects.iter().chain(&self.externals).flatten();
        loads.chain(series).flatten()
    }
}

/// The largest age of a sample.
fn oldest_sample(scenario: &Scenario) -> Span {
    use kube_lockstep_scenario::resolved::{Action, LateMetrics};

    let sampling = scenario.metrics.sampling;
    let of_pods = scenario.workload.pods.iter().filter_map(|it| it.sample_lag);
    let late = scenario.timeline.iter().filter_map(|event| match &event.action {
        Action::MetricsLate(LateMetrics { by, .. }) => Some(*by),
        _ => None,
    });
    let oldest = of_pods.chain(late).chain([sampling.lag]).map(|span| span.0).max().unwrap_or(0);
    Span(oldest + sampling.resolution.map_or(0, |resolution| resolution.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::resolved::Point;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).expect("a quantity")
    }

    fn backlog(arrivals: &[(i64, &str)], per_pod: &str, initial: &str) -> Backlog {
        let point = |(at, value): &(i64, &str)| Point { at: Time::from_secs(*at), value: q(value) };
        let arrivals = Signal::Steps(arrivals.iter().map(point).collect());
        let signal = resolved::Backlog {
            arrivals: Box::new(arrivals),
            per_pod: Some(q(per_pod)),
            initial: Some(q(initial)),
        };
        Backlog::new(&signal, None, Time::from_secs(1000), Span::from_secs(60))
    }

    /// The backlog by steps of 10 ms. `serving`: the ready pods from each second on.
    fn by_small_steps(
        arrivals: &[(i64, i64)],
        per_pod: i64,
        initial: i64,
        serving: &[(i64, usize)],
        until: i64,
    ) -> i64 {
        // In thousandths times hundredths of a second.
        let mut level = initial * 100;
        for step in 0..until * 100 {
            let second = step / 100;
            let rate = arrivals.iter().rev().find(|(at, _)| *at <= second).map_or(0, |it| it.1);
            let pods = serving.iter().rev().find(|(at, _)| *at <= second).map_or(0, |it| it.1);
            level = (level + rate - per_pod * pods as i64).max(0);
        }
        level / 100
    }

    #[test]
    fn work_arrives_and_pods_do_it() {
        let arrivals = [(0, 20_000), (30, 3_500), (90, 41_000)];
        let serving = [(0, 2), (12, 5), (40, 1), (100, 9)];
        let texts: Vec<(i64, String)> =
            arrivals.iter().map(|(at, milli)| (*at, format!("{milli}m"))).collect();
        let texts: Vec<(i64, &str)> = texts.iter().map(|(at, text)| (*at, &**text)).collect();
        let mut queue = backlog(&texts, "4500m", "7");
        for second in 1..200 {
            // The number of ready pods changes at the second before.
            let pods = serving.iter().rev().find(|(at, _)| *at < second).map_or(0, |it| it.1);
            queue.advance(Time::from_secs(second), pods);
            let expected = by_small_steps(&arrivals, 4500, 7000, &serving, second);
            let found = queue.at(Time::from_secs(second));
            assert!((found - expected).abs() <= 45, "t={second}: {found}, expected {expected}");
        }
    }

    #[test]
    fn past_values_are_kept() {
        let mut queue = backlog(&[(0, "10")], "5", "0");
        queue.advance(Time::from_secs(100), 1);
        queue.advance(Time::from_secs(120), 22);
        // It grows by 5 per second up to 500, and shrinks by 100 per second from then on.
        for (second, milli) in [(60, 300_000), (99, 495_000), (102, 300_000), (105, 0), (120, 0)] {
            assert_eq!(queue.at(Time::from_secs(second)), milli, "t={second}");
        }
        assert_eq!(queue.knots.len(), 4);
        queue.advance(Time::from_secs(500), 22);
        assert_eq!(queue.knots.len(), 2, "{:?}", queue.knots);
    }

    #[test]
    fn several_steps_give_the_same_backlog_as_one() {
        let arrivals = [(0, "1"), (7, "333m"), (20, "0")];
        let (mut one, mut many) =
            (backlog(&arrivals, "100m", "3"), backlog(&arrivals, "100m", "3"));
        one.advance(Time::from_secs(90), 3);
        for tenth in 1..=900 {
            many.advance(Time(tenth * SECOND / 10), 3);
        }
        for second in 30..=90 {
            let at = Time::from_secs(second);
            assert_eq!(one.at(at), many.at(at), "t={second}");
        }
    }

    /// A scenario with an HPA on the average length of a queue.
    const WORKERS: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Workers take work from a queue.
upstream: https://example.com
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: workers}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: workers}
    maxReplicas: 20
    metrics:
      - type: External
        external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 40}}
workload: {replicas: 2, containers: [{name: app}], startup: {ready: 22s}}
metrics:
  external:
    - name: queue
      value: {backlog: {steps: [{at: 0s, value: 20}, {at: 7m, value: 3}]}, perPod: 5, initial: 10}
  sampling: {lag: 10s}
until: 20m
";

    #[test]
    fn the_length_of_a_queue_follows_from_the_ready_workers() {
        let scenario = kube_lockstep_scenario::testing::scenario(WORKERS);
        let run = crate::run::free_run(&scenario, Release::NEWEST);
        let mut lengths = Vec::new();
        for tick in &run.ticks {
            let metric = &tick.derivation.metrics[0];
            lengths.push((tick.observation.at, metric.usage.expect("a value").total));
        }
        assert!(lengths.len() > 70 && run.serving_changes.len() > 8, "{lengths:?}");
        for (at, found) in lengths {
            // By steps of a millisecond. Samples are ten seconds old.
            let (mut level, mut pods) = (10_000.0_f64, 0);
            let mut changes = run.serving_changes.iter().peekable();
            let millis = (at - Time::ZERO).0 / 1_000_000 - 10_000;
            for milli in 0..millis {
                while let Some(change) = changes.next_if(|it| it.at.0 <= milli * 1_000_000) {
                    pods += if change.serves { 1 } else { -1 };
                }
                let rate = if milli < 420_000 { 20.0 } else { 3.0 };
                level = (level + rate - 5.0 * f64::from(pods)).max(0.0);
            }
            let difference = (found as f64 - level).abs();
            assert!(difference <= 100.0, "{at}: {found}, expected {level}");
        }
    }

    #[test]
    fn load_above_the_limits_is_done_later() {
        let load = "{steps: [{at: 0s, value: 1}, {at: 1m, value: 5}, {at: 2m, value: 1}]}";
        let text = kube_lockstep_scenario::testing::WEB
            .replace("perPod: 500m", &format!("load: {{backlog: {load}}}, limit: 1"));
        let text =
            text.replace("maxReplicas: 10", "maxReplicas: 2").replace("until: 2m", "until: 10m");
        let scenario = kube_lockstep_scenario::testing::scenario(&text);
        let run = crate::run::free_run(&scenario, Release::NEWEST);
        let serving = scenario.workload.replicas.max(2);
        assert_eq!(serving, 2, "the replicas stay the same");
        // (5 - 2) * 60 s of work are left at 2m; each second, 2 - 1 of it is done.
        for tick in &run.ticks {
            let at = tick.observation.at;
            let usage = tick.derivation.metrics[0].usage.expect("usage").total;
            let expected = if (60..300).contains(&at.0.div_euclid(SECOND)) { 2000 } else { 1000 };
            assert_eq!(usage, expected, "t={at}");
        }
        assert!(run.ticks.len() > 30);
    }
}
