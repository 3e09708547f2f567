//! Resolution of the expectations.

use super::super::cursor::{At, Problems};
use super::super::expect::{RunEnd, check_timing, reversed};
use super::timeline::{Context, container, named};
use crate::bounds::Bounds;
use crate::error::suggest;
use crate::expectation::AnyExpectation;
use crate::raw::ScenarioFile;
use crate::vpa::{ExpectedAmount, ExpectedCheckpoint, ExpectedHistogram, VpaExpectation, VpaValue};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::BUCKETS;

/// The conditions that the recommender sets.
const CONDITIONS: [&str; 3] = ["RecommendationProvided", "NoPodsMatched", "ConfigUnsupported"];
/// The fields for the time of an expectation.
const WHENS: [&str; 5] = ["tick", "at", "always", "never", "within"];
/// The fields for expected values.
const WHATS: [&str; 12] = [
    "target",
    "lowerBound",
    "upperBound",
    "uncappedTarget",
    "containers",
    "conditions",
    "noConditions",
    "observedGeneration",
    "checkpoints",
    "samples",
    "checkpointStatus",
    "log",
];

/// The expected values that are not those of one VPA.
const OF_NO_VPA: [&str; 4] = ["checkpoints", "samples", "checkpointStatus", "log"];

/// Checks the expectations, and fills in the VPA and the container. `containers`: those that can
/// have a recommendation.
pub(super) fn resolve(
    context: &Context<'_>,
    file: &ScenarioFile,
    containers: &[&str],
    most_runs: i64,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<VpaExpectation> {
    let mut expectations = Vec::new();
    for (index, mut expectation) in on_vpas(file) {
        let at = at.index(index);
        if check(&mut expectation, file.until, most_runs, at, problems) || expectation.vpa.is_some()
        {
            let vpa = named(expectation.vpa.as_ref(), context.vpas, at, problems);
            expectation.vpa = vpa.map(|vpa| vpa.name().clone());
        }
        if expectation.amounts().next().is_some() {
            expectation.container = match expectation.container.take() {
                Some(name) => {
                    check_container(&name, containers, at.key("container"), problems);
                    Some(name)
                }
                None => container(None, context.workload, at, problems),
            };
        }
        for (index, name) in expectation.containers.iter().flatten().enumerate() {
            check_container(name, containers, at.key("containers").index(index), problems);
        }
        expectations.push(expectation);
    }
    expectations
}

/// The expectations on VPAs, with their indices.
fn on_vpas(file: &ScenarioFile) -> impl Iterator<Item = (usize, VpaExpectation)> {
    let all = file.expect.iter().enumerate();
    all.filter_map(|(index, expectation)| match expectation {
        AnyExpectation::Vpa(expectation) => Some((index, (**expectation).clone())),
        AnyExpectation::Hpa(_) => None,
    })
}

fn check_container(name: &str, containers: &[&str], at: At<'_>, problems: &mut Problems) {
    if !containers.contains(&name) {
        let what = format!("the scenario has no container `{name}`");
        problems.add(at.problem(what, suggest(name, containers.iter().copied())));
    }
}

/// Checks an expectation, and sets its line. Returns true if it expects something of one VPA.
fn check(
    expectation: &mut VpaExpectation,
    until: Time,
    most_runs: i64,
    at: At<'_>,
    problems: &mut Problems,
) -> bool {
    expectation.line = at.line;
    let end = RunEnd { until, most_ticks: usize::try_from(most_runs).ok() };
    check_timing(expectation.timing(), &WHENS, end, at, problems);
    for (name, samples) in &expectation.samples {
        check_samples(*samples, at.key("samples").key(name), problems);
    }
    for (name, expected) in &expectation.checkpoint_status {
        check_checkpoint(expected, at.key("checkpointStatus").key(name), problems);
    }
    let given = at.given(&WHATS);
    if given.is_empty() {
        let what =
            format!("the expectation has no value: set at least one of {}", WHATS.join(", "));
        problems.plain(at, what);
    }
    if expectation.container.is_some() && expectation.amounts().next().is_none() {
        let what = "`container` requires an expected amount";
        problems.plain(at.key_position("container"), what);
    }
    check_amounts(expectation, at, problems);
    check_conditions(expectation, at, problems);
    given.iter().any(|name| !OF_NO_VPA.contains(name))
}

fn check_amounts(expectation: &VpaExpectation, at: At<'_>, problems: &mut Problems) {
    for (value, amounts) in expectation.amounts() {
        let at = at.key(VpaValue::name(value));
        if amounts.ranges().next().is_none() {
            problems.plain(at, "expected an amount of cpu, memory or both");
        }
        for (resource, range) in amounts.ranges() {
            let at = at.key(resource.name());
            match range {
                ExpectedAmount::In(Bounds { min: None, max: None }) => {
                    problems.plain(at, "expected atLeast, atMost or both");
                }
                ExpectedAmount::In(range) if range.is_empty() => reversed(at, problems),
                ExpectedAmount::In(_) | ExpectedAmount::Absent => {}
            }
        }
    }
}

fn check_samples(samples: i64, at: At<'_>, problems: &mut Problems) {
    if samples < 0 {
        problems.plain(at, format!("expected 0 or more samples, found {samples}"));
    }
}

fn check_checkpoint(expected: &ExpectedCheckpoint, at: At<'_>, problems: &mut Problems) {
    if *expected == ExpectedCheckpoint::default() {
        problems.plain(at, "expected fields of the status of a checkpoint");
    }
    if let Some(samples) = expected.total_samples_count {
        check_samples(samples, at.key("totalSamplesCount"), problems);
    }
    let histograms = [
        ("cpuHistogram", &expected.cpu_histogram),
        ("memoryHistogram", &expected.memory_histogram),
    ];
    for (name, histogram) in histograms {
        if let Some(histogram) = histogram {
            check_histogram(histogram, at.key(name), problems);
        }
    }
}

fn check_histogram(expected: &ExpectedHistogram, at: At<'_>, problems: &mut Problems) {
    const LARGEST_WEIGHT: u32 = 10_000;
    if *expected == ExpectedHistogram::default() {
        problems.plain(at, "expected fields of a histogram");
    }
    for (bucket, weight) in expected.bucket_weights.iter().flatten() {
        let at = at.key("bucketWeights");
        let last = BUCKETS - 1;
        if bucket.parse::<usize>().map_or(true, |number| number > last) {
            let what = format!("expected a bucket from 0 to {last}, found {bucket}");
            problems.plain(at.key_position(bucket), what);
        }
        if !(1..=LARGEST_WEIGHT).contains(weight) {
            let what = format!("expected a weight of 1 to {LARGEST_WEIGHT}, found {weight}");
            problems.hint(at.key(bucket), what, "leave out buckets that are empty");
        }
    }
    if let Some(total) = expected.total_weight.filter(|total| !(total.is_finite() && *total >= 0.0))
    {
        problems.plain(at.key("totalWeight"), format!("expected 0 or more, found {total}"));
    }
}

fn check_conditions(expectation: &VpaExpectation, at: At<'_>, problems: &mut Problems) {
    let types = expectation.conditions.iter().map(|condition| condition.type_.as_str());
    let places = types
        .enumerate()
        .map(|(index, type_)| (type_, at.key("conditions").index(index).key("type")));
    let absent = expectation.no_conditions.iter().enumerate();
    let absent = absent.map(|(index, type_)| (type_.as_str(), at.key("noConditions").index(index)));
    for (type_, at) in places.chain(absent) {
        if !CONDITIONS.contains(&type_) {
            let what = format!("unknown condition `{type_}`");
            problems.add(at.problem(what, suggest(type_, CONDITIONS)));
        }
    }
}
