//! A proxy between the harness and the real upstream controller alters one aspect of what the
//! controller did: each alteration is a divergence, in the field that it concerns. This shows that
//! the harness observes the order of actions, their number, namespaces, API versions and bodies, the
//! events as they reach the API, and the controller's own metrics.
//!
//! The test program is also the proxy: as `live --proxy NAME ENGINE`, it forwards the
//! engine protocol, and alters the log of each answer. Requires Go.
//!
//! All alterations are made on the newest release. A few of each kind are also made on those of the
//! older releases [`OLDER`] that the environment variable KUBE_LOCKSTEP_RELEASES names.

use crate::support;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::upstream::Upstream;
use kube_lockstep_sim::run::{Verdict, run_one};
use libtest_mimic::Failed;
use serde_json::{Value, json};

/// The alteration of an engine that speaks version 4 of the protocol.
const VERSION_4: &str = "version_4";

/// The first argument of the proxy.
const PROXY: &str = "--proxy";

/// The environment variable that names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_RELEASES";

/// The older releases: the oldest one, and others whose hosts or controllers differ much.
const OLDER: [&str; 5] = ["1.6", "1.9", "1.12", "1.22", "1.30"];

/// The names of the alterations that are also made on the older releases. They alter only what all
/// of these releases report.
const ON_OLDER: [&str; 12] = [
    "status_before_scale",
    "queries_after_the_scale",
    "repeated_status_writes",
    "a_scale_write_in_another_namespace",
    "another_status_in_the_scale",
    "a_dropped_addition_to_the_work_queue",
    "merged_events",
    "an_event_that_is_sent_twice",
    "an_event_about_another_version_of_the_object",
    "an_event_about_an_object_with_another_uid",
    "a_repeated_event_with_a_new_name",
    "an_event_with_another_last_time",
];

/// A scenario whose first reconcile queries a metric and scales.
const SCALES: &str = "tolerance/just-above-the-upper-edge-scales-up";

/// A scenario that ends while a reconcile waits for a slow response.
const UNFINISHED: &str = "several/with-one-worker-a-slow-answer-holds-up-the-others";

/// A scenario in which the same events occur in each reconcile.
const REPEATS: &str = "events/a-repeated-event-is-patched-until-the-limit";

/// A scenario whose durations fall into different buckets.
const SLOW: &str = "monitoring/durations-fall-into-buckets";

/// An alteration of the log of a step.
struct Alteration {
    name: &'static str,
    fixture: &'static str,
    alter: fn(&mut Vec<Value>),
    /// The first field that differs.
    field: &'static str,
}

const ALTERATIONS: &[Alteration] = &[
    Alteration {
        name: "status_before_scale",
        fixture: SCALES,
        alter: |log| swap(log, "updateScale", "updateStatus"),
        field: "order",
    },
    Alteration {
        name: "queries_after_the_scale",
        fixture: SCALES,
        alter: |log| swap(log, "listPodMetrics", "updateScale"),
        field: "order",
    },
    Alteration {
        name: "repeated_status_writes",
        fixture: SCALES,
        alter: repeated_status_writes,
        field: "status",
    },
    Alteration {
        name: "a_scale_write_in_another_namespace",
        fixture: SCALES,
        alter: |log| in_another_namespace(log, "updateScale"),
        field: "namespaces[0]",
    },
    Alteration {
        name: "a_query_in_another_namespace",
        fixture: SCALES,
        alter: |log| in_another_namespace(log, "listPodMetrics"),
        field: "namespaces[0]",
    },
    Alteration {
        name: "another_status_in_the_scale",
        fixture: SCALES,
        alter: |log| change(log, "updateScale", "statusReplicas", &json!(1)),
        field: "scale[0] as sent",
    },
    Alteration {
        name: "another_version_of_the_scale",
        fixture: SCALES,
        alter: |log| change(log, "updateScale", "apiVersion", &json!("autoscaling/v2")),
        field: "scale[0] as sent",
    },
    Alteration {
        name: "another_version_of_the_hpa",
        fixture: SCALES,
        alter: |log| change(log, "updateStatus", "apiVersion", &json!("autoscaling/v1")),
        field: "status: apiVersion of the request",
    },
    Alteration {
        name: "a_dropped_increment_of_a_controller_metric",
        fixture: SCALES,
        alter: |log| log.retain(|entry| !is_series(entry, "reconciliations_total")),
        field: "metric reconciliations_total{action=scale_up,error=none}",
    },
    Alteration {
        name: "another_increase_of_a_controller_metric",
        fixture: SCALES,
        alter: |log| change_series(log, "metric_computation_total", "increase", &json!(2)),
        field: "metric metric_computation_total{action=scale_up,error=none,metric_type=Resource}",
    },
    Alteration {
        name: "a_dropped_addition_to_the_work_queue",
        fixture: SCALES,
        alter: |log| log.retain(|entry| !is_series(entry, "workqueue_adds_total")),
        field: "metric workqueue_adds_total",
    },
    Alteration {
        name: "another_number_of_retries_in_the_work_queue",
        fixture: SCALES,
        alter: |log| change_series(log, "workqueue_retries_total", "increase", &json!(9)),
        field: "metric workqueue_retries_total",
    },
    Alteration {
        name: "another_value_of_a_controller_metric",
        fixture: SCALES,
        alter: |log| change_series(log, "desired_replicas", "value", &json!(1)),
        field: "metric desired_replicas{hpa_name=web,namespace=default}",
    },
    Alteration {
        name: "other_labels_of_a_controller_metric",
        fixture: SCALES,
        alter: |log| {
            let other = json!("reconciliations_total{action=scale_down,error=none}");
            change_series(log, "reconciliations_total", "series", &other);
        },
        field: "metric reconciliations_total{action=scale_down,error=none}",
    },
    Alteration {
        name: "another_increase_of_a_bucket",
        fixture: SLOW,
        alter: |log| {
            change_series(log, "reconciliation_duration_seconds_bucket", "increase", &json!(2));
        },
        field: "metric reconciliation_duration_seconds_bucket{action=none,error=none,le=0.002}",
    },
    Alteration {
        name: "another_bucket",
        fixture: SLOW,
        alter: |log| {
            let metric = "metric_computation_duration_seconds_bucket";
            let other = "{action=none,error=none,le=0.128,metric_type=External}";
            change_series(log, metric, "series", &json!(format!("{metric}{other}")));
        },
        field: "metric metric_computation_duration_seconds_bucket\
                {action=none,error=none,le=0.064,metric_type=External}",
    },
    Alteration {
        name: "a_dropped_bucket",
        fixture: SLOW,
        alter: |log| {
            log.retain(|entry| !is_series(entry, "reconciliation_duration_seconds_bucket"));
        },
        field: "metric reconciliation_duration_seconds_bucket{action=none,error=none,le=0.002}",
    },
    Alteration {
        name: "merged_events",
        fixture: REPEATS,
        alter: |log| log.retain(|entry| entry.pointer("/sendEvent/verb") != Some(&json!("patch"))),
        field: "events as sent[0]",
    },
    Alteration {
        name: "a_repeated_event_that_is_created_again",
        fixture: REPEATS,
        alter: |log| change(log, "sendEvent", "verb", &json!("create")),
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_that_is_not_counted",
        fixture: REPEATS,
        alter: |log| change(log, "sendEvent", "count", &json!(1)),
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_that_is_combined_too_early",
        fixture: SCALES,
        alter: |log| {
            let message = json!("(combined from similar events): New size");
            change(log, "sendEvent", "message", &message);
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_that_is_sent_twice",
        fixture: SCALES,
        alter: |log| {
            let sent = log.iter().find(|entry| is(entry, "sendEvent")).cloned();
            log.extend(sent);
        },
        field: "events as sent[1]",
    },
    Alteration {
        name: "an_event_about_another_object",
        fixture: SCALES,
        alter: |log| change(log, "sendEvent", "objectKind", &json!("Deployment")),
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_about_another_version_of_the_object",
        fixture: SCALES,
        alter: |log| change(log, "sendEvent", "objectApiVersion", &json!("autoscaling/v1")),
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_about_an_object_with_another_uid",
        fixture: SCALES,
        alter: |log| {
            let uid = "00000000-0000-4000-8000-000000000002";
            change(log, "sendEvent", "objectUid", &json!(uid));
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_with_the_uid_of_an_earlier_object",
        fixture: "events/a-re-created-hpa-has-new-events",
        alter: |log| {
            let uid = "00000000-0000-4000-8000-000000000001";
            change(log, "sendEvent", "objectUid", &json!(uid));
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_with_another_name",
        fixture: SCALES,
        alter: |log| {
            for entry in log.iter_mut().filter(|entry| is(entry, "sendEvent")) {
                let name = entry["sendEvent"]["eventName"].as_str().unwrap_or_default();
                entry["sendEvent"]["eventName"] = json!(format!("{name}0"));
            }
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "a_repeated_event_with_a_new_name",
        fixture: REPEATS,
        alter: |log| {
            for entry in log.iter_mut().filter(|entry| is(entry, "sendEvent")) {
                // The engine's clock shows a minute after the start of the year 2000 at t=0.
                let at = entry["at"].as_i64().unwrap_or_default() + 946_684_860_000_000_000;
                entry["sendEvent"]["eventName"] = json!(format!("web.{at:x}"));
            }
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_with_another_first_time",
        fixture: SCALES,
        alter: |log| {
            change(log, "sendEvent", "firstTimestamp", &json!("2000-01-01T00:00:00Z"));
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_with_another_last_time",
        fixture: SCALES,
        alter: |log| {
            change(log, "sendEvent", "lastTimestamp", &json!("2000-01-01T00:00:00Z"));
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "a_repeated_event_that_keeps_its_last_time",
        fixture: REPEATS,
        alter: |log| {
            for entry in log.iter_mut().filter(|entry| is(entry, "sendEvent")) {
                entry["sendEvent"]["lastTimestamp"] = entry["sendEvent"]["firstTimestamp"].clone();
            }
        },
        field: "events as sent[0]",
    },
    Alteration {
        name: "an_event_of_another_component",
        fixture: SCALES,
        alter: |log| change(log, "sendEvent", "component", &json!("kube-controller-manager")),
        field: "events as sent[0]",
    },
    Alteration {
        name: "a_query_for_another_kind",
        fixture: "pods-metric/an-old-sample-has-its-old-value",
        alter: |log| change(log, "podsMetric", "kind", &json!("Node")),
        field: "reads[1]",
    },
    Alteration {
        name: "an_event_in_another_namespace",
        fixture: SCALES,
        alter: |log| in_another_namespace(log, "sendEvent"),
        field: "namespaces[0]",
    },
    Alteration {
        name: "a_read_of_the_scale_of_an_unfinished_reconcile",
        fixture: UNFINISHED,
        alter: |log| {
            log.retain(|entry| !is(entry, "getScale") || entry["at"].as_i64() < Some(A_MINUTE));
        },
        field: "at",
    },
    Alteration {
        name: "a_write_of_an_unfinished_reconcile",
        fixture: UNFINISHED,
        alter: |log| {
            let mut writes = Vec::new();
            for entry in log.iter().filter(|entry| entry["at"].as_i64() >= Some(A_MINUTE)) {
                if let Some(scale) = entry.get("getScale") {
                    let (at, namespace) = (&entry["at"], &entry["namespace"]);
                    let (resource, name) = (&scale["resource"], &scale["name"]);
                    let scale = json!({ "resource": resource, "name": name, "replicas": 99 });
                    writes.push(json!({ "at": at, "namespace": namespace, "updateScale": scale }));
                }
            }
            log.extend(writes);
        },
        field: "scale.spec.replicas[0]",
    },
];

/// A minute, in nanoseconds.
const A_MINUTE: i64 = 60_000_000_000;

/// An alteration of the log that breaks the protocol.
struct Breach {
    name: &'static str,
    alter: fn(&mut Vec<Value>),
    /// A part of the message.
    message: &'static str,
}

const BREACHES: &[Breach] = &[
    Breach {
        name: "an_unknown_member_of_a_query",
        alter: |log| change(log, "getScale", "uid", &json!("0")),
        message: "unknown member `uid` in `getScale`",
    },
    Breach {
        name: "an_unknown_member_of_a_write",
        alter: |log| change(log, "updateScale", "annotations", &json!({ "a": [1, 2] })),
        message: "unknown member `annotations` in `updateScale`",
    },
    Breach {
        name: "an_unknown_member_of_an_event",
        alter: |log| change(log, "sendEvent", "uid", &json!("0")),
        message: "unknown member `uid` in `sendEvent`",
    },
    Breach {
        name: "an_event_without_the_uid_of_its_object",
        alter: |log| remove(log, "sendEvent", "objectUid"),
        message: "has no member `objectUid`, which version 5 of the protocol requires",
    },
    Breach {
        name: "an_event_without_a_name",
        alter: |log| remove(log, "sendEvent", "eventName"),
        message: "has no member `eventName`, which version 5 of the protocol requires",
    },
    Breach {
        name: "the_end_of_a_reconcile_that_did_not_begin",
        alter: |log| {
            let at = log.last().map_or(json!(0), |entry| entry["at"].clone());
            log.push(json!({ "at": at, "reconciled": { "hpa": "web" } }));
        },
        message: "which has no reconcile in progress",
    },
    Breach {
        name: ONCE,
        alter: |log| change(log, "updateScale", "replicas", &json!(9)),
        message: "the engine is not deterministic: it differed from the model at tick",
    },
];

/// A breach only when the scenario runs for the first time. The harness repeats it.
const ONCE: &str = "an_alteration_that_is_not_repeated";

/// Runs as the proxy, if these are its arguments.
pub(crate) fn as_engine(arguments: &[String]) -> Option<ExitCode> {
    let [flag, name, engine] = arguments else { return None };
    if flag != PROXY {
        return None;
    }
    Some(proxy(name, engine).unwrap_or_else(|error| {
        // The harness shows it.
        let _ = writeln!(io::stderr(), "the proxy failed: {error}");
        ExitCode::FAILURE
    }))
}

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let newest = Altered { release: Release::NEWEST, suffix: String::new() };
    newest.add_to(suite, &ALTERATIONS.iter().collect::<Vec<_>>());
    let upstream = suite.upstream(Release::NEWEST);
    for fixture in [SLOW, REPEATS] {
        let name = format!("version_4_of_the_protocol_conforms_in_{}", fixture.replace('/', "_"));
        suite.test_with(&upstream, name.replace('-', "_"), move |engine| {
            match run(VERSION_4, fixture, Release::NEWEST, &engine)? {
                Verdict::Conforms => Ok(()),
                verdict => Err(format!("{verdict:?}").into()),
            }
        });
    }
    for breach in BREACHES {
        suite.test_with(&upstream, format!("{}_is_inconclusive", breach.name), |engine| match run(
            breach.name,
            SCALES,
            Release::NEWEST,
            &engine,
        )? {
            Verdict::Inconclusive { why, .. } if why.contains(breach.message) => Ok(()),
            verdict => Err(format!("{verdict:?}").into()),
        });
    }
    let named = |name: &str| ALTERATIONS.iter().find(|alteration| alteration.name == name);
    let few: Vec<&Alteration> = ON_OLDER.iter().filter_map(|name| named(name)).collect();
    assert_eq!(few.len(), ON_OLDER.len(), "an alteration of ON_OLDER does not exist");
    let selected = trials::releases(RELEASES);
    for release in OLDER.iter().flat_map(|release| release.parse::<Release>()) {
        if selected.contains(release) {
            let older = Altered { release, suffix: format!("_on_{release}") };
            older.add_to(suite, &few);
        }
    }
}

/// The tests of a release.
struct Altered {
    release: Release,
    /// The end of their names.
    suffix: String,
}

impl Altered {
    fn add_to(&self, suite: &mut Suite, alterations: &[&'static Alteration]) {
        let Altered { release, ref suffix } = *self;
        let upstream = suite.upstream(release);
        let name = format!("an_unaltered_log_conforms{suffix}");
        suite.test_with(&upstream, name, move |engine| {
            for fixture in [SCALES, REPEATS] {
                match run("nothing", fixture, release, &engine)? {
                    Verdict::Conforms => {}
                    verdict => return Err(format!("{fixture}: {verdict:?}").into()),
                }
            }
            Ok(())
        });
        for alteration in alterations {
            let Alteration { name, fixture, field, .. } = alteration;
            suite.test_with(
                &upstream,
                format!("{name}_diverges{suffix}"),
                move |engine| match run(name, fixture, release, &engine)? {
                    Verdict::Diverges(divergence) => {
                        assert_eq!(
                            divergence.fields[0].field.to_string(),
                            *field,
                            "{divergence:?}"
                        );
                        Ok(())
                    }
                    verdict => Err(format!("{verdict:?}").into()),
                },
            );
        }
    }
}

/// Runs a fixture behind the proxy.
fn run(
    alteration: &str,
    fixture: &str,
    release: Release,
    engine: &Path,
) -> Result<Verdict, Failed> {
    let fixture = format!("fixtures/{fixture}.yaml");
    let scenario = support::load(&support::repository().join(fixture));
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("proxy");
    let (suite, engine) = (std::env::current_exe()?, engine.display());
    let script = format!("#!/bin/sh\nexec '{}' {PROXY} {alteration} '{engine}'\n", suite.display());
    support::write_program(&program, &script)?;
    Ok(run_one(&scenario, &mut Upstream::new(program, release), &[]).verdict)
}

/// Forwards requests to an engine, and its answers with an alteration.
fn proxy(name: &str, engine: &str) -> Result<ExitCode, Box<dyn Error>> {
    let alteration = ALTERATIONS.iter().find(|it| it.name == name).map(|it| it.alter);
    let breach = BREACHES.iter().find(|it| it.name == name).map(|it| it.alter);
    let alter = alteration.or(breach);
    let mut child = Command::new(engine).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut requests = child.stdin.take().ok_or("no standard input")?;
    let forwarding = thread::spawn(move || io::copy(&mut io::stdin(), &mut requests));
    let answers = BufReader::new(child.stdout.take().ok_or("no standard output")?);
    let mut is_altered = false;
    for line in answers.lines() {
        let mut answer: Value = serde_json::from_str(&line?)?;
        if name == VERSION_4 {
            speak_version_4(&mut answer);
        }
        if let Some(alter) = alter
            && let Some(log) = answer.pointer_mut("/stepped/log").and_then(Value::as_array_mut)
            && !(name == ONCE && is_altered)
        {
            let before = log.clone();
            alter(log);
            is_altered |= *log != before;
        }
        writeln!(io::stdout(), "{answer}")?;
    }
    let status = child.wait()?;
    // It ends with the input.
    drop(forwarding);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Removes what version 5 of the protocol added.
fn speak_version_4(answer: &mut Value) {
    if let Some(version) = answer.pointer_mut("/hello/protocol") {
        *version = json!(4);
    }
    let Some(log) = answer.pointer_mut("/stepped/log").and_then(Value::as_array_mut) else {
        return;
    };
    log.retain(|entry| {
        let series = entry.pointer("/controllerMetric/series").and_then(Value::as_str);
        !series.is_some_and(|series| series.contains("_bucket{"))
    });
    let sent = log.iter_mut().filter_map(|entry| entry.get_mut("sendEvent")?.as_object_mut());
    for event in sent {
        for member in
            ["objectApiVersion", "objectUid", "eventName", "firstTimestamp", "lastTimestamp"]
        {
            event.remove(member);
        }
    }
}

fn is(entry: &Value, action: &str) -> bool {
    entry.get(action).is_some()
}

/// Moves each entry of an action behind the next entry of another one.
fn swap(log: &mut [Value], action: &str, later: &str) {
    for index in 1..log.len() {
        if is(&log[index - 1], action) && is(&log[index], later) {
            log.swap(index - 1, index);
        }
    }
}

fn repeated_status_writes(log: &mut Vec<Value>) {
    let repeated = |entry: Value| {
        let times = if is(&entry, "updateStatus") { 2 } else { 1 };
        vec![entry; times]
    };
    *log = std::mem::take(log).into_iter().flat_map(repeated).collect();
}

fn in_another_namespace(log: &mut [Value], action: &str) {
    for entry in log.iter_mut().filter(|entry| is(entry, action)) {
        entry["namespace"] = json!("kube-system");
    }
}

fn change(log: &mut [Value], action: &str, field: &str, value: &Value) {
    for entry in log.iter_mut().filter(|entry| is(entry, action)) {
        entry[action][field] = value.clone();
    }
}

fn remove(log: &mut [Value], action: &str, field: &str) {
    for entry in log.iter_mut().filter(|entry| is(entry, action)) {
        entry[action].as_object_mut().and_then(|fields| fields.remove(field));
    }
}

/// Returns true if an entry is a change of a series of this metric.
fn is_series(entry: &Value, metric: &str) -> bool {
    let series = entry.pointer("/controllerMetric/series").and_then(Value::as_str);
    series.is_some_and(|series| series.split('{').next() == Some(metric))
}

fn change_series(log: &mut [Value], metric: &str, field: &str, value: &Value) {
    for entry in log.iter_mut().filter(|entry| is_series(entry, metric)) {
        entry["controllerMetric"][field] = value.clone();
    }
}
