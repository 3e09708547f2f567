//! Drafts of scenarios from manifests, and their errors.

use super::*;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::resolved::UsageSource;
use kube_lockstep_scenario::vpa::VpaScenario;

const HPA: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      containers:
      - name: app
        image: example.org/web
        resources: {requests: {cpu: 500m}, limits: {cpu: '1', memory: 1Gi}}
        readinessProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 20}
";

fn no_files(_: &str) -> Result<String, Diagnostic> {
    Err("there is no other file".into())
}

fn file(text: &str) -> ManifestFile {
    ManifestFile { name: "web.yaml".to_owned(), text: text.to_owned(), lenient: false }
}

fn options(loads: &[&str]) -> DraftOptions {
    let loads = loads.iter().map(|load| load.parse().expect("a load")).collect();
    DraftOptions { loads, ..DraftOptions::default() }
}

fn drafts(texts: &[&str], options: &DraftOptions) -> Drafts {
    let files: Vec<ManifestFile> = texts.iter().map(|text| file(text)).collect();
    draft(&files, options, &no_files).unwrap_or_else(|error| panic!("{error}"))
}

fn error(texts: &[&str], options: &DraftOptions) -> String {
    let files: Vec<ManifestFile> = texts.iter().map(|text| file(text)).collect();
    match draft(&files, options, &no_files) {
        Err(DraftError::Options(problem)) => {
            format!("{problem}; {}", problem.hint_text().unwrap_or_default())
        }
        Err(error) => error.to_string(),
        Ok(_) => panic!("the manifests are valid"),
    }
}

fn scenario(draft: &Draft) -> Scenario {
    let none = |_: &str| Err("there is no other file".into());
    let text = draft.to_yaml();
    scenario::parse("draft.yaml", &text, &none).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_draft_has_the_target_and_the_load() {
    let drafts = drafts(&[HPA, DEPLOYMENT], &options(&["cpu=total:steps(0s:1,5m:2)"]));
    let [draft] = drafts.list.as_slice() else { panic!("one draft") };
    assert!(draft.missing.is_empty(), "{:?}", draft.missing);
    let scenario = scenario(draft);
    let workload = &scenario.workload;
    assert_eq!((workload.replicas, &*workload.selector), (3, "app=web"));
    assert_eq!(workload.labels["tier"], "front");
    assert_eq!(workload.startup.ready, Some(Span::from_secs(20)));
    // The API server copies the limit of memory, which has no request.
    let requests = &workload.spec.containers[0].requests;
    assert_eq!(requests["cpu"].to_string(), "500m");
    assert_eq!(requests["memory"].to_string(), "1Gi");
    assert_eq!(scenario.until.since_start(), Span::from_secs(900));
    let text = draft.to_yaml();
    assert!(text.contains("limit: \"1\""), "{text}");
    let notes = &draft.manifest_notes;
    let startup = notes.iter().find(|note| note.what.contains("ready after 20s"));
    assert_eq!(
        startup.map(|note| (note.file(), note.line())),
        Some((Some("web.yaml"), Some(2))),
        "{notes:?}"
    );
}

#[test]
fn a_container_uses_at_most_its_own_limit() {
    let mesh = "      - {name: mesh, image: mesh, resources: {requests: {cpu: 100m}}}\n";
    let deployment = format!("{DEPLOYMENT}{mesh}");
    let text = |load: &str, hpa: &str| {
        let drafts = drafts(&[hpa, &deployment], &options(&[load]));
        let [draft] = drafts.list.as_slice() else { panic!("one draft") };
        assert!(draft.missing.is_empty(), "{:?}", draft.missing);
        draft.to_yaml()
    };
    let container_metric = HPA.replace("type: Resource", "type: ContainerResource");
    let container_metric = container_metric
        .replace("resource: {name: cpu,", "containerResource: {container: app, name: cpu,");
    for load in ["cpu/app=total:8", "cpu=total:8"] {
        let yaml = text(load, &container_metric);
        assert!(yaml.contains("limit: \"1\""), "{load}: {yaml}");
    }
    // The other container has no limit.
    let text = text("cpu=total:8", HPA);
    assert!(!text.contains("limit: \"1\""), "{text}");
    // A series of each pod is the usage of the container that the HPA scales on.
    let csv = |_: &str| Ok("time,web-0\n0,60\n15,60\n".to_owned());
    let files = [file(&container_metric), file(&deployment)];
    let options = options(&["cpu=csv(load.csv,value=*,by=pod,unit=1%)"]);
    let drafts = draft(&files, &options, &csv).unwrap_or_else(|error| panic!("{error}"));
    let by_pod = drafts.list[0].to_yaml();
    assert!(by_pod.contains("perPod") && by_pod.contains("unit: 5m"), "{by_pod}");
}

#[test]
fn lists_json_and_fields_of_the_server_are_accepted() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}\n- {{apiVersion: v1, kind: Service, metadata: \
         {{name: front}}}}\n",
        "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web, uid: \
         a-b, resourceVersion: '17', creationTimestamp: '2024-01-01T00:00:00Z', annotations: \
         {kubectl.kubernetes.io/last-applied-configuration: x}}, spec: {maxReplicas: 5, \
         scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, status: \
         {currentReplicas: 1, desiredReplicas: 1}}"
    );
    let drafts = drafts(&[&list, DEPLOYMENT], &options(&["cpu=60%"]));
    assert_eq!(drafts.ignored, ["Service front"]);
    let text = drafts.list[0].to_yaml();
    assert!(text.contains("perPod: 300m") && !text.contains("resourceVersion"), "{text}");
    scenario(&drafts.list[0]);
}

#[test]
fn missing_values_are_named_with_their_flags() {
    let flags = |texts: &[&str], options: &DraftOptions| -> Vec<String> {
        let drafts = drafts(texts, options);
        drafts.list[0].missing.iter().map(|it| format!("{}: {}", it.what, it.flag)).collect()
    };
    assert_eq!(
        flags(&[HPA], &options(&[])),
        [
            "Deployment web, which the HPA scales, is not in the manifests: --filename with its \
             manifest, or --replicas 3 (at the start) --request cpu=500m",
            "there is no load of cpu: --load cpu=300m (per pod) or --load cpu=total:8 (shared)",
        ]
    );
    let request = vec!["cpu=1".parse().expect("a request")];
    let given = DraftOptions { replicas: Some(2), requests: request, ..options(&["cpu=1"]) };
    assert_eq!(flags(&[HPA], &given), [""; 0]);
    let external = HPA.replace("resource: {name: cpu,", "external: {metric: {name: queue},");
    let external = external.replace("Utilization, averageUtilization: 50", "Value, value: 30");
    let external = external.replace("type: Resource", "type: External");
    assert_eq!(
        flags(&[&external, DEPLOYMENT], &options(&[])),
        ["there is no load of queue: --load queue=30"]
    );
}

#[test]
fn examples_take_the_place_of_missing_values() {
    let options = DraftOptions { examples: true, ..DraftOptions::default() };
    let drafts = drafts(&[HPA], &options);
    assert_eq!(drafts.list[0].missing.len(), 2);
    let scenario = scenario(&drafts.list[0]);
    assert_eq!(scenario.workload.spec.containers[0].requests["cpu"].to_string(), "1");
    assert!(drafts.list[0].to_yaml().contains("perPod: 500m"), "{}", drafts.list[0].to_yaml());
}

#[test]
fn several_hpas_are_drafted_one_by_one_and_those_of_one_target_together() {
    let other = HPA.replace("name: web", "name: api");
    let second = HPA.replace("metadata: {name: web}", "metadata: {name: second}");
    let all = [HPA, &*other, &*second, DEPLOYMENT, &DEPLOYMENT.replace("name: web", "name: api")];
    let drafts = drafts(&all, &options(&["cpu=300m"]));
    let names: Vec<&str> = drafts.list.iter().map(|draft| &*draft.name).collect();
    assert_eq!(names, ["web", "api"]);
    assert_eq!(scenario(&drafts.list[0]).hpas.len(), 2);
    let only =
        DraftOptions { hpas: Selected::Named(vec!["api".to_owned()]), ..options(&["cpu=300m"]) };
    let files: Vec<ManifestFile> = all.iter().map(|text| file(text)).collect();
    assert_eq!(draft(&files, &only, &no_files).expect("valid manifests").list.len(), 1);
    let unknown = DraftOptions { hpas: Selected::Named(vec!["wbe".to_owned()]), ..options(&[]) };
    assert_eq!(error(&all, &unknown), "there is no HPA wbe; did you mean `web`?");
}

#[test]
fn usage_is_in_the_container_that_the_hpa_scales_on() {
    let hpa = HPA
        .replace("type: Resource", "type: ContainerResource")
        .replace("resource: {name: cpu,", "containerResource: {name: cpu, container: mesh,");
    let deployment =
        DEPLOYMENT.to_owned() + "      - {name: mesh, image: m, resources: {requests: {cpu: 1}}}\n";
    let text = |load: &str| {
        let drafts = drafts(&[&hpa, &deployment], &options(&[load]));
        scenario(&drafts.list[0]);
        drafts.list[0].to_yaml()
    };
    assert!(text("cpu=60%").contains("containers: {mesh: 600m}"), "{}", text("cpu=60%"));
    let shared = text("cpu=total:3");
    let (mesh, app) = (shared.find("name: mesh"), shared.find("name: app"));
    assert!(mesh < app, "the container with the usage is first: {shared}");
}

#[test]
fn series_have_labels_that_the_selector_of_the_hpa_matches() {
    let hpa = HPA
        .replace("type: Resource", "type: External")
        .replace(
            "resource: {name: cpu,",
            "external: {metric: {name: queue, selector: {matchLabels: {queue: orders}}},",
        )
        .replace("Utilization, averageUtilization: 50", "AverageValue, averageValue: 30");
    let drafts = drafts(&[&hpa, DEPLOYMENT], &options(&["queue{queue=orders}=300"]));
    let text = drafts.list[0].to_yaml();
    assert!(text.contains("series: [{labels: {queue: orders}, value: \"300\"}]"), "{text}");
    scenario(&drafts.list[0]);
    let wrong = error(&[&hpa, DEPLOYMENT], &options(&["queue{queue=mail}=300"]));
    let expected = "no HPA scales on queue with the labels {queue=mail}; the HPA has the metric \
                    queue{queue=orders}";
    assert_eq!(wrong, expected);
}

/// Asserts the error of manifests: each row has the HPA, the Deployment and a part of the error.
fn assert_errors(rows: &[[&str; 3]]) {
    for [hpa, deployment, expected] in rows {
        let shown = error(&[hpa, deployment], &options(&["cpu=1"]));
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn errors_have_positions_in_the_manifests() {
    let deployment = |from: &str, to: &str| DEPLOYMENT.replace(from, to);
    let (requests, labels) = ("requests: {cpu: 500m}", "matchLabels: {app: web}");
    assert_errors(&[
        [
            &HPA.replace("maxReplicas", "maxReplica"),
            DEPLOYMENT,
            "web.yaml:8:3: the API server rejects this HPA: strict decoding error: unknown field \
             \"spec.maxReplica\"\n  hint: did you mean `maxReplicas`?",
        ],
        [&HPA.replace("minReplicas: 2", "minReplicas: 20"), "", "web.yaml:8:"],
        [
            HPA,
            &deployment("500m", "5 GB"),
            "web.yaml:14:37: the API server rejects this Deployment: quantities must match",
        ],
        [HPA, &deployment("replicas: 3", "replicas: x"), "web.yaml:6:13: "],
        [
            HPA,
            &deployment(requests, "requests: {cpu: '2'}"),
            "web.yaml:14:37: the API server rejects this Deployment: \
             spec.template.spec.containers[0].resources.requests: Invalid value: \"2\": must be \
             less than or equal to cpu limit of 1",
        ],
        [
            HPA,
            &deployment(labels, "matchLabels: {app: api}"),
            "web.yaml:9:24: the API server rejects this Deployment: spec.template.metadata.labels: \
             Invalid value: {\"app\":\"web\",\"tier\":\"front\"}: `selector` does not match",
        ],
        [
            HPA,
            &deployment("  selector: {matchLabels: {app: web}}\n", ""),
            "web.yaml:6:3: the API server rejects this Deployment: spec.selector: Required value",
        ],
        [
            HPA,
            &deployment("replicas: 3", "replicas: -3"),
            "web.yaml:6:13: the API server rejects this Deployment: spec.replicas: Invalid value",
        ],
        [
            HPA,
            &deployment("image: example.org/web", "imag: example.org/web"),
            "containers[0].imag\"\n  hint: did you mean `image`?",
        ],
        [
            HPA,
            &deployment("        image: example.org/web\n", ""),
            "containers[0].image: Required value",
        ],
    ]);
}

#[test]
fn files_without_an_hpa_are_errors() {
    assert_errors(&[
        [
            &HPA.replace("HorizontalPodAutoscaler", "HorizontalPodAutoScaler"),
            DEPLOYMENT,
            "the kind HorizontalPodAutoScaler is unknown: did you mean `HorizontalPodAutoscaler`?",
        ],
        ["a: {{ .Values.a }}\n", "", "helm template"],
        ["name: web\n", "", "expected an object of the Kubernetes API"],
        [
            "",
            DEPLOYMENT,
            "there is no HorizontalPodAutoscaler and no VerticalPodAutoscaler in web.yaml, \
             web.yaml; only these kinds were found: Deployment",
        ],
        [
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n",
            "",
            "a scenario is not a manifest",
        ],
        ["apiVersion: kube-lockstep/v1\nkind: Scenario\n", "", "a scenario is not a manifest"],
    ]);
}

#[test]
fn a_load_without_a_metric_or_a_container_is_an_error() {
    let unknown = error(&[HPA, DEPLOYMENT], &options(&["cpu/ap=1"]));
    assert_eq!(unknown, "Deployment web has no container ap; did you mean `app`?");
    let unused = error(&[HPA, DEPLOYMENT], &options(&["cpus=1"]));
    assert_eq!(unused, "HPA web does not scale on cpus, which has a load; did you mean `cpu`?");
}

#[test]
fn manifests_may_have_anchors_merge_keys_tags_and_words_of_yaml_1_1() {
    let deployment = DEPLOYMENT
        .replace("{matchLabels: {app: web}}", "{matchLabels: &labels {app: !!str web}}")
        .replace("{app: web, tier: front}", "{<<: *labels, tier: front}")
        .replace("      containers:", "      automountServiceAccountToken: no\n      containers:");
    let drafts = drafts(&[HPA, &deployment], &options(&["cpu=300m"]));
    let text = drafts.list[0].to_yaml();
    assert!(text.contains("app: web") && text.contains("tier: front"), "{text}");
}

#[test]
fn a_boolean_of_yaml_1_1_is_no_text() {
    let deployment = DEPLOYMENT.replace("tier: front", "tier: on");
    let shown = error(&[HPA, &deployment], &options(&["cpu=300m"]));
    let expected = "web.yaml:9:41: the API server rejects this Deployment: json: cannot unmarshal \
                    bool into Go struct field ObjectMeta.spec.template.metadata.labels of type \
                    string\n  hint: put the value in quotes";
    assert_eq!(shown, expected);
}

/// A second HPA and its Deployment.
fn api() -> (String, String) {
    let rename =
        |text: &str| text.replace("name: web", "name: api").replace("app: web", "app: api");
    (rename(HPA), rename(DEPLOYMENT))
}

/// The usage of cpu in the scenario of each draft.
fn usage(drafts: &Drafts) -> Vec<String> {
    drafts.list.iter().map(|draft| draft.fields["metrics"]["resource"][0].to_string()).collect()
}

fn note_texts(notes: &[Diagnostic]) -> Vec<String> {
    notes.iter().map(|note| note.what.clone()).collect()
}

/// The notes on the manifest of the first target.
fn notes_of(drafts: &Drafts) -> String {
    drafts.list[0].manifest_notes.iter().map(|note| format!("{}\n", note.what)).collect()
}

#[test]
fn a_load_can_be_of_one_hpa() {
    let (api_hpa, api) = api();
    let manifests = [HPA, DEPLOYMENT, &api_hpa, &api];
    let found = drafts(&manifests, &options(&["cpu=60%", "api:cpu=total:4", "web:cpu=200m"]));
    assert_eq!(
        usage(&found),
        [r#"{"name":"cpu","perPod":"200m"}"#, r#"{"name":"cpu","load":"4","limit":"1"}"#,]
    );
    let found = drafts(&manifests, &options(&["cpu=60%", "api:cpu=total:4"]));
    assert_eq!(usage(&found)[0], r#"{"name":"cpu","perPod":"300m"}"#);
    let request = "api:cpu=2".parse().expect("a request");
    let requested = DraftOptions { requests: vec![request], ..options(&["cpu=50%"]) };
    let expected = [r#"{"name":"cpu","perPod":"250m"}"#, r#"{"name":"cpu","perPod":"1000m"}"#];
    assert_eq!(usage(&drafts(&manifests, &requested)), expected);
    let unknown = error(&manifests, &options(&["wep:cpu=4"]));
    assert_eq!(unknown, "--load wep:cpu: there is no HPA wep; did you mean `web`?");
}

/// A load of one HPA replaces one of all HPAs, unless they are of different containers.
#[test]
fn loads_of_other_containers_are_kept() {
    let two = DEPLOYMENT.replace(
        "      - name: app\n",
        "      - {name: log, image: log, resources: {requests: {cpu: 500m}}}\n      - name: app\n",
    );
    let loads = ["web:cpu/app=200m", "cpu/log=100m"];
    let found = drafts(&[HPA, &two], &options(&loads));
    let both = r#"{"name":"cpu","containers":{"app":"200m","log":"100m"}}"#;
    assert_eq!(usage(&found), [both]);
    let whole = drafts(&[HPA, &two], &options(&["web:cpu=200m", "cpu/log=100m"]));
    assert_eq!(usage(&whole), [r#"{"name":"cpu","perPod":"200m"}"#]);
    let one = drafts(&[HPA, &two], &options(&["cpu/app=200m"]));
    let notes = notes_of(&one);
    let expected = "container log has no load of cpu, so its usage is 0; to set it, add --load \
                    cpu/log=300m";
    assert!(notes.contains(expected), "{notes}");
}

#[test]
fn hpas_of_one_target_share_their_usage() {
    let other = HPA.replacen("name: web", "name: other", 1);
    let found = drafts(&[HPA, &other, DEPLOYMENT], &options(&["web:cpu=1", "other:cpu=2"]));
    let missing: Vec<String> =
        found.list[0].missing.iter().map(|it| format!("{}; {}", it.what, it.flag)).collect();
    let expected = "the loads web:cpu and other:cpu can't be combined: both describe the same \
                    pods; --load cpu=… for both autoscalers";
    assert_eq!(missing, [expected]);
}

#[test]
fn resources_of_the_whole_pod_are_known() {
    let own = "resources: {requests: {cpu: 500m}, limits: {cpu: '1', memory: 1Gi}}";
    let whole = "      resources: {requests: {cpu: 300m}, limits: {cpu: '2'}}\n";
    let containers = "      containers:\n";
    let with_pod_request = DEPLOYMENT
        .replace(own, "resources: {}")
        .replace(containers, &format!("{whole}{containers}"));
    let found = drafts(&[HPA, &with_pod_request], &options(&["cpu=total:8"]));
    assert_eq!(usage(&found), [r#"{"name":"cpu","load":"8","limit":"2"}"#]);
    let example = DraftOptions { examples: true, ..options(&["cpu=total:8"]) };
    let text = drafts(&[HPA, &with_pod_request], &example).list[0].to_yaml();
    assert_eq!(text.matches("requests:").count(), 1, "{text}");
}

#[test]
fn the_start_of_pods_is_that_of_their_probes() {
    let notes = |deployment: &str| {
        let found = drafts(&[HPA, deployment], &options(&["cpu=50%"]));
        notes_of(&found)
    };
    let without = DEPLOYMENT.replace(", initialDelaySeconds: 20", "");
    let expected = "new pods are ready at once (no probe has initialDelaySeconds); see --startup";
    assert!(notes(&without).contains(expected), "{}", notes(&without));
    let init = "      initContainers:\n      - name: proxy\n        image: proxy\n        \
                restartPolicy: Always\n        \
                startupProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 25}\n";
    let containers = "      containers:\n";
    let sidecar = DEPLOYMENT.replace(containers, &format!("{init}{containers}"));
    let expected =
        "new pods are ready after 25s (startupProbe.initialDelaySeconds of container proxy)";
    assert!(notes(&sidecar).contains(expected), "{}", notes(&sidecar));
}

#[test]
fn a_target_of_another_kind_is_suggested() {
    let set = DEPLOYMENT.replace("kind: Deployment", "kind: StatefulSet");
    let found = drafts(&[HPA, &set], &options(&["cpu=50%"]));
    let what = &found.list[0].missing[0].what;
    assert!(what.contains("did you mean StatefulSet web (web.yaml:2)?"), "{what}");
}

#[test]
fn names_of_metrics_can_contain_colons() {
    let hpa = HPA.replace(
        "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}",
        "external: {metric: {name: 'web:requests:rate5m'}, target: {type: Value, value: 5}}",
    );
    let hpa = hpa.replace("type: Resource", "type: External");
    let found = drafts(&[&hpa, DEPLOYMENT], &options(&["web:requests:rate5m=9"]));
    assert!(found.list[0].missing.is_empty(), "{:?}", found.list[0].missing);
    let found = drafts(&[&hpa, DEPLOYMENT], &options(&["web:web:requests:rate5m=9"]));
    assert!(found.list[0].missing.is_empty(), "{:?}", found.list[0].missing);
}

#[test]
fn loads_that_do_not_fit_have_a_message() {
    let queue = HPA.replace(
        "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}",
        "external: {metric: {name: queue}, target: {type: Value, value: 5}}",
    );
    let queue = queue.replace("type: Resource", "type: External");
    for (hpa, loads, expected) in [
        (
            HPA,
            &["memory=1Gi", "cpu=1"][..],
            "HPA web does not scale on memory, which has a load; it scales on cpu",
        ),
        (HPA, &["cpus=1"], "HPA web does not scale on cpus, which has a load; did you mean `cpu`?"),
        (HPA, &["cpu=1", "cpu=2"], "--load cpu is given twice; each metric has one load: add the"),
        (HPA, &["cpu/sidecar=1"], "Deployment web has no container sidecar; it has app"),
        (
            &queue,
            &["queue{queue=other}=1"],
            "no HPA scales on queue with the labels {queue=other}; the HPA has the metric queue",
        ),
    ] {
        let found = error(&[hpa, DEPLOYMENT], &options(loads));
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn a_load_in_another_unit_is_an_error() {
    for (load, expected) in [
        (
            "cpu=300",
            "--load cpu: the unit seems to be wrong: the load is up to 300 cores, but a pod \
             requests 5",
        ),
        ("cpu=300Mi", "up to 314572800 cores, but a pod requests 500m"),
        ("cpu=total:800", "up to 80 cores for each of 10 pods, but a pod requests 500m"),
        ("cpu=noise(10%,steps(0s:1,1m:300))", "up to 300 cores"),
    ] {
        let error = error(&[HPA, DEPLOYMENT], &options(&[load]));
        assert!(error.contains(expected), "{load}: {error}");
    }
    for load in ["cpu=300m", "cpu=total:8", "cpu=0"] {
        assert_eq!(drafts(&[HPA, DEPLOYMENT], &options(&[load])).list.len(), 1, "{load}");
    }
}

#[test]
fn an_open_namespace_has_a_note() {
    let hpa = HPA.replace("{name: web}", "{name: web, namespace: shop}");
    let notes = &drafts(&[&hpa, DEPLOYMENT], &options(&["cpu=1"])).list[0].manifest_notes;
    let expected = "Deployment web sets no namespace, and is assumed to be in shop like HPA web";
    assert!(notes.iter().any(|note| note.what == expected), "{notes:?}");
}

const VPA: &str = "
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web-vpa}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
";

/// The scenario of the only VPA of manifests.
fn vpa_scenario(texts: &[&str], options: &DraftOptions) -> (Draft, VpaScenario) {
    let found = drafts(texts, options).list;
    let [draft] = found.as_slice() else { panic!("{} drafts", found.len()) };
    assert_eq!((draft.kind, draft.missing.as_slice()), (AutoscalerKind::Vpa, &[][..]));
    match scenario::parse_any("web.yaml", &draft.to_yaml(), &no_files) {
        Ok(scenario::AnyScenario::Vpa(scenario)) => (draft.clone(), *scenario),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_vpa_has_the_pods_of_its_target_for_eight_days() {
    let options = options(&["cpu=50%", "memory=total:3Gi"]);
    let (draft, scenario) = vpa_scenario(&[VPA, DEPLOYMENT], &options);
    assert_eq!(draft.line, 2);
    assert_eq!(scenario.until, Time::from_secs(8 * 24 * 60 * 60));
    assert_eq!(scenario.workload.replicas, 3);
    assert_eq!(scenario.workload.labels["tier"], "front");
    assert_eq!(*scenario.workload.containers[0].name, *"app");
    let text = draft.to_yaml();
    assert!(text.contains("{name: cpu, perPod: 250m}, {name: memory, load: 3Gi}"), "{text}");
}

#[test]
fn a_vpa_is_refused_with_all_errors_and_the_component_that_refuses_it() {
    let wrong = |below: &str| error(&[&(VPA.to_owned() + below)], &options(&[]));
    let text = wrong(
        "  updatePolicy: {updateMode: Off, minReplicas: 0}
  resourcePolicy:
    containerPolicies:
      - {mode: auto, minAllowed: {cpu: 0.5}, maxAllowed: {memory: 1 GB}}
",
    );
    let policy = "spec.resourcePolicy.containerPolicies[0]";
    for (start, hint) in [
        (
            "web.yaml:7:30: the API server rejects this VPA: spec.updatePolicy.updateMode: Invalid \
             value: \"boolean\": spec.updatePolicy.updateMode in body must be of type string"
                .to_owned(),
            "put the value in quotes",
        ),
        (
            "web.yaml:7:48: the VPA's admission webhook rejects this VPA: `minReplicas` must be at \
             least 1"
                .to_owned(),
            "",
        ),
        (
            format!(
                "web.yaml:10:16: the API server rejects this VPA: {policy}.mode: Unsupported \
                 value: \"auto\": supported values: \"Auto\", \"Off\""
            ),
            "did you mean `Auto`?",
        ),
        (
            format!(
                "web.yaml:10:40: the API server rejects this VPA: {policy}.minAllowed.cpu: Invalid \
                 value: \"number\": {policy}.minAllowed.cpu in body must be of type integer,string"
            ),
            "put the value in quotes",
        ),
        (
            format!(
                "web.yaml:10:67: the API server rejects this VPA: {policy}.maxAllowed.memory: \
                 Invalid value: \"1 GB\": {policy}.maxAllowed.memory in body should match "
            ),
            "",
        ),
    ] {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(&start));
        assert!(lines.next().is_some(), "{start}\n is not in\n{text}");
        if !hint.is_empty() {
            assert_eq!(lines.next(), Some(&*format!("  hint: {hint}")), "{start}");
        }
    }
    // The name of the container is missing as well; an invalid updateMode is not a missing one.
    assert!(text.contains("webhook rejects this VPA: missing field `containerName`"), "{text}");
    assert!(!text.contains("missing field `updateMode`"), "{text}");
}

#[test]
fn a_misplaced_field_of_a_vpa_has_its_place() {
    let wrong = |below: &str| error(&[&(VPA.to_owned() + below)], &options(&[]));
    assert_eq!(
        wrong("  minReplicas: 2\n"),
        "web.yaml:7:3: the API server rejects this VPA: strict decoding error: unknown field \
         \"spec.minReplicas\"\n  hint: `minReplicas` belongs in `spec.updatePolicy`"
    );
}

#[test]
fn a_load_without_a_container_is_that_of_the_only_one_without_a_load() {
    let sidecar = DEPLOYMENT.to_owned() + "      - {name: proxy, image: example.org/proxy}\n";
    let loads = ["cpu=300m", "cpu/proxy=10m", "memory/app=200Mi", "memory/proxy=20Mi"];
    let (draft, _) = vpa_scenario(&[VPA, &sidecar], &options(&loads));
    let text = draft.to_yaml();
    assert!(text.contains("{name: cpu, containers: {app: 300m, proxy: 10m}}"), "{text}");
    let missing = |loads: &[&str]| {
        let drafts = drafts(&[VPA, &sidecar], &options(loads));
        let missing = drafts.list[0].missing.iter().map(|it| format!("{} {}", it.what, it.flag));
        missing.collect::<Vec<_>>().join("; ")
    };
    let both = missing(&["cpu=300m"]);
    let expected = "the load of cpu names no container, and the pods have app, proxy \
                    --load cpu/app=300m --load cpu/proxy=300m; \
                    there is no load of memory of container app --load memory/app=200Mi";
    assert!(both.starts_with(expected), "{both}");
    let total = missing(&["cpu/app=total:4"]);
    assert!(total.contains("a total of cpu is not supported for pods with several"), "{total}");
}

/// A load that names no container is that of the first one, which may have its own load.
#[test]
fn a_load_of_a_container_replaces_that_of_the_pods() {
    let two = format!("{DEPLOYMENT}{PROXY}");
    let memory_metric = HPA.replace("name: cpu", "name: memory");
    let memory_metric =
        memory_metric.replace("{type: Utilization, averageUtilization: 50}", AVERAGE);
    let container_metric = hpa_of_container("app");
    for (texts, loads, one, own) in [
        (&[HPA, &two][..], ["cpu/app=300m", "cpu=400m"], "cpu", "cpu/app"),
        (&[HPA, &two], ["cpu=400m", "cpu/app=300m"], "cpu", "cpu/app"),
        (&[HPA, &two], ["web:cpu=400m", "web:cpu/app=1"], "web:cpu", "web:cpu/app"),
        (&[&container_metric, &two], ["cpu/app=300m", "cpu=400m"], "cpu", "cpu/app"),
        (&[HPA, DEPLOYMENT], ["cpu/app=300m", "cpu=400m"], "cpu", "cpu/app"),
        (&[VPA, DEPLOYMENT], ["cpu/app=300m", "cpu=400m"], "cpu", "cpu/app"),
        (&[&memory_metric, &two], ["memory/app=300Mi", "memory=400Mi"], "memory", "memory/app"),
    ] {
        let expected = format!(
            "--load {one} has no use: --load {own} sets the usage of that container; name another \
             container, as in --load {one}/CONTAINER=…, or leave out one of the two"
        );
        assert_eq!(error(texts, &options(&loads)), expected);
    }
    // The other target has no such container, and uses the load of the pods.
    let [hpa, deployment] = [HPA, DEPLOYMENT]
        .map(|text| text.replace("name: web", "name: api").replace("name: app", "name: api"));
    let loads = options(&["cpu=400m", "cpu/app=300m"]);
    let list = drafts(&[HPA, DEPLOYMENT, &hpa, &deployment], &loads).list;
    let usage = list.iter().map(|draft| draft.to_yaml().contains("perPod: 400m"));
    assert_eq!(usage.collect::<Vec<_>>(), [false, true]);
    let note = "container app has the load of --load cpu/app, not that of --load cpu";
    assert!(note_texts(&list[0].notes).contains(&note.to_owned()), "{:?}", list[0].notes);
}

const AVERAGE: &str = "{type: AverageValue, averageValue: 100Mi}";

/// The name of an autoscaler can have a namespace.
#[test]
fn two_loads_of_one_autoscaler_are_an_error() {
    let in_shop = HPA.replace("{name: web}\nspec", "{name: web, namespace: shop}\nspec");
    let vpa = VPA.replace("{name: web-vpa}", "{name: web-vpa, namespace: shop}");
    let two = format!("{DEPLOYMENT}{PROXY}");
    for (texts, loads) in [
        ([&*in_shop, DEPLOYMENT], ["web:cpu", "shop/web:cpu"]),
        ([&vpa, DEPLOYMENT], ["web-vpa:cpu", "shop/web-vpa:cpu"]),
        ([&vpa, &two], ["web-vpa:cpu/app", "shop/web-vpa:cpu/app"]),
    ] {
        let [one, other] = loads;
        let loads = loads.map(|load| format!("{load}=300m"));
        let missing = drafts(&texts, &options(&[&loads[0], &loads[1]])).list[0].missing.clone();
        let what =
            format!("the loads {one} and {other} can't be combined: both describe the same pods");
        let expected = Missing::load(what, "only one of the two".to_owned());
        assert!(missing.contains(&expected), "{missing:?}");
    }
}

/// Of two loads of one series, the one with the labels applies, and the other one has no use.
#[test]
fn a_load_that_another_one_replaces_is_an_error() {
    let external = HPA.replace("type: Resource", "type: External").replace(
        "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}",
        "external: {metric: {name: queue, selector: {matchLabels: {queue: orders}}}, target: \
         {type: Value, value: 30}}",
    );
    let loads = options(&["queue=30", "queue{queue=orders}=40"]);
    assert_eq!(
        error(&[&external, DEPLOYMENT], &loads),
        "--load queue has no use: each series of queue has a load with its labels; leave it out"
    );
}

#[test]
fn the_policy_of_a_vpa_decides_which_loads_are_required() {
    let policies = "  resourcePolicy:
    containerPolicies:
    - {containerName: app, controlledResources: [memory]}
    - {containerName: '*', mode: 'Off'}
";
    let vpa = format!("{VPA}{policies}");
    let sidecar = DEPLOYMENT.to_owned() + "      - {name: proxy, image: example.org/proxy}\n";
    let missing = drafts(&[&vpa, &sidecar], &options(&[])).list[0].missing.clone();
    let flags: Vec<&str> = missing.iter().map(|it| &*it.flag).collect();
    // The confidence in memory is that of cpu.
    assert_eq!(flags, ["--load cpu/app=300m", "--load memory/app=200Mi"]);
}

const THE_PODS_KEEP_THEIR_REQUESTS: &str = "the pods keep their requests: for a VPA without an \
                                            HPA, only `compare`, `tune` and `gate` predict the \
                                            updater and the admission controller";

#[test]
fn an_hpa_on_the_requests_that_a_vpa_changes_gives_a_note() {
    let note = |vpa: &str, hpa: &str| {
        let hpas = Selected::None;
        let loads = DraftOptions { hpas, ..options(&["cpu=300m", "memory=200Mi"]) };
        let list = drafts(&[hpa, vpa, DEPLOYMENT], &loads).list;
        let kinds: Vec<AutoscalerKind> = list.iter().map(|draft| draft.kind).collect();
        assert_eq!(kinds, [AutoscalerKind::Vpa]);
        list[0].notes.iter().any(|note| note.what.contains("HPA web scales the same pods on cpu"))
    };
    assert!(note(VPA, HPA));
    let off = format!("{VPA}  updatePolicy: {{updateMode: 'Off'}}\n");
    assert!(!note(&off, HPA));
    let memory = format!(
        "{VPA}  resourcePolicy:\n    containerPolicies:\n    - {{containerName: '*', \
         controlledResources: [memory]}}\n"
    );
    assert!(!note(&memory, HPA));
    let elsewhere = VPA.replace("name: web}", "name: api}");
    let files = [file(HPA), file(&elsewhere), file(DEPLOYMENT)];
    let loads = DraftOptions { replicas: Some(2), ..options(&["cpu=300m", "memory=200Mi"]) };
    let list = draft(&files, &loads, &no_files).expect("valid manifests").list;
    assert_eq!(note_texts(&list[1].notes_on_recommender), [THE_PODS_KEEP_THEIR_REQUESTS]);
}

#[test]
fn several_policies_of_one_container_have_a_note() {
    let policies = |modes: &[&str]| {
        let list: Vec<String> = modes
            .iter()
            .map(|mode| format!("    - {{containerName: app, mode: '{mode}'}}\n"))
            .collect();
        let vpa = format!("{VPA}  resourcePolicy:\n    containerPolicies:\n{}", list.concat());
        note_texts(
            &drafts(&[&vpa, DEPLOYMENT], &options(&["cpu=300m", "memory=200Mi"])).list[0].notes,
        )
    };
    let repeated = "`containerPolicies` contains several policies of app; the VPA uses the first";
    assert_eq!(policies(&["Auto", "Off", "Auto"]), [repeated]);
    assert_eq!(policies(&["Auto"]), Vec::<&str>::new());
}

#[test]
fn an_hpa_and_the_vpa_that_changes_its_pods_share_a_scenario() {
    let all = options(&["cpu=total:1", "memory=200Mi"]);
    let hpa_and_vpa = |vpa: &str, deployment: &str| {
        let list = drafts(&[HPA, vpa, deployment], &all).list;
        let [draft] = list.as_slice() else { panic!("{} drafts", list.len()) };
        assert_eq!(draft.missing, []);
        let text = draft.to_yaml();
        match scenario::parse_any("web.yaml", &text, &no_files) {
            Ok(scenario::AnyScenario::Hpa(scenario)) => (draft.clone(), *scenario),
            other => panic!("{other:?}\n{text}"),
        }
    };
    let (draft, scenario) = hpa_and_vpa(VPA, DEPLOYMENT);
    assert_eq!(draft.until(), Span::from_mins(24 * 60));
    assert!(
        draft
            .notes
            .iter()
            .any(|note| note.what.starts_with("the HPA and VPA web-vpa are predicted"))
    );
    let with = scenario.vpa.expect("the scenario has a VPA");
    assert_eq!(with.recommender.vpas[0].metadata.name.name, "web-vpa".into());
    assert_eq!(with.limits().len(), 1);
    let text = draft.to_yaml();
    assert!(text.contains("limits: {cpu: \"1\", memory: 1Gi}"), "{text}");
    assert!(text.contains("and VPA web-vpa sets the requests of its pods"), "{text}");
    // The VPA reads cpu, which no metric of this HPA uses.
    let other = HPA.replace("name: cpu", "name: memory");
    let list = drafts(&[&other, VPA, DEPLOYMENT], &options(&["memory=200Mi"])).list;
    let flags: Vec<&str> = list[0].missing.iter().map(|it| &*it.flag).collect();
    assert!(flags.iter().any(|it| it.starts_with("--load cpu=300m (per pod)")), "{flags:?}");
    let what = "there is no load of cpu, which the VPA reads";
    assert!(list[0].missing.iter().any(|it| it.what == what), "{:?}", list[0].missing);
    let cpu_only = VPA.to_owned()
        + "  resourcePolicy:\n    containerPolicies:\n"
        + "    - {containerName: '*', controlledResources: [cpu]}\n";
    let error = error(&[HPA, &cpu_only, DEPLOYMENT], &all);
    assert!(error.starts_with("neither an HPA nor a VPA uses memory, which has a load"), "{error}");
    // The containers of loads.
    let sidecar = DEPLOYMENT.to_owned() + "      - {name: proxy, image: example.org/proxy}\n";
    let loads = options(&["cpu=total:1", "memory=200Mi", "web-vpa:cpu/proxy=10m"]);
    assert_eq!(drafts(&[HPA, VPA, &sidecar], &loads).list.len(), 1);
    let list = drafts(&[HPA, VPA, &sidecar], &all).list;
    let note = "the load of memory names no container, so container app uses all of it";
    assert!(list[0].notes.iter().any(|it| it.what.starts_with(note)), "{:?}", list[0].notes);
}

#[test]
fn a_vpa_that_is_predicted_separately_from_the_hpa_has_a_note_with_the_reason() {
    // The note on each VPA that says why it is predicted separately.
    let notes = |vpas: &[&str]| {
        let texts: Vec<&str> = [HPA, DEPLOYMENT].into_iter().chain(vpas.iter().copied()).collect();
        let loads = options(&["cpu=300m", "memory=200Mi"]);
        let loads = DraftOptions { replicas: Some(2), ..loads };
        let list = drafts(&texts, &loads).list;
        let kinds: Vec<AutoscalerKind> = list.iter().map(|draft| draft.kind).collect();
        assert_eq!(kinds[0], AutoscalerKind::Hpa);
        assert_eq!(kinds[1..], vec![AutoscalerKind::Vpa; vpas.len()]);
        let is_reason = |note: &String| note.contains("predicted separately");
        let notes =
            list[1..].iter().map(|draft| note_texts(&draft.notes).into_iter().find(is_reason));
        notes.collect::<Vec<Option<String>>>()
    };
    let off = format!("{VPA}  updatePolicy: {{updateMode: 'Off'}}\n");
    let note_on = |vpa: &str| notes(&[vpa]).remove(0);
    let note = note_on(&off).expect("a note");
    assert!(note.contains("with updateMode Off"), "{note}");
    let elsewhere = VPA.replace("name: web}", "name: api}");
    assert_eq!(note_on(&elsewhere), None);
    let in_a_namespace = VPA.replace("name: web-vpa", "name: web-vpa, namespace: shop");
    let note = note_on(&in_a_namespace).expect("a note");
    assert!(note.contains("only one of the two manifests sets a namespace"), "{note}");
    // A mistake: a scenario can have only one.
    let second = VPA.replace("web-vpa", "another");
    for note in notes(&[VPA, &second]) {
        let note = note.expect("each VPA has a note");
        assert!(note.contains("several VPAs have this target: web-vpa and another"), "{note}");
    }
}

#[test]
fn each_of_several_vpas_of_a_target_has_a_note() {
    let second = VPA.replace("web-vpa", "another");
    let off = format!("{second}  updatePolicy: {{updateMode: 'Off'}}\n");
    let elsewhere = second.replace("name: web}", "name: api}");
    let loads = DraftOptions { replicas: Some(2), ..options(&["cpu=300m", "memory=200Mi"]) };
    for (other, expected) in [(&second, 2), (&off, 0), (&elsewhere, 0)] {
        let list = drafts(&[VPA, other, DEPLOYMENT], &loads).list;
        let notes: Vec<String> = list.iter().flat_map(|it| note_texts(&it.notes)).collect();
        let found = notes.iter().filter(|note| note.contains("which has the same target"));
        assert_eq!(found.count(), expected, "{notes:?}");
    }
    let list = drafts(&[VPA, &second, DEPLOYMENT], &loads).list;
    let notes = note_texts(&list[0].notes).concat();
    assert!(notes.contains("does not include VPA another, which"), "{notes}");
}

#[test]
fn a_vpa_of_a_job_has_a_note_that_its_pods_do_not_end() {
    let job = |kind: &str| {
        let vpa = VPA.replace("apps/v1, kind: Deployment", &format!("batch/v1, kind: {kind}"));
        let loads = DraftOptions { replicas: Some(2), ..options(&["cpu=300m", "memory=200Mi"]) };
        note_texts(&drafts(&[&vpa], &loads).list[0].notes).concat()
    };
    let cron_job = job("CronJob");
    assert!(cron_job.contains("the pods of CronJob web run from the start"), "{cron_job}");
    assert!(cron_job.contains("the schedule starts no others"), "{cron_job}");
    assert!(job("Job").contains("no others replace them"), "{}", job("Job"));
    assert!(!job("DaemonSet").contains("run from the start"), "{}", job("DaemonSet"));
}

#[test]
fn with_a_vpa_a_pod_has_the_requests_and_the_limit_of_its_containers() {
    let sidecar = DEPLOYMENT.to_owned() + "      - {name: proxy, image: example.org/proxy}\n";
    let request = "cpu=1".parse().expect("a request");
    let loads = options(&["cpu=total:20", "memory=200Mi"]);
    let with_request = DraftOptions { requests: vec![request], ..loads.clone() };
    let error = error(&[HPA, VPA, &sidecar], &with_request);
    assert!(error.starts_with("--request cpu=1 names no container"), "{error}");
    let list = drafts(&[HPA, VPA, &sidecar], &loads).list;
    let text = list[0].to_yaml();
    assert!(text.contains("load: \"20\", limit: \"1\""), "{text}");
    let note = "and the other containers use nothing; instead of the total, set a load";
    assert!(list[0].notes.iter().any(|it| it.what.contains(note)), "{:?}", list[0].notes);
}

#[test]
fn autoscalers_are_selected_by_kind_and_name() {
    let names = |hpas: Selected, vpas: Selected| {
        let options = DraftOptions { hpas, vpas, ..options(&["cpu=300m"]) };
        let list = drafts(&[HPA, VPA, DEPLOYMENT], &options).list;
        list.into_iter().map(|draft| format!("{} {}", draft.kind, draft.name)).collect::<Vec<_>>()
    };
    let named = |name: &str| Selected::Named(vec![name.to_owned()]);
    // Both are in one scenario.
    assert_eq!(names(Selected::All, Selected::All), ["HPA web"]);
    assert_eq!(names(Selected::None, named("web-vpa")), ["VPA web-vpa"]);
    assert_eq!(names(named("web"), Selected::None), ["HPA web"]);
    let options = DraftOptions { vpas: Selected::Unsupported, ..options(&["cpu=300m"]) };
    let found = drafts(&[HPA, VPA, DEPLOYMENT], &options);
    assert_eq!(found.ignored, ["VerticalPodAutoscaler web-vpa"]);
    let error = error(&[VPA, DEPLOYMENT], &options);
    assert!(error.contains("there is no HorizontalPodAutoscaler in web.yaml"), "{error}");
    assert!(error.contains("`tune` and `gate` support them"), "{error}");
}

#[test]
fn errors_of_vpas_have_their_position() {
    let wrong = VPA.replace("targetRef", "targetref");
    let error = error(&[&wrong, DEPLOYMENT], &options(&[]));
    let expected = "web.yaml:6:3: the API server rejects this VPA: strict decoding error: unknown \
                    field \"spec.targetref\"\n  hint: did you mean `targetRef`?";
    assert!(error.contains(expected), "{error}");
    let gated = format!(
        "{VPA}  resourcePolicy:\n    containerPolicies:\n    - {{containerName: app, \
         oomBumpUpRatio: 2}}\n"
    );
    let (draft, scenario) = vpa_scenario(&[&gated, DEPLOYMENT], &options(&["cpu=1", "memory=1Gi"]));
    assert!(scenario.parsed_flags.per_vpa_config);
    assert!(draft.notes[0].what.contains("feature gate PerVPAConfig"), "{:?}", draft.notes);
}

#[test]
fn a_boost_of_starting_pods_is_left_out_with_a_note() {
    let boost = "startupBoost: {cpu: {type: Factor, factor: 2}}";
    let policies = "resourcePolicy: {containerPolicies: [{containerName: app";
    let boosted = format!("{VPA}  {boost}\n  {policies}, {boost}}}]}}\n");
    let (draft, _) = vpa_scenario(&[&boosted, DEPLOYMENT], &options(&["cpu=1", "memory=1Gi"]));
    assert!(draft.notes[0].what.contains("feature gate CPUStartupBoost"), "{:?}", draft.notes);
    assert!(!draft.to_yaml().contains("startupBoost"));
    let malformed = boosted.replace("Factor, factor", "Quantity, factor");
    let error = error(&[&malformed, DEPLOYMENT], &options(&[]));
    assert!(error.contains("quantity is required when type is Quantity"), "{error}");
}

#[test]
fn all_invalid_manifests_are_named_at_once() {
    let hpa = HPA.replace("maxReplicas: 10", "maxReplicas: 0");
    let vpa = VPA.replace("targetRef", "targetref");
    let deployment = DEPLOYMENT.replace("replicas: 3", "replicas: -1");
    let other =
        HPA.replace("name: web}", "name: api}").replace("minReplicas: 2", "minReplicas: -2");
    let texts = [&*hpa, &*vpa, &*deployment, &*other];
    let files = ["hpa.yaml", "vpa.yaml", "deployment.yaml", "other.yaml"];
    let files: Vec<ManifestFile> = texts
        .into_iter()
        .zip(files)
        .map(|(text, name)| ManifestFile { name: name.to_owned(), ..file(text) })
        .collect();
    let error = draft(&files, &options(&["cpu=1"]), &no_files).expect_err("they are invalid");
    let text = error.to_string();
    for expected in [
        "hpa.yaml:8:16: the API server rejects this HPA: spec.maxReplicas",
        "other.yaml:7:16: the API server rejects this HPA: spec.minReplicas",
        "vpa.yaml:6:3: the API server rejects this VPA",
        "deployment.yaml:6:13: the API server rejects this Deployment: spec.replicas: Invalid val",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // An HPA and a VPA with the same target.
    let files = [file(HPA), file(VPA), file(&deployment)];
    let error = draft(&files, &options(&["cpu=1"]), &no_files).expect_err("it is invalid");
    let negative = "spec.replicas: Invalid value: -1";
    assert_eq!(error.to_string().matches(negative).count(), 1, "{error}");
    let vpa_only = draft(&files[1..], &options(&["cpu=1"]), &no_files).expect_err("it is invalid");
    assert!(vpa_only.to_string().contains(negative), "{vpa_only}");
}

#[test]
fn the_target_of_an_invalid_autoscaler_is_checked() {
    let invalid = DEPLOYMENT.replace("replicas: 3", "replicas: -1");
    let of = |autoscaler: &str| {
        let files = [file(autoscaler), file(&invalid)];
        let error = draft(&files, &options(&[]), &no_files).expect_err("it is invalid");
        error.to_string()
    };
    let hpa = HPA.replace("maxReplicas: 10", "maxReplicas: 0");
    let vpa = VPA.replace("spec:", "spec:\n  unknown: 1");
    for autoscaler in [hpa, vpa] {
        let error = of(&autoscaler);
        assert!(error.contains("spec.replicas: Invalid value: -1"), "{autoscaler}: {error}");
    }
    // Another object is not its target.
    let other = HPA.replace("maxReplicas: 10", "maxReplicas: 0").replace("name: web}", "name: a}");
    assert!(!of(&other).contains("spec.replicas: Invalid value: -1"), "{}", of(&other));
}

#[test]
fn a_load_of_an_hpa_that_is_not_selected_says_so() {
    let other = HPA.replace("name: web}", "name: api}");
    let all = [HPA, &other, DEPLOYMENT];
    let hpas = Selected::Named(vec!["a*".to_owned()]);
    let options = DraftOptions { hpas, replicas: Some(1), ..options(&["cpu=1", "web:cpu=2"]) };
    assert_eq!(
        error(&all, &options),
        "--load web:cpu: HPA web is not selected; leave out this --load, or add `--hpa web`"
    );
}

#[test]
fn a_target_in_another_namespace_is_named() {
    let hpa = HPA.replace("{name: web}\nspec", "{name: web, namespace: shop}\nspec");
    let deployment = DEPLOYMENT.replace("{name: web}\nspec", "{name: web, namespace: prod}\nspec");
    let drafts = drafts(&[&hpa, &deployment], &options(&["cpu=total:1"]));
    let what = &drafts.list[0].missing[0].what;
    let expected = "Deployment web is in namespace prod (web.yaml:2), but the HPA is in shop";
    assert_eq!(what, expected);
}

#[test]
fn a_constant_load_of_each_pod_above_the_target_is_noted() {
    let notes =
        |load: &str| note_texts(&drafts(&[HPA, DEPLOYMENT], &options(&[load])).list[0].notes);
    let found = notes("cpu=90%");
    let [note] = found.as_slice() else { panic!("one note: {found:?}") };
    assert!(note.starts_with("each pod uses 90% of its cpu request however many pods"), "{note}");
    assert!(note.ends_with("use --load cpu=total:…"), "{note}");
    assert_eq!(notes("cpu=300m").len(), 1);
    for harmless in ["cpu=50%", "cpu=54%", "cpu=total:8", "cpu=steps(0s:90%,5m:10%)"] {
        assert_eq!(notes(harmless), [""; 0], "{harmless}");
    }
}

#[test]
fn empty_files_and_misspelled_kinds_are_named() {
    let error = |text: &str| error(&[text], &options(&[]));
    for empty in ["", "# nothing\n---\n\n"] {
        assert!(error(empty).starts_with("web.yaml is empty"), "{}", error(empty));
    }
    let misspelled = error(&HPA.replace("HorizontalPodAutoscaler", "HorizontalPodAutoscaller"));
    assert!(misspelled.contains("web.yaml:2: the kind HorizontalPodAutoscaller is unknown"));
}

#[test]
fn values_with_percent_signs_can_have_a_unit_in_percent() {
    let read = |_: &str| Ok("time,web\n0,61.2%\n60,40%\n".to_owned());
    for (unit, usage) in [("1%", "306m"), ("100%", "306m")] {
        let load = format!("cpu=csv(a.csv,unit={unit})");
        let files = [file(HPA), file(DEPLOYMENT)];
        let drafts = draft(&files, &options(&[&load]), &read).expect("a draft");
        let text = drafts.list[0].to_yaml();
        let scenario = scenario::parse("draft.yaml", &text, &read).expect("a scenario");
        let UsageSource::PerPod(signal) = &scenario.metrics.resources[0].source else {
            panic!("the usage of each pod")
        };
        let first = signal.recorded().and_then(|recorded| recorded.at(Time::ZERO));
        let first = first.map(|milli| format!("{milli}m"));
        assert_eq!(first.as_deref(), Some(usage), "{unit}");
    }
}

#[test]
fn two_objects_without_a_separator_have_a_hint() {
    let text = format!("{}{}", HPA.trim_start(), DEPLOYMENT.trim_start());
    let expected = "web.yaml:11:1: duplicate field `apiVersion`, first on line 1\n  hint: \
                    separate two objects with a line `---`";
    assert_eq!(error(&[&text], &options(&["cpu=1"])), expected);
    let text = format!("{}---{}", HPA.trim_start(), DEPLOYMENT);
    assert_eq!(drafts(&[&text], &options(&["cpu=1"])).list.len(), 1);
}

#[test]
fn the_pods_of_a_daemon_set_depend_on_the_nodes() {
    let vpa = VPA.replace("kind: Deployment", "kind: DaemonSet");
    let target = DEPLOYMENT.replace("kind: Deployment", "kind: DaemonSet");
    let target = target.replace("  replicas: 3\n", "");
    let drafts = drafts(&[&vpa, &target], &options(&["cpu=300m", "memory=200Mi"]));
    let expected = "DaemonSet web runs one pod per node, and the manifests do not contain the \
                    number of nodes, so the scenario has 1 pod; set the number of pods with \
                    --replicas";
    assert_eq!(note_texts(&drafts.list[0].notes), [expected]);
}

/// Another container of the pods.
const PROXY: &str = "      - {name: proxy, image: p, resources: {requests: {cpu: 100m}}}\n";

/// An HPA on the cpu of one container.
fn hpa_of_container(name: &str) -> String {
    HPA.replace("type: Resource", "type: ContainerResource").replace(
        "resource: {name: cpu,",
        &format!("containerResource: {{name: cpu, container: {name},"),
    )
}

/// Drafts that contain examples.
fn with_examples(texts: &[&str], loads: &[&str]) -> Draft {
    let list = drafts(texts, &DraftOptions { examples: true, ..options(loads) }).list;
    list.into_iter().next().expect("a draft")
}

/// Memory rises for hours without falling.
#[test]
fn only_memory_may_rise_all_the_time() {
    let rows: String = (1..100).map(|it| format!("{},{it}\n", it * 15)).collect();
    let read = |_: &str| Ok(format!("time,value\n{rows}"));
    let memory_metric = HPA.replace("name: cpu", "name: memory");
    for (hpa, load, has_note) in [
        (HPA, "cpu=csv(load.csv,unit=1m)", true),
        (&memory_metric, "memory=csv(load.csv,unit=1Mi)", false),
    ] {
        let with_request = DEPLOYMENT.replace("{cpu: 500m}", "{cpu: 500m, memory: 200Mi}");
        let files = [file(hpa), file(&with_request)];
        let drafts = draft(&files, &options(&[load]), &read).expect("a draft");
        let scenario = scenario::parse("web.yaml", &drafts.list[0].to_yaml(), &read);
        let notes = scenario.expect("a scenario").notes;
        let is_note = |note: &Diagnostic| note.what.contains("only rise, or fall to zero");
        assert_eq!(notes.iter().any(is_note), has_note, "{notes:?}");
    }
}

/// `kubectl get hpa` without `-o yaml`.
#[test]
fn a_table_is_not_a_manifest() {
    let expected = "this is the table that `kubectl get` prints, not a manifest\n  hint: add `-o \
                    yaml`: `kubectl get hpa,deployment -o yaml`";
    let columns = "REFERENCE        TARGETS       MINPODS   MAXPODS   REPLICAS   AGE";
    for (text, line) in [
        (format!("NAME   {columns}\nweb    Deployment/web   cpu: 10%/50%   2   10   3   5d\n"), 1),
        (format!("NAME   {columns}\nweb    Deployment/web   10%/50%   2   10   3   5d\n"), 1),
        (format!("\nNAMESPACE   NAME   {columns}\nshop   web   Deployment/web\n"), 2),
        ("NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    3/3     3   3   5d\n".to_owned(), 1),
        ("NAME   TYPE   CLUSTER-IP   PORT(S)\nweb   ClusterIP   None   80/TCP\n".to_owned(), 1),
    ] {
        assert_eq!(error(&[&text], &options(&[])), format!("web.yaml:{line}:1: {expected}"));
    }
}

#[test]
fn the_strategy_of_a_rollout_is_ignored_with_a_note() {
    let for_rollout = |text: &str| {
        let text = text.replace("apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout");
        text.replace("apps/v1\nkind: Deployment", "argoproj.io/v1alpha1\nkind: Rollout")
    };
    let rolling = for_rollout(DEPLOYMENT);
    let with = |strategy: &str| {
        rolling.replace("  replicas: 3\n", &format!("  replicas: 3\n  strategy: {strategy}\n"))
    };
    for (rollout, expected) in [
        (with("{canary: {steps: [{setWeight: 20}]}}"), Some("canary")),
        (with("{blueGreen: {activeService: web}}"), Some("blueGreen")),
        (rolling.clone(), None),
        (with("{}"), None),
    ] {
        let drafts = drafts(&[&for_rollout(HPA), &rollout], &options(&["cpu=100m"]));
        let notes = &drafts.list[0].manifest_notes;
        let note = notes.iter().find(|note| note.what.contains("strategy"));
        let expected = expected.map(|strategy| {
            format!(
                "the strategy `{strategy}` of Rollout web is ignored: the prediction assumes that \
                 no update is in progress, and that all pods are of one version"
            )
        });
        assert_eq!(note.map(|note| note.what.clone()), expected, "{rollout}");
    }
}

/// `kubectl get -o yaml` prints the status, and `kubectl create --dry-run` an empty one.
#[test]
fn the_status_of_a_cluster_is_ignored_with_a_note() {
    let notes = |texts: &[&str]| -> Vec<String> {
        let load = options(&["cpu=100m", "memory=100Mi"]).loads;
        let loads = load.into_iter().take(1 + usize::from(texts[0].contains("Vertical"))).collect();
        let draft = drafts(texts, &DraftOptions { loads, ..DraftOptions::default() });
        let Draft { notes, manifest_notes, .. } = draft.list[0].clone();
        let manifest_notes = manifest_notes.into_iter().map(|note| note.what);
        let notes = notes.into_iter().map(|note| note.what);
        notes.chain(manifest_notes).filter(|it| it.contains("the status of")).collect()
    };
    let hpa =
        format!("{HPA}status: {{currentReplicas: 3, desiredReplicas: 5, currentMetrics: []}}\n");
    let deployment = format!("{DEPLOYMENT}status: {{replicas: 3, readyReplicas: 2}}\n");
    let vpa = format!("{VPA}status: {{conditions: [{{type: NoPodsMatched}}]}}\n");
    let rest = "is ignored: at the start, all pods are ready, and there are no earlier metrics and \
                recommendations";
    let none: Vec<String> = Vec::new();
    let both = vec![format!("the status of HPA web, Deployment web {rest}")];
    assert_eq!(notes(&[&hpa, &deployment]), both);
    assert_eq!(notes(&[HPA, &deployment]), [format!("the status of Deployment web {rest}")]);
    let ignored = "the status of VPA web-vpa is ignored: at the start, there is no recommendation";
    assert_eq!(notes(&[&vpa, DEPLOYMENT]), [ignored]);
    let generated = format!("{HPA}status: {{currentReplicas: 0, desiredReplicas: 0}}\n");
    assert_eq!(notes(&[&generated, &format!("{DEPLOYMENT}status: {{}}\n")]), none);
}

#[test]
fn each_container_whose_load_is_refused_has_an_example() {
    let two = format!("{DEPLOYMENT}{PROXY}");
    let hpa = hpa_of_container("app");
    let both = "{name: cpu, containers: {app: 300m, proxy: 300m}}";
    let proxy = "{name: cpu, containers: {proxy: 20m, app: 300m}}";
    let app = "{name: cpu, containers: {app: 20m, proxy: 300m}}";
    for (autoscaler, loads, expected) in [
        (VPA, &["cpu=100m", "memory=1Gi"][..], both),
        (VPA, &["cpu=total:3"], both),
        (VPA, &["cpu/app=total:3", "cpu/proxy=20m"], "{app: 300m, proxy: 20m}"),
        (&hpa, &["cpu/app=total:ramp(0s:1,5m:4)", "cpu/proxy=20m"], proxy),
        (&hpa, &["cpu/app=20m", "cpu/proxy=total:3"], app),
        (&hpa, &["cpu/proxy=20m", "cpu=total:3"], proxy),
        (HPA, &["cpu/proxy=20m", "cpu=total:3"], proxy),
    ] {
        let draft = with_examples(&[autoscaler, &two], loads);
        let text = draft.to_yaml();
        assert!(text.contains(expected), "{loads:?}: {text}");
        assert!(!draft.missing.is_empty(), "{loads:?}");
        scenario::parse_any("web.yaml", &text, &no_files).expect("a scenario");
        assert!(!drafts(&[autoscaler, &two], &options(loads)).list[0].missing.is_empty());
    }
}

#[test]
fn computed_memory_is_in_whole_bytes() {
    let hpa =
        HPA.replace("name: cpu", "name: memory").replace("Utilization: 50", "Utilization: 80");
    let deployment = DEPLOYMENT.replace("cpu: 500m}", "cpu: 500m, memory: 500Mi}");
    for (loads, expected) in [
        (&["memory=77%"][..], "perPod: 385Mi"),
        (&["memory=noise(10%,steps(0s:77%,5m:0%))"], "value: 385Mi"),
        (&["memory=33.33333333%"], "perPod: \"174762667\""),
        (&["memory=1500000k"], "perPod: 1500000k"),
        (&[], "perPod: 400Mi"),
    ] {
        let text = with_examples(&[&hpa, &deployment], loads).to_yaml();
        assert!(text.contains(expected), "{loads:?}: {text}");
    }
    let loads = ["cpu=50%", "memory=77%"];
    let text = with_examples(&[VPA, &deployment], &loads).to_yaml();
    assert!(text.contains("perPod: 250m}, {name: memory, perPod: 385Mi}"), "{text}");
    // The example of the usage is in percent of the example of the request.
    let without = DEPLOYMENT.replace(", memory: 1Gi", "");
    let text = with_examples(&[&hpa.replace("80", "50"), &without], &[]).to_yaml();
    assert!(text.contains("perPod: 512Mi"), "{text}");
}

#[test]
fn only_the_container_of_a_metric_has_an_example_of_a_request() {
    let other = "      - {name: log, image: l}\n";
    let deployment = format!("{DEPLOYMENT}{other}");
    let sidecar = "      initContainers: [{name: mesh, image: m, restartPolicy: Always}]\n";
    let with_sidecar = format!("{DEPLOYMENT}{sidecar}");
    let whole = "      resources: {requests: {cpu: 2}}\n      containers:\n";
    let whole = deployment.replace("      containers:\n", whole);
    let without = |name: &str| format!("container {name} requests no cpu");
    for (hpa, deployment, expected) in [
        (&hpa_of_container("app"), &deployment, None),
        (&hpa_of_container("log"), &deployment, Some("log")),
        (&hpa_of_container("log"), &whole, Some("log")),
        (&HPA.to_owned(), &deployment, Some("log")),
        (&HPA.to_owned(), &whole, None),
        (&HPA.to_owned(), &with_sidecar, Some("mesh")),
    ] {
        let draft = with_examples(&[hpa, deployment], &["cpu/app=300m"]);
        let requests =
            draft.missing.iter().filter(|it| it.value == MissingValue::Request { of_load: false });
        let requests: Vec<&str> = requests.map(|it| &*it.what).collect();
        let text = draft.to_yaml();
        assert_eq!(requests.len(), usize::from(expected.is_some()), "{requests:?}");
        let named = expected.is_none_or(|name| requests[0].starts_with(&without(name)));
        assert!(named, "{requests:?}");
        assert_eq!(text.contains("cpu: \"1\""), expected.is_some(), "{text}");
        scenario(&draft);
    }
}

#[test]
fn a_note_on_a_load_of_one_container_names_it() {
    let two = format!("{DEPLOYMENT}{PROXY}");
    let note = |hpa: &str, load: &str| {
        let notes = note_texts(&drafts(&[hpa, &two], &options(&[load])).list[0].notes);
        assert_eq!(notes.len(), 1, "{notes:?}");
        notes[0].clone()
    };
    let app_metric = hpa_of_container("app");
    let expected = "container app of each pod uses 80% of its cpu request however many pods";
    for load in ["cpu=80%", "cpu/app=80%"] {
        let note = note(&app_metric, load);
        assert!(note.starts_with(expected), "{load}: {note}");
    }
    let note = note(HPA, "cpu=80%");
    assert!(note.starts_with("each pod uses 80% of its cpu request"), "{note}");
}
