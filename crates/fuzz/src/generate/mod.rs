//! Generates the scenario of a seed and an index.
//!
//! Scenarios are usually valid and close to boundaries, because others reveal no differences.
//! Replicas and times are drawn around the boundaries of the scenario: its tolerance, windows,
//! limits and sync period.

mod behavior;
mod custom;
mod edge;
mod hpa;
pub(crate) mod metrics;
mod numbers;
mod older;
mod others;
mod races;
mod resources;
mod several;
mod timeline;
pub(crate) mod with_vpa;
pub(crate) mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::edge::Edge;
use super::area::Area;
use super::dice::Dice;
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::flags::{FeatureGates, Flag, Flags, Gate};
use kube_autoscaler_models::rules::{Dependent, Release, Rules, Windows};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, Metrics, Observed, PodSet, ReleaseRange};

/// The scenario with this index. It focuses on one of `areas`, or on any area if `areas` is empty.
#[must_use]
pub fn scenario(seed: u64, index: u64, release: Release, areas: &[Area]) -> Scenario {
    let mut dice = Dice::new(seed, index);
    let area = area(&mut dice, areas);
    let id = format!("fuzz/{seed}-{index}");
    let requirement = format!("Model and upstream agree (seed {seed}, scenario {index}).");
    let mut made = supported(&mut dice, area, release);
    if area == Area::HpaAndVpa {
        // Few scenarios of HPAs can't have a VPA.
        for _ in 0..MAX_TRIES {
            if let Some(both) = with_vpa::add(&mut dice, &made) {
                made = both;
                break;
            }
            made = supported(&mut dice, area, release);
        }
    }
    Scenario { path: id.clone(), id, requirement, ..made }
}

/// The number of scenarios of HPAs to which a VPA is added, until one can have it.
const MAX_TRIES: usize = 20;

/// The maximum number of scenarios that are generated until the release supports one. It is rarely
/// reached, in areas of which a release supports little, such as `behavior` on 1.6.
const MAX_DRAWS: usize = 100;

/// Generates a scenario of an HPA that the release supports. If none of [`MAX_DRAWS`] scenarios is
/// supported, returns the last one.
fn supported(dice: &mut Dice, area: Area, release: Release) -> Scenario {
    let mut made = hpa_scenario(dice, area, release);
    for _ in 1..MAX_DRAWS {
        if made.unsupported_on(release).is_none() {
            break;
        }
        made = hpa_scenario(dice, area, release);
    }
    // Drawn last, so that the rest of a seed's scenario does not depend on it.
    for event in &mut made.timeline {
        if let Action::TargetDeleted(deletion) = &mut event.action {
            deletion.orphan = dice.percent(25).then_some(true);
        }
    }
    made
}

fn hpa_scenario(dice: &mut Dice, area: Area, release: Release) -> Scenario {
    let edge = edge::edge(dice, area);
    let flags = flags(dice, area, edge, &Rules::of(release));
    let (gates, gate_overrides) = gates(dice, release);
    let ticks = ticks(dice, area, flags.sync_period);
    let to_zero = gates.enabled(Gate::HpaScaleToZero);
    let tolerance = Rules::of(release).admission.has_tolerance;
    // The generator's position is moved into the draft, and back.
    let own = std::mem::replace(dice, Dice::new(0, 0));
    let mut draft =
        Draft { dice: own, area, edge, flags, ticks, to_zero, tolerance, ..Draft::default() };
    let workload = workload::workload(&mut draft);
    let first = hpa::manifest(&mut draft);
    let (hpas, other_targets) = several::hpas(&mut draft, first);
    let metrics = metrics::metrics(&mut draft);
    let custom = metrics.pods.iter().map(|metric| &metric.name);
    let custom = custom.chain(metrics.objects.iter().map(|metric| &metric.name));
    let custom = custom.chain(metrics.externals.iter().map(|metric| &metric.name));
    draft.names = custom.cloned().collect();
    let other_pods = others::other_pods(&mut draft);
    let other_namespaces = others::other_namespaces(&mut draft);
    let timeline = timeline::timeline(&mut draft);
    let until = draft.until();
    *dice = draft.dice;
    Scenario {
        objects: None,
        path: String::new(),
        id: String::new(),
        requirement: String::new(),
        upstream: String::new(),
        covers: Vec::new(),
        releases: ReleaseRange::default(),
        flags: draft.flags,
        explicit_flags: draft.flags.differing(&Flags::default()),
        gate_overrides,
        namespace: Arc::from("default"),
        hpas,
        notes: Vec::new(),
        manifest_notes: Vec::new(),
        is_of_manifests: false,
        search: None,
        clock: None,
        workload,
        other_targets,
        other_pods,
        other_namespaces,
        metrics,
        timeline,
        until,
        observed: Observed::ALL,
        vpa: None,
        expect: Vec::new(),
        hash: String::new(),
        line: 1,
    }
}

/// The state of the scenario so far, for further draws.
#[derive(Debug)]
struct Draft {
    dice: Dice,
    area: Area,
    /// The edge case that the scenario is built around, if any.
    edge: Edge,
    /// The time at which pods become unready for the edge case.
    unready_at: Option<Time>,
    flags: Flags,
    /// The number of sync periods until the end.
    ticks: i64,
    /// The kind of the target, with its apiVersion.
    kind: (&'static str, &'static str),
    /// The apiVersion of the latest HPA.
    api_version: &'static str,
    /// The labels of the pods.
    labels: BTreeMap<String, String>,
    /// The initial replicas.
    replicas: i32,
    min: i32,
    max: i32,
    /// The containers with their CPU and memory requests in milli-units.
    containers: Vec<(Arc<str>, [i64; 2])>,
    /// The pod's spec, for the total requests.
    spec: PodSpec,
    /// The pod-level CPU and memory requests, if any.
    pod_requests: [Option<i64>; 2],
    /// The aim of each metric.
    aims: Vec<Aim>,
    /// The custom and external metrics with an entry.
    served: Metrics,
    /// The names of the metrics in the scenario.
    names: Vec<Arc<str>>,
    /// The names of the HPAs.
    hpas: Vec<Arc<str>>,
    /// The number of other targets.
    others: usize,
    /// The number of metric names used.
    named: usize,
    /// True if the current HPA scales a target without pods.
    podless: bool,
    /// True if the HPA can scale to zero.
    to_zero: bool,
    /// True if an HPA has its own tolerance.
    tolerance: bool,
    /// Durations that end with a change: windows, periods of policies, delays.
    spans: Vec<Span>,
    /// The startup of a pod: pending, ready.
    startup: (Span, Span),
}

/// The aim of a metric of the HPA.
#[derive(Clone, Copy, Debug)]
struct Aim {
    /// 0: cpu, 1: memory, 2: other metrics.
    resource: usize,
    /// The usage of one pod that is exactly on target, in milli-units.
    milli: i64,
    /// The request of one pod in milli-units; 0 for average values.
    requests: i64,
    tolerances: Tolerances,
}

/// How far usage may be from the target without a change of the replicas, in thousandths.
#[derive(Clone, Copy, Debug)]
struct Tolerances {
    down: i64,
    up: i64,
}

/// The HPA's name.
const HPA: &str = "web";
const RESOURCES: [&str; 2] = ["cpu", "memory"];
const CUSTOM: usize = 2;

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            dice: Dice::new(0, 0),
            area: Area::Ratios,
            edge: Edge::None,
            unready_at: None,
            flags: Flags::default(),
            ticks: 1,
            kind: ("Deployment", "apps/v1"),
            api_version: older::CURRENT,
            labels: BTreeMap::new(),
            replicas: 1,
            min: 1,
            max: 10,
            containers: Vec::new(),
            spec: PodSpec::default(),
            pod_requests: [None; 2],
            aims: Vec::new(),
            served: Metrics::default(),
            names: Vec::new(),
            hpas: vec![HPA.into()],
            others: 0,
            named: 0,
            podless: false,
            to_zero: true,
            tolerance: true,
            spans: Vec::new(),
            startup: (Span::ZERO, Span::ZERO),
        }
    }
}

impl Draft {
    /// Returns true with a probability in percent: `inside` if the scenario focuses on the area,
    /// otherwise `outside`.
    fn likely(&mut self, area: Area, outside: u64, inside: u64) -> bool {
        let percent = if self.area == area { inside } else { outside };
        self.dice.percent(percent)
    }

    fn until(&self) -> Time {
        Time::ZERO + Span(self.flags.sync_period.0 * self.ticks)
    }

    /// A time in the scenario: usually at or close to a reconcile, or a relevant duration away from
    /// one.
    fn instant(&mut self) -> Time {
        let period = self.flags.sync_period.0;
        let tick = self.dice.between(0, self.ticks) * period;
        let dice = &mut self.dice;
        let at = match dice.below(10) {
            0..=3 => tick,
            4 => tick - 1_000_000,
            5 => tick + 1_000_000,
            6 => tick + period / 2,
            7 if !self.spans.is_empty() => tick + self.dice.pick(&self.spans).0,
            _ => dice.between(0, self.ticks * period) / 1_000_000 * 1_000_000,
        };
        Time(at.clamp(0, self.until().0))
    }

    /// Some distinct times, in order.
    fn instants(&mut self, count: usize) -> Vec<Time> {
        let drawn: std::collections::BTreeSet<Time> = (0..count).map(|_| self.instant()).collect();
        drawn.into_iter().collect()
    }

    /// Some of the first pods, or all.
    fn pods(&mut self) -> PodSet {
        let last = i64::from(self.replicas) - 1;
        if last < 0 || self.dice.percent(15) {
            return PodSet::All;
        }
        let from = self.dice.between(0, last);
        let to = if self.dice.percent(50) { from } else { self.dice.between(from, last) };
        let ordinal = |number: i64| u32::try_from(number).unwrap_or(0);
        PodSet::Ordinals(vec![(ordinal(from), ordinal(to))])
    }

    /// A duration that ends at or close to a change.
    fn span(&mut self) -> Span {
        let period = self.flags.sync_period;
        let base = match self.dice.below(3) {
            0 if !self.spans.is_empty() => self.dice.pick(&self.spans),
            1 => Span::from_secs(self.dice.between(1, 400)),
            _ => Span(period.0 * self.dice.between(1, 8)),
        };
        let beside = self.dice.weighted(&[(6, 0), (1, -1), (1, 1), (1, -1000), (1, 1000)]);
        Span((base.0 + Span::from_millis(beside).0).max(1_000_000))
    }
}

fn area(dice: &mut Dice, areas: &[Area]) -> Area {
    let usual = [
        (200, Area::Ratios),
        (200, Area::Readiness),
        (240, Area::Behavior),
        (200, Area::Pods),
        (120, Area::Errors),
        (160, Area::Edits),
        (120, Area::Quantities),
        (400, Area::Custom),
        (200, Area::Several),
        (120, Area::Races),
        // Such a scenario has as many ticks as sixty others.
        (1, Area::Days),
    ];
    if areas.is_empty() { dice.weighted(&usual) } else { dice.pick(areas) }
}

/// Many short scenarios and a few long ones.
fn ticks(dice: &mut Dice, area: Area, period: Span) -> i64 {
    match area {
        Area::Days => 86_400_000_000_000 / period.0 * dice.between(100, 160) / 100,
        _ => dice.weighted(&[(3, 4), (30, 20), (30, 40), (8, 90)]) + dice.between(0, 20),
    }
}

/// The flags of the release, some with values other than the defaults.
fn flags(dice: &mut Dice, area: Area, edge: Edge, rules: &Rules) -> Flags {
    let default = Flags::default();
    // Later releases also have these flags, without effect.
    let forbids = rules.flags[Flag::UpscaleDelay as usize]
        && rules.normalization.windows == Windows::Forbidden;
    let mut flags = default.with(Flag::SyncPeriod, &rules.default_flags);
    let seconds = Span::from_secs;
    if dice.percent(20) {
        let periods = [seconds(30), seconds(10), seconds(1), Span::from_millis(100), seconds(60)];
        flags.sync_period = dice.pick(&periods);
        if dice.percent(20) {
            flags.sync_period = Span::from_millis(dice.between(100, 40_000));
        }
    }
    if area == Area::Days {
        flags.sync_period = dice.weighted(&[(6, seconds(60)), (1, seconds(30)), (1, seconds(15))]);
    }
    if dice.percent(30) {
        let period = flags.sync_period;
        let near = Span(period.0 * dice.between(1, 6) + dice.pick(&[-1_000_000, 0, 1_000_000]));
        let windows = [Span::ZERO, seconds(1), seconds(60), near, near];
        flags.downscale_stabilization = dice.pick(&windows);
    }
    if dice.percent(if area == Area::Ratios { 50 } else { 20 }) {
        flags.tolerance = dice.pick(&[0.0, 0.01, 0.05, 0.2, 0.25, 0.333, 0.5, 1.0, 1.5]);
    }
    if dice.percent(if area == Area::Readiness { 50 } else { 15 }) {
        let near = Span(flags.sync_period.0 * dice.between(1, 10));
        let periods = [Span::ZERO, seconds(30), seconds(60), seconds(90), near];
        flags.cpu_initialization_period = dice.pick(&periods);
        let delays = [Span::ZERO, seconds(10), seconds(15), seconds(60), near];
        flags.initial_readiness_delay = dice.pick(&delays);
    }
    edge::flags(dice, edge, &mut flags);
    if dice.percent(5) {
        flags.concurrent_syncs = dice.replicas(1, 20);
    }
    if forbids && dice.percent(50) {
        let near = Span(flags.sync_period.0 * dice.between(1, 6) + dice.pick(&[-1, 0, 1]));
        let windows = [Span::ZERO, seconds(1), seconds(60), near, near];
        flags.upscale_delay = dice.pick(&windows);
        flags.downscale_delay = dice.pick(&windows);
    }
    let absent = |flag: &Flag| !rules.flags[*flag as usize];
    Flag::ALL.into_iter().filter(absent).fold(flags, |flags, flag| flags.with(flag, &default))
}

/// The feature gates of the release, usually with their defaults.
fn gates(dice: &mut Dice, release: Release) -> (FeatureGates, BTreeMap<String, bool>) {
    let mut gates = Rules::of(release).default_gates();
    let mut overrides = BTreeMap::new();
    let known: Vec<Gate> = gates.iter().map(|(gate, _)| gate).collect();
    for gate in known {
        if !dice.percent(12) {
            continue;
        }
        let on = dice.percent(30);
        if gates.set(gate.name(), on).is_ok() {
            overrides.insert(gate.name().to_owned(), on);
        }
    }
    // Gates that depend on a disabled gate must be disabled as well.
    for dependent in Dependent::of(release).filter(|it| it.default_value(release)) {
        if !gates.enabled(dependent.needs) {
            overrides.insert(dependent.name.to_owned(), false);
        }
    }
    (gates, overrides)
}
