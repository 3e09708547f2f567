//! The recommender's part of a run: the statuses of one VPA with the derivations of the model, and
//! the usage of its pods.
//!
//! The observed statuses come from the run. The usage and the derivations are those of the model,
//! which runs again for them.

mod charts;
pub(crate) mod csv;
#[cfg(feature = "pages")]
mod decisions;
mod events;
pub(crate) mod explanation;
pub(crate) mod lines;
pub(crate) mod prediction;
pub(crate) mod rows;
mod series;
pub(crate) mod text;
mod ticks;

use std::rc::Rc;
use std::sync::Arc;

#[cfg(feature = "pages")]
pub use self::decisions::{Decision, decisions};
use self::rows::problems;
use super::{
    Chart, Controller, Detail, EventMark, Interval, Intervals, Key, Mark, Moments, Reason, Ticks,
};
use crate::{counted, thousands};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ObjectName, Snapshot};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::TimelineEvent;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::compare::Controller as Diverging;
use kube_lockstep_sim::run::recommender::{
    ChartedRun, FreeRecommenderRun, charted_recommender_run,
};
use kube_lockstep_sim::run::{FreeRun, HpaRun, Outcome, PodChange, Verdict, explained_free_run};

/// The amounts of a container of which each tick has a derivation: target and both bounds of cpu
/// and memory.
const AMOUNTS: usize = 6;

/// A run of the recommender.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    scenario: &'a VpaScenario,
    /// The state after each run, as observed.
    snapshots: &'a [Snapshot],
    /// The model alone.
    model: ChartedRun,
    /// The predicted changes of an HPA's pods by the VPA; `None` without an HPA.
    pod_changes: Option<Vec<PodChange>>,
    /// True for each run whose derivations are kept.
    kept: Vec<bool>,
    /// The first run that differs from another one, if any.
    mark: Option<Mark<'a>>,
    /// The end of the axis of time.
    pub end: Time,
}

impl<'a> Run<'a> {
    /// The run of an engine; `None` if the outcome has no run of the recommender.
    pub(super) fn from_outcome(outcome: &'a Outcome, detail: Detail) -> Option<Run<'a>> {
        let run = outcome.recommender()?;
        let model = match outcome.hpa() {
            Some(HpaRun { scenario, .. }) => {
                Model::WithHpa { scenario, release: outcome.release.parse().ok()? }
            }
            None => Model::Alone(outcome.release.parse().ok()?),
        };
        let mark = match &outcome.verdict {
            Verdict::Diverges(first) if first.controller == Diverging::Recommender => {
                Some(Mark::diverges(first, &outcome.engine))
            }
            _ => None,
        };
        let observed = Observed { scenario: &run.scenario, snapshots: &run.snapshots, mark };
        observed.run(model, detail)
    }

    /// The VPA of a run of the model with an HPA; `None` without a VPA, or if the recommender does
    /// not run.
    pub(super) fn with_hpa(
        scenario: &Arc<Scenario>,
        free: &'a FreeRun,
        detail: Detail,
    ) -> Option<Run<'a>> {
        let vpa = free.vpa.as_deref()?;
        let release = free.trace.release.parse().ok()?;
        let snapshots = vpa.snapshots();
        let observed = Observed { scenario: &vpa.scenario, snapshots, mark: None };
        observed.run(Model::WithHpa { scenario, release }, detail)
    }

    /// A run of the model alone; `None` if the recommender does not run.
    pub(super) fn from_model(
        scenario: &'a VpaScenario,
        run: &'a FreeRecommenderRun,
        release: VpaRelease,
        mark: Option<Mark<'a>>,
        detail: Detail,
    ) -> Option<Run<'a>> {
        let observed = Observed { scenario, snapshots: &run.snapshots, mark };
        observed.run(Model::Alone(release), detail)
    }

    /// The statuses alone, without usage and derivations.
    pub(crate) fn from_statuses(scenario: &'a VpaScenario, snapshots: &'a [Snapshot]) -> Run<'a> {
        Run {
            scenario,
            snapshots,
            model: ChartedRun { run: FreeRecommenderRun::default(), usage: Vec::new() },
            pod_changes: None,
            kept: Vec::new(),
            mark: None,
            end: scenario.until,
        }
    }

    /// The events that have an effect.
    fn events(&self) -> impl Iterator<Item = &'a TimelineEvent> {
        let all = self.scenario.timeline.iter().enumerate();
        all.filter(|(index, _)| !self.model.run.unmatched.contains(index)).map(|(_, event)| event)
    }

    /// The number of runs.
    pub(super) fn counts(&self) -> String {
        match self.pod_changes {
            Some(_) => format!(" · {} of the recommender", counted(self.snapshots.len(), "run")),
            None => format!(" · {}", counted(self.snapshots.len(), "tick")),
        }
    }
}

/// The timeline of each VPA, in the order of the scenario.
pub(crate) fn timelines<'a>(run: Rc<Run<'a>>) -> impl Iterator<Item = Timeline<'a>> {
    let mut names: Vec<&ObjectName> = run.scenario.names().collect();
    for name in run.snapshots.iter().flat_map(|snapshot| snapshot.statuses.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_named = names.len() > 1 || run.pod_changes.is_some();
    names.into_iter().map(move |vpa| Timeline { run: Rc::clone(&run), vpa, is_named })
}

/// The largest number of runs all of which have derivations on every page. With an HPA, pages of
/// many scenarios have fewer.
const SHORT: usize = 60;

/// The smallest number of derivations of a longer run.
const FEWEST: usize = 8;

/// The run of the model from which usage and derivations come.
enum Model<'a> {
    /// The recommender alone.
    Alone(VpaRelease),
    /// The recommender and the HPA controller of a release.
    WithHpa { scenario: &'a Arc<Scenario>, release: Release },
}

/// The runs to draw.
struct Observed<'a> {
    scenario: &'a VpaScenario,
    snapshots: &'a [Snapshot],
    mark: Option<Mark<'a>>,
}

impl<'a> Observed<'a> {
    fn run(self, model: Model<'_>, detail: Detail) -> Option<Run<'a>> {
        let Observed { scenario, snapshots, mark } = self;
        let containers = |snapshot: &Snapshot| -> usize {
            let statuses = snapshot.statuses.values();
            let recommended = statuses.filter_map(|status| status.recommendation.as_ref());
            recommended.map(|it| it.container_recommendations.len()).sum()
        };
        let amounts = snapshots.iter().map(containers).max()?.max(1) * AMOUNTS;
        let is_short = snapshots.len() <= SHORT && matches!(model, Model::Alone(_));
        let marked = mark.as_ref().map(ticks::marked);
        let most = (detail.amounts / amounts).max(FEWEST);
        let kept = ticks::kept(snapshots, if is_short { SHORT } else { most }, marked);
        let is_kept = |index: usize| kept.get(index).copied().unwrap_or_default();
        let last = snapshots.last()?.at + scenario.parsed_flags.recommender_interval;
        let end = last.max(scenario.until);
        let (model, pod_changes) = match model {
            Model::Alone(release) => (charted_recommender_run(scenario, release, &is_kept), None),
            Model::WithHpa { scenario, release } => {
                let vpa = explained_free_run(scenario, release, &is_kept).vpa?;
                (vpa.charted, Some(vpa.pod_changes))
            }
        };
        Some(Run { scenario, snapshots, model, pod_changes, kept, mark, end })
    }
}

/// The timeline of one VPA.
pub(crate) struct Timeline<'a> {
    run: Rc<Run<'a>>,
    vpa: &'a ObjectName,
    /// True beside other timelines.
    is_named: bool,
}

impl Controller for Timeline<'_> {
    fn kind(&self) -> &'static str {
        "vpa"
    }

    fn name(&self) -> &str {
        &self.vpa.name
    }

    fn heading(&self) -> Option<String> {
        self.is_named.then(|| format!("VPA {}", self.vpa.name))
    }

    /// Its charts have twice as many lines as those of an HPA.
    fn columns(&self, detail: Detail) -> usize {
        detail.columns / 2
    }

    fn charts(&self) -> Vec<Chart> {
        charts::all(self)
    }

    /// The intervals in which the conditions show a problem, or the VPA does not exist.
    fn intervals(&self) -> Option<Intervals> {
        let problem = |snapshot: &Snapshot| {
            let status = snapshot.statuses.get(self.vpa);
            let text = status.map_or_else(|| "deleted".to_owned(), problems);
            let reason = Reason { text: text.into(), class: "state" };
            (snapshot.at, Some(reason).filter(|it| !it.text.is_empty()))
        };
        let ticks: Vec<_> = self.run.snapshots.iter().map(problem).collect();
        let list = Interval::join(&ticks, self.run.end);
        let keys = vec![Key::hint("why there is no current recommendation")];
        (!list.is_empty()).then_some(Intervals { title: "Conditions", keys, list })
    }

    /// The errors that the recommender logged.
    fn moments(&self) -> Option<Moments> {
        let logs = self.run.snapshots.iter().filter(|snapshot| !snapshot.log.is_empty());
        let times: Vec<Time> = logs.clone().map(|snapshot| snapshot.at).collect();
        let count: usize = logs.map(|snapshot| snapshot.log.len()).sum();
        (count > 0).then(|| Moments {
            title: "Errors of the recommender",
            keys: vec![Key::new("k bad", thousands(count))],
            about: format!("{} of the recommender", counted(count, "error")),
            times: vec![("bad", times)],
        })
    }

    fn events(&self) -> Vec<EventMark> {
        events::events(self)
    }

    fn mark(&self) -> Option<&Mark<'_>> {
        self.run.mark.as_ref()
    }

    fn ticks(&self, detail: Detail) -> Ticks {
        ticks::select(self, detail)
    }
}

/// The containers of the workload, with the first one for events that name none.
fn container_of(scenario: &VpaScenario, name: Option<&Arc<str>>) -> Option<Arc<str>> {
    let first = || scenario.workload.containers.first().map(|container| container.name.clone());
    name.cloned().or_else(first)
}
