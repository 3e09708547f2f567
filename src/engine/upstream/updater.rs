//! The real updater and admission controller of a release of the Vertical Pod Autoscaler, in
//! virtual time. They check the decisions of their simulation.
//!
//! A small Go program (`upstream/updater`) hosts them. It is built and cached like the host of the
//! HPA controller, and runs in the same kind of process.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::artifact::Artifact;
use super::process::{Process, TIME_LIMIT};
use crate::engine::updater::{PodDecisions, RequestTexts, request_texts};
use crate::engine::{EngineError, UpdaterEngine};
use crate::model::api::{PodSpec, Requests};
use crate::model::time::{Span, Time, rfc3339};
use crate::model::vpa::admission::Limits;
use crate::model::vpa::updater::{KilledContainer, LivePod, PodUpdate, Updater, UpdaterFlags};
use crate::model::vpa::{TargetRef, VerticalPodAutoscaler};

/// The updater and the admission controller of one release.
#[derive(Debug)]
pub struct UpdaterHost {
    process: Process,
}

impl UpdaterHost {
    /// Starts a program of [`Artifact::Updater`].
    ///
    /// # Errors
    /// If the program can't be started.
    pub fn start(program: &Path) -> Result<UpdaterHost, EngineError> {
        let name = Artifact::Updater.name().into();
        Ok(UpdaterHost { process: Process::start(&name, program, TIME_LIMIT)? })
    }
}

impl UpdaterEngine for UpdaterHost {
    fn decide(
        &mut self,
        runs: &[(Updater<'_>, &[LivePod])],
    ) -> Result<Vec<PodDecisions>, EngineError> {
        let Some((first, _)) = runs.first() else { return Ok(Vec::new()) };
        self.process.send(&Request {
            now: first.now,
            flags: Flags::of(first.flags, first.per_vpa_config),
            resizes: first.resizes,
            cases: (0..)
                .zip(runs)
                .map(|(number, (run, pods))| Case::of(number, run, pods))
                .collect(),
        })?;
        let answer: Answer = self
            .process
            .receive_as(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))?;
        let answers = answer.cases.into_iter().zip(runs);
        let decisions = answers.map(|(answer, (_, pods))| answer.decisions(pods));
        let decisions: Result<Vec<PodDecisions>, String> = decisions.collect();
        match decisions {
            Ok(decisions) if decisions.len() == runs.len() => Ok(decisions),
            Ok(_) => Err(self.process.broken("a workload has no answer")),
            Err(why) => Err(self.process.broken(&why)),
        }
    }
}

/// A line of the host's input.
#[derive(Serialize)]
struct Request<'a> {
    #[serde(with = "rfc3339")]
    now: Time,
    flags: Flags,
    resizes: bool,
    cases: Vec<Case<'a>>,
}

/// The flags of the updater. Times are in seconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Flags {
    min_replicas: i32,
    eviction_tolerance: f64,
    pod_update_threshold: f64,
    lifetime_threshold: i64,
    evict_after_oom_threshold: i64,
    skips_disruption_budget: bool,
    per_vpa_config: bool,
}

impl Flags {
    fn of(flags: &UpdaterFlags, per_vpa_config: bool) -> Flags {
        let seconds = |span: Span| span.0 / Span::from_secs(1).0;
        Flags {
            min_replicas: flags.min_replicas,
            eviction_tolerance: flags.eviction_tolerance,
            pod_update_threshold: flags.pod_update_threshold,
            lifetime_threshold: seconds(flags.in_recommendation_bounds_eviction_lifetime_threshold),
            evict_after_oom_threshold: seconds(flags.evict_after_oom_threshold),
            skips_disruption_budget: flags.in_place_skip_disruption_budget,
            per_vpa_config,
        }
    }
}

/// A workload in a namespace of its own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Case<'a> {
    vpa: VerticalPodAutoscaler,
    replica_sets: Vec<ReplicaSet>,
    pods: Vec<Pod<'a>>,
}

#[derive(Serialize)]
struct ReplicaSet {
    metadata: Metadata,
    spec: ReplicaSetSpec,
}

#[derive(Serialize)]
struct ReplicaSetSpec {
    replicas: i64,
}

/// The metadata of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    labels: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<[Owner; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: &'static str,
    kind: &'static str,
    name: String,
    uid: &'static str,
    controller: bool,
}

#[derive(Serialize)]
struct Pod<'a> {
    metadata: Metadata,
    spec: Spec<'a>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    containers: Vec<Container<'a>>,
}

#[derive(Serialize)]
struct Container<'a> {
    name: &'a str,
    resources: Resources<'a>,
}

#[derive(Serialize)]
struct Resources<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    requests: &'a Requests,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Requests>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    phase: &'static str,
    #[serde(with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
    start_time: Option<Time>,
    container_statuses: Vec<ContainerStatus<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus<'a> {
    name: &'a str,
    last_state: LastState,
}

#[derive(Serialize)]
struct LastState {
    terminated: Terminated,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    reason: &'static str,
    exit_code: i32,
    #[serde(with = "rfc3339")]
    started_at: Time,
    #[serde(with = "rfc3339")]
    finished_at: Time,
}

/// The name of each workload, by which the host finds its pods.
const WORKLOAD: &str = "web";

impl<'a> Case<'a> {
    fn of(number: usize, run: &Updater<'a>, pods: &'a [LivePod]) -> Case<'a> {
        let namespace = format!("ns-{number}");
        let mut vpa = run.vpa.clone();
        vpa.metadata.name.namespace = namespace.as_str().into();
        vpa.spec.target_ref = TargetRef {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: WORKLOAD.to_owned(),
        };
        let replica_sets = run.replicas.iter().map(|(group, replicas)| ReplicaSet {
            metadata: Metadata::of(&namespace, replica_set(*group), None),
            spec: ReplicaSetSpec { replicas: *replicas },
        });
        let replica_sets = replica_sets.collect();
        let pods = pods.iter().map(|pod| Pod::of(&namespace, pod, run.limits)).collect();
        Case { vpa, replica_sets, pods }
    }
}

fn replica_set(group: u32) -> String {
    format!("set-{group}")
}

impl Metadata {
    fn of(namespace: &str, name: String, owner: Option<Owner>) -> Metadata {
        Metadata {
            uid: format!("{namespace}-{name}"),
            namespace: namespace.to_owned(),
            name,
            labels: BTreeMap::from([("app", WORKLOAD)]),
            owner_references: owner.map(|owner| [owner]),
        }
    }
}

impl<'a> Pod<'a> {
    fn of(namespace: &str, pod: &'a LivePod, limits: &'a Limits) -> Pod<'a> {
        let owner = Owner {
            api_version: "apps/v1",
            kind: "ReplicaSet",
            name: replica_set(pod.group),
            uid: "",
            controller: true,
        };
        let containers = pod.spec.containers.iter().map(|container| Container {
            name: &container.name,
            resources: Resources {
                requests: &container.requests,
                limits: limits.get(&container.name),
            },
        });
        let killed = pod.oom_kills.iter().map(|(name, kill)| ContainerStatus::of(name, *kill));
        Pod {
            metadata: Metadata::of(namespace, format!("{WORKLOAD}-{}", pod.ordinal), Some(owner)),
            spec: Spec { containers: containers.collect() },
            status: Status {
                phase: if pod.started.is_some() { "Running" } else { "Pending" },
                start_time: pod.started,
                container_statuses: killed.collect(),
            },
        }
    }
}

impl<'a> ContainerStatus<'a> {
    fn of(name: &'a str, kill: KilledContainer) -> ContainerStatus<'a> {
        let terminated = Terminated {
            reason: "OOMKilled",
            exit_code: 137,
            started_at: kill.started_at,
            finished_at: kill.finished_at,
        };
        ContainerStatus { name, last_state: LastState { terminated } }
    }
}

/// A line of the host's output.
#[derive(Deserialize)]
struct Answer {
    cases: Vec<CaseAnswer>,
}

#[derive(Deserialize)]
struct CaseAnswer {
    #[serde(default)]
    updates: Option<Vec<Update>>,
    admissions: Vec<Option<Vec<Patch>>>,
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
    value: Value,
}

/// The value of a patch.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Value {
    Text(String),
    /// For example an empty map of requests.
    Other(serde::de::IgnoredAny),
    #[default]
    Absent,
}

impl CaseAnswer {
    fn decisions(self, pods: &[LivePod]) -> Result<PodDecisions, String> {
        if self.admissions.len() != pods.len() {
            return Err("a pod has no answer of the admission controller".to_owned());
        }
        let mut decisions = PodDecisions::default();
        for (patches, pod) in self.admissions.iter().zip(pods) {
            decisions.admitted.push(patched(&pod.spec, patches.as_deref().unwrap_or_default())?);
        }
        for update in self.updates.unwrap_or_default() {
            match update {
                Update::Evict(name) => {
                    decisions.updates.push(PodUpdate::Evict(pod_named(&name, pods)?.ordinal));
                }
                Update::Resize { pod: name, patches } => {
                    let pod = pod_named(&name, pods)?;
                    decisions.updates.push(PodUpdate::InPlace(pod.ordinal));
                    let requests = patched(&pod.spec, &patches)?;
                    decisions.updated_requests.insert(pod.ordinal, requests);
                }
            }
        }
        Ok(decisions)
    }
}

fn pod_named<'p>(name: &str, pods: &'p [LivePod]) -> Result<&'p LivePod, String> {
    let ordinal = name.strip_prefix(WORKLOAD).and_then(|name| name.strip_prefix('-'));
    let ordinal = ordinal.and_then(|number| number.parse::<u32>().ok());
    let pod = pods.iter().find(|pod| Some(pod.ordinal) == ordinal);
    pod.ok_or_else(|| format!("it changes the pod {name}, which does not exist"))
}

/// The requests of a pod with patches of its containers' requests. Other patches are ignored.
fn patched(spec: &PodSpec, patches: &[Patch]) -> Result<RequestTexts, String> {
    let mut requests = request_texts(spec);
    for Patch { path, value } in patches {
        let Some(rest) = path.strip_prefix("/spec/containers/") else { continue };
        let Some((container, resource)) = rest.split_once("/resources/requests/") else { continue };
        let container = container.parse().ok().and_then(|index: usize| requests.get_mut(index));
        match (container, value) {
            (Some(container), Value::Text(amount)) => {
                container.insert(resource.to_owned(), amount.clone());
            }
            _ => return Err(format!("it patches {path} without a container or an amount")),
        }
    }
    Ok(requests)
}
