//! Measures how well the pods of a prediction serve its load, from event to event.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use super::comparison::{MeasuredAgainst, Reference, ticks};
use super::figures::{Figures, RequestFigures, ResourceFigures, Scaling};
use super::missing::{Decided, MissingReplicas, MissingTime, Reconciled, Supply, pod_hours};
use super::price::GIB;
use super::table;
use kube_autoscaler_models::derivation::{Derivation, MetricDerivation, Target};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::demand::{Demand, KnownMetric, Need};
use kube_lockstep_sim::run::{
    FreeRun, FreeTick, InUse, PodChangeKind, RequestChange, RequestsInUse, ResourceInUse,
    ServingChange,
};

/// The figures of a run and of its parts, which begin at these times.
pub(super) fn measure(
    scenario: &Scenario,
    run: &FreeRun,
    reference: &Reference,
    boundaries: &[Time],
) -> (Figures, Vec<Figures>) {
    let points = table::points(scenario, run, 0);
    let mut measured = Measured {
        demand: Demand::new(scenario),
        requests: scenario.vpa.is_some().then(|| RequestsInUse::new(scenario)),
        reference,
        hpas: first_states(scenario, run, reference),
        replicas: points.first().map_or(0, |(_, replicas)| *replicas),
        whole: Sum::new(scenario),
        parts: vec![Sum::new(scenario); boundaries.len()],
    };
    let reconciles: Vec<&FreeTick> = ticks(run).collect();
    let (mut points, mut reconciles) = (&points[..], &reconciles[..]);
    let mut serving = &run.serving_changes[..];
    let mut requests = &run.request_changes[..];
    let mut times = times(scenario, run, &measured.demand);
    times.extend(boundaries.iter().filter(|at| (Time::ZERO..scenario.until).contains(at)));
    times.sort();
    times.dedup();
    for (index, at) in times.iter().enumerate() {
        let end = times.get(index + 1).copied().unwrap_or(scenario.until);
        measured.demand.advance(*at);
        measured.hold(due(&mut requests, |it| it.at <= *at));
        if *at == Time::ZERO {
            // The pods of the start.
            measured.serve(due(&mut serving, |it| it.at <= Time::ZERO));
        }
        for tick in due(&mut reconciles, |it| it.observation.at <= *at) {
            measured.reconcile(tick);
        }
        measured.serve(due(&mut serving, |it| it.at <= *at));
        for (_, replicas) in due(&mut points, |(from, _)| from <= at) {
            measured.scale(*replicas);
        }
        measured.pass(*at, end, boundaries.partition_point(|from| from <= at));
    }
    // The last reconcile may be at the end.
    points.iter().for_each(|(_, replicas)| measured.scale(*replicas));
    measured.add_changes(run, boundaries);
    (measured.whole.figures(), measured.parts.into_iter().map(Sum::figures).collect())
}

/// Takes the first elements off a sequence, as long as they are due: usually none or one.
fn due<'a, T>(rest: &mut &'a [T], is_due: impl Fn(&T) -> bool) -> &'a [T] {
    let (due, later) = rest.split_at(rest.iter().take_while(|it| is_due(it)).count());
    *rest = later;
    due
}

/// The times from 0 on, before the end, at which the load, the pods or the replicas change, or an
/// HPA is reconciled.
fn times(scenario: &Scenario, run: &FreeRun, demand: &Demand<'_>) -> Vec<Time> {
    let until = scenario.until;
    let mut times = vec![Time::ZERO];
    times.extend(demand.changes());
    times.extend(ticks(run).map(|tick| tick.observation.at));
    times.extend(run.serving_changes.iter().map(|change| change.at));
    times.extend(run.external_scales.iter().map(|scale| scale.at));
    times.extend(run.request_changes.iter().map(|change| change.at));
    times.retain(|at| (Time::ZERO..until).contains(at));
    // Merges the lists, most of which are sorted.
    times.sort();
    times.dedup();
    times
}

/// The state of the HPAs of a target, and of the pods.
struct Measured<'a> {
    demand: Demand<'a>,
    /// If there is a VPA.
    requests: Option<RequestsInUse<'a>>,
    reference: &'a Reference,
    hpas: BTreeMap<Arc<str>, HpaState>,
    /// `spec.replicas` of the target.
    replicas: i32,
    whole: Sum,
    parts: Vec<Sum>,
}

/// An HPA after a reconcile.
#[derive(Clone, Debug, Default)]
struct HpaState {
    metrics: Vec<MeasuredMetric>,
    decided: Decided,
    /// A metric, or the reconcile as a whole, failed.
    has_failed: bool,
}

/// A metric of an HPA, and what it was last measured against.
#[derive(Clone, Debug)]
struct MeasuredMetric {
    known: KnownMetric,
    against: Option<MeasuredAgainst>,
}

impl MeasuredMetric {
    fn new(metric: &MetricDerivation) -> MeasuredMetric {
        MeasuredMetric { known: KnownMetric::new(metric), against: None }
    }

    /// Takes over what an earlier reconcile of the same metric has shown.
    fn fill_in(&mut self, before: &MeasuredMetric) {
        let part = |it: &MeasuredMetric| (it.known.metric.target, it.known.metric.tolerances);
        if part(self) == part(before) {
            self.against = before.against;
        }
        self.known.fill_in(&before.known);
    }
}

/// What is known of the HPAs before their first reconciles: their first metrics and limits. Values
/// that no reconcile shows are taken from the reference.
fn first_states(
    scenario: &Scenario,
    run: &FreeRun,
    reference: &Reference,
) -> BTreeMap<Arc<str>, HpaState> {
    let mut states: BTreeMap<Arc<str>, HpaState> = BTreeMap::new();
    for tick in ticks(run) {
        let state = states.entry(tick.observation.hpa.clone()).or_default();
        if state.metrics.is_empty() {
            state.metrics = tick.derivation.metrics.iter().map(MeasuredMetric::new).collect();
        }
        for metric in &tick.derivation.metrics {
            let mut knowns = state.metrics.iter_mut().map(|it| &mut it.known);
            let known = knowns.find(|known| known.is_same(metric));
            if let Some(known) = known.filter(|known| !known.is_complete()) {
                known.fill_in(&KnownMetric::new(metric));
            }
        }
        let max_replicas = max_replicas(&tick.derivation);
        state.decided.max_replicas = state.decided.max_replicas.or(max_replicas);
    }
    for (hpa, state) in &mut states {
        let others = reference.first_metrics(hpa);
        if state.metrics.is_empty() {
            state.metrics = others.iter().map(MeasuredMetric::new).collect();
        }
        for known in state.metrics.iter_mut().map(|it| &mut it.known) {
            known.fill_in_request(&scenario.workload.spec);
            let other = others.iter().find(|other| known.is_same(other));
            other.into_iter().for_each(|other| known.fill_in(&KnownMetric::new(other)));
        }
    }
    states
}

/// `maxReplicas`, if the reconcile could read the scale.
fn max_replicas(derivation: &Derivation) -> Option<i32> {
    derivation.current_replicas.map(|_| derivation.max_replicas)
}

impl HpaState {
    /// Takes over the results of a reconcile.
    fn update(&mut self, derivation: &Derivation) {
        if !derivation.metrics.is_empty() {
            let before = std::mem::take(&mut self.metrics);
            self.metrics = derivation.metrics.iter().map(MeasuredMetric::new).collect();
            for metric in &mut self.metrics {
                let same = before.iter().find(|it| it.known.is_same(&metric.known.metric));
                same.iter().for_each(|same| metric.fill_in(same));
            }
        }
        self.has_failed = derivation.error.is_some()
            || derivation.metrics.iter().any(|metric| metric.error.is_some());
        let max_replicas = max_replicas(derivation).or(self.decided.max_replicas);
        self.decided = Decided { max_replicas, last: Some(Reconciled::new(derivation)) };
    }
}

/// The need of all metrics.
#[derive(Clone, Copy, Debug, Default)]
struct Needed {
    /// The largest need. None: no load is known.
    replicas: Option<i32>,
    /// A metric is above its target, beyond the tolerance.
    is_above: bool,
}

impl Needed {
    fn add(&mut self, need: Need, tolerance: f64) {
        self.replicas = self.replicas.max(Some(need.replicas()));
        self.is_above |= need.ratio > 1.0 + tolerance;
    }
}

impl Measured<'_> {
    fn serve(&mut self, changes: &[ServingChange]) {
        changes.iter().for_each(|change| self.demand.apply(*change));
        if let Some(requests) = &mut self.requests {
            changes.iter().for_each(|change| requests.serve(*change));
        }
    }

    fn hold(&mut self, changes: &[RequestChange]) {
        if let Some(requests) = &mut self.requests {
            changes.iter().for_each(|change| requests.hold(change));
        }
    }

    /// A reconcile begins. It does not see the pods that its own changes create.
    fn reconcile(&mut self, tick: &FreeTick) {
        let (hpa, at) = (&tick.observation.hpa, tick.observation.at);
        self.hpas.entry(hpa.clone()).or_default().update(&tick.derivation);
        let needed = self.needed(at).replicas;
        let Some(state) = self.hpas.get(hpa) else { return };
        let need = |known: &KnownMetric, target: Target| self.demand.need(known, target, at);
        let own = state.metrics.iter().map(|it| &it.known);
        let own = own.filter_map(|known| need(known, known.metric.target));
        let own = own.map(Need::replicas).max();
        if let Some(state) = self.hpas.get_mut(hpa)
            && let Some(last) = &mut state.decided.last
        {
            (last.needed, last.needed_for_own_targets) = (needed, own);
        }
    }

    /// The need at a time. A metric without a counterpart in the reference is measured against its
    /// own target.
    fn needed(&mut self, at: Time) -> Needed {
        let mut needed = Needed::default();
        for (hpa, state) in &mut self.hpas {
            for MeasuredMetric { known, against } in &mut state.metrics {
                let MeasuredAgainst { target, tolerance, .. } = match *against {
                    Some(against) if at < against.until => against,
                    _ => *against.insert(self.reference.against(hpa, at, &known.metric)),
                };
                if let Some(need) = self.demand.need(known, target, at) {
                    needed.add(need, tolerance);
                }
            }
        }
        needed
    }

    /// The replicas change.
    fn scale(&mut self, replicas: i32) {
        self.replicas = replicas;
        self.whole.peak_replicas = self.whole.peak_replicas.max(replicas);
    }

    /// Time passes without a change. `begun`: the number of parts that have begun.
    fn pass(&mut self, from: Time, end: Time, begun: usize) {
        let needed = self.needed(from);
        let serving = i32::try_from(self.demand.serving).unwrap_or(i32::MAX);
        let missing = needed.replicas.filter(|needed| serving < *needed).map(|needed| {
            let decided = self.hpas.values().map(|hpa| hpa.decided).reduce(Decided::join);
            let supply = Supply { replicas: self.replicas, serving };
            decided.unwrap_or_default().missing(needed, supply)
        });
        let passed = Passed {
            from,
            end,
            replicas: self.replicas,
            needed,
            missing,
            in_use: self.requests.as_mut().map(|requests| requests.at(from)),
            has_failed: self.hpas.values().any(|hpa| hpa.has_failed),
        };
        self.sums(begun).for_each(|sum| sum.add(&passed));
    }

    /// The sums that a time counts for: the whole, and a part if one has begun. `begun`: the number
    /// of parts that have begun.
    fn sums(&mut self, begun: usize) -> impl Iterator<Item = &mut Sum> {
        let part = begun.checked_sub(1).and_then(|index| self.parts.get_mut(index));
        iter::once(&mut self.whole).chain(part)
    }

    /// Counts the changes of the replicas, those of the direction, and those of pods by a VPA.
    fn add_changes(&mut self, run: &FreeRun, boundaries: &[Time]) {
        let mut last: Option<(i32, usize)> = None;
        for tick in ticks(run) {
            let change = tick.replicas_after - tick.replicas_before;
            if change == 0 {
                continue;
            }
            let begun = boundaries.partition_point(|from| *from <= tick.observation.at);
            let direction = change.signum();
            let reverses = last.is_some_and(|(before, _)| before != direction);
            let is_within_part = last.is_some_and(|(_, part)| part == begun);
            self.whole.add_change(reverses);
            if let Some(part) = begun.checked_sub(1).and_then(|index| self.parts.get_mut(index)) {
                part.add_change(reverses && is_within_part);
            }
            last = Some((direction, begun));
        }
        for change in run.vpa.iter().flat_map(|vpa| &vpa.pod_changes) {
            let begun = boundaries.partition_point(|from| *from <= change.at);
            self.sums(begun).for_each(|sum| sum.add_pod_change(change.kind));
        }
        for at in &run.oom_kills {
            self.sums(boundaries.partition_point(|from| from <= at)).for_each(Sum::add_oom_kill);
        }
    }
}

/// A time without a change.
struct Passed {
    from: Time,
    end: Time,
    /// `spec.replicas` of the target.
    replicas: i32,
    needed: Needed,
    /// The missing replicas by cause.
    missing: Option<MissingReplicas>,
    /// The requests, if there is a VPA.
    in_use: Option<InUse>,
    /// A reconcile or a metric has failed.
    has_failed: bool,
}

/// The figures of a run, or of a part of it.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// The integral of the replicas, in pods × nanoseconds.
    replicas: i128,
    peak_replicas: i32,
    /// If there is an HPA.
    scaling: Option<ScalingSum>,
    /// If there is a VPA.
    requests: Option<RequestSum>,
}

/// The sums of [`Scaling`].
#[derive(Clone, Debug, Default)]
struct ScalingSum {
    figures: Scaling,
    missing: MissingTime,
    above_since: Option<Time>,
}

/// The sums of [`RequestFigures`].
#[derive(Clone, Debug, Default)]
struct RequestSum {
    figures: RequestFigures,
    /// In thousandths of a core × nanoseconds.
    cpu: ResourceInUse,
    /// In thousandths of a byte × nanoseconds.
    memory: ResourceInUse,
    /// In pods × nanoseconds.
    short_pods: i128,
}

impl Sum {
    fn new(scenario: &Scenario) -> Sum {
        Sum {
            scaling: (!scenario.hpas.is_empty()).then(ScalingSum::default),
            requests: scenario.vpa.as_ref().map(|_| RequestSum::default()),
            ..Sum::default()
        }
    }

    fn add(&mut self, passed: &Passed) {
        let Passed { from, end, replicas, .. } = *passed;
        let lasts = end - from;
        self.replicas += i128::from(replicas) * i128::from(lasts.0);
        self.peak_replicas = self.peak_replicas.max(replicas);
        if let Some(scaling) = &mut self.scaling {
            scaling.add(passed);
        }
        if let Some((requests, in_use)) = self.requests.as_mut().zip(passed.in_use) {
            requests.add(&in_use, lasts);
        }
    }

    fn add_change(&mut self, reverses: bool) {
        if let Some(ScalingSum { figures, .. }) = &mut self.scaling {
            figures.changes += 1;
            figures.direction_changes += usize::from(reverses);
        }
    }

    fn add_oom_kill(&mut self) {
        if let Some(RequestSum { figures, .. }) = &mut self.requests {
            figures.oom_kills += 1;
        }
    }

    fn add_pod_change(&mut self, kind: PodChangeKind) {
        if let Some(RequestSum { figures, .. }) = &mut self.requests {
            figures.evictions += usize::from(kind == PodChangeKind::Evicted);
            figures.resizes += usize::from(kind == PodChangeKind::Updated);
        }
    }

    fn figures(self) -> Figures {
        Figures {
            pod_hours: pod_hours(self.replicas),
            cost: None,
            peak_replicas: self.peak_replicas,
            scaling: self.scaling.map(ScalingSum::figures),
            requests: self.requests.map(RequestSum::figures),
        }
    }
}

impl ScalingSum {
    fn add(&mut self, passed: &Passed) {
        let Passed { from, end, replicas, needed, ref missing, has_failed, .. } = *passed;
        let (lasts, figures) = (end - from, &mut self.figures);
        if let Some(needed) = needed.replicas {
            figures.excess_replicas = figures.excess_replicas.max(replicas.saturating_sub(needed));
            figures.needed_peak_replicas = figures.needed_peak_replicas.max(needed);
        }
        if let Some(missing) = missing {
            self.missing.add(missing, lasts);
        }
        if has_failed {
            figures.failed_seconds += lasts.as_secs_f64();
        }
        if !needed.is_above {
            self.above_since = None;
            return;
        }
        let since = *self.above_since.get_or_insert(from);
        figures.above_target_seconds += lasts.as_secs_f64();
        figures.longest_above_target_seconds =
            figures.longest_above_target_seconds.max((end - since).as_secs_f64());
    }

    fn figures(self) -> Scaling {
        Scaling {
            missing_pod_hours: self.missing.pod_hours(),
            missing_pod_hours_by_cause: self.missing.by_cause(),
            ..self.figures
        }
    }
}

impl RequestSum {
    fn add(&mut self, in_use: &InUse, lasts: Span) {
        let lasts = i128::from(lasts.0);
        for (sum, amount) in [(&mut self.cpu, in_use.cpu), (&mut self.memory, in_use.memory)] {
            sum.requested += amount.requested * lasts;
            sum.unused += amount.unused * lasts;
            sum.short += amount.short * lasts;
        }
        self.short_pods += in_use.short_pods as i128 * lasts;
        self.figures.oom_kills += in_use.oom_kills;
    }

    fn figures(self) -> RequestFigures {
        let in_units = |sum: ResourceInUse, unit: f64| {
            let hours = |sum: i128| pod_hours(sum) / (1000.0 * unit);
            ResourceFigures {
                requested: hours(sum.requested),
                unused: hours(sum.unused),
                short: hours(sum.short),
            }
        };
        RequestFigures {
            cpu: in_units(self.cpu, 1.0),
            memory: in_units(self.memory, GIB),
            short_pod_hours: pod_hours(self.short_pods),
            ..self.figures
        }
    }
}
