//! The pages of `run --report html=FILE`, `predict --html FILE` and `compare --html FILE`.
//!
//! Every scenario has its section and its charts, a page loads nothing from elsewhere, and the
//! sizes are limited. If there is a browser, the script shows the derivation of a tick in it, a
//! click pins the derivation, and screenshots are compared with the images in `docs/images`, which
//! `cargo xtask docs --images` updates.

mod both;
mod frame;
mod pictures;
mod recommender;
mod selection;

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use crate::support::trials::Suite;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_report::Report as _;
use kube_lockstep_report::html::Html;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::{Controller, Divergence, EntryList, FieldDifference, FieldPath};
use kube_lockstep_sim::run::{
    ControllerRun, Event, FreeRun, HpaRun, Outcome, Setting, Summary, Verdict, free_run,
};
use libtest_mimic::Failed;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;

/// The names of Chromium and its relatives.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    suite.test("every_fixture_has_a_section", every_fixture_has_a_section);
    suite.test("the_20_largest_fixtures_take_at_most_300_kB", small);
    suite.test("the_20_largest_changes_take_at_most_300_kB", small_changes);
    suite.test("20_days_with_noise_take_at_most_300_kB", small_days);
    suite.test("the_same_result_on_two_releases_is_shown_once", releases);
    suite.test("a_divergence_is_marked_with_both_values", divergence);
    suite.test("changes_between_releases_have_both_timelines", changes);
    suite.test("the_first_change_is_marked_with_both_values", changed_replicas);
    suite.test("settings_are_compared_in_one_chart", comparison);
    suite.test("texts_of_a_scenario_are_not_markup", markup);
    suite.test("a_page_with_an_unmet_expectation_is_xml", unmet);
    suite.test("a_long_run_has_a_limited_size", long);
    suite.test("a_vpa_has_bands_over_usage", recommender::bands);
    suite.test("changes_of_a_recommender_have_both_timelines", recommender::changes);
    suite.test("days_of_a_recommender_are_thinned", recommender::small);
    suite.test("events_of_a_vpa_on_no_pod_have_no_mark", recommender::no_pod);
    suite.test("a_divergence_of_a_recommender_is_marked", recommender::divergence);
    suite.test("an_hpa_and_a_vpa_have_a_timeline_each", both::timelines);
    suite.test("a_divergence_of_a_recommender_with_an_hpa_is_marked", both::divergence);
    suite.test("several_predictions_are_on_one_page", both::predictions);
    suite.test("blanked_charts_are_noticed", pictures::blanked_charts_are_noticed);
    suite.test("changed_texts_are_noticed", pictures::changed_texts_are_noticed);
    suite.test("fills_have_enough_contrast", fills_have_enough_contrast);
    suite.test("a_peak_is_cut_with_its_value", peak);
    suite.test("a_noisy_week_has_a_limited_size", noisy);
    suite.test("a_page_of_many_results_leaves_out_timelines", huge);
    // The next tests start a browser.
    suite.ignore_by_default();
    let browser =
        || BROWSERS.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let has_browser = suite.require_that("Chromium", move || browser().is_some());
    suite.test_with(&has_browser, "a_browser_shows_the_derivation_of_a_tick", move |()| {
        in_a_browser(browser().copied().unwrap_or_default())
    });
    suite.test_with(&has_browser, "a_prediction_is_printed_on_two_pages", move |()| {
        printed(browser().copied().unwrap_or_default())
    });
    let mut in_browser = |name: &str, test: fn(&str) -> Result<(), Failed>| {
        suite.test_with(&has_browser, name, move |()| test(browser().copied().unwrap_or_default()));
    };
    in_browser("a_click_pins_a_tick", selection::pins);
    in_browser("a_tick_without_steps_has_its_values", selection::between_steps);
    in_browser("screenshots_look_as_before", pictures::look_as_before);
    in_browser("hidden_charts_are_noticed", pictures::hidden_charts_are_noticed);
    in_browser("faults_of_layouts_are_noticed", pictures::faults_of_layouts_are_noticed);
}

fn kube_lockstep(arguments: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    Ok(command.current_dir(support::repository()).args(arguments).output()?)
}

/// A page, in a folder of its own.
struct Page {
    _folder: tempfile::TempDir,
    path: PathBuf,
    text: String,
}

/// The page of a run on recorded traces.
fn run(arguments: &[&str]) -> Result<Page, Failed> {
    page(&[&["run", "--engine", "recorded"], arguments].concat(), "--report", "html=")
}

/// The page of a run with one outcome.
fn page_of(outcome: Outcome) -> Result<String, Failed> {
    let mut report = Html::new(Vec::new());
    let (setting, scenarios) = (Setting::default(), 1);
    report.event(&Event::Started { scenarios, setting, note: None })?;
    report.event(&Event::Finished(Box::new(outcome)))?;
    report.event(&Event::Ended(Summary::default()))?;
    Ok(String::from_utf8(report.into_inner())?)
}

fn page(arguments: &[&str], flag: &str, kind: &str) -> Result<Page, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("page.html");
    let report = format!("{kind}{}", path.display());
    let output = kube_lockstep(&[arguments, &[flag, &report]].concat())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code().is_none_or(|code| code > 1) {
        return Err(format!("{:?}: {errors}", output.status).into());
    }
    let text = fs::read_to_string(&path)?;
    Ok(Page { _folder: folder, path, text })
}

/// The page as XML, after checking that it loads nothing.
fn parse(text: &str) -> Result<Document<'_>, Failed> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)?;
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!matches!(name, "link" | "img" | "iframe" | "object" | "image" | "use"), "{name}");
        for attribute in node.attributes() {
            // A link loads nothing by itself.
            let is_link = name == "a" && attribute.name() == "href";
            let (name, value) = (attribute.name(), attribute.value());
            assert!(
                is_link || !matches!(name, "src" | "href" | "srcset" | "action" | "data"),
                "{name}={value}"
            );
            assert!(!name.starts_with("on"), "{name}");
            assert!(!value.contains("url("), "{name}={value}");
        }
        let code = node.text().unwrap_or_default();
        if matches!(name, "style" | "script") && node.attribute("type").is_none() {
            for word in ["url(", "@import", "import(", "fetch(", "XMLHttpRequest", "http"] {
                assert!(!code.contains(word), "{name} contains {word}");
            }
        }
    }
    Ok(document)
}

fn sections<'a, 'i>(document: &'a Document<'i>) -> Vec<Node<'a, 'i>> {
    document
        .descendants()
        .filter(|node| node.has_tag_name(HTML("details")))
        .filter(is_section)
        .collect()
}

fn is_section(node: &Node<'_, '_>) -> bool {
    node.attribute("class") == Some("s")
}

#[expect(non_snake_case, reason = "it stands for the namespace")]
fn HTML(name: &str) -> (&str, &str) {
    ("http://www.w3.org/1999/xhtml", name)
}

fn with_class<'a, 'i>(node: Node<'a, 'i>, class: &str) -> Vec<Node<'a, 'i>> {
    let has = |it: &Node<'_, '_>| {
        it.attribute("class").is_some_and(|classes| classes.split(' ').any(|it| it == class))
    };
    node.descendants().filter(has).collect()
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|it| it.text().filter(|_| it.is_text())).collect()
}

fn every_fixture_has_a_section() -> Result<(), Failed> {
    let page = run(&[])?;
    let document = parse(&page.text)?;
    let data = data(&document)?;
    let sections = sections(&document);
    let ids: BTreeSet<String> = sections
        .iter()
        .map(|section| text(with_class(*section, "name")[0]).to_owned())
        .map(|id| id.trim_end_matches("1.37").trim_end_matches("vpa-1.8").to_owned())
        .collect();
    let fixtures: BTreeSet<String> =
        support::all_fixtures().iter().map(|path| support::id_of(path)).collect();
    assert_eq!(ids, fixtures);
    for section in &sections {
        let id = section.attribute("id").unwrap_or_default();
        let figures = with_class(*section, "fig");
        match section.attribute("data-v") {
            Some("conforms") => assert!(!figures.is_empty(), "{id} has no chart"),
            Some("skipped") => assert!(text(*section).contains("Skipped: "), "{id}"),
            other => return Err(format!("{id}: {other:?}").into()),
        }
        for figure in figures {
            let ticks = ticks(&data, figure)?;
            let is_vpa = figure.attribute("class").is_some_and(|it| it.ends_with(" vpa"));
            let check = if is_vpa { recommender::check_figure } else { check_figure };
            check(figure, ticks).map_err(|why| format!("{id}: {why}"))?;
        }
    }
    let kib = page.text.len() >> 10;
    let limit = sections.len() * 6;
    assert!(kib <= limit, "{kib} KiB for {} scenarios", sections.len());
    Ok(())
}

/// The data for the scripts of a page.
fn data(document: &Document<'_>) -> Result<Value, Failed> {
    let packed = with_class(document.root(), "data").into_iter().next().ok_or("no data")?;
    let bytes = BASE64_STANDARD.decode(text(packed))?;
    let text =
        miniz_oxide::inflate::decompress_to_vec(&bytes).map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// The data of the ticks of a figure.
fn ticks<'v>(data: &'v Value, figure: Node<'_, '_>) -> Result<&'v Value, String> {
    let section = figure.ancestors().find(is_section).ok_or("no section")?;
    let before = section.prev_siblings().skip(1).filter(Node::is_element).count();
    let figures = with_class(section, "fig");
    let index = figures.iter().position(|it| *it == figure).ok_or("no figure")?;
    let texts = data["sections"][before]["t"].as_array().ok_or("no templates")?.len() as u64;
    let data = &data["sections"][before]["f"][index];
    for line in data["s"].as_array().ok_or("no texts")? {
        let template = line.as_str().and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
        if template.is_none_or(|template| template >= texts) {
            return Err(format!("wrong template: {line}"));
        }
    }
    Ok(data)
}

/// The data of the ticks of the first figure of a page.
fn first_ticks(document: &Document<'_>) -> Result<Value, Failed> {
    let figures = with_class(document.root(), "fig");
    Ok(ticks(&data(document)?, *figures.first().ok_or("no figure")?)?.clone())
}

/// A figure has the line of the replicas, an axis of time, and the data of its ticks.
fn check_figure(figure: Node<'_, '_>, data: &Value) -> Result<(), String> {
    let line = with_class(figure, "spec").into_iter().find_map(|node| node.attribute("d"));
    let line = line.ok_or("no line of spec.replicas")?;
    if !line.starts_with("M0 ") || !line.ends_with("H1000") {
        return Err(format!("the line does not reach both ends: {line}"));
    }
    let times = with_class(figure, "time");
    let labels = times.first().ok_or("no axis of time")?.children();
    let labels = labels.filter(|it| it.has_tag_name(HTML("span")));
    let labels = labels.count();
    if !(2..=9).contains(&labels) {
        return Err(format!("{labels} labels of time"));
    }
    let ticks = data["k"].as_array().ok_or("no ticks")?;
    let texts = data["s"].as_array().ok_or("no texts")?.len() as u64;
    for tick in ticks {
        let steps = tick[6].as_array().ok_or("no steps")?;
        if steps.is_empty() || steps.iter().any(|step| step.as_u64().is_none_or(|it| it >= texts)) {
            return Err(format!("wrong steps: {tick}"));
        }
    }
    Ok(())
}

/// The limit of a page of 20 scenarios, in bytes.
const LIMIT: usize = 300_000;

/// The pages of the 20 fixtures that need the most space, and of one.
fn small() -> Result<(), Failed> {
    let largest = largest(&run(&[])?)?;
    let largest: Vec<&str> = largest.iter().map(String::as_str).collect();
    let run = run(&largest)?;
    let prediction = page(&[&["predict"], &*largest].concat(), "--html", "")?;
    for page in [run, prediction] {
        assert_eq!(sections(&parse(&page.text)?).len(), 20);
        assert!(page.text.len() <= LIMIT, "{} bytes", page.text.len());
        assert!(!page.text.contains("is left out"), "a timeline is left out");
    }
    let one = self::page(&["predict", FIRST], "--html", "")?;
    parse(&one.text)?;
    assert!(one.text.len() <= 40_000, "{} bytes for one scenario", one.text.len());
    Ok(())
}

/// The ids of the 20 scenarios with the largest sections of a page.
fn largest(page: &Page) -> Result<Vec<String>, Failed> {
    let document = parse(&page.text)?;
    let data = data(&document)?;
    let sections = sections(&document).into_iter().enumerate().map(|(index, section)| {
        let panels = data["sections"][index].to_string();
        let id = section.attribute("id").unwrap_or_default();
        let id = id.split('@').next().unwrap_or_default().to_owned();
        (section.range().len() + panels.len() / 5, id)
    });
    let mut sections: Vec<(usize, String)> = sections.collect();
    sections.sort_by(|one, other| other.cmp(one));
    Ok(sections.into_iter().take(20).map(|(_, id)| id).collect())
}

/// The 20 largest changes between two releases.
fn small_changes() -> Result<(), Failed> {
    let releases = ["--from", "1.32", "--to", "1.33"];
    let all = page(&[&["diff"], &releases[..]].concat(), "--html", "")?;
    let largest = largest(&all)?;
    let largest: Vec<&str> = largest.iter().map(String::as_str).collect();
    let page = page(&[&["diff"], &*largest, &releases].concat(), "--html", "")?;
    assert_eq!(sections(&parse(&page.text)?).len(), 20);
    assert!(page.text.len() <= LIMIT, "{} bytes", page.text.len());
    Ok(())
}

/// 20 days with noise: the replicas, the metric and the limits change at most ticks.
fn small_days() -> Result<(), Failed> {
    let targets: Vec<String> = (41..60)
        .map(|target| format!("spec.metrics.0.resource.target.averageUtilization={target}"))
        .collect();
    let settings: Vec<&str> = targets.iter().flat_map(|target| ["--set", target]).collect();
    let arguments = ["compare", "-f", "examples/php-apache", "--load", NOISE, "--until", "24h"];
    let comparison = page(&[&arguments, &*settings].concat(), "--html", "")?;
    assert_eq!(sections(&parse(&comparison.text)?).len(), 20);
    assert!(comparison.text.len() <= LIMIT, "{} bytes", comparison.text.len());
    let folder = tempfile::tempdir()?;
    let fixture = support::repository().join(format!("fixtures/{FIRST}.yaml"));
    let fixture = fs::read_to_string(fixture)?;
    let (text, _) = fixture.split_once("expect:").ok_or("no expectations")?;
    let load =
        "\n      load: {noise: 40%, seed: 7, of: {sine: {mean: 1, amplitude: 800m, period: 6h}}}";
    let steps = "\n      load: {steps: [{at: 0s, value: 610m}, {at: 10m, value: \"0\"}]}";
    let text = text.replace("until: 16m", "until: 24h").replace(steps, load);
    assert!(text.contains(load), "{text}");
    for index in 0..20 {
        fs::write(folder.path().join(format!("day-{index}.yaml")), &text)?;
    }
    let days = page(&["predict", &folder.path().to_string_lossy()], "--html", "")?;
    let count = sections(&parse(&days.text)?).len();
    assert_eq!(count, 20);
    assert!(days.text.len() <= LIMIT, "{} bytes", days.text.len());
    assert!(!days.text.contains("is left out"), "a timeline is left out");
    Ok(())
}

/// A load that changes all the time.
const NOISE: &str = "cpu=total:noise(40%,seed=7,sine(mean=1,amplitude=800m,period=6h))";

/// The scenario of the README.
const FIRST: &str = "closed-loop/docs-walkthrough-php-apache";

/// The number of fixtures in `closed-loop`.
fn closed_loop() -> usize {
    let ids = support::fixtures().into_iter().map(|path| support::id_of(&path));
    ids.filter(|id| id.starts_with("closed-loop/")).count()
}

fn releases() -> Result<(), Failed> {
    let page = run(&["closed-loop", "--release", "1.34,1.35"])?;
    let document = parse(&page.text)?;
    let sections = sections(&document);
    let own = |section: &&Node<'_, '_>| section.attribute("data-r") == Some("1.34 1.35");
    assert_eq!(sections.len(), closed_loop(), "each scenario has one section");
    assert_eq!(sections.iter().filter(own).count(), closed_loop());
    assert!(page.text.contains("<span class=\"rel\">1.34–1.35</span>"));
    // The reason of a skipped scenario names the releases.
    let behavior = "behavior/a-huge-percent-policy-freezes-the-scale-up";
    let page = run(&[behavior, "--release", "1.15-1.17,1.35-1.36"])?;
    let document = parse(&page.text)?;
    let sections: Vec<String> = self::sections(&document).into_iter().map(text).collect();
    assert_eq!(sections.len(), 2, "skipped, and not: {sections:?}");
    assert!(sections[0].contains("`behavior` is not supported on 1.15–1.17"), "{sections:?}");
    assert!(sections[1].contains("all of them are for other releases"), "{sections:?}");
    Ok(())
}

/// The run of an engine that does what the model predicts.
fn hpa_run(scenario: &Arc<Scenario>, run: &FreeRun) -> ControllerRun {
    let derivations = run.ticks.iter().map(|tick| Some(tick.derivation.clone())).collect();
    ControllerRun::Hpa(HpaRun { scenario: scenario.clone(), trace: run.trace.clone(), derivations })
}

fn divergence() -> Result<(), Failed> {
    let path = support::repository().join(format!("fixtures/{FIRST}.yaml"));
    let scenario = support::load(&path);
    let run = free_run(&scenario, Release::NEWEST);
    let tick = 41;
    let at = run.ticks[tick - 1].observation.at;
    let fields = vec![
        FieldDifference::new(FieldPath::DesiredReplicas, "7", "3"),
        FieldDifference::new(FieldPath::Entry(EntryList::Events, 0), "<none>", "&"),
    ];
    let divergence = Divergence::new(Controller::Hpa, tick, at, fields);
    let why = run.ticks[tick - 1].derivation.summary();
    let divergence = Divergence { why, ..divergence };
    let mut outcome = Outcome::new(FIRST, Verdict::Diverges(divergence));
    outcome.engine = "upstream".into();
    outcome.release = "1.37".to_owned();
    outcome.controllers = vec![hpa_run(&scenario, &run)];
    let page = page_of(outcome)?;
    let document = parse(&page)?;
    let section = sections(&document)[0];
    assert_eq!(section.attribute("data-v"), Some("diverges"));
    assert_eq!(section.attribute("open"), Some("open"));
    let flags: Vec<String> = with_class(section, "flag").into_iter().map(text).collect();
    assert_eq!(flags, ["model 7, upstream 3"]);
    let line = with_class(section, "dvg")[0].attribute("style").unwrap_or_default();
    // 10 of 16 minutes and 15 seconds.
    assert_eq!(line, "--p:0.6154");
    let table = text(with_class(section, "wide")[0]);
    for value in ["status.desiredReplicas73", "events[0]<none>&", "modelupstream"] {
        assert!(table.contains(value), "{value}: {table}");
    }
    let why = "Why the model said so: resource cpu 0% of 50%";
    assert!(text(section).contains(why), "{}", text(section));
    let data = first_ticks(&document)?;
    assert_eq!((&data["k"][tick - 1][4], &data["k"][tick][4]), (&"d".into(), &"p".into()));
    let writes = data["k"][tick - 1][7].as_array().ok_or("no writes")?;
    assert!(writes.len() >= 2, "the values are in the panel");
    Ok(())
}

fn changes() -> Result<(), Failed> {
    let arguments = ["diff", "closed-loop", "--from", "1.36", "--to", "1.37"];
    assert_eq!(changed_scenarios(&arguments, "1.37", check_figure)?, closed_loop());
    Ok(())
}

/// Checks the page of a `diff`: each scenario names the release since which it differs, and has a
/// timeline for each release. Returns the number of scenarios.
fn changed_scenarios(
    arguments: &[&str],
    since: &str,
    check_figure: fn(Node<'_, '_>, &Value) -> Result<(), String>,
) -> Result<usize, Failed> {
    let page = page(arguments, "--html", "")?;
    let document = parse(&page.text)?;
    let data = data(&document)?;
    let sections = sections(&document);
    for section in &sections {
        let section = *section;
        assert_eq!(section.attribute("data-v"), Some("changed"));
        let figures = with_class(section, "fig");
        assert_eq!(figures.len(), 2, "one timeline for each release");
        for figure in figures {
            let ticks = ticks(&data, figure)?;
            check_figure(figure, ticks)?;
            first_change(figure, ticks)?;
        }
        assert!(text(section).contains(&format!("Since {since}: ")), "{}", text(section));
    }
    Ok(sections.len())
}

/// The first change is marked on the charts, and at its tick, with both values.
fn first_change(figure: Node<'_, '_>, data: &Value) -> Result<(), Failed> {
    assert_eq!(with_class(figure, "dvg").len(), 1, "the line of the first change");
    assert_eq!(with_class(figure, "flag").len(), 1, "the text of the first change");
    let ticks = data["k"].as_array().ok_or("no ticks")?;
    let marked: Vec<&Value> = ticks.iter().filter(|tick| tick[4] == "c").collect();
    assert_eq!(marked.len(), 1, "one tick has the first change");
    assert!(marked[0][7].as_array().is_some_and(|writes| !writes.is_empty()), "{}", marked[0]);
    Ok(())
}

/// In a change of the desired replicas, the mark has both values.
fn changed_replicas() -> Result<(), Failed> {
    let arguments = ["diff", "tolerance/upper-edge-is-inclusive", "--from", "1.32", "--to", "1.33"];
    let page = page(&arguments, "--html", "")?;
    let document = parse(&page.text)?;
    let flags: Vec<String> = with_class(document.root(), "flag").into_iter().map(text).collect();
    assert_eq!(flags, ["1.32: 11, 1.33: 10"; 2]);
    Ok(())
}

/// A scenario file in a folder of its own.
fn file(folder: &Path, from: &str, to: &str) -> Result<String, Failed> {
    let text = fs::read_to_string(support::repository().join(format!("fixtures/{FIRST}.yaml")))?;
    let changed = text.replace(from, to);
    assert_ne!(text, changed, "{from:?} is not in the fixture");
    let path = folder.join("mine.yaml");
    fs::write(&path, changed)?;
    Ok(path.to_string_lossy().into_owned())
}

fn markup() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let old = ">-\n  With a load of 305% of one pod's request and a target of 50%, php-apache scales up \
               to 7 replicas,\n  and back to 1 without load.";
    let file = file(folder.path(), old, "'</script><b>]]>&amp; \"x\" <!--'")?;
    let page = page(&["predict", &file], "--html", "")?;
    let document = parse(&page.text)?;
    let section = sections(&document)[0];
    assert_eq!(text(with_class(section, "req")[0]), "</script><b>]]>&amp; \"x\" <!--");
    assert!(with_class(section, "fig").len() == 1);
    Ok(())
}

fn long() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = file(folder.path(), "until: 16m", "until: 240h")?;
    let page = page(&["predict", &file], "--html", "")?;
    let document = parse(&page.text)?;
    let data = first_ticks(&document)?;
    let (shown, more) = (data["k"].as_array().map_or(0, Vec::len), data["more"].as_u64());
    let values = data["v"]["n"].as_array().map_or(0, Vec::len);
    assert!((1000..=1600).contains(&shown), "{shown}");
    assert!(values >= 20_000, "{values}");
    let all = shown + values + more.unwrap_or_default() as usize;
    assert_eq!(all, 240 * 60 * 4 + 1);
    assert!(page.text.len() <= LIMIT, "{} bytes", page.text.len());
    Ok(())
}

/// A list in a list item, with line breaks, was once not well-formed.
fn unmet() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = file(folder.path(), "expect:\n", "expect:\n  - {tick: 1, replicas: 9}\n")?;
    let page = page(&["predict", &file], "--html", "")?;
    let document = parse(&page.text)?;
    let section = sections(&document)[0];
    assert_eq!(section.attribute("data-v"), Some("unmet"));
    let item = text(with_class(section, "div")[0]);
    for part in ["1 unmet expectation", "expected 9", "why: ", "explain it: kube-lockstep explain"]
    {
        assert!(item.contains(part), "{part}: {item}");
    }
    Ok(())
}

/// The replicas, the metric and the limits change at most ticks.
fn noisy() -> Result<(), Failed> {
    let arguments = ["predict", "-f", "examples/php-apache", "--load", NOISE, "--until", "168h"];
    let page = page(&arguments, "--html", "")?;
    let document = parse(&page.text)?;
    let data = first_ticks(&document)?;
    let shown = data["k"].as_array().map_or(0, Vec::len);
    assert!((400..=1900).contains(&shown), "{shown}");
    assert!(page.text.len() <= LIMIT, "{} bytes", page.text.len());
    Ok(())
}

/// A peak of more than ten times the target is cut, with an arrow and its value; a lower one is not.
fn peak() -> Result<(), Failed> {
    let of = |value: &str| -> Result<(Vec<String>, String), Failed> {
        let folder = tempfile::tempdir()?;
        let from = "load: {steps: [{at: 0s, value: 610m}, {at: 10m, value: \"0\"}]}";
        let to = format!(
            "perPod: {{steps: [{{at: 0s, value: 100m}}, {{at: 5m, value: {value}}}, {{at: 6m, value: 100m}}]}}"
        );
        let file = file(folder.path(), from, &to)?;
        let page = page(&["predict", &file], "--html", "")?;
        let document = parse(&page.text)?;
        let marks = with_class(document.root(), "peak").into_iter().map(text).collect();
        let lines = with_class(document.root(), "edge").into_iter();
        let lines = lines.filter_map(|it| it.attribute("d")).collect::<String>();
        Ok((marks, lines))
    };
    assert_eq!(of("900m")?, (Vec::new(), String::new()), "450% of 200m");
    let (marks, edge) = of("3")?;
    assert_eq!(marks, ["▲ 1500%"]);
    // From the value before to the edge, along it, and back to the value after.
    // The axis ends 15 s after the last tick, at 16m15s.
    assert_eq!(edge, "M307.7 42V1H369.2V42");
    Ok(())
}

/// With many results, those that are not failures have no timelines, and the page says so.
fn huge() -> Result<(), Failed> {
    let page = run(&["utilization", "closed-loop", "--release", "all"])?;
    let document = parse(&page.text)?;
    assert!(!page.text.contains("is left out"), "these are few");
    drop(document);
    let mut report = Html::new(Vec::new());
    let path = support::repository().join(format!("fixtures/{FIRST}.yaml"));
    let scenario = support::load(&path);
    let run = free_run(&scenario, Release::NEWEST);
    let scenarios = 900;
    report.event(&Event::Started { scenarios, setting: Setting::default(), note: None })?;
    for index in 0..scenarios {
        let is_last = index + 1 == scenarios;
        let verdict = if is_last { Verdict::Unmet } else { Verdict::Conforms };
        let mut outcome = Outcome::new(format!("many/{index}"), verdict);
        outcome.release = "1.37".to_owned();
        outcome.controllers = vec![hpa_run(&scenario, &run)];
        report.event(&Event::Finished(Box::new(outcome)))?;
    }
    report.event(&Event::Ended(Summary::default()))?;
    let page = String::from_utf8(report.into_inner())?;
    assert!(page.len() <= 5_000_000, "{} bytes", page.len());
    let document = parse(&page)?;
    let sections = sections(&document);
    assert_eq!(sections.len(), scenarios);
    let without = |section: &&Node<'_, '_>| with_class(**section, "fig").is_empty();
    let left_out = sections.iter().filter(without).count();
    assert!(left_out > 0 && left_out < scenarios, "{left_out}");
    assert!(page.contains(&format!("the timelines of {left_out} results are left out")));
    assert!(!without(&&sections[0]), "failures have their timelines");
    Ok(())
}

/// Waits for the page's data, which is decompressed after the page is loaded.
const WAIT: &str = "--virtual-time-budget=5000";

/// Prints a page as PDF, and returns the number of its pages.
fn pages_of_pdf(browser: &str, page: &Page, pdf: &Path) -> Result<usize, Failed> {
    let profile = tempfile::tempdir()?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", WAIT, "--no-pdf-header-footer"])
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.path.display()))
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(pdf)?;
    let text = String::from_utf8_lossy(&bytes);
    // Each page is an object of its own; another object is the tree of all pages.
    Ok(text.matches("/Type /Page\n").count())
}

/// A prediction needs two pages. Sections that are closed on the screen are printed open.
fn printed(browser: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let pdf = folder.path().join("page.pdf");
    let prediction = page(&["predict", FIRST], "--html", "")?;
    let count = pages_of_pdf(browser, &prediction, &pdf)?;
    assert!((1..=2).contains(&count), "{count} pages");
    let several = run(&["closed-loop"])?;
    let all = pages_of_pdf(browser, &several, &pdf)?;
    assert!(all <= 2 * closed_loop(), "{all} pages for {} scenarios", closed_loop());
    let closed = self::page(&COMPARE, "--html", "")?;
    let count = pages_of_pdf(browser, &closed, &pdf)?;
    assert!((4..=9).contains(&count), "{count} pages for the comparison and four settings");
    Ok(())
}

/// The page of a prediction after its script ran.
fn dom(browser: &str, scenario: &str) -> Result<String, Failed> {
    let page = page(&["predict", scenario], "--html", "")?;
    let profile = tempfile::tempdir()?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", WAIT, "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.path.display()))
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// The page after its script ran: the panel of each open scenario shows a tick.
fn in_a_browser(browser: &str) -> Result<(), Failed> {
    let dom = dom(browser, FIRST)?;
    let panel = dom.split_once("class=\"panel\">").map(|(_, panel)| panel).ok_or("no panel")?;
    let panel = panel.split_once("</ol>").map(|(panel, _)| panel).ok_or_else(|| dom.clone())?;
    let explained = kube_lockstep(&["explain", FIRST, "--tick", "1"])?;
    let explained = String::from_utf8(explained.stdout)?;
    for part in ["tick 1", "t=0s", "replicas 1 → 4", "<li>The target has 1 replica; 1 to 10 are"]
    {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    // An address that is not encoded does not stop the script.
    let page = page(&["predict", FIRST], "--html", "")?;
    let profile = tempfile::tempdir()?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", WAIT, "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("file://{}#%", page.path.display())])
        .output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(!messages.contains("URIError"), "{messages}");
    assert!(dom.contains("role=\"slider\"") && dom.contains("aria-valuetext=\"tick 1, t=0s"));
    assert!(explained.contains("The target has 1 replica; 1 to 10 are allowed."), "{explained}");
    assert!(panel.contains("They use 610m of the requested 200m: 305%"), "{panel}");
    recommender::in_a_browser(&self::dom(browser, recommender::SHOWN)?)
}

/// Four settings on the load of an example.
const COMPARE: [&str; 11] = [
    "compare",
    "-f",
    "examples/php-apache",
    "--load",
    "cpu=total:csv(examples/php-apache/load.csv,value=cores)",
    "--set",
    "short window:spec.behavior.scaleDown.stabilizationWindowSeconds=60",
    "--set",
    "75 %:spec.metrics.0.resource.target.averageUtilization=75",
    "--set",
    "spec.maxReplicas=6",
];

/// The page of a comparison has the figures of the table, a line for each setting, the values at
/// each time, and a section for each setting.
fn comparison() -> Result<(), Failed> {
    let page = page(&COMPARE, "--html", "")?;
    let document = parse(&page.text)?;
    let shown = String::from_utf8(kube_lockstep(&COMPARE)?.stdout)?;
    let tables = with_class(document.root(), "figures");
    assert_eq!(tables.len(), 2, "all figures, and the causes of missing pod-hours");
    let rows = tables.iter().flat_map(|table| table.descendants());
    let rows = rows.filter(|it| it.has_tag_name(HTML("tr")));
    let cells = |row: Node<'_, '_>| row.children().filter(Node::is_element).map(text).collect();
    let in_page: Vec<Vec<String>> = rows.map(cells).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_terminal = shown.lines().filter(|line| !line.is_empty()).map(words);
    let in_terminal: Vec<String> = in_terminal.collect();
    let joined: Vec<String> = in_page.iter().map(|row| row.join(" ")).collect();
    assert_eq!(joined, in_terminal);
    let names = ["current", "short window", "75 %", "spec.maxReplicas=6"];
    let compared = with_class(document.root(), "compared");
    let figure = *compared.first().ok_or("no chart of all settings")?;
    for (index, name) in names.iter().enumerate() {
        // Each setting has a color. The replicas, the utilization, and its target.
        let lines = with_class(figure, &format!("c{index}"));
        let lines = lines.iter().filter(|line| line.tag_name().name() == "path").count();
        assert_eq!(lines, 3, "{name}");
    }
    let values = &data(&document)?["values"][0];
    assert_eq!(values["names"], serde_json::json!(names));
    let last = values["times"].as_array().and_then(|times| times.last()).ok_or("no times")?;
    assert_eq!(last[2][3], "2 replicas, cpu 50%", "{last}");
    let sections = sections(&document);
    let ids = sections.iter().filter_map(|section| section.attribute("id"));
    assert_eq!(
        ids.collect::<Vec<_>>(),
        names.map(|name| format!("{}@1.37", name.replace(' ', "-")))
    );
    Ok(())
}

/// The areas of charts stand out from the card: WCAG requires a contrast of 3:1 for graphics.
fn fills_have_enough_contrast() -> Result<(), Failed> {
    let style = fs::read_to_string(support::repository().join("crates/report/src/html/page.css"))?;
    let (light, dark) = style.split_once("prefers-color-scheme: dark").ok_or("no dark mode")?;
    let fills = ["ready", "unready", "missing", "gone", "window", "rate", "bound", "tol", "held"];
    let lines = ["spec", "status", "desired", "model", "value", "target", "bad", "accent"];
    for (name, theme) in [("light", light), ("dark", dark)] {
        let color = |name: &str| -> Result<f64, Failed> {
            let value = theme.split_once(&format!("--{name}: #")).map(|(_, rest)| rest);
            let value = value.and_then(|rest| rest.split_once(';')).ok_or(name.to_owned())?.0;
            let long = value.chars().flat_map(|c| [c, c]).collect::<String>();
            luminance(if value.len() == 3 { &long } else { value })
        };
        let card = color("card")?;
        for fill in fills.iter().chain(&lines) {
            let fill_color = color(fill)?;
            let (more, less) = (card.max(fill_color), card.min(fill_color));
            let contrast = (more + 0.05) / (less + 0.05);
            assert!(contrast >= 3.0, "{name}: {fill} has a contrast of {contrast:.2}");
        }
    }
    Ok(())
}

/// The relative luminance of a color such as `c0182b`.
fn luminance(color: &str) -> Result<f64, Failed> {
    let mut sum = 0.0;
    for (index, weight) in [0.2126, 0.7152, 0.0722].into_iter().enumerate() {
        let channel = color.get(index * 2..index * 2 + 2).ok_or("not a color")?;
        let value = f64::from(u8::from_str_radix(channel, 16)?) / 255.0;
        let linear =
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
        sum += weight * linear;
    }
    Ok(sum)
}
