//! The answers of the engine protocol (`docs/protocol.md`) as types, and what they mean.
//!
//! The log of a step is flat; here it is cut into reconciles and turned into [`Observation`]s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ApiAnswer, ApiOutcome, Stepped};
use crate::model::observation::{ControllerAction, Event, Observation, StatusWrite};
use crate::model::time::{Time, rfc3339};

/// The version of the protocol that this program speaks.
pub const PROTOCOL: u32 = 1;

/// One line of an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The first line.
    Hello(Hello),
    /// A scenario is open.
    Opened {
        /// Which instant is t=0.
        #[serde(with = "rfc3339")]
        epoch: Time,
    },
    /// A step was made.
    Stepped(SteppedJson),
    /// The scenario is closed.
    Closed {},
    /// The engine cannot go on.
    Failed {
        /// Why, for people.
        why: String,
    },
}

/// What an engine says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// For instance `upstream`.
    pub engine: String,
    /// For instance `v1.37.0`.
    pub release: String,
}

/// The answer to a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SteppedJson {
    now: Time,
    #[serde(default)]
    api: Vec<ApiOutcome>,
    #[serde(default)]
    log: Vec<LogEntry>,
}

/// One entry of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LogEntry {
    at: Time,
    #[serde(flatten)]
    action: ControllerAction,
}

/// What the last entry was, as far as it decides where a reconcile begins.
#[derive(Debug)]
struct Last {
    at: Time,
    failed_scale_write: bool,
}

/// Cuts the logs of a scenario into reconciles.
#[derive(Debug)]
pub struct Log {
    /// Which instant of the statuses' times is t=0.
    epoch: Time,
    /// The HPAs that there can be.
    hpas: Vec<Arc<str>>,
    /// Several reconciles may be under way, and the log says whose turn it is.
    turns: bool,
    /// Reconciles that are over, and not yet handed out.
    ticks: Vec<Observation>,
    /// Reconciles that have begun, where the log says when they end.
    open: Vec<Observation>,
    /// The HPA whose turn it is, where the log says so.
    turn: Option<Arc<str>>,
    last: Option<Last>,
}

impl Log {
    /// The log of a scenario with these HPAs, of which several reconciles may be under way.
    #[must_use]
    pub fn new(epoch: Time, hpas: impl Iterator<Item = Arc<str>>, turns: bool) -> Log {
        Log {
            epoch,
            hpas: hpas.collect(),
            turns,
            ticks: Vec::new(),
            open: Vec::new(),
            turn: None,
            last: None,
        }
    }

    /// Reads what an engine answered to a step whose changes were applied at `applied`.
    ///
    /// # Errors
    /// A message for people, if the answer has something that no known controller says.
    pub fn stepped(&mut self, answer: SteppedJson, applied: Time) -> Result<Stepped, String> {
        let api = answer.api.into_iter();
        let api = api.map(|outcome| ApiAnswer { at: applied, outcome }).collect();
        self.last = None;
        for entry in answer.log {
            self.entry(entry)?;
        }
        let mut ticks = std::mem::take(&mut self.ticks);
        if let [only] = self.hpas.as_slice() {
            // A reconcile that wrote and recorded nothing does not say whose it was.
            for tick in ticks.iter_mut().filter(|tick| tick.hpa.is_empty()) {
                tick.hpa = only.clone();
            }
        }
        Ok(Stepped { now: answer.now, api, ticks })
    }

    fn entry(&mut self, entry: LogEntry) -> Result<(), String> {
        let LogEntry { at, mut action } = entry;
        if let ControllerAction::UpdateStatus(write) = &mut action {
            write.status.start_at(self.epoch);
        }
        let tick = match &action {
            ControllerAction::Reconcile { hpa } => {
                self.turn = Some(self.known(hpa.clone())?);
                return Ok(());
            }
            ControllerAction::Reconciled { hpa } => {
                self.turn = None;
                let over = self.open.iter().position(|tick| tick.hpa == *hpa);
                self.ticks.extend(over.map(|index| self.open.remove(index)));
                return Ok(());
            }
            ControllerAction::Event(event) if self.turns => self.of_event(event.hpa.clone(), at)?,
            action => match self.turn.clone() {
                Some(hpa) => self.begun(hpa, at),
                None if self.turns => {
                    let why = "several reconciles may be under way, and the log does not say \
                               whose turn it is: it needs `reconcile` and `reconciled`";
                    return Err(why.to_owned());
                }
                None => self.of_the_only_hpa(action, at)?,
            },
        };
        tick.took = tick.took.max(at - tick.at);
        if let ControllerAction::UpdateStatus(StatusWrite { name: hpa, .. })
        | ControllerAction::Event(Event { hpa, .. }) = &action
        {
            tick.hpa = hpa.clone();
        }
        tick.push(action);
        Ok(())
    }

    fn known(&self, hpa: Arc<str>) -> Result<Arc<str>, String> {
        let known = self.hpas.iter().find(|known| **known == hpa).cloned();
        known.ok_or_else(|| format!("the log speaks of an HPA {hpa}, which is not the scenario's"))
    }

    /// The reconcile of an HPA that goes on; it begins with what it does first.
    fn begun(&mut self, hpa: Arc<str>, at: Time) -> &mut Observation {
        let index = self.open.iter().position(|tick| tick.hpa == hpa).unwrap_or_else(|| {
            self.open.push(Observation::new(at, hpa, []));
            self.open.len() - 1
        });
        &mut self.open[index]
    }

    /// The reconcile that an event belongs to. Mostly it is over when the event is recorded, but
    /// one that asks for nothing may have said nothing else before.
    fn of_event(&mut self, hpa: Arc<str>, at: Time) -> Result<&mut Observation, String> {
        if self.turn.as_ref() == Some(&hpa) {
            return Ok(self.begun(hpa, at));
        }
        let open = self.open.iter_mut().find(|tick| tick.hpa == hpa);
        let over = self.ticks.iter_mut().rev().find(|tick| tick.hpa == hpa);
        open.or(over).ok_or_else(|| format!("an event of {hpa}, which was not reconciled"))
    }

    fn of_the_only_hpa(
        &mut self,
        action: &ControllerAction,
        at: Time,
    ) -> Result<&mut Observation, String> {
        if self.begins_tick(action, at) {
            self.ticks.push(Observation::new(at, "".into(), []));
        }
        let writes_scale = matches!(action, ControllerAction::UpdateScale(_));
        let failed_scale_write = writes_scale && action.error().is_some();
        self.last = Some(Last { at, failed_scale_write });
        self.ticks.last_mut().ok_or_else(|| "the log has no reconcile".to_owned())
    }

    /// A reconcile begins with a read of the scale, or, if its target can't even be named, with
    /// whatever comes first at a new instant. The read that follows a refused write of the scale is
    /// upstream's retry, and writes of the scale may come later than their reconcile began.
    fn begins_tick(&self, action: &ControllerAction, at: Time) -> bool {
        let Some(last) = &self.last else { return true };
        match action {
            ControllerAction::UpdateScale(_) => false,
            _ if last.failed_scale_write => false,
            ControllerAction::GetScale { .. } => true,
            _ => at > last.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_write_names_its_resource() {
        let answer = r#"{"now":0,"log":[
            {"at":0,"getScale":{"resource":"deployments.apps","name":"web","replicas":3,
                "statusReplicas":3}},
            {"at":0,"updateScale":{"resource":"statefulsets.apps","name":"db","replicas":6}}]}"#;
        let step = |text: &str| {
            let mut log = Log::new(Time::ZERO, std::iter::once(Arc::from("web")), false);
            log.stepped(serde_json::from_str(text).unwrap(), Time::ZERO)
        };
        let ticks = step(answer).unwrap().ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        let writes: Vec<_> = tick.scale_writes().collect();
        let [write] = writes.as_slice() else { panic!("not one write: {tick:?}") };
        assert_eq!((&*write.resource, &*write.name), ("statefulsets.apps", "db"));
        assert_eq!(tick.scaled_to(), None, "the target keeps its size");
        let own = answer.replace("statefulsets", "deployments").replace("db", "web");
        assert_eq!(step(&own).unwrap().ticks[0].scaled_to(), Some(6));
        let nameless = answer.replace(r#""name":"db","#, "");
        assert!(serde_json::from_str::<SteppedJson>(&nameless).is_err());
    }

    /// Chance decides whether it overtakes what is said in the same turn.
    #[test]
    fn an_event_may_start_a_reconcile() {
        let answer = r#"{"now":0,"log":[{"at":0,"reconcile":{"hpa":"web"}},
            {"at":0,"event":{"hpa":"web","type":"Warning","reason":"FailedGetScale","message":""}},
            {"at":0,"error":{"message":"no"}},{"at":0,"reconciled":{"hpa":"web"}}]}"#;
        let mut log = Log::new(Time::ZERO, std::iter::once(Arc::from("web")), true);
        let ticks = log.stepped(serde_json::from_str(answer).unwrap(), Time::ZERO).unwrap().ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        assert_eq!((tick.events().count(), tick.errors().count()), (1, 1));
    }
}
