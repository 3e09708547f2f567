//! The model as a module for the playground: requests in, answers out, both as JSON.
//!
//! [`answer`] is a pure function. The page calls it through the interface of WebAssembly (`abi`);
//! the example `native` calls it on this machine, so that a test can compare the two.

#[cfg(target_arch = "wasm32")]
mod abi;
mod check;
mod compare;
mod files;
mod lint;
mod load;
mod predict;
mod proposals;
mod recommender;
mod request;
mod settings;
mod tune;
mod upgrade;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use self::files::Files;
use self::predict::Predicted;
use self::request::{Request, Subject};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_predict::Scenario;
use kube_lockstep_report::overview::OverviewItem;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Diagnostic, Error, Place};

/// A request that has no answer, with its reasons.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused {
    problems: Vec<ProblemOf>,
}

/// A problem of a text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemOf {
    /// The file; absent for the scenario itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Line, from 1; 0 if the problem has no position.
    line: usize,
    /// Column, from 1, in characters.
    column: usize,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Refused {
    /// A problem without a position.
    fn new(what: impl Into<String>) -> Refused {
        let problem = ProblemOf { file: None, line: 0, column: 0, what: what.into(), hint: None };
        Refused { problems: vec![problem] }
    }
}

impl From<Diagnostic> for ProblemOf {
    fn from(it: Diagnostic) -> ProblemOf {
        let hint = it.hint_text();
        let (file, line, column) = match it.place.map(|place| *place) {
            Some(Place { file, line, column }) => (file, line, column),
            None => (None, 0, 0),
        };
        ProblemOf { file, line, column, what: it.what, hint }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { problems: error.problems.into_iter().map(ProblemOf::from).collect() }
    }
}

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How much of it is done.
    pub done: u64,
    /// The largest amount.
    pub most: u64,
}

/// Is called with the progress of a search, very often.
pub type Watch<'w> = &'w (dyn Fn(Progress) + Sync);

/// An item of the result of a search.
#[derive(Debug, Serialize)]
struct Item {
    #[serde(flatten)]
    item: OverviewItem,
    /// A scenario that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
}

/// Answers a request, both as JSON. An answer without a result is an object with the list
/// `problems`.
#[must_use]
pub fn answer(request: &str, watch: Watch<'_>) -> String {
    let answer = serde_json::from_str::<Request>(request)
        .map_err(|error| Refused::new(format!("invalid request: {error}")))
        .and_then(|request| respond(&request, watch));
    match answer {
        Ok(answer) => answer.to_string(),
        Err(refused) => json!(refused).to_string(),
    }
}

fn respond(request: &Request, watch: Watch<'_>) -> Result<Value, Refused> {
    let subject = match request {
        Request::About => return Ok(about()),
        Request::Draft { manifests, load } => return files::draft(manifests, load),
        Request::Lint { manifests, load, release } => {
            return lint::of_manifests(manifests, load, self::release(release)?);
        }
        Request::Predict(subject)
        | Request::Explain { subject, .. }
        | Request::Csv(subject)
        | Request::Trace(subject)
        | Request::Tune { subject, .. }
        | Request::Check { subject, .. }
        | Request::Upgrade { subject, .. }
        | Request::Compare { subject, .. } => subject,
    };
    match parse(subject)? {
        AnyScenario::Hpa(scenario) => answer_for_hpa(request, subject, Arc::new(*scenario), watch),
        AnyScenario::Vpa(scenario) => recommender::respond(request, subject, &scenario),
    }
}

/// Answers a request about the scenario of an HPA.
fn answer_for_hpa(
    request: &Request,
    subject: &Subject,
    scenario: Arc<Scenario>,
    watch: Watch<'_>,
) -> Result<Value, Refused> {
    let release = release(&subject.release)?;
    match request {
        Request::Compare { with, .. } => {
            return compare::comparison(&scenario, release, self::release(with)?);
        }
        Request::Tune { search, .. } => return tune::tuned(&scenario, release, search, watch),
        Request::Check { states, .. } => {
            return check::checked(&scenario, release, *states, watch);
        }
        Request::Upgrade { with, ticks, .. } => {
            let releases = [release, self::release(with)?];
            return upgrade::searched(&scenario, subject, releases, *ticks, watch);
        }
        _ => {}
    }
    let predicted = Predicted::new(scenario, release);
    match request {
        Request::Explain { tick, .. } => predicted.explanation(*tick),
        Request::Csv(_) => Ok(predicted.csv()),
        Request::Trace(_) => predicted.trace(),
        _ => predicted.answer(&subject.text),
    }
}

/// The version, the supported releases, oldest first, and the schema of scenarios.
fn about() -> Value {
    let releases: Vec<String> = Release::supported().map(|release| release.to_string()).collect();
    let vpa_releases: Vec<String> =
        VpaRelease::supported().map(|release| release.to_string()).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "releases": releases,
        "vpaReleases": vpa_releases,
        "schema": scenario::schema(),
    })
}

fn release(name: &str) -> Result<Release, Refused> {
    Release::known(name).map_err(Refused::new)
}

/// Parses the scenario of a request.
fn parse(subject: &Subject) -> Result<AnyScenario, Refused> {
    let files = Files::beside(&subject.path, &subject.files);
    let parsed = scenario::parse_any(&subject.path, &subject.text, &|name| files.read(name))?;
    // Fixtures have short ids, as for the command.
    let fixture = subject.path.strip_prefix("fixtures/").and_then(|id| id.strip_suffix(".yaml"));
    let id = |parsed: &str| fixture.unwrap_or(parsed).to_owned();
    Ok(match parsed {
        AnyScenario::Hpa(parsed) if parsed.has_objects() => {
            return Err(Refused::new("no model predicts what a controller does with `objects`"));
        }
        AnyScenario::Hpa(parsed) => {
            AnyScenario::Hpa(Box::new(Scenario { id: id(&parsed.id), ..*parsed }))
        }
        AnyScenario::Vpa(parsed) => {
            AnyScenario::Vpa(Box::new(VpaScenario { id: id(&parsed.id), ..*parsed }))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Value) -> Value {
        serde_json::from_str(&answer(&request.to_string(), &|_| {})).expect("JSON")
    }

    const TEMPLATE: &str = include_str!("../../src/cli/init/template.yaml");

    fn request(method: &str, text: &str) -> Value {
        json!({"method": method, "path": "scenario.yaml", "text": text, "release": "1.37"})
    }

    #[test]
    fn a_prediction_has_ticks_charts_and_loads() {
        let answer = ask(&request("predict", TEMPLATE));
        let ticks = answer["lines"].as_str().expect("text").lines().count();
        assert_eq!(ticks, 102, "101 ticks and a summary");
        assert!(answer["body"].as_str().expect("HTML").contains("<svg"));
        let load = &answer["loads"][0];
        assert_eq!(load["path"], json!(["metrics", "resource", 0, "load"]));
        assert_eq!(load["points"][0], json!([0.0, 0.5]));
        assert_eq!(answer["undetermined"], Value::Null);
    }

    #[test]
    fn a_prediction_has_the_proposals_of_each_tick() {
        let answer = ask(&request("predict", TEMPLATE));
        let lines = answer["lines"].as_str().expect("text").lines();
        let ticks: Vec<Value> = lines.map(|it| serde_json::from_str(it).expect("JSON")).collect();
        let proposals = &answer["proposals"][0];
        assert_eq!((&proposals["hpa"], &proposals["end"]), (&json!("web"), &json!(1500.0)));
        let points = proposals["points"].as_array().expect("a list");
        assert_eq!(points.len(), 101);
        for (tick, point) in ticks.iter().zip(points) {
            assert_eq!(tick["proposal"], point[1], "{tick}");
        }
        assert!(points.iter().any(|point| point[1].as_i64() > Some(2)), "{points:?}");
    }

    #[test]
    fn settings_and_their_defaults_are_those_of_the_release_and_the_flags() {
        let settings = |text: &str, release: &str| {
            let mut request = request("predict", text);
            request["release"] = json!(release);
            ask(&request)["settings"].clone()
        };
        let newest = settings(TEMPLATE, "1.37");
        let defaults = json!({
            "minReplicas": 1, "cpuUtilization": 80, "scaleUpWindow": 0, "scaleDownWindow": 300.0,
            "tolerance": 0.1,
        });
        assert_eq!(newest, json!({"behavior": true, "tolerance": true, "defaults": defaults}));
        let has = |text: &str, release: &str| {
            let settings = settings(text, release);
            (settings["behavior"].as_bool(), settings["tolerance"].as_bool())
        };
        assert_eq!(has(TEMPLATE, "1.17"), (Some(false), Some(false)));
        assert_eq!(has(TEMPLATE, "1.33"), (Some(true), Some(false)), "the gate is off by default");
        let gate = "controller: {featureGates: {HPAConfigurableTolerance: true}, flags: \
                    {horizontal-pod-autoscaler-tolerance: 0.2, \
                    horizontal-pod-autoscaler-downscale-stabilization: 1m}}\n";
        let text = format!("{TEMPLATE}\n{gate}");
        assert_eq!(has(&text, "1.33"), (Some(true), Some(true)));
        let flags = &settings(&text, "1.33")["defaults"];
        assert_eq!((&flags["tolerance"], &flags["scaleDownWindow"]), (&json!(0.2), &json!(60.0)));
    }

    #[test]
    fn a_load_with_noise_also_has_the_signal_without_it() {
        let load = "load: {noise: 20%, of: {steps: [{at: 0s, value: 2}]}}";
        let start = TEMPLATE.find("load: {steps").expect("a load");
        let end = TEMPLATE[start..].find('\n').expect("a line") + start;
        let text = format!("{}{load}{}", &TEMPLATE[..start], &TEMPLATE[end..]);
        let answer = ask(&request("predict", &text));
        let curve = &answer["loads"][0];
        let (points, plain) = (curve["points"].as_array(), curve["withoutNoise"].as_array());
        let (points, plain) = (points.expect("points"), plain.expect("points"));
        assert!(plain.iter().all(|point| point[1] == json!(2.0)), "{plain:?}");
        assert!(points.iter().any(|point| point[1] != json!(2.0)), "{points:?}");
        assert_eq!(ask(&request("predict", TEMPLATE))["loads"][0].get("withoutNoise"), None);
    }

    #[test]
    fn an_error_has_its_position_and_a_hint() {
        let answer = ask(&request("predict", &TEMPLATE.replace("maxReplicas", "maxReplica")));
        let problem = &answer["problems"][0];
        let at = |name: &str| problem[name].as_u64();
        assert_eq!((at("line"), at("column")), (Some(13), Some(5)), "{answer}");
        assert_eq!(problem["hint"], "did you mean `maxReplicas`?");
    }

    #[test]
    fn releases_are_compared_and_the_change_is_explained() {
        let fixture = include_str!("../../fixtures/closed-loop/docs-walkthrough-php-apache.yaml");
        let mut request = request("compare", fixture);
        request["with"] = json!("1.36");
        let answer = ask(&request);
        assert!(answer["body"].as_str().expect("HTML").contains("Since 1.37: "), "{answer}");
        request["with"] = json!("1.37");
        assert_eq!(ask(&request)["same"], true);
        request["with"] = json!("1.99");
        let problem = &ask(&request)["problems"][0]["what"];
        assert_eq!(problem, "1.99 is not supported; the supported releases are 1.6 to 1.37");
    }

    #[test]
    fn manifests_become_a_scenario() {
        let hpa = include_str!("../../examples/php-apache/hpa.yaml");
        let deployment = include_str!("../../examples/php-apache/deployment.yaml");
        let manifests = format!("{hpa}---\n{deployment}");
        let answer = ask(&json!({"method": "draft", "manifests": manifests, "load": []}));
        let text = answer["text"].as_str().expect("a scenario");
        assert!(ask(&request("predict", text))["lines"].is_string(), "{text}");
        let answer = ask(&json!({"method": "draft", "manifests": "kind: Pod", "load": []}));
        assert!(answer["problems"][0]["what"].is_string(), "{answer}");
    }

    #[test]
    fn files_are_found_relative_to_the_scenario() {
        let text = include_str!("../../fixtures/recorded-metrics/the-load-is-a-csv-file.yaml");
        let load = include_str!("../../fixtures/recorded-metrics/load.csv");
        let mut request = request("csv", text);
        request["path"] = json!("fixtures/recorded-metrics/the-load-is-a-csv-file.yaml");
        assert!(ask(&request)["problems"][0]["what"].is_string());
        request["files"] = json!({"fixtures/recorded-metrics/load.csv": load});
        assert!(ask(&request)["text"].is_string(), "{}", ask(&request));
    }

    /// The request for a scenario of a VPA.
    fn vpa_releases(method: &str, text: &str) -> Value {
        let mut request = request(method, text);
        request["vpaRelease"] = json!("vpa-1.8");
        request
    }

    const OOM: &str =
        include_str!("../../fixtures/vpa/oom/an-oom-kill-before-the-end-of-the-interval.yaml");

    #[test]
    fn a_vpa_has_charts_decisions_and_loads() {
        let answer = ask(&vpa_releases("predict", OOM));
        assert_eq!(answer["kind"], "vpa", "{answer}");
        assert!(answer["body"].as_str().expect("HTML").contains("app memory"), "{answer}");
        assert_eq!(answer["decisions"][0]["tick"], 1);
        let target = answer["decisions"][0]["target"].as_str().expect("a target");
        assert!(target.starts_with("app cpu "), "{target}");
        assert!(answer["loads"][0]["points"].is_array());
        let csv = ask(&vpa_releases("csv", OOM));
        assert!(csv["text"].as_str().expect("CSV").starts_with("tick,seconds,vpa,"), "{csv}");
        let mut explain = vpa_releases("explain", OOM);
        explain["tick"] = json!(1);
        let text = ask(&explain);
        assert!(text["text"].as_str().expect("text").contains("target.cpu: "), "{text}");
        let wrong = ask(&vpa_releases("predict", &OOM.replace("targetRef", "targetref")));
        assert_eq!(wrong["problems"][0]["hint"], "did you mean `targetRef`?", "{wrong}");
        let mut unknown = vpa_releases("predict", OOM);
        unknown["vpaRelease"] = json!("vpa-0.9");
        assert!(ask(&unknown)["problems"][0]["what"].is_string());
    }

    #[test]
    fn releases_of_the_vpa_are_compared() {
        let mut request = vpa_releases("compare", OOM);
        request["with"] = json!("1.36");
        request["vpaWith"] = json!("vpa-1.7");
        let answer = ask(&request);
        let body = answer["body"].as_str().expect("HTML");
        assert!(body.contains("Since vpa-1.8: "), "{answer}");
        assert!(body.contains("Model of vpa-1.7"), "{answer}");
        request["vpaWith"] = json!("vpa-1.8");
        assert_eq!(ask(&request)["same"], true);
    }

    #[test]
    fn manifests_of_a_vpa_become_a_scenario() {
        let vpa = include_str!("../../examples/hamster/vpa.yaml");
        let deployment = include_str!("../../examples/hamster/deployment.yaml");
        let manifests = format!("{vpa}---\n{deployment}");
        let loads = ["cpu=500m", "memory=20Mi"];
        let answer = ask(&json!({"method": "draft", "manifests": manifests, "load": loads}));
        let text = answer["text"].as_str().expect("a scenario");
        let prediction = ask(&vpa_releases("predict", text));
        assert_eq!(prediction["seconds"], 8.0 * 86_400.0, "{prediction}");
        // Only the summary: the ticks are too many for the page.
        assert_eq!(prediction["lines"].as_str().map(|lines| lines.lines().count()), Some(1));
    }

    #[test]
    fn a_malformed_request_is_a_problem() {
        assert!(ask(&json!({"method": "no"}))["problems"][0]["what"].is_string());
    }
}
