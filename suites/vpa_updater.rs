//! The simulated updater and admission controller of the VPA, compared with upstream's code.
//!
//! A small Go program (`upstream/updater`) hosts upstream's updater and admission controller. The
//! suite generates clusters, and requires that the simulation evicts and resizes the same pods in
//! the same order, and gives new pods the same requests. Requires Go; without it, the tests are
//! reported as ignored.

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use kube_lockstep::engine::CancellationToken;
use kube_lockstep::engine::upstream::build::{self, Artifact};
use kube_lockstep::model::api::{Container, PodSpec, Requests};
use kube_lockstep::model::quantity::Quantity;
use kube_lockstep::model::rules::VpaRelease;
use kube_lockstep::model::time::{Span, Time};
use kube_lockstep::model::vpa::admission::{Limits, admitted};
use kube_lockstep::model::vpa::updater::{
    KilledContainer, LivePod, PodUpdate, Updater, UpdaterFlags,
};
use kube_lockstep::model::vpa::{
    ChangeRequirement, ContainerPolicy, ContainerRecommendation, ControlledValues,
    EvictionRequirement, ObjectName, Recommendation, ResourceList, ResourcePolicy, ScalingMode,
    TargetRef, UpdatePolicy, VerticalPodAutoscaler, VpaMetadata, VpaSpec, VpaStatus,
};
use libtest_mimic::Failed;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Reason, TestRunner};
use serde_json::{Value, json};
use support::trials::Suite;

/// The number of updaters, each with flags of its own, and the number of clusters that each sees.
const UPDATERS: usize = 40;
const CASES: usize = 100;

/// The time of the run in the model. All other times are multiples of ten seconds before it, so
/// that the fraction of a second by which upstream runs later does not matter.
const NOW: Time = Time::from_secs(1_000_000);

fn main() -> ExitCode {
    let mut suite = Suite::one_at_a_time("vpa_updater");
    let has_updater = |release: &VpaRelease| build::supports(Artifact::Updater, *release);
    for release in VpaRelease::supported().filter(has_updater) {
        let program = suite.require(&format!("the updater of {release}"), || {
            build::ensure(Artifact::Updater, release, &CancellationToken::new(), &mut |_, _| {})
        });
        let name = format!("the_simulation_does_what_upstream_does::{release}");
        suite.test_with(&program, &name, |program| compare_all(&program));
        let name = format!("a_fault_of_the_simulation_is_noticed::{release}");
        suite.test_with(&program, &name, |program| notices_faults(&program));
    }
    suite.run()
}

/// The updater of a run, and the clusters that it sees.
#[derive(Clone, Debug)]
struct Batch {
    flags: UpdaterFlags,
    per_vpa_config: bool,
    resizes: bool,
    cases: Vec<Case>,
}

/// A cluster.
#[derive(Clone, Debug)]
struct Case {
    vpa: VerticalPodAutoscaler,
    limits: Limits,
    pods: Vec<LivePod>,
    replicas: BTreeMap<u32, i64>,
}

/// Generated clusters with the answers of upstream.
struct Observed {
    batches: Vec<Batch>,
    answers: Vec<Value>,
}

impl Observed {
    fn of(program: &Path) -> Result<Observed, Failed> {
        let mut runner = TestRunner::deterministic();
        let batches: Vec<Batch> = (0..UPDATERS)
            .map(|_| Ok(batch().new_tree(&mut runner)?.current()))
            .collect::<Result<_, Reason>>()
            .map_err(|reason| reason.to_string())?;
        let answers = ask(program, &batches)?;
        if answers.len() != batches.len() {
            return Err("an updater has no answer".into());
        }
        Ok(Observed { batches, answers })
    }

    /// Compares upstream with a simulation on all clusters.
    fn compare(
        &self,
        simulate: impl Fn(&Updater<'_>, &[LivePod]) -> Vec<PodUpdate>,
    ) -> Result<Seen, Failed> {
        let mut seen = Seen::default();
        for (batch, answer) in self.batches.iter().zip(&self.answers) {
            let answers = answer["cases"].as_array().ok_or("the answer has no cases")?;
            if answers.len() != batch.cases.len() {
                return Err("a cluster has no answer".into());
            }
            for (case, answer) in batch.cases.iter().zip(answers) {
                compare_updates(batch, case, &answer["updates"], &simulate, &mut seen)?;
                compare_admission(case, &answer["admissions"], &mut seen)?;
            }
        }
        Ok(seen)
    }
}

fn compare_all(program: &Path) -> Result<(), Failed> {
    let seen = Observed::of(program)?.compare(|updater, pods| updater.run_once(pods))?;
    // The generated clusters must reach what the suite is about.
    for (what, count) in [
        ("evictions", seen.evictions),
        ("resizes", seen.resizes),
        ("clusters without an update", seen.idle),
        ("pods that admission changes", seen.admitted),
        ("pods that admission does not change", seen.unchanged),
    ] {
        if count < 100 {
            return Err(format!("only {count} {what}").into());
        }
    }
    Ok(())
}

/// Each of these faults must be found, or the clusters are too simple.
fn notices_faults(program: &Path) -> Result<(), Failed> {
    type Fault = fn(&Updater<'_>, &[LivePod]) -> Vec<PodUpdate>;
    let faults: [(&str, Fault); 4] = [
        ("thresholds that are a tenth of a second longer", |updater, pods| {
            let now = updater.now + Span::from_millis(-100);
            Updater { now, ..updater.clone() }.run_once(pods)
        }),
        ("one replica more", |updater, pods| {
            let more = |(group, count): (&u32, &i64)| (*group, *count + 1);
            let replicas = updater.replicas.iter().map(more).collect();
            Updater { replicas: &replicas, ..updater.clone() }.run_once(pods)
        }),
        ("containers without limits", |updater, pods| {
            Updater { limits: &Limits::new(), ..updater.clone() }.run_once(pods)
        }),
        ("the opposite order", |updater, pods| updater.run_once(pods).into_iter().rev().collect()),
    ];
    let observed = Observed::of(program)?;
    for (name, fault) in faults {
        if observed.compare(fault).is_ok() {
            return Err(format!("no cluster shows the fault: {name}").into());
        }
    }
    Ok(())
}

/// What the compared clusters have shown.
#[derive(Default)]
struct Seen {
    evictions: usize,
    resizes: usize,
    idle: usize,
    admitted: usize,
    unchanged: usize,
}

fn compare_updates(
    batch: &Batch,
    case: &Case,
    answer: &Value,
    simulate: impl Fn(&Updater<'_>, &[LivePod]) -> Vec<PodUpdate>,
    seen: &mut Seen,
) -> Result<(), Failed> {
    let updater = Updater {
        vpa: &case.vpa,
        flags: &batch.flags,
        limits: &case.limits,
        resizes: batch.resizes,
        replicas: &case.replicas,
        per_vpa_config: batch.per_vpa_config,
        now: NOW,
    };
    let upstream = updates_of(answer)?;
    seen.idle += usize::from(upstream.is_empty());
    for update in &upstream {
        match update {
            PodUpdate::Evict(_) => seen.evictions += 1,
            PodUpdate::InPlace(_) => seen.resizes += 1,
        }
    }
    // Upstream lists the pods in a random order, which decides between pods of equal priority.
    if orders(&case.pods).any(|pods| simulate(&updater, &pods) == upstream) {
        return Ok(());
    }
    let simulated = simulate(&updater, &case.pods);
    let Batch { flags, per_vpa_config, resizes, .. } = batch;
    Err(format!(
        "upstream: {upstream:?}\nsimulation: {simulated:?}\n{flags:?}\nPerVPAConfig: \
         {per_vpa_config}, resizes: {resizes}\n{case:#?}"
    )
    .into())
}

/// All orders of the pods, beginning with the given one.
fn orders(pods: &[LivePod]) -> Box<dyn Iterator<Item = Vec<LivePod>> + '_> {
    if pods.len() < 2 {
        return Box::new(std::iter::once(pods.to_vec()));
    }
    Box::new((0..pods.len()).flat_map(move |first| {
        let rest: Vec<LivePod> = [&pods[..first], &pods[first + 1..]].concat();
        let tails: Vec<Vec<LivePod>> = orders(&rest).collect();
        tails.into_iter().map(move |tail| [&pods[first..=first], &tail].concat())
    }))
}

fn updates_of(answer: &Value) -> Result<Vec<PodUpdate>, Failed> {
    let ordinal = |name: &Value| {
        let number = name.as_str().and_then(|name| name.strip_prefix("web-"));
        number.and_then(|number| number.parse().ok())
    };
    let update = |update: &Value| {
        let evicted = ordinal(&update["evict"]).map(PodUpdate::Evict);
        evicted.or_else(|| ordinal(&update["resize"]).map(PodUpdate::InPlace))
    };
    let updates = answer.as_array().into_iter().flatten();
    updates.map(|it| update(it).ok_or_else(|| format!("not an update: {it}").into())).collect()
}

/// Compares the requests that pods get when they are created.
fn compare_admission(case: &Case, answer: &Value, seen: &mut Seen) -> Result<(), Failed> {
    for (pod, patches) in case.pods.iter().zip(answer.as_array().into_iter().flatten()) {
        let simulated = admitted(&case.vpa, &pod.spec, &case.limits);
        match simulated {
            Some(_) => seen.admitted += 1,
            None => seen.unchanged += 1,
        }
        let simulated = texts(&simulated.unwrap_or_else(|| (*pod.spec).clone()));
        let upstream = patched(&pod.spec, patches)?;
        if simulated != upstream {
            let vpa = &case.vpa;
            return Err(format!(
                "upstream: {upstream:?}\nsimulation: {simulated:?}\n{:#?}\n{:#?}\n{vpa:#?}",
                pod.spec, case.limits
            )
            .into());
        }
    }
    Ok(())
}

/// The requests of containers, as text.
type Texts = Vec<BTreeMap<String, String>>;

fn texts(spec: &PodSpec) -> Texts {
    let requests = spec.containers.iter().map(|container| container.requests.iter());
    requests
        .map(|requests| requests.map(|(name, it)| (name.to_string(), it.to_string())).collect())
        .collect()
}

/// The requests of a pod with the patches of the admission controller.
fn patched(spec: &PodSpec, patches: &Value) -> Result<Texts, Failed> {
    let mut requests = texts(spec);
    for patch in patches.as_array().into_iter().flatten() {
        let path = patch["path"].as_str().ok_or("a patch has a path")?;
        let Some(path) = path.strip_prefix("/spec/containers/") else { continue };
        let Some((container, resource)) = path.split_once("/resources/requests/") else { continue };
        let amount = patch["value"].as_str().ok_or("a patch has an amount")?;
        requests[container.parse::<usize>()?].insert(resource.to_owned(), amount.to_owned());
    }
    Ok(requests)
}

/// The answers of upstream.
fn ask(program: &Path, batches: &[Batch]) -> Result<Vec<Value>, Failed> {
    let mut process = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = process.stdin.take().ok_or("the input is a pipe")?;
    let requests: Vec<String> = batches.iter().map(|it| request(it).to_string()).collect();
    let writer = std::thread::spawn(move || {
        requests.iter().try_for_each(|request| writeln!(input, "{request}"))
    });
    let output = process.wait_with_output()?;
    let written = writer.join().map_err(|_| "the writer panicked")?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    written?;
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn request(batch: &Batch) -> Value {
    let seconds = |span: Span| span.0 / 1_000_000_000;
    let clusters = (0..).zip(&batch.cases).map(|(number, case)| cluster(case, number));
    let flags = &batch.flags;
    json!({
        "flags": {
            "minReplicas": flags.min_replicas,
            "evictionTolerance": flags.eviction_tolerance,
            "podUpdateThreshold": flags.pod_update_threshold,
            "lifetimeThreshold":
                seconds(flags.in_recommendation_bounds_eviction_lifetime_threshold),
            "evictAfterOomThreshold": seconds(flags.evict_after_oom_threshold),
            "skipsDisruptionBudget": flags.in_place_skip_disruption_budget,
            "perVpaConfig": batch.per_vpa_config,
        },
        "resizes": batch.resizes,
        "cases": clusters.collect::<Vec<_>>(),
    })
}

/// A cluster in a namespace of its own.
fn cluster(case: &Case, number: usize) -> Value {
    let namespace = format!("ns-{number}");
    let mut vpa = case.vpa.clone();
    vpa.metadata.name.namespace = namespace.as_str().into();
    let sets = case.replicas.iter().map(|(group, replicas)| {
        json!({
            "metadata": {"namespace": namespace, "name": format!("set-{group}")},
            "spec": {"replicas": replicas},
        })
    });
    let pods = case.pods.iter().map(|pod| pod_object(pod, &namespace, &case.limits));
    json!({
        "vpa": vpa,
        "replicaSets": sets.collect::<Vec<_>>(),
        "pods": pods.collect::<Vec<_>>(),
    })
}

fn pod_object(pod: &LivePod, namespace: &str, limits: &Limits) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("set-{}", pod.group),
        "uid": "", "controller": true,
    });
    let container = |container: &Container| {
        let mut resources = json!({});
        if !container.requests.is_empty() {
            resources["requests"] = json!(container.requests);
        }
        if let Some(limits) = limits.get(&container.name) {
            resources["limits"] = json!(limits);
        }
        json!({"name": container.name, "resources": resources})
    };
    let killed = |(name, kill): (&Arc<str>, &KilledContainer)| {
        let terminated = json!({
            "reason": "OOMKilled", "exitCode": 137,
            "startedAt": time_text(kill.started_at), "finishedAt": time_text(kill.finished_at),
        });
        json!({"name": name, "lastState": {"terminated": terminated}})
    };
    let containers: Vec<Value> = pod.spec.containers.iter().map(container).collect();
    let statuses: Vec<Value> = pod.oom_kills.iter().map(killed).collect();
    let mut status = json!({"phase": "Pending", "containerStatuses": statuses});
    if let Some(started) = pod.started {
        status["phase"] = "Running".into();
        status["startTime"] = time_text(started).into();
    }
    json!({
        "metadata": {
            "namespace": namespace, "name": format!("web-{}", pod.ordinal),
            "uid": format!("{namespace}-{}", pod.ordinal),
            "labels": {"app": "web"}, "ownerReferences": [owner],
        },
        "spec": {"containers": containers},
        "status": status,
    })
}

/// A time of the model as a time of the present, which upstream reads from the system's clock.
fn time_text(time: Time) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let now = i64::try_from(now).expect("seconds fit into 64 bits");
    let age = (NOW - time).0 / 1_000_000_000;
    Timestamp::from_second(now - age).expect("a time of the present").to_string()
}

fn batch() -> impl Strategy<Value = Batch> {
    let flags = (
        1..4_i32,
        select(vec![0.0, 0.25, 0.5, 1.0]),
        select(vec![0.0, 0.1, 0.5]),
        select(vec![600, 3600]),
        select(vec![60, 600]),
        any::<bool>(),
    );
    let flags =
        flags.prop_map(|(min_replicas, tolerance, threshold, lifetime, oom, skips)| UpdaterFlags {
            min_replicas,
            eviction_tolerance: tolerance,
            pod_update_threshold: threshold,
            in_recommendation_bounds_eviction_lifetime_threshold: Span::from_secs(lifetime),
            evict_after_oom_threshold: Span::from_secs(oom),
            in_place_skip_disruption_budget: skips,
            ..UpdaterFlags::default()
        });
    (flags, any::<bool>(), prop::bool::weighted(0.8), vec(case(), CASES)).prop_map(
        |(flags, per_vpa_config, resizes, cases)| Batch { flags, per_vpa_config, resizes, cases },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let replicas = btree_map(0..2_u32, 0..6_i64, 1..3);
    let limits = btree_map(container_name(), requests(), 0..3);
    (vpa(), limits, vec(pod(), 1..6), replicas).prop_map(|(vpa, limits, mut pods, replicas)| {
        for (ordinal, pod) in (0..).zip(&mut pods) {
            pod.ordinal = ordinal;
        }
        let limits = limits.into_iter().filter(|(_, limits)| !limits.is_empty());
        Case { vpa, limits: limits.collect(), pods, replicas }
    })
}

fn container_name() -> impl Strategy<Value = Arc<str>> {
    select(vec!["app", "sidecar"]).prop_map(Arc::from)
}

/// An amount of CPU or memory. Few different ones, so that equal amounts are frequent.
fn cpu() -> impl Strategy<Value = Quantity> {
    select(vec!["50m", "100m", "105m", "200m", "210m", "0.5", "1"]).prop_map(quantity)
}

fn memory() -> impl Strategy<Value = Quantity> {
    select(vec!["100Mi", "128Mi", "140Mi", "256Mi", "0.5Gi", "1Gi", "1G"]).prop_map(quantity)
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).expect("a quantity")
}

fn requests() -> impl Strategy<Value = Requests> {
    let amounts = (option::weighted(0.9, cpu()), option::weighted(0.9, memory()));
    amounts.prop_map(|(cpu, memory)| {
        let amounts = [("cpu", cpu), ("memory", memory)].into_iter();
        amounts.filter_map(|(name, amount)| Some((name.into(), amount?))).collect()
    })
}

fn pod() -> impl Strategy<Value = LivePod> {
    // Upstream reads the clock later than the test, by minutes if the machine is busy: ages below
    // a threshold are far below.
    let age = select(vec![0, 10, 300, 600, 610, 3300, 3600, 3610, 90_000]);
    let kill = (select(vec![0, 10, 50, 60, 590, 600]), select(vec![0, 10, 50, 60, 590, 600]));
    let kill = kill.prop_map(|(since, lived)| {
        let finished_at = NOW + Span::from_secs(-since);
        KilledContainer { started_at: finished_at + Span::from_secs(-lived), finished_at }
    });
    let kills = option::weighted(0.3, (container_name(), kill));
    let containers = (requests(), option::of(requests()));
    (0..2_u32, option::weighted(0.85, age), kills, containers).prop_map(
        |(group, age, kill, (app, sidecar))| {
            let container =
                |name: &str, requests| Container { name: name.into(), requests, sidecar: false };
            let sidecar = sidecar.map(|requests| container("sidecar", requests));
            let containers = [container("app", app)].into_iter().chain(sidecar).collect();
            LivePod {
                ordinal: 0,
                group,
                spec: Arc::new(PodSpec { containers, ..PodSpec::default() }),
                started: age.map(|age| NOW + Span::from_secs(-age)),
                oom_kills: kill.into_iter().collect(),
            }
        },
    )
}

fn vpa() -> impl Strategy<Value = VerticalPodAutoscaler> {
    let policies = vec(container_policy(), 0..3);
    (option::weighted(0.95, update_policy()), policies, option::weighted(0.95, recommendation()))
        .prop_map(|(update_policy, container_policies, recommendation)| VerticalPodAutoscaler {
            metadata: VpaMetadata {
                name: ObjectName::new("default", "web"),
                annotations: BTreeMap::new(),
                generation: 1,
            },
            spec: VpaSpec {
                target_ref: TargetRef {
                    api_version: "apps/v1".to_owned(),
                    kind: "Deployment".to_owned(),
                    name: "web".to_owned(),
                },
                update_policy,
                resource_policy: (!container_policies.is_empty())
                    .then_some(ResourcePolicy { container_policies }),
                recommenders: Vec::new(),
            },
            status: Arc::new(VpaStatus { recommendation, ..VpaStatus::default() }),
        })
}

fn update_policy() -> impl Strategy<Value = UpdatePolicy> {
    let modes = ["Recreate", "Auto", "InPlaceOrRecreate", "InPlaceOrRecreate", "Initial", "Off"];
    let change = select(vec![
        ChangeRequirement::TargetHigherThanRequests,
        ChangeRequirement::TargetLowerThanRequests,
    ]);
    let resources = select(vec![vec!["cpu"], vec!["memory"], vec!["cpu", "memory"]]);
    let requirement = (resources, change).prop_map(|(resources, change_requirement)| {
        let resources = resources.into_iter().map(str::to_owned).collect();
        EvictionRequirement { resources, change_requirement }
    });
    let requirements = vec(requirement, 0..3);
    let seconds = option::weighted(0.3, select(vec![60, 300]));
    (select(modes.to_vec()), option::weighted(0.3, 1..4_i32), requirements, seconds).prop_map(
        |(mode, min_replicas, eviction_requirements, evict_after_oom_seconds)| UpdatePolicy {
            update_mode: Some(mode.to_owned()),
            min_replicas,
            eviction_requirements,
            evict_after_oom_seconds,
        },
    )
}

fn container_policy() -> impl Strategy<Value = ContainerPolicy> {
    let mode = option::weighted(0.3, select(vec![ScalingMode::Auto, ScalingMode::Off]));
    let values = option::of(select(vec![
        ControlledValues::RequestsOnly,
        ControlledValues::RequestsAndLimits,
    ]));
    let bound = || {
        let named = |(name, amount): (Arc<str>, Quantity)| (name.to_string(), amount);
        option::weighted(0.3, requests())
            .prop_map(move |it| it.map(|it| it.into_iter().map(named).collect()))
    };
    (select(vec!["app", "sidecar", "*"]), mode, values, bound(), bound()).prop_map(
        |(name, mode, controlled_values, min_allowed, max_allowed)| ContainerPolicy {
            container_name: name.to_owned(),
            mode,
            min_allowed,
            max_allowed,
            controlled_values,
            ..ContainerPolicy::default()
        },
    )
}

/// A recommendation, whose target is usually within its bounds.
fn recommendation() -> impl Strategy<Value = Recommendation> {
    let lists = || {
        let amounts = (vec(cpu(), 3), vec(memory(), 3), any::<bool>(), any::<bool>());
        amounts.prop_map(|(mut cpu, mut memory, with_cpu, with_memory)| {
            cpu.sort_by(Quantity::compare);
            memory.sort_by(Quantity::compare);
            let list = |index: usize| ResourceList {
                cpu: (with_cpu || !with_memory).then(|| cpu[index].clone()),
                memory: (with_memory || with_cpu).then(|| memory[index].clone()),
            };
            [list(0), list(1), list(2)]
        })
    };
    btree_map(select(vec!["app", "sidecar", "gone"]), lists(), 0..3).prop_map(|containers| {
        let container = |(name, [lower_bound, target, upper_bound]): (&str, [ResourceList; 3])| {
            let uncapped_target = target.clone();
            let container_name = name.into();
            ContainerRecommendation {
                container_name,
                target,
                lower_bound,
                upper_bound,
                uncapped_target,
            }
        };
        Recommendation {
            container_recommendations: containers.into_iter().map(container).collect(),
        }
    })
}
