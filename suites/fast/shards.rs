//! Runs that are split over several machines: the merged shards equal the run in one piece, and a
//! missing shard is reported.

use crate::support;
use std::sync::{Arc, LazyLock};

use kube_lockstep::run_all;
use kube_lockstep_engines::plan::Plan;
use kube_lockstep_engines::recorded::{FOLDER, Traces};
use kube_lockstep_engines::registry::EngineChoice;
use kube_lockstep_report::Report as _;
use kube_lockstep_report::json::Json;
use kube_lockstep_report::results;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::merge::{ResultFile, merge};
use kube_lockstep_sim::run::{Event, Shard};
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Some fixtures. For every fifth, the model has another tolerance than upstream had when its trace
/// was recorded, so that it diverges where the tolerance matters. Every seventh has no matching
/// trace.
static SCENARIOS: LazyLock<Vec<Arc<Scenario>>> = LazyLock::new(|| {
    let areas = ["/tolerance/", "/limits/", "/behavior/", "/edits/", "/external-metric/"];
    let mut scenarios: Vec<Arc<Scenario>> = support::fixtures()
        .iter()
        .filter(|path| areas.iter().any(|area| path.to_string_lossy().contains(area)))
        .map(|path| support::load(path))
        .collect();
    scenarios.sort_by(|one, other| one.id.cmp(&other.id));
    for (index, scenario) in scenarios.iter_mut().enumerate() {
        let scenario = Arc::make_mut(scenario);
        if index % 5 == 0 {
            scenario.flags.tolerance += 0.3;
        } else if index % 7 == 0 {
            scenario.hash = "another".into();
        }
    }
    scenarios
});

/// The results of a run as JSON.
fn results(scenarios: &[Arc<Scenario>], releases: &str, shard: Option<Shard>) -> String {
    let releases = releases.parse().expect("releases");
    let mut plan = Plan::new(scenarios.to_vec(), EngineChoice::Recorded, releases);
    plan.jobs = 2;
    plan.traces = Traces::Folder(support::repository().join(FOLDER));
    plan.shard = shard;
    let mut report = Json::new(Vec::new());
    let mut write = |event: Event| report.event(&event).expect("a vector can be written to");
    run_all(&plan, &mut write).expect("it runs");
    String::from_utf8(report.into_inner()).expect("text")
}

/// The output, without durations.
fn without_times(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        for path in ["elapsedMs", "/summary/seconds"] {
            let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
            if let Some(object) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
                object.remove(key);
            }
        }
        value
    });
    lines.collect()
}

fn parts(texts: &[String]) -> Vec<ResultFile> {
    let numbered = texts.iter().enumerate();
    let read = |(index, text): (usize, &String)| {
        results::read(&format!("{}.json", index + 1), text).expect("results")
    };
    numbered.map(read).collect()
}

/// The merged result of the parts.
fn merged(texts: &[String]) -> String {
    let (events, _) = merge(parts(texts), None, VERSION).expect("they fit");
    let mut report = Json::new(Vec::new());
    events.iter().for_each(|event| report.event(event).expect("a vector can be written to"));
    String::from_utf8(report.into_inner()).expect("text")
}

fn shards(scenarios: &[Arc<Scenario>], releases: &str, of: usize) -> Vec<String> {
    let shard = |index| Some(Shard { index, of });
    (1..=of).map(|index| results(scenarios, releases, shard(index))).collect()
}

fn scenario_subset() -> impl Strategy<Value = Vec<Arc<Scenario>>> {
    let all = SCENARIOS.clone();
    let count = 1..=all.len().min(24);
    subsequence(all, count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn merged_shards_equal_the_whole_run(
        scenarios in scenario_subset(),
        releases in prop::sample::select(vec!["1.37", "1.36-1.37", "1.33,1.35,1.37"]),
        of in 1_usize..9,
        order in any::<prop::sample::Index>(),
    ) {
        let mut whole = without_times(&results(&scenarios, releases, None));
        let mut parts = shards(&scenarios, releases, of);
        // The order of the parts does not matter.
        parts.rotate_left(order.index(of));
        let merged = without_times(&merged(&parts));
        // The summary has no entry for a release without results.
        prop_assert_eq!(whole.pop(), merged.last().cloned());
        prop_assert_eq!(whole.as_slice(), &merged[..merged.len() - 1]);
    }

    #[test]
    fn missing_shards_are_reported_and_surplus_shards_rejected(
        scenarios in scenario_subset(), of in 2_usize..6, missing in any::<prop::sample::Index>(),
    ) {
        let mut texts = shards(&scenarios, "1.37", of);
        let missing = missing.index(of);
        let text = texts.remove(missing);
        let (_, summary) = merge(parts(&texts), None, VERSION).expect("they fit");
        let name = format!("shard {}/{of} of the run on recorded 1.37", missing + 1);
        prop_assert_eq!(summary.missing, [name]);
        texts.push(text);
        let (_, summary) = merge(parts(&texts), None, VERSION).expect("they fit");
        prop_assert_eq!(summary.missing, [""; 0]);
        texts.push(texts[0].clone());
        let refused = merge(parts(&texts), None, VERSION).expect_err("a shard is given twice");
        prop_assert!(refused.what.contains(" are both shard "), "{refused}");
    }

    #[test]
    fn truncated_results_are_never_a_verdict(
        scenarios in scenario_subset(), cut in any::<prop::sample::Index>(),
    ) {
        let whole = results(&scenarios, "1.37", None);
        // Only the last byte ends the line of the summary.
        let cut = cut.index(whole.len() - 1);
        let (_, summary) = merge(parts(&[whole[..cut].to_owned()]), None, VERSION).expect("it is read");
        let summary_is_whole = cut + 1 == whole.len();
        prop_assert_eq!(summary.missing.is_empty(), summary_is_whole, "{:?}", summary.missing);
    }
}

#[test]
fn merged_results_have_all_kinds_of_verdicts() {
    let lines = without_times(&results(&SCENARIOS, "1.36,1.37", None));
    for verdict in ["conforms", "diverges", "inconclusive", "skipped"] {
        assert!(lines.iter().any(|line| line["verdict"] == verdict), "{verdict}");
    }
    assert!(lines.iter().any(|line| line["divergence"]["why"] != ""));
}

#[test]
fn results_of_single_releases_are_merged_in_order() {
    let texts = ["1.37", "1.33", "1.36"].map(|release| results(&SCENARIOS, release, None));
    let mut merged = without_times(&merged(&texts));
    let mut whole = without_times(&results(&SCENARIOS, "1.33,1.36,1.37", None));
    // The parts are not shards of one run.
    let figures = whole.last_mut().and_then(|last| last["summary"].as_object_mut());
    assert!(figures.expect("a summary").remove("plan").is_some());
    assert_eq!(merged, whole);
    assert_eq!(merged.pop().expect("a summary")["summary"]["release"], "1.33, 1.36 - 1.37");
}

#[test]
fn an_incomplete_part_with_a_replacement_is_not_missing() {
    let texts = shards(&SCENARIOS, "1.37", 3);
    let cut = texts[1][..texts[1].len() / 2].to_owned();
    let whole = without_times(&merged(&texts));
    let with_it = [std::slice::from_ref(&cut), texts.as_slice()].concat();
    assert_eq!(without_times(&merged(&with_it)), whole);
    // An incomplete part with another verdict is rejected.
    let other = cut.replace("\"verdict\":\"conforms\"", "\"verdict\":\"unexpected\"");
    assert_ne!(other, cut);
    let refused = merge(parts(&[&[other], texts.as_slice()].concat()), None, VERSION);
    let refused = refused.expect_err("two verdicts on one scenario").what;
    assert!(refused.contains(" is in 1.json and in 3.json"), "{refused}");
    let alone = merge(parts(&[cut]), None, VERSION).expect("it is read").1;
    assert_eq!(alone.missing, ["1.json: the run is incomplete"]);
}

#[test]
fn unrelated_results_are_rejected() {
    let few = &SCENARIOS[..6];
    let of = |index, of| results(few, "1.37", Some(Shard { index, of }));
    let refused = |texts: &[String]| merge(parts(texts), None, VERSION).expect_err("refused").what;

    let other = of(1, 2).replace(&format!("\"version\":\"{VERSION}\""), "\"version\":\"0.0.9\"");
    let text = refused(&[of(2, 2), other]);
    assert_eq!(
        text,
        format!("2.json was written by kube-lockstep 0.0.9, but this is kube-lockstep {VERSION}")
    );

    let whole = results(few, "1.37", None);
    let text = refused(&[whole.clone(), of(1, 2)]);
    let id = &few[0].id;
    assert_eq!(text, format!("{id} on recorded 1.37 is in 1.json and in 2.json"));

    assert_eq!(refused(&[of(1, 2), of(3, 3)]), "1.json is shard 1/2, and 2.json shard 3/3");

    let others = results(&SCENARIOS[10..16], "1.37", Some(Shard { index: 2, of: 2 }));
    let text = refused(&[of(1, 2), others]);
    assert!(text.ends_with(" are shards of different runs"), "{text}");

    let upstream = of(2, 2).replace("\"engine\":\"recorded\"", "\"engine\":\"upstream\"");
    let text = refused(&[of(1, 2), upstream]);
    assert_eq!(text, "1.json and 2.json are from one run, but on recorded and upstream");

    let line = whole.lines().next().expect("a line");
    let error = results::read("x.json", &format!("{line}\n{{\"id\": 1}}\n")).expect_err("none");
    let text = error.to_string();
    assert!(text.starts_with("x.json:2:8: not a result of `run --format json`: "), "{text}");
    let error = results::read("x.json", &format!("{whole}{line}\n")).expect_err("more");
    assert!(error.to_string().ends_with(": there are more lines after the summary"), "{error}");
}
