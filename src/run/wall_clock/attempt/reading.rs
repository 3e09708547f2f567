//! Requests of the controller, as an observation in the model's terms.

use serde_json::{Value, json};

use super::WallClockRun;
use crate::compare::{FieldDifference, Scope};
use crate::engine::EngineError;
use crate::engine::cluster::{DIRECT, ObservedAction, ObservedReconcile, Scene};
use crate::model::observation::Observation;
use crate::model::time::{Time, rfc3339};
use crate::run::wall_clock::custom_controller::{effective, mark, unread};
use crate::run::wall_clock::event_recorder::texts;
use crate::run::wall_clock::hypotheses::Reconcile;
use crate::trace::wire::{Log, SteppedJson};

/// A reconcile that was observed, and a status that cannot be compared.
pub(super) struct Seen {
    pub(super) reconcile: Reconcile,
    pub(super) unread: Option<FieldDifference>,
}

impl WallClockRun<'_> {
    /// Reads the requests of a reconcile.
    ///
    /// # Errors
    /// If they are no reconcile of the scenario's HPA.
    pub(super) fn read(
        &mut self,
        scene: &mut Scene,
        tick: &ObservedReconcile,
        due: Time,
    ) -> Result<Seen, EngineError> {
        let ObservedReconcile { began, ended, ref did } = *tick;
        let (seen, scope, unread) = match self.custom {
            None => (self.observation(scene, began, did)?, self.observability.scope, None),
            Some(scope) => self.of_custom(scene, tick, scope)?,
        };
        let stall = scene.requests().held_since(self.checker.uncertainties.since_current());
        // A longer one is a reason for no verdict whatever the reconcile did.
        let stall = stall.min(self.checker.window.slack);
        let pods = scene.names().map(|(_, world)| world.to_owned()).collect();
        let settled = scene.settled();
        let reconcile = Reconcile { due, began, ended, seen, scope, pods, stall, settled };
        Ok(Seen { reconcile, unread })
    }

    /// A custom controller's reconcile, and what of it is compared.
    fn of_custom(
        &mut self,
        scene: &Scene,
        tick: &ObservedReconcile,
        scope: Scope,
    ) -> Result<(Observation, Scope, Option<FieldDifference>), EngineError> {
        let (target, replicas) = scene.target();
        let mut did = effective(&tick.did, target, replicas);
        self.direct |= did.iter().any(|did| did.entry[DIRECT] == true);
        match self.parse(scene, tick.began, &did) {
            Ok(seen) => Ok((seen, scope, None)),
            Err(why) => {
                did.retain(|did| did.what != "updateStatus");
                let seen = self.observation(scene, tick.began, &did)?;
                let unread = scope.status.then(|| unread(why));
                Ok((seen, Scope { status: false, ..scope }, unread))
            }
        }
    }

    /// Requests of one reconcile, or events.
    ///
    /// # Errors
    /// If they are not in the model's terms.
    pub(super) fn observation(
        &self,
        scene: &Scene,
        began: Time,
        did: &[ObservedAction],
    ) -> Result<Observation, EngineError> {
        self.parse(scene, began, did).map_err(|why| {
            let why = format!("the requests of the controller at {began} cannot be read: {why}");
            scene.broken(why)
        })
    }

    fn parse(
        &self,
        scene: &Scene,
        began: Time,
        did: &[ObservedAction],
    ) -> Result<Observation, String> {
        let renamed = |text: &str| {
            let rename = |text: String, (real, world): (&str, &str)| text.replace(real, world);
            scene.names().fold(text.to_owned(), rename)
        };
        let entry = |did: &ObservedAction| {
            let mut entry = did.entry.clone();
            texts(&mut entry, &renamed);
            json!({ "at": began, did.what: entry })
        };
        let mut log: Vec<Value> = did.iter().map(entry).collect();
        let mut hpas = self.scenario.hpas.iter().map(|hpa| hpa.name.clone());
        if let (Some(_), Some(hpa)) = (self.custom, hpas.clone().next()) {
            mark(&mut log, began, &hpa);
        }
        let answer = json!({ "now": began, "log": log });
        let answer: SteppedJson =
            serde_json::from_value(answer).map_err(|error| error.to_string())?;
        let epoch = rfc3339::time(scene.epoch()).ok_or("the epoch is out of range")?;
        let mut log = Log::new(epoch, hpas.by_ref(), self.custom.is_some());
        let stepped = log.stepped(answer, began)?;
        match <[Observation; 1]>::try_from(stepped.ticks) {
            Ok([seen]) => Ok(seen),
            Err(ticks) => Err(format!("they seem to be {} reconciles", ticks.len())),
        }
    }
}
