//! The comparison of events, which the controller writes after the other requests of a reconcile.

use super::WallClockRun;
use crate::cluster::ScenarioSession;
use crate::wall_clock::hypotheses::adopt_pod_names;
use kube_autoscaler_models::observation::Event;
use kube_autoscaler_models::time::Time;
use kube_lockstep_sim::compare;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::findings::Findings;
use kube_lockstep_sim::trace::Scope;

/// The scope of the comparison at the end of the scenario.
const EVENTS: Scope = Scope { reads: false, scale_reads: false, errors: false, ..Scope::ALL };

impl WallClockRun<'_> {
    /// Compares the predicted events of all reconciles with the observed events, in order.
    pub(super) async fn compare_events(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        let predicted = self.events.iter().map(|(_, events)| events.len()).sum();
        let limit = session.now() + self.observability.events;
        let actions = session.requests().events(predicted, limit).await.to_vec();
        let mut seen = match actions.as_slice() {
            [] => Vec::new(),
            actions => self.observation(session, Time::ZERO, actions)?.events().cloned().collect(),
        };
        self.add_unobservable_reconciles(session.now(), seen.len());
        let pods: Vec<String> = session.names().map(|(_, world)| world.to_owned()).collect();
        let last = self.events.len().saturating_sub(1);
        for (number, (index, model)) in self.events.iter().enumerate() {
            let own = if number == last { seen.len() } else { model.len().min(seen.len()) };
            let own: Vec<Event> = seen.drain(..own).collect();
            let index = index.unwrap_or(findings.trace.ticks.len().saturating_sub(1));
            let Some(tick) = findings.trace.ticks.get_mut(index) else { break };
            let seen = tick.clone().with_events(own);
            let mut model = tick.clone().with_events(model.iter().cloned());
            for (model, seen) in model.events_mut().zip(seen.events()) {
                adopt_pod_names(&mut model.message, &seen.message, &pods);
            }
            let (at, fields) = (tick.at, compare::observations(&model, &seen, EVENTS));
            let events: Vec<Event> = tick.events().chain(seen.events()).cloned().collect();
            *tick = std::mem::take(tick).with_events(events);
            findings.found(index + 1, at, fields);
        }
        Ok(())
    }

    /// Adds reconciles whose only requests are events, if the observed events may include theirs.
    fn add_unobservable_reconciles(&mut self, by: Time, seen: usize) {
        while self.events.last().is_some_and(|(index, _)| index.is_none())
            && self.events.iter().map(|(_, events)| events.len()).sum::<usize>() < seen
            && let Some(due) = self.checker.next_reconcile()
            && !self.checker.window.is_too_early(by, due)
            && let Some(decision) = self.checker.unobservable(due)
        {
            let events = decision.observation.events().cloned().collect();
            self.events.push((None, events));
        }
    }
}
