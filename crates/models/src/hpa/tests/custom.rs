//! Custom metrics of pods and objects, and external metrics: replicas, statuses, messages and
//! queries.

use super::*;
use crate::api::{
    ExternalMetricSource, LabelSelector, MetricIdentifier, MetricStatus, ObjectMetricSource,
    PodMetricValue, PodsMetricAnswer, PodsMetricSource, Series, SeriesAnswer,
};
use crate::flags::Gate;
use crate::observation::{ControllerAction, Items, SeriesValue, pod_kind};

fn identifier(name: &str) -> Arc<MetricIdentifier> {
    Arc::new(MetricIdentifier { name: name.into(), selector: None })
}

fn value(value: &str) -> MetricTarget {
    let value = Some(quantity(value));
    MetricTarget { type_: MetricTargetType::Value, value, ..average_value_of_none() }
}

fn average_value_of_none() -> MetricTarget {
    MetricTarget { average_value: None, ..average_value("1") }
}

fn nothing(type_: MetricSourceType) -> MetricSpec {
    MetricSpec { type_, resource: None, ..resource("cpu", utilization(50)) }
}

fn external(target: MetricTarget) -> MetricSpec {
    let source = ExternalMetricSource { metric: identifier("queue"), target };
    MetricSpec { external: Some(source), ..nothing(MetricSourceType::External) }
}

fn object(target: MetricTarget) -> MetricSpec {
    let described_object = CrossVersionObjectReference {
        kind: "Ingress".to_owned(),
        name: "main".into(),
        api_version: Some("networking.k8s.io/v1".to_owned()),
    };
    let described_object = Arc::new(described_object);
    let source = ObjectMetricSource { described_object, metric: identifier("rps"), target };
    MetricSpec { object: Some(source), ..nothing(MetricSourceType::Object) }
}

fn pods(target: &str) -> MetricSpec {
    let source = PodsMetricSource { metric: identifier("rps"), target: average_value(target) };
    MetricSpec { pods: Some(source), ..nothing(MetricSourceType::Pods) }
}

fn series(values: &[&str]) -> SeriesAnswer {
    let series = |(index, value): (usize, &&str)| Series {
        labels: [("queue".to_owned(), format!("q{index}"))].into(),
        value: quantity(value),
        timestamp: Time::ZERO,
    };
    SeriesAnswer { series: values.iter().enumerate().map(series).collect(), error: None }
}

/// A test with one metric.
fn test(metric: MetricSpec, replicas: i32) -> HpaTest {
    HpaTest::of(spec(1, 100, vec![metric]), replicas, ready("1"))
}

fn with_queue(metric: MetricSpec, replicas: i32, values: &[&str]) -> HpaTest {
    let mut test = test(metric, replicas);
    test.custom.externals.insert("queue".into(), series(values));
    test
}

fn with_ingress(metric: MetricSpec, replicas: i32, values: &[&str]) -> HpaTest {
    let mut test = test(metric, replicas);
    let key = ("rps".into(), "Ingress.networking.k8s.io".into(), "main".into());
    test.custom.objects.insert(key, series(values));
    test
}

/// A test with these values of its pods, in order. None: the pod has no value.
fn with_pods(metric: MetricSpec, values: &[Option<&str>]) -> HpaTest {
    let mut test = test(metric, i32::try_from(values.len()).unwrap());
    let value = |(index, value): (usize, &Option<&str>)| {
        Some(PodMetricValue {
            name: format!("web-{index:05}").into(),
            labels: labels("web"),
            value: quantity((*value)?),
            timestamp: Time::ZERO,
            window: None,
        })
    };
    let values = values.iter().enumerate().filter_map(value).collect();
    let answer = PodsMetricAnswer { values, ..PodsMetricAnswer::default() };
    test.custom.pods.insert("rps".into(), answer);
    test
}

/// The proposal of the first tick, and the value in the status.
fn computed(test: &mut HpaTest) -> (i32, String) {
    let decision = test.first();
    let proposal = decision.derivation.metrics[0].proposal.unwrap();
    let write = decision.observation.status_write().unwrap();
    let current = match &write.status.current_metrics[0] {
        MetricStatus::Pods { pods } => &pods.current,
        MetricStatus::Object { object } => &object.current,
        MetricStatus::External { external } => &external.current,
        other => panic!("{other:?}"),
    };
    assert!(current.value.is_none() || current.average_value.is_none());
    let value = current.value.clone().or(current.average_value.clone());
    (proposal, value.unwrap().to_string())
}

fn message(test: &HpaTest) -> &str {
    let conditions = &test.hpa.as_ref().unwrap().status.conditions;
    let condition = conditions.iter().find(|it| it.type_ == ConditionType::ScalingActive);
    condition.unwrap().message.as_str()
}

#[test]
fn pods_metrics_are_averaged_and_missing_values_filled_in() {
    let mut all = with_pods(pods("100"), &[Some("200"), Some("201"), Some("400")]);
    assert_eq!(computed(&mut all), (9, "267".to_owned()));
    assert_eq!(
        all.last().observation.actions().nth(1),
        Some(&ControllerAction::PodsMetric {
            metric: "rps".into(),
            kind: pod_kind(),
            selector: "app=web".into(),
            metric_selector: "".into(),
            answer: Ok(Items { items: 3 }),
        })
    );
    assert!(message(&all).ends_with("a replica count from pods metric rps"));
    // The average of 400 over three pods is 133, so the scale-up is smaller than for one pod.
    let mut missing = with_pods(pods("100"), &[Some("400"), None, None]);
    assert_eq!(computed(&mut missing), (4, "400".to_owned()));
    // The readiness of a pod does not matter, only whether it is Pending.
    let mut unready = with_pods(pods("100"), &[Some("200")]);
    unready.kinds[0].ready = None;
    assert_eq!(computed(&mut unready), (2, "200".to_owned()));
}

#[test]
fn a_pods_metric_without_values_fails() {
    let mut unknown = test(pods("100"), 2);
    unknown.run(0);
    let text = "unable to get metric rps: unable to fetch metrics from custom metrics API: the \
                server could not find the metric rps for pods";
    assert_eq!(unknown.events()[0], ("FailedGetPodsMetric".to_owned(), text.to_owned()));
    let all = "invalid metrics (1 invalid out of 1), first error is: failed to get pods metric \
               value: ";
    assert_eq!(unknown.events()[1].1, format!("{all}{text}"));
    let mut empty = with_pods(pods("100"), &[None]);
    empty.run(0);
    let text = "unable to get metric rps: no metrics returned from custom metrics API";
    assert_eq!(empty.events()[0].1, text);
}

#[test]
fn a_metric_selector_is_part_of_the_query_and_defaults_to_everything() {
    let mut test = with_queue(external(value("1")), 1, &["3", "4"]);
    test.edit_spec(|spec| {
        let match_labels = [("queue".to_owned(), "q1".to_owned())].into();
        let selector = LabelSelector { match_labels, match_expressions: Vec::new() };
        let name = "queue".into();
        let metric = MetricIdentifier { name, selector: Some(selector) };
        spec.metrics[0].external.as_mut().unwrap().metric = Arc::new(metric);
    });
    assert_eq!(computed(&mut test), (4, "4".to_owned()));
    let read = test.last().observation.actions().nth(1).unwrap();
    let ControllerAction::ExternalMetric { metric_selector, answer, .. } = read else {
        panic!("{read:?}");
    };
    assert_eq!((&**metric_selector, answer), ("queue=q1", &Ok(Items { items: 1 })));
    let name = "external metric queue(&LabelSelector{MatchLabels:map[string]string{queue: q1,},\
                MatchExpressions:[]LabelSelectorRequirement{},})";
    assert!(message(&test).ends_with(name), "{}", message(&test));
    assert_eq!(test.events()[0].1, format!("New size: 4; reason: {name} above target"));
    let mut all = with_queue(external(value("1")), 1, &["3", "4"]);
    assert_eq!(computed(&mut all), (7, "7".to_owned()));
    assert!(message(&all).ends_with("external metric queue(nil)"));
}

#[test]
fn an_invalid_metric_selector_fails() {
    let mut test = with_queue(external(value("1")), 1, &["3"]);
    test.edit_spec(|spec| {
        let match_labels = [("queue".to_owned(), "!".to_owned())].into();
        let selector = LabelSelector { match_labels, match_expressions: Vec::new() };
        let metric = MetricIdentifier { name: "queue".into(), selector: Some(selector) };
        spec.metrics[0].external.as_mut().unwrap().metric = Arc::new(metric);
    });
    test.run(0);
    assert_eq!(test.last().observation.reads().count(), 1);
    assert!(test.events()[0].1.starts_with("values[0][queue]: Invalid value: \"!\": a valid"));
    let wrapped = "invalid metrics (1 invalid out of 1), first error is: failed to get queue \
                   external metric value: failed to get external metric queue: values[0][queue]";
    assert!(test.events()[1].1.starts_with(wrapped), "{}", test.events()[1].1);
}

#[test]
fn an_objects_value_scales_the_ready_pods() {
    let mut test = with_ingress(object(value("100")), 3, &["250"]);
    test.surplus = 1;
    test.kinds[0].terminating = true;
    assert_eq!(computed(&mut test), (10, "250".to_owned()));
    assert!(message(&test).ends_with("a replica count from Ingress metric rps"));
    let read = test.last().observation.actions().nth(1).unwrap();
    assert_eq!(
        read,
        &ControllerAction::ObjectMetric {
            metric: "rps".into(),
            kind: "Ingress.networking.k8s.io".into(),
            name: "main".into(),
            metric_selector: "".into(),
            answer: Ok(SeriesValue { value: "250".into() }),
        }
    );
    // No pod is ready: the proposal is 0 for any value.
    let mut unready = with_ingress(object(value("100")), 3, &["250"]);
    unready.kinds[0].ready = None;
    assert_eq!(computed(&mut unready).0, 0);
}

#[test]
fn an_objects_average_value_counts_the_pods_of_the_status() {
    let mut test = with_ingress(object(average_value("100")), 10, &["1100"]);
    test.scale.status_replicas = 11;
    // The value is on target, so the existing pods become the desired replicas.
    assert_eq!(computed(&mut test), (11, "100".to_owned()));
    assert!(message(&test).ends_with("a replica count from external metric rps(nil)"));
    let mut off = with_ingress(object(average_value("100")), 10, &["1099"]);
    assert_eq!(computed(&mut off), (10, "109900m".to_owned()));
    let mut far = with_ingress(object(average_value("100")), 10, &["1201"]);
    assert_eq!(computed(&mut far), (13, "120100m".to_owned()));
    // The proposal does not fit into 32 bits and is not capped.
    let mut huge = with_ingress(object(average_value("1m")), 10, &["3G"]);
    assert_eq!(computed(&mut huge).0, i32::MIN);
}

#[test]
fn object_metrics_require_one_series_and_a_target_of_their_type() {
    let mut two = with_ingress(object(value("100")), 3, &["1", "2"]);
    two.run(0);
    let error = "unable to get metric rps on Ingress default/main: unable to fetch metrics from \
                 custom metrics API: the custom metrics API server returned 2 results when we \
                 asked for exactly one";
    assert_eq!(two.events()[0], ("FailedGetObjectMetric".to_owned(), error.to_owned()));
    let wrapped = "failed to get object metric value: ";
    assert!(two.events()[1].1.ends_with(&format!("{wrapped}{error}")));
    let mut average = test(object(average_value("100")), 3);
    average.run(0);
    assert!(average.events()[1].1.contains(
        "failed to get object metric value: failed to get rps object metric: unable to get metric \
         rps on Ingress default/main: unable to fetch metrics from custom metrics API: the server \
         could not find the metric rps for Ingress.networking.k8s.io main"
    ));
    let target = MetricTarget { type_: MetricTargetType::Value, ..average_value("5") };
    let mut unsupported = with_ingress(object(target), 3, &["1"]);
    unsupported.run(0);
    let text = "invalid object metric source: neither a value target nor an average value target \
                was set";
    assert_eq!(unsupported.events()[0].1, text);
    assert_eq!(unsupported.last().observation.reads().count(), 1);
}

#[test]
fn metrics_are_read_in_the_hpas_namespace() {
    let mut metric = object(value("1"));
    let source = metric.object.as_mut().unwrap();
    source.described_object = Arc::new(CrossVersionObjectReference {
        kind: "Namespace".to_owned(),
        name: "kube-system".into(),
        api_version: Some("v1".to_owned()),
    });
    let mut test = test(metric, 1);
    let key = ("rps".into(), "Namespace".into(), "default".into());
    test.custom.objects.insert(key, series(&["2"]));
    assert_eq!(computed(&mut test).0, 2);
}

#[test]
fn sums_of_external_metrics_are_capped() {
    let mut capped = with_queue(external(value("1m")), 2, &["9000P", "1"]);
    // 9000P in thousandths overflows to 0.
    assert_eq!(computed(&mut capped), (2000, "1".to_owned()));
    let big = "9223372036854775";
    let mut sum = with_queue(external(value("1m")), 2, &[big, big]);
    assert_eq!(computed(&mut sum), (i32::MAX, "9223372036854775807m".to_owned()));
    let mut average = with_queue(external(average_value("1m")), 2, &[big, big]);
    assert_eq!(computed(&mut average), (i32::MAX, "9223372036854775807m".to_owned()));
}

#[test]
fn sums_of_external_metrics_may_be_negative() {
    let mut value_target = with_queue(external(value("1")), 2, &["-5"]);
    assert_eq!(computed(&mut value_target), (-10, "-5".to_owned()));
    assert_eq!(value_target.last().derivation.proposal, Some(0));
    // A negative sum counts as an overflow.
    let mut average = with_queue(external(average_value("1")), 2, &["-5", "7"]);
    assert_eq!(computed(&mut average), (i32::MAX, "9223372036854775807m".to_owned()));
    let mut later = with_queue(external(average_value("1")), 2, &["7", "-5"]);
    assert_eq!(computed(&mut later), (2, "1".to_owned()));
}

#[test]
fn an_average_over_no_pods_scales_to_zero() {
    for (total, proposal) in [("5", 5), ("0", 0)] {
        for metric in [external(average_value("1")), object(average_value("1"))] {
            let mut test = with_queue(metric, 3, &[total]);
            let key = ("rps".into(), "Ingress.networking.k8s.io".into(), "main".into());
            test.custom.objects.insert(key, series(&[total]));
            test.scale.status_replicas = 0;
            let value = "-9223372036854775808m".to_owned();
            assert_eq!(computed(&mut test), (proposal, value));
        }
    }
}

#[test]
fn an_external_metric_without_series_fails() {
    let mut test = with_queue(external(average_value("1")), 2, &[]);
    test.run(0);
    let error = "unable to get external metric default/queue/nil: no metrics returned from \
                 external metrics API";
    assert_eq!(test.events()[0], ("FailedGetExternalMetric".to_owned(), error.to_owned()));
    let wrapped = "failed to get queue external metric value: failed to get queue external \
                   metric: ";
    assert!(test.events()[1].1.ends_with(&format!("{wrapped}{error}")));
}

#[test]
fn two_failing_metrics_of_three_block_scaling_down() {
    let metrics = vec![pods("1"), external(value("1")), object(value("1"))];
    let mut test = HpaTest::of(spec(1, 100, metrics), 2, ready("1"));
    test.custom.externals.insert("queue".into(), series(&["3"]));
    // The remaining metric scales up: it applies, and the error is still reported.
    test.run(0);
    assert_eq!(test.scales(), [(0, 4)]);
    assert_eq!(test.last().derivation.proposal, Some(6));
    let reasons: Vec<String> = test.events().into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["FailedGetPodsMetric", "FailedGetObjectMetric", "SuccessfulRescale"]);
    let error = test.last().observation.errors().next().unwrap().to_string();
    assert!(error.starts_with("invalid metrics (2 invalid out of 3), first error is: failed to"));
    let write = test.last().observation.status_write().unwrap();
    assert_eq!(write.status.current_metrics[0], MetricStatus::Empty {});
    assert!(matches!(write.status.current_metrics[1], MetricStatus::External { .. }));
    // The remaining metric scales down: it does not apply.
    test.custom.externals.insert("queue".into(), series(&["100m"]));
    test.run(15);
    assert_eq!(test.condition(ConditionType::ScalingActive), Some((false, "FailedGetPodsMetric")));
}

#[test]
fn an_hpa_scales_to_zero_and_back() {
    let gates = |on: bool| {
        let mut gates = FeatureGates::default();
        gates.set(Gate::HpaScaleToZero.name(), on).unwrap();
        gates
    };
    let metrics = vec![external(value("10"))];
    let mut test = HpaTest::with_gates(spec(0, 100, metrics), 2, ready("1"), gates(true));
    test.custom.externals.insert("queue".into(), series(&["0"]));
    test.run(315);
    assert_eq!(test.scales(), [(315, 0)]);
    assert_eq!(test.condition(ConditionType::ScaledToZero), Some((true, "ScaledToZero")));
    // From zero replicas, no tolerance applies and no pod is required.
    test.custom.externals.insert("queue".into(), series(&["1"]));
    test.run(330);
    assert_eq!(test.scales(), [(315, 0), (330, 1)]);
}

#[test]
fn each_metric_type_is_explained() {
    let explained = |test: &mut HpaTest| {
        let derivation = &test.first().derivation;
        (derivation.summary(), derivation.explain().join(" "))
    };
    let (summary, text) = explained(&mut with_queue(external(value("30")), 2, &["60", "30"]));
    assert!(summary.starts_with("external metric queue 90 of 30 (ratio 3, 2 ready) -> 6"));
    assert!(text.contains("Metric queue has 2 series; their sum is 90."), "{text}");
    assert!(text.contains("3 × 2 running and ready pods, rounded up: 6."), "{text}");
    let mut average = with_queue(external(average_value("10")), 2, &["20"]);
    average.scale.status_replicas = 3;
    let (summary, _) = explained(&mut average);
    assert!(
        summary.starts_with("external metric queue 6.667 of 10 (ratio 0.6667, 20 over 3 pods)")
    );
    let (_, text) = explained(&mut with_ingress(object(average_value("10")), 3, &["30"]));
    assert!(text.contains("proposes the current number of pods, 3."), "{text}");
    let (summary, text) = explained(&mut with_pods(pods("100"), &[Some("200")]));
    assert!(summary.starts_with("pods metric rps 200 of 100 (ratio 2, 1 ready) -> 2"), "{summary}");
    assert!(text.contains("ready or not"), "{text}");
}
