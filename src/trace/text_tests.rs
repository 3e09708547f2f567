//! The recorded form, written and read again.

use super::*;
use crate::model::api::{
    CrossVersionObjectReference, LabelSelector, MetricIdentifier, MetricStatus,
};
use crate::model::quantity::Quantity;
use crate::trace::words::metric_status_line;

fn quantity(text: &str) -> Option<Quantity> {
    Some(Quantity::parse(text).unwrap())
}

/// All kinds of reads and of statuses of metrics.
fn everything() -> Trace {
    let selector =
        LabelSelector { match_labels: [("a".into(), "b".into())].into(), ..Default::default() };
    let metric = Arc::new(MetricIdentifier { name: "rps".into(), selector: Some(selector) });
    let (name, kind): (Arc<str>, Arc<str>) = ("rps".into(), "Service".into());
    let answers = [Ok(3), Err("down".into())];
    let mut reads = Vec::new();
    for answer in answers {
        reads.push(Read::PodsMetric {
            metric: name.clone(),
            selector: "app=web".into(),
            metric_selector: "".into(),
            answer: answer.clone(),
        });
        reads.push(Read::ObjectMetric {
            metric: name.clone(),
            kind: kind.clone(),
            name: "main".into(),
            metric_selector: "a=b".into(),
            answer: answer.clone().map(|_| "2k".into()),
        });
        let metric_selector = "a=b".into();
        reads.push(Read::ExternalMetric { metric: name.clone(), metric_selector, answer });
    }
    let object = CrossVersionObjectReference {
        kind: "Service".to_owned(),
        name: "main".into(),
        api_version: Some("v1".to_owned()),
    };
    let current_metrics = vec![
        MetricStatus::Empty,
        MetricStatus::ContainerResource {
            name: "cpu".into(),
            container: "app".into(),
            average_utilization: Some(80),
            average_value: quantity("1"),
        },
        MetricStatus::Pods { metric: metric.clone(), average_value: quantity("1") },
        MetricStatus::Object {
            metric: metric.clone(),
            described_object: Arc::new(object),
            value: quantity("2"),
            average_value: None,
        },
        MetricStatus::External { metric, value: None, average_value: quantity("3m") },
    ];
    let status = HpaStatus { current_metrics, ..HpaStatus::default() };
    let status_write = Some(StatusWrite { status, error: None });
    let tick = Observation { reads, status_write, ..Observation::default() };
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
    let write = trace.ticks[0].status_write.as_ref().unwrap();
    let lines: Vec<String> = write.status.current_metrics.iter().map(metric_status_line).collect();
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
    let read_first =
        Read::Scale { resource: resource.clone(), name: name.clone(), answer: Ok((3, 3)) };
    for error in [None, Some(Arc::from("conflict"))] {
        for (to, short) in [("web", true), ("other", false)] {
            let write_of = ScaleWrite {
                resource: resource.clone(),
                name: to.into(),
                replicas: 5,
                error: error.clone(),
            };
            let tick = Observation {
                reads: vec![read_first.clone()],
                scale_writes: vec![write_of],
                ..Observation::default()
            };
            let trace = Trace { ticks: vec![tick], ..Trace::default() };
            let text = write(&trace).unwrap();
            assert_eq!(read(&text).unwrap(), trace, "{text}");
            assert_eq!(text.matches("deployments.apps").count(), if short { 1 } else { 2 });
        }
    }
}
