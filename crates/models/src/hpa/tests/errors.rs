//! Failures, and the errors that the controller reports.

use super::*;
use crate::api::MetricStatus;

fn errors(decision: &Decision) -> Vec<&str> {
    decision.observation.errors().map(|error| error.as_str()).collect()
}

fn message(test: &HpaTest, type_: ConditionType) -> &str {
    let conditions = &test.hpa.as_ref().unwrap().status.conditions;
    conditions.iter().find(|it| it.type_ == type_).unwrap().message.as_str()
}

#[test]
fn an_unreadable_scale_ends_the_reconcile() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.get_scale = Some(api_error(404, "NotFound", "deployments.apps \"web\" not found"));
    let expected = "failed to query scale subresource for Deployment/default/web: \
                    deployments.apps \"web\" not found";
    assert_eq!(errors(test.first()), [expected]);
    assert_eq!(test.condition(ConditionType::AbleToScale), Some((false, "FailedGetScale")));
    assert_eq!(
        message(&test, ConditionType::AbleToScale),
        "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" \
         not found"
    );
    assert_eq!(test.events()[0].1, "deployments.apps \"web\" not found");
    assert_eq!(test.hpa.as_ref().unwrap().status.observed_generation, None);
}

#[test]
fn an_invalid_api_version_ends_the_reconcile() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.edit_spec(|spec| spec.scale_target_ref.api_version = Some("a/b/c".to_owned()));
    let error = "unexpected GroupVersion string: a/b/c";
    let expected = format!("invalid API version in scale target reference: {error}");
    assert_eq!(errors(test.first()), [expected.as_str()]);
    assert!(test.last().observation.actions().all(|action| !action.is_read()));
    assert_eq!(test.events(), [("FailedGetScale".to_owned(), error.to_owned())]);
}

#[test]
fn unreadable_metrics_deactivate_scaling() {
    let g = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to \
             fetch metrics from resource metrics API: down";
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.pod_metrics = Some(api_error(503, "ServiceUnavailable", "down"));
    test.run(0);
    let all = format!(
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric \
         value: {g}"
    );
    assert_eq!(
        test.events(),
        [
            ("FailedGetResourceMetric".to_owned(), g.to_owned()),
            ("FailedComputeMetricsReplicas".to_owned(), all.clone()),
        ]
    );
    assert_eq!(
        errors(test.last()),
        [format!(
            "failed to compute desired number of replicas based on listed metrics for \
             Deployment/default/web: {all}"
        )]
    );
    assert_eq!(
        message(&test, ConditionType::ScalingActive),
        format!("the HPA was unable to compute the replica count: {g}")
    );
    let status = &test.hpa.as_ref().unwrap().status;
    assert_eq!(status.current_metrics, [MetricStatus::Empty {}]);
    assert_eq!((status.current_replicas, status.desired_replicas), (Some(3), 0));
    assert_eq!(test.condition(ConditionType::ScalingLimited), None);
}

#[test]
fn errors_of_pods_are_reported_in_upstreams_order() {
    let pending = TestPod { phase: PodPhase::Pending, ..ready("1") };
    let missing = TestPod { usage: None, ..ready("1") };
    let cases: [(TestPod, Option<&'static str>, &str); 5] = [
        (
            missing.clone(),
            Some("1"),
            "unable to get metrics for resource cpu: no metrics returned \
                                      from resource metrics API",
        ),
        (
            pending.clone(),
            Some("1"),
            "did not receive metrics for targeted pods (pods might be \
                                      unready)",
        ),
        (pending, None, "did not receive metrics for targeted pods (pods might be unready)"),
        (ready("1"), None, "missing request for cpu in container app of Pod web-00000"),
        (ready("1"), Some("0"), "no metrics returned matched known pods"),
    ];
    for (kind, request, error) in cases {
        let mut test = HpaTest::new(3, 1, 10, 50, kind);
        test.request = request;
        test.run(0);
        let expected = format!("failed to get cpu utilization: {error}");
        assert_eq!(test.events()[0].1, expected);
    }
}

#[test]
fn one_failing_metric_blocks_scaling_down_only() {
    let metrics = || vec![resource("cpu", utilization(50)), resource("gpu", average_value("1"))];
    let mut test = HpaTest::of(spec(1, 10, metrics()), 3, ready("1"));
    test.run(0);
    assert_eq!(test.scales(), [(0, 6)]);
    assert_eq!(errors(test.last()).len(), 1);
    assert!(errors(test.last())[0].starts_with("invalid metrics (1 invalid out of 2)"));
    assert_eq!(test.condition(ConditionType::ScalingActive), Some((true, "ValidMetricFound")));
    let metrics_written = &test.hpa.as_ref().unwrap().status.current_metrics;
    assert_eq!(metrics_written.len(), 2);
    assert_eq!(metrics_written[1], MetricStatus::Empty {});

    let mut test = HpaTest::of(spec(1, 10, metrics()), 3, ready("100m"));
    test.run(600);
    assert_eq!(test.scales(), []);
    let failed = Some((false, "FailedGetResourceMetric"));
    assert_eq!(test.condition(ConditionType::ScalingActive), failed);
}

#[test]
fn unusable_selectors_deactivate_scaling() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.scale.selector = "".into();
    test.run(0);
    assert_eq!(
        test.events()[0],
        ("SelectorRequired".to_owned(), "selector is required".to_owned())
    );
    assert_eq!(test.events()[1].1, "selector is required");
    let inactive = Some((false, "InvalidSelector"));
    assert_eq!(test.condition(ConditionType::ScalingActive), inactive);
    assert!(test.hpa.as_ref().unwrap().status.current_metrics.is_empty());

    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.scale.selector = "app=web,".into();
    test.run(0);
    assert_eq!(
        test.events()[0].1,
        "couldn't convert selector into a corresponding internal selector object: found '', \
         expected: identifier after ','"
    );
}

#[test]
fn two_hpas_on_the_same_pods_are_both_inactive() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("500m"));
    test.run(0);
    // The other HPA has the same target; its first reconcile registers its selector.
    let (pods, metrics) = test.pods(Time::from_secs(1));
    let other: Arc<str> = "default/other".into();
    let mut hpa = test.hpa.clone().unwrap();
    hpa.name = "other".into();
    hpa.status = HpaStatus::default();
    test.controller.hpa_added(&other, Time::from_secs(1));
    let input = Input {
        now: Time::from_secs(1),
        hpa: Some(&hpa),
        hpa_version: Some(0),
        cache_version: None,
        scale: Ok(&test.scale),
        scale_resource: &"deployments.apps".into(),
        mapping_error: None,
        pods: &pods,
        pod_metrics: Ok(&metrics),
        custom_metrics: &crate::api::CustomMetrics::default(),
        update_scale: None,
        scale_version: Some(0),
        update_status: None,
        slow_metrics: None,
    };
    assert_eq!(test.controller.due(), Some((Time::from_secs(1), other.clone())));
    let decision = test.controller.sync(&input).unwrap();
    let text = "pods by selector app=web are controlled by more than one HPA (e.g. [default/other \
                default/web])";
    assert_eq!(decision.observation.events().next().unwrap().message.as_str(), text);
    assert_eq!(decision.observation.events().next().unwrap().reason.as_str(), "AmbiguousSelector");
    test.run(15);
    assert_eq!(test.events()[0].1, text);

    // After its deletion, the selector is no longer ambiguous.
    test.controller.hpa_deleted(&other, Time::from_secs(16));
    test.run(30);
    let active = Some((true, "ValidMetricFound"));
    assert_eq!(test.condition(ConditionType::ScalingActive), active);
}

#[test]
fn a_conflicting_update_is_attempted_five_times() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.update_scale = Some(api_error(409, "Conflict", "changed"));
    let tick = &test.first().observation;
    assert_eq!(tick.scale_writes().count(), 5);
    assert_eq!(tick.reads().count(), 2 + 5);
    assert_eq!(tick.errors().count(), 1);
    // Other errors are not retried, but the scale is read once more.
    let mut test = HpaTest::new(3, 1, 10, 50, ready("1"));
    test.update_scale = Some(api_error(409, "AlreadyExists", "changed"));
    let tick = &test.first().observation;
    assert_eq!((tick.scale_writes().count(), tick.reads().count()), (1, 3));
}

#[test]
fn a_failed_status_update_is_reported() {
    let mut test = HpaTest::new(3, 1, 10, 50, ready("500m"));
    test.update_status = Some(api_error(409, "Conflict", "changed"));
    test.run(15);
    for decision in &test.decisions {
        assert_eq!(errors(decision), ["failed to update status for web: changed"]);
        assert_eq!(
            decision.observation.events().next().unwrap().reason.as_str(),
            "FailedUpdateStatus"
        );
        assert!(decision.observation.status_write().unwrap().error.is_some());
    }
    // With another error, both are reported in order.
    test.pod_metrics = Some(api_error(503, "ServiceUnavailable", "down"));
    test.run(30);
    let reasons: Vec<&str> =
        test.last().observation.events().map(|event| event.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["FailedGetResourceMetric", "FailedUpdateStatus", "FailedComputeMetricsReplicas"]
    );
    assert_eq!(errors(test.last()).len(), 2);
}
