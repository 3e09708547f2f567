//! The simulated updater and admission controller of the VPA, compared with upstream's code.
//!
//! A small Go program (`upstream/updater`) hosts upstream's updater and admission controller in
//! virtual time. The suite generates clusters, and requires that the simulation evicts and resizes
//! the same pods in the same order, and gives pods the same requests. It also requires that a live
//! run reports decisions that upstream would not make. Requires Go; without it, the tests are
//! reported as ignored.

use crate::support;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use crate::support::trials::Suite;
use kube_autoscaler_models::api::{Container, CrossVersionObjectReference, PodSpec, Requests};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::admission::{Limits, admitted, recommended};
use kube_autoscaler_models::vpa::updater::{
    KilledContainer, LivePod, PodUpdate, Updater, UpdaterFlags, in_order_of,
};
use kube_autoscaler_models::vpa::{
    ChangeRequirement, ContainerPolicy, ContainerRecommendation, ControlledValues,
    EvictionRequirement, ObjectName, Recommendation, ResourceList, ResourcePolicy, ScalingMode,
    UpdateMode, UpdatePolicy, VerticalPodAutoscaler, VpaMetadata, VpaSpec, VpaStatus,
};
use kube_lockstep_engines::upstream::TIME_LIMIT;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_engines::upstream::updater::UpdaterHost;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::updater::{
    PodRequests, UpdaterAnswer, UpdaterStep, VpaUpdater, are_equal, requests_of,
};
use kube_lockstep_sim::engine::{Engine, EngineError, Session, VpaEngines};
use kube_lockstep_sim::run::{Outcome, Verdict, run_one};
use kube_lockstep_sim::world::{ManagedPods, UpdaterSettings};
use libtest_mimic::Failed;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Reason, TestRunner};
use tokio_util::sync::CancellationToken;

/// The number of updaters, each with flags of its own, and the number of clusters that each sees.
const UPDATERS: usize = 40;
const CASES: usize = 100;

/// The time of each run.
const NOW: Time = Time::from_secs(1_000_000);

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let has_updater = |release: &VpaRelease| build::supports(Artifact::Updater, *release);
    for release in VpaRelease::supported().rev().filter(has_updater) {
        if release < VpaRelease::NEWEST {
            suite.ignore_by_default();
        }
        let program = suite.require(move || {
            build::ensure(Artifact::Updater, release, &CancellationToken::new(), &mut |_| {})
        });
        let name = format!("the_simulation_does_what_upstream_does::{release}");
        suite.test_with(&program, &name, |program| compare_all(&program));
        let name = format!("a_fault_of_the_simulation_is_noticed::{release}");
        suite.test_with(&program, &name, |program| notices_faults(&program));
        let name = format!("upstream_makes_the_decisions_of_all_fixtures::{release}");
        suite.test_with(&program, &name, move |program| fixtures_conform(&program, release));
        let name = format!("a_run_reports_decisions_that_upstream_does_not_make::{release}");
        suite.test_with(&program, &name, move |program| altered_answers_diverge(&program, release));
    }
}

/// The updater of a run, and the clusters that it sees.
#[derive(Clone, Debug)]
struct Batch {
    settings: UpdaterSettings,
    cases: Vec<ManagedPods>,
}

impl Batch {
    /// The input of the updater's run in a cluster.
    fn updater<'a>(&'a self, case: &'a ManagedPods) -> Updater<'a> {
        self.settings.updater(case, NOW)
    }
}

/// Generated clusters with the answers of upstream.
struct Observed {
    batches: Vec<Batch>,
    answers: Vec<Vec<UpdaterAnswer>>,
}

impl Observed {
    fn of(program: &Path) -> Result<Observed, Failed> {
        let mut runner = TestRunner::deterministic();
        let mut batches: Vec<Batch> = (0..UPDATERS)
            .map(|_| Ok(batch().new_tree(&mut runner)?.current()))
            .collect::<Result<_, Reason>>()
            .map_err(|reason| reason.to_string())?;
        // A crash would end upstream's updater for all other clusters.
        for batch in &mut batches {
            let cases = std::mem::take(&mut batch.cases).into_iter();
            let survives = |case: &ManagedPods| !batch.updater(case).crashes(&case.pods);
            let cases: Vec<ManagedPods> = cases.filter(survives).collect();
            batch.cases = cases;
        }
        // A host has one updater, with flags of its own.
        let mut host = UpdaterHost::new(program.to_owned(), VpaRelease::NEWEST, TIME_LIMIT);
        let answers = batches.iter().map(|batch| {
            host.open(&batch.settings)?.step(&UpdaterStep::Run(NOW, batch.cases.clone()))
        });
        let answers: Result<_, EngineError> = answers.collect();
        let answers = answers.map_err(|error| format!("{error:?}"))?;
        Ok(Observed { batches, answers })
    }

    /// Compares upstream with a simulation on all clusters.
    fn compare(
        &self,
        simulate: impl Fn(&Updater<'_>, &[LivePod]) -> Vec<PodUpdate>,
    ) -> Result<Seen, Failed> {
        let mut seen = Seen::default();
        for (batch, answers) in self.batches.iter().zip(&self.answers) {
            for (case, answer) in batch.cases.iter().zip(answers) {
                compare_updates(batch, case, answer, &simulate, &mut seen)?;
                compare_admission(case, answer, &mut seen)?;
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

/// The model with upstream's updater and admission controller of one release.
struct WithUpdater<'a> {
    model: Model,
    program: &'a Path,
    release: VpaRelease,
    alter: fn(&mut UpdaterAnswer),
    changes: Rc<Cell<usize>>,
}

/// Alters the answers of a host, and counts the changes of pods.
struct Altered {
    host: UpdaterHost,
    alter: fn(&mut UpdaterAnswer),
    changes: Rc<Cell<usize>>,
}

impl Engine<VpaUpdater> for Altered {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn release(&self) -> VpaRelease {
        self.host.release()
    }

    fn open<'a>(
        &'a mut self,
        settings: &UpdaterSettings,
    ) -> Result<Box<dyn Session<VpaUpdater> + 'a>, EngineError> {
        let session = self.host.open(settings)?;
        Ok(Box::new(AlteredSession { session, alter: self.alter, changes: self.changes.clone() }))
    }
}

struct AlteredSession<'a> {
    session: Box<dyn Session<VpaUpdater> + 'a>,
    alter: fn(&mut UpdaterAnswer),
    changes: Rc<Cell<usize>>,
}

impl Session<VpaUpdater> for AlteredSession<'_> {
    fn send(&mut self, step: &UpdaterStep) -> Result<(), EngineError> {
        self.session.send(step)
    }

    fn receive(&mut self) -> Result<Vec<UpdaterAnswer>, EngineError> {
        let mut answers = self.session.receive()?;
        let changes = answers.iter().map(|answer| answer.updates.len()).sum::<usize>();
        self.changes.set(self.changes.get() + changes);
        answers.iter_mut().for_each(self.alter);
        Ok(answers)
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        self.session.close()
    }
}

impl Engine for WithUpdater<'_> {
    fn name(&self) -> &str {
        Engine::name(&self.model)
    }

    fn release(&self) -> Release {
        self.model.release()
    }

    fn vpa(&mut self, release: VpaRelease) -> Result<VpaEngines, EngineError> {
        let host = UpdaterHost::new(self.program.to_owned(), release, TIME_LIMIT);
        let altered = Altered { host, alter: self.alter, changes: self.changes.clone() };
        Ok(VpaEngines { updater: Some(Box::new(altered)), ..self.model.vpa(release)? })
    }

    fn open<'s>(&'s mut self, scenario: &Scenario) -> Result<Box<dyn Session + 's>, EngineError> {
        self.model.open(scenario)
    }
}

impl<'a> WithUpdater<'a> {
    fn new(
        program: &'a Path,
        release: VpaRelease,
        alter: fn(&mut UpdaterAnswer),
    ) -> WithUpdater<'a> {
        let model = Model::new(Release::NEWEST);
        WithUpdater { model, program, release, alter, changes: Rc::default() }
    }

    /// The outcomes of the fixtures with an HPA and a VPA.
    fn outcomes(&mut self) -> Vec<Outcome> {
        let fixtures = support::fixtures().into_iter();
        let fixtures = fixtures.filter(|path| support::id_of(path).starts_with("hpa-and-vpa/"));
        let scenarios = fixtures.map(|path| {
            let mut scenario = (*support::load(&path)).clone();
            if let Some(vpa) = &mut scenario.vpa {
                Arc::make_mut(vpa).release = self.release;
            }
            Arc::new(scenario)
        });
        let scenarios: Vec<_> = scenarios.filter(|scenario| scenario.vpa.is_some()).collect();
        scenarios.iter().map(|scenario| run_one(scenario, self, &[])).collect()
    }
}

fn fixtures_conform(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    let mut engine = WithUpdater::new(program, release, |_| {});
    let outcomes = engine.outcomes();
    let fails = |outcome: &&Outcome| {
        !matches!(outcome.verdict, Verdict::Conforms | Verdict::Skipped { .. })
    };
    if let Some(outcome) = outcomes.iter().find(fails) {
        return Err(format!("{}: {:?}", outcome.id, outcome.verdict).into());
    }
    let conform = outcomes.iter().filter(|it| matches!(it.verdict, Verdict::Conforms)).count();
    if conform < 10 || engine.changes.get() < 20 {
        return Err(format!("only {conform} conform, with {} changes", engine.changes.get()).into());
    }
    Ok(())
}

/// Each of these alterations of upstream's answers must be a divergence in a fixture.
fn altered_answers_diverge(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    type Alteration = fn(&mut UpdaterAnswer);
    let alterations: [(&str, Alteration); 3] = [
        ("updater: changes of pods", |answer| {
            answer.updates.truncate(answer.updates.len().saturating_sub(1))
        }),
        ("updater: requests of the pod ", |answer| {
            answer.updated_requests.values_mut().for_each(set_unusual_cpu);
        }),
        ("admission: requests of the new pod ", |answer| {
            answer.admitted.iter_mut().for_each(set_unusual_cpu);
        }),
    ];
    for (field, alter) in alterations {
        let outcomes = WithUpdater::new(program, release, alter).outcomes();
        let fields = outcomes.iter().filter_map(|outcome| match &outcome.verdict {
            Verdict::Diverges(divergence) => divergence.fields.first(),
            _ => None,
        });
        let fields: Vec<String> = fields.map(|it| it.field.to_string()).collect();
        if fields.is_empty() || !fields.iter().all(|found| found.starts_with(field)) {
            return Err(format!("expected differences of `{field}`, found {fields:?}").into());
        }
    }
    Ok(())
}

/// Sets the CPU request of each container to an amount that no fixture has.
fn set_unusual_cpu(requests: &mut PodRequests) {
    requests.iter_mut().for_each(|it| drop(it.insert("cpu".into(), quantity("31"))));
}

/// The effects in the compared clusters.
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
    case: &ManagedPods,
    answer: &UpdaterAnswer,
    simulate: impl Fn(&Updater<'_>, &[LivePod]) -> Vec<PodUpdate>,
    seen: &mut Seen,
) -> Result<(), Failed> {
    let updater = batch.updater(case);
    let upstream = &answer.updates;
    seen.idle += usize::from(upstream.is_empty());
    for update in upstream {
        match update {
            PodUpdate::Evict(_) => seen.evictions += 1,
            PodUpdate::InPlace(_) => seen.resizes += 1,
        }
    }
    // Upstream lists the pods in a random order, which decides between pods of equal priority.
    let simulated = simulate(&updater, &in_order_of(&case.pods, upstream));
    let settings = &batch.settings;
    if simulated != *upstream {
        return Err(format!(
            "upstream: {upstream:?}\nsimulation: {simulated:?}\n{settings:?}\n{case:#?}"
        )
        .into());
    }
    for pod in &case.pods {
        let Some(upstream) = answer.updated_requests.get(&pod.ordinal) else { continue };
        let simulated = requests_of(&recommended(&case.vpa, &pod.spec, &case.limits));
        if !are_equal(&simulated, upstream) {
            return Err(
                format!("upstream: {upstream:?}\nsimulation: {simulated:?}\n{case:#?}").into()
            );
        }
    }
    Ok(())
}

/// Compares the requests that pods get when they are created.
fn compare_admission(
    case: &ManagedPods,
    answer: &UpdaterAnswer,
    seen: &mut Seen,
) -> Result<(), Failed> {
    for (pod, upstream) in case.pods.iter().zip(&answer.admitted) {
        let simulated = admitted(&case.vpa, &pod.spec, &case.limits);
        match simulated {
            Some(_) => seen.admitted += 1,
            None => seen.unchanged += 1,
        }
        let simulated = requests_of(&simulated.unwrap_or_else(|| (*pod.spec).clone()));
        if !are_equal(&simulated, upstream) {
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

fn batch() -> impl Strategy<Value = Batch> {
    let flags = (
        1..4_i32,
        select(vec![0.0, 0.25, 0.5, 1.0, f64::INFINITY, f64::NAN, -1e300]),
        select(vec![0.0, 0.1, 0.5, f64::INFINITY]),
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
        |(flags, per_vpa_config, resizes, cases)| {
            let settings = UpdaterSettings { flags, per_vpa_config, resizes };
            Batch { settings, cases }
        },
    )
}

fn case() -> impl Strategy<Value = ManagedPods> {
    let replicas = btree_map(0..2_u32, 0..6_i64, 1..3);
    let limits = btree_map(container_name(), requests(), 0..3);
    (vpa(), limits, vec(pod(), 0..6), replicas).prop_map(|(vpa, limits, mut pods, replicas)| {
        for (ordinal, pod) in (0..).zip(&mut pods) {
            pod.ordinal = ordinal;
        }
        let limits = limits.into_iter().filter(|(_, limits)| !limits.is_empty());
        ManagedPods { vpa, limits: Arc::new(limits.collect()), pods, replicas }
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
    let age = select(vec![0, 10, 300, 599, 600, 601, 3599, 3600, 3601, 90_000]);
    let ages = || select(vec![0, 10, 59, 60, 61, 599, 600, 601]);
    let kill = (ages(), ages());
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
                target_ref: CrossVersionObjectReference::new("apps/v1", "Deployment", "web"),
                update_policy,
                resource_policy: (!container_policies.is_empty())
                    .then_some(ResourcePolicy { container_policies }),
                recommenders: Vec::new(),
            },
            status: Arc::new(VpaStatus { recommendation, ..VpaStatus::default() }),
        })
}

fn update_policy() -> impl Strategy<Value = UpdatePolicy> {
    use UpdateMode::{Auto, InPlaceOrRecreate, Initial, Off, Recreate};
    let modes = [Recreate, Auto, InPlaceOrRecreate, InPlaceOrRecreate, Initial, Off];
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
            update_mode: Some(mode),
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
