//! The simulated admission controller and updater of the VPA: pods with recommended requests.
//!
//! At one time, events come first, then a run of the recommender, then one of the updater. All of
//! them precede a reconcile of the HPA at that time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pods::SimPod;
use super::rollout::Update;
use super::simulation::{AdmittedTemplate, NewTemplate, WorldSimulation};
use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::admission::{Limits, admitted, recommended};
use kube_autoscaler_models::vpa::updater::{
    KilledContainer, LivePod, PodReason, PodUpdate, Updater,
};
use kube_autoscaler_models::vpa::{UpdateReason, VerticalPodAutoscaler, Write};
use kube_lockstep_scenario::resolved::WithVpa;

/// A change of a pod by the VPA.
#[derive(Clone, PartialEq, Debug)]
pub struct PodChange {
    /// The time.
    pub at: Time,
    /// The pod's name.
    pub pod: Arc<str>,
    /// The kind of change.
    pub kind: PodChangeKind,
    /// The requests of the pod's containers afterwards, by container. Empty for evictions.
    pub requests: Vec<(Arc<str>, Requests)>,
    /// Why the updater changes it. None if it is created.
    pub why: Option<UpdateReason>,
}

/// A change of a pod by a VPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodChangeKind {
    /// The updater evicts it.
    Evicted,
    /// It is created with recommended requests.
    Created,
    /// The updater changes its requests while it runs.
    Updated,
}

impl PodChangeKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PodChangeKind::Evicted => "evicted",
            PodChangeKind::Created => "created",
            PodChangeKind::Updated => "updated",
        }
    }
}

/// A decision of the simulated updater or admission controller, with all that it depends on.
#[derive(Clone, Debug)]
pub struct PodDecision {
    /// The time.
    pub at: Time,
    /// The VPA with its status.
    pub vpa: VerticalPodAutoscaler,
    /// The pods that the updater sees, or the pod that is created.
    pub pods: Vec<LivePod>,
    /// The configured replicas of each controller, by [`LivePod::group`].
    pub replicas: BTreeMap<u32, i64>,
    /// The decision.
    pub made: VpaDecision,
}

/// A decision of the updater or of the admission controller.
#[derive(Clone, Debug)]
pub enum VpaDecision {
    /// The changes of a run of the updater, in their order.
    Update(Vec<PodUpdate>),
    /// The requests of a new pod.
    Admit(Arc<PodSpec>),
}

/// The treatment of the pods in one run of the updater, with the reasons.
#[derive(Clone, PartialEq, Debug)]
pub struct UpdaterReport {
    /// The time.
    pub at: Time,
    /// Each pod by its name, and the reason for its treatment, as in [`Updater::reasons`].
    pub pods: Vec<(Arc<str>, PodReason)>,
}

/// The VPA that the admission controller and the updater apply.
#[derive(Clone, Debug)]
pub(super) struct AppliedVpa {
    with: Arc<WithVpa>,
    /// The VPA with its status; None while it is deleted.
    pub vpa: Option<VerticalPodAutoscaler>,
    /// The last OOM kill of each container, by the pod's ordinal and the container's name.
    kills: BTreeMap<u32, BTreeMap<Arc<str>, KilledContainer>>,
    /// The changes of pods so far.
    pub changes: Vec<PodChange>,
    /// The last run of the updater.
    pub(super) last_report: Option<UpdaterReport>,
    /// All decisions so far, if they are kept.
    pub decisions: Option<Vec<PodDecision>>,
    /// The time of the next run of the updater.
    pub due: Time,
    limits: Limits,
    /// True if running pods can be resized.
    pub resizes: bool,
}

impl AppliedVpa {
    pub(super) fn new(with: &Arc<WithVpa>) -> AppliedVpa {
        AppliedVpa {
            with: with.clone(),
            vpa: with.recommender.vpas.first().cloned(),
            kills: BTreeMap::new(),
            changes: Vec::new(),
            last_report: None,
            decisions: None,
            due: Time::ZERO + with.updater.updater_interval,
            limits: with.limits(),
            resizes: true,
        }
    }

    /// Applies the requests of the recommender.
    pub(super) fn observe(&mut self, writes: &[Write]) {
        let Some(vpa) = &mut self.vpa else { return };
        for write in writes {
            if let Write::Status { vpa: name, status } = write
                && *name == vpa.metadata.name
            {
                vpa.status.clone_from(status);
            }
        }
    }

    /// The input of a run of the updater at the time of a decision.
    pub(super) fn updater<'a>(&'a self, decision: &'a PodDecision) -> Updater<'a> {
        Updater {
            vpa: &decision.vpa,
            flags: &self.with.updater,
            limits: &self.limits,
            resizes: self.resizes,
            replicas: &decision.replicas,
            per_vpa_config: self.with.recommender.parsed_flags.per_vpa_config,
            now: decision.at,
        }
    }

    /// Creates the VPA, or replaces all of it except its status.
    pub(super) fn set(&mut self, mut vpa: VerticalPodAutoscaler) {
        if let Some(before) = self.vpa.take() {
            vpa.status = before.status;
        }
        self.vpa = Some(vpa);
    }
}

impl WorldSimulation {
    /// Gives a new pod the recommended requests, if the VPA's mode permits it.
    pub(super) fn admit(&mut self, ordinal: u32, pod: &mut SimPod) {
        // Upstream: pkg/admission-controller/resource/vpa/matcher.go, GetMatchingVPA
        if self.is_target_deleted() {
            return;
        }
        let spec = self.templates.spec_of(pod).clone();
        let group = self.group_of(pod.revision);
        let Some(applied) = &mut self.vpa else { return };
        let Some(vpa) = &applied.vpa else { return };
        let new = admitted(vpa, &spec, &applied.limits);
        if let Some(decisions) = &mut applied.decisions {
            decisions.push(PodDecision {
                at: self.now,
                vpa: vpa.clone(),
                pods: vec![LivePod {
                    ordinal,
                    group,
                    spec: spec.clone(),
                    started: None,
                    oom_kills: BTreeMap::new(),
                }],
                replicas: BTreeMap::new(),
                made: VpaDecision::Admit(new.clone().map_or_else(|| spec.clone(), Arc::new)),
            });
        }
        let Some(new) = new else { return };
        applied.changes.push(PodChange {
            at: self.now,
            pod: pod.name.clone(),
            kind: PodChangeKind::Created,
            requests: requests(&new),
            why: None,
        });
        pod.admitted = Some(self.template_of(pod.revision, new));
    }

    /// The index of a template with these requests, which is created if necessary.
    fn template_of(&mut self, revision: u32, spec: PodSpec) -> usize {
        let known = self.templates.admitted.iter().position(|it| *it.spec == spec);
        known.unwrap_or_else(|| {
            let index = self.templates.admitted.len();
            let name: Arc<str> = format!("t{revision}-vpa{index}").into();
            let spec = Arc::new(spec);
            self.touched.templates.push(NewTemplate { name: name.clone(), spec: spec.clone() });
            self.templates.admitted.push(AdmittedTemplate { name, spec });
            index
        })
    }

    /// Records that a container of a pod was killed because of its memory.
    pub(super) fn oom_killed(&mut self, ordinal: u32, container: &Arc<str>, at: Time, age: Span) {
        if let Some(held) = &mut self.held_requests {
            held.oom_kills.push(at);
        }
        let Some(started) = self.pods.get(&ordinal).and_then(|pod| pod.started) else { return };
        let Some(applied) = &mut self.vpa else { return };
        let kills = applied.kills.entry(ordinal).or_default();
        // Kubernetes keeps these times in whole seconds.
        let finished_at = (at - age).truncate_to_second();
        let before = kills.get(container).map(|kill| kill.finished_at);
        let started_at = before.unwrap_or_else(|| started.truncate_to_second());
        kills.insert(container.clone(), KilledContainer { started_at, finished_at });
    }

    /// Runs the updater, if it is due.
    pub(super) fn update_pods(&mut self) {
        let now = self.now;
        let Some(applied) = &mut self.vpa else { return };
        if applied.due > now {
            return;
        }
        applied.due = now + applied.with.updater.updater_interval;
        let Some(vpa) = applied.vpa.clone() else { return };
        // Upstream: pkg/updater/logic/updater.go, RunOnce
        if self.is_target_deleted() {
            return;
        }
        let (pods, replicas) = (self.live_pods(), self.configured_replicas());
        let made = VpaDecision::Update(Vec::new());
        let mut decision = PodDecision { at: now, vpa, pods, replicas, made };
        let Some(applied) = &mut self.vpa else { return };
        let reasons = applied.updater(&decision).reasons(&decision.pods);
        let (vpa, limits) = (decision.vpa.clone(), applied.limits.clone());
        let updates: Vec<_> =
            reasons.iter().filter_map(|it| it.reason.as_ref().ok().cloned()).collect();
        let name = |reason: PodReason| Some((self.pods.get(&reason.ordinal)?.name.clone(), reason));
        let pods = reasons.into_iter().filter_map(name).collect();
        applied.last_report = Some(UpdaterReport { at: now, pods });
        if let Some(decisions) = &mut applied.decisions {
            let made = updates.iter().map(|(update, _)| *update).collect();
            decision.made = VpaDecision::Update(made);
            decisions.push(decision);
        }
        for (update, why) in updates {
            match update {
                PodUpdate::Evict(ordinal) => self.evict(ordinal, why),
                PodUpdate::InPlace(ordinal) => self.update_in_place(ordinal, &vpa, &limits, why),
            }
        }
        self.act_and_follow();
    }

    /// The pods that the updater sees, in the order of their creation: those of the workload that
    /// have not ended and are not being deleted. All pods are scheduled.
    ///
    /// Upstream: pkg/updater/main.go, newPodLister
    fn live_pods(&self) -> Vec<LivePod> {
        let kills = self.vpa.as_ref().map(|applied| &applied.kills);
        let is_live = |pod: &SimPod| !pod.deleted && pod.deletion.is_none() && pod.ended.is_none();
        let live = self.pods.iter().filter(|(_, pod)| is_live(pod));
        let pods = live.map(|(ordinal, pod)| LivePod {
            ordinal: *ordinal,
            group: self.group_of(pod.revision),
            spec: self.templates.spec_of(pod).clone(),
            started: pod.started.map(Time::truncate_to_second),
            oom_kills: kills.and_then(|kills| kills.get(ordinal)).cloned().unwrap_or_default(),
        });
        pods.collect()
    }

    /// The controller that creates pods of a revision: a Deployment has a ReplicaSet for each.
    fn group_of(&self, revision: u32) -> u32 {
        if self.scenario.workload.kind == "Deployment" { revision } else { 0 }
    }

    fn configured_replicas(&self) -> BTreeMap<u32, i64> {
        if let Some(Update::Rolling(rollout)) = &self.update {
            let mut replicas = BTreeMap::new();
            for set in &rollout.replica_sets {
                let desired = i64::try_from(set.desired).unwrap_or(i64::MAX);
                *replicas.entry(self.group_of(set.revision)).or_insert(0) += desired;
            }
            return replicas;
        }
        let newest = self.group_of(self.templates.revision());
        BTreeMap::from([(newest, i64::from(self.workload_replicas()))])
    }

    fn evict(&mut self, ordinal: u32, why: UpdateReason) {
        let (now, termination) = (self.now, self.scenario.workload.termination);
        let Some(name) = self.pods.get(&ordinal).map(|pod| pod.name.clone()) else { return };
        self.change(ordinal, |pod| pod.delete(now, termination));
        if let Some(applied) = &mut self.vpa {
            let (kind, requests, why) = (PodChangeKind::Evicted, Vec::new(), Some(why));
            applied.changes.push(PodChange { at: now, pod: name, kind, requests, why });
        }
    }

    /// Changes the requests of a running pod, immediately: the kubelet has room for them.
    fn update_in_place(
        &mut self,
        ordinal: u32,
        vpa: &VerticalPodAutoscaler,
        limits: &Limits,
        why: UpdateReason,
    ) {
        let Some(pod) = self.pods.get(&ordinal) else { return };
        let (name, revision) = (pod.name.clone(), pod.revision);
        let new = recommended(vpa, self.templates.spec_of(pod), limits);
        let change = PodChange {
            at: self.now,
            pod: name,
            kind: PodChangeKind::Updated,
            requests: requests(&new),
            why: Some(why),
        };
        let index = self.template_of(revision, new);
        self.change(ordinal, |pod| pod.admitted = Some(index));
        if let Some(applied) = &mut self.vpa {
            applied.changes.push(change);
        }
    }
}

fn requests(spec: &PodSpec) -> Vec<(Arc<str>, Requests)> {
    spec.containers.iter().map(|it| (it.name.clone(), it.requests.clone())).collect()
}
