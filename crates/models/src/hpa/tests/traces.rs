//! Runs of the real v1.37.0 controller under a fake clock, reproduced by the model. Pods request
//! 1 cpu and have been ready for an hour; flags have their defaults.

use super::*;
use crate::api::SelectPolicy;
use crate::derivation::Limit;

const ABOVE: &str = "cpu resource utilization (percentage of request) above target";
const BELOW: &str = "All metrics below target";

fn reasons(test: &HpaTest) -> Vec<String> {
    let rescales = test.events().into_iter().filter(|(reason, _)| reason == "SuccessfulRescale");
    rescales.map(|(_, text)| text.split_once("reason: ").unwrap().1.to_owned()).collect()
}

#[test]
fn tolerance_has_inclusive_edges() {
    for (usage, utilization, proposal) in
        [("889m", 88, 10), ("890m", 89, 12), ("720m", 72, 10), ("719m", 71, 9)]
    {
        let mut test = HpaTest::new(10, 1, 100, 80, ready(usage));
        let metric = test.first().derivation.metrics[0].clone();
        assert_eq!(metric.usage.unwrap().utilization, Some(utilization), "{usage}");
        assert_eq!(metric.proposal, Some(proposal), "{usage}");
    }
    let mut test = HpaTest::new(10, 1, 100, 80, ready("719m"));
    test.run(0);
    assert_eq!(test.scales(), []);
    let held = Some((true, "ScaleDownStabilized"));
    assert_eq!(test.condition(ConditionType::AbleToScale), held);
}

#[test]
fn a_spike_of_one_tick_keeps_doubling_the_replicas_for_the_window() {
    let mut test = HpaTest::new(1, 1, 100, 80, ready("40"));
    test.run(0);
    test.kinds = vec![ready("100m")];
    test.run(330);
    assert_eq!(test.scales(), [(0, 4), (15, 8), (30, 16), (45, 32), (60, 50), (315, 7)]);
    assert_eq!(reasons(&test), [ABOVE, BELOW, BELOW, BELOW, BELOW, BELOW]);
}

#[test]
fn an_edit_at_7_s_is_an_extra_reconcile() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("500m"));
    test.run(6);
    test.edit(Time::from_secs(7), |spec| spec.max_replicas = 9);
    test.run(45);
    let at: Vec<i64> = test.decisions.iter().map(|it| seconds(it.observation.at)).collect();
    assert_eq!(at, [0, 7, 15, 30, 45]);
    assert_eq!(test.hpa.unwrap().status.observed_generation, Some(2));
}

#[test]
fn percent_policies_round_in_binary() {
    let up = policies(&[(ScalingPolicyType::Percent, 10, 60)]);
    let behavior = Behavior { scale_up: Some(up), scale_down: None };
    let mut test = HpaTest::new(50, 1, 100, 80, ready("2")).behavior(behavior);
    test.run(60);
    assert_eq!(test.scales(), [(0, 56), (60, 62)]);

    let mut down = policies(&[(ScalingPolicyType::Percent, 80, 15)]);
    down.stabilization_window_seconds = Some(0);
    let behavior = Behavior { scale_up: None, scale_down: Some(down) };
    let mut test = HpaTest::new(10, 1, 100, 80, ready("0")).behavior(behavior);
    test.run(0);
    assert_eq!(test.scales(), [(0, 1)]);
    let limited = Some((true, "TooFewReplicas"));
    assert_eq!(test.condition(ConditionType::ScalingLimited), limited);
}

#[test]
fn a_scale_event_one_period_old_no_longer_counts() {
    let mut test = HpaTest::new(1, 1, 100, 80, ready("40")).behavior(Behavior::default());
    test.run(45);
    assert_eq!(test.scales(), [(0, 5), (15, 10), (30, 20), (45, 40)]);
}

#[test]
fn a_scale_without_effect_moves_the_condition_every_tick() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.update_scale = Some(api_error(403, "Forbidden", "no"));
    test.run(30);
    assert_eq!(test.decisions.len(), 3);
    for decision in &test.decisions {
        let tick = &decision.observation;
        let status = &tick.status_write().unwrap().status;
        let condition = &status.conditions[0];
        assert_eq!((condition.status, condition.reason.as_str()), (false, "FailedUpdateScale"));
        assert_eq!(condition.last_transition_time, tick.at);
        assert_eq!(status.desired_replicas, 0);
        assert_eq!(
            tick.events().next().unwrap().message.as_str(),
            format!("New size: 6; reason: {ABOVE}; error: no")
        );
        assert_eq!(
            tick.errors().next().unwrap().as_str(),
            "failed to rescale Deployment/default/web: no"
        );
        assert_eq!(decision.derivation.limited_by(), Some(Limit::ScaleNotWritten));
    }
    assert_eq!(test.scales(), []);
}

#[test]
fn a_huge_pods_policy_overflows_and_blocks_scaling() {
    let up = policies(&[(ScalingPolicyType::Pods, i32::MAX, 60)]);
    let behavior = Behavior { scale_up: Some(up), scale_down: None };
    let mut test = HpaTest::new(5, 1, 100, 80, ready("2")).behavior(behavior);
    test.run(60);
    assert_eq!(test.scales(), []);
    let limited = Some((true, "ScaleUpLimit"));
    assert_eq!(test.condition(ConditionType::ScalingLimited), limited);
}

#[test]
fn limits_apply_although_scaling_down_is_disabled() {
    let down =
        ScalingRules { select_policy: Some(SelectPolicy::Disabled), ..ScalingRules::default() };
    let behavior = Behavior { scale_up: None, scale_down: Some(down) };
    let mut test = HpaTest::new(9, 1, 5, 80, ready("0")).behavior(behavior);
    test.run(600);
    assert_eq!(test.scales(), [(0, 5)]);
    assert_eq!(reasons(&test), ["Current number of replicas above Spec.MaxReplicas"]);
}

#[test]
fn succeeded_pods_block_scaling() {
    for usage in ["900m", "200m"] {
        let mut test = HpaTest::new(2, 1, 10, 50, ready(usage));
        let done = TestPod { phase: PodPhase::Succeeded, usage: None, ..ready(usage) };
        test.kinds = vec![ready(usage), ready(usage), done];
        test.surplus = 8;
        test.run(600);
        assert_eq!(test.scales(), [], "{usage}");
    }
}

#[test]
fn a_proposal_beyond_i32_becomes_zero() {
    let spec = spec(1, 20, vec![resource("cpu", average_value("1m"))]);
    let mut test = HpaTest::of(spec, 10, ready("300000"));
    test.run(345);
    // The proposal is the smallest i32 and counts as 0. For a single pod, 300,000,000 fits.
    assert_eq!(test.scales()[..2], [(315, 1), (330, 4)]);
    assert_eq!(reasons(&test)[0], BELOW);
}

#[test]
fn ready_surge_pods_are_counted() {
    let mut test = HpaTest::new(1, 1, 10, 80, ready("480m"));
    test.surplus = 1;
    test.run(0);
    assert_eq!(test.scales(), [(0, 2)]);
    assert_eq!(reasons(&test), [ABOVE]);

    let mut test = HpaTest::new(10, 1, 100, 80, ready("700m"));
    test.surplus = 3;
    test.run(75);
    let sizes: Vec<i32> = test.scales().into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, [12, 14, 15, 16, 17, 18]);
}

#[test]
fn a_recreated_hpa_keeps_its_history_between_two_ticks() {
    let mut test = HpaTest::new(10, 1, 100, 80, ready("0"));
    test.run(60);
    let spec = test.hpa.as_ref().unwrap().spec.as_ref().clone();
    test.delete(Time::from_secs(61));
    test.create(spec.clone(), Time::from_secs(62));
    test.run(400);
    assert_eq!(test.scales(), [(315, 1)]);

    let mut test = HpaTest::new(10, 1, 100, 80, ready("0"));
    test.run(60);
    test.delete(Time::from_secs(61));
    test.run(75);
    test.create(spec, Time::from_secs(76));
    // The initial recommendation is still in the window at 376 s, 300 s later.
    test.run(390);
    assert_eq!(test.scales(), []);
    test.run(391);
    assert_eq!(test.scales(), [(391, 1)]);
}

#[test]
fn a_restart_forgets_recommendations_and_waits_for_the_caches() {
    let mut test = HpaTest::new(10, 1, 100, 80, ready("0"));
    test.run(200);
    let key = test.key.clone();
    test.controller.restarted(&[key], Time::from_secs(200));
    assert_eq!(test.controller.next_sync(), Some(Time::from_secs(200) + Span::from_millis(100)));
    test.run(515);
    assert_eq!(test.scales(), []);
    test.run(516);
    assert_eq!(test.scales(), [(515, 1)]);
}
