//! The real updater and admission controller of a release of the Vertical Pod Autoscaler, in
//! virtual time. They check the decisions of their simulation.
//!
//! A small Go program (`upstream/updater`) hosts them. It is built and cached like the host of the
//! HPA controller, and runs in the same kind of process.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;
use super::build::{self, BuildOptions, Progress};
use super::objects::{
    Container, ObjectMetadata, Owner, PodObject, PodSpec, PodStatus, ReplicaSetObject,
    ReplicaSetSpec, Requests, Resources, Status,
};
use super::process::Process;
use kube_autoscaler_models::api;
use kube_autoscaler_models::api::CrossVersionObjectReference;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::{Time, rfc3339};
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::updater::{LivePod, PodUpdate};
use kube_autoscaler_models::vpa::{ObjectName, VerticalPodAutoscaler};
use kube_lockstep_sim::engine::updater::{
    PodRequests, UpdaterAnswer, UpdaterStep, VpaUpdater, requests_of,
};
use kube_lockstep_sim::engine::{Engine, EngineError, Session};
use kube_lockstep_sim::world::{ManagedPods, UpdaterSettings};

/// Builds the host of a release if necessary. Returns the program, or `None` for a release whose
/// sources are not Go modules.
///
/// # Errors
/// If there is no Go, or the build fails.
pub fn ensure(
    release: VpaRelease,
    options: impl Into<BuildOptions>,
    progress: Progress<'_>,
) -> Result<Option<PathBuf>, EngineError> {
    let is_supported = build::supports(Artifact::Updater, release);
    is_supported.then(|| build::ensure(Artifact::Updater, release, options, progress)).transpose()
}

/// The updater and the admission controller of one release.
#[derive(Clone, Debug)]
pub struct UpdaterHost {
    program: PathBuf,
    release: VpaRelease,
    limit: Duration,
}

impl UpdaterHost {
    /// Creates the engine for a program that [`ensure`] returned. `limit`: the timeout of each
    /// answer.
    #[must_use]
    pub fn new(program: PathBuf, release: VpaRelease, limit: Duration) -> UpdaterHost {
        UpdaterHost { program, release, limit }
    }
}

impl Engine<VpaUpdater> for UpdaterHost {
    fn name(&self) -> &str {
        Artifact::Updater.name()
    }

    fn release(&self) -> VpaRelease {
        self.release
    }

    fn open<'a>(
        &'a mut self,
        settings: &UpdaterSettings,
    ) -> Result<Box<dyn Session<VpaUpdater> + 'a>, EngineError> {
        let mut process = Process::start(&self.name().into(), &self.program, self.limit)?;
        let flags = Flags::new(settings);
        process.send(&Request::Open { flags, resizes: settings.resizes })?;
        Ok(Box::new(UpdaterSession { process, sent: VecDeque::new() }))
    }
}

/// A running updater. It ends with its process.
struct UpdaterSession {
    process: Process,
    /// The pods of the steps without an answer.
    sent: VecDeque<Vec<Vec<LivePod>>>,
}

impl Session<VpaUpdater> for UpdaterSession {
    fn send(&mut self, step: &UpdaterStep) -> Result<(), EngineError> {
        let now = match step {
            UpdaterStep::Run(now, _) => Some(*now),
            UpdaterStep::Admit(_) => None,
        };
        let cases = (0..).zip(step.pods()).map(|(number, of)| Case::new(number, of));
        self.process.send(&Request::Decide { now, cases: cases.collect() })?;
        self.sent.push_back(step.pods().iter().map(|of| of.pods.clone()).collect());
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<UpdaterAnswer>, EngineError> {
        let pods = self.sent.pop_front().unwrap_or_default();
        let answer: Answer = self
            .process
            .receive_as(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))?;
        let answers = answer.cases.into_iter().zip(&pods);
        let answers: Result<Vec<UpdaterAnswer>, String> =
            answers.map(|(answer, pods)| answer.about(pods)).collect();
        match answers {
            Ok(answers) if answers.len() == pods.len() => Ok(answers),
            Ok(_) => Err(self.process.broken("a workload has no answer")),
            Err(why) => Err(self.process.broken(&why)),
        }
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A line of the host's input.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Request<'a> {
    Open {
        flags: Flags,
        resizes: bool,
    },
    Decide {
        #[serde(with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
        now: Option<Time>,
        cases: Vec<Case<'a>>,
    },
}

/// The flags of the updater. Durations are in nanoseconds. Fractions are texts, because JSON has no
/// infinity.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Flags {
    min_replicas: i32,
    eviction_tolerance: String,
    pod_update_threshold: String,
    lifetime_threshold: i64,
    evict_after_oom_threshold: i64,
    skips_disruption_budget: bool,
    per_vpa_config: bool,
}

impl Flags {
    fn new(settings: &UpdaterSettings) -> Flags {
        let UpdaterSettings { flags, per_vpa_config, .. } = settings;
        Flags {
            min_replicas: flags.min_replicas,
            eviction_tolerance: flags.eviction_tolerance.to_string(),
            pod_update_threshold: flags.pod_update_threshold.to_string(),
            lifetime_threshold: flags.in_recommendation_bounds_eviction_lifetime_threshold.0,
            evict_after_oom_threshold: flags.evict_after_oom_threshold.0,
            skips_disruption_budget: flags.in_place_skip_disruption_budget,
            per_vpa_config: *per_vpa_config,
        }
    }
}

/// A workload in a namespace of its own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Case<'a> {
    vpa: VerticalPodAutoscaler,
    replica_sets: Vec<ReplicaSetObject<'a>>,
    pods: Vec<PodObject<'a>>,
}

/// The name of each workload, by which the host finds its pods.
const WORKLOAD: &str = "web";

impl<'a> Case<'a> {
    fn new(number: usize, of: &'a ManagedPods) -> Case<'a> {
        let namespace = format!("ns-{number}");
        let mut vpa = of.vpa.clone();
        vpa.metadata.name.namespace = namespace.as_str().into();
        vpa.spec.target_ref = CrossVersionObjectReference::new("apps/v1", "Deployment", WORKLOAD);
        let replica_sets = of.replicas.iter().map(|(group, replicas)| ReplicaSetObject {
            metadata: metadata(&namespace, replica_set(*group), None),
            spec: ReplicaSetSpec { replicas: *replicas },
        });
        let replica_sets = replica_sets.collect();
        let pods = of.pods.iter().map(|it| pod(&namespace, it, &of.limits)).collect();
        Case { vpa, replica_sets, pods }
    }
}

fn replica_set(group: u32) -> String {
    format!("set-{group}")
}

fn metadata<'a>(namespace: &str, name: String, owner: Option<Owner>) -> ObjectMetadata<'a> {
    ObjectMetadata {
        uid: Some(format!("{namespace}-{name}")),
        name: ObjectName::new(namespace, name),
        labels: Cow::Owned(BTreeMap::from([("app".to_owned(), WORKLOAD.to_owned())])),
        owner_references: owner.map(|owner| [owner]),
    }
}

fn pod<'a>(namespace: &str, pod: &'a LivePod, limits: &'a Limits) -> PodObject<'a> {
    let owner = Owner::replica_set(replica_set(pod.group));
    let containers = pod.spec.containers.iter().map(|container| Container {
        name: &container.name,
        resources: Some(Resources {
            requests: Requests::All(&container.requests),
            limits: limits.get(&container.name),
        }),
    });
    let killed = pod.oom_kills.iter().map(|(name, kill)| Status::from_kill(name, *kill));
    PodObject {
        metadata: metadata(namespace, format!("{WORKLOAD}-{}", pod.ordinal), Some(owner)),
        spec: PodSpec { containers: containers.collect(), init_containers: Vec::new() },
        status: PodStatus {
            phase: if pod.started.is_some() { "Running" } else { "Pending" },
            start_time: pod.started,
            container_statuses: killed.collect(),
        },
    }
}

/// A line of the host's output.
#[derive(Deserialize)]
struct Answer {
    cases: Vec<CaseAnswer>,
}

#[derive(Deserialize)]
struct CaseAnswer {
    updates: Option<Vec<Update>>,
    admissions: Option<Vec<Option<Vec<Patch>>>>,
}

/// A request of the updater.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Update {
    Evict(String),
    Resize { pod: String, patches: Vec<Patch> },
}

/// A change of an object.
#[derive(Deserialize)]
struct Patch {
    path: String,
    #[serde(default)]
    value: PatchValue,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum PatchValue {
    Text(String),
    /// For example an empty map of requests.
    Other(serde::de::IgnoredAny),
    #[default]
    Absent,
}

impl CaseAnswer {
    fn about(self, pods: &[LivePod]) -> Result<UpdaterAnswer, String> {
        let admissions = self.admissions.unwrap_or_default();
        if admissions.len() != pods.len() {
            return Err("a pod has no answer of the admission controller".to_owned());
        }
        let mut answer = UpdaterAnswer::default();
        for (patches, pod) in admissions.iter().zip(pods) {
            answer.admitted.push(patched(&pod.spec, patches.as_deref().unwrap_or_default())?);
        }
        for update in self.updates.unwrap_or_default() {
            match update {
                Update::Evict(name) => {
                    answer.updates.push(PodUpdate::Evict(pod_named(&name, pods)?.ordinal));
                }
                Update::Resize { pod: name, patches } => {
                    let pod = pod_named(&name, pods)?;
                    answer.updates.push(PodUpdate::InPlace(pod.ordinal));
                    let requests = patched(&pod.spec, &patches)?;
                    answer.updated_requests.insert(pod.ordinal, requests);
                }
            }
        }
        Ok(answer)
    }
}

fn pod_named<'p>(name: &str, pods: &'p [LivePod]) -> Result<&'p LivePod, String> {
    let ordinal = name.strip_prefix(WORKLOAD).and_then(|name| name.strip_prefix('-'));
    let ordinal = ordinal.and_then(|number| number.parse::<u32>().ok());
    let pod = pods.iter().find(|pod| Some(pod.ordinal) == ordinal);
    pod.ok_or_else(|| format!("it changes the pod {name}, which does not exist"))
}

/// The requests of a pod with patches of its containers' requests. Other patches are ignored.
fn patched(spec: &api::PodSpec, patches: &[Patch]) -> Result<PodRequests, String> {
    let mut requests = requests_of(spec);
    for Patch { path, value } in patches {
        let Some(rest) = path.strip_prefix("/spec/containers/") else { continue };
        let Some((container, resource)) = rest.split_once("/resources/requests/") else { continue };
        let container = container.parse().ok().and_then(|index: usize| requests.get_mut(index));
        let amount = match value {
            PatchValue::Text(text) => Quantity::parse(text).ok(),
            PatchValue::Other(_) | PatchValue::Absent => None,
        };
        match (container, amount) {
            (Some(container), Some(amount)) => container.insert(resource.into(), amount),
            _ => {
                return Err(format!("the patch of {path} has no matching container, or no amount"));
            }
        };
    }
    Ok(requests)
}
