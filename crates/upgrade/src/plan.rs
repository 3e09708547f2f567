//! The way from one control plane to another: a step for each change of a release, and one for each
//! feature gate that has another setting.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::search::{Example, Upgrade};
use kube_autoscaler_models::flags::{ClusterGates, Component, Gate, GateRule, GateSetting};
use kube_autoscaler_models::hpa::ApiServer;
use kube_autoscaler_models::rules::{CHANGES, Dependent, Release, Rules};
use kube_lockstep_scenario::resolved::ReleaseRange;
use kube_lockstep_scenario::{Scenario, to_tree};
use kube_lockstep_sim::run::change::difference;
use kube_lockstep_sim::run::{FreeRun, free_run_with_gates};

/// Why an HPA behaves differently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// A change of a release: its row in the table of changes.
    Change(usize),
    /// A feature gate with another setting, after all changes of the releases.
    Gate(Gate),
}

/// The explanation of a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The release with the change. For a gate: the release after the upgrade.
    pub since: Release,
    /// What it changes, as a sentence without a full stop.
    pub what: Cow<'static, str>,
    /// The pull request, or the documentation.
    pub link: &'static str,
}

/// The documentation of feature gates.
const GATES: &str =
    "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/";

/// The rules and the feature gates of a control plane.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControlPlane {
    /// The rules of its release.
    pub rules: Rules,
    /// The feature gates of its components.
    pub gates: ClusterGates,
}

impl ControlPlane {
    /// The control plane with these settings of gates. Those that can't be set are left out.
    fn new(rules: Rules, settings: &[GateSetting]) -> ControlPlane {
        let mut gates = ClusterGates::from(rules.default_gates());
        for setting in settings {
            // Between two releases, a gate may not exist yet, or no longer exist.
            let _ = gates.set(setting);
        }
        ControlPlane { rules, gates }
    }

    /// The control plane with each gate turned on that is off.
    pub(crate) fn with_each_gate_on(self) -> impl Iterator<Item = (Gate, ControlPlane)> {
        let is_off = move |gate: &Gate| !self.gates.api_server.enabled(*gate);
        Gate::ALL.into_iter().filter(is_off).filter_map(move |gate| {
            let mut plane = self;
            let name = gate.name().to_owned();
            plane.gates.set(&GateSetting { component: None, name, on: true }).ok()?;
            Some((gate, plane))
        })
    }

    /// Predicts a scenario. `stored_by` is the control plane that stored the HPAs earlier; HPAs
    /// that it rejects are created. None: all HPAs are created. `release` is the name in the trace.
    #[must_use]
    pub fn run(
        &self,
        scenario: &Arc<Scenario>,
        stored_by: Option<&ControlPlane>,
        release: &str,
    ) -> FreeRun {
        let server = stored_by
            .map(|plane| ApiServer { rules: &plane.rules, gates: &plane.gates.api_server });
        free_run_with_gates(scenario, self.rules, self.gates, server, release)
    }
}

/// A step between the control planes before and after the upgrade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) cause: Cause,
    /// True if the time of the first reconcile changes.
    pub(crate) moves_first_reconcile: bool,
}

/// All steps, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) oldest: ControlPlane,
    pub(crate) newest: ControlPlane,
    pub(crate) steps: Vec<Step>,
    /// The number of rows of the older release.
    rows: usize,
    /// The settings of gates that apply until a step changes them.
    old_settings: Vec<GateSetting>,
}

impl Plan {
    /// The control plane after some of the steps, by their indices.
    pub(crate) fn after(&self, steps: &[usize]) -> ControlPlane {
        let causes = || steps.iter().filter_map(|step| Some(self.steps.get(*step)?.cause));
        let rows = causes().filter_map(|cause| match cause {
            Cause::Change(row) => Some(row),
            Cause::Gate(_) => None,
        });
        let rules = Rules::after_rows((0..self.rows).chain(rows));
        let mut plane = ControlPlane::new(rules, &self.old_settings);
        for cause in causes() {
            if let Cause::Gate(gate) = cause {
                plane.gates = plane.gates.with(gate, &self.newest.gates);
            }
        }
        plane
    }

    /// Predicts a scenario on a control plane. The oldest one has stored the HPAs.
    pub(crate) fn run(&self, plane: &ControlPlane, scenario: &Arc<Scenario>) -> FreeRun {
        plane.run(scenario, Some(&self.oldest), "")
    }
}

impl Upgrade {
    /// The control planes before and after the upgrade.
    #[must_use]
    pub fn control_planes(&self) -> [ControlPlane; 2] {
        let sides = [(self.from, &self.from_gates), (self.to, &self.to_gates)];
        sides.map(|(release, settings)| ControlPlane::new(Rules::of(release), settings))
    }

    /// The settings before the upgrade that the older release accepts. The others are set by the
    /// upgrade.
    fn older_settings(&self) -> Vec<GateSetting> {
        let mut gates = ClusterGates::from(Rules::of(self.from).default_gates());
        self.from_gates.iter().filter(|it| gates.set(it).is_ok()).cloned().collect()
    }

    /// The changes of the releases, and then the gates that have other settings.
    pub(crate) fn plan(&self) -> Plan {
        let [oldest, newest] = self.control_planes();
        let known = |release| CHANGES.iter().take_while(|it| it.since <= release).count();
        let (rows, old_settings) = (known(self.from), self.older_settings());
        let mut before = oldest;
        let mut steps = Vec::new();
        let mut step = |cause, after: ControlPlane| {
            let first_reconcile = |plane: ControlPlane| plane.rules.queue.first_reconcile;
            let moves_first_reconcile = first_reconcile(before) != first_reconcile(after);
            if after != before {
                steps.push(Step { cause, moves_first_reconcile });
            }
            before = after;
        };
        for row in rows..known(self.to) {
            let after = ControlPlane::new(Rules::after(row + 1), &old_settings);
            step(Cause::Change(row), after);
        }
        let mut after = ControlPlane::new(newest.rules, &old_settings);
        for gate in Gate::ALL {
            after.gates = after.gates.with(gate, &newest.gates);
            step(Cause::Gate(gate), after);
        }
        Plan { oldest, newest, steps, rows, old_settings }
    }

    /// The explanation of a cause.
    #[must_use]
    pub fn reason(&self, cause: Cause) -> Reason {
        match cause {
            Cause::Change(row) => {
                let change = &CHANGES[row];
                Reason { since: change.since, what: change.what.into(), link: change.link }
            }
            Cause::Gate(gate) => {
                let [_, newest] = self.control_planes();
                let old = ControlPlane::new(newest.rules, &self.older_settings()).gates;
                let state = |component: Component| newest.gates.of(component).enabled(gate);
                let differs = |it: &Component| old.of(*it).enabled(gate) != state(*it);
                let differing: Vec<Component> =
                    Component::ALL.into_iter().filter(differs).collect();
                let on = |component: Component| if state(component) { "on" } else { "off" };
                let what = match differing.as_slice() {
                    [only] => {
                        let (on, component) = (on(*only), only.name());
                        format!("the feature gate {} is now {on} in the {component}", gate.name())
                    }
                    _ => {
                        let on = on(Component::ControllerManager);
                        format!("the feature gate {} is now {on}", gate.name())
                    }
                };
                Reason { since: self.to, what: what.into(), link: GATES }
            }
        }
    }

    /// The scenario as the older and as the newer control plane run it: with their feature gates,
    /// and without fields that the API server does not know.
    ///
    /// # Errors If the components have different feature gates, or if the result depends on HPAs
    /// that are already stored: a scenario can express neither.
    pub fn sides(&self, scenario: &Arc<Scenario>) -> [Result<Arc<Scenario>, &'static str>; 2] {
        let [oldest, newest] = self.control_planes();
        let side = |release, plane: ControlPlane| {
            let gate_overrides = gate_overrides(release, &plane);
            let gate_overrides = gate_overrides.ok_or(
                "the components of a scenario's control plane have the same feature gates",
            )?;
            let [stored, new] = [Some(&oldest), None].map(|by| plane.run(scenario, by, "").trace);
            if difference(&stored, &new).is_some() {
                return Err("a scenario creates its HPAs, so none of them is already stored");
            }
            let known = match plane.rules.admission.has_tolerance {
                true => Scenario::clone(scenario),
                false => scenario.without_tolerances(),
            };
            Ok(Arc::new(Scenario { gate_overrides, ..known }))
        };
        [side(self.from, oldest), side(self.to, newest)]
    }

    /// The files that show an example, each with its name. With feature gates, each release has a
    /// file of its own, unless a scenario can't have its gates.
    #[must_use]
    pub fn files(&self, example: &Example) -> Vec<(String, Value)> {
        let name = &example.scenario.id;
        if self.from_gates.is_empty() && self.to_gates.is_empty() {
            return vec![(name.to_string(), example.tree.clone())];
        }
        let sides = [self.from, self.to].into_iter().zip(self.sides(&example.scenario));
        let file = |(release, side): (Release, Result<Arc<Scenario>, _>)| {
            // Other releases may not accept the gates.
            let releases = ReleaseRange { from: Some(release), to: Some(release) };
            let side = Scenario { releases, ..(*side.ok()?).clone() };
            Some((format!("{name}-on-{release}"), to_tree(&side)))
        };
        sides.filter_map(file).collect()
    }
}

/// The feature gates that a scenario sets for a control plane. None: its components differ.
fn gate_overrides(
    release: Release,
    ControlPlane { rules, gates }: &ControlPlane,
) -> Option<BTreeMap<String, bool>> {
    let gates = Some(gates.api_server).filter(|it| *it == gates.controller_manager)?;
    let mut overrides: BTreeMap<String, bool> =
        gates.changed().map(|(gate, on)| (gate.name().to_owned(), on)).collect();
    // Without a setting, scenarios with container metrics have the gate.
    let containers = Gate::HpaContainerMetrics;
    if rules.feature_gates[containers as usize] == GateRule::Default(false) {
        overrides.insert(containers.name().to_owned(), gates.enabled(containers));
    }
    // Gates that depend on a disabled gate must be disabled as well.
    let dependents = Dependent::of(release).filter(|it| it.default_value(release));
    for dependent in dependents.filter(|it| !gates.enabled(it.needs)) {
        overrides.insert(dependent.name.to_owned(), false);
    }
    Some(overrides)
}
