//! The timelines of a scenario of the VPA's recommender: bands of the recommended amounts over the
//! usage of the pods, and the derivation of each amount.
//!
//! The observed statuses come from the run. The usage and the derivations are those of the model,
//! which runs again for them.

mod chart;
mod decisions;
mod events;
mod series;
mod ticks;

use std::sync::Arc;

use maud::{Markup, html};

pub use self::decisions::{Decision, decisions};
use self::series::Series;
use super::actions;
use super::chart::SPARK_COLUMNS;
use super::detail::Detail;
use super::lane::{ChartAxis, Selectable};
use super::mark::Mark;
use super::panels::Panels;
use crate::counted;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ObjectName, Snapshot};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::TimelineEvent;
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::compare::Controller;
use kube_lockstep_sim::run::recommender::{
    ChartedRun, FreeRecommenderRun, charted_recommender_run,
};
use kube_lockstep_sim::run::{FreeRun, HpaRun, Outcome, PodChange, Verdict, explained_free_run};

/// The amounts of a container of which each tick has a derivation: target and both bounds of cpu
/// and memory.
const AMOUNTS: usize = 6;

/// A run of a scenario.
#[derive(Debug)]
pub(super) struct VpaRun<'a> {
    scenario: &'a VpaScenario,
    /// The state after each run, as observed.
    snapshots: &'a [Snapshot],
    /// The model alone.
    model: ChartedRun,
    /// The predicted changes of an HPA's pods by the VPA; `None` without an HPA.
    pod_changes: Option<Vec<PodChange>>,
    /// The indices of the runs whose derivations are kept.
    kept: Vec<usize>,
    /// The first run that differs from another one, if any.
    mark: Option<Mark<'a>>,
    detail: Detail,
    /// The end of the axis of time.
    pub end: Time,
    /// The date of t=0, if the load is recorded with dates.
    zero: Option<Timestamp>,
}

impl<'a> VpaRun<'a> {
    /// The run of an engine; `None` if the outcome has no run of the recommender.
    pub(super) fn of_outcome(outcome: &'a Outcome, detail: Detail) -> Option<VpaRun<'a>> {
        let run = outcome.recommender()?;
        let model = match outcome.hpa() {
            Some(HpaRun { scenario, .. }) => {
                Model::BesideHpa { scenario, release: outcome.release.parse().ok()? }
            }
            None => Model::Alone(outcome.release.parse().ok()?),
        };
        let mark = match &outcome.verdict {
            Verdict::Diverges(first) if first.controller == Controller::Recommender => {
                Some(Mark::diverges(first, &outcome.engine))
            }
            _ => None,
        };
        let observed = Observed { scenario: &run.scenario, snapshots: &run.snapshots, mark };
        observed.run(model, detail)
    }

    /// The VPA of a run of the model with an HPA; `None` without a VPA, or if the recommender does
    /// not run.
    pub(super) fn beside_hpa(
        scenario: &Arc<Scenario>,
        free: &'a FreeRun,
        detail: Detail,
    ) -> Option<VpaRun<'a>> {
        let vpa = free.vpa.as_deref()?;
        let release = free.trace.release.parse().ok()?;
        let snapshots = vpa.snapshots();
        let observed = Observed { scenario: &vpa.scenario, snapshots, mark: None };
        observed.run(Model::BesideHpa { scenario, release }, detail)
    }

    /// A run of the model alone; `None` if the recommender does not run.
    pub(super) fn of_model(
        scenario: &'a VpaScenario,
        run: &'a FreeRecommenderRun,
        release: VpaRelease,
        mark: Option<Mark<'a>>,
        detail: Detail,
    ) -> Option<VpaRun<'a>> {
        let observed = Observed { scenario, snapshots: &run.snapshots, mark };
        observed.run(Model::Alone(release), detail)
    }

    /// The events that have an effect.
    fn events(&self) -> impl Iterator<Item = &'a TimelineEvent> {
        let all = self.scenario.timeline.iter().enumerate();
        all.filter(|(index, _)| !self.model.run.unmatched.contains(index)).map(|(_, event)| event)
    }

    /// The number of runs, for the facts of a scenario.
    pub(super) fn figures(&self) -> String {
        match self.pod_changes {
            Some(_) => format!(" · {} of the recommender", counted(self.snapshots.len(), "run")),
            None => format!(" · {}", counted(self.snapshots.len(), "tick")),
        }
    }

    /// The timeline of each VPA, in the order of the scenario.
    fn timelines(&self) -> Vec<VpaTimeline<'_>> {
        let mut names: Vec<&ObjectName> = self.scenario.names().collect();
        for name in self.snapshots.iter().flat_map(|snapshot| snapshot.statuses.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.into_iter().map(|vpa| VpaTimeline { run: self, vpa }).collect()
    }

    /// The small chart of the summary.
    pub(super) fn spark(&self) -> String {
        let timelines = self.timelines();
        let first = timelines.first().and_then(|timeline| {
            let series = timeline.series();
            let axis = ChartAxis::until(self.end, SPARK_COLUMNS);
            Some(chart::sparkline(series.first()?, axis).into_string())
        });
        first.unwrap_or_default()
    }

    /// The charts of each VPA, and the panels for their ticks.
    pub(super) fn html(&self, panels: &mut Panels) -> Markup {
        let timelines = self.timelines();
        let is_named = timelines.len() > 1 || self.pod_changes.is_some();
        html! {
            @for timeline in &timelines {
                @if is_named { h2 { "VPA " (timeline.vpa.name) } }
                (timeline.html(panels))
            }
        }
    }
}

/// The largest number of runs all of which have derivations on every page. Beside an HPA, pages of
/// many scenarios have fewer.
const SHORT: usize = 60;

/// The smallest number of derivations of a longer run.
const FEWEST: usize = 8;

/// The run of the model from which usage and derivations come.
enum Model<'a> {
    /// The recommender alone.
    Alone(VpaRelease),
    /// The recommender and the HPA controller of a release.
    BesideHpa { scenario: &'a Arc<Scenario>, release: Release },
}

/// The runs to draw.
struct Observed<'a> {
    scenario: &'a VpaScenario,
    snapshots: &'a [Snapshot],
    mark: Option<Mark<'a>>,
}

impl<'a> Observed<'a> {
    fn run(self, model: Model<'_>, detail: Detail) -> Option<VpaRun<'a>> {
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
        let is_kept = |index: usize| kept.binary_search(&index).is_ok();
        let last = snapshots.last()?.at + scenario.parsed_flags.recommender_interval;
        let end = last.max(scenario.until);
        let zero = match &model {
            Model::Alone(_) => None,
            Model::BesideHpa { scenario, .. } => scenario.clock,
        };
        let (model, pod_changes) = match model {
            Model::Alone(release) => (charted_recommender_run(scenario, release, &is_kept), None),
            Model::BesideHpa { scenario, release } => {
                let vpa = explained_free_run(scenario, release, &is_kept).vpa?;
                (vpa.charted, Some(vpa.pod_changes))
            }
        };
        Some(VpaRun { scenario, snapshots, model, pod_changes, kept, mark, detail, end, zero })
    }
}

/// The timeline of one VPA.
struct VpaTimeline<'a> {
    run: &'a VpaRun<'a>,
    vpa: &'a ObjectName,
}

impl VpaTimeline<'_> {
    fn axis(&self) -> ChartAxis {
        ChartAxis::until(self.run.end, self.run.detail.columns / 2).from(self.run.zero)
    }

    fn series(&self) -> Vec<Series> {
        series::of(self)
    }

    fn html(&self, panels: &mut Panels) -> Markup {
        let mark = self.run.mark.as_ref();
        let marked = mark.map(|mark| mark.on(self.axis()));
        panels.add(ticks::of(self));
        let charts = chart::all(self);
        let below = actions::list(&events::of(self));
        Selectable { kind: "vpa", name: &self.vpa.name, charts, marked, below }.draw()
    }
}

/// The containers of the workload, with the first one for events that name none.
fn container_of(scenario: &VpaScenario, name: Option<&Arc<str>>) -> Option<Arc<str>> {
    let first = || scenario.workload.containers.first().map(|container| container.name.clone());
    name.cloned().or_else(first)
}
