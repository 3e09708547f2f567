//! For each rule, manifests with findings, and similar ones without.

use std::collections::BTreeSet;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_manifests::{Load, ManifestFile, Manifests};

use super::{Evidence, Finding, Options, RULES, Rule, check};

/// The manifest of an HPA of Deployment `web`. `spec` is more of its spec, in flow style.
fn hpa(name: &str, spec: &str) -> String {
    hpa_of(name, "web", spec)
}

fn hpa_of(name: &str, target: &str, spec: &str) -> String {
    format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\n\
         spec:\n  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}\n  \
         maxReplicas: 20\n{}---\n",
        spec.lines().map(|line| format!("  {}\n", line.trim_start())).collect::<String>()
    )
}

/// The metrics of an HPA with one of a resource.
fn resource(name: &str, target: &str) -> String {
    format!("metrics: [{{type: Resource, resource: {{name: {name}, target: {{type: {target}}}}}}}]")
}

fn cpu() -> String {
    resource("cpu", "Utilization, averageUtilization: 50")
}

fn cpu_average() -> String {
    resource("cpu", "AverageValue, averageValue: 100m")
}

fn memory() -> String {
    resource("memory", "Utilization, averageUtilization: 80")
}

const SIDECAR: &str = "metrics: [{type: ContainerResource, containerResource: {name: cpu, \
                       container: side, target: {type: Utilization, averageUtilization: 50}}}]";
const SCHEDULE: &str = "metrics: [{type: External, external: {metric: {name: schedule}, \
                        target: {type: AverageValue, averageValue: '1'}}}]";
const QUEUE: &str = "metrics: [{type: External, external: {metric: {name: queue}, \
                     target: {type: AverageValue, averageValue: '30'}}}]";
const READY_COUNT: &str = "metrics: [{type: External, external: {metric: {name: queue}, \
                           target: {type: Value, value: '30'}}}]";

/// The manifest of a Deployment whose pods request cpu and memory.
fn deployment(name: &str, selector: &str, labels: &str) -> String {
    workload(name, "", selector, labels, "requests: {cpu: '1', memory: 100Mi}")
}

fn workload(name: &str, spec: &str, selector: &str, labels: &str, resources: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n{spec}  \
         selector: {{matchLabels: {{{selector}}}}}\n  template:\n    metadata: {{labels: \
         {{{labels}}}}}\n    spec: {{containers: [{{name: app, image: web, resources: \
         {{{resources}}}}}]}}\n---\n"
    )
}

fn web() -> String {
    deployment("web", "app: web", "app: web")
}

fn cron_job(labels: &str, metadata: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: nightly{metadata}}}\nspec:\n  \
         jobTemplate: {{spec: {{template: {{metadata: {{labels: {{{labels}}}}}}}}}}}\n---\n"
    )
}

fn vpa(mode: &str, resources: &str) -> String {
    format!(
        "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {{name: web}}\n\
         spec:\n  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  updatePolicy: \
         {{updateMode: {mode}}}\n  resourcePolicy: {{containerPolicies: [{{containerName: '*', \
         controlledResources: [{resources}]}}]}}\n---\n"
    )
}

/// A case: manifests, and what the rules find in them.
struct Case {
    manifests: String,
    loads: Vec<&'static str>,
    release: &'static str,
    gates: Vec<(&'static str, bool)>,
    /// The rule, the evidence, the line, and a part of the message. None: no findings.
    expected: Option<(&'static str, Evidence, usize, &'static str)>,
}

fn case(manifests: impl IntoIterator<Item = String>) -> Case {
    let manifests = manifests.into_iter().collect();
    Case { manifests, loads: Vec::new(), release: "1.37", gates: Vec::new(), expected: None }
}

impl Case {
    fn load(mut self, load: &'static str) -> Case {
        self.loads.push(load);
        self
    }

    fn release(self, release: &'static str) -> Case {
        Case { release, ..self }
    }

    /// Sets a gate of the kube-controller-manager.
    fn controller_gate(mut self, name: &'static str, on: bool) -> Case {
        self.gates.push((name, on));
        self
    }

    fn finds(
        self,
        rule: &'static str,
        evidence: Evidence,
        line: usize,
        part: &'static str,
    ) -> Case {
        Case { expected: Some((rule, evidence, line, part)), ..self }
    }

    fn findings(&self) -> Vec<Finding> {
        let file = ManifestFile {
            name: "web.yaml".to_owned(),
            text: self.manifests.clone(),
            lenient: false,
        };
        let loads: Vec<Load> =
            self.loads.iter().map(|load| load.parse().expect("a valid load")).collect();
        let manifests = Manifests::read(&[file], &loads)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.manifests));
        let mut options = Options::of(Release::known(self.release).expect("a release"));
        for (name, on) in &self.gates {
            options.gates.controller_manager.set(name, *on).expect("a gate");
        }
        check(&manifests, &options, RULES)
    }
}

/// Checks all cases, and that they contain a positive and a negative one of this rule.
fn assert_cases(rule: &str, cases: Vec<Case>) {
    assert!(Rule::named(rule).is_some(), "{rule}");
    assert!(cases.iter().any(|case| case.expected.is_some_and(|it| it.0 == rule)), "{rule}");
    assert!(cases.iter().any(|case| case.expected.is_none()), "{rule}");
    for case in cases {
        let findings = case.findings();
        let shown: Vec<_> = findings
            .iter()
            .map(|it| (it.rule.id, it.evidence, it.diagnostic.line(), &*it.diagnostic.what))
            .collect();
        match (case.expected, shown.as_slice()) {
            (None, []) => {}
            (Some((rule, evidence, line, part)), [(id, seen, at, what)])
                if (rule, evidence, Some(line)) == (*id, *seen, *at) && what.contains(part) => {}
            (expected, _) => panic!("{}\n{expected:?}\n{shown:#?}", case.manifests),
        }
    }
}

use Evidence::{Assumed, Derived, Observed};

#[test]
fn replicas_in_a_manifest_reset_those_of_an_hpa() {
    let requests = "requests: {cpu: '1'}";
    let with = |spec: &str| workload("web", spec, "app: web", "app: web", requests);
    let stored = |annotations: &str| {
        with("  replicas: 3\n").replace(
            "{name: web}",
            &format!("{{name: web, uid: 1f2e, annotations: {{{annotations}}}}}"),
        )
    };
    let applied = |spec: &str| {
        stored(&format!(
            "kubectl.kubernetes.io/last-applied-configuration: '{{\"spec\":{{{spec}}}}}'"
        ))
    };
    let id = "replicas-beside-hpa";
    assert_cases(
        id,
        vec![
            case([with("  replicas: 3\n"), hpa("web", &cpu())]).finds(
                id,
                Observed,
                5,
                "is 3, but HPA web",
            ),
            case([
                with("  replicas: 1\n"),
                hpa("web", &cpu()).replace("maxReplicas: 20", "maxReplicas: 1"),
            ]),
            case([
                with("  replicas: 3\n"),
                hpa(
                    "web",
                    &format!("{}\nbehavior: {{scaleUp: {{selectPolicy: Disabled}}}}", cpu()),
                ),
            ])
            .finds(
                id,
                Observed,
                5,
                "can't restore them, because its scale-ups are disabled",
            ),
            case([with("  replicas: 0\n"), hpa("web", &cpu())]).finds(
                id,
                Observed,
                5,
                "disables HPA web",
            ),
            case([applied("\"replicas\":3"), hpa("web", &cpu())]).finds(
                id,
                Observed,
                3,
                "the last applied manifest has spec.replicas 3",
            ),
            // An HPA of another workload, replicas of a cluster, and no replicas.
            case([with("  replicas: 3\n"), hpa_of("api", "api", &cpu())]),
            case([stored("a: b"), hpa("web", &cpu())]),
            case([applied("\"paused\":false"), hpa("web", &cpu())]),
            case([with("  replicas: null\n"), hpa("web", &cpu())]),
        ],
    );
}

#[test]
fn several_hpas_of_the_same_pods_stop() {
    let id = "ambiguous-selector";
    let shared = |metrics: &str| {
        [
            deployment("web", "app: web", "app: web, tier: front"),
            deployment("api", "tier: front", "app: api, tier: front"),
            hpa("web", &cpu()),
            hpa_of("api", "api", metrics),
        ]
    };
    assert_cases(
        id,
        vec![
            case([web(), hpa("web", &cpu()), hpa("queue", QUEUE)]).finds(
                id,
                Derived,
                22,
                "HPA queue scales Deployment web, as does HPA web (web.yaml:10): the controller",
            ),
            // The target is not in the manifests.
            case([hpa("web", &cpu()), hpa("queue", QUEUE)]).finds(
                id,
                Derived,
                13,
                "as does HPA web",
            ),
            case([hpa("web", &cpu()), hpa("queue", QUEUE)]).release("1.25").finds(
                id,
                Derived,
                13,
                "they overwrite each other's replicas",
            ),
            case(shared(QUEUE)).finds(id, Derived, 31, "select the same pods, of Deployment web"),
            case(shared(&cpu())).release("1.25").finds(
                "selector-matches-other-pods",
                Derived,
                14,
                "Deployment api also matches the pods of Deployment web",
            ),
            // Other labels, and another namespace.
            case([
                web(),
                deployment("api", "app: api", "app: api"),
                hpa("web", &cpu()),
                hpa_of("api", "api", &cpu()),
            ]),
            case([
                hpa("web", &cpu()),
                hpa("web", &cpu()).replace("{name: web}", "{name: web, namespace: b}"),
            ]),
        ],
    );
}

#[test]
fn a_manifest_can_leave_the_namespace_open() {
    let of = |name: &str, namespace: &str| {
        let named = format!("{{name: {name}, namespace: {namespace}}}");
        hpa_of(name, "web", QUEUE).replace(&format!("{{name: {name}}}"), &named)
    };
    let id = "ambiguous-selector";
    let expected = "HPA b/other scales Deployment web, as does HPA web";
    assert_cases(
        id,
        vec![
            case([web(), hpa("web", &cpu()), of("other", "b")]).finds(id, Derived, 22, expected),
            // The target is in one of two namespaces.
            case([web(), of("one", "a"), of("other", "b")]),
        ],
    );
    let id = "selector-matches-other-pods";
    let web_in_b = hpa("web", &cpu()).replace("{name: web}", "{name: web, namespace: b}");
    let expected = "the pods of CronJob nightly (web.yaml:18): HPA b/web counts";
    let elsewhere = cron_job("app: web", ", namespace: c");
    assert_cases(
        id,
        vec![
            case([web(), web_in_b.clone(), cron_job("app: web", "")])
                .finds(id, Derived, 5, expected),
            case([web(), web_in_b, elsewhere]),
        ],
    );
}

#[test]
fn selectors_match_the_pods_of_other_workloads() {
    let id = "selector-matches-other-pods";
    let replica_set = |owner: &str| {
        deployment("web-1", "app: web", "app: web")
            .replace("kind: Deployment", "kind: ReplicaSet")
            .replace("{name: web-1}", &format!("{{name: web-1{owner}}}"))
    };
    let owner = ", ownerReferences: [{kind: Deployment, name: web}]";
    assert_cases(
        id,
        vec![
            case([web(), hpa("web", &cpu()), cron_job("app: web, job: nightly", "")]).finds(
                id,
                Derived,
                5,
                "also matches the pods of CronJob nightly (web.yaml:18): HPA web counts",
            ),
            case([web(), hpa("web", READY_COUNT), cron_job("app: web", "")]).finds(
                id,
                Derived,
                5,
                "counts them as well",
            ),
            case([web(), hpa("web", &cpu()), replica_set("")]).finds(
                id,
                Derived,
                5,
                "the pods of ReplicaSet web-1",
            ),
            // Other labels, another namespace, a ReplicaSet of the Deployment itself, and a metric
            // that is divided by the replicas.
            case([web(), hpa("web", &cpu()), cron_job("job: nightly", "")]),
            case([web(), hpa("web", &cpu()), cron_job("app: web", ", namespace: b")]),
            case([web(), hpa("web", &cpu()), replica_set(owner)]),
            case([web(), hpa("web", QUEUE), cron_job("app: web", "")]),
        ],
    );
}

#[test]
fn the_tolerance_hides_steps_of_exact_metrics() {
    let id = "tolerance-hides-step";
    let with = |max: i32, behavior: &str| {
        hpa("web", &format!("{SCHEDULE}\n{behavior}")).replace("20", &max.to_string())
    };
    let exact = "behavior: {scaleUp: {tolerance: 0}, scaleDown: {tolerance: 0}}";
    assert_cases(
        id,
        vec![
            case([web(), with(11, "")]).finds(
                id,
                Assumed,
                16,
                "a step from 10 to 11 replicas is within",
            ),
            // Up to 1.32, a ratio of exactly 1.1 is above the tolerance.
            case([web(), with(12, "")]).release("1.32").finds(id, Assumed, 16, "from 11 to 12"),
            // A scale-down is hidden as well.
            case([web(), with(11, "behavior: {scaleUp: {tolerance: 0}}")]).finds(
                id,
                Assumed,
                16,
                "from 10 to 9",
            ),
            case([web(), hpa("web", QUEUE)]).load("queue=steps(0s:300,5m:330)").finds(
                id,
                Derived,
                16,
                "with the given load of queue, a step from 10 to 11",
            ),
            case([web(), hpa("web", QUEUE)]).load("queue=2 * steps(0s:150,5m:165)").finds(
                id,
                Derived,
                16,
                "a step from 10 to 11",
            ),
            case([web(), with(9, "")]),
            case([web(), with(50, exact)]),
            case([web(), hpa("web", QUEUE)]),
            case([web(), hpa("web", QUEUE)]).load("queue=steps(0s:300,5m:345)"),
            // 60 and 61 messages both need 3 replicas.
            case([web(), hpa("web", QUEUE)]).load("queue=steps(0s:61,5m:62)"),
        ],
    );
}

#[test]
fn policies_without_effect_are_found() {
    let id = "policy-never-binds";
    let with = |behavior: &str| [web(), hpa("web", &format!("{}\nbehavior: {behavior}", cpu()))];
    let up = |policies: &str| with(&format!("{{scaleUp: {{policies: [{policies}]}}}}"));
    let down = |policies: &str| with(&format!("{{scaleDown: {{policies: [{policies}]}}}}"));
    let (one, four) =
        ("{type: Pods, value: 1, periodSeconds: 60}", "{type: Pods, value: 4, periodSeconds: 60}");
    let all = "{type: Percent, value: 100, periodSeconds: 15}";
    let defaults = "{type: Pods, value: 4, periodSeconds: 15}";
    assert_cases(
        id,
        vec![
            case(up(&format!("{one}, {four}"))).finds(
                id,
                Derived,
                17,
                "the policy of 1 pod per 60s has no effect: up to 20 replicas, the policy of 4 \
                 pods per 60s always allows at least as much, and selectPolicy is Max",
            ),
            case(up(&format!("{four}, {four}"))).finds(id, Derived, 17, "has no effect"),
            // With different periods: 100% always allows all pods to be removed.
            case(down(&format!("{four}, {all}"))).finds(
                id,
                Derived,
                17,
                "the policy of 4 pods per 60s has no effect",
            ),
            case(with(&format!("{{scaleDown: {{selectPolicy: Min, policies: [{four}, {all}]}}}}")))
                .finds(id, Derived, 17, "the policy of 100% per 15s has no effect"),
            case(with(&format!("{{scaleDown: {{selectPolicy: Disabled, policies: [{four}]}}}}")))
                .finds(id, Derived, 17, "selectPolicy is Disabled"),
            // The only policy, the default ones, and policies that differ in their periods.
            case(up(four)),
            case(with("{scaleDown: {selectPolicy: Disabled}}")),
            case(up(&format!("{defaults}, {all}"))),
            case(up(&format!("{one}, {defaults}"))),
            case(up(&format!("{all}, {four}"))),
        ],
    );
}

#[test]
fn windows_longer_than_a_period_keep_the_replicas() {
    let id = "window-longer-than-period";
    let with = |behavior: &str| [web(), hpa("web", &format!("{}\n{behavior}", cpu()))];
    let wave = "cpu=total:sine(mean=4,amplitude=2,period=4m)";
    let long_wave = "cpu=total:sine(mean=4,amplitude=2,period=1h)";
    let up = "behavior: {scaleUp: {stabilizationWindowSeconds: 300}, \
              scaleDown: {stabilizationWindowSeconds: 60}}";
    assert_cases(
        id,
        vec![
            case(with("")).load(wave).finds(
                id,
                Derived,
                13,
                "scale-down stabilization window of 5m is",
            ),
            case(with(up)).load(wave).finds(id, Derived, 17, "at the lowest point of each wave"),
            case(with("")).load(long_wave),
            case(with("")).load("cpu=total:4"),
            case(with("behavior: {scaleDown: {selectPolicy: Disabled}}")).load(wave),
            case(with("")).load(wave).release("1.11"),
            case(with("")).load("cpu=total:2 * sine(mean=2,amplitude=1,period=4m) + 1").finds(
                id,
                Derived,
                13,
                "scale-down stabilization window of 5m is",
            ),
            case(with("")).load("cpu=total:sine(mean=4,amplitude=200m,period=4m)"),
            case([web(), hpa("web", &cpu()).replace("maxReplicas: 20", "maxReplicas: 1")])
                .load(wave),
        ],
    );
}

#[test]
fn memory_that_pods_keep_prevents_scale_downs() {
    let id = "memory-never-scales-down";
    let with = || [web(), hpa("web", &memory())];
    let disabled = "behavior: {scaleDown: {selectPolicy: Disabled}}";
    assert_cases(
        id,
        vec![
            case(with()).finds(id, Assumed, 16, "if the pods of Deployment web keep their memory"),
            // 80 Mi are the target; 73 Mi are within the tolerance.
            case(with()).load("memory=100%").finds(id, Derived, 16, "each pod uses 100Mi"),
            case(with()).load("memory=73Mi").finds(id, Derived, 16, "each pod uses 73Mi"),
            case(with()).load("memory=70Mi"),
            case(with()).load("memory=2 * 50Mi").finds(id, Derived, 16, "each pod uses 100Mi"),
            case(with()).load("memory=noise(1%,100Mi)").finds(
                id,
                Derived,
                16,
                "each pod uses at least 99Mi",
            ),
            case(with()).load("memory=csv(a.csv)").finds(id, Assumed, 16, "if the pods of"),
            case(with()).load("memory=total:800Mi"),
            case([web(), hpa("web", &memory()).replace("maxReplicas: 20", "maxReplicas: 1")]),
            case([web(), hpa("web", &format!("{}\n{disabled}", memory()))]),
            case([web(), hpa("web", &cpu())]),
        ],
    );
}

#[test]
fn missing_requests_fail_utilizations() {
    let id = "missing-request";
    let with = |resources: &str| workload("web", "", "app: web", "app: web", resources);
    let range = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: all}\nspec: {limits: [{type: \
                 Container, defaultRequest: {cpu: 100m}}]}\n---\n"
        .to_owned();
    let of_pods =
        |pod: &str| with("").replace("spec: {containers", &format!("spec: {{{pod}, containers"));
    let sidecar = of_pods("initContainers: [{name: side, image: side, restartPolicy: Always}]")
        .replace("resources: {}", "resources: {requests: {cpu: 1}}");
    assert_cases(
        id,
        vec![
            case([with("requests: {memory: 1Gi}"), hpa("web", &cpu())]).finds(
                id,
                Derived,
                8,
                "container app requests no cpu, so HPA web can't scale on the utilization of cpu",
            ),
            case([with("requests: {cpu: '0'}"), hpa("web", &cpu())]).finds(
                id,
                Derived,
                8,
                "the cpu request of the pods of Deployment web is 0, so HPA web can't scale",
            ),
            case([sidecar.clone(), hpa("web", &cpu())]).finds(
                id,
                Derived,
                8,
                "container side requests no",
            ),
            case([with("requests: {cpu: 1}"), hpa("web", SIDECAR)]).finds(
                id,
                Assumed,
                16,
                "has no container side; unless a webhook adds it",
            ),
            case([of_pods("resources: {requests: {memory: 1Gi}}"), hpa("web", &cpu())]).finds(
                id,
                Derived,
                8,
                "neither the pods of Deployment web nor their containers",
            ),
            // A limit becomes the request; sidecars count from 1.29 on.
            case([with("limits: {cpu: 1}"), hpa("web", &cpu())]),
            case([sidecar, hpa("web", &cpu())]).release("1.28"),
            case([with(""), hpa("web", &cpu_average())]),
            case([with(""), range, hpa("web", &cpu())]),
            case([of_pods("resources: {requests: {cpu: 1}}"), hpa("web", &cpu())]),
            case([hpa("web", &cpu())]),
        ],
    );
}

#[test]
fn a_minimum_of_zero_requires_the_gate_in_both_components() {
    let id = "min-zero-without-gate";
    let zero = || [web(), hpa("web", &format!("minReplicas: 0\n{QUEUE}"))];
    let stored = || zero().map(|it| it.replace("{name: web}", "{name: web, uid: 1f2e}"));
    let gate = "HPAScaleToZero";
    assert_cases(
        id,
        vec![
            case(zero()).release("1.36").finds(
                id,
                Derived,
                16,
                "1.36 rejects HPA web with minReplicas 0: the feature gate HPAScaleToZero is off",
            ),
            case(zero()).release("1.15").finds(id, Derived, 16, "this release can't scale to zero"),
            case(zero()).controller_gate(gate, false).finds(
                id,
                Derived,
                16,
                "scales Deployment web to 0 and never back",
            ),
            case(zero()),
            case(stored()).release("1.35"),
            case([web(), hpa("web", &format!("minReplicas: 1\n{QUEUE}"))]).release("1.36"),
        ],
    );
}

#[test]
fn a_vpa_acts_against_an_hpa_on_the_same_utilization() {
    let id = "vpa-on-hpa-metric";
    assert_cases(
        id,
        vec![
            case([web(), hpa("web", &cpu()), vpa("Recreate", "cpu, memory")]).finds(
                id,
                Derived,
                16,
                "VPA web changes the cpu requests of the pods that HPA web scales",
            ),
            case([hpa("web", &cpu()), vpa("Initial", "cpu")]).finds(
                id,
                Derived,
                7,
                "VPA web changes",
            ),
            case([web(), hpa("web", &cpu()), vpa("\"Off\"", "cpu, memory")]),
            case([web(), hpa("web", &cpu()), vpa("Recreate", "memory")]),
            case([web(), hpa("web", &cpu_average()), vpa("Recreate", "cpu")]),
            case([web(), hpa_of("api", "api", &cpu()), vpa("Recreate", "cpu")]),
        ],
    );
}

#[test]
fn rules_have_ids_in_order_and_complete_texts() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let sorted: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids, Vec::from_iter(sorted));
    for rule in RULES {
        assert!(rule.id.chars().all(|it| it.is_ascii_lowercase() || it == '-'), "{}", rule.id);
        assert!(rule.link.starts_with("https://"), "{}", rule.id);
        for text in [rule.summary, rule.reason] {
            assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", rule.id);
        }
    }
}
