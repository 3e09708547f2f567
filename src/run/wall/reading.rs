//! What was seen of a reconcile, in the model's terms.

use serde_json::{Value, json};

use crate::compare::{FieldDifference, Scope};
use crate::engine::EngineError;
use crate::engine::cluster::DIRECT;
use crate::engine::cluster::Did;
use crate::engine::cluster::Scene;
use crate::engine::cluster::Tick;
use crate::model::observation::Observation;
use crate::model::time::{Time, rfc3339};
use crate::run::own;
use crate::run::recorder::texts;
use crate::run::wall::Wall;
use crate::trace::wire::{Log, SteppedJson};

impl Wall<'_> {
    /// What was seen of a reconcile, what of it is compared, and a status that can't be compared.
    pub(super) fn seen(
        &mut self,
        scene: &Scene,
        tick: &Tick,
    ) -> Result<(Observation, Scope, Option<FieldDifference>), EngineError> {
        let Some(scope) = self.own else {
            let seen = self.observation(scene, (tick.began, &tick.did))?;
            return Ok((seen, self.sight.scope, None));
        };
        let mut did = own::effective(&tick.did, scene.target());
        self.direct |= did.iter().any(|did| did.entry[DIRECT] == true);
        match self.read(scene, (tick.began, &did)) {
            Ok(seen) => Ok((seen, scope, None)),
            Err(why) => {
                did.retain(|did| did.what != "updateStatus");
                let seen = self.observation(scene, (tick.began, &did))?;
                let unread = scope.status.then(|| own::unread(why));
                Ok((seen, Scope { status: false, ..scope }, unread))
            }
        }
    }

    /// What was seen, in the model's terms.
    pub(super) fn observation(
        &self,
        scene: &Scene,
        (began, did): (Time, &[Did]),
    ) -> Result<Observation, EngineError> {
        self.read(scene, (began, did)).map_err(|why| {
            scene.broken(format!("what the controller did at {began} makes no sense: {why}"))
        })
    }

    /// [`Wall::observation`], or why it can't be told in the model's terms.
    fn read(&self, scene: &Scene, (began, did): (Time, &[Did])) -> Result<Observation, String> {
        let renamed = |text: &str| {
            let rename = |text: String, (real, world): (&str, &str)| text.replace(real, world);
            scene.names().fold(text.to_owned(), rename)
        };
        let entry = |did: &Did| {
            let mut entry = did.entry.clone();
            texts(&mut entry, &renamed);
            json!({ "at": began, did.what: entry })
        };
        let mut log: Vec<Value> = did.iter().map(entry).collect();
        let mut hpas = self.scenario.hpas.iter().map(|hpa| hpa.name.clone());
        if let (Some(_), Some(hpa)) = (self.own, hpas.clone().next()) {
            own::mark(&mut log, began, &hpa);
        }
        let answer = json!({ "now": began, "log": log });
        let answer: SteppedJson =
            serde_json::from_value(answer).map_err(|error| error.to_string())?;
        let epoch = rfc3339::time(scene.epoch()).ok_or("the epoch is out of range")?;
        let mut log = Log::new(epoch, hpas.by_ref(), self.own.is_some());
        let stepped = log.stepped(answer, began)?;
        match <[Observation; 1]>::try_from(stepped.ticks) {
            Ok([seen]) => Ok(seen),
            Err(ticks) => Err(format!("{} reconciles seem to be in it", ticks.len())),
        }
    }
}
