//! Whole runs: recommendations, conditions, checkpoints and flags.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::api::{ObjectName, VerticalPodAutoscaler};
use super::super::cluster::ContainerUsage;
use super::super::flags::RecommenderFlags;
use super::super::objects::{PodMetrics, Target};
use super::super::pod::{Labels, Pod, PodContainer};
use super::super::recommender::Write;
use super::super::session::{ClusterChange, Session, Start};
use super::super::time::GoTime;
use crate::api::PodPhase;
use crate::rules::{VpaRelease, VpaRules};
use crate::selector::Selector;
use crate::time::{Span, Time};

const START: i64 = 946_684_800;

fn vpa(policy: &Value) -> VerticalPodAutoscaler {
    serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "name": "web", "generation": 3 },
        "spec": {
            "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "resourcePolicy": { "containerPolicies": policy },
        },
    }))
    .expect("a VPA")
}

fn pod(containers: &[&str]) -> Pod {
    let containers =
        containers.iter().map(|name| PodContainer { name: (*name).into(), memory_request: 0 });
    Pod {
        name: ObjectName::new("ns", "web-0"),
        labels: Labels::new(BTreeMap::from([("app".to_owned(), "web".to_owned())])),
        phase: PodPhase::Running,
        containers: containers.collect(),
        init_containers: Vec::new(),
        statuses: Vec::new(),
    }
}

fn start(policy: &Value, containers: &[&str], flags: &[(&str, &str)]) -> Start {
    let vpa = vpa(policy);
    let target = Target {
        namespace: "ns".into(),
        reference: vpa.spec.target_ref.clone(),
        selector: Selector::parse("app=web").expect("a selector"),
        has_parent: false,
        error: None,
    };
    let flags = flags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Start {
        at: GoTime::from_unix(START),
        flags: RecommenderFlags::parse(&flags.collect()).expect("flags"),
        objects: vec![
            ClusterChange::SetTarget(target),
            ClusterChange::SetVpa(vpa),
            ClusterChange::SetPod(pod(containers)),
        ],
        history: Vec::new(),
    }
}

fn usage(minute: i64, containers: &[&str], cpu: i64, memory: i64) -> ClusterChange {
    let containers = containers.iter().map(|name| ContainerUsage {
        container: (*name).into(),
        cpu: Some(cpu),
        memory: Some(memory),
    });
    let items = vec![PodMetrics {
        pod: ObjectName::new("ns", "web-0"),
        timestamp: GoTime::from_unix(START).plus(Span::from_mins(minute)),
        containers: containers.collect(),
    }];
    ClusterChange::SetMetrics(Ok(items.into()))
}

/// Runs with constant usage for some minutes. Returns the last status as JSON.
fn status(start: &Start, minutes: i64, cpu: i64, memory: i64) -> Value {
    let (mut session, _) = Session::open(start, VpaRules::default());
    let mut containers = Vec::new();
    for object in &start.objects {
        if let ClusterChange::SetPod(pod) = object {
            containers.extend(pod.containers.iter().map(|it| it.name.to_string()));
        }
    }
    let names: Vec<&str> = containers.iter().map(String::as_str).collect();
    for minute in 1..=minutes {
        let until = Time::from_secs(60 * minute);
        session.step(&[usage(minute, &names, cpu, memory)], until);
    }
    let vpa = &session.objects().vpas[&ObjectName::new("ns", "web")];
    serde_json::to_value(&vpa.status).expect("JSON")
}

fn recommendation(status: &Value, container: usize) -> &Value {
    &status["recommendation"]["containerRecommendations"][container]
}

/// A container without any sample gets the minimum three times.
#[test]
fn the_minimum_of_a_pod_is_divided_among_its_containers() {
    for (containers, cpu, memory) in [
        (&["a"][..], "25m", "250Mi"),
        (&["a", "b"][..], "12m", "125Mi"),
        (&["a", "b", "c"][..], "8m", "87381333"),
    ] {
        let start = start(&json!([]), containers, &[]);
        let (mut session, _) = Session::open(&start, VpaRules::default());
        session.step(&[], Time::from_secs(60));
        let vpa = &session.objects().vpas[&ObjectName::new("ns", "web")];
        let status = serde_json::to_value(&vpa.status).expect("JSON");
        let expected = json!({ "cpu": cpu, "memory": memory });
        for bound in ["target", "lowerBound", "upperBound", "uncappedTarget"] {
            assert_eq!(recommendation(&status, 0)[bound], expected, "{bound}");
        }
    }
}

/// One sample is no history: the confidence is 0, so the upper bound has no limit.
#[test]
fn one_sample_gives_no_confidence() {
    let status = status(&start(&json!([]), &["a"], &[]), 1, 800, 400 << 20);
    let first = recommendation(&status, 0);
    assert_eq!(first["upperBound"], json!({ "cpu": "100G", "memory": "97656250000Ki" }));
    assert_eq!(first["lowerBound"], json!({ "cpu": "25m", "memory": "250Mi" }));
    assert_eq!(status["observedGeneration"], json!(3));
}

/// 800m lies in the bucket that ends at 800m × 1.0015…; with the margin of 15%, it becomes 920m.
#[test]
fn the_target_is_the_end_of_the_bucket_with_a_margin() {
    let status = status(&start(&json!([]), &["a"], &[]), 24 * 60 + 1, 780, 400 << 20);
    let first = recommendation(&status, 0);
    assert_eq!(first["target"]["cpu"], json!("920m"));
    assert_eq!(first["uncappedTarget"], first["target"]);
    // After a day, the confidence is 1: the upper bound is twice the amount.
    assert_eq!(first["upperBound"]["cpu"], json!("1840m").clone());
    assert_eq!(first["lowerBound"]["cpu"], json!("918m"));
}

#[test]
fn policies_limit_all_but_the_uncapped_target() {
    let policy = json!([
        { "containerName": "*", "minAllowed": { "cpu": "2" }, "controlledResources": ["cpu"] },
        { "containerName": "b", "maxAllowed": { "memory": "0.3Gi" } },
        { "containerName": "c", "mode": "Off" },
    ]);
    let status = status(&start(&policy, &["a", "b", "c"], &[]), 5, 100, 1 << 30);
    let (a, b) = (recommendation(&status, 0), recommendation(&status, 1));
    assert_eq!((&a["target"], &a["lowerBound"]), (&json!({ "cpu": "2" }), &json!({ "cpu": "2" })));
    assert_eq!(a["uncappedTarget"], json!({ "cpu": "126m" }));
    assert_eq!(b["target"]["memory"], json!("322122547200m"));
    assert_eq!(recommendation(&status, 2), &Value::Null, "no recommendation is made for c");
}

#[test]
fn flags_round_and_limit_amounts() {
    let flags = [
        ("round-cpu-millicores", "50"),
        ("humanize-memory", "true"),
        ("container-recommendation-max-allowed-cpu", "110m"),
    ];
    let status = status(&start(&json!([]), &["a"], &flags), 2, 100, 300 << 20);
    let first = recommendation(&status, 0);
    assert_eq!(first["uncappedTarget"], json!({ "cpu": "150m", "memory": "380255600640m" }));
    assert_eq!(first["target"]["cpu"], json!("110m"));
}

#[test]
fn unknown_flags_and_spans_of_zero_are_refused() {
    for (name, value, error) in [
        ("no-such-flag", "1", "no-such-flag: the recommender has no such flag"),
        (
            "cpu-histogram-decay-half-life",
            "0s",
            "cpu-histogram-decay-half-life: expected a duration of more than 0s, found \"0s\"",
        ),
        ("memory-saver", "maybe", "memory-saver: expected true or false, found \"maybe\""),
    ] {
        let flags = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let found = RecommenderFlags::parse(&flags).expect_err(name).to_string();
        assert_eq!(found, error);
    }
}

#[test]
fn conditions_say_why_there_is_no_recommendation() {
    let mut start = start(&json!([]), &["a"], &[]);
    start.objects.truncate(2);
    let status = status(&start, 40, 0, 0);
    let conditions = status["conditions"].as_array().expect("conditions");
    let kinds: Vec<_> = conditions.iter().map(|it| (&it["type"], &it["status"])).collect();
    let expected = [("NoPodsMatched", "True"), ("RecommendationProvided", "False")];
    assert_eq!(
        kinds,
        expected
            .map(|(kind, status)| (json!(kind), json!(status)))
            .iter()
            .map(|it| (&it.0, &it.1))
            .collect::<Vec<_>>()
    );
    assert_eq!(conditions[1]["message"], json!("No pods match this VPA object"));
    assert_eq!(conditions[0]["lastTransitionTime"], json!("2000-01-01T00:01:00Z"));
}

/// A restarted recommender continues from the checkpoint. The memory peak of the interval that has
/// not ended is not part of it.
#[test]
fn a_restart_continues_from_the_checkpoint() {
    let start = start(&json!([]), &["a"], &[]);
    let (mut session, _) = Session::open(&start, VpaRules::default());
    for minute in 1..=10 {
        session.step(&[usage(minute, &["a"], 500, 1 << 30)], Time::from_secs(60 * minute));
    }
    let checkpoint = &session.objects().checkpoints[&ObjectName::new("ns", "web-a")].status;
    assert_eq!((checkpoint.total_samples_count, &*checkpoint.version), (10, "v3"));
    assert_eq!((checkpoint.cpu.weights.len(), checkpoint.memory.weights.len()), (1, 0));
    let changes = [ClusterChange::Restart, ClusterChange::SetMetrics(Ok(Vec::new().into()))];
    let stepped = session.step(&changes, Time::from_secs(660));
    let Some(Write::Status { status, .. }) = stepped.runs[0].run.writes.first() else {
        panic!("{stepped:#?}");
    };
    let target = &status.recommendation.as_ref().expect("one").container_recommendations[0].target;
    let text =
        |quantity: &Option<crate::quantity::Quantity>| quantity.as_ref().map(ToString::to_string);
    assert_eq!(text(&target.cpu).as_deref(), Some("587m"));
    assert_eq!(text(&target.memory).as_deref(), Some("250Mi"), "the peak is lost");
}

/// Until the VPAs are loaded again, the settings of a new aggregate are those of the VPA that is
/// last in a random order. The first samples are taken before that.
#[test]
fn settings_that_two_vpas_set_differently_are_random_in_the_first_run() {
    let is_undetermined = |first: Value, second: Value| {
        let policies = json!([{ "containerName": "*", "memoryAggregationIntervalSeconds": 60 }]);
        let mut start = start(&policies, &["app"], &[("feature-gates", "PerVPAConfig=true")]);
        start.objects.retain(|object| !matches!(object, ClusterChange::SetVpa(_)));
        for (name, policy) in [("a", first), ("b", second)] {
            let mut vpa = vpa(&json!([policy]));
            vpa.metadata.name = ObjectName::new("ns", name);
            start.objects.push(ClusterChange::SetVpa(vpa));
        }
        let rules = VpaRules::of(VpaRelease::NEWEST);
        let (mut session, _) = Session::open(&start, rules);
        let stepped = session.step(&[usage(1, &["app"], 100, 1 << 30)], Time::from_secs(60));
        stepped.runs[0].run.is_undetermined
    };
    let interval =
        |seconds: i32| json!({ "containerName": "*", "memoryAggregationIntervalSeconds": seconds });
    assert!(is_undetermined(interval(77), interval(3600)));
    assert!(!is_undetermined(interval(77), interval(77)));
    assert!(!is_undetermined(interval(77), json!({ "containerName": "*" })));
    // Only an OOM kill uses this setting.
    let bump = |bytes: &str| json!({ "containerName": "*", "oomMinBumpUp": bytes });
    assert!(!is_undetermined(bump("1"), bump("2")));
}
