//! The permissions of the RBAC manifest: runs use each of them and no other one, and a run without
//! one of them fails and names it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::process::Output;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, PostParams};
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::time::Span;
use kube_lockstep_clusters::embedded::Options;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::{TIMEOUT, TestCluster, text_of};

/// The names of the binding, the role and the user.
const NAME: &str = "kube-lockstep";

/// The manifest; the suite `tidy` compares it with the one in the docs.
const MANIFEST: &str = include_str!("../../../crates/clusters/src/cluster/access/role.json");

/// The number of attempts until a run names a missing permission.
const ATTEMPTS: usize = 3;

/// The number of clusters that are used concurrently.
const CLUSTERS: usize = 4;

/// The APIServices of the metrics APIs: group and version.
const METRICS_APIS: [(&str, &str); 4] = [
    ("metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
];

/// One verb of one resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Permission {
    group: String,
    /// The resource, with its subresource.
    resource: String,
    verb: String,
    /// The only object, if the rule names objects.
    name: Option<String>,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permission { group, resource, verb, name } = self;
        write!(f, "{verb} {resource}")?;
        let group = Some(group).filter(|group| !group.is_empty());
        group.map_or(Ok(()), |group| write!(f, ".{group}"))?;
        name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl Permission {
    /// Returns true if `text` contains a refusal of this permission by the API server.
    fn is_refused_in(&self, text: &str) -> bool {
        let Permission { group, resource, verb, .. } = self;
        text.contains(&format!("cannot {verb} resource \"{resource}\" in API group \"{group}\""))
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The permissions of a rule.
fn permissions_of(rule: &Value) -> Vec<Permission> {
    let names = match &rule["resourceNames"] {
        Value::Null => vec![None],
        names => texts(names).into_iter().map(Some).collect(),
    };
    let mut permissions = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                permissions.extend(names.iter().map(|name| Permission {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    name: name.clone(),
                }));
            }
        }
    }
    permissions
}

fn manifest() -> Result<Value, Failed> {
    Ok(serde_json::from_str(MANIFEST)?)
}

fn rules(manifest: &Value) -> impl Iterator<Item = &Value> {
    manifest["rules"].as_array().into_iter().flatten()
}

/// A cluster whose API server connects to endpoints only, which requires the most objects.
fn cluster_with_routing(options: Options) -> Result<TestCluster, Failed> {
    let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
    let mut options = Options { flags, ..options };
    options.api_server.push("enable-aggregator-routing=true".to_owned());
    Ok(TestCluster::start(&options)?)
}

/// Scenarios that together require all permissions: a target of each kind, which a user scales;
/// pods that terminate, that a user deletes, and that belong to no target; an HPA of each version,
/// which is edited, deleted and created again; metrics of each API.
fn scenarios(cluster: &TestCluster) -> Result<Vec<String>, Failed> {
    const AVERAGE: &str = "target: {type: AverageValue, averageValue: 100}";
    let resource = format!("{{type: Resource, resource: {{name: memory, {AVERAGE}}}}}");
    let pods = format!("{{type: Pods, pods: {{metric: {{name: rps}}, {AVERAGE}}}}}");
    let external = format!("{{type: External, external: {{metric: {{name: queue}}, {AVERAGE}}}}}");
    let v2 = |metrics: &str| ("v2", format!("metrics: [{metrics}]"));
    let all = [
        ("apps/v1", "Deployment", v2(&format!("{resource}, {pods}, {external}"))),
        ("apps/v1", "ReplicaSet", ("v1", "targetCPUUtilizationPercentage: 50".to_owned())),
        ("apps/v1", "StatefulSet", v2(&resource)),
        ("v1", "ReplicationController", v2(&resource)),
    ];
    let write = |(api, kind, (version, metrics)): (&str, &str, (&str, String))| {
        let is_deployment = kind == "Deployment";
        let more =
            if is_deployment { "otherPods: [{name: other, labels: {app: web}}]\n" } else { "" };
        let actions = match is_deployment {
            false => "",
            true => {
                ", {at: 20s, podsDeleted: \"0\"}, {at: 26s, editHpa: {spec: {maxReplicas: 9}}}, \
                 {at: 33s, deleteHpa: {}}, {at: 36s, createHpa: {}}"
            }
        };
        let path = cluster.folder.path().join(format!("{kind}.yaml"));
        let text = format!(
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n\
             requirement: All permissions are used.\nupstream: https://kubernetes.io\n\
             hpa:\n  apiVersion: autoscaling/{version}\n  kind: HorizontalPodAutoscaler\n  \
             metadata: {{name: web}}\n  spec:\n    \
             scaleTargetRef: {{apiVersion: {api}, kind: {kind}, name: web}}\n    \
             maxReplicas: 10\n    {metrics}\n\
             workload: {{replicas: 3, termination: 20s, containers: [{{name: app, requests: \
             {{cpu: 1, memory: 1Gi}}}}]}}\n{more}\
             metrics:\n  resource: [{{name: cpu, perPod: 500m}}, {{name: memory, perPod: 100}}]\n  \
             pods: [{{name: rps, perPod: 100}}]\n  external: [{{name: queue, value: 100}}]\n\
             timeline: [{{at: 10s, scale: 5}}{actions}]\nuntil: 50s\n"
        );
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    all.into_iter().map(write).collect()
}

/// The permissions that the API server granted to the user, and its refusals, according to its
/// audit log.
fn used(log: &str) -> Result<(BTreeSet<Permission>, BTreeSet<String>), Failed> {
    let (mut used, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        let object = &event["objectRef"];
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let annotation = |name: &str| event["annotations"][name].as_str().unwrap_or_default();
        let by_role = annotation("authorization.k8s.io/reason").contains(&format!("\"{NAME}\""));
        if annotation("authorization.k8s.io/decision") != "allow" {
            refused.insert(format!("{} {}", event["verb"], event["requestURI"]));
        } else if !by_role {
            // Every user may discover the APIs.
            assert!(object.is_null(), "a permission of another role: {event}");
        } else {
            let subresource = Some(text("subresource")).filter(|it| !it.is_empty());
            let resource = [Some(text("resource")), subresource].into_iter().flatten();
            used.insert(Permission {
                group: text("apiGroup"),
                resource: resource.collect::<Vec<_>>().join("/"),
                verb: event["verb"].as_str().unwrap_or_default().to_owned(),
                name: Some(text("name")),
            });
        }
    }
    Ok((used, refused))
}

/// The audit log of runs that conform shows each permission of the manifest, and no refusal.
pub(super) fn each_is_used(_: &Arc<TestCluster>) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    let levels = json!([{ "level": "Metadata", "users": [NAME] }, { "level": "None" }]);
    let text = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        // Requests are logged once they are authorized.
        "omitStages": ["RequestReceived"],
        "rules": levels,
    });
    fs::write(&policy, text.to_string())?;
    let api_server = vec![
        format!("audit-policy-file={}", policy.display()),
        format!("audit-log-path={}", log.display()),
        "audit-log-mode=blocking".to_owned(),
    ];
    let cluster = cluster_with_routing(Options { api_server, ..Options::default() })?;
    let scenarios = scenarios(&cluster)?;
    let scenarios: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let run = |args: &[&str]| {
        let output = cluster.run(&[args, &scenarios].concat())?;
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        cluster.check_clean()
    };
    run(&[])?;
    create_metrics_apis(&cluster)?;
    run(&["--replace-metrics-api"])?;
    let (used, refused) = used(&fs::read_to_string(&log)?)?;
    assert!(refused.is_empty(), "refused: {refused:#?}");
    let manifest = manifest()?;
    let granted: BTreeSet<Permission> = rules(&manifest).flat_map(permissions_of).collect();
    let is_use = |granted: &Permission, used: &Permission| {
        let name = granted.name.clone().or_else(|| used.name.clone());
        Permission { name, ..granted.clone() } == *used
    };
    let unused =
        granted.iter().filter(|permission| !used.iter().any(|used| is_use(permission, used)));
    let unused: Vec<String> = unused.map(Permission::to_string).collect();
    assert!(unused.is_empty(), "permissions of the manifest that no run uses: {unused:#?}");
    Ok(())
}

/// Registers foreign metrics APIs without a Service: with these, the API server still removes
/// namespaces.
fn create_metrics_apis(cluster: &TestCluster) -> Result<(), Failed> {
    for (group, version) in METRICS_APIS {
        let api: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": { "name": format!("{version}.{group}") },
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        }))?;
        cluster.runtime.block_on(cluster.api_services().create(&PostParams::default(), &api))?;
    }
    Ok(())
}

fn delete_metrics_apis(cluster: &TestCluster) -> Result<(), Failed> {
    for (group, version) in METRICS_APIS {
        let name = format!("{version}.{group}");
        cluster.runtime.block_on(cluster.api_services().delete(&name, &Default::default()))?;
    }
    Ok(())
}

/// Replaces the rules of the role, and waits until the API server applies them. An extra permission
/// identifies each version.
fn grant(cluster: &TestCluster, mut rules: Vec<Value>, version: usize) -> Result<(), Failed> {
    let roles = cluster.api("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let mut role = cluster.runtime.block_on(roles.get(NAME))?;
    let verb = format!("version-{version}");
    rules.push(json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] }));
    role.data["rules"] = rules.into();
    cluster.runtime.block_on(roles.replace(NAME, &Default::default(), &role))?;
    let review = serde_json::from_value(json!({
        "spec": { "user": NAME, "resourceAttributes": { "resource": "pods", "verb": verb } },
    }))?;
    let reviews: kube::Api<k8s_openapi::api::authorization::v1::SubjectAccessReview> =
        kube::Api::all(cluster.admin.clone());
    let begin = Instant::now();
    loop {
        let answer = cluster.runtime.block_on(reviews.create(&PostParams::default(), &review))?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        assert!(begin.elapsed() < TIMEOUT, "the role does not change");
        sleep(Duration::from_millis(10));
    }
}

/// Without one of the permissions, a run fails and names that permission.
pub(super) fn each_is_needed(_: &Arc<TestCluster>) -> Result<(), Failed> {
    let manifest = manifest()?;
    let all: Vec<Value> = rules(&manifest).cloned().collect();
    // A verb of a resource, for all objects that the rule names.
    let mut permissions: Vec<(usize, Permission)> = (all.iter().enumerate())
        .flat_map(|(rule, it)| {
            permissions_of(it).into_iter().map(move |permission| (rule, permission))
        })
        .map(|(rule, permission)| (rule, Permission { name: None, ..permission }))
        .collect();
    permissions.dedup();
    let (routed, others): (Vec<_>, Vec<_>) = permissions
        .into_iter()
        .partition(|(_, permission)| permission.resource.starts_with("endpoint"));
    assert!(!routed.is_empty() && others.len() > 30, "{routed:?} {others:?}");
    let others = Mutex::new(others.into_iter());
    let next = || others.lock().unwrap_or_else(PoisonError::into_inner).next();
    let test = |cluster: Result<TestCluster, Failed>, first: Vec<(usize, Permission)>| {
        let cluster = cluster?;
        let scenarios = scenarios(&cluster)?;
        let mut wrong = Vec::new();
        for (version, (rule, permission)) in
            first.into_iter().chain(std::iter::from_fn(next)).enumerate()
        {
            grant(&cluster, without(&all, rule, &permission), 2 * version)?;
            if let Err(why) = check_without(&cluster, &permission, &scenarios) {
                wrong.push(format!("{permission}: {}", why.message().unwrap_or_default()));
            }
            grant(&cluster, all.clone(), 2 * version + 1)?;
            if cluster.check_clean().is_err() {
                cluster.command(&["cluster", "clean"]).output()?;
                cluster.wait_until_clean()?;
            }
        }
        Ok::<_, Failed>(wrong)
    };
    let results: Vec<_> = std::thread::scope(|threads| {
        let routed = threads.spawn(|| test(cluster_with_routing(Options::default()), routed));
        let default_cluster =
            || test(TestCluster::new(Flags::default()).map_err(Failed::from), Vec::new());
        let default_clusters = [(); CLUSTERS - 1].map(|()| threads.spawn(default_cluster));
        let all = [routed].into_iter().chain(default_clusters);
        all.map(|thread| thread.join().expect("no panic")).collect()
    });
    let wrong: Vec<Vec<String>> = results.into_iter().collect::<Result<_, _>>()?;
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The rules without one permission of one rule.
fn without(rules: &[Value], rule: usize, permission: &Permission) -> Vec<Value> {
    let rest = |list: &Value, without: &str| {
        json!(texts(list).into_iter().filter(|it| it != without).collect::<Vec<_>>())
    };
    let mut rules = rules.to_vec();
    let (mut others, mut reduced) = (rules[rule].clone(), rules[rule].clone());
    others["resources"] = rest(&others["resources"], &permission.resource);
    reduced["resources"] = json!([permission.resource]);
    reduced["verbs"] = rest(&reduced["verbs"], &permission.verb);
    rules.splice(rule..=rule, [others, reduced]);
    rules.retain(|rule| rule["resources"] != json!([]) && rule["verbs"] != json!([]));
    rules
}

fn check_without(
    cluster: &TestCluster,
    permission: &Permission,
    scenarios: &[String],
) -> Result<(), Failed> {
    let [deployment, replica_set, stateful_set, controller] = scenarios else {
        return Err("four scenarios".into());
    };
    let replaces = permission.resource == "apiservices" && permission.verb == "update";
    let scenario = match (&*permission.resource, &*permission.verb) {
        ("horizontalpodautoscalers", "get") => replica_set,
        (resource, _) if resource.starts_with("replicasets") => replica_set,
        (resource, _) if resource.starts_with("statefulsets") => stateful_set,
        (resource, _) if resource.starts_with("replicationcontrollers") => controller,
        _ => deployment,
    };
    let mut args = vec![scenario.as_str()];
    if replaces {
        create_metrics_apis(cluster)?;
        args.push("--replace-metrics-api");
    }
    let mut result = Ok(());
    // On a busy machine, a run can end before it uses the permission.
    for _ in 0..ATTEMPTS {
        result = names_permission(&cluster.run(&args)?, permission)?;
        if result.is_ok() {
            break;
        }
    }
    if replaces {
        delete_metrics_apis(cluster)?;
    }
    Ok(result?)
}

/// Checks that a run names a missing permission. The outer error: the run succeeded.
fn names_permission(
    output: &Output,
    permission: &Permission,
) -> Result<Result<(), String>, Failed> {
    let text = text_of(output);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if output.status.success() {
        return Err(format!("the run succeeds without the permission: {text}").into());
    }
    Ok(match permission.is_refused_in(&text) {
        true => Ok(()),
        false => Err(format!("the run does not name the permission: {text}")),
    })
}
