//! The report of a run: its events in order, and their totals.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::Plan;
use kube_autoscaler_models::rules::AnyRelease;
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::run::{Event, Outcome, Preparation, Summary};

/// The events and figures of a run. Engines only add outcomes.
pub struct Record<'a> {
    plan: &'a Plan,
    sink: &'a mut dyn FnMut(Event),
    is_started: bool,
    /// The figures of the current release.
    release: Summary,
    summary: Summary,
}

impl<'a> Record<'a> {
    /// A record without any outcome yet.
    pub(crate) fn new(plan: &'a Plan, sink: &'a mut dyn FnMut(Event)) -> Record<'a> {
        let (release, summary) = (Summary::default(), Summary::default());
        Record { plan, sink, is_started: false, release, summary }
    }

    /// Reports that an engine is being prepared.
    pub fn preparing(&mut self, preparation: Preparation) {
        (self.sink)(Event::Preparing(preparation));
    }

    /// Reports the start of the run, once: with the first engine.
    pub fn start(&mut self, engine: Arc<str>, note: Option<String>) {
        if !std::mem::replace(&mut self.is_started, true) {
            (self.sink)(self.plan.started(engine, note));
        }
    }

    /// Counts and reports an outcome.
    pub fn finished(&mut self, outcome: Outcome) {
        self.release.add(&outcome);
        (self.sink)(Event::Finished(Box::new(outcome)));
    }

    /// Counts and reports an outcome, and the known disagreements that it no longer shows.
    pub fn finished_with_known(&mut self, known: &[KnownDisagreement], outcome: Outcome) {
        let stale = outcome.resolved_disagreements(known).into_iter();
        self.release.stale_known.extend(
            stale.map(|known| format!("{}: {} ({})", known.scenario, known.field, known.reason)),
        );
        self.finished(outcome);
    }

    /// Closes the figures of a release.
    pub(super) fn end_release(&mut self, release: AnyRelease, elapsed: Duration) {
        let figures = Summary { elapsed, ..std::mem::take(&mut self.release) };
        self.summary.join(&figures);
        self.summary.elapsed += elapsed;
        if self.plan.used_releases().len() > 1 {
            self.summary.releases.push((release, figures));
        }
    }

    /// Reports the end of the run.
    pub fn end(mut self) -> Summary {
        self.start(self.plan.engine_name(), None);
        (self.sink)(Event::Ended(self.summary.clone()));
        self.summary
    }
}
