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
    KilledContainer, LivePod, PodReason, PodUpdate, Updater, UpdaterFlags,
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

/// The settings of the updater.
#[derive(Clone, PartialEq, Debug)]
pub struct UpdaterSettings {
    /// The flags.
    pub flags: UpdaterFlags,
    /// True if the feature gate `PerVPAConfig` is on.
    pub per_vpa_config: bool,
    /// True if the API server can resize running pods. Otherwise the updater evicts them.
    pub resizes: bool,
}

impl UpdaterSettings {
    /// The updater in a run at a time.
    #[must_use]
    pub fn updater<'a>(&'a self, of: &'a ManagedPods, now: Time) -> Updater<'a> {
        Updater {
            vpa: &of.vpa,
            flags: &self.flags,
            limits: &of.limits,
            resizes: self.resizes,
            replicas: &of.replicas,
            per_vpa_config: self.per_vpa_config,
            now,
        }
    }
}

/// The pods of a VPA, with all else on which the decisions of the updater and the admission
/// controller about them depend.
#[derive(Clone, Debug)]
pub struct ManagedPods {
    /// The VPA with its status.
    pub vpa: VerticalPodAutoscaler,
    /// The limits of the containers.
    pub limits: Arc<Limits>,
    /// The pods, in the order of the list that the updater receives.
    pub pods: Vec<LivePod>,
    /// The configured replicas of each controller, by [`LivePod::group`].
    pub replicas: BTreeMap<u32, i64>,
}

/// A decision of the simulated admission controller.
#[derive(Clone, Debug)]
pub struct AdmittedPod {
    /// The time.
    pub at: Time,
    /// The new pod.
    pub pod: ManagedPods,
    /// The spec that it gets.
    pub spec: Arc<PodSpec>,
}

/// A change of a pod by the updater.
#[derive(Clone, Debug)]
pub struct UpdatedPod {
    /// The number of the pod.
    pub ordinal: u32,
    /// The spec with its new requests. None: it is evicted.
    pub spec: Option<PodSpec>,
    /// The reason, if the model knows it.
    pub why: Option<UpdateReason>,
}

impl UpdatedPod {
    /// The kind of change.
    #[must_use]
    pub fn update(&self) -> PodUpdate {
        match self.spec {
            None => PodUpdate::Evict(self.ordinal),
            Some(_) => PodUpdate::InPlace(self.ordinal),
        }
    }
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
    /// The VPA with its status; None while it is deleted.
    pub vpa: Option<VerticalPodAutoscaler>,
    /// The last OOM kill of each container, by the pod's ordinal and the container's name.
    kills: BTreeMap<u32, BTreeMap<Arc<str>, KilledContainer>>,
    /// The changes of pods so far.
    pub changes: Vec<PodChange>,
    /// The last run of the updater.
    pub(super) last_report: Option<UpdaterReport>,
    /// The decisions of the admission controller that have not been taken, if they are kept.
    pub admissions: Option<Vec<AdmittedPod>>,
    /// The time of the next run of the updater.
    pub due: Time,
    limits: Arc<Limits>,
    pub settings: Arc<UpdaterSettings>,
}

impl AppliedVpa {
    pub(super) fn new(with: &Arc<WithVpa>) -> AppliedVpa {
        AppliedVpa {
            vpa: with.recommender.vpas.first().cloned(),
            kills: BTreeMap::new(),
            changes: Vec::new(),
            last_report: None,
            admissions: None,
            due: Time::ZERO + with.updater.updater_interval,
            limits: Arc::new(with.limits()),
            settings: Arc::new(UpdaterSettings {
                flags: with.updater.clone(),
                per_vpa_config: with.recommender.parsed_flags.per_vpa_config,
                resizes: true,
            }),
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
        if let Some(admissions) = &mut applied.admissions {
            let oom_kills = BTreeMap::new();
            let new_pod = LivePod { ordinal, group, spec: spec.clone(), started: None, oom_kills };
            admissions.push(AdmittedPod {
                at: self.now,
                pod: ManagedPods {
                    vpa: vpa.clone(),
                    limits: applied.limits.clone(),
                    pods: vec![new_pod],
                    replicas: BTreeMap::new(),
                },
                spec: new.clone().map_or_else(|| spec.clone(), Arc::new),
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

    /// The pods that a run of the updater sees, if a run is due. None: there is nothing to update.
    pub(super) fn due_update(&mut self) -> Option<ManagedPods> {
        let applied = self.vpa.as_mut().filter(|applied| applied.due <= self.now)?;
        applied.due = self.now + applied.settings.flags.updater_interval;
        let (vpa, limits) = (applied.vpa.clone()?, applied.limits.clone());
        // Upstream: pkg/updater/logic/updater.go, RunOnce
        if self.is_target_deleted() {
            return None;
        }
        let (pods, replicas) = (self.live_pods(), self.configured_replicas());
        Some(ManagedPods { vpa, limits, pods, replicas })
    }

    /// What the simulated updater does with these pods now. Keeps the report of the run.
    pub(super) fn decide_updates(&mut self, of: &ManagedPods) -> Vec<UpdatedPod> {
        let now = self.now;
        let Some(applied) = &mut self.vpa else { return Vec::new() };
        let reasons = applied.settings.updater(of, now).reasons(&of.pods);
        let updated = |it: &PodReason| {
            let (update, why) = it.reason.as_ref().ok()?;
            let spec = match update {
                PodUpdate::Evict(_) => None,
                PodUpdate::InPlace(ordinal) => {
                    let pod = of.pods.iter().find(|pod| pod.ordinal == *ordinal)?;
                    Some(recommended(&of.vpa, &pod.spec, &of.limits))
                }
            };
            Some(UpdatedPod { ordinal: it.ordinal, spec, why: Some(why.clone()) })
        };
        let updates = reasons.iter().filter_map(updated).collect();
        let name = |reason: PodReason| Some((self.pods.get(&reason.ordinal)?.name.clone(), reason));
        let pods = reasons.into_iter().filter_map(name).collect();
        applied.last_report = Some(UpdaterReport { at: now, pods });
        updates
    }

    /// Changes pods as the updater does, in this order.
    pub(super) fn update_pods(&mut self, updates: Vec<UpdatedPod>) {
        for UpdatedPod { ordinal, spec, why } in updates {
            match spec {
                None => self.evict(ordinal, why),
                Some(spec) => self.set_requests(ordinal, spec, PodChangeKind::Updated, why),
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

    fn evict(&mut self, ordinal: u32, why: Option<UpdateReason>) {
        let (now, termination) = (self.now, self.scenario.workload.termination);
        let Some(name) = self.pods.get(&ordinal).map(|pod| pod.name.clone()) else { return };
        self.change(ordinal, |pod| pod.delete(now, termination));
        if let Some(applied) = &mut self.vpa {
            let (kind, requests) = (PodChangeKind::Evicted, Vec::new());
            applied.changes.push(PodChange { at: now, pod: name, kind, requests, why });
        }
    }

    /// Changes the requests of a pod, immediately: the kubelet has room for them.
    pub(super) fn set_requests(
        &mut self,
        ordinal: u32,
        spec: PodSpec,
        kind: PodChangeKind,
        why: Option<UpdateReason>,
    ) {
        let Some(pod) = self.pods.get(&ordinal) else { return };
        let (pod, revision) = (pod.name.clone(), pod.revision);
        let change = PodChange { at: self.now, pod, kind, requests: requests(&spec), why };
        let index = self.template_of(revision, spec);
        self.change(ordinal, |pod| pod.admitted = Some(index));
        if let Some(applied) = &mut self.vpa {
            applied.changes.push(change);
        }
    }
}

fn requests(spec: &PodSpec) -> Vec<(Arc<str>, Requests)> {
    spec.containers.iter().map(|it| (it.name.clone(), it.requests.clone())).collect()
}
