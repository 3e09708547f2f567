//! The figures of settings, each from a run of the model.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::axis::Axis;
use super::search::Point;
use super::tuned::remove_nulls;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_manifests::field::FieldPath;
use kube_lockstep_report::comparison::{Reference, ticks};
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::price::Price;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::resolved::Observed;
use kube_lockstep_scenario::{Diagnostic, Scenario};
use kube_lockstep_sim::run::{FreeRun, free_run_without_trace};

/// The figures of a setting.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Measured {
    /// Those of the whole load.
    pub(crate) whole: Figures,
    /// Those of each day; of a load of less than two days, those of the whole load.
    pub(crate) days: Vec<Figures>,
    /// True if no metric leads to a proposal of replicas.
    pub(crate) is_stopped: bool,
}

/// The times at which the days of a load of at least 48 hours begin: every 24 hours from its start.
/// The rest is a shorter day.
pub(crate) fn days(until: Time) -> Vec<Time> {
    let day = Span::from_mins(24 * 60);
    let mut starts = vec![Time::ZERO];
    if until < Time::ZERO + day + day {
        return starts;
    }
    while let Some(next) = starts.last().map(|last| *last + day).filter(|it| *it < until) {
        starts.push(next);
    }
    starts
}

/// Runs the model with the settings of a grid.
pub(crate) struct Evaluator<'e> {
    pub(crate) release: Release,
    pub(crate) axes: &'e [Axis],
    /// The times at which the days begin.
    pub(crate) days: &'e [Time],
    pub(crate) reference: &'e Reference,
    /// The prices of an hour.
    pub(crate) price: Option<Price>,
    pub(crate) jobs: usize,
    /// Called after each setting, with the number of settings since the last call. If it returns
    /// false, the search ends.
    pub(crate) goes_on: &'e (dyn Fn(usize) -> bool + Sync),
}

impl Evaluator<'_> {
    /// The manifests of the autoscalers with the setting of a point, in the form of
    /// [`scenario::to_manifests`].
    pub(crate) fn manifests(&self, scenario: &Scenario, point: &Point) -> Result<Value, String> {
        manifests_with(scenario, self.values(point))
    }

    /// The fields that a point changes, with their values.
    fn values(&self, point: &Point) -> impl Iterator<Item = (&FieldPath, &Value)> {
        let changed = self.axes.iter().zip(point).filter(|(axis, index)| axis.current != **index);
        changed.map(|(axis, index)| (&axis.path, &axis.values[*index]))
    }

    /// The scenario with the setting of a point.
    ///
    /// # Errors
    /// If an API server rejects the setting.
    pub(crate) fn scenario(
        &self,
        scenario: &Scenario,
        point: &Point,
    ) -> Result<Arc<Scenario>, String> {
        let mut varied = with_values(scenario, self.values(point))?;
        // The figures do not depend on these effects.
        varied.observed = Observed { sent_events: false, all_metrics: false };
        Ok(Arc::new(varied))
    }

    /// The figures of a setting.
    ///
    /// # Errors
    /// If an API server rejects the setting, or its outcome is not deterministic.
    pub(crate) fn measure(&self, scenario: &Scenario, point: &Point) -> Result<Measured, String> {
        let scenario = self.scenario(scenario, point)?;
        if let Some(why) = scenario.unsupported_on(self.release) {
            return Err(why.to_string());
        }
        let run = run(&scenario, self.release)?;
        Ok(self.figures(&scenario, &run))
    }

    /// The figures of a run.
    pub(crate) fn figures(&self, scenario: &Scenario, run: &FreeRun) -> Measured {
        let boundaries = if self.days.len() > 1 { self.days } else { &[] };
        let (whole, days) = Figures::of_parts(scenario, run, self.reference, boundaries);
        let priced = |figures: Figures| match self.price {
            Some(price) => figures.at_price(&price, &scenario.workload.spec),
            None => figures,
        };
        let whole = priced(whole);
        let days: Vec<Figures> = days.into_iter().map(priced).collect();
        let days = if days.is_empty() { vec![whole] } else { days };
        Measured { whole, days, is_stopped: is_stopped(run) }
    }

    /// The figures of several settings, in their order. There are fewer if the search ends.
    pub(crate) fn measure_all(
        &self,
        scenario: &Scenario,
        points: &[Point],
    ) -> Vec<Result<Measured, String>> {
        let next = AtomicUsize::new(0);
        let has_ended = AtomicBool::new(false);
        let results = Mutex::new(vec![None; points.len()]);
        let work = || {
            while !has_ended.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(point) = points.get(index) else { break };
                let measured = self.measure(scenario, point);
                if let Ok(mut results) = results.lock() {
                    results[index] = Some(measured);
                }
                if !(self.goes_on)(1) {
                    has_ended.store(true, Ordering::Relaxed);
                }
            }
        };
        thread::scope(|scope| {
            // The current thread works, too: in a browser, there is no other.
            for _ in 1..self.jobs.min(points.len()) {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_inner().unwrap_or_default();
        results.into_iter().map_while(|result| result).collect()
    }
}

/// Why the controller can't scale any HPA of a run: the error of the last reconcile that failed.
pub(crate) fn stopped(run: &FreeRun) -> Option<String> {
    let error = ticks(run).filter_map(|tick| tick.derivation.error.as_ref()).last()?;
    is_stopped(run).then(|| error.to_string())
}

/// Returns true if no metric of a run leads to a proposal. The first reconciles are left out,
/// because the controller does not know the other HPAs yet. Replicas outside of the limits lead to
/// none.
fn is_stopped(run: &FreeRun) -> bool {
    let begin = run.ticks.first().map(|tick| tick.observation.at);
    let mut later = ticks(run).filter(|tick| Some(tick.observation.at) > begin);
    !later.any(|tick| tick.derivation.proposal.is_some())
}

/// Runs the model.
///
/// # Errors
/// If the scenario can't be run to its end on the release.
pub(crate) fn run(scenario: &Arc<Scenario>, release: Release) -> Result<FreeRun, String> {
    let run = free_run_without_trace(scenario, release);
    if let Some(why) = run.refused() {
        return Err(why);
    }
    match run.undetermined {
        Some(random) => Err(random.why),
        None => Ok(run),
    }
}

/// The manifests of a scenario with other values of fields. Null removes a field.
fn manifests_with<'v>(
    scenario: &Scenario,
    values: impl Iterator<Item = (&'v FieldPath, &'v Value)>,
) -> Result<Value, String> {
    let mut tree = scenario::to_manifests(scenario);
    let containers = scenario.container_names();
    for (path, value) in values {
        path.add_policies(path.find(&mut tree)?, &containers);
        path.set(path.find(&mut tree)?, value.clone())?;
    }
    remove_nulls(&mut tree);
    Ok(tree)
}

/// The scenario with other values of fields.
///
/// # Errors
/// If an API server rejects them, with its first reason.
pub(crate) fn with_values<'v>(
    scenario: &Scenario,
    values: impl Iterator<Item = (&'v FieldPath, &'v Value)>,
) -> Result<Scenario, String> {
    let varied = scenario::with_manifests(scenario, &manifests_with(scenario, values)?);
    let first = |problems: Vec<Diagnostic>| problems.into_iter().next().map(|it| it.what);
    varied.map_err(|problems| first(problems).unwrap_or_default())
}
