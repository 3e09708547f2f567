//! The reports of a run: each report of the same constructed events, as snapshots.

use std::sync::Arc;
use std::time::Duration;

use kube_autoscaler_models::api::HpaStatus;
use kube_autoscaler_models::observation::{
    ControllerAction, Event as Recorded, EventType, Observation, ScaleWrite, StatusWrite,
};
use kube_autoscaler_models::time::Time;
use kube_lockstep_report::github::{Folders, Github};
use kube_lockstep_report::html::Html;
use kube_lockstep_report::json::{FORMAT_VERSION, Json};
use kube_lockstep_report::junit::Junit;
use kube_lockstep_report::markdown::Markdown;
use kube_lockstep_report::terminal::{Layout, Terminal};
use kube_lockstep_report::{CutOff, Report};
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_sim::compare::{Controller, Divergence, FieldDifference};
use kube_lockstep_sim::expect::{Unmet, UnmetTick, UnmetValue};
use kube_lockstep_sim::run::{
    ControllerRun, Event, HpaRun, KnownHit, Outcome, Preparation, Setting, Summary, Verdict,
};
use kube_lockstep_sim::trace::Trace;

const LAYOUT: Layout = Layout { columns: 100, verbose: false, progress: false };

fn outcome(id: &str, verdict: Verdict) -> Outcome {
    let mut outcome = Outcome::new(id, verdict);
    outcome.path = format!("fixtures/{id}.yaml");
    outcome.line = 31;
    outcome.requirement =
        "A scale-down waits for the highest recommendation of the last 300 s.".to_owned();
    outcome.engine = "upstream".into();
    outcome.release = "1.37".to_owned();
    outcome.ticks = 4;
    outcome.elapsed = Duration::from_micros(12_345);
    outcome
}

/// A tick every 15 s from t=0, which scales a target from `current` to `desired` replicas.
fn tick(number: i64, current: i32, desired: i32) -> Observation {
    let at = Time::from_secs(15 * number);
    let status = HpaStatus {
        current_replicas: Some(current),
        desired_replicas: desired,
        ..Default::default()
    };
    let hpa: Arc<str> = Arc::from("web");
    let mut tick = Observation::new(at, hpa.clone(), []);
    if current != desired || number == 0 {
        let write = StatusWrite { name: hpa.clone(), status, ..StatusWrite::default() };
        tick.push(ControllerAction::UpdateStatus(Box::new(write)));
    }
    if current != desired {
        tick.push(ControllerAction::UpdateScale(ScaleWrite {
            resource: "deployments.apps".into(),
            name: "web".into(),
            replicas: desired,
            ..ScaleWrite::default()
        }));
        let message = format!("New size: {desired}; reason: All metrics below target");
        let reason = "SuccessfulRescale".into();
        let type_ = EventType::Normal;
        let event = Recorded { hpa, type_, reason, message: message.into() };
        tick.push(ControllerAction::Event(event));
    }
    tick
}

fn difference(field: &str, model: &str, upstream: &str) -> FieldDifference {
    FieldDifference::new(field.to_owned(), model, upstream)
}

/// Any scenario.
const FIXTURE: &str =
    include_str!("../../fixtures/stabilization/downscale-window-holds-the-highest.yaml");

const WHY: &str = "resource cpu 40% of 50% (ratio 0.8, 7 ready) -> 6; stabilize: 7 recommended at \
                   t=15s, 45s old, window 5m -> 7";

fn diverging(id: &str, fields: Vec<FieldDifference>) -> Outcome {
    let divergence = Divergence::new(Controller::Hpa, 5, Time::from_secs(60), fields);
    let divergence = Divergence { why: WHY.to_owned(), ..divergence };
    let mut outcome = outcome(id, Verdict::Diverges(divergence));
    outcome.ticks = 5;
    outcome.not_compared = 16;
    let ticks = vec![
        tick(0, 7, 7),
        tick(1, 7, 7),
        tick(2, 7, 7),
        tick(3, 7, 7),
        tick(4, 7, 6),
        tick(5, 6, 6),
        tick(6, 6, 5),
        tick(7, 5, 5),
    ];
    let trace = Trace { ticks, ..Trace::default() };
    let derivations = vec![None; trace.ticks.len()];
    let no_files = |_: &str| Err("".into());
    let scenario = kube_lockstep_scenario::parse("fixture.yaml", FIXTURE, &no_files);
    let scenario = Arc::new(scenario.expect("a scenario"));
    outcome.controllers = vec![ControllerRun::Hpa(HpaRun { scenario, trace, derivations })];
    outcome
}

fn one_field() -> Outcome {
    diverging(
        "stabilization/downscale-window-holds-the-highest",
        vec![difference("status.desiredReplicas", "7", "6")],
    )
}

fn several_fields() -> Outcome {
    let message = |text: &str| format!("recent recommendations were higher than {text}");
    let mut outcome = diverging(
        "stabilization/several-fields",
        vec![
            difference("scale.spec.replicas[0]", "(none)", "6"),
            difference("status.desiredReplicas", "7", "6"),
            difference(
                "status.conditions[AbleToScale].reason",
                "ScaleDownStabilized",
                "ReadyForNewScale",
            ),
            difference(
                "status.conditions[AbleToScale].message",
                &message("current one, applying the highest recent recommendation"),
                &message(
                    "the current one, and since this value is very long, it goes on and on, so \
                     that it does not fit into one line of a terminal of an ordinary width",
                ),
            ),
            difference(
                "events[0]",
                "(none)",
                "Normal SuccessfulRescale: New size: 6; reason: All metrics below target",
            ),
        ],
    );
    outcome.unmet.push(unmet(44, "tick 5 (t=1m): replicas: expected 7, was 6"));
    outcome
}

/// A difference in the API server's answer to a user's request, which belongs to no tick.
fn api_answer() -> Outcome {
    let refused = "refused: HorizontalPodAutoscaler.autoscaling \"web\" is invalid: \
                   spec.maxReplicas: Invalid value: 0: must be greater than 0";
    let fields = vec![difference("api", "stored {\"maxReplicas\":0}", refused)];
    let divergence = Divergence::new(Controller::Hpa, 0, Time::ZERO, fields);
    let mut outcome = outcome("edits/max-of-zero", Verdict::Diverges(divergence));
    outcome.ticks = 0;
    outcome.engine = "recorded".into();
    outcome
}

fn unmet_outcome() -> Outcome {
    let mut outcome = outcome("limits/max-holds", Verdict::Unmet);
    outcome.unmet = vec![
        Unmet {
            tick: Some(UnmetTick { tick: 3, at: Time::from_secs(30), index: 2 }),
            values: vec![UnmetValue {
                field: "replicas".into(),
                of: None,
                expected: "6".into(),
                observed: "4".into(),
                expected_value: Some(6.into()),
                observed_value: Some(4.into()),
            }],
            why: "resource cpu 90% of 50% (ratio 1.8, 2 ready) -> 4".into(),
            ..unmet(41, "tick 3 (t=30s): replicas: expected 6, was 4")
        },
        unmet(
            44,
            "not within 1m of t=30s; last at tick 7 (t=1m30s): condition ScalingLimited: expected \
             True, was False (DesiredWithinRange)",
        ),
    ];
    outcome
}

fn unmet(line: usize, what: &str) -> Unmet {
    Unmet { number: 1, line, what: what.to_owned(), ..Unmet::default() }
}

fn inconclusive() -> Outcome {
    let why = "the upstream engine failed: it exited before it answered".to_owned();
    let mut output: Vec<String> =
        (1..=30).map(|line| format!("goroutine {line} [running]:")).collect();
    output.push("\tvirtual/main.go:17 +0x1d\u{1b}[31m".to_owned());
    let mut outcome =
        outcome("errors/panics", Verdict::Inconclusive { why, output: output.join("\n") });
    outcome.ticks = 0;
    outcome
}

fn skipped() -> Outcome {
    let why = SkipReason::naming("it applies to releases >=1.38, not to ", "1.37", "");
    let mut outcome = outcome("tolerance/of-the-future", Verdict::Skipped { why });
    outcome.ticks = 0;
    outcome
}

fn known() -> Outcome {
    let mut outcome = outcome("conditions/known", Verdict::Conforms);
    let reason = "Upstream writes the condition twice within one second.".to_owned();
    let link = "https://github.com/kubernetes/kubernetes/issues/1".to_owned();
    outcome.known.push(KnownHit { field: "status".to_owned(), reason, link });
    outcome
}

fn setting() -> Setting {
    Setting { engine: "upstream".into(), release: "1.37".to_owned(), ..Setting::default() }
}

fn events(outcomes: Vec<Outcome>, stale: &[&str], note: Option<&str>) -> Vec<Event> {
    let mut summary = Summary::default();
    let mut events = vec![
        Event::Preparing(Preparation {
            fraction: Some(0.5),
            ..Preparation::step("upstream v1.37", "compiling")
        }),
        Event::Started {
            scenarios: outcomes.len(),
            setting: setting(),
            note: note.map(str::to_owned),
        },
    ];
    for outcome in outcomes {
        summary.add(&outcome);
        events.push(Event::Finished(Box::new(outcome)));
    }
    summary.stale_known = stale.iter().map(|entry| (*entry).to_owned()).collect();
    summary.elapsed = Duration::from_millis(812);
    events.push(Event::Ended(summary));
    events
}

fn all() -> Vec<Event> {
    let conforming = outcome("tolerance/upper-edge", Verdict::Conforms);
    let outcomes = vec![
        conforming,
        one_field(),
        several_fields(),
        api_answer(),
        unmet_outcome(),
        inconclusive(),
        skipped(),
        known(),
    ];
    events(outcomes, &["tolerance/edge: status.conditions[AbleToScale] (a reason)"], None)
}

/// The report as it reaches a pipe: without colours.
fn text(events: &[Event], layout: Layout) -> String {
    let out = anstream::StripStream::new(Vec::new());
    let mut report = Terminal::new(out, layout);
    for event in events {
        report.event(event).expect("a vector can be written to");
    }
    String::from_utf8(report.into_inner().into_inner()).expect("reports are UTF-8")
}

fn json(events: &[Event]) -> String {
    let mut report = Json::new(Vec::new());
    for event in events {
        report.event(event).expect("a vector can be written to");
    }
    String::from_utf8(report.into_inner()).expect("reports are UTF-8")
}

#[test]
fn text_reports_nonconforming_scenarios_in_full() {
    insta::assert_snapshot!(text(&all(), LAYOUT));
}

#[test]
fn a_conforming_run_is_reported_in_two_lines() {
    let outcomes = (0..1200).map(|number| outcome(&format!("a/{number}"), Verdict::Conforms));
    let text = text(&events(outcomes.collect(), &[], None), LAYOUT);
    insta::assert_snapshot!(text, @r"
    kube-lockstep 0.1.0: 1,200 scenarios on upstream 1.37
    1,200 scenarios on upstream 1.37: 1,200 conform, 0 diverge, 0 inconclusive, 0 skipped; 4,800 ticks in 0.8 s
    ");
}

#[test]
fn text_explains_the_choice_of_engine_and_lists_everything_if_verbose() {
    let note = "using recorded traces, because upstream can't run here: Go is not installed; \
                install Go 1.26 or newer and add it to PATH";
    let outcomes = vec![outcome("tolerance/upper-edge", Verdict::Conforms), skipped()];
    let layout = Layout { verbose: true, ..LAYOUT };
    insta::assert_snapshot!(text(&events(outcomes, &[], Some(note)), layout));
}

/// A failure that all scenarios share is reported once; other failures are reported separately.
#[test]
fn text_reports_a_repeated_failure_once() {
    let failed = |id: &str, why: &str| {
        let (why, output) = (why.to_owned(), String::new());
        outcome(id, Verdict::Inconclusive { why, output })
    };
    let why = "the mine engine failed: ./mine could not be started: No such file or directory";
    let outcomes = vec![
        failed("a/1", why),
        failed("a/2", why),
        failed("a/3", "the mine engine failed: it did not answer within 30 s"),
        failed("a/4", why),
    ];
    let text = text(&events(outcomes, &[], None), LAYOUT);
    assert_eq!(text.matches("./mine could not be").count(), 2, "{text}");
    assert_eq!(text.matches("did not answer").count(), 1, "{text}");
    let again =
        "\ninconclusive  2 more scenarios for the same reason: the mine engine failed: ./mine";
    assert!(text.contains(again), "{text}");
}

#[test]
fn text_fits_a_narrow_terminal() {
    let layout = Layout { columns: 60, ..LAYOUT };
    insta::assert_snapshot!(text(&events(vec![several_fields()], &[], None), layout));
}

#[test]
fn colours_distinguish_the_sides_of_a_divergence() {
    let mut report = Terminal::new(Vec::new(), LAYOUT);
    for event in events(vec![one_field()], &[], None) {
        report.event(&event).expect("a vector can be written to");
    }
    let text = String::from_utf8(report.into_inner()).expect("reports are UTF-8");
    assert!(
        text.contains("model \u{1b}[36m7\u{1b}[0m | upstream \u{1b}[35m6\u{1b}[0m"),
        "{text:?}"
    );
}

/// A program's output could contain anything; none of it may reach the terminal as a command.
#[test]
fn the_output_of_a_broken_engine_cannot_control_the_terminal() {
    let mut report = Terminal::new(Vec::new(), LAYOUT);
    for event in events(vec![inconclusive()], &[], None) {
        report.event(&event).expect("a vector can be written to");
    }
    let text = String::from_utf8(report.into_inner()).expect("reports are UTF-8");
    assert!(!text.contains("\u{1b}[31m"), "{text:?}");
}

#[test]
fn json_output_has_one_object_per_line() {
    let json = json(&all());
    for line in json.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(value["formatVersion"], FORMAT_VERSION, "{line}");
    }
    insta::assert_snapshot!(json);
}

#[test]
fn the_json_summary_has_exactly_these_keys() {
    let json = json(&events(vec![one_field(), unmet_outcome(), skipped()], &[], None));
    insta::assert_snapshot!(
        json.lines().last().unwrap_or_default(),
        @r#"{"formatVersion":1,"summary":{"version":"0.1.0","engine":"upstream","release":"1.37","scenarios":3,"conforms":0,"diverges":1,"unmet":1,"inconclusive":0,"skipped":1,"ticks":9,"seconds":0.812}}"#
    );
}

/// Passes the events to a report, and returns the report.
fn reported<R: Report>(mut report: R, events: &[Event]) -> R {
    for event in events {
        report.event(event).expect("a vector can be written to");
    }
    report
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("reports are UTF-8")
}

/// An element of the JUnit schema that Jenkins uses: its attributes, the required ones first, and
/// the elements that it may contain.
struct Element {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    children: &'static [&'static str],
}

const RESULTS: &[&str] = &["skipped", "error", "failure", "system-out", "system-err"];
const SCHEMA: [Element; 6] = [
    Element {
        name: "testsuites",
        required: &[],
        optional: &["name", "time", "tests", "failures", "errors"],
        children: &["testsuite"],
    },
    Element {
        name: "testsuite",
        required: &["name", "tests", "failures", "errors"],
        optional: &["group", "time", "skipped", "timestamp", "hostname", "id", "package"],
        children: &["properties", "testcase", "system-out", "system-err"],
    },
    Element {
        name: "testcase",
        required: &["name"],
        optional: &["time", "classname", "group"],
        children: RESULTS,
    },
    Element { name: "failure", required: &[], optional: &["type", "message"], children: &[] },
    Element { name: "error", required: &[], optional: &["type", "message"], children: &[] },
    Element { name: "skipped", required: &[], optional: &["type", "message"], children: &[] },
];

/// The variable that names `junit-10.xsd` of the Jenkins xUnit plugin, which is not part of this
/// repository.
const XSD: &str = "KUBE_LOCKSTEP_JUNIT_XSD";

/// If [`XSD`] is set, validates a file with xmllint.
fn validate_junit(text: &str) {
    let Some(schema) = std::env::var_os(XSD) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("junit.xml");
    std::fs::write(&file, text).expect("the file is written");
    let mut command = std::process::Command::new("xmllint");
    let output = command.args(["--noout", "--schema"]).arg(schema).arg(&file).output();
    let output = output.expect("xmllint is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Checks a file against the elements and attributes of the schema, and that the figures of suites
/// are those of their test cases.
fn check_junit(text: &str) {
    let document = roxmltree::Document::parse(text).expect("it is XML");
    assert_eq!(document.root_element().tag_name().name(), "testsuites");
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        let schema = SCHEMA.iter().find(|element| element.name == name);
        let schema = schema.unwrap_or_else(|| panic!("the schema has no {name}"));
        for required in schema.required {
            assert!(node.attribute(*required).is_some(), "{name} has no {required}");
        }
        for attribute in node.attributes() {
            let attribute = attribute.name();
            let all = [schema.required, schema.optional].concat();
            assert!(all.contains(&attribute), "the schema has no {attribute} of {name}");
        }
        for child in node.children().filter(roxmltree::Node::is_element) {
            let child = child.tag_name().name();
            assert!(schema.children.contains(&child), "the schema has no {child} in {name}");
        }
        if matches!(name, "testsuite" | "testsuites") {
            let count = |of: &str| {
                let all = node.descendants().filter(|it| it.tag_name().name() == of);
                all.count().to_string()
            };
            for (figure, of) in
                [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]
            {
                assert_eq!(node.attribute(figure), Some(&*count(of)), "{figure} of {name}");
            }
            let time = node.attribute("time").unwrap_or_default();
            assert!(time.parse::<f64>().is_ok_and(|time| time >= 0.0), "{time:?}");
        }
    }
    // Last: the checks above are those that each machine can do.
    validate_junit(text);
}

#[test]
fn junit_output_follows_the_schema_of_jenkins() {
    let text = utf8(reported(Junit::new(Vec::new()), &all()).into_inner());
    check_junit(&text);
    insta::assert_snapshot!(text);
}

/// A check that accepts everything would prove nothing.
#[test]
#[should_panic(expected = "the schema has no flavor of testcase")]
fn an_unknown_attribute_does_not_follow_the_schema() {
    check_junit(
        "<testsuites tests='1' failures='0' errors='0' time='0'><testsuite name='a' tests='1' \
         failures='0' errors='0' time='0'><testcase name='b' flavor='c'/></testsuite></testsuites>",
    );
}

/// Fixtures are below `fixtures`; files of users have the names of their own folders.
#[test]
fn junit_output_groups_scenarios_by_their_folders() {
    let class = |id: &str, path: &str| {
        let mut outcome = outcome(id, Verdict::Conforms);
        outcome.path = path.to_owned();
        let ended = Event::Ended(Summary::default());
        let events = [Event::Finished(Box::new(outcome)), ended];
        let text = utf8(reported(Junit::new(Vec::new()), &events).into_inner());
        let (_, class) = text.split_once("classname=\"").expect("a class name");
        class.split('"').next().unwrap_or_default().to_owned()
    };
    let fixture = "stabilization/window";
    assert_eq!(class(fixture, "fixtures/stabilization/window.yaml"), "fixtures.stabilization");
    assert_eq!(class("hpa/prod/web", "hpa/prod/web.yaml"), "hpa.prod");
    assert_eq!(class("./my hpa/web", "./my hpa/web.yaml"), "my hpa");
    assert_eq!(class("../my hpa/web", "../my hpa/web.yaml"), "my hpa");
    assert_eq!(class("/tmp/hpa/web", "/tmp/hpa/web.yaml"), "tmp.hpa");
    assert_eq!(class("web", "web.yaml"), "scenarios");
}

#[test]
fn junit_output_without_scenarios_follows_the_schema() {
    check_junit(&utf8(
        reported(Junit::new(Vec::new()), &events(Vec::new(), &[], None)).into_inner(),
    ));
}

#[test]
fn markdown_output_has_the_figures_and_each_scenario_that_does_not_conform() {
    insta::assert_snapshot!(utf8(reported(Markdown::new(Vec::new()), &all()).into_inner()));
}

#[test]
fn github_output_has_an_annotation_for_each_problem_and_a_job_summary() {
    let report = Github::new(Vec::new(), Some(Vec::new()), Folders::default());
    let (out, summary) = reported(report, &all()).into_inner();
    insta::assert_snapshot!(utf8(out));
    let markdown = utf8(reported(Markdown::new(Vec::new()), &all()).into_inner());
    assert_eq!(summary.map(utf8), Some(markdown));
}

/// A run that was interrupted has no summary; its reports contain what was done.
#[test]
fn reports_of_a_run_that_did_not_finish_say_so() {
    let mut events = all();
    events.pop();
    let why = "interrupted: 8 of 9 scenarios were done";
    let cut_off = |report: &mut dyn Report| {
        report.cut_off(CutOff::because(why)).expect("a vector can be written to")
    };
    let mut junit = reported(Junit::new(Vec::new()), &events);
    cut_off(&mut junit);
    let junit = utf8(junit.into_inner());
    check_junit(&junit);
    assert!(junit.contains(&format!("<error message=\"{why}\" type=\"incomplete\"/>")), "{junit}");
    let mut markdown = reported(Markdown::new(Vec::new()), &events);
    cut_off(&mut markdown);
    let markdown = utf8(markdown.into_inner());
    assert!(markdown.contains(&format!("**The run did not finish:** {why}")), "{markdown}");
    assert!(markdown.contains("| all | 8 | 2 | 3 | 1 | 1 | 1 |"), "{markdown}");
    let mut github =
        reported(Github::new(Vec::new(), None::<Vec<u8>>, Folders::default()), &events);
    cut_off(&mut github);
    let github = utf8(github.into_inner().0);
    assert!(github.contains(&format!("::the run did not finish: {why}\n")), "{github}");
    let mut html = reported(Html::new(Vec::new()), &events);
    cut_off(&mut html);
    let html = utf8(html.into_inner());
    assert!(html.contains(&format!("the run did not finish: {why}")) && html.contains("</html>"));
}
