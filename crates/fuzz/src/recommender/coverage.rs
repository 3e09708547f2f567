//! The coverage of the recommender: changes of the cluster, policies, samples, OOM kills,
//! estimates, conditions, writes, logged errors and flags.

use super::super::counts::{Counts, CoverageGroup, Group};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::{
    BUCKETS, Bound, ClusterChange, ContainerPolicy, Estimation, IgnoredSample, LogLine, Occurrence,
    OomMemory, OomOutcome, RecommenderFlags, Run, ScalingMode, ScriptStep, Session, Stepped,
    VerticalPodAutoscaler, Write,
};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::names;

/// The groups in the order of the report, each with its known items.
static GROUPS: [Group; 9] = [
    (
        "changes",
        &[
            "vpa",
            "vpa-deleted",
            "pod",
            "pod-deleted",
            "pod-evicted",
            "checkpoint",
            "checkpoint-deleted",
            "target",
            "target-deleted",
            "usage",
            "metrics-error",
            "restart",
        ],
    ),
    (
        "policies",
        &[
            "mode-auto",
            "mode-off",
            "min-allowed",
            "max-allowed",
            "controlled-resources",
            "no-controlled-resources",
            "any-container",
            "oom-bump-up-ratio",
            "oom-min-bump-up",
            "memory-interval",
            "memory-interval-count",
            "integer-cpu",
            "recommender-name",
        ],
    ),
    (
        "samples",
        &[
            "read-checkpoints",
            "read-history",
            "higher-peak",
            "higher-peak-after-relabeling",
            "cpu-out-of-order",
            "memory-out-of-order",
            "memory-after-peak-of-zero",
        ],
    ),
    (
        "oom-kills",
        &[
            "by-request",
            "by-usage",
            "begins-interval",
            "higher-peak",
            "below-peak",
            "after-peak-of-zero",
            "discarded",
        ],
    ),
    (
        "estimates",
        &[
            "without-samples",
            "first-bucket",
            "bucket",
            "last-bucket",
            "lower-without-confidence",
            "upper-without-confidence",
            "lower-by-confidence",
            "upper-by-confidence",
            "minimum",
        ],
    ),
    (
        "conditions",
        &[
            "RecommendationProvided=True",
            "RecommendationProvided=False",
            "NoPodsMatched=True",
            "ConfigUnsupported=True",
        ],
    ),
    (
        "writes",
        &["none", "status", "checkpoint-created", "checkpoint-updated", "checkpoint-deleted"],
    ),
    ("errors", &ERRORS),
    // The known flags depend on the release.
    ("flags", &[]),
];

/// Errors that the recommender logs, each by a part of its text.
const ERRORS: [&str; 6] = [
    "Error while loading checkpoint",
    "Cannot get ContainerMetricsSnapshot from MetricsClient",
    "Error adding metric sample",
    "Failed to record OOM",
    "is missing recommendation for more than",
    "Cannot get target selector from VPA's targetRef",
];

/// The groups of items, in the order of [`GROUPS`].
#[derive(Clone, Copy)]
enum ItemGroup {
    Changes,
    Policies,
    Samples,
    OomKills,
    Estimates,
    Conditions,
    Writes,
    Errors,
    Flags,
}

/// The coverage counts the estimates of every 16th run of a scenario.
const RUNS_PER_ESTIMATE: usize = 16;

/// The reached items. Flags count scenarios; everything else counts occurrences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecommenderCoverage {
    counts: Counts,
    /// The runs of the scenario so far.
    runs: usize,
}

impl Default for RecommenderCoverage {
    fn default() -> RecommenderCoverage {
        RecommenderCoverage { counts: Counts::new(&GROUPS), runs: 0 }
    }
}

impl RecommenderCoverage {
    /// Counts the flags of a scenario, and the objects with which it starts.
    pub fn begin(&mut self, scenario: &VpaScenario, release: VpaRelease) {
        let is_known =
            |name: &&str| VpaRelease::introducing(name).is_none_or(|since| since <= release);
        for name in RecommenderFlags::NAMES.into_iter().filter(is_known) {
            self.counts.count_possible(
                ItemGroup::Flags as usize,
                name.to_owned(),
                scenario.flags.contains_key(name),
            );
        }
        self.count(ItemGroup::Changes, "target");
        for vpa in &scenario.vpas {
            self.count(ItemGroup::Changes, "vpa");
            self.vpa(vpa);
        }
        (0..scenario.workload.replicas).for_each(|_| self.count(ItemGroup::Changes, "pod"));
        scenario.checkpoints.iter().for_each(|_| self.count(ItemGroup::Changes, "checkpoint"));
    }

    /// Counts a step and what the model predicts for it.
    pub fn add(&mut self, session: &mut Session, step: &ScriptStep, predicted: &Stepped) {
        session.recommender().keep_account(true);
        self.changes(&step.changes);
        self.log(&predicted.log);
        predicted.runs.iter().for_each(|run| self.run(&run.run));
        self.occurrences(&session.recommender().take_account());
        let before = self.runs;
        self.runs += predicted.runs.len();
        if before / RUNS_PER_ESTIMATE < self.runs / RUNS_PER_ESTIMATE {
            let now = session.now();
            for vpa in names(session) {
                self.estimates(session.recommender().explain(&vpa, now).values().flatten());
            }
        }
    }

    /// Counts changes of the cluster.
    fn changes(&mut self, changes: &[ClusterChange]) {
        for change in changes {
            let name = match change {
                ClusterChange::SetVpa(vpa) => {
                    self.vpa(vpa);
                    "vpa"
                }
                ClusterChange::DeleteVpa(_) => "vpa-deleted",
                ClusterChange::SetPod(_) => "pod",
                ClusterChange::DeletePod(_) => "pod-deleted",
                ClusterChange::Evict(_) => "pod-evicted",
                ClusterChange::SetCheckpoint(_) => "checkpoint",
                ClusterChange::DeleteCheckpoint(_) => "checkpoint-deleted",
                ClusterChange::SetTarget(_) => "target",
                ClusterChange::DeleteTarget(_) => "target-deleted",
                ClusterChange::SetMetrics(Ok(_)) => "usage",
                ClusterChange::SetMetrics(Err(_)) => "metrics-error",
                ClusterChange::Restart => "restart",
            };
            self.count(ItemGroup::Changes, name);
        }
    }

    fn vpa(&mut self, vpa: &VerticalPodAutoscaler) {
        if vpa.metadata.annotations.keys().any(|name| name.ends_with("_integerCPU")) {
            self.count(ItemGroup::Policies, "integer-cpu");
        }
        if !vpa.spec.recommenders.is_empty() {
            self.count(ItemGroup::Policies, "recommender-name");
        }
        let policies = vpa.spec.resource_policy.iter().flat_map(|it| &it.container_policies);
        policies.for_each(|policy| self.policy(policy));
    }

    fn policy(&mut self, policy: &ContainerPolicy) {
        let resources = policy.controlled_resources.as_ref();
        let fields = [
            ("mode-auto", policy.mode == Some(ScalingMode::Auto)),
            ("mode-off", policy.mode == Some(ScalingMode::Off)),
            ("min-allowed", policy.min_allowed.is_some()),
            ("max-allowed", policy.max_allowed.is_some()),
            ("controlled-resources", resources.is_some_and(|names| !names.is_empty())),
            ("no-controlled-resources", resources.is_some_and(Vec::is_empty)),
            ("any-container", policy.container_name == "*"),
            ("oom-bump-up-ratio", policy.oom_bump_up_ratio.is_some()),
            ("oom-min-bump-up", policy.oom_min_bump_up.is_some()),
            ("memory-interval", policy.memory_aggregation_interval_seconds.is_some()),
            ("memory-interval-count", policy.memory_aggregation_interval_count.is_some()),
        ];
        let set = fields.into_iter().filter(|(_, is_set)| *is_set);
        set.for_each(|(name, _)| self.count(ItemGroup::Policies, name));
    }

    /// Counts what the recommender did with samples and OOM kills.
    fn occurrences(&mut self, account: &[Occurrence]) {
        for occurrence in account {
            match occurrence {
                Occurrence::ReadCheckpoints(_) => {
                    self.count(ItemGroup::Samples, "read-checkpoints")
                }
                Occurrence::ReadHistory(_) => self.count(ItemGroup::Samples, "read-history"),
                Occurrence::OomKill(oom) => {
                    let origin = match oom.origin {
                        OomMemory::Requested => "by-request",
                        OomMemory::Used => "by-usage",
                    };
                    self.count(ItemGroup::OomKills, origin);
                    let outcome = match oom.outcome {
                        OomOutcome::BeginsInterval => "begins-interval",
                        OomOutcome::HigherPeak(_) => "higher-peak",
                        OomOutcome::BelowPeak(_) => "below-peak",
                        OomOutcome::AfterPeakOfZero => "after-peak-of-zero",
                        OomOutcome::Discarded => "discarded",
                    };
                    self.count(ItemGroup::OomKills, outcome);
                }
                Occurrence::HigherPeak { former, .. } => {
                    let name = match former.is_removed {
                        true => "higher-peak",
                        false => "higher-peak-after-relabeling",
                    };
                    self.count(ItemGroup::Samples, name);
                }
                Occurrence::IgnoredSample { resource, why, .. } => match why {
                    IgnoredSample::OutOfOrder => {
                        self.count(
                            ItemGroup::Samples,
                            &format!("{}-out-of-order", resource.name()),
                        );
                    }
                    IgnoredSample::AfterPeakOfZero => {
                        self.count(ItemGroup::Samples, "memory-after-peak-of-zero");
                    }
                },
            }
        }
    }

    /// Counts how amounts were derived.
    fn estimates<'e>(&mut self, estimations: impl IntoIterator<Item = &'e Estimation>) {
        for estimation in estimations {
            let bucket = match estimation.bucket {
                None => "without-samples",
                Some(0) => "first-bucket",
                Some(bucket) if bucket + 1 == BUCKETS => "last-bucket",
                Some(_) => "bucket",
            };
            self.count(ItemGroup::Estimates, bucket);
            if let Some(confidence) = estimation.confidence {
                let is_confident = confidence.confidence > 0.0;
                let name = match (estimation.bound, is_confident) {
                    (Bound::Lower, false) => "lower-without-confidence",
                    (Bound::Lower, true) => "lower-by-confidence",
                    (_, false) => "upper-without-confidence",
                    (_, true) => "upper-by-confidence",
                };
                self.count(ItemGroup::Estimates, name);
            }
            if estimation.amount == estimation.minimum {
                self.count(ItemGroup::Estimates, "minimum");
            }
        }
    }

    /// Counts what a run of the recommender wrote and logged.
    fn run(&mut self, run: &Run) {
        if run.writes.is_empty() {
            self.count(ItemGroup::Writes, "none");
        }
        for write in &run.writes {
            match write {
                Write::Status { status, .. } => {
                    self.count(ItemGroup::Writes, "status");
                    for condition in &status.conditions {
                        let name = format!("{}={}", condition.type_, condition.status);
                        self.count(ItemGroup::Conditions, &name);
                    }
                }
                Write::Checkpoint { is_new: true, .. } => {
                    self.count(ItemGroup::Writes, "checkpoint-created");
                }
                Write::Checkpoint { is_new: false, .. } => {
                    self.count(ItemGroup::Writes, "checkpoint-updated");
                }
                Write::DeleteCheckpoint(_) => self.count(ItemGroup::Writes, "checkpoint-deleted"),
            }
        }
        self.log(&run.log);
    }

    /// Counts logged errors.
    fn log(&mut self, lines: &[LogLine]) {
        for line in lines {
            let is_known =
                |text: &&&str| line.message.contains(**text) || line.error.contains(**text);
            if let Some(text) = ERRORS.iter().find(is_known) {
                self.count(ItemGroup::Errors, text);
            }
        }
    }

    fn count(&mut self, group: ItemGroup, name: &str) {
        self.counts.count(group as usize, name);
    }

    /// Adds the counts of another coverage.
    pub fn merge(&mut self, other: &RecommenderCoverage) {
        self.counts.merge(&other.counts);
    }

    /// The groups, for a report.
    #[must_use]
    pub fn groups(&self) -> Vec<CoverageGroup> {
        self.counts.groups()
    }
}
