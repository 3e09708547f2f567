//! The figures of a run: the charts of its HPAs and VPAs over a common axis of time, each with the
//! panel for its ticks.

use std::sync::Arc;

use maud::{Markup, html};

use super::detail::Detail;
use super::lane::Selectable;
use super::mark::Mark;
use super::panels::Panels;
use super::timeline::{Run, Timeline};
use super::vpa::VpaRun;
use super::{actions, chart, ticks};
use crate::counted;
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;
use kube_lockstep_sim::run::{FreeRun, Outcome};

/// The runs of the controllers of a scenario, which share an axis of time.
pub(super) struct Figures<'a> {
    hpa: Option<Run<'a>>,
    vpa: Option<VpaRun<'a>>,
    detail: Detail,
}

impl<'a> Figures<'a> {
    fn new(mut hpa: Option<Run<'a>>, mut vpa: Option<VpaRun<'a>>, detail: Detail) -> Figures<'a> {
        if let (Some(hpa), Some(vpa)) = (&mut hpa, &mut vpa) {
            let end = hpa.end.max(vpa.end);
            (hpa.end, vpa.end) = (end, end);
        }
        Figures { hpa, vpa, detail }
    }

    /// A run of an engine.
    pub(super) fn of_outcome(outcome: &'a Outcome, detail: Detail) -> Figures<'a> {
        Figures::new(Run::of_outcome(outcome), VpaRun::of_outcome(outcome, detail), detail)
    }

    /// A run of the model alone.
    pub(super) fn of_model(
        scenario: &'a Arc<Scenario>,
        free: &'a FreeRun,
        detail: Detail,
    ) -> Figures<'a> {
        let vpa = VpaRun::beside_hpa(scenario, free, detail);
        Figures::new(Run::of_model(scenario, free), vpa, detail)
    }

    /// A run of the model of the VPA's recommender alone. `mark`: the first run that differs from
    /// another release.
    pub(super) fn of_recommender(
        scenario: &'a VpaScenario,
        free: &'a FreeRecommenderRun,
        release: VpaRelease,
        mark: Option<Mark<'a>>,
        detail: Detail,
    ) -> Figures<'a> {
        let vpa = VpaRun::of_model(scenario, free, release, mark, detail);
        Figures::new(None, vpa, detail)
    }

    /// Adds a mark at the first tick of the HPA controller that differs from another run.
    pub(super) fn marked(mut self, mark: &Mark<'a>) -> Figures<'a> {
        if let Some(run) = &mut self.hpa {
            run.mark = Some(mark.clone());
        }
        self
    }

    /// Returns true if nothing is drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.hpa.is_none() && self.vpa.is_none()
    }

    /// Returns true if both are runs of the HPA controller alone with the same charts.
    pub(super) fn looks_like(&self, other: &Figures<'_>) -> bool {
        self.hpa.is_some() && self.vpa.is_none() && self.charts() == other.charts()
    }

    /// The charts of all HPAs.
    fn charts(&self) -> String {
        let timelines = self.hpa.as_ref().map(Run::timelines).unwrap_or_default();
        timelines.iter().map(|it| chart::all(it, self.detail).into_string()).collect()
    }

    /// The numbers of ticks and changes, for the line with the facts of a scenario.
    pub(super) fn counts(&self) -> String {
        let hpa = self.hpa.as_ref().map(|run| {
            let ticks = counted(run.ticks.len(), "tick");
            format!(" · {ticks} · {} of replicas", counted(run.rescales(), "change"))
        });
        hpa.unwrap_or_default() + &self.vpa.as_ref().map(VpaRun::figures).unwrap_or_default()
    }

    /// The small chart of the summary.
    pub(super) fn spark(&self) -> String {
        match (&self.hpa, &self.vpa) {
            (Some(run), _) => {
                let timelines = run.timelines();
                let first = timelines.first().map(chart::sparkline);
                first.map(Markup::into_string).unwrap_or_default()
            }
            (None, Some(run)) => run.spark(),
            (None, None) => String::new(),
        }
    }

    /// The figures as HTML. Adds the data of their panels.
    pub(super) fn html(&self, panels: &mut Panels) -> Markup {
        let timelines = self.hpa.as_ref().map(Run::timelines).unwrap_or_default();
        html! {
            @for timeline in &timelines { (figure(timeline, self.detail, panels)) }
            @if let Some(run) = &self.vpa { (run.html(panels)) }
        }
    }
}

/// The charts of one HPA, and the panel for its ticks.
fn figure(timeline: &Timeline<'_>, detail: Detail, panels: &mut Panels) -> Markup {
    let axis = timeline.axis(detail.columns);
    let marked = timeline.mark.as_ref().map(|mark| mark.on(axis));
    panels.add(ticks::of(timeline, detail));
    Selectable {
        kind: "hpa",
        name: &timeline.hpa,
        charts: chart::all(timeline, detail),
        marked,
        below: actions::list(&actions::of(timeline)),
    }
    .draw()
}
