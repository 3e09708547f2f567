//! Reduces ticks: a later start with the state of that time, or an earlier failure.

use serde_json::{Value, json};

use super::durations::span;
use super::{Work, simpler};
use kube_autoscaler_models::hpa::{ApiVersion, decode_spec, drop_zero_totals};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::defaults::AGE;

/// The numbers of ticks before the failure to try as the start.
const BEFORE: [i64; 6] = [0, 1, 2, 3, 5, 8];

/// The number of initial replicas to try.
const MAX_REPLICAS: usize = 8;

/// Flags that cause earlier changes if they are zero.
const DELAYS: [&str; 5] = [
    "horizontal-pod-autoscaler-cpu-initialization-period",
    "horizontal-pod-autoscaler-initial-readiness-delay",
    "horizontal-pod-autoscaler-downscale-stabilization",
    "horizontal-pod-autoscaler-upscale-delay",
    "horizontal-pod-autoscaler-downscale-delay",
];

impl<S> Work<'_, S> {
    /// Starts shortly before the failure, with the replicas at that time.
    pub(super) fn start_later(&mut self) {
        let period = simpler::tick_interval(&self.tree).0;
        let ticks = self.failure.at.since_start().0 / period;
        for before in BEFORE.into_iter().filter(|before| *before < ticks) {
            let by = Span((ticks - before) * period);
            let trees = self.with_replicas();
            let trees = if trees.is_empty() { vec![self.tree.clone()] } else { trees };
            if trees.iter().any(|tree| self.begin_later(tree, by)) {
                return;
            }
        }
        // With other replicas, the scenario might fail immediately.
        for tree in self.with_replicas() {
            self.accept_if_earlier(tree);
        }
    }

    /// The tree with each number of replicas up to the failure.
    fn with_replicas(&self) -> Vec<Value> {
        let with = |replicas: i32| {
            let mut tree = self.tree.clone();
            tree["workload"]["replicas"] = json!(replicas);
            tree
        };
        self.replicas().into_iter().map(with).collect()
    }

    /// Moves all events and signals to an earlier time.
    pub(super) fn move_earlier(&mut self) {
        let period = simpler::tick_interval(&self.tree).0;
        let whole = |nanos: i64| Span(nanos / period * period);
        let until = span("until", &self.tree["until"]).unwrap_or(Span::ZERO);
        let mut by = whole(until.0 / 2);
        while by > Span::ZERO {
            if !self.begin_later(&self.tree.clone(), by) {
                by = whole(by.0 / 2);
            }
        }
    }

    /// Moves the start of a tree to a later time. The pods have the original age, the age at that
    /// time, or age zero.
    fn begin_later(&mut self, tree: &Value, by: Span) -> bool {
        let age = span("age", &self.tree["workload"]["age"]).unwrap_or(AGE);
        let mut ages = vec![age];
        if simpler::has_hpa(tree) {
            ages.extend([Span(age.0.saturating_add(by.0)), Span::ZERO]);
        }
        ages.dedup();
        for new_age in ages {
            let mut tree = tree.clone();
            simpler::move_earlier(&mut tree, by);
            simpler::forget_the_past(&mut tree);
            if new_age != age {
                tree["workload"]["age"] = Value::from(new_age.to_string());
            }
            if self.accept(tree) {
                return true;
            }
        }
        false
    }

    /// The distinct replicas up to the failure, the latest first.
    fn replicas(&self) -> Vec<i32> {
        let mut distinct: Vec<i32> = Vec::new();
        for replicas in &self.failure.replicas {
            if (0..=1000).contains(replicas) && !distinct.contains(replicas) {
                distinct.push(*replicas);
            }
        }
        distinct.truncate(MAX_REPLICAS);
        distinct
    }

    /// Removes a delay, because the scenario might fail earlier.
    pub(super) fn try_flags(&mut self) {
        if !simpler::has_hpa(&self.tree) {
            return;
        }
        for flag in DELAYS {
            let mut tree = self.tree.clone();
            tree["controller"]["flags"][flag] = json!("0s");
            self.accept_if_earlier(tree);
        }
    }

    /// Changes the target to a Deployment.
    pub(super) fn usual_kind(&mut self) {
        let mut tree = self.tree.clone();
        let target = tree.pointer_mut("/hpa/spec/scaleTargetRef").and_then(Value::as_object_mut);
        let Some(target) = target else { return };
        target.insert("apiVersion".to_owned(), json!("apps/v1"));
        target.insert("kind".to_owned(), json!("Deployment"));
        self.accept(tree);
    }

    /// Converts a v1 HPA to v2, which is more readable than JSON in an annotation.
    pub(super) fn newer_versions(&mut self) {
        let count = self.tree["hpas"].as_array().map_or(1, Vec::len);
        for index in 0..count {
            let mut tree = self.tree.clone();
            let manifest = match tree.get("hpas") {
                None => tree.get_mut("hpa"),
                Some(_) => tree.get_mut("hpas").and_then(|hpas| hpas.get_mut(index)),
            };
            let Some(manifest) = manifest else { continue };
            let Ok((mut spec, ApiVersion::V1)) = decode_spec(manifest) else { continue };
            drop_zero_totals(&mut spec);
            let Ok(spec) = serde_json::to_value(spec) else { continue };
            *manifest = json!({
                "apiVersion": "autoscaling/v2",
                "kind": manifest["kind"],
                "metadata": { "name": manifest["metadata"]["name"] },
                "spec": spec,
            });
            self.accept(tree);
        }
    }
}
