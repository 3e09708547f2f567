//! The figures of an autoscaler before and after a change.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::ambiguous::Reason;
use super::result::{GateResult, Kind};
use super::stopped::stopped;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_manifests::{AutoscalerKind, ChangedDraft, Draft};
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::capacity::Capacity;
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::price::Price;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, free_run_without_trace};

/// How changes are measured.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The release whose rules the model follows.
    pub release: Release,
    /// The bounds that each changed autoscaler must keep.
    pub budget: Bounds,
    /// The loads that a pod serves well, in place of the targets before the change.
    pub capacities: Vec<Capacity>,
    /// The prices of an hour.
    pub price: Option<Price>,
}

/// The scenarios of an autoscaler before and after a change, under the same load.
#[derive(Clone, Debug, Default)]
pub struct Scenarios {
    /// Before it. None: the autoscaler is added or moved.
    pub base: Option<Arc<Scenario>>,
    /// After it. None: the autoscaler is removed.
    pub head: Option<Arc<Scenario>>,
}

impl Scenarios {
    /// The scenarios of the versions that exist.
    pub fn both(&self) -> impl Iterator<Item = &Arc<Scenario>> {
        self.base.iter().chain(&self.head)
    }
}

/// Why a version has no figures.
enum NoFigures {
    /// The release rejects the autoscaler.
    Rejected(String),
    /// The outcome depends on chance.
    Random(String),
}

impl Gate {
    /// Measures an autoscaler before and after its change. `ambiguous`: why the controller stops
    /// it after the change, if another HPA selects the same pods.
    ///
    /// # Errors
    /// If a capacity has another unit than the target of its metric.
    pub fn measure(
        &self,
        change: &ChangedDraft,
        scenarios: &Scenarios,
        ambiguous: &[Reason<'_>],
    ) -> Result<GateResult, String> {
        let mut result = GateResult::new(change);
        let Scenarios { base, head } = scenarios;
        let (base_run, head_run) = thread::scope(|scope| {
            let base_run = base.as_ref().map(|base| scope.spawn(|| self.run(base)));
            let head_run = head.as_ref().map(|head| self.run(head));
            (base_run.map(|run| run.join().unwrap_or_else(|cause| resume_unwind(cause))), head_run)
        });
        let first = [&base_run, &head_run].into_iter().flatten().find_map(|run| run.as_ref().ok());
        let Some(first) = first else {
            result.note(base_run.and_then(Result::err), head_run.and_then(Result::err));
            return Ok(result);
        };
        if let Some(Ok(head)) = &head_run {
            let base = base_run.as_ref().and_then(|run| run.as_ref().ok());
            result.unlike_metrics = base.map_or_else(BTreeSet::new, |base| unlike(base, head));
            result.broken.extend(match ambiguous.is_empty() {
                true => stopped(base, head),
                false => ambiguous.iter().map(|reason| reason.text.to_owned()).collect(),
            });
        }
        let mut reference = Reference::new(first);
        for capacity in &self.capacities {
            reference.measure_at(capacity)?;
        }
        let figures = |scenario: &Option<Arc<Scenario>>,
                       run: Option<Result<FreeRun, NoFigures>>| {
            let (Some(scenario), Some(run)) = (scenario, run) else { return (None, None) };
            match run {
                Ok(run) => (Some(self.figures(scenario, &run, &reference)), None),
                Err(why) => (None, Some(why)),
            }
        };
        let (base_figures, base_why) = figures(base, base_run);
        let (head_figures, head_why) = figures(head, head_run);
        (result.base, result.head) = (base_figures, head_figures);
        result.note(base_why, head_why);
        result.check(&self.budget);
        Ok(result)
    }

    /// Predicts a version.
    fn run(&self, scenario: &Arc<Scenario>) -> Result<FreeRun, NoFigures> {
        if let Some(why) = scenario.unsupported_on(self.release) {
            return Err(NoFigures::Rejected(why.to_string()));
        }
        let run = free_run_without_trace(scenario, self.release);
        if let Some(why) = run.refused() {
            return Err(NoFigures::Rejected(why));
        }
        match run.undetermined {
            Some(random) => Err(NoFigures::Random(random.why)),
            None => Ok(run),
        }
    }

    fn figures(&self, scenario: &Scenario, run: &FreeRun, reference: &Reference) -> Figures {
        let figures = Figures::new(scenario, run, reference);
        match self.price {
            Some(price) => figures.at_price(&price, &scenario.workload.spec),
            None => figures,
        }
    }
}

/// The metrics whose targets before and after a change can't be compared: one of them is missing,
/// or has another type. If no metric is computed after the change, the figures are measured against
/// the targets before it.
fn unlike(base: &FreeRun, head: &FreeRun) -> BTreeSet<Arc<str>> {
    let (before, after) = (Reference::new(base), Reference::new(head));
    let only_before = if after.is_empty() { Vec::new() } else { after.lacks(base) };
    before.lacks(head).into_iter().chain(only_before).collect()
}

/// The figures that depend on targets.
pub(super) const OF_TARGETS: [&str; 5] = ["missing", "above", "longest", "excess", "needed"];

impl GateResult {
    fn new(change: &ChangedDraft) -> GateResult {
        let draft = change.head.as_ref().or(change.base.as_ref());
        let kind = match (&change.base, &change.head) {
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
            _ if change.is_moved() => Kind::Moved,
            _ if !change.is_changed() => Kind::Unchanged,
            _ => Kind::Changed,
        };
        GateResult {
            autoscaler: draft.map_or(AutoscalerKind::Hpa, |draft| draft.kind).to_string(),
            name: draft.map(Draft::names).unwrap_or_default().join(", "),
            change: kind,
            file: draft.map(|draft| draft.file.clone()).unwrap_or_default(),
            line: draft.map(|draft| draft.line).unwrap_or_default(),
            fields: change.fields.iter().map(Into::into).collect(),
            base: None,
            head: None,
            broken: Vec::new(),
            not_checked: Vec::new(),
            not_measured: None,
            targets_without_autoscaler: change.targets_without_autoscaler.clone(),
            is_random: false,
            unlike_metrics: BTreeSet::new(),
        }
    }

    /// A change that is not measured.
    #[must_use]
    pub fn not_measured(change: &ChangedDraft, why: String) -> GateResult {
        GateResult { not_measured: Some(why), ..GateResult::new(change) }
    }

    /// A change after which the autoscaler can't work, and nothing can be measured.
    #[must_use]
    pub fn broken(change: &ChangedDraft, broken: Vec<String>) -> GateResult {
        GateResult { broken, ..GateResult::new(change) }
    }

    /// Notes why versions have no figures.
    fn note(&mut self, base: Option<NoFigures>, head: Option<NoFigures>) {
        match head {
            Some(NoFigures::Rejected(why)) => self.broken.push(why),
            Some(NoFigures::Random(why)) => {
                (self.is_random, self.not_measured) = (true, Some(why));
            }
            None => {}
        }
        match base {
            Some(NoFigures::Rejected(why)) => self.not_checked.push(format!("before: {why}")),
            Some(NoFigures::Random(why)) => {
                (self.is_random, self.not_measured) = (true, Some(format!("before: {why}")));
            }
            None => {}
        }
    }

    /// Checks the budget.
    fn check(&mut self, budget: &Bounds) {
        let Some(head) = &self.head else { return };
        let unlike: Vec<&str> = self.unlike_metrics.iter().map(|name| &**name).collect();
        let applying = budget.applying_to(head);
        if applying.0.is_empty() && !budget.0.is_empty() {
            let lacks = match head.scaling {
                None => "a VPA without an HPA",
                Some(_) => "an HPA without a VPA",
            };
            self.not_checked.push(format!("{budget}: {lacks} has no such figures"));
        }
        for bound in &applying.0 {
            if !unlike.is_empty() && OF_TARGETS.contains(&bound.column()) {
                self.not_checked.push(format!(
                    "{bound}: the targets of {} before and after the change can't be compared",
                    unlike.join(", ")
                ));
                continue;
            }
            match self.base.as_ref().filter(|base| bound.applies_to(base)) {
                None if bound.is_relative() => {
                    let why = match self.change {
                        Kind::Moved => "the new target has a different load",
                        _ => "there is nothing to compare with",
                    };
                    self.not_checked.push(format!("{bound}: {why}"));
                }
                base => {
                    let base = base.unwrap_or(head);
                    if !bound.is_kept(head, base) {
                        self.broken.push(bound.broken(head, base));
                    }
                }
            }
        }
    }
}
