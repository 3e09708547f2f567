//! Compares two runs of the recommender of the Vertical Pod Autoscaler: every recommended value,
//! the conditions, the content of checkpoints, the order of requests, and the logged errors.
//!
//! Upstream's order is random for requests of one kind that concern different objects, and for
//! errors of different samples. These are sorted before they are compared.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use kube_autoscaler_models::vpa::{
    BucketWeight, CheckpointStatus, ContainerRecommendation, GoTime, HistogramCheckpoint, LogLine,
    ObjectName, ResourceList, Run, Tolerances, VpaStatus, Write,
};

/// A difference of two runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunDifference {
    /// The object and the field: `ns/web target.cpu of app`.
    pub field: String,
    /// The value that the model predicts.
    pub model: String,
    /// The observed value.
    pub observed: String,
}

/// `field: model 1 | observed 2`.
impl fmt::Display for RunDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: model {} | observed {}", self.field, self.model, self.observed)
    }
}

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
    fn of(write: &Write) -> Request<'_> {
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
    match Request::of(write).kind {
        RequestKind::Status => 0,
        RequestKind::Checkpoint | RequestKind::NewCheckpoint => 1,
        RequestKind::DeleteCheckpoint => 2,
    }
}

/// Compares a run that the model predicts with an observed one.
#[must_use]
pub fn runs(model: &Run, observed: &Run) -> Vec<RunDifference> {
    let mut found = Differences(Vec::new());
    if !observed.writes.is_sorted_by_key(phase) {
        let requests = observed.writes.iter().map(|it| Request::of(it).to_string());
        let order: Vec<String> = requests.collect();
        found.add("order of requests", "status, checkpoints, deletions", &order.join(", "));
    }
    let (ours, theirs) = (sorted(&model.writes), sorted(&observed.writes));
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let (ours_next, theirs_next) = (ours.peek().copied(), theirs.peek().copied());
        match (ours_next.map(Request::of), theirs_next.map(Request::of)) {
            (None, None) => break,
            (a, b) if a == b => {
                if let (Some(a), Some(b)) = (ours.next(), theirs.next()) {
                    found.writes(a, b);
                }
            }
            (Some(first), second) if second.is_none_or(|second| first < second) => {
                found.add("request", &first.to_string(), "none");
                ours.next();
            }
            (_, second) => {
                let text = second.map_or_else(|| "none".to_owned(), |it| it.to_string());
                found.add("request", "none", &text);
                theirs.next();
            }
        }
    }
    found.logs(&model.log, &observed.log);
    found.0
}

/// Compares logged errors outside of runs.
#[must_use]
pub fn logs(model: &[LogLine], observed: &[LogLine]) -> Vec<RunDifference> {
    let mut found = Differences(Vec::new());
    found.logs(model, observed);
    found.0
}

fn sorted(writes: &[Write]) -> Vec<&Write> {
    let mut sorted: Vec<&Write> = writes.iter().collect();
    sorted.sort_by_key(|write| Request::of(write));
    sorted
}

/// A field of an object.
#[derive(Clone, Copy)]
struct Field<'a> {
    object: &'a ObjectName,
    name: &'a str,
}

/// `ns/web-app cpuHistogram.totalWeight`.
impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object, self.name)
    }
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

struct Differences(Vec<RunDifference>);

impl Differences {
    fn add(&mut self, field: &str, model: &str, observed: &str) {
        let field = field.to_owned();
        self.0.push(RunDifference {
            field,
            model: model.to_owned(),
            observed: observed.to_owned(),
        });
    }

    /// Compares a field of an object. `text` is what users read.
    fn field<T: PartialEq>(
        &mut self,
        field: Field<'_>,
        values: [&T; 2],
        text: impl Fn(&T) -> String,
    ) {
        let [model, observed] = values;
        if model != observed {
            self.add(&field.to_string(), &text(model), &text(observed));
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
                let spec = Field { object: &ours.metadata, name: "spec" };
                self.field(spec, [&ours.spec, &theirs.spec], json);
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
        let field = |name| Field { object: vpa, name };
        self.field(field("containers"), [&our_names, &their_names], json);
        if our_names == their_names {
            let pairs = our_list.iter().flatten().zip(their_list.iter().flatten());
            pairs.for_each(|(ours, theirs)| self.container(vpa, ours, theirs));
        }
        self.field(field("conditions"), [&ours.conditions, &theirs.conditions], json);
        let generations = [&ours.observed_generation, &theirs.observed_generation];
        self.field(field("observedGeneration"), generations, json);
    }

    fn container(
        &mut self,
        vpa: &ObjectName,
        ours: &ContainerRecommendation,
        theirs: &ContainerRecommendation,
    ) {
        let lists = [
            ("target", &ours.target, &theirs.target),
            ("lowerBound", &ours.lower_bound, &theirs.lower_bound),
            ("upperBound", &ours.upper_bound, &theirs.upper_bound),
            ("uncappedTarget", &ours.uncapped_target, &theirs.uncapped_target),
        ];
        for (field, ours_in, theirs_in) in lists {
            let text = |list: &ResourceList| {
                [&list.cpu, &list.memory].map(|it| it.as_ref().map(ToString::to_string))
            };
            let resources = ["cpu", "memory"].into_iter().zip(text(ours_in)).zip(text(theirs_in));
            for ((resource, model), observed) in resources {
                if model != observed {
                    let field = format!("{vpa} {field}.{resource} of {}", ours.container_name);
                    let or_none = |it: Option<String>| it.unwrap_or_else(|| "none".to_owned());
                    self.add(&field, &or_none(model), &or_none(observed));
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
        let field = |name| Field { object, name };
        let times = [&ours.last_update_time, &theirs.last_update_time];
        self.field(field("lastUpdateTime"), times, time);
        self.field(field("version"), [&ours.version, &theirs.version], ToString::to_string);
        let times = [&ours.first_sample_start, &theirs.first_sample_start];
        self.field(field("firstSampleStart"), times, time);
        let times = [&ours.last_sample_start, &theirs.last_sample_start];
        self.field(field("lastSampleStart"), times, time);
        let counts = [&ours.total_samples_count, &theirs.total_samples_count];
        self.field(field("totalSamplesCount"), counts, ToString::to_string);
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
        let [reference, weights, total] = ["referenceTimestamp", "bucketWeights", "totalWeight"]
            .map(|field| format!("{histogram}.{field}"));
        let field = |name| Field { object, name };
        self.field(field(&reference), [&ours.reference, &theirs.reference], time);
        self.field(field(&weights), [&ours.weights, &theirs.weights], |it| weights_text(it));
        // By its bits, as histograms are.
        let totals = [&ours.total.to_bits(), &theirs.total.to_bits()];
        self.field(field(&total), totals, |bits| json(&f64::from_bits(*bits)));
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
            self.add("log", &ours.join("; "), &theirs.join("; "));
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
                "default/web-app lastUpdateTime: model 1970-01-01T00:00:01Z | observed \
                 1970-01-01T00:00:02Z",
                "default/web-app memoryHistogram.bucketWeights: model {\"7\":1,\"19\":1} | \
                 observed {\"7\":2,\"19\":2}",
            ]
        );
        let deletion = Write::DeleteCheckpoint(ObjectName::new("default", "old-app"));
        assert_eq!(
            texts(checkpoint(1), deletion),
            [
                "request: model updates the checkpoint default/web-app | observed none",
                "request: model none | observed deletes the checkpoint default/old-app",
            ]
        );
    }
}
