//! Pages of VPAs: bands of the recommended amounts over usage.

use std::sync::Arc;

use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::{ObjectName, Resource};
use kube_lockstep_report::Report as _;
use kube_lockstep_report::html::Html;
use kube_lockstep_scenario::vpa::{VpaScenario, VpaValue};
use kube_lockstep_scenario::{AnyScenario, parse_any};
use kube_lockstep_sim::compare::{AmountField, Controller, Divergence, FieldDifference, FieldPath};
use kube_lockstep_sim::run::recommender::{RecommenderRun, free_recommender_run};
use kube_lockstep_sim::run::{ControllerRun, Event, Outcome, Setting, Summary, Verdict};
use kube_lockstep_sim::trace::recommender::RecommenderTrace;
use libtest_mimic::Failed;
use roxmltree::Node;
use serde_json::Value;

use super::{
    HTML, changed_scenarios, data, first_ticks, kube_lockstep, page, page_of, parse, sections,
    support, text, ticks, with_class,
};

/// Eight days with all kinds of events.
const WEEK: &str = "suites/live/html/week.yaml";

/// A fixture with an OOM kill.
const OOM: &str = "vpa/oom/a-factor-of-1-2";

/// The arguments of a prediction that is shown in the docs: a wave of cpu and growing memory.
pub(super) const EXAMPLE: &[&str] = &[
    "-f",
    "examples/hamster",
    "--load",
    "cpu=sine(mean=500m,amplitude=300m,period=24h)",
    "--load",
    "memory=ramp(0s:100Mi,8d:350Mi)",
];

/// A figure of a VPA has a chart for each resource, an axis of time, and the data of its ticks.
pub(super) fn check_figure(figure: Node<'_, '_>, data: &Value) -> Result<(), String> {
    let ticks = data["k"].as_array().ok_or("no ticks")?;
    let has_target = ticks.iter().any(|tick| tick[3].as_str() != Some("no recommendation"));
    let lines = with_class(figure, "target").into_iter().filter_map(|node| node.attribute("d"));
    if has_target && lines.filter(|line| line.starts_with('M')).count() == 0 {
        return Err("no line of the target".to_owned());
    }
    let times = with_class(figure, "time");
    let labels = times.first().ok_or("no axis of time")?.children();
    let labels = labels.filter(|it| it.has_tag_name(HTML("span")));
    if !(2..=9).contains(&labels.count()) {
        return Err("the number of labels of time".to_owned());
    }
    let texts = data["s"].as_array().ok_or("no texts")?.len() as u64;
    for tick in ticks {
        let steps = tick[6].as_array().ok_or("no steps")?;
        if steps.iter().any(|step| step.as_u64().is_none_or(|it| it >= texts)) {
            return Err(format!("wrong steps: {tick}"));
        }
    }
    Ok(())
}

/// The captions of the charts of a figure.
fn captions(figure: Node<'_, '_>) -> Vec<String> {
    with_class(figure, "cap").into_iter().map(text).collect()
}

pub(super) fn bands() -> Result<(), Failed> {
    let page = page(&["predict", WEEK], "--html", "")?;
    let document = parse(&page.text)?;
    let section = sections(&document)[0];
    let figures = with_class(section, "fig");
    assert_eq!(figures.len(), 2, "one figure for each VPA");
    let data = data(&document)?;
    for figure in &figures {
        check_figure(*figure, ticks(&data, *figure)?)?;
    }
    let captions = captions(figures[0]);
    let memory = "app memoryusageat the end:target 560.6Mibounds 560.4Mi to 630.7Mi\
                  uncapped target 560.6Mirequest 512Mi";
    let cpu = "app cpuin coreshighest usage of a poddown to the lowestat the end:target 920m";
    for expected in [cpu, memory] {
        assert!(captions.iter().any(|it| it.starts_with(expected)), "{expected}: {captions:?}");
    }
    assert_eq!(with_class(figures[0], "plot").len(), 4, "cpu and memory of two containers");
    let svg = |class: &str| {
        let paths = with_class(figures[0], class).into_iter().filter_map(|it| it.attribute("d"));
        paths.map(str::to_owned).collect::<Vec<_>>()
    };
    // The upper bound is above the chart at first, so the band begins at its upper edge.
    assert!(svg("band")[0].starts_with("M0 1H"), "{:?}", svg("band")[0]);
    assert_eq!(svg("band").len(), 4);
    // Usage is missing from 80h to 85h of 192h.
    assert!(svg("value")[0].contains("H420M440 "), "{}", svg("value")[0]);
    // The restart, and the edit.
    assert_eq!(svg("mark")[0], "M521 0v120M677 0v120");
    let events: Vec<String> = with_class(figures[0], "t").into_iter().map(text).collect();
    let expected = [
        "OOM kill of app in pod 0",
        "the recommender restarts",
        "all pods have no metrics",
        "the VPA is edited",
    ];
    assert_eq!(events, expected, "the deletion is that of the other VPA");
    let deleted = with_class(figures[1], "seg");
    assert_eq!(deleted[0].attribute("title"), Some("from 150h: deleted, 2,521 ticks"));
    Ok(())
}

/// An OOM kill of a pod that does not exist has no mark, only a note.
pub(super) fn no_pod() -> Result<(), Failed> {
    let kill = "oomKill: {pods: \"0\"";
    let fixture = support::repository().join(format!("fixtures/{OOM}.yaml"));
    let content = std::fs::read_to_string(fixture)?;
    for (pods, marks) in [("all", 1), ("7", 0)] {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("kill.yaml");
        std::fs::write(&file, content.replace(kill, &format!("oomKill: {{pods: {pods}")))?;
        let page = page(&["predict", file.to_str().ok_or("no path")?], "--html", "")?;
        let document = parse(&page.text)?;
        let section = sections(&document)[0];
        let is_kill = |node: &Node<'_, '_>| node.attribute("class") == Some("dot bad");
        assert_eq!(section.descendants().filter(is_kill).count(), marks, "{pods}");
        let events = with_class(section, "t").into_iter().map(text);
        assert_eq!(events.filter(|it| it.starts_with("OOM kill of")).count(), marks, "{pods}");
        assert_eq!(text(section).contains("has no effect"), marks == 0, "{pods}");
    }
    Ok(())
}

/// Days of one-minute ticks are thinned.
pub(super) fn small() -> Result<(), Failed> {
    let page = page(&["predict", WEEK], "--html", "")?;
    assert!(page.text.len() <= 300_000, "{} bytes for one scenario", page.text.len());
    let document = parse(&page.text)?;
    let data = first_ticks(&document)?;
    let shown = data["k"].as_array().map_or(0, Vec::len);
    let values = data["v"]["n"].as_array().map_or(0, Vec::len);
    assert!(shown >= 200, "{shown}");
    assert!(values >= 2000, "{values}");
    let more = data["more"].as_u64().unwrap_or_default() as usize;
    assert_eq!(more + shown + values, 192 * 60);
    assert_eq!(more > 0, data["note"].as_str().is_some_and(|it| it.contains("explain --at")));
    let parsed = parse_any("week.yaml", ONE_CONTAINER, &|_| Err("".into()))?;
    let AnyScenario::Vpa(scenario) = parsed else { return Err("not a VPA".into()) };
    let outcome = outcome_of(Arc::new(*scenario))?;
    let mut report = Html::new(Vec::new());
    let (setting, scenarios) = (Setting::default(), 20);
    report.event(&Event::Started { scenarios, setting, note: None })?;
    for index in 0..scenarios {
        let mut outcome = outcome.clone();
        outcome.id = format!("week-{index}");
        report.event(&Event::Finished(Box::new(outcome)))?;
    }
    report.event(&Event::Ended(Summary::default()))?;
    let size = report.into_inner().len();
    assert!(size <= 300_000, "{size} bytes for 20 scenarios");
    Ok(())
}

/// Eight days of a container.
const ONE_CONTAINER: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Eight days of three pods.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload: {replicas: 3}
metrics:
  resource:
    - name: cpu
      perPod: {sine: {mean: 500m, amplitude: 300m, period: 24h}}
      pods: [{pods: 1, value: {sine: {mean: 400m, amplitude: 200m, period: 24h}}}]
    - {name: memory, perPod: {sine: {mean: 400Mi, amplitude: 60Mi, period: 24h}}}
timeline: [{at: 50h, oomKill: {pods: 0}}]
until: 192h
";

/// The outcome of a run of the model.
fn outcome(path: &str) -> Result<Outcome, Failed> {
    outcome_of(support::load_vpa(&support::repository().join(path)))
}

fn outcome_of(scenario: Arc<VpaScenario>) -> Result<Outcome, Failed> {
    let release = VpaRelease::NEWEST;
    let run = free_recommender_run(&scenario, release, &|_| false);
    let mut outcome = Outcome::new(scenario.id.clone(), Verdict::Conforms);
    outcome.engine = "upstream".into();
    outcome.release = release.to_string();
    outcome.controllers = vec![ControllerRun::Recommender(RecommenderRun {
        scenario: Arc::clone(&scenario),
        trace: RecommenderTrace::default(),
        snapshots: run.snapshots,
    })];
    Ok(outcome)
}

/// The target for the cpu of the fixtures' container.
pub(super) fn target_of_cpu() -> FieldPath {
    FieldPath::Amount(AmountField {
        vpa: ObjectName::new("default", "web"),
        container: "app".into(),
        value: VpaValue::Target,
        resource: Resource::Cpu,
    })
}

/// A divergence of the target is marked on its chart, and the target of the model is drawn.
pub(super) fn divergence() -> Result<(), Failed> {
    let mut outcome = outcome(&format!("fixtures/{OOM}.yaml"))?;
    let Some(ControllerRun::Recommender(run)) = outcome.controllers.first_mut() else {
        return Err("no run".into());
    };
    let tick = 4;
    for snapshot in run.snapshots.iter_mut().skip(tick - 1) {
        let status = snapshot.statuses.values_mut().next().ok_or("no status")?;
        let recommendation = status.recommendation.as_mut().ok_or("no recommendation")?;
        let cpu = &mut recommendation.container_recommendations[0].target.cpu;
        *cpu = Quantity::parse_stored("600m").ok();
    }
    let at = run.snapshots[tick - 1].at;
    let fields = vec![FieldDifference::new(target_of_cpu(), "587m", "600m")];
    let divergence = Divergence::new(Controller::Recommender, tick, at, fields);
    let why = "target.cpu of app: the 90th percentile is in bucket 25".to_owned();
    outcome.verdict = Verdict::Diverges(Divergence { why, ..divergence });
    let page = page_of(outcome)?;
    let document = parse(&page)?;
    let section = sections(&document)[0];
    assert_eq!(section.attribute("data-v"), Some("diverges"));
    let flags: Vec<String> = with_class(section, "flag").into_iter().map(text).collect();
    assert_eq!(flags, ["target: model 587m, upstream 600m"]);
    // 4 of 6 minutes: the last run is at 5 minutes.
    assert_eq!(with_class(section, "dvg")[0].attribute("style"), Some("--p:0.6667"));
    assert!(text(section).contains("target of the model"));
    let model = with_class(section, "model").into_iter().find_map(|it| it.attribute("d"));
    assert!(model.is_some_and(|line| line.starts_with("M666.7 ")), "{model:?}");
    let data = first_ticks(&document)?;
    let kinds: Vec<&str> = data["k"].as_array().ok_or("no ticks")?[tick - 1..]
        .iter()
        .filter_map(|tick| tick[4].as_str())
        .collect();
    assert_eq!(kinds, ["d", "p"]);
    Ok(())
}

/// The changes between the releases, their reasons, and the timelines of both.
pub(super) fn changes() -> Result<(), Failed> {
    let arguments = ["diff", "vpa/oom", "--from", "vpa-1.7"];
    assert!(changed_scenarios(&arguments, "vpa-1.8", check_figure)? > 0);
    Ok(())
}

/// The panel of a browser has the derivation that `explain` prints.
pub(super) fn in_a_browser(dom: &str) -> Result<(), Failed> {
    let explained = kube_lockstep(&["explain", OOM, "--tick", "1"])?;
    let explained = String::from_utf8(explained.stdout)?;
    let explained = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    let derivation =
        "the 90th percentile is in bucket 25, which ends at 511m; with the margin 587m";
    assert!(explained.contains(&format!("target.cpu: {derivation}")), "{explained}");
    for part in [
        "<b>t=1m</b><b>target of app cpu 587m, memory 362.6Mi</b>",
        "<p>Usage: app cpu 500m; app memory 300Mi</p>",
        "<li>app: 1 cpu sample from 2000-01-01T00:01:00Z to 2000-01-01T00:01:00Z</li>",
    ] {
        assert!(dom.contains(part), "{part}: {dom}");
    }
    assert!(dom.contains(&format!("<li>app target.cpu: {derivation}")), "{dom}");
    Ok(())
}

/// The fixture that the browser shows.
pub(super) const SHOWN: &str = OOM;
