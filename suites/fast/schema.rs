//! The JSON Schemas of scenarios and of the engine protocol: the files in the repository are
//! generated from the types, every fixture names the schema of scenarios in its first line, and it
//! accepts and rejects the same files as the parser. The schema of the protocol accepts the examples
//! in its documentation.
//!
//! `cargo xtask docs` writes the schemas, and the pages of all fields, `docs/scenario-fields.md` and
//! `docs/protocol-fields.md`.

mod fields;

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kube_lockstep_engines::upstream::wire as protocol;
use serde_json::Value;

/// Invalid fixtures whose mistake a schema cannot detect: only the parser rejects them.
const BEYOND_THE_SCHEMA: &[&str] = &[
    "a-gate-with-dependent-gates",
    "action-after-the-end",
    "action-on-an-unknown-metric",
    "age-of-a-later-pod",
    "answer-that-is-a-web-page",
    "answer-that-is-an-error",
    "answer-to-an-instant-query",
    "answer-without-series",
    "backlog-in-another-signal",
    "backlog-of-a-load-with-per-pod",
    "backlog-of-each-pod",
    "backlog-without-a-limit",
    "bound-in-a-period-of-zero",
    "bound-on-hpas-with-different-targets",
    "bound-since-the-first-reconcile",
    "cache-lag-of-zero",
    "cache-lag-with-an-action-during-a-reconcile",
    "cache-lag-with-several-hpas",
    "cache-lag-with-slow-metrics",
    "container-metrics-missing-of-an-unknown-container",
    "container-resource-of-an-unknown-container",
    "container-with-a-request-above-its-limit",
    "containers-with-the-same-name",
    "creation-of-an-hpa-that-exists",
    "csv-that-is-a-web-page",
    "deletion-of-an-unknown-hpa",
    "deletion-without-the-name-of-the-hpa",
    "duplicate-external-metric",
    "during-a-creation",
    "during-a-reconcile-of-an-unknown-hpa",
    "during-a-restart-of-the-controller",
    "during-with-several-hpas",
    "during-with-slow-metrics",
    "edit-of-a-deleted-hpa",
    "edit-of-a-deleted-hpa-among-several",
    "edit-of-immutable-metadata",
    "error-with-a-code-without-a-usual-reason",
    "expectation-after-the-end",
    "expectation-of-a-time-without-within",
    "expectation-of-an-unknown-hpa",
    "expectation-with-a-reversed-interval",
    "expected-metric-of-a-container",
    "expected-metric-that-the-hpa-lacks",
    "expected-metric-with-a-value-of-another-type",
    "expected-metric-with-reversed-bounds",
    "expected-replicas-with-reversed-bounds",
    "expected-sequence-with-a-repetition",
    "expected-series-after-the-end",
    "expected-series-every-zero-seconds",
    "expected-series-that-begins-after-the-end",
    "expected-series-with-a-value-beside-it",
    "expected-series-with-reversed-bounds",
    "expected-total-with-reversed-bounds",
    "expected-utilization-with-reversed-bounds",
    "external-metric-in-percent",
    "external-metric-misspelt",
    "external-metric-with-a-recording-of-several-series",
    "external-metric-with-a-selector-without-an-entry",
    "external-metric-without-an-entry",
    "factor-in-percent",
    "hpa-and-vpa-in-different-namespaces",
    "hpa-and-vpa-in-place-with-an-older-release",
    "hpa-and-vpa-in-place-without-the-feature-gate",
    "hpa-and-vpa-with-a-flag-that-the-vpa-release-lacks",
    "hpa-and-vpa-with-a-recording-of-several-series",
    "hpa-and-vpa-with-an-action-of-pods-for-a-vpa",
    "hpa-and-vpa-with-an-edited-target",
    "hpa-and-vpa-with-an-expectation-of-an-unknown-container",
    "hpa-and-vpa-with-different-targets",
    "hpa-and-vpa-with-too-many-runs-of-the-updater",
    "hpa-on-an-action-without-an-hpa",
    "hpa-with-an-unknown-target",
    "hpas-in-two-namespaces",
    "hpas-with-the-same-name",
    "init-container-with-the-name-of-a-container",
    "limit-without-a-load",
    "load-in-percent",
    "load-with-points-in-percent",
    "locked-feature-gate",
    "manifest-with-the-minimum-above-the-maximum",
    "maximum-beyond-64-bits",
    "metadata-rejected-by-the-api-server",
    "metric-error-of-cpu",
    "metric-missing-of-a-resource-in-capitals",
    "metric-missing-of-an-unknown-metric",
    "metric-missing-of-cpu",
    "metric-that-is-empty-and-unknown",
    "metric-without-its-source",
    "minimum-beyond-32-bits",
    "missing-manifest-file",
    "negative-request",
    "negative-unit",
    "new-pods-of-a-deletion",
    "new-pods-of-a-failing-api",
    "new-pods-of-a-scaling",
    "new-pods-with-stale-metrics",
    "noise-above-the-value",
    "noise-of-zero",
    "noise-on-noise",
    "noise-with-an-interval-of-zero",
    "object-metric-in-percent",
    "object-metric-of-another-group",
    "object-metric-with-steps-in-percent",
    "object-of-a-scenario-without-objects",
    "object-with-a-malformed-api-version",
    "object-with-the-group-in-its-kind",
    "open-metrics-of-a-counter",
    "open-metrics-that-is-a-web-page",
    "open-metrics-that-is-an-answer",
    "open-metrics-that-start-after-their-end",
    "open-metrics-without-the-label-of-pods",
    "open-metrics-without-timestamps",
    "other-namespace-of-the-hpa",
    "other-pods-with-the-names-of-the-workload",
    "other-pods-with-usage-of-an-unknown-resource",
    "other-target-of-an-unknown-kind",
    "other-target-with-the-name-of-the-workload",
    "percentage-of-a-container-without-a-request",
    "percentage-without-a-request",
    "plural-of-a-deployment",
    "pod-set-backwards",
    "pods-metric-in-percent",
    "pods-metric-with-a-limit-without-a-load",
    "pods-metric-with-a-total",
    "pods-metric-with-an-exception-in-percent",
    "pods-metric-without-an-entry",
    "pods-missing-in-an-external-metric",
    "pods-that-can-never-be-created",
    "pods-that-do-not-exist-at-the-start",
    "queue-with-per-pod-of-zero",
    "queue-without-per-pod",
    "ready-before-running",
    "ready-for-longer-than-the-termination",
    "recorded-external-metric-by-pod",
    "recorded-external-metric-with-a-misspelt-column",
    "recorded-external-metric-with-a-percentage-as-the-unit",
    "recorded-object-metric-of-an-unknown-series",
    "recorded-object-metric-with-several-columns",
    "recording-by-pod-of-a-load",
    "recording-in-mebibytes",
    "recording-in-mebibytes-below-a-target",
    "recording-in-millicores",
    "recording-of-a-container-in-percent",
    "recording-of-a-counter",
    "recording-of-a-total-in-percent",
    "recording-of-a-total-with-a-percentage-as-the-unit",
    "recording-of-an-unknown-series",
    "recording-of-columns-without-sum-or-by",
    "recording-of-columns-without-the-label-of-pods",
    "recording-of-dates-with-slashes",
    "recording-of-formatted-durations",
    "recording-of-negative-usage",
    "recording-of-only-gaps",
    "recording-of-rows-by-a-misspelt-column",
    "recording-of-several-series",
    "recording-that-does-not-exist",
    "recording-that-holds-for-no-time",
    "recording-that-starts-later",
    "recording-with-a-malformed-start",
    "recording-with-a-misspelt-column",
    "recording-with-an-ambiguous-comma",
    "recording-with-an-unknown-column-of-times",
    "recording-with-an-unquoted-decimal-comma",
    "recording-with-percent-signs",
    "recording-with-several-columns",
    "recording-with-text-as-a-value",
    "recording-with-two-decimal-marks",
    "recording-without-a-matching-column",
    "recording-without-the-label-of-pods",
    "recordings-of-different-days",
    "releases-backwards",
    "releases-that-are-not-supported",
    "repeat-of-zero",
    "replicas-beyond-32-bits",
    "request-for-an-unknown-resource",
    "resolution-of-zero",
    "resource-missing-that-is-unknown",
    "restarts-too-close-together",
    "rolling-update-of-a-replica-set",
    "rolling-update-of-a-stateful-set-with-a-surge",
    "rolling-update-that-replaces-no-pod",
    "rolling-update-to-other-containers",
    "scaling-beyond-32-bits",
    "scaling-of-an-unknown-target",
    "scaling-to-zero-on-cpu-alone",
    "search-with-a-changing-metric",
    "search-with-an-unknown-metric",
    "seed-beyond-32-bits",
    "seed-that-is-too-large",
    "selector-that-matches-no-pod",
    "sequence-since-the-first-reconcile",
    "series-by-all-columns",
    "series-by-the-column-of-the-values",
    "series-of-a-pod-that-the-file-lacks",
    "series-with-the-same-labels",
    "startup-of-pods-that-are-ready-before-running",
    "startup-of-pods-that-exist-at-the-start",
    "steps-of-negative-usage",
    "steps-out-of-order",
    "sum-with-series-by-pod",
    "sync-period-of-zero",
    "tick-after-the-end",
    "tick-since-the-first-reconcile",
    "tolerance-ticks-of-an-interval",
    "too-many-reconciles",
    "two-points-at-the-same-time",
    "unit-of-zero",
    "unit-of-zero-percent",
    "usage-below-zero",
    "usage-of-an-init-container",
    "usage-of-an-unknown-container",
    "version-1-with-a-behavior-without-policies",
    "version-1-with-an-unknown-metric-type",
    "version-2-beta-2-with-a-tolerance",
    "vpa-checkpoint-with-a-bucket-that-is-no-number",
    "vpa-checkpoint-without-a-container",
    "vpa-checkpoint-without-a-status-is-set",
    "vpa-container-without-metrics-is-unknown",
    "vpa-created-twice",
    "vpa-edit-after-the-deletion",
    "vpa-edit-of-pods-with-an-unknown-container",
    "vpa-edit-with-an-unknown-mode",
    "vpa-event-after-the-end",
    "vpa-event-of-an-unknown-vpa",
    "vpa-eviction-of-an-unknown-container",
    "vpa-expectation-after-the-end",
    "vpa-expectation-at-a-tick-after-the-end",
    "vpa-expectation-of-a-bucket-beyond-the-last",
    "vpa-expectation-of-a-negative-amount",
    "vpa-expectation-of-an-unknown-container",
    "vpa-expectation-of-an-unknown-vpa",
    "vpa-expectation-of-negative-samples",
    "vpa-expectation-with-a-reversed-interval",
    "vpa-expectation-with-impossible-bounds",
    "vpa-expectation-within-a-time-after-the-end",
    "vpa-expectation-without-a-condition-that-is-unknown",
    "vpa-expectation-without-a-container",
    "vpa-expectation-without-a-value",
    "vpa-history-without-usage",
    "vpa-manifest-that-does-not-exist",
    "vpa-oom-kill-of-an-ambiguous-container",
    "vpa-oom-kill-of-an-unknown-container",
    "vpa-resource-without-metrics-is-unknown",
    "vpa-scaled-beyond-32-bits",
    "vpa-that-ends-after-the-clock",
    "vpa-that-ends-before-the-first-run",
    "vpa-with-a-fraction-of-a-millicore",
    "vpa-with-a-gated-field",
    "vpa-with-a-history-in-steps-of-zero",
    "vpa-with-a-history-of-an-unknown-container",
    "vpa-with-a-history-that-is-not-read",
    "vpa-with-a-malformed-flag",
    "vpa-with-a-malformed-recording-of-its-history",
    "vpa-with-a-malformed-start",
    "vpa-with-a-minimum-beyond-32-bits",
    "vpa-with-a-percentage-without-a-request",
    "vpa-with-a-recording-by-pod-of-a-load",
    "vpa-with-a-recording-of-an-unknown-container",
    "vpa-with-a-recording-of-an-unknown-series",
    "vpa-with-a-recording-of-negative-usage",
    "vpa-with-a-recording-of-several-series",
    "vpa-with-a-recording-without-the-label-of-pods",
    "vpa-with-a-start-after-the-clock",
    "vpa-with-a-start-before-the-clock",
    "vpa-with-a-startup-boost",
    "vpa-with-an-unknown-container",
    "vpa-with-flags-that-exclude-each-other",
    "vpa-with-noise-above-the-value",
    "vpa-with-the-maximum-below-the-minimum",
    "vpa-with-too-many-runs",
    "vpa-with-usage-of-all-containers",
    "vpa-workload-with-an-unknown-resource",
    "vpa-workload-with-contradicting-labels",
    "wave-with-a-period-of-zero",
    "yes-is-not-a-boolean",
];

fn invalid() -> Vec<PathBuf> {
    let files = fs::read_dir(support::repository().join("fixtures/invalid"));
    let files = files.expect("fixtures/invalid can be listed");
    let mut paths: Vec<PathBuf> =
        files.map(|file| file.expect("fixtures/invalid can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    assert!(!paths.is_empty(), "no invalid fixtures were found");
    paths
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&kube_lockstep_scenario::schema()).expect("it is a schema")
}

#[test]
fn the_schemas_in_the_repository_are_up_to_date() {
    for (name, schema) in [
        ("schema/scenario.schema.json", kube_lockstep_scenario::schema()),
        ("schema/protocol.schema.json", protocol::schema()),
    ] {
        support::assert_generated(name, &format!("{schema:#}\n"));
    }
}

#[test]
fn the_references_of_fields_are_up_to_date() {
    let pages = [
        ("docs/scenario-fields.md", fields::scenario_fields(&kube_lockstep_scenario::schema())),
        ("docs/protocol-fields.md", fields::protocol_fields(&protocol::schema())),
    ];
    for (name, page) in pages {
        support::assert_generated(name, &page);
    }
}

/// The JSON objects in the documentation of the protocol: lines of blocks, and cells of tables.
/// Parts that an example leaves out are empty.
fn examples_of_the_protocol() -> Vec<Value> {
    let text = read(&support::repository().join("docs/protocol.md"));
    let lines = text.lines().map(|line| match line.strip_prefix("| `{") {
        Some(cell) => format!("{{{}", cell.split("` |").next().unwrap_or_default()),
        None => line.to_owned(),
    });
    let objects = lines.filter(|line| line.starts_with('{')).map(|line| {
        let whole = line.replace("{…manifest…}", "{}").replace("{…}", "{}").replace("[…]", "[]");
        serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    objects.collect()
}

#[test]
fn the_schema_accepts_the_examples_of_the_protocol() {
    let schema = protocol::schema();
    let of = |name: &str| {
        let mut one = schema.clone();
        one["anyOf"] = serde_json::json!([{ "$ref": format!("#/$defs/{name}") }]);
        jsonschema::draft202012::new(&one).expect("it is a schema")
    };
    let types = ["RequestLine", "Answer", "Change", "ApiOutcome", "LogEntry", "Disturbance"];
    let validators = types.map(of);
    let examples = examples_of_the_protocol();
    assert!(examples.len() > 30, "{} examples", examples.len());
    for example in &examples {
        let accepted = validators.iter().any(|validator| validator.is_valid(example));
        assert!(accepted, "no message of the protocol: {example}");
    }
    for wrong in [
        serde_json::json!({ "open": { "scenario": "a" } }),
        serde_json::json!({ "stepped": { "now": "15s" } }),
        serde_json::json!({ "setScale": { "name": "web" } }),
        serde_json::json!({ "at": 0, "getScale": { "name": "web", "replicas": 3 } }),
    ] {
        assert!(!validators.iter().any(|it| it.is_valid(&wrong)), "accepted: {wrong}");
    }
}

#[test]
fn each_fixture_names_the_schema_in_its_first_line() {
    let all = support::fixtures().into_iter().chain(support::vpa_fixtures());
    for path in all.chain(invalid()) {
        let text = read(&path);
        if path.file_stem().is_some_and(|stem| stem == "empty") {
            continue;
        }
        let named = text.lines().next().unwrap_or_default();
        let named = named.strip_prefix("# yaml-language-server: $schema=");
        let named = named.unwrap_or_else(|| panic!("{}: no schema named", path.display()));
        let found = path.parent().expect("a folder").join(named).canonicalize();
        let found = found.unwrap_or_else(|error| panic!("{}: {named}: {error}", path.display()));
        assert_eq!(
            found,
            support::repository()
                .join("schema/scenario.schema.json")
                .canonicalize()
                .expect("the schema exists"),
            "{}",
            path.display()
        );
    }
}

/// The link is optional in the format, but each scenario of this project has one.
#[test]
fn each_fixture_links_its_upstream_source() {
    for path in support::fixtures() {
        let scenario = support::load(&path);
        let linked = scenario.upstream.starts_with("https://");
        assert!(linked, "{}: no link in `upstream`", path.display());
    }
}

/// Edits are excluded: some are invalid on purpose, and the schema rightly rejects them.
#[test]
fn each_valid_fixture_is_valid_by_the_schema() {
    let validator = validator();
    let everything = support::repository().join("crates/scenario/src/testdata/everything.yaml");
    let all = support::fixtures().into_iter().chain(support::vpa_fixtures());
    for path in all.chain([everything]) {
        let value: Value = serde_yaml::from_str(&read(&path)).expect("a fixture is YAML");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .filter(|error| !(error.starts_with("/timeline/") && error.contains("/editHpa/")))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn invalid_fixtures_are_invalid_by_the_schema_if_it_covers_them() {
    let validator = validator();
    let mut accepted = BTreeSet::new();
    for path in invalid() {
        // The schema is not used for invalid YAML, or for several documents.
        let Ok(value) = serde_yaml::from_str::<Value>(&read(&path)) else { continue };
        if validator.is_valid(&value) {
            accepted.insert(path.file_stem().expect("a name").to_string_lossy().into_owned());
        }
    }
    let expected: BTreeSet<String> =
        BEYOND_THE_SCHEMA.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(accepted, expected);
}
