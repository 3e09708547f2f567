//! The autoscalers that differ between two versions of manifests.

use super::*;

fn hpa(name: &str, target: &str, most: u32) -> String {
    format!(
        "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}
  maxReplicas: {most}
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {{type: Utilization, averageUtilization: 50}}
---
"
    )
}

fn deployment(name: &str, request: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, labels: {{team: a}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: app
        image: example.org/web
        resources: {{requests: {{cpu: {request}}}}}
---
"
    )
}

fn versions(base: &str, head: &str, loads: &[&str]) -> Result<Versions, DraftError> {
    let file = |text: &str| ManifestFile {
        name: "all.yaml".to_owned(),
        text: text.to_owned(),
        lenient: true,
    };
    let loads = loads.iter().map(|load| load.parse().expect("a load")).collect();
    let options = DraftOptions { loads, ..DraftOptions::default() };
    draft_versions(&[file(base)], &[file(head)], &options, &|_| Err("no files".into()))
}

/// Each change in one line.
fn changes(base: &str, head: &str) -> Vec<String> {
    let versions = versions(base, head, &["cpu=total:4"]).expect("manifests");
    let line = |change: &ChangedDraft| {
        let draft = change.head.as_ref().or(change.base.as_ref()).expect("a draft");
        let names = draft.names().join(", ");
        let fields = change.fields.iter().map(|field| {
            let line = field.place.as_ref().map(|it| format!(" ({})", it.line));
            format!("{}: {field}{}", field.object, line.unwrap_or_default())
        });
        let fields = fields.collect::<Vec<_>>().join("; ");
        match (&change.base, &change.head) {
            (None, _) => format!("{names} added"),
            (_, None) => format!("{names} removed"),
            _ => format!("{names}: {fields}"),
        }
    };
    versions.changes().iter().map(line).collect()
}

#[test]
fn autoscalers_are_added_removed_and_changed_directly_or_through_their_targets() {
    let base = hpa("a", "a", 5) + &deployment("a", "1") + &hpa("b", "b", 5) + &deployment("b", "1");
    assert!(changes(&base, &base).is_empty());
    let head = hpa("a", "a", 8) + &deployment("a", "1") + &hpa("c", "c", 5) + &deployment("c", "1");
    let expected = ["a: HPA a: spec.maxReplicas: 5 → 8 (6)", "c added", "b removed"];
    assert_eq!(changes(&base, &head), expected);
    let head = base.replacen("requests: {cpu: 1}", "requests: {cpu: 500m}", 1);
    let request = "spec.template.spec.containers[0].resources.requests.cpu: 1 → 500m (25)";
    assert_eq!(changes(&base, &head), [format!("a: Deployment a: {request}")]);
    let head = base.replacen("replicas: 2", "replicas: 3", 1);
    assert_eq!(changes(&base, &head), ["a: Deployment a: spec.replicas: 2 → 3 (17)"]);
    // What no prediction depends on is not a change.
    assert!(changes(&base, &base.replace("team: a", "team: b")).is_empty());
    let head = base.replace("metadata: {name: a}", "metadata: {name: a, labels: {team: b}}");
    assert!(changes(&base, &head).is_empty());
}

#[test]
fn labels_matter_only_through_the_selector() {
    let base = hpa("a", "a", 5) + &deployment("a", "1");
    let labelled =
        |labels: &str| base.replace("{labels: {app: a}}", &format!("{{labels: {{{labels}}}}}"));
    let (v1, v2) = (labelled("app: a, version: v1"), labelled("app: a, version: v2"));
    for (before, after) in [(&base, &v1), (&v1, &v2), (&v2, &base)] {
        assert_ne!(before, after);
        assert_eq!(changes(before, after), [] as [String; 0]);
    }
    // The rows of a changed selector are those of the manifest.
    let head = v1.replace("matchLabels: {app: a}", "matchLabels: {app: a, version: v1}");
    let expected = "a: Deployment a: spec.selector: app=a → app=a,version=v1 (18)";
    assert_eq!(changes(&base, &head), [expected]);
    assert_eq!(changes(&v1, &head), [expected]);
    // Without a selector, all labels of the template are the selector.
    let controller = |text: &str| {
        let text = text.replace("apps/v1", "v1").replace("Deployment", "ReplicationController");
        text.replace("  selector: {matchLabels: {app: a}}\n", "")
    };
    let [base, v1] = [&base, &v1].map(|it| controller(it));
    assert_eq!(changes(&base, &v1), [] as [String; 0]);
    let selected = base.replace("  template:", "  selector: {app: a}\n  template:");
    assert_eq!(changes(&base, &selected), [] as [String; 0]);
}

#[test]
fn a_removed_field_is_at_the_field_that_contained_it() {
    let base = hpa("a", "a", 5) + &deployment("a", "1");
    let head = base.replace("metrics:", "minReplicas: 2\n  metrics:");
    assert_eq!(changes(&base, &head), ["a: HPA a: spec.minReplicas: unset (1) → 2 (7)"]);
    assert_eq!(changes(&head, &base), ["a: HPA a: spec.minReplicas: 2 → unset (1) (4)"]);
}

#[test]
fn only_fields_that_the_manifests_set_are_listed() {
    let base = hpa("a", "a", 5) + &deployment("a", "1");
    let replicas = base.replace("  replicas: 2\n", "");
    assert_eq!(changes(&base, &replicas), ["a: Deployment a: spec.replicas: 2 → unset (1) (16)"]);
    assert_eq!(changes(&replicas, &base), ["a: Deployment a: spec.replicas: unset (1) → 2 (17)"]);
    let with = |behavior: &str| {
        base.replace("  maxReplicas", &format!("  behavior: {behavior}\n  maxReplicas"))
    };
    let window = with("{scaleDown: {stabilizationWindowSeconds: 60}}");
    let path = "a: HPA a: spec.behavior.scaleDown.stabilizationWindowSeconds";
    assert_eq!(changes(&base, &window), [format!("{path}: unset → 60 (6)")]);
    assert_eq!(changes(&window, &base), [format!("{path}: 60 → unset (4)")]);
    // A behavior without fields still changes the rules that apply.
    let found = changes(&base, &with("{}")).concat();
    assert!(found.starts_with("a: HPA a: spec.behavior: unset → {"), "{found}");
    // With a behavior in both, the other one has defaults.
    let policy = "scaleDown: {policies: [{type: Percent, value: 10, periodSeconds: 60}]}";
    let expected = format!("{path}: 60 → unset (6)");
    let found = changes(&window, &with(&format!("{{{policy}}}"))).concat();
    assert!(found.starts_with(&expected), "{found}");
    assert!(found.contains("scaleDown.policies[0].value: unset (100) → 10 (6)"), "{found}");
    let both = with(&format!("{{scaleUp: {{selectPolicy: Max}}, {policy}}}"));
    assert!(!changes(&with("{}"), &both).concat().contains("scaleUp"));
}

#[test]
fn hpas_may_move_to_another_target() {
    let base = hpa("a", "a", 5) + &deployment("a", "1") + &hpa("b", "b", 5) + &deployment("b", "1");
    let head = base.replace("name: b}\n  maxReplicas", "name: a}\n  maxReplicas");
    let found = changes(&base, &head);
    assert_eq!(found, ["a, b: HPA b: spec.scaleTargetRef.name: b → a (31)"]);
    let back = changes(&head, &base);
    let moved = "HPA b: spec.scaleTargetRef.name: a → b (31)";
    // The other pods of the new target are no change of the autoscaler.
    assert_eq!(back, [format!("a: {moved}"), format!("b: {moved}")]);
    // The target of `a` stays the same, and loses an autoscaler.
    let both = versions(&head, &base, &["cpu=total:4"]).expect("manifests").changes();
    assert_eq!(both.iter().map(ChangedDraft::is_moved).collect::<Vec<_>>(), [false, true]);
    assert!(both[0].comparable_base().is_some() && both[1].comparable_base().is_none());
}

#[test]
fn a_target_of_another_kind_and_the_same_name_is_the_same() {
    let base = hpa("a", "a", 5) + &deployment("a", "1");
    let head = base.replace("Deployment", "StatefulSet").replace("replicas: 2", "replicas: 3");
    let kind = "a: HPA a: spec.scaleTargetRef.kind: Deployment → StatefulSet (5)";
    let replicas = "StatefulSet a: spec.replicas: 2 → 3 (17)";
    assert_eq!(changes(&base, &head), [format!("{kind}; {replicas}")]);
    let changes_of = |head: &str| {
        let versions = versions(&base, head, &["cpu=total:4"]).expect("manifests");
        versions.changes().remove(0)
    };
    let change = changes_of(&head);
    assert!(!change.is_moved() && change.comparable_base().is_some());
    assert_eq!(change.targets_without_autoscaler, [] as [String; 0]);
    // If the Deployment still exists, the StatefulSet is another workload.
    let change = changes_of(&(head + &deployment("a", "1")));
    assert!(change.is_moved() && change.comparable_base().is_none());
    assert_eq!(change.targets_without_autoscaler, ["Deployment a"]);
}

#[test]
fn each_changed_container_has_its_own_line() {
    let of = |containers: &str| {
        let target = deployment("web", "1");
        let (start, _) = target.split_once("      - name").expect("a container");
        format!("{}{start}{}---\n", hpa("a", "web", 5), containers.replace('|', "\n      - "))
            .replace("containers:\n\n", "containers:\n")
    };
    let requests = "resources: {requests: {cpu: 1}}";
    let base =
        of(&format!("|{{name: app, image: x, {requests}}}|{{name: b, image: x, {requests}}}\n"));
    let limit = "resources: {requests: {cpu: 1}, limits: {cpu: 2}}";
    let others = ["b", "c", "d"].map(|name| format!("|{{name: {name}, image: x}}")).concat();
    let head = of(&format!("|{{name: app, image: x, {limit}}}{others}\n"));
    let lines = |base: &str, head: &str| -> Vec<(String, Option<usize>)> {
        let found = versions(base, head, &["cpu=total:4"]).expect("manifests").changes();
        let fields = found[0].fields.iter();
        fields.map(|it| (it.path.clone(), it.place.as_ref().map(|it| it.line))).collect()
    };
    let first = head.lines().position(|line| line.contains("{name: app,")).expect("a line") + 1;
    let container = |number: usize, field: &str| format!("{POD}.containers[{number}]{field}");
    let found = lines(&base, &head);
    for expected in [
        (container(1, ".resources.requests"), Some(first + 1)),
        (container(2, ""), Some(first + 2)),
        (container(3, ""), Some(first + 3)),
    ] {
        assert!(found.contains(&expected), "{expected:?}: {found:?}");
    }
    let one = |container: &str| of(&format!("|{{name: app, image: x, {container}}}\n"));
    let limited = lines(&one(requests), &one(limit));
    assert_eq!(limited, [("limits.cpu".to_owned(), Some(first))]);
    // A container that is gone has no line of its own.
    let list = base.lines().position(|line| line.ends_with("containers:")).expect("a line") + 1;
    assert!(lines(&head, &base).iter().any(|(path, line)| {
        *path == container(3, "") && line.is_some_and(|line| line == list || line == list + 1)
    }));
}

#[test]
fn containers_are_matched_by_their_names() {
    let of = |containers: &[&str], init_containers: &[&str]| {
        let list = |containers: &[&str]| -> String {
            let one = |it: &&str| format!("      - {{{it}, image: x}}\n");
            containers.iter().map(one).collect()
        };
        let target = deployment("web", "1");
        let (start, _) = target.split_once("      - name").expect("a container");
        let init_containers = format!("      initContainers:\n{}", list(init_containers));
        format!("{}{start}{}{init_containers}---\n", hpa("a", "web", 5), list(containers))
    };
    let app = "name: app, resources: {requests: {cpu: 1}}";
    let smaller = "name: app, resources: {requests: {cpu: 500m}}";
    let proxy = "name: proxy, resources: {requests: {cpu: 100m}}";
    let log = "name: log, restartPolicy: Always, resources: {requests: {cpu: 10m}}";
    let mesh = "name: mesh, restartPolicy: Always, resources: {requests: {cpu: 20m}}";
    let base = of(&[app, proxy], &[log, mesh]);
    assert_eq!(changes(&base, &of(&[proxy, app], &[mesh, log])), [] as [String; 0]);
    let path = |list: &str, index: usize| format!("Deployment web: {POD}.{list}[{index}]");
    let line = |text: &str, of: &str| text.lines().position(|it| it.contains(of)).unwrap_or(0) + 1;
    // Only the container that differs is a change, at its own line.
    let head = of(&[proxy, smaller], &[log, mesh]);
    let (request, at) = (".resources.requests.cpu: 1 → 500m", line(&head, "name: app"));
    let expected = format!("a: {}{request} ({at})", path("containers", 1));
    assert_eq!(changes(&base, &head), [expected]);
    let head = of(&[app, proxy], &[&mesh.replace("20m", "30m"), log]);
    let (request, at) = (".resources.requests.cpu: 20m → 30m", line(&head, "name: mesh"));
    let expected = format!("a: {}{request} ({at})", path("initContainers", 0));
    assert_eq!(changes(&base, &head), [expected]);
    // A renamed container is another one. The one that is gone has no line of its own.
    let head = of(&[app, &proxy.replace("proxy", "envoy")], &[log, mesh]);
    let (added, list) = (line(&head, "name: envoy"), line(&head, "  containers:"));
    let expected = format!(
        "a: {one}: unset → {{name: envoy, requests: {{cpu: 100m}}}} ({added}); {one}: {{name: \
         proxy, requests: {{cpu: 100m}}}} → unset ({})",
        list,
        one = path("containers", 1)
    );
    assert_eq!(changes(&base, &head), [expected]);
}

#[test]
fn a_renamed_hpa_of_the_same_target_is_the_same() {
    let base = hpa("a", "web", 5) + &deployment("web", "1");
    let head = base.replace("metadata: {name: a}", "metadata: {name: b}");
    assert_eq!(changes(&base, &head), ["b: HPA b: metadata.name: a → b (3)"]);
    // The default namespace can be left out.
    let head = base.replace("metadata: {name: a}", "metadata: {name: a, namespace: default}");
    assert!(changes(&base, &head).is_empty());
}

#[test]
fn notation_makes_no_difference() {
    let base = hpa("a", "a", 5) + &deployment("a", "1");
    let head = base.replace("  maxReplicas: 5", "  minReplicas: 1\n  maxReplicas: 5");
    assert!(changes(&base, &head).is_empty());
    let old = "apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}
  maxReplicas: 5
  targetCPUUtilizationPercentage: 50
---
";
    assert!(changes(&(old.to_owned() + &deployment("a", "1")), &base).is_empty());
}

#[test]
fn a_load_may_be_for_an_autoscaler_of_one_version_only() {
    let (a, b) = (hpa("a", "a", 5) + &deployment("a", "1"), hpa("b", "b", 5));
    let both = a.clone() + &b + &deployment("b", "1");
    let loads = ["a:cpu=total:4", "b:cpu=total:4"];
    let drafts = versions(&a, &both, &loads).expect("manifests");
    assert!(drafts.head.list.iter().all(|draft| draft.missing.is_empty()));
    assert!(versions(&both, &a, &loads).is_ok());
    let error = versions(&a, &both, &["c:cpu=total:4"]).expect_err("no such HPA");
    assert!(error.to_string().contains("there is no HPA c"), "{error}");
    let none = deployment("a", "1");
    assert_eq!(versions(&none, &a, &["cpu=total:4"]).expect("manifests").changes().len(), 1);
    let error = versions(&none, &none, &[]).expect_err("no autoscaler");
    assert!(error.to_string().contains("there is no HorizontalPodAutoscaler"), "{error}");
}

#[test]
fn a_vpa_that_no_longer_changes_the_pods_of_an_hpa_is_not_said_to_be_deleted() {
    let vpa = |mode: &str| {
        format!(
            "apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: web}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  updatePolicy: {{updateMode: {mode}}}
---
"
        )
    };
    let rest = hpa("web", "web", 10) + &deployment("web", "500m");
    let fields = |base: &str, head: &str| {
        let [base, head] = [base, head].map(|vpa| rest.clone() + vpa);
        let loads = ["cpu=total:4", "memory=200Mi"];
        let versions = versions(&base, &head, &loads).expect("manifests");
        let fields = versions.changes().remove(0).fields.into_iter();
        fields.map(|it| format!("{}: {it}", it.object)).collect::<Vec<_>>()
    };
    let before = vpa("Recreate");
    for after in [vpa("'Off'"), String::new()] {
        let expected = "VPA web: spec.updatePolicy.updateMode: Recreate → Off, or no VPA";
        assert_eq!(fields(&before, &after), [expected]);
        let expected = "VPA web: spec.updatePolicy.updateMode: Off, or no VPA → Recreate";
        assert_eq!(fields(&after, &before), [expected]);
    }
}
