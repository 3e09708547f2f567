//! What of the controller was reached: reasons of conditions and events, and the branches, paths,
//! windows and limits of the model's derivations.
//!
//! What is known to exist is listed, so that what was never reached can be named. What is met and
//! not listed is counted, too.

use std::collections::BTreeMap;

use crate::model::api::SelectPolicy;
use crate::model::derivation::{
    Branch, Derivation, Filled, MetricDerivation, Path, RateLimit, Source, Target,
};
use crate::model::hpa::Decision;
use crate::model::observation::Read;

/// The groups in the order of the report, each with what is known to be in it.
const KNOWN: [(&str, &[&str]); 9] = [
    (
        "conditions",
        &[
            "SucceededGetScale",
            "FailedGetScale",
            "ReadyForNewScale",
            "ScaleUpStabilized",
            "ScaleDownStabilized",
            "SucceededRescale",
            "FailedUpdateScale",
            "ValidMetricFound",
            "ScalingDisabled",
            "InvalidSelector",
            "AmbiguousSelector",
            "FailedGetResourceMetric",
            "FailedGetContainerResourceMetric",
            "FailedGetPodsMetric",
            "FailedGetObjectMetric",
            "FailedGetExternalMetric",
            "InvalidMetricSourceType",
            "DesiredWithinRange",
            "TooFewReplicas",
            "TooManyReplicas",
            "ScaleUpLimit",
            "ScaleDownLimit",
            "ScaledToZero",
            "NotScaledToZero",
        ],
    ),
    (
        "events",
        &[
            "SuccessfulRescale",
            "FailedRescale",
            "FailedGetScale",
            "FailedGetResourceMetric",
            "FailedGetContainerResourceMetric",
            "FailedGetPodsMetric",
            "FailedGetObjectMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
            "FailedUpdateStatus",
            "SelectorRequired",
            "InvalidSelector",
            "AmbiguousSelector",
        ],
    ),
    ("branches", &["NoScale", "Disabled", "AboveMax", "BelowMin", "NoMetrics", "Metrics"]),
    ("sources", &["Resource", "ContainerResource", "Pods", "Object", "External"]),
    ("targets", &["Utilization", "AverageValue", "Value"]),
    (
        "paths",
        &[
            "Failed",
            "FromZero",
            "Total",
            "WithinTolerance",
            "Ready",
            "SecondWithinTolerance",
            "SecondReversed",
            "CountReversed",
            "Second",
        ],
    ),
    (
        "pods",
        &[
            "unready",
            "missing",
            "ignored",
            "unknown",
            "missing-as-percent",
            "missing-as-target",
            "missing-as-zero",
            "missing-left-out",
            "unready-as-zero",
        ],
    ),
    (
        "limits",
        &[
            "held-by-up-window",
            "held-by-down-window",
            "held-by-flag",
            "legacy-limit",
            "up-max",
            "up-min",
            "up-disabled",
            "down-max",
            "down-min",
            "down-disabled",
            "policy-after-scale-up",
            "policy-after-scale-down",
        ],
    ),
    (
        "writes",
        &[
            "scale",
            "scale-refused",
            "scale-tried-again",
            "status",
            "status-refused",
            "status-unchanged",
            "scale-unreadable",
            "metrics-unreadable",
            "failed-but-scaled-up",
        ],
    ),
];

/// What was reached, with how often.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    known: [Vec<u64>; KNOWN.len()],
    other: BTreeMap<(usize, String), u64>,
}

/// One group of [`Coverage`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reached {
    /// What it is a group of.
    pub group: &'static str,
    /// What was reached, and on how many ticks.
    pub reached: Vec<(String, u64)>,
    /// What is known to be there, and was not reached.
    pub never: Vec<&'static str>,
}

const CONDITIONS: usize = 0;
const EVENTS: usize = 1;
const BRANCHES: usize = 2;
const SOURCES: usize = 3;
const TARGETS: usize = 4;
const PATHS: usize = 5;
const PODS: usize = 6;
const LIMITS: usize = 7;
const WRITES: usize = 8;

impl Coverage {
    /// Counts one reconcile as the model explains it.
    pub fn add(&mut self, decision: &Decision) {
        let seen = &decision.observation;
        if let Some(write) = &seen.status_write {
            for condition in &write.status.conditions {
                self.count(CONDITIONS, condition.reason.as_str());
            }
            self.count(WRITES, if write.error.is_some() { "status-refused" } else { "status" });
        } else {
            self.count(WRITES, "status-unchanged");
        }
        for event in &seen.events {
            self.count(EVENTS, event.reason.as_str());
        }
        for read in &seen.reads {
            match read {
                Read::Scale { answer: Err(_), .. } => self.count(WRITES, "scale-unreadable"),
                Read::PodMetrics { answer: Err(_), .. }
                | Read::PodsMetric { answer: Err(_), .. }
                | Read::ObjectMetric { answer: Err(_), .. }
                | Read::ExternalMetric { answer: Err(_), .. } => {
                    self.count(WRITES, "metrics-unreadable");
                }
                _ => {}
            }
        }
        match seen.scale_writes.as_slice() {
            [] => {}
            writes => {
                let refused = writes.iter().any(|write| write.error.is_some());
                self.count(WRITES, if refused { "scale-refused" } else { "scale" });
                if writes.len() > 1 {
                    self.count(WRITES, "scale-tried-again");
                }
            }
        }
        self.derivation(&decision.derivation);
    }

    fn derivation(&mut self, why: &Derivation) {
        self.count(
            BRANCHES,
            match why.branch {
                Branch::NoScale => "NoScale",
                Branch::Disabled => "Disabled",
                Branch::AboveMax => "AboveMax",
                Branch::BelowMin => "BelowMin",
                Branch::NoMetrics => "NoMetrics",
                Branch::Metrics => "Metrics",
            },
        );
        why.metrics.iter().for_each(|metric| self.metric(metric));
        let failed = why.metrics.iter().any(|metric| metric.path == Path::Failed);
        if failed && why.rescaled {
            self.count(WRITES, "failed-but-scaled-up");
        }
        if let Some(stabilization) = &why.stabilization
            && let Some(held) = &stabilization.held_by
        {
            self.count(
                LIMITS,
                match (stabilization.behavior, held.up) {
                    (false, _) => "held-by-flag",
                    (true, true) => "held-by-up-window",
                    (true, false) => "held-by-down-window",
                },
            );
        }
        match why.limits.as_ref().and_then(|limits| limits.rate.as_ref()) {
            None => {}
            Some(RateLimit::Legacy(_)) => self.count(LIMITS, "legacy-limit"),
            Some(RateLimit::Policies { up, select, policies, .. }) => {
                self.count(
                    LIMITS,
                    match (up, select) {
                        (true, SelectPolicy::Max) => "up-max",
                        (true, SelectPolicy::Min) => "up-min",
                        (true, SelectPolicy::Disabled) => "up-disabled",
                        (false, SelectPolicy::Max) => "down-max",
                        (false, SelectPolicy::Min) => "down-min",
                        (false, SelectPolicy::Disabled) => "down-disabled",
                    },
                );
                if policies.iter().any(|policy| policy.added > 0) {
                    self.count(LIMITS, "policy-after-scale-up");
                }
                if policies.iter().any(|policy| policy.removed > 0) {
                    self.count(LIMITS, "policy-after-scale-down");
                }
            }
        }
    }

    fn metric(&mut self, metric: &MetricDerivation) {
        self.count(
            SOURCES,
            match metric.source {
                Source::Resource => "Resource",
                Source::ContainerResource(_) => "ContainerResource",
                Source::Pods => "Pods",
                Source::Object(_) => "Object",
                Source::External => "External",
            },
        );
        self.count(
            TARGETS,
            match metric.target {
                Target::Utilization(_) => "Utilization",
                Target::AverageValue(_) => "AverageValue",
                Target::Value(_) => "Value",
                Target::None => "None",
            },
        );
        self.count(
            PATHS,
            match metric.path {
                Path::Failed => "Failed",
                Path::FromZero => "FromZero",
                Path::Total => "Total",
                Path::WithinTolerance => "WithinTolerance",
                Path::Ready => "Ready",
                Path::SecondWithinTolerance => "SecondWithinTolerance",
                Path::SecondReversed => "SecondReversed",
                Path::CountReversed => "CountReversed",
                Path::Second => "Second",
            },
        );
        let pods = &metric.pods;
        let groups = [
            ("unready", pods.unready),
            ("missing", pods.missing),
            ("ignored", pods.ignored),
            ("unknown", pods.unknown),
        ];
        for (name, _) in groups.into_iter().filter(|(_, count)| *count > 0) {
            self.count(PODS, name);
        }
        if let Some(second) = metric.usage.as_ref().and_then(|usage| usage.second) {
            if pods.missing > 0 {
                self.count(
                    PODS,
                    match second.missing_as {
                        Some(Filled::Percent(_)) => "missing-as-percent",
                        Some(Filled::Target) => "missing-as-target",
                        Some(Filled::Zero) => "missing-as-zero",
                        None => "missing-left-out",
                    },
                );
            }
            if second.unready_as_zero {
                self.count(PODS, "unready-as-zero");
            }
        }
    }

    fn count(&mut self, group: usize, name: &str) {
        let (_, names) = KNOWN[group];
        match names.iter().position(|known| *known == name) {
            Some(index) => {
                let counts = &mut self.known[group];
                counts.resize(names.len(), 0);
                counts[index] += 1;
            }
            None => *self.other.entry((group, name.to_owned())).or_default() += 1,
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Coverage) {
        for (group, counts) in other.known.iter().enumerate() {
            self.known[group].resize(KNOWN[group].1.len(), 0);
            for (sum, count) in self.known[group].iter_mut().zip(counts) {
                *sum += count;
            }
        }
        for (key, count) in &other.other {
            *self.other.entry(key.clone()).or_default() += count;
        }
    }

    /// The groups, for a report.
    #[must_use]
    pub fn groups(&self) -> Vec<Reached> {
        let of = |(index, (group, names)): (usize, (&'static str, &[&'static str]))| {
            let counted = |at: usize| self.known[index].get(at).copied().unwrap_or(0);
            let all = || names.iter().enumerate();
            let known = all().filter(|(at, _)| counted(*at) > 0);
            let mut reached: Vec<(String, u64)> =
                known.map(|(at, name)| ((*name).to_owned(), counted(at))).collect();
            let others = self.other.iter().filter(|((group, _), _)| *group == index);
            reached.extend(others.map(|((_, name), count)| (name.clone(), *count)));
            let never = all().filter(|(at, _)| counted(*at) == 0).map(|(_, name)| *name);
            Reached { group, reached, never: never.collect() }
        };
        KNOWN.into_iter().enumerate().map(of).collect()
    }
}
