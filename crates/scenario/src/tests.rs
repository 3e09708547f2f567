//! Tests of parsing and writing whole scenarios.

use proptest::prelude::*;

use super::resolved::{
    Action, Expectation, PodSet, ScaleDownOrder, Signal, Startup, UsageSource, When,
};
use super::*;
use crate::diagnostic::Diagnostic;
use crate::testing::WEB;
use kube_autoscaler_models::time::{Span, Time};

/// A minimal scenario.
const SHORT: &str = r#"# a comment
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Nothing happens.
upstream: https://example.com
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: scaler}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 5
workload:
  replicas: 3
until: 1m
"#;

/// A scenario with all fields.
const LONG: &str = include_str!("testdata/everything.yaml");

fn no_files(path: &str) -> Result<String, Diagnostic> {
    Err(format!("no {path} here").into())
}

fn parsed(text: &str) -> Scenario {
    match parse("test.yaml", text, &no_files) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}"),
    }
}

fn parse_error(text: &str) -> String {
    parse("test.yaml", text, &no_files).expect_err("an invalid file").to_string()
}

#[test]
fn defaults_are_filled_in() {
    let scenario = parsed(SHORT);
    assert_eq!((&*scenario.namespace, &*scenario.hpas[0].name), ("default", "scaler"));
    let workload = &scenario.workload;
    assert_eq!((workload.resource.as_str(), &*workload.name), ("deployments", "web"));
    assert_eq!(&*workload.selector, "app=web");
    assert_eq!(&*workload.spec.containers[0].name, "app");
    assert_eq!(workload.age, Span::from_mins(60));
    let at_once =
        Startup { pending: Some(Span::ZERO), ready: Some(Span::ZERO), metrics: Span::ZERO };
    assert_eq!(workload.startup, at_once);
    assert_eq!(scenario.metrics.sampling.window, Span::from_secs(30));
    assert_eq!((scenario.until, scenario.line), (Time::from_secs(60), 6));
}

#[test]
fn the_upstream_link_is_optional() {
    let text = SHORT.replace("upstream: https://example.com\n", "");
    let scenario = parsed(&text);
    assert_eq!(scenario.upstream, "");
    let written = to_yaml(&scenario, None);
    assert!(!written.contains("upstream"), "{written}");
    assert_eq!(parsed(&written).hash, parsed(SHORT).hash);
}

#[test]
fn victims_is_read_as_scale_down_order_with_a_note() {
    let new = LONG;
    let old = new.replace("scaleDownOrder: newest", "victims: newest");
    assert_ne!(old, new);
    let (old, new) = (parsed(&old), parsed(new));
    assert_eq!(old.workload.scale_down_order, ScaleDownOrder::Newest);
    assert_eq!(old.hash, new.hash);
    assert_eq!(to_yaml(&old, None), to_yaml(&new, None));
    let is_note = |note: &&Diagnostic| note.what == "`victims` is deprecated; use `scaleDownOrder`";
    assert_eq!(old.notes.iter().filter(is_note).count(), 1, "{:?}", old.notes);
    assert_eq!(new.notes.iter().filter(is_note).count(), 0, "{:?}", new.notes);
}

#[test]
fn all_fields_are_parsed() {
    let scenario = parsed(LONG);
    assert_eq!(scenario.flags.sync_period, Span::from_secs(30));
    assert_eq!(scenario.flags.concurrent_syncs, 1);
    assert!(!scenario.gate_overrides["HPAScaleToZero"]);
    assert_eq!(scenario.releases.to_string(), "1.30 - 1.37");
    assert_eq!(scenario.covers, ["limits.maximum", "limits.minimum"]);
    assert_eq!(scenario.workload.scale_down_order, ScaleDownOrder::Newest);
    assert_eq!(scenario.workload.startup.ready, None);
    let [cpu, memory] = scenario.metrics.resources.as_slice() else { panic!("two resources") };
    assert!(matches!(&cpu.source, UsageSource::Load { limit: Some(_), .. }));
    assert_eq!(cpu.exceptions[0].pods, PodSet::Ordinals(vec![(0, 4), (7, 7)]));
    let UsageSource::PerContainer(containers) = &memory.source else { panic!("by container") };
    assert!(matches!(&containers.0[2].1, Signal::Points(points) if points.len() == 2));
    assert_eq!(&*containers.0[1].0, "mesh");
    let metrics = &scenario.metrics;
    assert_eq!(metrics.pods[0].labels["verb"], "GET");
    assert!(matches!(&metrics.pods[1].source, UsageSource::Load { limit: Some(_), .. }));
    let kinds: Vec<_> = metrics.objects.iter().map(|metric| metric.object.group_kind()).collect();
    assert_eq!(kinds, ["Ingress.networking.k8s.io".into(), "Service".into()]);
    let counts = metrics.externals.iter().map(|metric| metric.all_series().count());
    assert_eq!(counts.collect::<Vec<_>>(), [2, 1]);
    let spec = &scenario.workload.spec;
    let sidecars = spec.init_containers.iter().map(|init| (&*init.name, init.sidecar));
    assert_eq!(sidecars.collect::<Vec<_>>(), [("setup", false), ("mesh", true)]);
    assert_eq!(spec.requests.as_ref().map(|of| of["cpu"].to_string()).as_deref(), Some("2"));
    assert_eq!(spec.overhead["memory"].to_string(), "64Mi");
    let times: Vec<Time> = scenario.timeline.iter().map(|event| event.at).collect();
    assert!(times.is_sorted());
    let kinds = scenario.timeline.iter().map(|event| std::mem::discriminant(&event.action));
    assert_eq!(kinds.collect::<std::collections::HashSet<_>>().len(), 22);
    assert!(matches!(&scenario.timeline[0].action, Action::PodsUnready(PodSet::All)));
    assert_eq!(scenario.expect[0].when(scenario.until), When::Tick(1));
    assert_eq!(scenario.expect.len(), 9);
}

#[test]
fn written_scenarios_are_parsed_back_unchanged() {
    for text in [SHORT, LONG] {
        let scenario = parsed(text);
        let written = to_yaml(&scenario, Some("schema.json"));
        assert!(written.starts_with("# yaml-language-server: $schema=schema.json\napiVersion"));
        let again = parsed(&written);
        assert_eq!(again.hash, scenario.hash, "{written}");
        assert_eq!(to_yaml(&again, Some("schema.json")), written);
        let expected = |scenario: &Scenario| -> Vec<Expectation> {
            let expect = scenario.expect.iter().cloned();
            expect.map(|expectation| Expectation { line: 0, ..expectation }).collect()
        };
        assert_eq!(expected(&again), expected(&scenario));
    }
}

#[test]
fn the_hash_covers_everything_that_affects_a_run() {
    let hash = parsed(SHORT).hash;
    // Recorded traces contain this hash, so it must not change unintentionally.
    assert_eq!(hash, "b21c4f8bbc301538");
    for (from, to) in [
        ("# a comment", "# another"),
        ("Nothing happens.", "Something happens."),
        ("example.com", "example.org"),
        ("until: 1m", "until: 60s"),
        ("until: 1m\n", "until: 1m\nexpect: [{tick: 1, replicas: 3}]\n"),
        ("until: 1m\n", "until: 1m\nreleases: 1.37\n"),
        ("{name: scaler}", "\n    name: \"scaler\""),
        ("replicas: 3", "replicas: 3\n  age: 3600s"),
        ("replicas: 3", "replicas: 3\n  labels: {app: web}\n  selector: app=web"),
    ] {
        assert_eq!(parsed(&SHORT.replace(from, to)).hash, hash, "{to}");
    }
    for (from, to) in [
        ("until: 1m", "until: 61s"),
        ("maxReplicas: 5", "maxReplicas: 6"),
        ("replicas: 3", "replicas: 4"),
        ("until: 1m\n", "until: 1m\ncontroller: {featureGates: {HPAScaleToZero: true}}\n"),
        ("until: 1m\n", "until: 1m\ntimeline: [{at: 1s, scale: 4}]\n"),
    ] {
        assert_ne!(parsed(&SHORT.replace(from, to)).hash, hash, "{to}");
    }
}

#[test]
fn a_manifest_is_read_from_its_file() {
    let (head, rest) = SHORT.split_once("hpa:\n").expect("an hpa");
    let (manifest, tail) = rest.split_once("workload:").expect("a workload");
    let text = format!("{head}hpa: {{file: ./my.yaml}}\nworkload:{tail}");
    let indented = |text: &str| text.replace("\n  ", "\n").trim_start().to_owned();
    let file = format!("kind: Deployment\nspec: {{}}\n---\n{}", indented(manifest));
    let read = |path: &str| if path == "./my.yaml" { Ok(file.clone()) } else { Err("?".into()) };
    let scenario = parse("a/test.yaml", &text, &read).expect("a valid file");
    assert_eq!(scenario.hash, parsed(SHORT).hash);

    // The list format of `kubectl get` for several objects.
    let items = format!("- {}", indented(manifest).trim_end().replace('\n', "\n  "));
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- kind: Service\n{items}\n");
    let scenario = parse("a/test.yaml", &text, &|_| Ok(list.clone())).expect("a valid file");
    assert_eq!(scenario.hash, parsed(SHORT).hash);
    let error = parse("a/test.yaml", &text, &|_| Ok("kind: List\nitems: []\n".to_owned()));
    let error = error.expect_err("no HPA").to_string();
    assert!(
        error.contains("expected one HorizontalPodAutoscaler in ./my.yaml, found 0"),
        "{error}"
    );

    let wrong = file.replace("maxReplicas", "maxReplica");
    let error = parse("a/test.yaml", &text, &|_| Ok(wrong.clone())).expect_err("an invalid file");
    assert_eq!(
        error.to_string(),
        "a/my.yaml:9:3: the API server rejects this HPA: strict decoding error: unknown field \
         \"spec.maxReplica\"\n  hint: did you mean `maxReplicas`?"
    );
    let error = parse("a/test.yaml", &text, &no_files).expect_err("the file does not exist");
    assert_eq!(
        error.to_string(),
        "a/test.yaml:6:13: ./my.yaml can't be read: no ./my.yaml here\n  \
         hint: the path is relative to the scenario"
    );
}

#[test]
fn all_problems_are_reported_at_once_by_line() {
    let text = SHORT.replace("replicas: 3", "replicas: -3\n  age: 5").replace("1m", "1x");
    let error = parse_error(&text);
    let places: Vec<&str> = error
        .lines()
        .filter_map(|line| line.strip_prefix("test.yaml:")?.split(' ').next())
        .collect();
    assert_eq!(places, ["14:13:", "15:8:", "16:8:"], "{error}");
}

#[test]
fn numbers_without_quotes_are_quantities() {
    let text = format!("{SHORT}metrics: {{resource: [{{name: cpu, perPod: 0.50}}]}}\n");
    let quoted = text.replace("0.50", "500m");
    assert_eq!(parsed(&text).hash, parsed(&quoted).hash);
}

#[test]
fn the_example_of_the_reference_is_valid() {
    let reference = include_str!("../../../docs/scenario.md");
    let (_, rest) = reference.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    let scenario = parsed(example);
    assert_eq!((scenario.timeline.len(), scenario.expect.len()), (2, 4));
}

/// Cuts out, doubles or replaces a part of the long scenario.
fn mutated(at: usize, length: usize, with: &str) -> String {
    let boundary = |mut at: usize| {
        while !LONG.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = boundary(at % LONG.len());
    let to = boundary((from + length).min(LONG.len()));
    format!("{}{with}{}", &LONG[..from], &LONG[to.max(from)..])
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*|[-{}\\[\\]:,&*!|>'\"%@# \\na0]{0,60}") {
        let _ = parse("test.yaml", &text, &no_files);
    }

    #[test]
    fn no_mutation_makes_the_parser_panic(
        at in 0usize..100_000,
        length in 0usize..60,
        with in "|0s|-1|1e99|99999999999999999999|null|\\{\\}|~|\\[|\t|: |\n- |&a |\\*a|\\PC{0,4}",
    ) {
        let text = mutated(at, length, &with);
        match parse("test.yaml", &text, &|_| Ok(text.clone())) {
            Ok(scenario) => {
                let written = to_yaml(&scenario, None);
                prop_assert_eq!(&parsed(&written).hash, &scenario.hash, "{}", written);
            }
            Err(error) => {
                let lines = text.lines().count() + 1;
                prop_assert!(!error.problems.is_empty());
                let mut places = error.problems.iter().filter_map(Diagnostic::line);
                prop_assert!(places.all(|line| (1..=lines).contains(&line)), "{}", error);
            }
        }
    }
}

#[test]
fn durations_have_days() {
    for (text, hours) in [("2d", "48h"), ("1d12h", "36h"), ("0d30m", "30m")] {
        let until = |text: &str| {
            let text = SHORT.replace("until: 1m", &format!("until: {text}"));
            testing::scenario(&text).until
        };
        assert_eq!(until(text), until(hours), "{text}");
    }
}

#[test]
fn bounds_of_utilizations_can_have_a_percent_sign() {
    let expected = |bound: &str| {
        let expect = format!(
            "expect: [{{tick: 1, metrics: [{{name: cpu, utilization: {{atMost: {bound}}}}}]}}]"
        );
        testing::scenario(&format!("{}{expect}\n", testing::WEB)).expect.clone()
    };
    assert_eq!(expected("80%"), expected("80"));
}

#[test]
fn notes_on_recordings_have_the_line_of_the_signal() {
    let text = testing::WEB.replace(
        "resource: [{name: cpu, perPod: 500m}]",
        "resource:\n  - name: cpu\n    perPod: {csv: a.csv}",
    );
    let read = |_: &str| Ok("time,value\n0,0.5\n15,\n30,0.5\n".to_owned());
    let scenario = parse("x.yaml", &text, &read).expect("a scenario");
    let [note] = scenario.notes.as_slice() else { panic!("one note: {:?}", scenario.notes) };
    let line = text.lines().position(|line| line.contains("csv")).map(|index| index + 1);
    assert_eq!(note.line(), line, "{note:?}");
}

/// A scenario with a VPA and policies. That of the container `mesh` is on line 14.
const VPA: &str = r#"
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Nothing happens.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec:
    targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    resourcePolicy:
      containerPolicies:
        - {containerName: app, minAllowed: {cpu: 10m}}
        - {containerName: mesh, minAllowed: {cpu: 10m}}
        - {containerName: "*", mode: "Off"}
workload:
  containers: [{name: app}]
until: 5m
"#;

#[test]
fn a_deleted_target_has_a_note_unless_the_file_says_if_its_pods_stay() {
    let notes = |deletion: &str| {
        notes_of_vpa(&format!("{VPA}timeline: [{{at: 1m, for: 1m, targetDeleted: {deletion}}}]\n"))
    };
    assert!(notes("{}").contains("also deletes the pods"), "{}", notes("{}"));
    assert!(!notes("{orphan: true}").contains("also deletes"));
    assert!(!notes("{orphan: false}").contains("also deletes"));
}

/// The notes of a scenario with a VPA, with their lines.
fn notes_of_vpa(text: &str) -> String {
    let notes = match parse_any("test.yaml", text, &no_files) {
        Ok(AnyScenario::Vpa(scenario)) => scenario.notes,
        Ok(AnyScenario::Hpa(scenario)) => scenario.notes,
        Err(error) => panic!("{error}"),
    };
    let line = |note: &Diagnostic| format!("{} {}", note.line().unwrap_or(0), note.what);
    notes.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_policy_of_an_unknown_container_has_a_note() {
    let expected = "14 the policy of VPA web for container mesh has no effect: the pods have no \
                    container with this name";
    assert_eq!(notes_of_vpa(VPA), expected);
    let init = VPA.replace("workload:\n", "workload:\n  initContainers: [mesh]\n");
    assert_eq!(notes_of_vpa(&init), "");
    // The containers of a manifest without its target are not known.
    let open = VPA.replace("  containers: [{name: app}]", "  replicas: 2");
    assert_eq!(notes_of_vpa(&open), "");
}

#[test]
fn pods_that_end_have_a_note_unless_the_file_says_if_they_are_replaced() {
    let expected = "pods that `podsSucceeded` ends are replaced: to keep them, set \
                    `replacesEndedPods: false` in `workload`";
    let notes = |replaces: &str| {
        let with_field = VPA.replace("workload:\n", &format!("workload:\n{replaces}"));
        notes_of_vpa(&format!("{with_field}timeline: [{{at: 1m, podsSucceeded: 0}}]\n"))
    };
    assert!(notes("").contains(expected), "{}", notes(""));
    assert!(!notes("  replacesEndedPods: true\n").contains(expected));
    assert!(!notes("  replacesEndedPods: false\n").contains(expected));
}

#[test]
fn a_problem_with_metrics_that_leaves_out_new_pods_has_a_note() {
    let expected = "`metricsMissing` does not apply to pods that are created while it lasts: add \
                    `newPods: true` to include these pods";
    let notes = |event: &str, scaled: &str| {
        let missing = format!("{{at: 1m, for: 1m, metricsMissing: all{event}}}");
        notes_of_vpa(&format!("{VPA}timeline: [{missing}, {{at: {scaled}, scale: 3}}]\n"))
    };
    assert!(notes("", "90s").contains(expected));
    assert!(!notes(", newPods: true", "90s").contains(expected));
    assert!(!notes("", "2m").contains(expected));
    let of_first_pod = "{at: 1m, for: 1m, metricsMissing: 0}, {at: 90s, scale: 3}";
    let of_first_pod = notes_of_vpa(&format!("{VPA}timeline: [{of_first_pod}]\n"));
    assert!(!of_first_pod.contains(expected), "a new pod has another ordinal");
}

#[test]
fn a_policy_with_an_hpa_has_the_same_note() {
    let (head, vpa) = VPA.split_once("vpa:\n").expect("a VPA");
    let hpa = SHORT.split_once("hpa:\n").and_then(|(_, rest)| rest.split_once("workload:"));
    let (hpa, _) = hpa.expect("an HPA");
    let both = format!("{head}vpa:\n{vpa}hpa:\n{hpa}");
    let both = both.replace("workload:\n", "workload:\n  replicas: 2\n");
    assert!(notes_of_vpa(&both).contains("14 the policy of VPA web for container mesh"), "{both}");
    let init = both.replace("{name: app}]", "{name: app}]\n  initContainers: [{name: mesh}]");
    assert!(!notes_of_vpa(&init).contains("mesh"), "{init}");
}

#[test]
fn a_vpa_whose_target_has_no_pods_has_a_note() {
    let (head, rest) = VPA.split_once("vpa:\n").expect("a VPA");
    let (_, rest) = rest.split_once("workload:").expect("a workload");
    let vpa = |name: &str, target: &str| {
        format!(
            "  - apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscaler
    metadata: {{name: {name}}}
    spec: {{targetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}}}
"
        )
    };
    let vpas = [vpa("web", "web"), vpa("more", "web"), vpa("api", "api")].concat();
    let expected = "14 the target of VPA api, Deployment api, has no pods in this scenario: only \
                    the target of the first VPA has pods";
    assert_eq!(notes_of_vpa(&format!("{head}vpas:\n{vpas}workload:{rest}")), expected);
}

#[test]
fn an_expectation_can_name_the_container_of_a_checkpoint() {
    let checkpoint = "
checkpoints:
  - apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscalerCheckpoint
    metadata: {name: web-old}
    spec: {vpaObjectName: web, containerName: old}
    status:
      version: v3
      lastUpdateTime: \"2000-01-01T00:00:00Z\"
      firstSampleStart: \"2000-01-01T00:00:00Z\"
      lastSampleStart: \"2000-01-01T00:00:00Z\"
      totalSamplesCount: 1
      cpuHistogram: {referenceTimestamp: \"2000-01-01T00:00:00Z\", totalWeight: 1}
      memoryHistogram: {referenceTimestamp: \"2000-01-01T00:00:00Z\", totalWeight: 1}
expect:
  - {tick: 1, container: NAME, target: {cpu: {atLeast: 1m}}}
";
    for (name, is_known) in [("old", true), ("mesh", true), ("app", true), ("older", false)] {
        let text = format!("{VPA}{}", checkpoint.replace("NAME", name));
        let result = parse_any("test.yaml", &text, &no_files);
        assert_eq!(result.is_ok(), is_known, "{name}: {:?}", result.err());
    }
}

/// A recording is read up to the time that a shift or a repetition shows.
#[test]
fn recordings_can_be_shifted_and_repeated() {
    let csv: String =
        (0..=60).map(|minute| format!("{},{}\n", minute * 60, minute + 3 * (minute % 2))).collect();
    let csv = format!("time,value\n{csv}");
    let samples = |load: &str| {
        let text = WEB.replace("perPod: 500m", &format!("load: {load}"));
        let read = |_: &str| Ok(csv.clone());
        let scenario = parse("x.yaml", &text.replace("until: 2m", "until: 20m"), &read);
        let scenario = scenario.unwrap_or_else(|error| panic!("{load}: {error}"));
        let notes: Vec<String> = scenario.notes.iter().map(|it| it.what.clone()).collect();
        let recorded = scenario.metrics.recorded().next().expect("a recording");
        let at = |minute: i64| recorded.at(Time::from_secs(60 * minute)).map(|milli| milli / 1000);
        (at(20), at(50), at(60), notes.join("; "))
    };
    let plain = samples("{csv: load.csv}");
    assert_eq!(plain, (Some(20), Some(20), Some(20), String::new()));
    let earlier = samples("{shift: -40m, of: {csv: load.csv}}");
    assert_eq!(earlier, (Some(20), Some(50), Some(60), String::new()));
    let beyond_the_end = samples("{shift: -50m, of: {csv: load.csv}}");
    let note = "load.csv: no sample from 1h1m30s to 1h10m in the times of the recording";
    assert!(beyond_the_end.3.starts_with(note), "{}", beyond_the_end.3);
    let later = samples("{shift: 5m, of: {csv: load.csv}}");
    assert_eq!(later.3, "load.csv: no sample before 5m, because of `shift`");
    let again = samples("{shift: -40m, of: {repeat: 30m, of: {csv: load.csv}}}");
    assert_eq!((again.0, again.1), (Some(20), Some(30)));
}

/// A scenario for a controller of Widgets.
const OBJECTS: &str = r#"
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The Deployment follows the Widget.
objects:
  - {file: ./widgets.yaml}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {replicas: 3, selector: {matchLabels: {of: web}}}
workload:
  target: {apiVersion: apps/v1, kind: Deployment, name: web}
timeline:
  - at: 10s
    applyObject: {apiVersion: example.com/v1, kind: Widget, metadata: {name: b}}
  - at: 20s
    editObject:
      apiVersion: example.com/v1
      kind: Widget
      name: b
      subresource: status
      patch: {status: {a: 1}}
  - {at: 30s, deleteObject: {apiVersion: example.com/v1, kind: Widget, name: b, namespace: shop}}
until: 1m
expect:
  - at: 30s
    object: {apiVersion: apps/v1, kind: Deployment, name: web}
    fields: {spec.replicas: {atLeast: 3}, "metadata.labels['a/b']": null, status: {a: [1, "1"]}}
  - {at: 40s, replicas: 3}
  - {rests: {writes: 5, for: 10s}}
  - {atMost: {writersPerField: 1}}
"#;

/// Definitions of custom resources come first.
const WIDGETS: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
";

#[test]
fn a_scenario_with_objects_requires_no_hpa() {
    let read = |path: &str| match path {
        "./widgets.yaml" => Ok(WIDGETS.to_owned()),
        path => no_files(path),
    };
    let scenario = parse("test.yaml", OBJECTS, &read).expect("a valid scenario");
    assert!(scenario.has_objects() && scenario.hpas.is_empty());
    let objects = scenario.objects.iter().flatten();
    let kinds: Vec<&str> = objects.filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "Widget", "Deployment"]);
    let workload = &scenario.workload;
    assert_eq!((workload.replicas, &*workload.selector), (3, "of=web"), "as in the manifest");
    assert_eq!((&*scenario.namespace, scenario.line), ("default", 5));
    let written = to_yaml(&scenario, None);
    let again = parsed(&written);
    assert_eq!((&again.hash, to_yaml(&again, None)), (&scenario.hash, written));
    assert_eq!(again.expect.len(), 4);
}

#[test]
fn a_scenario_with_objects_requires_no_workload() {
    let text = "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\nrequirement: It rests.\n\
                objects: []\nuntil: 1m\nexpect: [{rests: {}}]\n";
    let scenario = parsed(text);
    assert!(scenario.has_objects() && scenario.workload.is_absent());
    assert_eq!(scenario.targets().count(), 0);
    let again = parsed(&to_yaml(&scenario, None));
    assert!(again.has_objects() && again.hash == scenario.hash);
}
