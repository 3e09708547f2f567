//! A recommender in a cluster that changes over time: the model's counterpart of an engine.

use std::sync::Arc;

use super::account::OomMemory;
use super::api::{Checkpoint, ObjectName, VerticalPodAutoscaler};
use super::flags::RecommenderFlags;
use super::log::LogLine;
use super::objects::{Objects, PodMetrics, Target};
use super::pod::{ObservedOom, Pod};
use super::recommender::{PodHistory, Recommender, Run};
use super::time::GoTime;
use crate::rules::VpaRules;
use crate::time::{Span, Time};

/// A change of the cluster between two runs of the recommender.
#[derive(Clone, PartialEq, Debug)]
pub enum ClusterChange {
    /// Creates a VPA, or replaces all of an existing one except its status.
    SetVpa(VerticalPodAutoscaler),
    /// Deletes a VPA.
    DeleteVpa(ObjectName),
    /// Creates or replaces a pod. An update can show an OOM kill.
    SetPod(Pod),
    /// Deletes a pod.
    DeletePod(ObjectName),
    /// Creates or replaces a checkpoint.
    SetCheckpoint(Checkpoint),
    /// Deletes a checkpoint.
    DeleteCheckpoint(ObjectName),
    /// Creates or replaces the target of VPAs.
    SetTarget(Target),
    /// Deletes the target of VPAs.
    DeleteTarget(Target),
    /// A pod is evicted because the memory of its node is exhausted.
    Evict(ObservedOom),
    /// Replaces the response of the resource metrics API.
    SetMetrics(Result<Arc<Vec<PodMetrics>>, String>),
    /// Replaces the recommender with a new one, whose first run is one interval later.
    Restart,
}

/// The start of a scenario.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Start {
    /// The time at which the recommender starts.
    pub at: GoTime,
    /// The flags of the recommender.
    pub flags: RecommenderFlags,
    /// The objects that exist at the start.
    pub objects: Vec<ClusterChange>,
    /// The samples that a history provider returns, if the flag `storage` is `prometheus`.
    pub history: Vec<PodHistory>,
}

/// A run with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct RunAt {
    /// The time since the start.
    pub at: Time,
    /// The result.
    pub run: Run,
}

/// The runs of a step, and the errors that were logged outside of them.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Stepped {
    /// The runs, in the order of time.
    pub runs: Vec<RunAt>,
    /// The errors that restarted recommenders logged while they started.
    pub log: Vec<LogLine>,
}

/// A recommender in a cluster.
#[derive(Debug)]
pub struct Session {
    flags: RecommenderFlags,
    rules: VpaRules,
    history: Vec<PodHistory>,
    epoch: GoTime,
    now: GoTime,
    due: GoTime,
    objects: Objects,
    recommender: Recommender,
}

impl Session {
    /// Starts a recommender. Returns the errors that it logs as well.
    #[must_use]
    pub fn open(start: &Start, rules: VpaRules) -> (Session, Vec<LogLine>) {
        let mut session = Session {
            flags: start.flags.clone(),
            rules,
            history: start.history.clone(),
            epoch: start.at,
            now: start.at,
            due: start.at,
            objects: Objects::default(),
            recommender: Recommender::new(start.flags.clone(), rules, start.at),
        };
        for change in &start.objects {
            session.apply(change);
        }
        let log = session.start();
        (session, log)
    }

    /// The objects of the cluster.
    #[must_use]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The objects of the cluster, to replace what the model wrote by what was observed.
    pub fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }

    /// The recommender, with its state after the last step.
    pub fn recommender(&mut self) -> &mut Recommender {
        &mut self.recommender
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> GoTime {
        self.now
    }

    fn start(&mut self) -> Vec<LogLine> {
        let new = Recommender::new(self.flags.clone(), self.rules, self.now);
        let account = std::mem::replace(&mut self.recommender, new).into_account();
        self.due = self.now.plus(self.flags.recommender_interval);
        let log = match self.flags.uses_checkpoints() {
            true => self.recommender.init_from_checkpoints(&self.objects, self.now),
            false => self.recommender.init_from_history(&self.history, self.now),
        };
        let samples: usize = self.history.iter().map(|pod| pod.samples.len()).sum();
        self.recommender.continue_account(account, i64::try_from(samples).unwrap_or(i64::MAX));
        log
    }

    /// Applies changes at the current time, then lets time pass until a time since the start. The
    /// requests of each run are applied to the objects.
    pub fn step(&mut self, changes: &[ClusterChange], until: Time) -> Stepped {
        let mut stepped = Stepped::default();
        for change in changes {
            match change {
                ClusterChange::Restart => stepped.log.extend(self.start()),
                change => self.apply(change),
            }
        }
        let until = self.epoch.plus(Span(until.0));
        while self.due <= until {
            let run = self.recommender.run_once(&self.objects, self.due);
            run.writes.iter().for_each(|write| self.objects.apply(write));
            stepped.runs.push(RunAt { at: Time(self.due.since(self.epoch).0), run });
            self.due = self.due.plus(self.flags.recommender_interval);
        }
        self.now = until;
        stepped
    }

    /// Applies changes, and runs once, at a time that is not derived from the interval: on a real
    /// cluster, the recommender decides when it runs.
    pub fn run_at(&mut self, changes: &[ClusterChange], now: GoTime) -> RunAt {
        self.now = now;
        for change in changes {
            match change {
                ClusterChange::Restart => drop(self.start()),
                change => self.apply(change),
            }
        }
        let run = self.recommender.run_once(&self.objects, now);
        run.writes.iter().for_each(|write| self.objects.apply(write));
        RunAt { at: Time(now.since(self.epoch).0), run }
    }

    fn apply(&mut self, change: &ClusterChange) {
        let objects = &mut self.objects;
        match change {
            ClusterChange::SetVpa(vpa) => objects.set_vpa(vpa.clone()),
            ClusterChange::DeleteVpa(name) => drop(objects.vpas.remove(name)),
            ClusterChange::SetPod(pod) => {
                let ooms = objects.set_pod(pod.clone(), &self.rules);
                self.recommender.observe_ooms(ooms, OomMemory::Requested);
            }
            ClusterChange::DeletePod(name) => drop(objects.pods.remove(name)),
            ClusterChange::SetCheckpoint(checkpoint) => {
                let name = checkpoint.metadata.clone();
                objects.checkpoints.insert(name, Arc::new(checkpoint.clone()));
            }
            ClusterChange::DeleteCheckpoint(name) => drop(objects.checkpoints.remove(name)),
            ClusterChange::SetTarget(target) => {
                objects.targets.retain(|it| !it.is_same_object(target));
                objects.targets.push(target.clone());
            }
            ClusterChange::DeleteTarget(target) => {
                objects.targets.retain(|it| !it.is_same_object(target));
            }
            ClusterChange::Evict(oom) => {
                self.recommender.observe_ooms([oom.clone()], OomMemory::Used);
            }
            ClusterChange::SetMetrics(metrics) => objects.metrics.clone_from(metrics),
            ClusterChange::Restart => {}
        }
    }
}
