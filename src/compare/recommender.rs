//! Compares two runs of the recommender of the Vertical Pod Autoscaler: every recommended value,
//! the conditions, the content of checkpoints, the order of requests, and the logged errors.
//!
//! Upstream's order is random for requests of one kind that concern different objects, and for
//! errors of different samples. These are sorted before they are compared.

use std::fmt;

use serde::Serialize;

use crate::model::vpa::{
    CheckpointStatus, ContainerRecommendation, HistogramCheckpoint, LogLine, ObjectName,
    ResourceList, Run, VpaStatus, Write,
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
enum Kind {
    Status,
    Checkpoint,
    NewCheckpoint,
    DeleteCheckpoint,
}

fn kind(write: &Write) -> Kind {
    match write {
        Write::Status { .. } => Kind::Status,
        Write::Checkpoint { is_new: false, .. } => Kind::Checkpoint,
        Write::Checkpoint { is_new: true, .. } => Kind::NewCheckpoint,
        Write::DeleteCheckpoint(_) => Kind::DeleteCheckpoint,
    }
}

fn object(write: &Write) -> &ObjectName {
    match write {
        Write::Status { vpa, .. } => vpa,
        Write::Checkpoint { checkpoint, .. } => &checkpoint.metadata,
        Write::DeleteCheckpoint(name) => name,
    }
}

/// The phase of a run in which a request is sent.
fn phase(write: &Write) -> usize {
    match kind(write) {
        Kind::Status => 0,
        Kind::Checkpoint | Kind::NewCheckpoint => 1,
        Kind::DeleteCheckpoint => 2,
    }
}

/// Compares a run that the model predicts with an observed one.
#[must_use]
pub fn runs(model: &Run, observed: &Run) -> Vec<RunDifference> {
    let mut found = Differences(Vec::new());
    if !observed.writes.is_sorted_by_key(phase) {
        let order: Vec<String> = observed.writes.iter().map(|it| describe(Some(it))).collect();
        found.add("order of requests", "status, checkpoints, deletions", &order.join(", "));
    }
    let (ours, theirs) = (sorted(&model.writes), sorted(&observed.writes));
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let key = |write: Option<&&Write>| write.map(|it| (kind(it), object(it).clone()));
        let (a, b) = (key(ours.peek()), key(theirs.peek()));
        match (&a, &b) {
            (None, None) => break,
            _ if a == b => {
                if let (Some(a), Some(b)) = (ours.next(), theirs.next()) {
                    found.writes(a, b);
                }
            }
            (Some(first), second) if second.as_ref().is_none_or(|second| first < second) => {
                found.add("request", &describe(ours.next()), "none");
            }
            _ => found.add("request", "none", &describe(theirs.next())),
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
    sorted.sort_by(|a, b| (kind(a), object(a)).cmp(&(kind(b), object(b))));
    sorted
}

fn describe(write: Option<&Write>) -> String {
    write.map_or_else(|| "none".to_owned(), |it| format!("{:?} {}", kind(it), object(it)))
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

    fn value(&mut self, field: &str, model: &impl fmt::Debug, observed: &impl fmt::Debug) {
        let (model, observed) = (format!("{model:?}"), format!("{observed:?}"));
        if model != observed {
            self.add(field, &model, &observed);
        }
    }

    /// Compares values of the API, and shows them as JSON.
    fn api_value<T: PartialEq + Serialize>(&mut self, field: &str, model: &T, observed: &T) {
        let text = |value: &T| match serde_json::to_string(value).unwrap_or_default() {
            text if text == "null" => "none".to_owned(),
            text => text,
        };
        if model != observed {
            self.add(field, &text(model), &text(observed));
        }
    }

    fn writes(&mut self, model: &Write, observed: &Write) {
        match (model, observed) {
            (Write::Status { vpa, status: ours }, Write::Status { status: theirs, .. }) => {
                self.status(vpa, ours, theirs);
            }
            (
                Write::Checkpoint { checkpoint: ours, memory_tolerance, .. },
                Write::Checkpoint { checkpoint: theirs, .. },
            ) => {
                self.value(&format!("{} spec", ours.metadata), &ours.spec, &theirs.spec);
                self.checkpoint(&ours.metadata, &ours.status, &theirs.status, *memory_tolerance);
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
        self.api_value(&format!("{vpa} containers"), &our_names, &their_names);
        if our_names == their_names {
            let pairs = our_list.iter().flatten().zip(their_list.iter().flatten());
            pairs.for_each(|(ours, theirs)| self.container(vpa, ours, theirs));
        }
        self.api_value(&format!("{vpa} conditions"), &ours.conditions, &theirs.conditions);
        let generation = format!("{vpa} observedGeneration");
        self.api_value(&generation, &ours.observed_generation, &theirs.observed_generation);
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
        name: &ObjectName,
        ours: &CheckpointStatus,
        theirs: &CheckpointStatus,
        memory_tolerance: f64,
    ) {
        let scalars = |it: &CheckpointStatus| {
            let version = it.version.clone();
            (
                version,
                it.last_update_time,
                it.first_sample_start,
                it.last_sample_start,
                it.total_samples_count,
            )
        };
        self.value(&format!("{name} status"), &scalars(ours), &scalars(theirs));
        self.histogram(name, "cpuHistogram", [&ours.cpu, &theirs.cpu], 0.0);
        self.histogram(name, "memoryHistogram", [&ours.memory, &theirs.memory], memory_tolerance);
    }

    fn histogram(
        &mut self,
        name: &ObjectName,
        field: &str,
        sides: [&HistogramCheckpoint; 2],
        tolerance: f64,
    ) {
        let [ours, theirs] = sides;
        if ours == theirs || (tolerance > 0.0 && is_close(ours, theirs, tolerance)) {
            return;
        }
        let field = format!("{name} {field}");
        let reference = format!("{field}.referenceTimestamp");
        self.value(&reference, &ours.reference, &theirs.reference);
        self.value(&format!("{field}.bucketWeights"), &ours.weights, &theirs.weights);
        self.value(&format!("{field}.totalWeight"), &ours.total, &theirs.total);
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

/// Returns true if two histograms differ only by the order of subtractions. Weights are relative to
/// the largest one: if that is as small as the tolerance, all weights are rounding errors.
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

fn weights(histogram: &HistogramCheckpoint) -> [u32; crate::model::vpa::BUCKETS] {
    let mut weights = [0; crate::model::vpa::BUCKETS];
    for weight in &histogram.weights {
        let bucket = usize::try_from(weight.bucket).ok();
        if let Some(slot) = bucket.and_then(|bucket| weights.get_mut(bucket)) {
            *slot = weight.weight;
        }
    }
    weights
}
