//! Searches for loads under which two releases differ.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::plan::{Cause, ControlPlane, Plan, Step};
use kube_autoscaler_models::api::HpaSpec;
use kube_autoscaler_models::flags::GateSetting;
use kube_autoscaler_models::hpa::drop_disabled_fields;
use kube_autoscaler_models::rules::{CHANGES, Release};
use kube_autoscaler_models::time::Time;
use kube_lockstep_fuzz::{FailurePoint, Loads, Measure, Priority, measure, shrink};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare::FieldPath;
use kube_lockstep_sim::run::FreeRun;
use kube_lockstep_sim::run::change::{Changed, difference};
use kube_lockstep_sim::run::in_order::in_order;
use kube_lockstep_sim::run::leave_out::leave_out;

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
    /// The steps that explain the difference on this load, by their indices: after them alone, the
    /// control plane acts like the newest one, and without any of them, it does not.
    steps: Vec<usize>,
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
    /// The replicas at that time without and with the change, if they differ. If there are
    /// alternative causes: before and after the upgrade.
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
        let is_first_reconcile = self.moves_first_reconcile && found == Effect::Replicas;
        Some((if is_first_reconcile { Effect::FirstReconcile } else { found }, at))
    }
}

impl Difference {
    /// Larger effects come first, then simpler loads.
    pub(crate) fn order(&self) -> (Reverse<Effect>, Option<Measure>) {
        (Reverse(self.effect), self.load_size())
    }
}

impl Searched {
    /// Adds a difference, if its cause is new, has a larger effect than before, or a simpler load
    /// shows it.
    fn add(&mut self, new: Difference) {
        match self.differences.iter_mut().find(|it| it.cause == new.cause) {
            Some(known) if known.order() <= new.order() => {}
            Some(known) => {
                let is_on_given_load = known.is_on_given_load || new.is_on_given_load;
                *known = Difference { is_on_given_load, ..new };
            }
            None => self.differences.push(new),
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
        self.search_watched(scenario, has_load, &|_| !is_stopped())
    }

    /// Searches as [`Upgrade::search`] does. `watch` gets the number of predicted ticks; if it
    /// returns false, the search ends.
    #[must_use]
    pub fn search_watched(
        &self,
        scenario: &Arc<Scenario>,
        has_load: bool,
        watch: &dyn Fn(u64) -> bool,
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
        while searched.ticks < most && index < self.ticks / 10 + 100 && watch(searched.ticks) {
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

    /// Why each release rejects a scenario, if it does: the older one first. The reason names the
    /// feature gate that would have to be on. The newer release may accept a stored HPA that it
    /// would reject as a new one.
    #[must_use]
    pub fn rejections(&self, scenario: &Arc<Scenario>) -> [Option<String>; 2] {
        let [oldest, newest] = self.control_planes();
        [
            rejection(scenario, self.from, oldest, None),
            rejection(scenario, self.to, newest, Some(&oldest)),
        ]
    }

    /// Why the newer release would reject the HPAs as new. None: it rejects them even if they are
    /// stored, or accepts them as new.
    #[must_use]
    pub fn rejection_as_new(&self, scenario: &Arc<Scenario>) -> Option<String> {
        let [_, newest] = self.control_planes();
        let [_, as_stored] = self.rejections(scenario);
        rejection(scenario, self.to, newest, None).filter(|_| as_stored.is_none())
    }

    /// Returns true if the older release stores HPAs without their tolerances, and the newer one
    /// with them.
    #[must_use]
    pub fn stores_tolerance_only_after(&self, scenario: &Scenario) -> bool {
        let [before, after] = self.control_planes().map(|plane| {
            scenario.hpas.iter().any(|hpa| {
                let mut spec = HpaSpec::clone(&hpa.spec);
                drop_disabled_fields(&mut spec, None, &plane.gates.api_server);
                spec.behavior == hpa.spec.behavior && has_tolerance(&spec)
            })
        });
        after && !before
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
                    let at = plan.shows(scenario, found)?;
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
        let before = plan.after(&plan.others(found));
        let planes = [before, plan.after(&found.steps)];
        let [before, after] = planes.map(|plane| plan.run(&plane, &scenario));
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
    /// The steps that explain a difference, without its own one.
    fn others(&self, found: &Difference) -> Vec<usize> {
        let is_other = |step: &usize| self.steps[*step].cause != found.cause;
        found.steps.iter().copied().filter(is_other).collect()
    }

    /// The time at which a scenario shows the effect of a difference, neither more nor less, with
    /// the same steps.
    pub(crate) fn shows(&self, scenario: &Arc<Scenario>, found: &Difference) -> Option<Time> {
        let run = |plane: &ControlPlane| self.run(plane, scenario);
        let newest = run(&self.newest);
        let (visible, _) = effect(&run(&self.oldest), &newest)?;
        if !is_alike(&run(&self.after(&found.steps)), &newest) {
            return None;
        }
        let place = found.steps.iter().position(|it| self.steps[*it].cause == found.cause)?;
        let step = self.steps[found.steps[place]];
        let in_order = [&found.steps[..place], &found.steps[..=place]].map(|it| self.after(it));
        step.effect(&run(&in_order[0]), &run(&in_order[1]))?;
        let (own, at) = step.effect(&run(&self.after(&self.others(found))), &newest)?;
        (own.min(visible) == found.effect).then_some(at)
    }

    /// Predicts a scenario on the oldest and the newest control plane and, if they differ, on those
    /// between them, and adds the causes of the difference.
    fn try_scenario(
        &self,
        scenario: &Arc<Scenario>,
        load: Option<&GeneratedLoad>,
        searched: &mut Searched,
    ) {
        let mut ticks = 0;
        let mut run = |plane: &ControlPlane| {
            let run = self.run(plane, scenario);
            ticks += run.ticks.len() as u64;
            run
        };
        let (oldest, newest) = (run(&self.oldest), run(&self.newest));
        if let Some((visible, _)) = effect(&oldest, &newest) {
            let (steps, own) = self.needed(&newest, &mut run);
            let mut before = oldest;
            for (place, own) in own.into_iter().enumerate() {
                let step = &self.steps[steps[place]];
                let after = run(&self.after(&steps[..=place]));
                // A step without an effect of its own is a condition of a later one.
                if step.effect(&before, &after).is_some() {
                    searched.add(Difference {
                        cause: step.cause,
                        effect: own.min(visible),
                        is_on_given_load: load.is_none(),
                        load: load.cloned(),
                        steps: steps.clone(),
                    });
                }
                before = after;
            }
        }
        searched.ticks += ticks;
    }

    /// A smallest set of steps after which the control plane acts like the newest one, and what
    /// changes without each of them. Of several steps that each have the same effect, the first
    /// one is in the set. A step that a later one reverts is not, and nor is the later one.
    fn needed(
        &self,
        newest: &FreeRun,
        run: &mut dyn FnMut(&ControlPlane) -> FreeRun,
    ) -> (Vec<usize>, Vec<Effect>) {
        let mut steps: Vec<usize> = (0..self.steps.len()).collect();
        loop {
            let mut is_enough = |steps: &[usize]| is_alike(&run(&self.after(steps)), newest);
            leave_out(&mut steps, &mut is_enough);
            let without = |place: usize| [&steps[..place], &steps[place + 1..]].concat();
            let mut own = Vec::new();
            for (place, step) in steps.iter().enumerate() {
                let without = run(&self.after(&without(place)));
                if is_alike(&without, newest) {
                    break;
                }
                // Without an effect, the prediction without the step ends where chance decides.
                let effect = self.steps[*step].effect(&without, newest);
                own.push(effect.map_or(Effect::Status, |(effect, _)| effect));
            }
            // A step that was left out can make a later one unnecessary.
            if own.len() == steps.len() {
                return (steps, own);
            }
        }
    }
}

/// Returns true if the HPA has a tolerance of its own.
fn has_tolerance(spec: &HpaSpec) -> bool {
    let directions = spec.behavior.iter().flat_map(|it| [&it.scale_up, &it.scale_down]);
    directions.flatten().any(|rules| rules.tolerance.is_some())
}

/// Why a release rejects a scenario, if it does.
fn rejection(
    scenario: &Arc<Scenario>,
    release: Release,
    plane: ControlPlane,
    stored_by: Option<&ControlPlane>,
) -> Option<String> {
    let unsupported = scenario.unsupported_on(release);
    let unsupported = unsupported.filter(|_| !scenario.ignores_unsupported_fields(release));
    if let Some(why) = unsupported {
        return Some(why.to_string());
    }
    let refused =
        |plane: ControlPlane| plane.run(scenario, stored_by, &release.to_string()).refused();
    let why = refused(plane)?;
    let gate = plane.with_each_gate_on().find(|(_, other)| refused(*other).is_none());
    Some(match gate {
        Some((gate, _)) => format!("{why} (the feature gate {} is off)", gate.name()),
        None => why,
    })
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

/// Returns true if a user can't see a difference between two predictions.
fn is_alike(one: &FreeRun, other: &FreeRun) -> bool {
    let is_determined = one.undetermined.is_none() && other.undetermined.is_none();
    is_determined && effect(one, other).is_none()
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
