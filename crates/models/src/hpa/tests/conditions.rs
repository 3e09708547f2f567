//! Conditions, events and the status.

use super::*;
use crate::api::SelectPolicy;
use crate::derivation::{Branch, Limit};
use crate::observation::{ControllerAction, Items};

fn types(test: &HpaTest) -> Vec<ConditionType> {
    let conditions = &test.hpa.as_ref().unwrap().status.conditions;
    conditions.iter().map(|condition| condition.type_).collect()
}

#[test]
fn conditions_keep_the_order_of_their_first_occurrence() {
    use ConditionType::{AbleToScale, ScaledToZero, ScalingActive, ScalingLimited};
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.run(0);
    assert_eq!(types(&test), [AbleToScale, ScalingActive, ScalingLimited, ScaledToZero]);

    let mut test = HpaTest::new(9, 1, 5, 50, ready("1"));
    test.run(15);
    assert_eq!(types(&test), [AbleToScale, ScaledToZero, ScalingActive, ScalingLimited]);
}

#[test]
fn a_steady_state_only_reads() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("500m"));
    test.run(30);
    let first = &test.decisions[0].observation;
    assert_eq!(first.reads().count(), 2);
    let answer = Ok(Items { items: 3 });
    let list = ControllerAction::ListPodMetrics { selector: "app=web".into(), answer };
    assert_eq!(first.actions().nth(1), Some(&list));
    let status = &first.status_write().unwrap().status;
    assert_eq!((status.current_replicas, status.desired_replicas), (Some(3), 3));
    assert_eq!(status.observed_generation, Some(1));
    let messages: Vec<&str> = status.conditions.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "recommended size matches current size",
            "the HPA was able to successfully calculate a replica count from cpu resource \
             utilization (percentage of request)",
            "the desired count is within the acceptable range",
        ]
    );
    for decision in &test.decisions[1..] {
        assert_eq!(decision.observation.status_write(), None);
        assert!(decision.observation.reads().eq(first.reads()));
        assert!(decision.observation.events().next().is_none());
    }
}

#[test]
fn times_are_stored_in_whole_seconds() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    let key = test.key.clone();
    test.controller.restarted(&[key], Time::from_secs(5));
    test.run(6);
    let decision = test.last();
    assert_eq!(decision.observation.at, Time(5_100_000_000));
    let status = &decision.observation.status_write().unwrap().status;
    assert_eq!(status.last_scale_time, Some(Time::from_secs(5)));
    assert_eq!(status.conditions[0].last_transition_time, Time::from_secs(5));
}

#[test]
fn zero_replicas_disable_scaling() {
    let mut test = HpaTest::new(0, 1, 10, 50, ready("1"));
    test.run(15);
    assert_eq!(test.scales(), []);
    assert_eq!(test.condition(ConditionType::ScalingActive), Some((false, "ScalingDisabled")));
    let status = &test.hpa.as_ref().unwrap().status;
    assert_eq!((status.current_replicas, status.desired_replicas), (None, 0));
    assert_eq!(test.last().derivation.branch, Branch::Disabled);
    assert_eq!(test.last().observation.status_write(), None);
}

#[test]
fn limits_apply_without_metrics_and_clear_the_metric_status() {
    let mut test = HpaTest::new(12, 1, 5, 50, ready("500m"));
    test.edit_spec(|spec| spec.max_replicas = 20);
    test.run(0);
    test.edit(Time::from_secs(7), |spec| spec.max_replicas = 5);
    test.run(7);
    let tick = &test.last().observation;
    assert_eq!(tick.reads().count(), 1);
    let status = &tick.status_write().unwrap().status;
    assert_eq!(status.current_metrics, []);
    assert_eq!((status.current_replicas, status.desired_replicas), (Some(12), 5));
    assert_eq!(
        test.events().last().unwrap().1,
        "New size: 5; reason: Current number of replicas above Spec.MaxReplicas"
    );

    let mut test = HpaTest::new(1, 3, 5, 50, ready("500m"));
    test.run(0);
    assert_eq!(test.scales(), [(0, 3)]);
}

#[test]
fn the_gates_control_the_scaled_to_zero_condition_and_the_generation() {
    let mut gates = FeatureGates::default();
    gates.set("HPAScaleToZero", false).unwrap();
    gates.set("HPAGeneration", false).unwrap();
    let spec = spec(1, 10, vec![resource("cpu", utilization(50))]);
    let mut test = HpaTest::with_gates(spec, 3, ready("1"), gates);
    test.run(0);
    assert_eq!(test.condition(ConditionType::ScaledToZero), None);
    let status = &test.hpa.as_ref().unwrap().status;
    assert_eq!(status.observed_generation, None);
    // An edit has no effect before the next tick.
    test.edit(Time::from_secs(7), |spec| spec.max_replicas = 4);
    assert_eq!(test.controller.next_sync(), Some(Time::from_secs(15)));
}

#[test]
fn scale_up_is_stabilized_and_scale_down_limited_by_policies() {
    let up = ScalingRules { stabilization_window_seconds: Some(60), ..ScalingRules::default() };
    let mut down =
        policies(&[(ScalingPolicyType::Pods, 1, 30), (ScalingPolicyType::Percent, 50, 30)]);
    down.stabilization_window_seconds = Some(0);
    down.select_policy = Some(SelectPolicy::Min);
    let behavior = Behavior { scale_up: Some(up), scale_down: Some(down) };
    let mut test = HpaTest::new(4, 1, 100, 50, ready("1")).behavior(behavior);
    test.run(45);
    assert_eq!(test.scales(), []);
    let held = Some((true, "ScaleUpStabilized"));
    assert_eq!(test.condition(ConditionType::AbleToScale), held);
    // A recommendation exactly as old as the window is outside it.
    test.run(60);
    assert_eq!(test.scales(), [(60, 8)]);
    test.kinds = vec![ready("0")];
    test.run(135);
    // One pod every 30 s. The first period includes the scale-up of t=60 s, so it began at 4.
    assert_eq!(test.scales()[1..], [(75, 3), (105, 2), (135, 1)]);
    test.kinds = vec![ready("1")];
    test.scale.replicas = 9;
    test.run(600);
    test.kinds = vec![ready("0")];
    test.run(615);
    let limited = Some((true, "ScaleDownLimit"));
    assert_eq!(test.condition(ConditionType::ScalingLimited), limited);
    assert_eq!(test.last().derivation.limited_by(), Some(Limit::ScaleDownPolicy));
}

#[test]
fn a_derivation_explains_the_decision() {
    let mut test = HpaTest::new(3, 1, 100, 50, ready("1"));
    test.run(0);
    assert_eq!(
        test.last().derivation.summary(),
        "resource cpu 100% of 50% (ratio 2, 3 ready) -> 6"
    );
    let explained = test.last().derivation.explain().join(" ");
    assert!(explained.contains("the highest is 3, from t=0s, 0s ago, and keeps 6"), "{explained}");
    test.kinds = vec![ready("400m")];
    test.run(15);
    assert_eq!(
        test.last().derivation.summary(),
        "resource cpu 40% of 50% (ratio 0.8, 6 ready) -> 5; stabilize: 6 recommended at t=0s, 15s \
         old, window 5m -> 6"
    );
    assert_eq!(test.last().derivation.limited_by(), Some(Limit::Stabilization));
    assert_eq!(
        test.last().derivation.explain(),
        [
            "The target has 6 replicas; 1 to 100 are allowed.",
            "Metric cpu: 6 pods counted, 0 not ready, 0 without a metric, 0 failed or terminating.",
            "They use 2400m of the requested 6: 40%, rounded down; the target is 50%. The ratio \
             is 0.8.",
            "That is outside the tolerance, 0.9 to 1.1: cpu proposes 0.8 × 6 pods, rounded up: 5.",
            "Stabilization (window 5m) considers 2 earlier recommendations; the highest is 6, from \
             t=0s, 15s ago: 5 becomes 6.",
            "Without behavior, 6 replicas may increase to at most 12 (twice as many, or 4 if that \
             is more).",
            "The target stays at 6 replicas.",
        ]
    );
}

/// The text helps in comparisons with a controller whose window had an effect.
#[test]
fn a_window_without_effect_is_mentioned_when_replicas_change() {
    let window = |seconds| ScalingRules {
        stabilization_window_seconds: Some(seconds),
        ..ScalingRules::default()
    };
    let behavior = Behavior { scale_up: Some(window(60)), scale_down: Some(window(0)) };
    let mut test = HpaTest::new(4, 1, 100, 50, ready("500m")).behavior(behavior);
    test.run(60);
    test.kinds = vec![ready("1")];
    test.run(120);
    let derivation = &test.last().derivation;
    let (summary, explained) = (derivation.summary(), derivation.explain().join(" "));
    assert!(
        summary.contains("window 1m has no effect: its lowest is 8, from t=1m15s"),
        "{summary}"
    );
    assert!(explained.contains("; the lowest is 8, from t=1m15s"), "{explained}");
}
