//! Compares two runs of the recommender of the Vertical Pod Autoscaler: every recommended value,
//! the conditions, the content of checkpoints, the order of requests, and the logged errors.
//!
//! Upstream's order is random for requests of one kind that concern different objects, and for
//! errors of different samples. These are sorted before they are compared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{AmountField, FieldDifference, FieldPath};
use kube_autoscaler_models::vpa::{
    BucketWeight, CheckpointStatus, ContainerRecommendation, GoTime, HistogramCheckpoint, LogLine,
    ObjectName, Resource, Run, Tolerances, VpaStatus, Write,
};
use kube_lockstep_scenario::vpa::VpaValue;

/// The kinds of requests, in the order in which the recommender sends them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RequestKind {
    Status,
    Checkpoint,
    NewCheckpoint,
    DeleteCheckpoint,
}

/// A request without its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Request<'a> {
    kind: RequestKind,
    object: &'a ObjectName,
}

impl Request<'_> {
    fn new(write: &Write) -> Request<'_> {
        match write {
            Write::Status { vpa, .. } => Request { kind: RequestKind::Status, object: vpa },
            Write::Checkpoint { checkpoint, is_new, .. } => {
                let kind =
                    if *is_new { RequestKind::NewCheckpoint } else { RequestKind::Checkpoint };
                Request { kind, object: &checkpoint.metadata }
            }
            Write::DeleteCheckpoint(name) => {
                Request { kind: RequestKind::DeleteCheckpoint, object: name }
            }
        }
    }
}

/// `deletes the checkpoint default/web-app`.
impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            RequestKind::Status => "updates the status of the VPA",
            RequestKind::Checkpoint => "updates the checkpoint",
            RequestKind::NewCheckpoint => "creates the checkpoint",
            RequestKind::DeleteCheckpoint => "deletes the checkpoint",
        };
        write!(f, "{what} {}", self.object)
    }
}

/// The phase of a run in which a request is sent.
fn phase(write: &Write) -> usize {
    match Request::new(write).kind {
        RequestKind::Status => 0,
        RequestKind::Checkpoint | RequestKind::NewCheckpoint => 1,
        RequestKind::DeleteCheckpoint => 2,
    }
}

/// Compares a run that the model predicts with an observed one.
#[must_use]
pub fn runs(model: &Run, observed: &Run) -> Vec<FieldDifference> {
    let mut found = Differences(Vec::new());
    if !observed.writes.is_sorted_by_key(phase) {
        let requests = observed.writes.iter().map(|it| Request::new(it).to_string());
        let order: Vec<String> = requests.collect();
        found.add("order of requests", "status, checkpoints, deletions", order.join(", "));
    }
    let (ours, theirs) = (sorted(&model.writes), sorted(&observed.writes));
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let (ours_next, theirs_next) = (ours.peek().copied(), theirs.peek().copied());
        match (ours_next.map(Request::new), theirs_next.map(Request::new)) {
            (None, None) => break,
            (a, b) if a == b => {
                if let (Some(a), Some(b)) = (ours.next(), theirs.next()) {
                    found.writes(a, b);
                }
            }
            (Some(first), second) if second.is_none_or(|second| first < second) => {
                found.add("request", first.to_string(), "none");
                ours.next();
            }
            (_, second) => {
                let text = second.map_or_else(|| "none".to_owned(), |it| it.to_string());
                found.add("request", "none", text);
                theirs.next();
            }
        }
    }
    found.logs(&model.log, &observed.log);
    found.0
}

/// Compares logged errors outside of runs.
#[must_use]
pub fn logs(model: &[LogLine], observed: &[LogLine]) -> Vec<FieldDifference> {
    let mut found = Differences(Vec::new());
    found.logs(model, observed);
    found.0
}

fn sorted(writes: &[Write]) -> Vec<&Write> {
    let mut sorted: Vec<&Write> = writes.iter().collect();
    sorted.sort_by_key(|write| Request::new(write));
    sorted
}

/// A value in the JSON form of the API.
fn json(value: &impl Serialize) -> String {
    match serde_json::to_string(value).unwrap_or_default() {
        text if text == "null" => "none".to_owned(),
        text => text,
    }
}

/// A time of the API, which the zero time is not.
fn time(time: &GoTime) -> String {
    if time.is_zero() { "none".to_owned() } else { time.to_string() }
}

/// The weights of buckets in the JSON form of the API, by bucket: `{"19":10000}`.
fn weights_text(weights: &[BucketWeight]) -> String {
    let weights = weights.iter().map(|it| (it.bucket, it.weight));
    json(&weights.collect::<BTreeMap<i64, u32>>())
}

struct Differences(Vec<FieldDifference>);

impl Differences {
    fn add(
        &mut self,
        field: impl Into<FieldPath>,
        model: impl Into<String>,
        observed: impl Into<String>,
    ) {
        self.0.push(FieldDifference::new(field, model, observed));
    }

    /// Compares a field of an object. `text` is what users read.
    fn field<T: PartialEq>(
        &mut self,
        object: &ObjectName,
        field: impl Into<Cow<'static, str>>,
        values: [&T; 2],
        text: impl Fn(&T) -> String,
    ) {
        let [model, observed] = values;
        if model != observed {
            let field = FieldPath::Object(object.clone(), field.into());
            self.add(field, text(model), text(observed));
        }
    }

    fn writes(&mut self, model: &Write, observed: &Write) {
        match (model, observed) {
            (Write::Status { vpa, status: ours }, Write::Status { status: theirs, .. }) => {
                self.status(vpa, ours, theirs);
            }
            (
                Write::Checkpoint { checkpoint: ours, tolerances, .. },
                Write::Checkpoint { checkpoint: theirs, .. },
            ) => {
                self.field(&ours.metadata, "spec", [&ours.spec, &theirs.spec], json);
                self.checkpoint(&ours.metadata, &ours.status, &theirs.status, *tolerances);
            }
            _ => {}
        }
    }

    fn status(&mut self, vpa: &ObjectName, ours: &VpaStatus, theirs: &VpaStatus) {
        let list = |status: &VpaStatus| {
            status.recommendation.as_ref().map(|it| it.container_recommendations.clone())
        };
        let (our_list, their_list) = (list(ours), list(theirs));
        let names = |list: &Option<Vec<ContainerRecommendation>>| {
            let names = |list: &Vec<ContainerRecommendation>| {
                list.iter().map(|it| it.container_name.clone()).collect::<Vec<_>>()
            };
            list.as_ref().map(names)
        };
        let (our_names, their_names) = (names(&our_list), names(&their_list));
        self.field(vpa, "containers", [&our_names, &their_names], json);
        if our_names == their_names {
            let pairs = our_list.iter().flatten().zip(their_list.iter().flatten());
            pairs.for_each(|(ours, theirs)| self.container(vpa, ours, theirs));
        }
        self.field(vpa, "conditions", [&ours.conditions, &theirs.conditions], json);
        let generations = [&ours.observed_generation, &theirs.observed_generation];
        self.field(vpa, "observedGeneration", generations, json);
    }

    fn container(
        &mut self,
        vpa: &ObjectName,
        ours: &ContainerRecommendation,
        theirs: &ContainerRecommendation,
    ) {
        for value in VpaValue::ALL {
            for resource in [Resource::Cpu, Resource::Memory] {
                let [model, observed] = [ours, theirs].map(|container| {
                    let amount = value.of(container).amount(resource.name());
                    amount.map_or_else(|| "none".to_owned(), ToString::to_string)
                });
                if model != observed {
                    let (vpa, container) = (vpa.clone(), ours.container_name.clone());
                    let field = AmountField { vpa, container, value, resource };
                    self.add(FieldPath::Amount(field), model, observed);
                }
            }
        }
    }

    fn checkpoint(
        &mut self,
        object: &ObjectName,
        ours: &CheckpointStatus,
        theirs: &CheckpointStatus,
        tolerances: Tolerances,
    ) {
        let times = [&ours.last_update_time, &theirs.last_update_time];
        self.field(object, "lastUpdateTime", times, time);
        self.field(object, "version", [&ours.version, &theirs.version], ToString::to_string);
        let times = [&ours.first_sample_start, &theirs.first_sample_start];
        self.field(object, "firstSampleStart", times, time);
        let times = [&ours.last_sample_start, &theirs.last_sample_start];
        self.field(object, "lastSampleStart", times, time);
        let counts = [&ours.total_samples_count, &theirs.total_samples_count];
        self.field(object, "totalSamplesCount", counts, ToString::to_string);
        self.histogram(object, "cpuHistogram", [&ours.cpu, &theirs.cpu], tolerances.cpu);
        let memory: [&HistogramCheckpoint; 2] = [&ours.memory, &theirs.memory];
        self.histogram(object, "memoryHistogram", memory, tolerances.memory);
    }

    fn histogram(
        &mut self,
        object: &ObjectName,
        histogram: &str,
        sides: [&HistogramCheckpoint; 2],
        tolerance: f64,
    ) {
        let [ours, theirs] = sides;
        if ours == theirs || (tolerance > 0.0 && is_close(ours, theirs, tolerance)) {
            return;
        }
        let field = |name: &str| format!("{histogram}.{name}");
        let references = [&ours.reference, &theirs.reference];
        self.field(object, field("referenceTimestamp"), references, time);
        let weights = [&ours.weights, &theirs.weights];
        self.field(object, field("bucketWeights"), weights, |it| weights_text(it));
        // By its bits, as histograms are.
        let totals = [&ours.total.to_bits(), &theirs.total.to_bits()];
        self.field(object, field("totalWeight"), totals, |bits| json(&f64::from_bits(*bits)));
    }

    fn logs(&mut self, ours: &[LogLine], theirs: &[LogLine]) {
        let sorted = |lines: &[LogLine]| {
            let texts = lines.iter().map(ToString::to_string);
            let mut texts: Vec<String> = texts.collect();
            texts.sort();
            texts
        };
        let (ours, theirs) = (sorted(ours), sorted(theirs));
        if ours != theirs {
            self.add("log", ours.join("; "), theirs.join("; "));
        }
    }
}

/// Returns true if two histograms differ only by the order of merges and subtractions. Weights are
/// relative to the largest one: if that is as small as the tolerance, all weights are rounding
/// errors.
fn is_close(ours: &HistogramCheckpoint, theirs: &HistogramCheckpoint, tolerance: f64) -> bool {
    let (our_weights, their_weights) = (weights(ours), weights(theirs));
    let sum: u64 = our_weights.iter().map(|weight| u64::from(*weight)).sum();
    let unit = ours.total.min(theirs.total) / sum.max(1) as f64;
    let pairs = our_weights.iter().zip(&their_weights);
    let mut apart = pairs.map(|(ours, theirs)| f64::from(ours.abs_diff(*theirs)));
    ours.reference == theirs.reference
        && (ours.total - theirs.total).abs() <= tolerance
        && apart.all(|apart| (apart - 1.0) * unit <= tolerance)
}

fn weights(histogram: &HistogramCheckpoint) -> [u32; kube_autoscaler_models::vpa::BUCKETS] {
    let mut weights = [0; kube_autoscaler_models::vpa::BUCKETS];
    for weight in &histogram.weights {
        let bucket = usize::try_from(weight.bucket).ok();
        if let Some(slot) = bucket.and_then(|bucket| weights.get_mut(bucket)) {
            *slot = weight.weight;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::vpa::{Checkpoint, CheckpointSpec};

    fn checkpoint(weight: u32) -> Write {
        let memory = HistogramCheckpoint {
            weights: vec![BucketWeight { bucket: 7, weight }, BucketWeight { bucket: 19, weight }],
            ..HistogramCheckpoint::default()
        };
        let status = CheckpointStatus {
            last_update_time: GoTime::from_unix(i64::from(weight)),
            memory: memory.into(),
            ..CheckpointStatus::default()
        };
        let spec = CheckpointSpec { vpa_object_name: "web".into(), container_name: "app".into() };
        let metadata = ObjectName::new("default", "web-app");
        let checkpoint = Checkpoint { metadata, spec, status }.into();
        Write::Checkpoint { checkpoint, is_new: false, tolerances: Tolerances::default() }
    }

    fn run(writes: Vec<Write>) -> Run {
        Run { writes, ..Run::default() }
    }

    #[test]
    fn differences_are_in_plain_words_and_in_the_form_of_the_api() {
        let texts = |model, observed| {
            let found = runs(&run(vec![model]), &run(vec![observed]));
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            texts(checkpoint(1), checkpoint(2)),
            [
                "default/web-app lastUpdateTime: model 1970-01-01T00:00:01Z, engine \
                 1970-01-01T00:00:02Z",
                "default/web-app memoryHistogram.bucketWeights: model {\"7\":1,\"19\":1}, \
                 engine {\"7\":2,\"19\":2}",
            ]
        );
        let deletion = Write::DeleteCheckpoint(ObjectName::new("default", "old-app"));
        assert_eq!(
            texts(checkpoint(1), deletion),
            [
                "request: model updates the checkpoint default/web-app, engine none",
                "request: model none, engine deletes the checkpoint default/old-app",
            ]
        );
    }
}
