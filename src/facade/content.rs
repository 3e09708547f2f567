//! Distinguishes scenarios from manifests and from files of other tools.

use serde_json::{Deserializer, Value};

/// The kind of content of a YAML or JSON file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A scenario, or a text that resembles one: a misspelled scenario gives an error instead of
    /// being ignored.
    Scenario,
    /// An object of the Kubernetes API.
    Manifest,
    /// Something else, such as a workflow or the values of a Helm chart.
    Other,
}

impl Content {
    /// The content of a text, which need not be valid YAML or JSON.
    pub fn detect(text: &str) -> Content {
        if let Some(content) = Content::of_json(text) {
            return content;
        }
        const FIELDS: [&str; 10] = [
            "requirement",
            "hpa",
            "hpas",
            "vpa",
            "vpas",
            "workload",
            "metrics",
            "timeline",
            "expect",
            "until",
        ];
        let entries = || text.lines().filter_map(|line| line.split_once(':'));
        let value = |name: &str| {
            let value =
                entries().find_map(|(key, value)| (key.trim_end() == name).then_some(value));
            value.map(|value| value.trim().trim_matches(['"', '\'']))
        };
        let (kind, version) = (value("kind"), value("apiVersion"));
        if kind == Some("Scenario") || version.is_some_and(|it| it.starts_with("kube-lockstep")) {
            return Content::Scenario;
        }
        let is_object = value("metadata").or_else(|| value("items")).is_some();
        if kind.is_some() && version.is_some() && is_object {
            return Content::Manifest;
        }
        // Text without any field is damaged.
        let is_damaged = !text.trim().is_empty() && !text.contains(':');
        let fields = entries().filter(|(key, _)| FIELDS.contains(key)).count();
        let is_misspelled = kind.is_some_and(|kind| kind.starts_with("Scenario"));
        match is_misspelled || is_damaged || fields >= 2 {
            true => Content::Scenario,
            false => Content::Other,
        }
    }

    /// The content of a text that begins like JSON. None: it is YAML.
    fn of_json(text: &str) -> Option<Content> {
        let text = text.trim_start();
        if !text.starts_with(['{', '[']) {
            return None;
        }
        let Some(Ok(value)) = Deserializer::from_str(text).into_iter::<Value>().next() else {
            return text.contains("\"kube-lockstep.dev/").then_some(Content::Scenario);
        };
        let (kind, version) = (value["kind"].as_str(), value["apiVersion"].as_str());
        let is_own = version.is_some_and(|version| version.starts_with("kube-lockstep"));
        if kind == Some("Scenario") || is_own {
            return Some(Content::Scenario);
        }
        let is_object = !value["metadata"].is_null() || !value["items"].is_null();
        let is_manifest = kind.is_some() && version.is_some() && is_object;
        Some(if is_manifest { Content::Manifest } else { Content::Other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_the_api_and_files_of_other_tools_are_not_scenarios() {
        let scenario = "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n";
        assert_eq!(Content::detect(scenario), Content::Scenario);
        let manifest = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n";
        let manifests = [
            &format!("{manifest}  kind: Scenario\n"),
            "---\nkind: List\napiVersion: v1\nitems: []\n",
        ];
        for text in manifests {
            assert_eq!(Content::detect(text), Content::Manifest, "{text}");
        }
        for text in ["on: push\njobs: {}\n", "replicas: 3\nmetrics: {enabled: true}\n", ""] {
            assert_eq!(Content::detect(text), Content::Other, "{text}");
        }
    }

    #[test]
    fn json_can_be_a_scenario_a_manifest_or_something_else() {
        let content = |text: &str| (Content::detect(text), text.to_owned());
        for (text, expected) in [
            (r#"{"apiVersion": "kube-lockstep.dev/v1alpha1"}"#, Content::Scenario),
            (r#"  {"kind":"Scenario","hpa":{}}"#, Content::Scenario),
            (r#"{"apiVersion": "kube-lockstep.dev/v1alpha1","#, Content::Scenario),
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, Content::Manifest),
            (r#"{"status":"success","data":{"kind":"Scenario"}}"#, Content::Other),
            ("{\"path\": \"a\"}\n{\"kind\": \"Scenario\"}\n", Content::Other),
            ("[]", Content::Other),
        ] {
            assert_eq!(content(text), (expected, text.to_owned()));
        }
    }

    #[test]
    fn misspelled_scenarios_are_not_ignored() {
        for text in [
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenaro\nmetadata: {name: web}\n",
            "apiVersion: kube-locksteps.dev/v1\nkind: Scenaro\nrequirement: it scales\n",
            "kind: Scenario\nmetadata: {}\n",
            "kind: 'Scenario'\n",
            "kind : Scenario\n",
            "kind: Scenarios\n",
            "requirement: it scales\nuntil: 5m\n",
            "a text without fields",
        ] {
            assert_eq!(Content::detect(text), Content::Scenario, "{text}");
        }
    }
}
