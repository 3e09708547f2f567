//! The kinds of controllers for which scenarios are generated.

use std::sync::Arc;

use serde_json::Value;

use crate::fuzzing::FuzzPlan;
use crate::recommender::{self, RecommenderCoverage};
use crate::{Coverage, CoverageGroup, generate};
use kube_autoscaler_models::derivation::{Derivation, RateLimit};
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::resolved::{Action, TimelineEvent};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Scenario};
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::{ControllerKind, Engine, Hpa, Vpa};
use kube_lockstep_sim::run::recommender_lockstep::{run_recommender, run_recommender_watched};
use kube_lockstep_sim::run::{Outcome, Verdict, lockstep, run_watched};

/// A kind of controller for which scenarios are generated.
pub trait Fuzzed: ControllerKind {
    /// The items that scenarios reach.
    type Coverage: Default + Send;

    /// The number of scenarios that are run by default to shrink a failure.
    const SHRINKING: usize;

    /// Generates the scenario with an index.
    fn generate(plan: &FuzzPlan<Self>, index: u64) -> Self::Scenario;

    /// The tree of the file of a generated scenario.
    fn tree(plan: &FuzzPlan<Self>, index: u64, scenario: &Self::Scenario) -> Value;

    /// Reads a tree, if it is valid.
    fn read(path: &str, tree: &Value) -> Option<Self::Scenario>;

    /// The end of a scenario.
    fn until(scenario: &Self::Scenario) -> Time;

    /// A link to upstream's source.
    fn source(release: Self::Release) -> String;

    /// Runs a scenario, and counts what it reaches.
    fn run(
        scenario: &Arc<Self::Scenario>,
        engine: &mut dyn Engine<Self>,
        known: &[KnownDisagreement],
        coverage: &mut Self::Coverage,
    ) -> Outcome;

    /// Runs a scenario, and returns the replicas on which its decisions depend, the latest first.
    fn run_again(
        scenario: &Arc<Self::Scenario>,
        engine: &mut dyn Engine<Self>,
        known: &[KnownDisagreement],
    ) -> (Outcome, Vec<i32>);

    /// Adds the counts of a scenario.
    fn merge(coverage: &mut Self::Coverage, found: &Self::Coverage);

    /// The groups of items, for a report.
    fn groups(coverage: &Self::Coverage) -> Vec<CoverageGroup>;
}

/// Reads the tree of a file.
///
/// # Errors
/// All problems of the file.
pub(crate) fn parse(path: &str, tree: &Value) -> Result<AnyScenario, scenario::Error> {
    let no_files = |_: &str| Err("there is no other file".into());
    scenario::parse_any(path, &scenario::tree_to_yaml(tree), &no_files)
}

/// The number of scenarios in a row for which all metrics are observed, or not.
const ALL_METRICS_BLOCK: u64 = 64;

impl Fuzzed for Hpa {
    type Coverage = Coverage;
    /// This takes seconds.
    const SHRINKING: usize = 3000;

    fn generate(plan: &FuzzPlan<Hpa>, index: u64) -> Scenario {
        let mut scenario = generate::scenario(plan.seed, index, plan.release, &plan.areas);
        // They take a fifth of the time.
        scenario.observed.sent_events = index.is_multiple_of(2);
        // A process that has observed them is replaced: hence whole blocks.
        scenario.observed.all_metrics = (index / ALL_METRICS_BLOCK).is_multiple_of(16);
        if let Some(template) = &plan.template {
            scenario.expect.clone_from(&template.expect);
            scenario.objects.clone_from(&template.objects);
            scenario.releases = template.releases;
            scenario.requirement.clone_from(&template.requirement);
        }
        scenario
    }

    fn tree(_: &FuzzPlan<Hpa>, _: u64, scenario: &Scenario) -> Value {
        scenario::to_tree(scenario)
    }

    fn read(path: &str, tree: &Value) -> Option<Scenario> {
        match parse(path, tree) {
            Ok(AnyScenario::Hpa(scenario)) => Some(*scenario),
            _ => None,
        }
    }

    fn until(scenario: &Scenario) -> Time {
        scenario.until
    }

    fn source(release: Self::Release) -> String {
        format!(
            "https://github.com/kubernetes/kubernetes/blob/v{release}.0/pkg/controller/\
             podautoscaler/horizontal.go"
        )
    }

    fn run(
        scenario: &Arc<Scenario>,
        engine: &mut dyn Engine,
        known: &[KnownDisagreement],
        coverage: &mut Coverage,
    ) -> Outcome {
        if let Some(skipped) = unsuitable(scenario, engine) {
            return skipped;
        }
        coverage.begin(scenario, engine.release());
        run_watched(scenario, engine, known, &mut |decision: &Decision| coverage.add(decision))
    }

    fn run_again(
        scenario: &Arc<Scenario>,
        engine: &mut dyn Engine,
        known: &[KnownDisagreement],
    ) -> (Outcome, Vec<i32>) {
        if let Some(skipped) = unsuitable(scenario, engine) {
            return (skipped, Vec::new());
        }
        let mut replicas = Vec::new();
        let watch = &mut |decision: &Decision| replicas.extend(replicas_of(&decision.derivation));
        let outcome = run_watched(scenario, engine, known, watch);
        replicas.reverse();
        (outcome, replicas)
    }

    fn merge(coverage: &mut Coverage, found: &Coverage) {
        coverage.merge(found);
    }

    fn groups(coverage: &Coverage) -> Vec<CoverageGroup> {
        coverage.groups()
    }
}

/// The outcome of a scenario that programs without a model do not run: few of them say which of
/// several reconciles in progress an action belongs to.
fn unsuitable(scenario: &Arc<Scenario>, engine: &dyn Engine) -> Option<Outcome> {
    let is_slow = |event: &TimelineEvent| {
        matches!(event.action, Action::MetricsSlow(_)) || event.during.is_some()
    };
    let overlap = scenario.hpas.len() > 1 || scenario.timeline.iter().any(is_slow);
    (!engine.has_model() && overlap).then(|| {
        let why = "with --expect, only scenarios with one HPA and fast metrics are run";
        let outcome = lockstep::unfinished(scenario, &engine.name().into(), engine.release());
        Outcome { verdict: Verdict::Skipped { why: why.into() }, ..outcome }
    })
}

/// The replicas that a decision depends on; the target's replicas are last.
fn replicas_of(derivation: &Derivation) -> Vec<i32> {
    let rate = derivation.limits.as_ref().and_then(|limits| limits.rate.as_ref());
    let starts = match rate {
        Some(RateLimit::Policies { policies, .. }) => policies.as_slice(),
        _ => &[],
    };
    let starts = starts.iter().map(|policy| policy.period_start);
    let replicas = [derivation.desired_replicas].into_iter().chain(starts);
    replicas.chain(derivation.current_replicas).collect()
}

impl Fuzzed for Vpa {
    type Coverage = RecommenderCoverage;
    /// Such scenarios have more ticks than those of HPAs: this takes a minute.
    const SHRINKING: usize = 1000;

    fn generate(plan: &FuzzPlan<Vpa>, index: u64) -> VpaScenario {
        recommender::scenario(plan.seed, index, plan.release)
    }

    fn tree(plan: &FuzzPlan<Vpa>, index: u64, _: &VpaScenario) -> Value {
        recommender::tree(plan.seed, index, plan.release)
    }

    fn read(path: &str, tree: &Value) -> Option<VpaScenario> {
        match parse(path, tree) {
            Ok(AnyScenario::Vpa(scenario)) => Some(*scenario),
            _ => None,
        }
    }

    fn until(scenario: &VpaScenario) -> Time {
        scenario.until
    }

    fn source(release: Self::Release) -> String {
        let branch = release.to_string().replacen("vpa-", "vpa-release-", 1);
        format!(
            "https://github.com/kubernetes/autoscaler/tree/{branch}/vertical-pod-autoscaler/pkg/\
             recommender"
        )
    }

    fn run(
        scenario: &Arc<VpaScenario>,
        engine: &mut dyn Engine<Vpa>,
        known: &[KnownDisagreement],
        coverage: &mut RecommenderCoverage,
    ) -> Outcome {
        coverage.begin(scenario, engine.release());
        run_recommender_watched(scenario, engine, known, &mut |session, step, predicted| {
            coverage.add(session, step, predicted);
        })
    }

    fn run_again(
        scenario: &Arc<VpaScenario>,
        engine: &mut dyn Engine<Vpa>,
        known: &[KnownDisagreement],
    ) -> (Outcome, Vec<i32>) {
        (run_recommender(scenario, engine, known), Vec::new())
    }

    fn merge(coverage: &mut RecommenderCoverage, found: &RecommenderCoverage) {
        coverage.merge(found);
    }

    fn groups(coverage: &RecommenderCoverage) -> Vec<CoverageGroup> {
        coverage.groups()
    }
}
