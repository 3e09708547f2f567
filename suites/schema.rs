//! The JSON Schema of scenarios: the file in the repository is generated from the types, every
//! fixture names it in its first line, and it accepts and rejects the same files as the parser.
//!
//! `UPDATE_SCHEMA=1 cargo test --test schema` writes the schema, and `UPDATE_DOCS=1` the page of all
//! fields, `docs/scenario-fields.md`.

#[path = "schema/fields.rs"]
mod fields;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Invalid fixtures whose mistake a schema cannot detect: only the parser rejects them.
const BEYOND_THE_SCHEMA: &[&str] = &[
    "a-gate-with-dependent-gates",
    "action-after-the-end",
    "action-on-an-unknown-metric",
    "age-of-a-later-pod",
    "bound-on-hpas-with-different-targets",
    "cache-lag-of-zero",
    "cache-lag-with-an-action-during-a-reconcile",
    "cache-lag-with-several-hpas",
    "cache-lag-with-slow-metrics",
    "container-resource-of-an-unknown-container",
    "container-with-a-request-above-its-limit",
    "deletion-of-an-unknown-hpa",
    "deletion-without-the-name-of-the-hpa",
    "duplicate-external-metric",
    "during-a-creation",
    "during-a-restart-of-the-controller",
    "during-with-several-hpas",
    "during-with-slow-metrics",
    "edit-of-a-deleted-hpa",
    "edit-of-a-deleted-hpa-among-several",
    "edit-of-immutable-metadata",
    "expectation-after-the-end",
    "expectation-of-an-unknown-hpa",
    "expected-metric-of-a-container",
    "expected-metric-that-the-hpa-lacks",
    "expected-metric-with-a-value-of-another-type",
    "expected-metric-with-reversed-bounds",
    "expected-sequence-with-a-repetition",
    "expected-series-after-the-end",
    "expected-series-that-begins-after-the-end",
    "expected-series-with-a-value-beside-it",
    "external-metric-misspelt",
    "external-metric-with-a-selector-without-an-entry",
    "external-metric-without-an-entry",
    "hpa-and-vpa-in-different-namespaces",
    "hpa-and-vpa-with-a-flag-that-the-vpa-release-lacks",
    "hpa-and-vpa-with-different-targets",
    "hpa-and-vpa-with-slow-metrics",
    "hpa-on-an-action-without-an-hpa",
    "hpa-with-an-unknown-target",
    "hpas-in-two-namespaces",
    "hpas-with-the-same-name",
    "init-container-with-the-name-of-a-container",
    "load-in-percent",
    "locked-feature-gate",
    "manifest-with-the-minimum-above-the-maximum",
    "metadata-rejected-by-the-api-server",
    "metric-error-of-cpu",
    "metric-without-its-source",
    "missing-manifest-file",
    "new-pods-of-a-deletion",
    "new-pods-of-a-scaling",
    "new-pods-with-stale-metrics",
    "noise-above-the-value",
    "noise-on-noise",
    "noise-with-an-interval-of-zero",
    "object-metric-of-another-group",
    "object-with-a-malformed-api-version",
    "object-with-the-group-in-its-kind",
    "open-metrics-without-timestamps",
    "other-target-of-an-unknown-kind",
    "other-target-with-the-name-of-the-workload",
    "percentage-without-a-request",
    "plural-of-a-deployment",
    "pod-set-backwards",
    "pods-metric-with-a-total",
    "pods-metric-without-an-entry",
    "pods-missing-in-an-external-metric",
    "pods-that-can-never-be-created",
    "pods-that-do-not-exist-at-the-start",
    "ready-before-running",
    "ready-for-longer-than-the-termination",
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
    "recording-of-several-series",
    "recording-that-does-not-exist",
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
    "restarts-too-close-together",
    "rolling-update-of-a-replica-set",
    "rolling-update-of-a-stateful-set-with-a-surge",
    "rolling-update-that-replaces-no-pod",
    "rolling-update-to-other-containers",
    "scaling-of-an-unknown-target",
    "scaling-to-zero-on-cpu-alone",
    "selector-that-matches-no-pod",
    "series-with-the-same-labels",
    "startup-of-pods-that-are-ready-before-running",
    "steps-of-negative-usage",
    "steps-out-of-order",
    "sync-period-of-zero",
    "tick-after-the-end",
    "tick-since-the-first-reconcile",
    "tolerance-ticks-of-an-interval",
    "too-many-reconciles",
    "usage-below-zero",
    "usage-of-an-init-container",
    "usage-of-an-unknown-container",
    "version-1-with-a-behavior-without-policies",
    "version-1-with-an-unknown-metric-type",
    "version-2-beta-2-with-a-tolerance",
    "vpa-checkpoint-with-a-bucket-beyond-the-last",
    "vpa-checkpoint-without-a-container",
    "vpa-edit-after-the-deletion",
    "vpa-edit-with-an-unknown-mode",
    "vpa-event-with-two-actions",
    "vpa-event-without-an-action",
    "vpa-expectation-with-impossible-bounds",
    "vpa-expectation-without-a-container",
    "vpa-expectation-without-a-value",
    "vpa-manifest-that-does-not-exist",
    "vpa-that-ends-before-the-first-run",
    "vpa-with-a-fraction-of-a-millicore",
    "vpa-with-a-gated-field",
    "vpa-with-a-history-that-is-not-read",
    "vpa-with-a-malformed-flag",
    "vpa-with-a-malformed-start",
    "vpa-with-an-unknown-container",
    "vpa-with-the-maximum-below-the-minimum",
    "vpa-with-too-many-runs",
    "vpa-with-usage-of-all-containers",
    "yes-is-not-a-boolean",
];

fn schema_path() -> PathBuf {
    support::repository().join("schema/scenario.schema.json")
}

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
    jsonschema::draft202012::new(&kube_lockstep::scenario::schema()).expect("it is a schema")
}

#[test]
fn the_schema_in_the_repository_is_up_to_date() {
    let text = format!("{:#}\n", kube_lockstep::scenario::schema());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(schema_path(), &text).expect("the schema can be written");
    }
    let stored = read(&schema_path());
    assert!(stored == text, "schema/ is stale: UPDATE_SCHEMA=1 cargo test --test schema");
}

#[test]
fn the_reference_of_fields_is_up_to_date() {
    let page = fields::page(&kube_lockstep::scenario::schema());
    let path = support::repository().join("docs/scenario-fields.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("the page can be written");
    }
    let is_current = fs::read_to_string(&path).is_ok_and(|stored| stored == page);
    assert!(is_current, "{} is stale: UPDATE_DOCS=1 cargo test --test schema", path.display());
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
            schema_path().canonicalize().expect("the schema exists"),
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
    let everything = support::repository().join("src/scenario/testdata/everything.yaml");
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
