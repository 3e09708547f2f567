//! The coverage of the controller: reasons of conditions and events, error texts, and the branches,
//! paths, windows and limits of the model's derivations, as well as target kinds, API versions of
//! the HPA, and feature gates.
//!
//! Known items are listed, so that the report can name the items that were never reached. Unlisted
//! items are counted as well.

mod known;

use self::known::{CUSTOM, ERRORS, KNOWN};
use super::counts::{Counts, CoverageGroup};
use kube_autoscaler_models::api::{SelectPolicy, Text};
use kube_autoscaler_models::derivation::{
    Branch, Derivation, Filled, MetricDerivation, Path, RateLimit, Source, Target,
};
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_scenario::Scenario;

/// The reached items with the number of ticks, or of scenarios for kinds, versions and gates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage(Counts);

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage(Counts::new(&KNOWN))
    }
}

/// The groups of items, in the order of [`KNOWN`].
#[derive(Clone, Copy)]
enum ItemGroup {
    Conditions,
    Events,
    Branches,
    Sources,
    Targets,
    Paths,
    Pods,
    Limits,
    Writes,
    Errors,
    Kinds,
    Versions,
    Gates,
}

impl Coverage {
    /// Counts the targets, the API versions of the HPAs, and the feature gates of a scenario.
    pub fn begin(&mut self, scenario: &Scenario, release: Release) {
        let targets: Vec<_> = scenario.targets().collect();
        for hpa in &scenario.hpas {
            let target = targets.get(hpa.target);
            let built_in = target.filter(|it| it.group.is_empty() || it.group == "apps");
            self.count(ItemGroup::Kinds, built_in.map_or(CUSTOM, |it| it.kind));
            self.count(ItemGroup::Versions, &hpa.api_version);
        }
        let rules = Rules::of(release);
        let (possible, gates) = (rules.default_gates(), scenario.gates_by(&rules));
        for (gate, _) in possible.iter() {
            for value in [true, false] {
                if possible.clone().set(gate.name(), value).is_ok() {
                    let name = format!("{}={value}", gate.name());
                    self.0.count_possible(
                        ItemGroup::Gates as usize,
                        name,
                        gates.enabled(gate) == value,
                    );
                }
            }
        }
    }

    /// Counts error texts, in events and in the controller's log.
    fn errors<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let mut found = [false; ERRORS.len()];
        for text in texts {
            for (error, found) in ERRORS.iter().zip(&mut found) {
                *found |= text.contains(error);
            }
        }
        let names = ERRORS.iter().zip(found).filter(|(_, found)| *found);
        names.for_each(|(name, _)| self.count(ItemGroup::Errors, name));
    }

    /// Counts one reconcile from the model's derivation.
    pub fn add(&mut self, decision: &Decision) {
        let seen = &decision.observation;
        if seen.errors().next().is_some() {
            self.errors(seen.errors().map(Text::as_str));
        }
        if let Some(write) = seen.status_write() {
            for condition in &write.status.conditions {
                self.count(ItemGroup::Conditions, condition.reason.as_str());
            }
            self.count(
                ItemGroup::Writes,
                if write.error.is_some() { "status-refused" } else { "status" },
            );
        } else {
            self.count(ItemGroup::Writes, "status-unchanged");
        }
        for event in seen.events() {
            self.count(ItemGroup::Events, event.reason.as_str());
        }
        for read in seen.reads().filter(|read| read.error().is_some()) {
            let is_metric_query = read.is_metric_query();
            self.count(
                ItemGroup::Writes,
                if is_metric_query { "metrics-unreadable" } else { "scale-unreadable" },
            );
        }
        let writes = seen.scale_writes();
        if writes.clone().next().is_some() {
            let refused = writes.clone().any(|write| write.error.is_some());
            self.count(ItemGroup::Writes, if refused { "scale-refused" } else { "scale" });
            if writes.count() > 1 {
                self.count(ItemGroup::Writes, "scale-tried-again");
            }
        }
        self.derivation(&decision.derivation);
    }

    fn derivation(&mut self, why: &Derivation) {
        self.count(
            ItemGroup::Branches,
            match why.branch {
                Branch::NoScale => "NoScale",
                Branch::Skipped => "Skipped",
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
            self.count(ItemGroup::Writes, "failed-but-scaled-up");
        }
        if let Some(stabilization) = &why.stabilization
            && let Some(held) = &stabilization.held_by
        {
            self.count(
                ItemGroup::Limits,
                match (stabilization.behavior, held.up) {
                    (false, _) => "held-by-flag",
                    (true, true) => "held-by-up-window",
                    (true, false) => "held-by-down-window",
                },
            );
        }
        match why.limits.as_ref().and_then(|limits| limits.rate.as_ref()) {
            None => {}
            Some(RateLimit::Legacy(_)) => self.count(ItemGroup::Limits, "legacy-limit"),
            Some(RateLimit::Policies { up, select, policies, .. }) => {
                self.count(
                    ItemGroup::Limits,
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
                    self.count(ItemGroup::Limits, "policy-after-scale-up");
                }
                if policies.iter().any(|policy| policy.removed > 0) {
                    self.count(ItemGroup::Limits, "policy-after-scale-down");
                }
            }
        }
    }

    fn metric(&mut self, metric: &MetricDerivation) {
        self.count(
            ItemGroup::Sources,
            match metric.source {
                Source::Resource => "Resource",
                Source::ContainerResource(_) => "ContainerResource",
                Source::Pods => "Pods",
                Source::Object(_) => "Object",
                Source::External => "External",
            },
        );
        self.count(
            ItemGroup::Targets,
            match metric.target {
                Target::Utilization(_) => "Utilization",
                Target::AverageValue(_) => "AverageValue",
                Target::Value(_) => "Value",
                Target::None => "None",
            },
        );
        self.count(
            ItemGroup::Paths,
            match metric.path {
                Path::Failed => "Failed",
                Path::FromZero => "FromZero",
                Path::Total => "Total",
                Path::WithinTolerance => "WithinTolerance",
                Path::Ready => "Ready",
                Path::Replicas => "Replicas",
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
            self.count(ItemGroup::Pods, name);
        }
        if let Some(second) = metric.usage.as_ref().and_then(|usage| usage.second) {
            if pods.missing > 0 {
                self.count(
                    ItemGroup::Pods,
                    match second.missing_as {
                        Some(Filled::Percent(_)) => "missing-as-percent",
                        Some(Filled::Target) => "missing-as-target",
                        Some(Filled::Zero) => "missing-as-zero",
                        None => "missing-left-out",
                    },
                );
            }
            if second.unready_as_zero {
                self.count(ItemGroup::Pods, "unready-as-zero");
            }
        }
    }

    fn count(&mut self, group: ItemGroup, name: &str) {
        self.0.count(group as usize, name);
    }

    /// Adds the counts of another coverage.
    pub fn merge(&mut self, other: &Coverage) {
        self.0.merge(&other.0);
    }

    /// The groups, for a report.
    #[must_use]
    pub fn groups(&self) -> Vec<CoverageGroup> {
        self.0.groups()
    }
}
