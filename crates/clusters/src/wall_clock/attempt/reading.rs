//! Converts requests of the controller to observations, with the names of the scenario.

use std::sync::Arc;

use super::WallClockRun;
use crate::cluster::{ObservedAction, ObservedReconcile, ScenarioSession};
use crate::wall_clock::custom_controller::{effective, unread};
use crate::wall_clock::event_recorder::separate;
use crate::wall_clock::hypotheses::Reconcile;
use kube_autoscaler_models::api::Text;
use kube_autoscaler_models::observation::{
    Answer, ControllerAction, Observation, ScaleWrite, StatusWrite,
};
use kube_autoscaler_models::time::{Time, rfc3339};
use kube_lockstep_sim::compare::FieldDifference;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::trace::Scope;

/// A reconcile that was observed, and the difference of a status that cannot be compared.
pub(super) struct FoundReconcile {
    pub reconcile: Reconcile,
    pub unread: Option<FieldDifference>,
}

impl WallClockRun<'_> {
    /// Converts the requests of a reconcile.
    ///
    /// # Errors
    /// If they are not a single reconcile of the scenario's HPA.
    pub(super) fn read(
        &mut self,
        session: &mut ScenarioSession,
        tick: &ObservedReconcile,
        due: Time,
    ) -> Result<FoundReconcile, EngineError> {
        let ObservedReconcile { began, ended, ref actions } = *tick;
        let (seen, scope, unread) = match self.custom {
            None => (self.observation(session, began, actions)?, self.observability.scope, None),
            Some(scope) => self.custom_observation(session, tick, scope)?,
        };
        let stall = session.requests().stalled_since(self.checker.uncertainties.since_current());
        // After a longer stall, a difference is no verdict anyway.
        let stall = stall.min(self.checker.window.slack);
        let pods = session.names().map(|(_, world)| world.to_owned()).collect();
        let settled = session.state().settled;
        let during = None;
        let reconcile = Reconcile { due, began, ended, seen, scope, pods, stall, settled, during };
        Ok(FoundReconcile { reconcile, unread })
    }

    /// A custom controller's reconcile, the compared fields, and the difference of an unreadable
    /// status.
    fn custom_observation(
        &mut self,
        session: &ScenarioSession,
        tick: &ObservedReconcile,
        scope: Scope,
    ) -> Result<(Observation, Scope, Option<FieldDifference>), EngineError> {
        let (target, replicas) = session.target();
        let mut actions = effective(&tick.actions, target, replicas);
        self.direct |= actions.iter().any(|it| it.direct);
        let unreadable = actions.iter().find_map(|it| it.unreadable.clone());
        let Some(why) = unreadable else {
            return Ok((self.observation(session, tick.began, &actions)?, scope, None));
        };
        actions.retain(|it| it.unreadable.is_none());
        let seen = self.observation(session, tick.began, &actions)?;
        let unread = scope.status.then(|| unread(why));
        Ok((seen, Scope { status: false, ..scope }, unread))
    }

    /// The observation of one reconcile, or of events.
    ///
    /// # Errors
    /// If the model cannot represent a status, or the requests belong to several reconciles.
    pub(super) fn observation(
        &self,
        session: &ScenarioSession,
        began: Time,
        actions: &[ObservedAction],
    ) -> Result<Observation, EngineError> {
        let broken = |why: &str| {
            let why = format!("the requests of the controller at {began} cannot be read: {why}");
            session.broken(why)
        };
        if let Some(why) = actions.iter().find_map(|it| it.unreadable.as_ref()) {
            return Err(broken(why));
        }
        if self.custom.is_none() && actions.windows(2).any(begins_again) {
            return Err(broken("they seem to be several reconciles"));
        }
        let epoch = rfc3339::time(session.epoch());
        let epoch = epoch.ok_or_else(|| broken("the epoch is out of range"))?;
        let names = Names(session.names().collect());
        let actions = actions.iter().map(|it| {
            let mut action = it.action.clone();
            names.rename(&mut action);
            if let ControllerAction::UpdateStatus(write) = &mut action {
                write.status.start_at(epoch);
            }
            action
        });
        // Scenarios with several HPAs do not run on clusters.
        let hpa = self.scenario.hpas.first().map(|hpa| hpa.name.clone()).unwrap_or_default();
        let mut observation = Observation::new(began, hpa, []);
        for action in actions {
            match describes_a_namespace(&action) {
                true => observation.push_in("".into(), action),
                false => observation.push(action),
            }
        }
        Ok(observation)
    }
}

/// Returns true for a query of a metric of a Namespace, which is in no namespace.
fn describes_a_namespace(action: &ControllerAction) -> bool {
    matches!(action, ControllerAction::ObjectMetric { kind, .. } if **kind == *"Namespace")
}

/// Returns true if the second of two actions begins a reconcile: upstream's controller reads the
/// scale first, and once more only before it retries a refused write.
fn begins_again(pair: &[ObservedAction]) -> bool {
    let [last, next] = pair else { return false };
    next.is_scale_read() && (last.scale_write().is_none() || last.succeeded())
}

/// Pairs of a name in the cluster and the name in the scenario.
struct Names<'a>(Vec<(&'a str, &'a str)>);

impl Names<'_> {
    fn replace(&self, text: &str) -> String {
        let names = self.0.iter();
        names.fold(text.to_owned(), |text, (real, scenario)| text.replace(real, scenario))
    }

    fn text(&self, text: &mut Text) {
        *text = self.replace(text.as_str()).into();
    }

    fn shared<'t>(&self, texts: impl IntoIterator<Item = &'t mut Arc<str>>) {
        texts.into_iter().for_each(|text| *text = self.replace(text).into());
    }

    fn error<T>(&self, answer: &mut Answer<T>) {
        self.shared(answer.as_mut().err());
    }

    /// Replaces the names of namespaces and pods in an action.
    fn rename(&self, action: &mut ControllerAction) {
        match action {
            ControllerAction::GetScale { answer, .. } => self.error(answer),
            ControllerAction::ListPodMetrics { selector, answer }
            | ControllerAction::PodsMetric { selector, answer, .. } => {
                self.shared([selector]);
                self.error(answer);
            }
            ControllerAction::ObjectMetric { name, answer, .. } => {
                self.shared([name]);
                self.error(answer);
            }
            ControllerAction::ExternalMetric { answer, .. } => self.error(answer),
            ControllerAction::UpdateScale(ScaleWrite { error, .. }) => self.shared(error),
            ControllerAction::UpdateStatus(write) => {
                let StatusWrite { status, error, .. } = &mut **write;
                self.shared(error);
                let conditions = status.conditions.iter_mut();
                conditions.for_each(|condition| self.text(&mut condition.message));
            }
            ControllerAction::Event(event) => {
                self.text(&mut event.message);
                separate(event);
            }
            ControllerAction::SendEvent(_)
            | ControllerAction::Write(_)
            | ControllerAction::Error { .. }
            | ControllerAction::ControllerMetric(_)
            | ControllerAction::Reconcile { .. }
            | ControllerAction::Reconciled { .. } => {}
        }
    }
}
