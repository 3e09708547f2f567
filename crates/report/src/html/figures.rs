//! The figures of a run: the charts of each controller over a common axis of time, each with the
//! panel for its ticks.

use maud::{Markup, html};

use super::lane::{self, ChartAxis, Marked};
use super::panels::Panels;
use super::{chart, events};
use crate::presentation::{Controller, Detail, Presentation};

/// The figures of a run.
pub(super) struct Figures<'a> {
    run: Presentation<'a>,
    detail: Detail,
}

impl<'a> Figures<'a> {
    pub(super) fn new(run: Presentation<'a>, detail: Detail) -> Figures<'a> {
        Figures { run, detail }
    }

    /// Returns true if nothing is drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.run.controllers.is_empty()
    }

    /// Returns true if the charts are the same.
    pub(super) fn looks_like(&self, other: &Figures<'_>) -> bool {
        self.charts().eq(other.charts())
    }

    fn charts(&self) -> impl Iterator<Item = String> {
        self.run.controllers.iter().map(|it| self.charts_of(&**it).into_string())
    }

    /// The numbers of ticks and changes, for the line with the facts of a scenario.
    pub(super) fn counts(&self) -> &str {
        &self.run.counts
    }

    /// The small chart of the summary.
    pub(super) fn spark(&self) -> String {
        let first = self.run.controllers.first().and_then(|it| it.charts().into_iter().next());
        let spark = first.map(|chart| chart::sparkline(&chart, self.run.end).into_string());
        spark.unwrap_or_default()
    }

    /// The figures as HTML. Adds the data of their panels.
    pub(super) fn html(&self, panels: &mut Panels) -> Markup {
        html! {
            @for controller in &self.run.controllers {
                @if let Some(heading) = controller.heading() { h2 { (heading) } }
                (self.figure(&**controller, panels))
            }
        }
    }

    fn axis(&self, controller: &dyn Controller) -> ChartAxis {
        let columns = controller.columns(self.detail);
        ChartAxis::until(self.run.end, columns).from(self.run.zero)
    }

    /// The mark of the first tick that differs from another run.
    fn marked(&self, controller: &dyn Controller) -> Option<Marked> {
        let mark = controller.mark()?;
        Some(Marked { at: self.axis(controller).percent(mark.first.at), kind: mark.word() })
    }

    /// The charts of a controller, with a cursor that selects a tick, and the panel for its ticks.
    fn figure(&self, controller: &dyn Controller, panels: &mut Panels) -> Markup {
        panels.add(controller.ticks(self.detail), self.run.end, self.run.zero);
        let label = format!("Timeline of {}; arrow keys select a tick", controller.name());
        html! {
            div.fig.(controller.kind()) {
                div.charts {
                    (self.charts_of(controller))
                    @if let Some(Marked { at, kind }) = self.marked(controller) {
                        div.dvg.(kind) style=(format!("--p:{:.4}", at / 100.0)) {}
                    }
                    div.cur role="slider" tabindex="0" aria-label=(label) aria-valuenow="0" {}
                }
                (events::list(&controller.events()))
                div.panel {}
            }
        }
    }

    fn charts_of(&self, controller: &dyn Controller) -> Markup {
        let axis = self.axis(controller);
        let labels = axis.labels();
        let grid = &lane::grid(&labels);
        let marked = self.marked(controller);
        html! {
            @for chart in controller.charts() {
                (chart::draw(&chart, axis, grid, marked.as_ref()))
            }
            @if let Some(intervals) = controller.intervals() { (chart::strip(&intervals, axis)) }
            @if let Some(moments) = controller.moments() { (chart::moments(&moments, axis)) }
            (events::lane(&controller.events(), axis))
            (lane::time(axis, &labels))
        }
    }
}
