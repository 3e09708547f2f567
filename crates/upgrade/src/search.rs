//! Searches for loads under which two releases differ.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::plan::{Cause, ControlPlane, Plan, Step};
use kube_autoscaler_models::flags::GateSetting;
use kube_autoscaler_models::rules::{CHANGES, Release};
use kube_autoscaler_models::time::Time;
use kube_lockstep_fuzz::{FailurePoint, Loads, Measure, Priority, measure, shrink};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::FieldPath;
use kube_lockstep_sim::run::FreeRun;
use kube_lockstep_sim::run::change::{Changed, difference};
use kube_lockstep_sim::run::in_order::in_order;

/// The search for the differences between two releases.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// The older release.
    pub from: Release,
    /// The newer release.
    pub to: Release,
    /// The feature gates of the older control plane that differ from the defaults.
    pub from_gates: Vec<GateSetting>,
    /// Those of the newer one.
    pub to_gates: Vec<GateSetting>,
    /// The least number of ticks to predict for each scenario, on all sets of rules together, in
    /// addition to those of the given load.
    pub ticks: u64,
    /// The seed of the generated loads.
    pub seed: u64,
}

/// What a change of a release affects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Conditions, other fields of the status, events, or requests.
    Status,
    /// Only the time of the first reconcile of a new HPA, and with it that of all later ones.
    FirstReconcile,
    /// The replicas of the target, or when they change.
    Replicas,
}

/// A cause that affects an autoscaler.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Why the control planes differ.
    pub cause: Cause,
    /// What it affects.
    pub effect: Effect,
    /// True if it shows on the given load.
    pub is_on_given_load: bool,
    /// The simplest generated load that shows it. None: the given load does.
    load: Option<GeneratedLoad>,
}

/// The generated parts of a scenario.
#[derive(Clone, Debug)]
struct GeneratedLoad {
    tree: Value,
    size: Measure,
}

impl Difference {
    /// How complex its load is: the given load first.
    #[must_use]
    pub fn load_size(&self) -> Option<Measure> {
        self.load.as_ref().map(|load| load.size)
    }
}

/// The result of a search for one scenario.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// The changes that have an effect, oldest first.
    pub differences: Vec<Difference>,
    /// The number of predicted ticks.
    pub ticks: u64,
    /// The number of generated scenarios.
    pub scenarios: u64,
}

/// The simplest scenario found that shows a difference.
#[derive(Clone, Debug)]
pub struct Example {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The tree of its file.
    pub tree: Value,
    /// The first difference that the change makes, and its row.
    pub changed: Changed,
    /// The time of the effect.
    pub at: Time,
    /// The replicas at that time before and after the change, if they differ.
    pub replicas: Option<[i32; 2]>,
}

/// The progress of a search for several scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The number of scenarios that are searched.
    pub done: usize,
}

impl Step {
    /// What differs between predictions without and with the change, and when.
    fn effect(&self, before: &FreeRun, after: &FreeRun) -> Option<(Effect, Time)> {
        let (found, at) = effect(before, after)?;
        let is_first_reconcile = self.moves_first_reconcile() && found == Effect::Replicas;
        Some((if is_first_reconcile { Effect::FirstReconcile } else { found }, at))
    }
}

impl Searched {
    /// Adds a cause, if it is new, has a larger effect than before, or a simpler load shows it.
    fn add(&mut self, cause: Cause, effect: Effect, load: Option<&GeneratedLoad>) {
        let size = load.map(|load| load.size);
        match self.differences.iter_mut().find(|it| it.cause == cause) {
            Some(known)
                if (Reverse(known.effect), known.load_size()) <= (Reverse(effect), size) => {}
            Some(known) => (known.effect, known.load) = (effect, load.cloned()),
            None => self.differences.push(Difference {
                cause,
                effect,
                is_on_given_load: load.is_none(),
                load: load.cloned(),
            }),
        }
    }
}

impl Upgrade {
    /// Searches several scenarios, on a number of threads. `goes_on` is called after each; if it
    /// returns false, the search ends. Scenarios that are not searched have no result.
    #[must_use]
    pub fn search_all(
        &self,
        subjects: &[(Arc<Scenario>, bool)],
        jobs: usize,
        goes_on: &mut dyn FnMut(Progress) -> bool,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Vec<Option<Searched>> {
        let mut results = vec![None; subjects.len()];
        let search = |(): &mut (), index: usize| {
            subjects
                .get(index)
                .map(|(scenario, has_load)| self.search(scenario, *has_load, is_stopped))
        };
        in_order(jobs.min(subjects.len()), &|| (), &search, &mut |index, searched| {
            results[index] = Some(searched);
            goes_on(Progress { done: index + 1 })
        });
        results
    }

    /// Searches for the changes that affect a scenario: on its own load, if that is given, and on
    /// generated loads, until `is_stopped` returns true.
    #[must_use]
    pub fn search(
        &self,
        scenario: &Arc<Scenario>,
        has_load: bool,
        is_stopped: &dyn Fn() -> bool,
    ) -> Searched {
        let (plan, mut searched) = (self.plan(), Searched::default());
        if has_load {
            plan.try_scenario(scenario, None, &mut searched);
        }
        let loads = Loads::new(scenario);
        let mut index = 0;
        // A long load that is given takes no ticks from the search.
        let most = self.ticks + searched.ticks;
        // Scenarios may have no ticks at all.
        while searched.ticks < most && index < self.ticks / 10 + 100 && !is_stopped() {
            let generated = loads.generate(self.seed, index);
            index += 1;
            let Some(scenario) = read(&loads.with(&generated)) else { continue };
            searched.scenarios += 1;
            let size = measure(&generated, Priority::Parts);
            let load = GeneratedLoad { tree: generated, size };
            plan.try_scenario(&Arc::new(scenario), Some(&load), &mut searched);
        }
        searched.differences.sort_by_key(|difference| difference.cause);
        searched
    }

    /// Why each release rejects a scenario, if it does: the older one first. It names a feature
    /// gate without which it is rejected.
    #[must_use]
    pub fn rejections(&self, scenario: &Arc<Scenario>) -> [Option<String>; 2] {
        let [oldest, newest] = self.control_planes();
        [(self.from, oldest), (self.to, newest)].map(|(release, plane)| {
            let unsupported = scenario.unsupported_on(release);
            let unsupported = unsupported.filter(|_| !scenario.ignores_unsupported_fields(release));
            if let Some(why) = unsupported {
                return Some(why.to_string());
            }
            let refused = |plane: ControlPlane| plane.run(scenario, &release.to_string()).refused();
            let why = refused(plane)?;
            let gate = plane.with_each_gate_on().find(|(_, other)| refused(*other).is_none());
            Some(match gate {
                Some((gate, _)) => format!("{why} (the feature gate {} is off)", gate.name()),
                None => why,
            })
        })
    }

    /// The simplest scenario that shows a difference of a scenario.
    #[must_use]
    pub fn example(&self, scenario: &Arc<Scenario>, found: &Difference) -> Option<Example> {
        let reason = self.reason(found.cause);
        let id = match found.cause {
            Cause::Change(row) => format!("{}-{row}", reason.since),
            Cause::Gate(gate) => format!("{}-{}", reason.since, gate.name()),
        };
        let plan = self.plan();
        let step = plan.steps.iter().find(|step| step.cause == found.cause)?;
        let loads = Loads::new(scenario);
        let Scenario { path, line, .. } = &**scenario;
        let (path, line) = (path.clone(), *line);
        let (scenario, tree) = match &found.load {
            None => (scenario.clone(), scenario::to_tree(scenario)),
            Some(load) => {
                // A load says more than a metric that is missing, or replicas below the minimum.
                let read_part =
                    |part: &Value| read(&loads.with(part)).filter(|_| loads.are_usual(part));
                let mut fails = |scenario: &Arc<Scenario>| {
                    let at = plan.shows(scenario, step, found.effect)?;
                    Some(FailurePoint { at, replicas: Vec::new() })
                };
                let tree = load.tree.clone();
                let smallest = shrink(tree, TRIES, Priority::Parts, &read_part, &mut fails)?;
                (smallest.scenario, loads.with(&smallest.tree))
            }
        };
        let requirement = format!("{}.", reason.what);
        let mut tree = tree;
        tree["requirement"] = requirement.clone().into();
        let scenario =
            Arc::new(Scenario { id, requirement, path, line, ..Scenario::clone(&scenario) });
        let [before, after] = [step.before, step.after].map(|plane| plane.run(&scenario, ""));
        let (effect, at) = effect(&before, &after)?;
        let first = difference(&before.trace, &after.trace)?;
        let rows = match found.cause {
            Cause::Change(row) => vec![&CHANGES[row]],
            Cause::Gate(_) => Vec::new(),
        };
        let changed = Changed { first, rows, also: Vec::new() };
        let replicas = [before, after].map(|run| replicas_at(&run, &scenario, at));
        let is_shown = effect == Effect::Replicas && replicas[0] != replicas[1];
        let replicas = is_shown.then_some(replicas);
        Some(Example { scenario, tree, changed, at, replicas })
    }
}

impl Plan {
    /// The time at which a scenario shows an effect of a step, neither more nor less.
    pub(crate) fn shows(
        &self,
        scenario: &Arc<Scenario>,
        step: &Step,
        found: Effect,
    ) -> Option<Time> {
        let (before, after) = (step.before.run(scenario, ""), step.after.run(scenario, ""));
        let (own, at) = step.effect(&before, &after)?;
        let (oldest, newest) = (self.oldest.run(scenario, ""), self.newest.run(scenario, ""));
        let (visible, _) = effect(&oldest, &newest)?;
        (own.min(visible) == found).then_some(at)
    }

    /// Predicts a scenario on each control plane, and adds the causes that have an effect.
    fn try_scenario(
        &self,
        scenario: &Arc<Scenario>,
        load: Option<&GeneratedLoad>,
        searched: &mut Searched,
    ) {
        let oldest = self.oldest.run(scenario, "");
        let mut before = oldest.clone();
        let mut effects: Vec<(&Step, Effect)> = Vec::new();
        searched.ticks += oldest.ticks.len() as u64;
        for step in &self.steps {
            let after = step.after.run(scenario, "");
            searched.ticks += after.ticks.len() as u64;
            let found = step.effect(&before, &after);
            effects.extend(found.map(|(effect, _)| (step, effect)));
            before = after;
        }
        let Some((visible, _)) = effect(&oldest, &before) else { return };
        // A change that a later one reverts or replaces has no effect of its own. If none has, the
        // changes count that had one when they were added.
        let matters = |(step, _): &(&Step, Effect)| {
            let is_known = searched.differences.iter().any(|it| it.cause == step.cause);
            is_known || step.effect(&step.newest_without.run(scenario, ""), &before).is_some()
        };
        let own: Vec<(&Step, Effect)> = effects.iter().copied().filter(matters).collect();
        for (step, effect) in if own.is_empty() { effects } else { own } {
            searched.add(step.cause, effect.min(visible), load);
        }
    }
}

/// The most scenarios that are tried to find a smaller one.
const TRIES: usize = 1000;

/// Reads the tree of a scenario, if it is valid.
pub(crate) fn read(tree: &Value) -> Option<Scenario> {
    let no_files = |_: &str| Err("there is no other file".into());
    let read = scenario::parse("upgrade", &scenario::tree_to_yaml(tree), &no_files).ok()?;
    Some(Scenario { is_of_manifests: true, ..read })
}

/// The replicas of the first target after the reconciles at a time.
fn replicas_at(run: &FreeRun, scenario: &Scenario, at: Time) -> i32 {
    let mut ticks = run.ticks.iter().rev();
    let last = ticks.find(|tick| tick.target == 0 && tick.observation.at <= at);
    last.map_or(scenario.workload.replicas, |tick| tick.replicas_after)
}

/// What differs between two predictions, and when. None: nothing that a user can see.
fn effect(before: &FreeRun, after: &FreeRun) -> Option<(Effect, Time)> {
    if before.undetermined.is_some() || after.undetermined.is_some() {
        return None;
    }
    let scaled = |run: &FreeRun| -> Vec<(Time, usize, i32)> {
        let ticks = run.ticks.iter().filter(|tick| tick.replicas_after != tick.replicas_before);
        ticks.map(|tick| (tick.observation.at, tick.target, tick.replicas_after)).collect()
    };
    let (old, new) = (scaled(before), scaled(after));
    let first = difference(&before.trace, &after.trace)?;
    if old != new {
        let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
        let at = [old.get(same), new.get(same)].into_iter().flatten().map(|(at, ..)| *at).min();
        return Some((Effect::Replicas, at.unwrap_or(first.at)));
    }
    let is_internal = |field: &FieldPath| matches!(field, FieldPath::ControllerMetric(_));
    let is_visible = !first.fields.iter().all(|it| is_internal(&it.field));
    is_visible.then_some((Effect::Status, first.at))
}
