//! The recorded form, written and read again.

use super::*;
use crate::model::api::{
    ContainerResourceMetricStatus, CrossVersionObjectReference, ExternalMetricStatus,
    LabelSelector, MetricIdentifier, MetricStatus, MetricValueStatus, ObjectMetricStatus,
    PodsMetricStatus,
};
use crate::model::quantity::Quantity;

fn quantity(text: &str) -> Option<Quantity> {
    Some(Quantity::parse(text).unwrap())
}

/// All kinds of reads and of statuses of metrics.
fn everything() -> Trace {
    let selector =
        LabelSelector { match_labels: [("a".into(), "b".into())].into(), ..Default::default() };
    let metric = Arc::new(MetricIdentifier { name: "rps".into(), selector: Some(selector) });
    let (name, kind): (Arc<str>, Arc<str>) = ("rps".into(), "Service".into());
    let answers = [Ok(Items { items: 3 }), Err("down".into())];
    let mut actions = Vec::new();
    for answer in answers {
        actions.push(ControllerAction::PodsMetric {
            metric: name.clone(),
            selector: "app=web".into(),
            metric_selector: "".into(),
            answer: answer.clone(),
        });
        actions.push(ControllerAction::ObjectMetric {
            metric: name.clone(),
            kind: kind.clone(),
            name: "main".into(),
            metric_selector: "a=b".into(),
            answer: answer.clone().map(|_| SeriesValue { value: "2k".into() }),
        });
        let metric_selector = "a=b".into();
        actions.push(ControllerAction::ExternalMetric {
            metric: name.clone(),
            metric_selector,
            answer,
        });
    }
    let object = CrossVersionObjectReference {
        kind: "Service".to_owned(),
        name: "main".into(),
        api_version: Some("v1".to_owned()),
    };
    let total = |text: &str| MetricValueStatus { value: quantity(text), ..Default::default() };
    let average =
        |text: &str| MetricValueStatus { average_value: quantity(text), ..Default::default() };
    let current_metrics = vec![
        MetricStatus::Empty {},
        MetricStatus::ContainerResource {
            container_resource: ContainerResourceMetricStatus {
                name: "cpu".into(),
                container: "app".into(),
                current: MetricValueStatus { average_utilization: Some(80), ..average("1") },
            },
        },
        MetricStatus::Pods {
            pods: PodsMetricStatus { metric: metric.clone(), current: average("1") },
        },
        MetricStatus::Object {
            object: ObjectMetricStatus {
                metric: metric.clone(),
                described_object: Arc::new(object),
                current: total("2"),
            },
        },
        MetricStatus::External {
            external: ExternalMetricStatus { metric, current: average("3m") },
        },
    ];
    let status = HpaStatus { current_metrics, ..HpaStatus::default() };
    actions.push(ControllerAction::UpdateStatus(StatusWrite { status, ..Default::default() }));
    let tick = Observation::new(Time::ZERO, "".into(), actions);
    Trace { ticks: vec![tick], ..Trace::default() }
}

#[test]
fn all_kinds_of_metrics_can_be_written_and_read() {
    let trace = everything();
    let text = write(&trace).unwrap();
    assert_eq!(read(&text).unwrap(), trace, "{text}");
    let short = r#"{"podsMetric":"rps","pods":"app=web","items":3}"#;
    assert!(text.contains(short), "{text}");
    let both = text.replace(short, r#"{"podsMetric":"rps","pods":"","items":3,"error":"x"}"#);
    assert!(read(&both).is_err());
}

#[test]
fn statuses_that_differ_have_different_lines() {
    let trace = everything();
    let write = trace.ticks[0].status_write().unwrap();
    let lines: Vec<String> = write.status.current_metrics.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "(failed metric)",
            "cpu of container app 80% (1 each)",
            r#"pods metric rps {"matchLabels":{"a":"b"}} (1 each)"#,
            r#"metric rps {"matchLabels":{"a":"b"}} of v1 Service main 2"#,
            r#"external metric rps {"matchLabels":{"a":"b"}} (3m each)"#,
        ]
    );
}

#[test]
fn what_was_scaled_is_written_only_if_it_is_not_the_target() {
    let (resource, name): (Arc<str>, Arc<str>) = ("deployments.apps".into(), "web".into());
    let read_first = ControllerAction::GetScale {
        resource: resource.clone(),
        name: name.clone(),
        answer: Ok(ScaleReplicas { replicas: 3, status_replicas: 3 }),
    };
    for error in [None, Some(Arc::from("conflict"))] {
        for (to, short) in [("web", true), ("other", false)] {
            let write_of = ScaleWrite {
                resource: resource.clone(),
                name: to.into(),
                replicas: 5,
                error: error.clone(),
            };
            let actions = [read_first.clone(), ControllerAction::UpdateScale(write_of)];
            let tick = Observation::new(Time::ZERO, "".into(), actions);
            let trace = Trace { ticks: vec![tick], ..Trace::default() };
            let text = write(&trace).unwrap();
            assert_eq!(read(&text).unwrap(), trace, "{text}");
            assert_eq!(text.matches("deployments.apps").count(), if short { 1 } else { 2 });
        }
    }
}
