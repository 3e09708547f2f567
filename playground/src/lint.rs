//! The findings of the rules of `kube-lockstep lint`.

use kube_autoscaler_models::rules::Release;
use kube_lockstep_lint::{Finding, Level, Options, RULES, check};
use kube_lockstep_manifests::Manifests;
use kube_lockstep_predict::Scenario;
use serde::Serialize;
use serde_json::{Value, json};

use crate::files::{MANIFESTS, file, loads};
use crate::{ProblemOf, Refused};

/// A finding at its place.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    problem: ProblemOf,
    level: Level,
    /// `missing-request, derived`.
    rule: String,
    reason: &'static str,
    link: &'static str,
}

/// The findings in manifests.
pub(crate) fn of_manifests(
    manifests: &str,
    load: &[String],
    release: Release,
) -> Result<Value, Refused> {
    let manifests = Manifests::read(&[file(manifests)], &loads(load)?)?;
    let findings = check(&manifests, &Options::of(release), RULES);
    Ok(json!({ "findings": found(findings, MANIFESTS) }))
}

/// The findings in a scenario with this text, on its feature gates. Rules that depend on loads do
/// not know those of the scenario.
pub(crate) fn of_scenario(
    scenario: &Scenario,
    text: &str,
    release: Release,
) -> Result<Vec<Found>, Refused> {
    let manifests = Manifests::of_scenario(scenario, text)?;
    let mut options = Options::of(release);
    options.gates = scenario.gates_by(&kube_autoscaler_models::rules::Rules::of(release)).into();
    Ok(found(check(&manifests, &options, RULES), &scenario.path))
}

/// The findings; a place in the file `own` has no file.
fn found(findings: Vec<Finding>, own: &str) -> Vec<Found> {
    let found = |Finding { rule, evidence, diagnostic, .. }: Finding| {
        let mut problem = ProblemOf::from(diagnostic);
        problem.file = problem.file.filter(|file| file != own);
        let (reason, link) = (rule.reason, rule.link);
        Found { problem, level: rule.level, rule: format!("{}, {evidence}", rule.id), reason, link }
    };
    findings.into_iter().map(found).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn ask(request: &Value) -> Value {
        serde_json::from_str(&crate::answer(&request.to_string(), &|_| {})).expect("JSON")
    }

    /// The rules and lines of the findings in a scenario.
    fn found(text: &str, release: &str) -> Vec<(String, usize)> {
        let request = json!({
            "method": "predict", "path": "scenario.yaml", "text": text, "release": release,
        });
        let answer = ask(&request);
        let findings = answer["findings"].as_array().expect("findings").iter();
        let rule = |it: &Value| it["rule"].as_str().expect("a rule").to_owned();
        let line = |it: &Value| it["line"].as_u64().expect("a line") as usize;
        findings.map(|it| (rule(it), line(it))).collect()
    }

    fn line_of(text: &str, words: &str) -> usize {
        text.lines().position(|line| line.contains(words)).expect("the words") + 1
    }

    #[test]
    fn findings_in_a_scenario_are_at_their_lines() {
        let containers = include_str!("../../fixtures/lint/missing-request.yaml");
        let line = line_of(containers, "name: logs");
        assert_eq!(found(containers, "1.37"), [("missing-request, derived".to_owned(), line)]);
        let policies = include_str!("../../fixtures/lint/policy-never-binds.yaml");
        let line = line_of(policies, "value: 1, periodSeconds: 60");
        assert_eq!(found(policies, "1.37"), [("policy-never-binds, derived".to_owned(), line)]);
        let vpa = include_str!("../../fixtures/lint/vpa-on-hpa-metric.yaml");
        let line = line_of(vpa, "type: Resource");
        assert_eq!(found(vpa, "1.37"), [("vpa-on-hpa-metric, derived".to_owned(), line)]);
        // The replicas of a scenario are only those at the start.
        let replicas = include_str!("../../fixtures/lint/replicas-beside-hpa.yaml");
        assert_eq!(found(replicas, "1.37"), []);
    }

    #[test]
    fn findings_in_a_scenario_depend_on_its_release_and_gates() {
        let zero = include_str!("../../fixtures/search/rollouts-ratchet-upwards.yaml")
            .replace("minReplicas: 2", "minReplicas: 0");
        let rule = "min-zero-without-gate, derived".to_owned();
        assert_eq!(found(&zero, "1.35"), [(rule, line_of(&zero, "minReplicas"))]);
        let gate = "controller: {featureGates: {HPAScaleToZero: true}}\nhpa:\n";
        assert_eq!(found(&zero.replace("hpa:\n", gate), "1.35"), []);
    }

    #[test]
    fn manifests_also_have_findings_on_replicas_and_loads() {
        let manifests = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
";
        let load = ["cpu=total:sine(mean=4,amplitude=2,period=2m)"];
        let request = json!({
            "method": "lint", "manifests": manifests, "load": load, "release": "1.37",
        });
        let answer = ask(&request);
        let findings = answer["findings"].as_array().expect("findings").iter();
        let rules: Vec<(&Value, &Value)> = findings.map(|it| (&it["rule"], &it["line"])).collect();
        let expected =
            [("replicas-beside-hpa, observed", 5), ("window-longer-than-period, derived", 14)];
        let expected = expected.map(|(rule, line)| (json!(rule), json!(line)));
        assert_eq!(rules, expected.each_ref().map(|(rule, line)| (rule, line)));
        let invalid =
            json!({ "method": "lint", "manifests": "a: 1", "load": [], "release": "1.37" });
        assert!(ask(&invalid)["problems"].is_array());
    }
}
