//! Measures how well the pods of a prediction serve its load, from event to event.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::comparison::{Figures, Reference, ticks};
use super::missing::{Decided, MissingTime, Reconciled, Supply};
use super::table;
use kube_autoscaler_models::derivation::{Derivation, Target};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::demand::{Demand, KnownMetric, Need};
use kube_lockstep_sim::run::{FreeRun, FreeTick, ServingChange};

/// Adds the figures that depend on the load.
pub(super) fn measure(
    scenario: &Scenario,
    run: &FreeRun,
    reference: &Reference,
    figures: &mut Figures,
) {
    let mut measured = Measured {
        demand: Demand::new(scenario),
        reference,
        hpas: first_states(run),
        replicas: 0,
        above_since: None,
        missing: MissingTime::default(),
    };
    let points = table::points(scenario, run, 0);
    let reconciles: Vec<&FreeTick> = ticks(run).collect();
    let (mut points, mut reconciles) = (&points[..], &reconciles[..]);
    let mut serving = &run.serving_changes[..];
    let times = times(scenario, run, &measured.demand);
    for (index, at) in times.iter().enumerate() {
        let end = times.get(index + 1).copied().unwrap_or(scenario.until);
        if *at == Time::ZERO {
            // The pods of the start.
            measured.serve(due(&mut serving, |it| it.at <= Time::ZERO));
        }
        for tick in due(&mut reconciles, |it| it.observation.at <= *at) {
            measured.reconcile(tick);
        }
        measured.serve(due(&mut serving, |it| it.at <= *at));
        for (_, replicas) in due(&mut points, |(from, _)| from <= at) {
            measured.replicas = *replicas;
        }
        measured.pass(*at, end, figures);
    }
    figures.missing_pod_hours = measured.missing.pod_hours();
    figures.missing_pod_hours_by_cause = measured.missing.by_cause();
}

/// Takes the first elements off a sequence, as long as they are due.
fn due<'a, T>(rest: &mut &'a [T], is_due: impl Fn(&T) -> bool) -> &'a [T] {
    let (due, later) = rest.split_at(rest.partition_point(is_due));
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
    times.retain(|at| (Time::ZERO..until).contains(at));
    times.sort_unstable();
    times.dedup();
    times
}

/// The state of the HPAs of a target, and of the pods.
struct Measured<'a> {
    demand: Demand<'a>,
    reference: &'a Reference,
    hpas: BTreeMap<Arc<str>, HpaState>,
    /// `spec.replicas` of the target.
    replicas: i32,
    above_since: Option<Time>,
    missing: MissingTime,
}

/// An HPA after a reconcile.
#[derive(Clone, Debug, Default)]
struct HpaState {
    metrics: Vec<KnownMetric>,
    decided: Decided,
    /// A metric, or the reconcile as a whole, failed.
    has_failed: bool,
}

/// What is known of the HPAs before their first reconciles: their first metrics and limits.
fn first_states(run: &FreeRun) -> BTreeMap<Arc<str>, HpaState> {
    let mut states: BTreeMap<Arc<str>, HpaState> = BTreeMap::new();
    for tick in ticks(run) {
        let state = states.entry(tick.observation.hpa.clone()).or_default();
        if state.metrics.is_empty() {
            state.metrics = tick.derivation.metrics.iter().map(KnownMetric::new).collect();
        }
        for metric in &tick.derivation.metrics {
            let known = state.metrics.iter_mut().find(|known| known.is_same(metric));
            if let Some(known) = known.filter(|known| !known.is_complete()) {
                known.fill_in(&KnownMetric::new(metric));
            }
        }
        let max_replicas = max_replicas(&tick.derivation);
        state.decided.max_replicas = state.decided.max_replicas.or(max_replicas);
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
            self.metrics = derivation.metrics.iter().map(KnownMetric::new).collect();
            for known in &mut self.metrics {
                let same = before.iter().find(|before| before.is_same(&known.metric));
                same.iter().for_each(|same| known.fill_in(same));
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
    }

    /// A reconcile begins. It does not see the pods that its own changes create.
    fn reconcile(&mut self, tick: &FreeTick) {
        let (hpa, at) = (&tick.observation.hpa, tick.observation.at);
        self.hpas.entry(hpa.clone()).or_default().update(&tick.derivation);
        let needed = self.needed(at).replicas;
        let Some(state) = self.hpas.get(hpa) else { return };
        let need = |known: &KnownMetric, target: Target| self.demand.need(known, target, at);
        let own = state.metrics.iter().filter_map(|known| need(known, known.metric.target));
        let own = own.map(Need::replicas).max();
        if let Some(state) = self.hpas.get_mut(hpa)
            && let Some(last) = &mut state.decided.last
        {
            (last.needed, last.needed_for_own_targets) = (needed, own);
        }
    }

    /// The need at a time. A metric without a counterpart in the reference is measured against its
    /// own target.
    fn needed(&self, at: Time) -> Needed {
        let mut needed = Needed::default();
        for (hpa, state) in &self.hpas {
            for known in &state.metrics {
                let other = self.reference.metric(hpa, at, &known.metric).unwrap_or(&known.metric);
                if let Some(need) = self.demand.need(known, other.target, at) {
                    needed.add(need, other.tolerances.1);
                }
            }
        }
        needed
    }

    /// Time passes without a change.
    fn pass(&mut self, from: Time, end: Time, figures: &mut Figures) {
        let lasts = end - from;
        let needed = self.needed(from);
        if let Some(replicas) = needed.replicas {
            self.add_replicas(replicas, lasts, figures);
        }
        if self.hpas.values().any(|hpa| hpa.has_failed) {
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

    fn add_replicas(&mut self, needed: i32, lasts: Span, figures: &mut Figures) {
        let serving = i32::try_from(self.demand.serving).unwrap_or(i32::MAX);
        let excess = self.replicas.saturating_sub(needed);
        figures.excess_replicas = figures.excess_replicas.max(excess);
        figures.needed_peak_replicas = figures.needed_peak_replicas.max(needed);
        if serving >= needed {
            return;
        }
        let decided = self.hpas.values().map(|hpa| hpa.decided).reduce(Decided::join);
        let supply = Supply { replicas: self.replicas, serving };
        for (cause, replicas) in decided.unwrap_or_default().missing(needed, supply) {
            self.missing.add(cause, replicas, lasts);
        }
    }
}
