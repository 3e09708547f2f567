//! The protocol of the recommender's host (`docs/vpa.md`): the JSON forms of the cluster and of the
//! recommender's requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::time::Time;
use crate::model::vpa::{
    Checkpoint, CheckpointSpec, CheckpointStatus, ClusterChange, ContainerState, ContainerStatus,
    LogLine, ObjectName, ObservedOom, Pod, PodHistory, PodMetrics, Run, RunAt, Start, Stepped,
    Target, Terminated, VpaStatus, Write,
};

/// The version of the protocol that this program speaks.
pub(super) const PROTOCOL: u32 = 1;

/// A line that this program writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Request {
    Open(Value),
    Step(Value),
    Close {},
}

/// A line that the host writes.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Hello { protocol: u32, release: String },
    Opened { log: Vec<LogJson> },
    Stepped(SteppedJson),
    Closed {},
    Failed { why: String },
}

#[derive(Deserialize, Debug)]
pub(super) struct LogJson {
    message: String,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct SteppedJson {
    pub(super) now: Time,
    runs: Vec<RunJson>,
    log: Vec<LogJson>,
}

#[derive(Deserialize, Debug)]
struct RunJson {
    at: Time,
    writes: Vec<WriteJson>,
    log: Vec<LogJson>,
}

#[derive(Deserialize, Debug)]
struct WriteJson {
    namespace: String,
    name: String,
    #[serde(default)]
    status: Option<VpaStatus>,
    #[serde(default)]
    checkpoint: Option<CheckpointStatus>,
    #[serde(default)]
    spec: Option<CheckpointSpec>,
    #[serde(default)]
    deleted: bool,
}

/// The start of a message about a metric of the recommender that has no value. Up to 1.2, it is a
/// warning like those about errors; later, it has no error and is not recorded.
const NO_COMPARISON: &str = "Cannot compare as old recommendation";

/// The lines of a log, in the order of their texts: the order of samples is random upstream.
pub(super) fn log_lines(lines: Vec<LogJson>) -> Vec<LogLine> {
    let lines = lines.into_iter().filter(|line| !line.message.starts_with(NO_COMPARISON));
    lines.map(|line| LogLine { message: line.message.into(), error: line.error }).collect()
}

impl SteppedJson {
    /// The runs of a step. A checkpoint without a specification was not created: it keeps the
    /// specification that `spec_of` returns.
    pub(super) fn into_stepped(
        self,
        spec_of: &mut BTreeMap<ObjectName, CheckpointSpec>,
    ) -> Result<Stepped, String> {
        let mut runs = Vec::new();
        for run in self.runs {
            let writes = run.writes.into_iter().map(|write| write.into_write(spec_of));
            let writes = writes.collect::<Result<_, String>>()?;
            runs.push(RunAt {
                at: run.at,
                run: Run { writes, log: log_lines(run.log), is_undetermined: false },
            });
        }
        Ok(Stepped { runs, log: log_lines(self.log) })
    }
}

impl WriteJson {
    fn into_write(
        self,
        spec_of: &mut BTreeMap<ObjectName, CheckpointSpec>,
    ) -> Result<Write, String> {
        let name = ObjectName::new(self.namespace, self.name);
        match (self.status, self.checkpoint) {
            (Some(mut status), None) => {
                // In old releases, the order is random.
                if let Some(recommendation) = &mut status.recommendation {
                    let containers = &mut recommendation.container_recommendations;
                    containers.sort_by(|a, b| a.container_name.cmp(&b.container_name));
                }
                Ok(Write::Status { vpa: name, status })
            }
            (None, Some(status)) => {
                let is_new = self.spec.is_some();
                if let Some(spec) = self.spec {
                    spec_of.insert(name.clone(), spec);
                }
                let spec = spec_of.get(&name).cloned();
                let spec = spec.ok_or_else(|| format!("it wrote the unknown checkpoint {name}"))?;
                let checkpoint = Arc::new(Checkpoint { metadata: name, spec, status });
                Ok(Write::Checkpoint { checkpoint, is_new, memory_tolerance: 0.0 })
            }
            (None, None) if self.deleted => Ok(Write::DeleteCheckpoint(name)),
            _ => Err(format!("it wrote {name} without a known content")),
        }
    }
}

/// The request that opens a scenario.
pub(super) fn open(scenario: &str, start: &Start, flags: &BTreeMap<String, String>) -> Request {
    Request::Open(json!({
        "scenario": scenario,
        "start": start.at.unix(),
        "flags": flags,
        "apply": start.objects.iter().map(change).collect::<Vec<_>>(),
        "history": start.history.iter().map(history).collect::<Vec<_>>(),
    }))
}

/// The request for a step.
pub(super) fn step(changes: &[ClusterChange], until: Time) -> Request {
    let apply: Vec<Value> = changes.iter().map(change).collect();
    Request::Step(json!({ "apply": apply, "until": until }))
}

fn change(change: &ClusterChange) -> Value {
    match change {
        ClusterChange::SetVpa(vpa) => json!({ "setVpa": vpa }),
        ClusterChange::DeleteVpa(name) => json!({ "deleteVpa": name }),
        ClusterChange::SetPod(it) => json!({ "setPod": pod(it) }),
        ClusterChange::DeletePod(name) => json!({ "deletePod": name }),
        ClusterChange::SetCheckpoint(checkpoint) => json!({ "setCheckpoint": checkpoint }),
        ClusterChange::DeleteCheckpoint(name) => json!({ "deleteCheckpoint": name }),
        ClusterChange::SetTarget(it) => json!({ "setTarget": target(it) }),
        ClusterChange::DeleteTarget(it) => json!({ "deleteTarget": target_key(it) }),
        ClusterChange::Evict(oom) => json!({ "event": eviction(oom) }),
        ClusterChange::SetMetrics(Ok(items)) => {
            let items: Vec<Value> = items.iter().map(metrics).collect();
            json!({ "setMetrics": { "items": items } })
        }
        ClusterChange::SetMetrics(Err(error)) => json!({ "setMetrics": { "error": error } }),
        ClusterChange::Restart => json!({ "restart": {} }),
    }
}

fn target_key(target: &Target) -> Value {
    let reference = &target.reference;
    json!({
        "namespace": target.namespace, "apiVersion": reference.api_version,
        "kind": reference.kind, "name": reference.name,
    })
}

fn target(target: &Target) -> Value {
    let mut value = target_key(target);
    value["selector"] = target.selector.to_string().into();
    if let Some(error) = &target.error {
        value["error"] = error.as_str().into();
    }
    if target.has_parent {
        value["parent"] = target_key(target);
        value["parent"]["name"] = "parent".into();
    }
    value
}

fn metrics(item: &PodMetrics) -> Value {
    let containers = item.containers.iter().map(|usage| {
        json!({
            "name": usage.container,
            "cpu": usage.cpu.map_or_else(String::new, |millicores| format!("{millicores}m")),
            "memory": usage.memory.map_or_else(String::new, |bytes| bytes.to_string()),
        })
    });
    json!({
        "namespace": item.pod.namespace, "name": item.pod.name,
        "timestamp": item.timestamp.unix(), "containers": containers.collect::<Vec<_>>(),
    })
}

fn history(pod: &PodHistory) -> Value {
    let mut containers = BTreeMap::<&str, Vec<Value>>::new();
    for sample in &pod.samples {
        let samples = containers.entry(&sample.usage.container).or_default();
        let usage = [("cpu", sample.usage.cpu), ("memory", sample.usage.memory)];
        for (resource, usage) in usage {
            let Some(usage) = usage else { continue };
            let at = sample.at.unix();
            samples.push(json!({ "at": at, "resource": resource, "usage": usage }));
        }
    }
    let (name, labels) = (&pod.pod, pod.labels.map());
    json!({
        "namespace": name.namespace, "name": name.name,
        "labels": labels, "containers": containers,
    })
}

/// The event by which the kubelet reports an eviction.
pub(crate) fn eviction(oom: &ObservedOom) -> Value {
    let ObjectName { namespace, name } = &oom.pod;
    json!({
        "reason": "Evicted",
        "metadata": {
            "namespace": namespace,
            "creationTimestamp": oom.kill.at.to_string(),
            "annotations": {
                "offending_containers": oom.container,
                "offending_containers_usage": oom.kill.requested.to_string(),
                "starved_resource": "memory",
            },
        },
        "involvedObject": { "kind": "Pod", "namespace": namespace, "name": name },
    })
}

/// The pod as the API has it.
pub(crate) fn pod(pod: &Pod) -> Value {
    let container = |name: &str| json!({ "name": name });
    let containers = pod.containers.iter().map(|it| {
        let mut value = container(&it.name);
        if it.memory_request != 0 {
            let memory = it.memory_request.to_string();
            value["resources"] = json!({ "requests": { "memory": memory } });
        }
        value
    });
    json!({
        "metadata": {
            "namespace": pod.name.namespace, "name": pod.name.name, "labels": pod.labels.map(),
        },
        "spec": {
            "containers": containers.collect::<Vec<_>>(),
            "initContainers":
                pod.init_containers.iter().map(|name| container(name)).collect::<Vec<_>>(),
        },
        "status": {
            "phase": pod.phase.name(),
            "containerStatuses": pod.statuses.iter().map(status).collect::<Vec<_>>(),
        },
    })
}

fn status(status: &ContainerStatus) -> Value {
    let terminated = |it: &Terminated| {
        let finished_at = it.finished_at.to_string();
        json!({ "terminated": { "reason": it.reason, "finishedAt": finished_at } })
    };
    let state = match &status.state {
        ContainerState::Waiting => json!({ "waiting": {} }),
        ContainerState::Running => json!({ "running": {} }),
        ContainerState::Terminated(it) => terminated(it),
    };
    let mut value = json!({
        "name": status.name, "restartCount": status.restart_count, "state": state,
    });
    if let Some(last) = &status.last_terminated {
        value["lastState"] = terminated(last);
    }
    if let Some(memory) = status.memory_request {
        value["resources"] = json!({ "requests": { "memory": memory.to_string() } });
    }
    value
}
