//! The pods that count, and the assumed usage of the others.

use super::*;
use crate::api::{MetricStatus, MetricValueStatus, ResourceMetricStatus};
use crate::derivation::{Filled, Path, PodCounts};

fn secs(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

/// The groups of a ready pod and a pod of this kind, at t=0.
fn counts_of(kind: TestPod, resource_name: &'static str) -> PodCounts {
    let spec = spec(1, 10, vec![resource(resource_name, utilization(50))]);
    let mut test = HpaTest::of(spec, 2, ready("500m"));
    test.resource = resource_name;
    test.kinds = vec![ready("500m"), kind];
    test.first().derivation.metrics[0].pods
}

fn counts(ready: u32, unready: u32, missing: u32, ignored: u32) -> PodCounts {
    PodCounts { ready, unready, missing, ignored, unknown: 0 }
}

#[test]
fn pods_are_grouped_in_upstreams_order_of_tests() {
    let usage = "500m";
    let terminating = TestPod { terminating: true, phase: PodPhase::Pending, ..ready(usage) };
    let failed = TestPod { phase: PodPhase::Failed, usage: None, ..ready(usage) };
    let pending = TestPod { phase: PodPhase::Pending, usage: None, ..ready(usage) };
    let missing = TestPod { usage: None, ready: None, ..ready(usage) };
    let succeeded = TestPod { phase: PodPhase::Succeeded, usage: None, ..ready(usage) };
    let unknown = TestPod { phase: PodPhase::Unknown, ..ready(usage) };
    for (kind, expected) in [
        (terminating, counts(1, 0, 0, 1)),
        (failed, counts(1, 0, 0, 1)),
        (pending, counts(1, 1, 0, 0)),
        (missing, counts(1, 0, 1, 0)),
        (succeeded, counts(1, 0, 1, 0)),
        (unknown, counts(2, 0, 0, 0)),
    ] {
        assert_eq!(counts_of(kind.clone(), "cpu"), expected, "{kind:?}");
    }
}

#[test]
fn readiness_counts_for_cpu_only() {
    let no_condition = TestPod { ready: None, ..ready("500m") };
    assert_eq!(counts_of(no_condition.clone(), "cpu"), counts(1, 1, 0, 0));
    assert_eq!(counts_of(no_condition, "memory"), counts(2, 0, 0, 0));
    let no_start = TestPod { start_time: None, ..ready("500m") };
    assert_eq!(counts_of(no_start, "cpu"), counts(1, 1, 0, 0));
}

#[test]
fn young_pods_count_after_a_whole_window_of_readiness() {
    let young = |status, transition| TestPod {
        start_time: Some(secs(-299)),
        ready: Some((status, secs(transition))),
        ..ready("500m")
    };
    let old = |status, start, transition| TestPod {
        start_time: Some(secs(start)),
        ready: Some((status, secs(transition))),
        ..ready("500m")
    };
    use ConditionStatus::{False, True, Unknown};
    for (kind, unready) in [
        // Samples have the time t=0 and a window of 30 s.
        (young(True, -30), 0),
        (young(True, -29), 1),
        (young(False, -200), 1),
        (young(Unknown, -200), 0),
        // Exactly at the end of the initialization period, a pod is no longer young.
        (old(True, -300, -1), 0),
        // The pod was never ready: the transition is within 30 s of the start.
        (old(False, -3600, -3571), 1),
        (old(False, -3600, -3570), 0),
        (old(Unknown, -3600, -3571), 0),
    ] {
        assert_eq!(counts_of(kind.clone(), "cpu").unready, unready, "{kind:?}");
    }
}

#[test]
fn missing_pods_count_fully_for_scaling_down() {
    let missing = TestPod { usage: None, ..ready("0") };
    // 5 at 30% of 50% and 5 missing: (5·30 + 5·100) / 10 = 65%: the direction would change.
    let mut test = HpaTest::new(10, 1, 20, 50, ready("300m"));
    let known = vec![ready("300m"); 5];
    test.kinds = [known, vec![missing.clone()]].concat();
    let metric = test.first().derivation.metrics[0].clone();
    assert_eq!(metric.path, Path::SecondReversed);
    assert_eq!(metric.proposal, Some(10));
    assert_eq!(metric.usage.unwrap().second.unwrap().ratio, 1.3);

    // With a target above 100%, missing pods count with the target. 5 at 75%, 5 missing at 200%:
    // 137%, a ratio of 0.685, 7 pods.
    let mut test = HpaTest::new(10, 1, 20, 200, ready("750m"));
    test.kinds = [vec![ready("750m"); 5], vec![missing]].concat();
    let metric = test.first().derivation.metrics[0].clone();
    let second = metric.usage.unwrap().second.unwrap();
    assert_eq!(second.missing_as, Some(Filled::Percent(200)));
    assert_eq!((second.ratio, metric.proposal, metric.path), (0.685, Some(7), Path::Second));
}

#[test]
fn missing_and_unready_pods_count_zero_for_scaling_up() {
    let missing = TestPod { usage: None, ..ready("0") };
    let pending = TestPod { phase: PodPhase::Pending, usage: None, ..ready("0") };
    // 3 at 90% of 30%, one missing, one pending: 270 / 5 = 54%, a ratio of 1.8, 9 pods.
    let mut test = HpaTest::new(5, 1, 20, 30, ready("900m"));
    let known = vec![ready("900m"); 3];
    test.kinds = [known, vec![missing.clone(), pending.clone()]].concat();
    let metric = test.first().derivation.metrics[0].clone();
    let second = metric.usage.unwrap().second.unwrap();
    assert_eq!((second.missing_as, second.unready_as_zero), (Some(Filled::Zero), true));
    assert_eq!((second.pods, metric.proposal), (5, Some(9)));

    // For scaling down, unready pods are not counted.
    let mut test = HpaTest::new(3, 1, 20, 90, ready("300m"));
    test.kinds = vec![ready("300m"), ready("300m"), pending];
    let metric = test.first().derivation.metrics[0].clone();
    assert!(metric.usage.unwrap().second.is_none());
    assert_eq!((metric.path, metric.proposal), (Path::Ready, Some(1)));

    // Exactly on target, no values are filled in.
    let mut test = HpaTest::new(2, 1, 20, 50, ready("500m"));
    test.kinds = vec![ready("500m"), missing];
    let metric = test.first().derivation.metrics[0].clone();
    assert_eq!(metric.usage.unwrap().second.unwrap().missing_as, None);
    assert_eq!((metric.path, metric.proposal), (Path::SecondWithinTolerance, Some(2)));
}

#[test]
fn added_pods_never_reverse_the_direction() {
    // 4 pods for 1 replica, one missing: the metric scales down, but 3 pods would be more than 1.
    let missing = TestPod { usage: None, ..ready("0") };
    let mut test = HpaTest::new(1, 1, 20, 100, ready("500m"));
    test.surplus = 3;
    test.kinds = vec![ready("500m"), ready("500m"), ready("500m"), missing];
    let metric = test.first().derivation.metrics[0].clone();
    assert_eq!(metric.usage.unwrap().second.unwrap().proposal, 3);
    assert_eq!((metric.path, metric.proposal), (Path::CountReversed, Some(1)));
}

#[test]
fn average_values_count_metrics_of_unknown_pods() {
    let spec = spec(1, 20, vec![resource("memory", average_value("100Mi"))]);
    let mut test = HpaTest::of(spec, 4, ready("200Mi"));
    test.resource = "memory";
    test.request = None;
    let status = &test.first().observation.status_write().unwrap().status;
    let value = quantity("200Mi");
    assert_eq!(
        status.current_metrics,
        [MetricStatus::Resource {
            resource: ResourceMetricStatus {
                name: "memory".into(),
                current: MetricValueStatus {
                    average_value: Some(value),
                    ..MetricValueStatus::default()
                },
            },
        }]
    );
    assert_eq!(test.scales(), [(0, 8)]);
}

#[test]
fn missing_pods_count_their_target_for_average_values() {
    let missing = TestPod { usage: None, ..ready("0") };
    let spec = spec(1, 20, vec![resource("cpu", average_value("100m"))]);
    let mut test = HpaTest::of(spec, 10, ready("50m"));
    test.kinds = [vec![ready("50m"); 8], vec![missing]].concat();
    let metric = test.first().derivation.metrics[0].clone();
    let second = metric.usage.unwrap().second.unwrap();
    // (8·50 + 2·100) / 10 = 60: a ratio of 0.6, 6 pods.
    assert_eq!(second.missing_as, Some(Filled::Target));
    assert_eq!((second.ratio, metric.proposal), (0.6, Some(6)));
}

#[test]
fn tolerances_of_the_hpa_replace_the_flag() {
    let rules = |tolerance| ScalingRules { tolerance, ..ScalingRules::default() };
    let behavior = Behavior {
        scale_up: Some(rules(Some(quantity("0.3")))),
        scale_down: Some(rules(Some(quantity("0")))),
    };
    for (usage, path) in [
        ("650m", Path::WithinTolerance),
        ("660m", Path::Ready),
        ("500m", Path::WithinTolerance),
        ("490m", Path::Ready),
    ] {
        let test = HpaTest::new(10, 1, 100, 50, ready(usage));
        let metric = test.behavior(behavior.clone()).first().derivation.metrics[0].clone();
        assert_eq!(metric.path, path, "{usage}");
    }
}
