//! The protocol of the recommender's host (`docs/vpa.md`): the JSON forms of the cluster and of the
//! recommender's requests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::upstream::objects::{EvictionEvent, PodObject};
use kube_autoscaler_models::api::CrossVersionObjectReference;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    Checkpoint, CheckpointSpec, CheckpointStatus, ClusterChange, HistorySample, LogLine,
    ObjectName, PodHistory, PodMetrics, Run, RunAt, Start, Stepped, Target, Tolerances,
    VerticalPodAutoscaler, VpaStatus, Write,
};

/// The version of the protocol that this program speaks.
pub(super) const PROTOCOL: u32 = 1;

/// A line that this program writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Request<'a> {
    Open(Open<'a>),
    Step(Step<'a>),
    Close {},
}

/// A line that the host writes.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Hello { protocol: u32, release: String },
    Opened { log: Vec<LogLine> },
    Stepped(SteppedJson),
    Closed {},
    Failed { why: String },
}

#[derive(Deserialize, Debug)]
pub(super) struct SteppedJson {
    pub now: Time,
    runs: Vec<RunJson>,
    log: Vec<LogLine>,
}

#[derive(Deserialize, Debug)]
struct RunJson {
    at: Time,
    writes: Vec<WriteJson>,
    log: Vec<LogLine>,
}

#[derive(Deserialize, Debug)]
struct WriteJson {
    #[serde(flatten)]
    name: ObjectName,
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

/// The lines of a log that are recorded.
pub(super) fn log_lines(mut lines: Vec<LogLine>) -> Vec<LogLine> {
    lines.retain(|line| !line.message.starts_with(NO_COMPARISON));
    lines
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
        let name = self.name;
        match (self.status, self.checkpoint) {
            (Some(status), None) => Ok(Write::observed_status(name, status)),
            (None, Some(status)) => {
                let is_new = self.spec.is_some();
                if let Some(spec) = self.spec {
                    spec_of.insert(name.clone(), spec);
                }
                let spec = spec_of.get(&name).cloned();
                let spec = spec.ok_or_else(|| format!("it wrote the unknown checkpoint {name}"))?;
                let checkpoint = Arc::new(Checkpoint { metadata: name, spec, status });
                Ok(Write::Checkpoint { checkpoint, is_new, tolerances: Tolerances::default() })
            }
            (None, None) if self.deleted => Ok(Write::DeleteCheckpoint(name)),
            _ => Err(format!("it wrote {name} without a known content")),
        }
    }
}

/// The start of a scenario.
#[derive(Serialize)]
pub(super) struct Open<'a> {
    scenario: &'a str,
    /// In seconds of Unix time.
    start: i64,
    flags: &'a BTreeMap<String, String>,
    apply: Vec<SentChange<'a>>,
    history: Vec<History<'a>>,
}

impl<'a> Open<'a> {
    /// `flags`: those of the recommender, by their upstream names.
    pub(super) fn new(
        scenario: &'a str,
        start: &'a Start,
        flags: &'a BTreeMap<String, String>,
    ) -> Open<'a> {
        Open {
            scenario,
            start: start.at.unix(),
            flags,
            apply: start.objects.iter().map(SentChange::from).collect(),
            history: start.history.iter().map(History::from).collect(),
        }
    }
}

/// Changes, then the time until the end of the step.
#[derive(Serialize)]
pub(super) struct Step<'a> {
    apply: Vec<SentChange<'a>>,
    until: Time,
}

impl<'a> Step<'a> {
    pub(super) fn new(changes: &'a [ClusterChange], until: Time) -> Step<'a> {
        Step { apply: changes.iter().map(SentChange::from).collect(), until }
    }
}

/// A change of the cluster: objects of the API, and the responses of other servers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum SentChange<'a> {
    SetVpa(&'a VerticalPodAutoscaler),
    DeleteVpa(&'a ObjectName),
    SetPod(PodObject<'a>),
    DeletePod(&'a ObjectName),
    SetCheckpoint(&'a Checkpoint),
    DeleteCheckpoint(&'a ObjectName),
    SetTarget(TargetObject<'a>),
    DeleteTarget(TargetKey<'a>),
    Event(EvictionEvent<'a>),
    SetMetrics(MetricsResponse<'a>),
    Restart {},
}

impl<'a> From<&'a ClusterChange> for SentChange<'a> {
    fn from(change: &'a ClusterChange) -> SentChange<'a> {
        match change {
            ClusterChange::SetVpa(vpa) => SentChange::SetVpa(vpa),
            ClusterChange::DeleteVpa(name) => SentChange::DeleteVpa(name),
            ClusterChange::SetPod(pod) => SentChange::SetPod(pod.into()),
            ClusterChange::DeletePod(name) => SentChange::DeletePod(name),
            ClusterChange::SetCheckpoint(checkpoint) => SentChange::SetCheckpoint(checkpoint),
            ClusterChange::DeleteCheckpoint(name) => SentChange::DeleteCheckpoint(name),
            ClusterChange::SetTarget(target) => SentChange::SetTarget(target.into()),
            ClusterChange::DeleteTarget(target) => SentChange::DeleteTarget(target.into()),
            ClusterChange::Evict(oom) => SentChange::Event(oom.into()),
            ClusterChange::SetMetrics(Ok(items)) => {
                let items = items.iter().map(MetricsItem::from);
                SentChange::SetMetrics(MetricsResponse::Items(items.collect()))
            }
            ClusterChange::SetMetrics(Err(error)) => {
                SentChange::SetMetrics(MetricsResponse::Error(error))
            }
            ClusterChange::Restart => SentChange::Restart {},
        }
    }
}

/// Namespace, version, kind and name of a target.
#[derive(Serialize)]
struct TargetKey<'a> {
    namespace: &'a str,
    #[serde(flatten)]
    reference: Cow<'a, CrossVersionObjectReference>,
}

impl<'a> From<&'a Target> for TargetKey<'a> {
    fn from(target: &'a Target) -> TargetKey<'a> {
        TargetKey { namespace: &target.namespace, reference: Cow::Borrowed(&target.reference) }
    }
}

/// A target of VPAs.
#[derive(Serialize)]
struct TargetObject<'a> {
    #[serde(flatten)]
    key: TargetKey<'a>,
    selector: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<TargetKey<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> From<&'a Target> for TargetObject<'a> {
    fn from(target: &'a Target) -> TargetObject<'a> {
        let parent = target.has_parent.then(|| {
            let name = "parent".into();
            let reference = CrossVersionObjectReference { name, ..target.reference.clone() };
            TargetKey { namespace: &target.namespace, reference: Cow::Owned(reference) }
        });
        TargetObject {
            key: target.into(),
            selector: target.selector.to_string(),
            parent,
            error: target.error.as_deref(),
        }
    }
}

/// A response of the resource metrics API.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum MetricsResponse<'a> {
    Items(Vec<MetricsItem<'a>>),
    Error(&'a str),
}

/// The usage of a pod.
#[derive(Serialize)]
struct MetricsItem<'a> {
    #[serde(flatten)]
    pod: &'a ObjectName,
    /// In seconds of Unix time.
    timestamp: i64,
    containers: Vec<ContainerItem<'a>>,
}

/// The usage of a container, in quantities; empty without usage.
#[derive(Serialize)]
struct ContainerItem<'a> {
    name: &'a str,
    cpu: String,
    memory: String,
}

impl<'a> From<&'a PodMetrics> for MetricsItem<'a> {
    fn from(item: &'a PodMetrics) -> MetricsItem<'a> {
        let containers = item.containers.iter().map(|usage| ContainerItem {
            name: &usage.container,
            cpu: usage.cpu.map_or_else(String::new, millicores),
            memory: usage.memory.map_or_else(String::new, |bytes| bytes.to_string()),
        });
        MetricsItem {
            pod: &item.pod,
            timestamp: item.timestamp.unix(),
            containers: containers.collect(),
        }
    }
}

/// A quantity that upstream reads as this number of millicores. Upstream misreads negative numbers
/// of 19 digits as other numbers, but drops the bits of a number above the lowest 64.
///
/// Upstream: apimachinery, pkg/api/resource/scale_int.go, scaledValue
fn millicores(number: i64) -> String {
    match number {
        ..=-1_000_000_000_000_000_000 => format!("{}m", i128::from(number) + (1 << 64)),
        _ => format!("{number}m"),
    }
}

/// The samples of a pod before the start, by container.
#[derive(Serialize)]
struct History<'a> {
    #[serde(flatten)]
    pod: &'a ObjectName,
    labels: &'a BTreeMap<String, String>,
    containers: BTreeMap<&'a str, Vec<Sample>>,
}

/// A sample of one resource.
#[derive(Serialize)]
struct Sample {
    /// In seconds of Unix time.
    at: i64,
    resource: &'static str,
    /// In millicores or bytes.
    usage: i64,
}

impl<'a> From<&'a PodHistory> for History<'a> {
    fn from(history: &'a PodHistory) -> History<'a> {
        let mut containers = BTreeMap::<&str, Vec<Sample>>::new();
        for HistorySample { at, usage } in &history.samples {
            let at = at.unix();
            let samples = containers.entry(&usage.container).or_default();
            samples.extend(usage.cpu.map(|usage| Sample { at, resource: "cpu", usage }));
            samples.extend(usage.memory.map(|usage| Sample { at, resource: "memory", usage }));
        }
        History { pod: &history.pod, labels: history.labels.map(), containers }
    }
}
