//! Actions during a reconcile: the metrics API holds back its answer to a query of the
//! controller until they are complete.

use super::WallClockRun;
use crate::cluster::metrics_api::held_query::HeldQuery;
use crate::cluster::tolerances::WATCH_DELAY;
use crate::cluster::{ScenarioSession, SettledState};
use crate::wall_clock::preparation::held_query;
use crate::wall_clock::uncertainty::Uncertainty;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::time::Time;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::engine::model::ChangesDuringReconcile;
use kube_lockstep_sim::expect::{ExternalScale, Moment};
use kube_lockstep_sim::run::findings::Findings;
use kube_lockstep_sim::run::lockstep::FreeRun;
use kube_lockstep_sim::world::Change;

/// The reconcile that is due.
pub(crate) struct Expected {
    /// The prediction, if the model expects a reconcile.
    pub next: Option<Observation>,
    /// The changes in the middle of it.
    pub during: Option<ChangesDuringReconcile>,
    /// The state of the cluster before the reconcile.
    pub before: SettledState,
}

/// The events that happen at one moment of the next reconcile.
struct NextMoment {
    /// The number of requests of the reconcile before it.
    after: usize,
    query: HeldQuery,
    /// The indices of the events.
    events: Vec<usize>,
}

impl WallClockRun<'_> {
    /// The reconcile that is due. Waits for it if events of the timeline happen in the middle of
    /// it, and executes them there.
    ///
    /// # Errors
    /// If the cluster can't be changed as the events require.
    pub(super) async fn expected(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        due: Time,
    ) -> Result<Expected, EngineError> {
        let before = session.state();
        let next = self.checker.hypotheses.predict(due, None).map(|it| it.observation);
        let during = match &next {
            Some(next) => self.act_during(session, findings, next, due).await?,
            None => None,
        };
        let next = match &during {
            Some(_) => self.checker.hypotheses.predict(due, during.as_ref()),
            None => return Ok(Expected { next, during, before }),
        };
        Ok(Expected { next: next.map(|it| it.observation), during, before })
    }

    /// `next` is the predicted reconcile.
    async fn act_during(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        next: &Observation,
        due: Time,
    ) -> Result<Option<ChangesDuringReconcile>, EngineError> {
        let Some(NextMoment { after, query, events }) = self.next_moment(next, due) else {
            return Ok(None);
        };
        let mut hold = session.hold(query);
        if !session.is_held_by(&mut hold, self.checker.window.deadline(due)).await {
            // The events happen in a later reconcile. This one is compared without them.
            return Ok(None);
        }
        self.pending.retain(|index| !events.contains(index));
        let mut changes = Vec::new();
        for index in events {
            let new = self.world.happens(index, self.advanced);
            self.note_scale(index, &new, findings, due);
            changes.extend(new);
        }
        session.apply(&changes).await?;
        for change in changes.iter().filter(|change| change.is_hpa_request()) {
            self.edit_during(session, findings, change).await?;
        }
        // The hold ends here.
        Ok(Some(ChangesDuringReconcile { after, changes }))
    }

    fn next_moment(&self, next: &Observation, due: Time) -> Option<NextMoment> {
        let place = |index: &usize| {
            let event = self.scenario.timeline.get(*index)?;
            // A reconcile that is due at the time of an event may begin slightly earlier.
            let is_past = event.at <= due + self.checker.window.slack;
            let during = event.during.as_ref().filter(|_| is_past)?;
            next.requests_until(during.after, usize::try_from(during.nth).ok()?)
        };
        let after = self.pending.iter().filter_map(place).min()?;
        let query = held_query(next, after)?;
        let is_now = |index: &usize| place(index) == Some(after);
        let events = self.pending.iter().copied().filter(is_now).collect();
        Some(NextMoment { after, query, events })
    }

    /// The reason for no verdict, if an event did not happen that happens in the model's own run.
    pub(super) fn missed_event(&self, predicted: &FreeRun) -> Option<Uncertainty> {
        let all = self.scenario.timeline.iter().filter(|event| event.during.is_some()).count();
        let happen: usize = predicted.ticks.iter().map(|it| it.derivation.during.len()).sum();
        let missed = self.pending.len() > all.saturating_sub(happen);
        let event = self.scenario.timeline.get(*self.pending.first().filter(|_| missed)?)?;
        Some(Uncertainty::NotComparable(format!(
            "the action on line {} did not happen: no reconcile at or after t={} sent its query of \
             metrics in time",
            event.line, event.at
        )))
    }

    /// Sends a user's request for the HPA during a reconcile, and compares the API
    /// server's answer.
    async fn edit_during(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        change: &Change,
    ) -> Result<(), EngineError> {
        let begin = session.now();
        let seen = session.act(change).await?;
        let end = session.now();
        let mut model = self.checker.edit_during(change, begin, end);
        if let (Some(model), Some(seen)) = (&mut model, &seen) {
            model.at = seen.at;
        }
        self.compare_answers(findings, model, seen, end);
        session.wait_until(end + WATCH_DELAY).await;
        Ok(())
    }

    /// Notes the replicas that an event set on the target.
    fn note_scale(&self, index: usize, changes: &[Change], findings: &mut Findings<'_>, due: Time) {
        let scaled = changes.iter().find_map(|change| match change {
            Change::SetScale(target) => target.replicas,
            _ => None,
        });
        let sets = self.scenario.timeline.get(index).is_some_and(|it| it.action.sets_replicas());
        if let Some(replicas) = scaled.filter(|_| sets) {
            let moment = Moment::BeforeWrite;
            findings.external_scales.push(ExternalScale { at: due, target: 0, replicas, moment });
        }
    }
}

/// The number of conflicts when a reconcile writes the scale.
pub(crate) fn conflicts(next: Option<&Observation>) -> usize {
    let writes = next.into_iter().flat_map(Observation::scale_writes);
    writes.filter(|write| write.is_conflict()).count()
}
