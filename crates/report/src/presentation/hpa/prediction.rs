//! A prediction of the HPA controller, with the VPA of the scenario if it has one.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use super::{Run, csv, lines, rows};
use crate::counted;
use crate::presentation::blocks::Block;
use crate::presentation::prediction::{Figures, Head, Prediction};
use crate::presentation::{Controller as _, Detail, Mark, Presentation, recommender};
use crate::table::{self, Contents, Rows};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Expectation;
use kube_lockstep_sim::run::FreeRun;

/// A prediction of the HPA controller.
pub(crate) struct HpaPrediction<'a> {
    pub scenario: &'a Arc<Scenario>,
    pub run: &'a FreeRun,
}

impl HpaPrediction<'_> {
    /// The release; `None` for rules without one.
    fn release(&self) -> Option<Release> {
        self.run.trace.release.parse().ok()
    }

    /// The number of changes of replicas by the controller.
    fn rescales(&self) -> usize {
        let ticks = self.run.ticks.iter();
        ticks.filter(|tick| tick.replicas_before != tick.replicas_after).count()
    }

    /// The numbers of ticks and changes, and the replicas of all targets.
    fn ending(&self) -> String {
        let HpaPrediction { scenario, run } = self;
        let points = table::points(scenario, run, 0);
        let (least, most) = points
            .iter()
            .fold((i32::MAX, i32::MIN), |(least, most), (_, it)| (least.min(*it), most.max(*it)));
        let last = points.last().map_or(0, |(_, replicas)| *replicas);
        let changes = counted(self.rescales(), "change");
        let target = if scenario.other_targets.is_empty() {
            String::new()
        } else {
            format!(" of {}", scenario.workload.name)
        };
        let mut ending = format!(
            "{}, {changes} of replicas by the controller; replicas{target}: {last} at the end, \
             {least} to {most} overall",
            counted(run.ticks.len(), "tick"),
        );
        for (index, target) in scenario.targets().enumerate().skip(1) {
            let points = table::points(scenario, run, index);
            let last = points.last().map_or(0, |(_, replicas)| *replicas);
            let _ = write!(ending, "; replicas of {}: {last} at the end", target.name);
        }
        ending
    }
}

impl<'a> Prediction<'a> for HpaPrediction<'a> {
    fn head(&self) -> Head<'a> {
        let HpaPrediction { scenario, run } = *self;
        Head {
            id: &scenario.id,
            path: &scenario.path,
            requirement: &scenario.requirement,
            release: run.trace.release.clone(),
            notes: &run.notes,
            undetermined: run.undetermined.as_ref(),
        }
    }

    fn figures(&self) -> Figures {
        Figures {
            ticks: self.run.ticks.len(),
            rescales: Some(self.rescales()),
            vpa_release: self.run.vpa.as_ref().map(|vpa| vpa.release.to_string()),
            skipped: self.release().and_then(|on| self.scenario.unsupported_on(on)),
            refused: self.run.refused(),
        }
    }

    fn expectations(&self) -> usize {
        if self.other_release().is_some() {
            return 0;
        }
        let on = self.release();
        let is_here = |it: &&Expectation| on.is_some_and(|on| it.releases.contains(on));
        let vpa = self.run.vpa.as_ref();
        let of_vpa = vpa.map_or(0, |it| it.scenario.expectations_on(it.release).count());
        self.scenario.expect.iter().filter(is_here).count() + of_vpa
    }

    fn other_release(&self) -> Option<String> {
        let (scenario, release) = (self.scenario, self.release()?);
        let applies =
            scenario.releases.contains(release) && scenario.unsupported_on(release).is_none();
        (!applies).then(|| table::other_release_text(scenario, release))
    }

    fn presentation(&self, mark: Option<Mark<'a>>, detail: Detail) -> Presentation<'a> {
        let vpa = recommender::Run::with_hpa(self.scenario, self.run, detail);
        Presentation::new(Run::from_model(self.scenario, self.run, mark), vpa)
    }

    fn text(&self, contents: Contents) -> Vec<Block> {
        let HpaPrediction { scenario, run } = *self;
        let drawn = Run::from_model(scenario, run, None);
        let first = drawn.and_then(|run| run.timelines().into_iter().next());
        let charts = first.map(|timeline| timeline.charts()).unwrap_or_default();
        let mut blocks = vec![
            Block::Space,
            Block::Charts(charts, scenario.until),
            Block::Ticks(rows::table(scenario, run, contents.rows)),
            Block::Space,
            Block::text(0, "", self.ending()),
        ];
        if let Some(vpa) = &run.vpa {
            blocks.extend(recommender::text::with_hpa(vpa, contents.rows));
        }
        blocks
    }

    fn csv(&self, rows: Rows) -> Vec<Vec<String>> {
        csv::ticks(self.scenario, self.run, rows)
    }

    fn write_lines(
        &self,
        out: &mut dyn io::Write,
        rows: Rows,
        scenario: Option<&str>,
    ) -> io::Result<()> {
        lines::write(out, self.scenario, self.run, rows, scenario)
    }
}
