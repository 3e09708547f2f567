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
use kube_lockstep::engine::embedded::Options;
use kube_lockstep::model::flags::Flags;
use kube_lockstep::model::time::Span;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::{LIMIT, Place, said};

/// The names of the binding, the role and the user.
const NAME: &str = "kube-lockstep";

/// The manifest; the suite `tidy` holds it against the one in the docs.
const MANIFEST: &str = include_str!("../../src/engine/cluster/access/role.json");

/// The number of runs without a right until one names it.
const ATTEMPTS: usize = 3;

/// The number of clusters that take turns.
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
struct Right {
    group: String,
    /// With its subresource.
    resource: String,
    verb: String,
    /// The only object, if the rule names objects.
    name: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Right { group, resource, verb, name } = self;
        write!(f, "{verb} {resource}")?;
        let group = Some(group).filter(|group| !group.is_empty());
        group.map_or(Ok(()), |group| write!(f, ".{group}"))?;
        name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl Right {
    /// Whether a message of the API server says that it is missing.
    fn is_refused_in(&self, text: &str) -> bool {
        let Right { group, resource, verb, .. } = self;
        text.contains(&format!("cannot {verb} resource \"{resource}\" in API group \"{group}\""))
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The rights of a rule.
fn rights_of(rule: &Value) -> Vec<Right> {
    let names = match &rule["resourceNames"] {
        Value::Null => vec![None],
        names => texts(names).into_iter().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                rights.extend(names.iter().map(|name| Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    name: name.clone(),
                }));
            }
        }
    }
    rights
}

fn manifest() -> Result<Value, Failed> {
    Ok(serde_json::from_str(MANIFEST)?)
}

fn rules(manifest: &Value) -> impl Iterator<Item = &Value> {
    manifest["rules"].as_array().into_iter().flatten()
}

/// A cluster whose API server connects to endpoints only, which requires the most objects.
fn place_with_routing(options: Options) -> Result<Place, Failed> {
    let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
    let mut options = Options { flags, ..options };
    options.api_server.push("enable-aggregator-routing=true".to_owned());
    Ok(Place::start(&options)?)
}

/// Scenarios that together require all rights: a target of each kind, which a person scales; pods
/// that terminate, that a person deletes, and that belong to no target; an HPA of each version,
/// which is edited, deleted and created again; metrics of each API.
fn scenarios(place: &Place) -> Result<Vec<String>, Failed> {
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
        let path = place.folder.path().join(format!("{kind}.yaml"));
        let text = format!(
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n\
             requirement: All rights are used.\nupstream: https://kubernetes.io\n\
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

/// The rights that the API server granted to the user, and its refusals, by its audit log.
fn used(log: &str) -> Result<(BTreeSet<Right>, BTreeSet<String>), Failed> {
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
            assert!(object.is_null(), "a right of another role: {event}");
        } else {
            let subresource = Some(text("subresource")).filter(|it| !it.is_empty());
            let resource = [Some(text("resource")), subresource].into_iter().flatten();
            used.insert(Right {
                group: text("apiGroup"),
                resource: resource.collect::<Vec<_>>().join("/"),
                verb: event["verb"].as_str().unwrap_or_default().to_owned(),
                name: Some(text("name")),
            });
        }
    }
    Ok((used, refused))
}

/// The audit log of runs that conform shows each right of the manifest, and no refusal.
pub(super) fn each_is_used(_: &Arc<Place>) -> Result<(), Failed> {
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
    let place = place_with_routing(Options { api_server, ..Options::default() })?;
    let scenarios = scenarios(&place)?;
    let scenarios: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let run = |args: &[&str]| {
        let output = place.run(&[args, &scenarios].concat())?;
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        place.is_clean()
    };
    run(&[])?;
    create_metrics_apis(&place)?;
    run(&["--replace-metrics-api"])?;
    let (used, refused) = used(&fs::read_to_string(&log)?)?;
    assert!(refused.is_empty(), "refused: {refused:#?}");
    let manifest = manifest()?;
    let granted: BTreeSet<Right> = rules(&manifest).flat_map(rights_of).collect();
    let is_use = |granted: &Right, used: &Right| {
        let name = granted.name.clone().or_else(|| used.name.clone());
        Right { name, ..granted.clone() } == *used
    };
    let unused = granted.iter().filter(|right| !used.iter().any(|used| is_use(right, used)));
    let unused: Vec<String> = unused.map(Right::to_string).collect();
    assert!(unused.is_empty(), "rights of the manifest that no run uses: {unused:#?}");
    Ok(())
}

/// Metrics APIs of someone else, whose namespaces the API server can remove.
fn create_metrics_apis(place: &Place) -> Result<(), Failed> {
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
        place.runtime.block_on(place.api_services().create(&PostParams::default(), &api))?;
    }
    Ok(())
}

fn delete_metrics_apis(place: &Place) -> Result<(), Failed> {
    for (group, version) in METRICS_APIS {
        let name = format!("{version}.{group}");
        place.runtime.block_on(place.api_services().delete(&name, &Default::default()))?;
    }
    Ok(())
}

/// Replaces the rules of the role, and waits until the API server follows them: a right of its own
/// tells one version from the next.
fn grant(place: &Place, mut rules: Vec<Value>, version: usize) -> Result<(), Failed> {
    let roles = place.api("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let mut role = place.runtime.block_on(roles.get(NAME))?;
    let verb = format!("version-{version}");
    rules.push(json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] }));
    role.data["rules"] = rules.into();
    place.runtime.block_on(roles.replace(NAME, &Default::default(), &role))?;
    let review = serde_json::from_value(json!({
        "spec": { "user": NAME, "resourceAttributes": { "resource": "pods", "verb": verb } },
    }))?;
    let reviews: kube::Api<k8s_openapi::api::authorization::v1::SubjectAccessReview> =
        kube::Api::all(place.admin.clone());
    let begin = Instant::now();
    loop {
        let answer = place.runtime.block_on(reviews.create(&PostParams::default(), &review))?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        assert!(begin.elapsed() < LIMIT, "the role does not change");
        sleep(Duration::from_millis(10));
    }
}

/// Without any one of the rights, a run does not end well, and says which right it lacks.
pub(super) fn each_is_needed(_: &Arc<Place>) -> Result<(), Failed> {
    let manifest = manifest()?;
    let all: Vec<Value> = rules(&manifest).cloned().collect();
    // A verb of a resource, for all objects that the rule names.
    let mut rights: Vec<(usize, Right)> = (all.iter().enumerate())
        .flat_map(|(rule, it)| rights_of(it).into_iter().map(move |right| (rule, right)))
        .map(|(rule, right)| (rule, Right { name: None, ..right }))
        .collect();
    rights.dedup();
    let (routed, others): (Vec<_>, Vec<_>) =
        rights.into_iter().partition(|(_, right)| right.resource.starts_with("endpoint"));
    assert!(!routed.is_empty() && others.len() > 30, "{routed:?} {others:?}");
    let others = Mutex::new(others.into_iter());
    let next = || others.lock().unwrap_or_else(PoisonError::into_inner).next();
    let test = |place: Result<Place, Failed>, first: Vec<(usize, Right)>| {
        let place = place?;
        let scenarios = scenarios(&place)?;
        let mut wrong = Vec::new();
        for (version, (rule, right)) in
            first.into_iter().chain(std::iter::from_fn(next)).enumerate()
        {
            grant(&place, without(&all, rule, &right), 2 * version)?;
            if let Err(why) = is_missed(&place, &right, &scenarios) {
                wrong.push(format!("{right}: {}", why.message().unwrap_or_default()));
            }
            grant(&place, all.clone(), 2 * version + 1)?;
            if place.is_clean().is_err() {
                place.command(&["cluster", "clean"]).output()?;
                place.becomes_clean()?;
            }
        }
        Ok::<_, Failed>(wrong)
    };
    let results: Vec<_> = std::thread::scope(|threads| {
        let routed = threads.spawn(|| test(place_with_routing(Options::default()), routed));
        let usual = || test(Place::new(Flags::default()).map_err(Failed::from), Vec::new());
        let usual = [(); CLUSTERS - 1].map(|()| threads.spawn(usual));
        let all = [routed].into_iter().chain(usual);
        all.map(|thread| thread.join().expect("no panic")).collect()
    });
    let wrong: Vec<Vec<String>> = results.into_iter().collect::<Result<_, _>>()?;
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The rules without a right of one of them.
fn without(rules: &[Value], rule: usize, right: &Right) -> Vec<Value> {
    let rest = |list: &Value, without: &str| {
        json!(texts(list).into_iter().filter(|it| it != without).collect::<Vec<_>>())
    };
    let mut rules = rules.to_vec();
    let (mut others, mut less) = (rules[rule].clone(), rules[rule].clone());
    others["resources"] = rest(&others["resources"], &right.resource);
    less["resources"] = json!([right.resource]);
    less["verbs"] = rest(&less["verbs"], &right.verb);
    rules.splice(rule..=rule, [others, less]);
    rules.retain(|rule| rule["resources"] != json!([]) && rule["verbs"] != json!([]));
    rules
}

fn is_missed(place: &Place, right: &Right, scenarios: &[String]) -> Result<(), Failed> {
    let [deployment, replica_set, stateful_set, controller] = scenarios else {
        return Err("four scenarios".into());
    };
    let replaces = right.resource == "apiservices" && right.verb == "update";
    let scenario = match (&*right.resource, &*right.verb) {
        ("horizontalpodautoscalers", "get") => replica_set,
        (resource, _) if resource.starts_with("replicasets") => replica_set,
        (resource, _) if resource.starts_with("statefulsets") => stateful_set,
        (resource, _) if resource.starts_with("replicationcontrollers") => controller,
        _ => deployment,
    };
    let mut args = vec![scenario.as_str()];
    if replaces {
        create_metrics_apis(place)?;
        args.push("--replace-metrics-api");
    }
    let mut result = Ok(());
    // A busy machine can end a run before it gets to the right.
    for _ in 0..ATTEMPTS {
        result = names_right(&place.run(&args)?, right)?;
        if result.is_ok() {
            break;
        }
    }
    if replaces {
        delete_metrics_apis(place)?;
    }
    Ok(result?)
}

/// Whether a run says that it lacks a right. It must not succeed.
fn names_right(output: &Output, right: &Right) -> Result<Result<(), String>, Failed> {
    let text = said(output);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if output.status.success() {
        return Err(format!("the run succeeds without it: {text}").into());
    }
    Ok(match right.is_refused_in(&text) {
        true => Ok(()),
        false => Err(format!("the run does not name it: {text}")),
    })
}
