//! Recorded traces that are written and read again.

use super::*;
use crate::trace::ApiOutcome;
use kube_autoscaler_models::api::{
    ConditionType, ContainerResourceMetricStatus, CrossVersionObjectReference,
    ExternalMetricStatus, HpaCondition, HpaSpec, LabelSelector, MetricIdentifier, MetricStatus,
    MetricValueStatus, ObjectMetricStatus, PodsMetricStatus,
};
use kube_autoscaler_models::observation::{
    ControllerAction, Event, EventType, Items, ScaleReplicas, ScaleWrite, SentScale, SeriesValue,
    StatusWrite, pod_kind,
};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;

fn quantity(text: &str) -> Option<Quantity> {
    Some(Quantity::parse(text).unwrap())
}

/// Builds of these versions.
fn builds(versions: &[&str]) -> Vec<Build> {
    let build = |version: &&str| Build {
        version: version.parse().unwrap(),
        sources: "0123456789abcdef".to_owned(),
    };
    versions.iter().map(build).collect()
}

/// Writes a trace, reads it again, and returns the lines below the header.
fn round_trip(trace: &Trace) -> Vec<String> {
    let text = write(trace, &builds(&["v1.9.11", "v1.36.3", "v1.37.2"])).unwrap();
    assert_eq!(read_header(&text).unwrap().releases().to_string(), "1.9, 1.36 - 1.37");
    let release = "v1.37.2".to_owned();
    assert_eq!(read(&text).unwrap(), Trace { release, ..trace.clone() }, "{text}");
    text.lines().skip(1).map(str::to_owned).collect()
}

/// A text whose header has the hash of its body.
fn with_hash(text: &str) -> String {
    let header = Header { body: content_hash(body(text)), ..read_header(text).unwrap() };
    format!("{}\n{}", serde_json::to_string(&header).unwrap(), body(text))
}

/// A trace with all kinds of queries and of metric statuses.
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
            kind: pod_kind(),
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
    actions.push(ControllerAction::UpdateStatus(Box::new(StatusWrite {
        status,
        ..Default::default()
    })));
    let tick = Observation::new(Time::ZERO, "".into(), actions);
    Trace { ticks: vec![tick], ..Trace::default() }
}

#[test]
fn all_kinds_of_metrics_can_be_written_and_read() {
    let lines = round_trip(&everything());
    let query =
        r#"{"podsMetric":{"metric":"rps","selector":"app=web","metricSelector":"","items":3}}"#;
    let [line] = lines.as_slice() else { panic!("{lines:#?}") };
    assert!(line.contains(query), "{line}");
    let text = write(&everything(), &[]).unwrap();
    let both = with_hash(&text.replace(query, &query.replace("3}", r#"3,"error":"x"}"#)));
    let error = read(&both).unwrap_err().to_string();
    assert!(both != text && error.starts_with("line 2: "), "{error}");
}

#[test]
fn different_statuses_have_different_lines() {
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
fn all_kinds_of_actions_can_be_written_and_read() {
    let scale = |error: Option<&str>| {
        ControllerAction::UpdateScale(ScaleWrite {
            resource: "deployments.apps".into(),
            name: "web".into(),
            replicas: 5,
            sent: Some(SentScale {
                api_version: "autoscaling/v1".into(),
                status_replicas: 3,
                selector: "app=web".into(),
            }),
            error: error.map(Into::into),
        })
    };
    let get = |answer| ControllerAction::GetScale {
        resource: "deployments.apps".into(),
        name: "web".into(),
        answer,
    };
    let event = Event {
        hpa: "web".into(),
        type_: EventType::Warning,
        reason: "FailedRescale".into(),
        message: "no".into(),
    };
    let mut tick = Observation::new(
        Time::from_secs(75),
        "web".into(),
        [
            get(Ok(ScaleReplicas { replicas: 3, status_replicas: 3 })),
            get(Err("down".into())),
            ControllerAction::ListPodMetrics { selector: "a=b".into(), answer: Err("x".into()) },
            scale(Some("conflict")),
            scale(None),
            ControllerAction::Event(event),
            ControllerAction::Error { message: "no".into() },
        ],
    );
    tick.took = Span::from_millis(20);
    let name: Arc<str> = "web".into();
    let outcomes = [
        ApiOutcome::Stored { name: name.clone(), generation: 1, spec: HpaSpec::default().into() },
        ApiOutcome::Refused { name: name.clone(), message: "no".to_owned() },
        ApiOutcome::Deleted { name },
    ];
    let api = outcomes.map(|outcome| (0, ApiAnswer { at: Time::ZERO, outcome })).into();
    let lines = round_trip(&Trace { api, ticks: vec![tick], ..Trace::default() });
    assert_eq!(lines[2], r#"{"api":{"at":"0s","deleted":{"name":"web"}}}"#);
    let begin = r#"{"reconcile":{"at":"1m15s","took":"20ms","hpa":"web","actions":[{"getScale":"#;
    assert!(lines[3].starts_with(begin), "{}", lines[3]);
}

fn with_conditions(seconds: i64, conditions: &[(ConditionType, &'static str)]) -> Observation {
    let conditions = conditions.iter().map(|(type_, reason)| HpaCondition {
        type_: *type_,
        status: true,
        reason: (*reason).into(),
        message: "".into(),
        last_transition_time: Time::ZERO,
    });
    let status = HpaStatus { conditions: conditions.collect(), ..HpaStatus::default() };
    let write = StatusWrite { name: "web".into(), status, ..StatusWrite::default() };
    Observation::new(
        Time::from_secs(seconds),
        "web".into(),
        [ControllerAction::UpdateStatus(Box::new(write))],
    )
}

#[test]
fn a_status_lists_only_the_conditions_that_changed() {
    use ConditionType::{AbleToScale, ScalingActive, ScalingLimited};
    let ticks = vec![
        with_conditions(0, &[(AbleToScale, "A"), (ScalingActive, "B")]),
        with_conditions(15, &[(AbleToScale, "A"), (ScalingActive, "C"), (ScalingLimited, "D")]),
        with_conditions(30, &[(AbleToScale, "E"), (ScalingActive, "C")]),
        with_conditions(45, &[(ScalingActive, "C"), (AbleToScale, "E")]),
        with_conditions(60, &[]),
    ];
    let lines = round_trip(&Trace { ticks, ..Trace::default() });
    let reset = r#"{"resetConditions":{"hpa":"web"}}"#;
    let is_reset = |line: &String| line == reset;
    let resets: Vec<bool> = lines.iter().map(is_reset).collect();
    assert_eq!(resets, [false, false, true, false, true, false, true, false], "{lines:#?}");
    let reasons = |line: &str| line.matches("reason").count();
    assert_eq!([0, 1, 3, 5, 7].map(|line| reasons(&lines[line])), [2, 2, 2, 2, 0], "{lines:#?}");
}

#[test]
fn equal_reconciles_at_equal_intervals_are_counted() {
    let query =
        ControllerAction::ListPodMetrics { selector: "a=b".into(), answer: Ok(Items { items: 1 }) };
    let at = |seconds| Observation::new(Time::from_secs(seconds), "web".into(), [query.clone()]);
    let mut ticks: Vec<_> = [0, 15, 30, 45, 70].map(at).into();
    ticks[0].push(with_conditions(0, &[]).actions().next().unwrap().clone());
    let lines = round_trip(&Trace { ticks: ticks.clone(), ..Trace::default() });
    let repeat = |times: usize, every: &str| {
        format!(r#"{{"repeat":{{"times":{times},"every":"{every}"}}}}"#)
    };
    assert_eq!(lines[1..], [repeat(3, "15s"), repeat(1, "25s")]);
    // An answer of the API server between them separates them.
    let deleted = ApiOutcome::Deleted { name: "web".into() };
    let api = vec![(2, ApiAnswer { at: Time::from_secs(20), outcome: deleted })];
    let lines = round_trip(&Trace { api, ticks, ..Trace::default() });
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!([&lines[1], &lines[3]], [&repeat(1, "15s"), &repeat(2, "15s")]);
}

#[test]
fn an_error_names_its_line() {
    let text = write(&everything(), &[]).unwrap();
    let wrong = with_hash(&format!("{text}{{\"reconcile\":{{\"at\":\"1 hour\"}}}}\n"));
    let error = read(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("line 3: \"1 hour\": "), "{error}");
    assert!(read("").unwrap_err().to_string().starts_with("line 1: "));
    let nothing_before =
        text.lines().next().unwrap().to_owned() + "\n{\"repeat\":{\"times\":1,\"every\":\"15s\"}}";
    let error = read(&with_hash(&nothing_before)).unwrap_err().to_string();
    assert_eq!(error, "line 2: there is no reconcile to repeat");
}

#[test]
fn a_changed_body_is_an_error() {
    let trace = Trace { scenario: "zero/one".to_owned(), ..everything() };
    let text = write(&trace, &builds(&["v1.37.2"])).unwrap();
    let header = read_header(&text).unwrap();
    for changed in [
        text.replace(r#""items":3"#, r#""items":4"#),
        text.lines().next().unwrap().to_owned() + "\n",
        text.clone() + &text.lines().nth(1).unwrap().replace("0s", "15s") + "\n",
    ] {
        assert_ne!(changed, text);
        let error = read(&changed).unwrap_err().to_string();
        let begin = "line 1: the trace was changed after it was recorded: the hash of its body is ";
        assert!(error.starts_with(begin) && error.contains(&header.body), "{error}");
        assert!(error.contains("`cargo xtask record zero/one`"), "{error}");
    }
    // The builds can change alone: further releases may have the same trace.
    let build = builds(&["v1.36.3"]).swap_remove(0);
    let further = Header { builds: vec![build], ..header };
    let text = format!("{}\n{}", serde_json::to_string(&further).unwrap(), body(&text));
    assert_eq!(read(&text).unwrap(), Trace { release: "v1.36.3".to_owned(), ..trace });
}
