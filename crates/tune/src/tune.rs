//! The search itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::axis::{
    Axis, Defaults, Owner, Recommended, Vary, default_axes, default_axes_of_vpa, given_axes,
};
use super::evaluate::{Evaluator, Measured, days, run, stopped, with_values};
use super::search::{Point, Score, Scores, Search, by_cost, changed, front, spread};
use super::tuned::{
    Change, Check, Patch, Setting, Tuned, Varied, Without, change, days_kept, merge_patch, setting,
};
use serde_json::Value;

use kube_autoscaler_models::flags::Gate;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_autoscaler_models::time::Span;
use kube_lockstep_manifests::AutoscalerKind;
use kube_lockstep_manifests::field::FieldPath;
use kube_lockstep_report::bound::{Bound, Bounds};
use kube_lockstep_report::capacity::Capacity;
use kube_lockstep_report::columns::{COST, Column};
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::price::Price;
use kube_lockstep_scenario::metrics::UsageSource;
use kube_lockstep_scenario::{self as scenario, Scenario};
use kube_lockstep_sim::run::FreeRun;

/// The search for the cheapest settings of the autoscalers of a scenario that keep an objective.
///
/// The load of a scenario of two days or more is divided: the search uses the first, third, …
/// day, and the others check its result. The objective must hold on each day.
#[derive(Clone, Debug)]
#[must_use = "nothing is searched before `run` is called"]
pub struct Tune {
    scenario: Arc<Scenario>,
    release: Release,
    vary: Vec<Vary>,
    pub(crate) objective: Option<Bounds>,
    minimize: Option<Column>,
    price: Option<Price>,
    capacities: Vec<Capacity>,
    runs: u32,
    settings: usize,
    jobs: usize,
    seed: u64,
}

/// The progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The number of settings that have been evaluated.
    pub done: usize,
    /// The largest number of settings that the search evaluates.
    pub most: usize,
}

/// The number of settings that the checks try until one passes all of them.
const MOST_CHECKED: usize = 40;

/// The number of these that are the cheapest ones, if more settings meet the objective. The others
/// are settings of the front, which differ more from each other.
const CHEAPEST_CHECKED: usize = 20;

/// The start-up time of the check of a scenario whose pods are ready at once.
const USUAL_STARTUP: Span = Span::from_secs(30);

/// The largest number of changes whose combinations are all tried.
const MOST_COMBINED: u32 = 5;

/// Of the settings of a search that is not exhaustive, one in this number is one of the best
/// settings with fewer changes.
const PART_FOR_SIMPLER: usize = 10;

impl Tune {
    /// Creates a search for the newest release. The objective is to be no worse than the current
    /// setting.
    pub fn new(scenario: impl Into<Arc<Scenario>>) -> Tune {
        Tune {
            scenario: scenario.into(),
            release: Release::NEWEST,
            vary: Vec::new(),
            objective: None,
            minimize: None,
            price: None,
            capacities: Vec::new(),
            runs: 1,
            settings: 500,
            jobs: 1,
            seed: 0,
        }
    }

    /// Sets the release.
    pub fn release(mut self, release: Release) -> Tune {
        self.release = release;
        self
    }

    /// Varies only these fields. Default: the targets, limits and behavior of each HPA.
    pub fn vary(mut self, vary: Vec<Vary>) -> Tune {
        self.vary = vary;
        self
    }

    /// Sets the objective, which must hold on each day.
    pub fn objective(mut self, objective: Bounds) -> Tune {
        self.objective = Some(objective);
        self
    }

    /// Sets the figure to minimize. Default: the cost, or without prices the pod-hours.
    pub fn minimize(mut self, figure: Column) -> Tune {
        self.minimize = Some(figure);
        self
    }

    /// Sets the prices.
    pub fn price(mut self, price: Price) -> Tune {
        self.price = Some(price);
        self
    }

    /// Measures metrics against the load that a pod serves well, in place of their targets.
    pub fn capacities(mut self, capacities: Vec<Capacity>) -> Tune {
        self.capacities = capacities;
        self
    }

    /// Sets the number of runs with different noise, which check the result (default: 1).
    pub fn runs(mut self, runs: u32) -> Tune {
        self.runs = runs;
        self
    }

    /// Sets the largest number of settings that the search evaluates (default: 500).
    pub fn settings(mut self, settings: usize) -> Tune {
        self.settings = settings;
        self
    }

    /// Sets the number of threads (default: 1). The result does not depend on it.
    pub fn jobs(mut self, jobs: usize) -> Tune {
        self.jobs = jobs;
        self
    }

    /// Sets the seed of the points that are chosen at random (default: 0).
    pub fn seed(mut self, seed: u64) -> Tune {
        self.seed = seed;
        self
    }

    /// Searches.
    ///
    /// # Errors
    /// If the current setting can't be predicted, or an option does not fit the scenario.
    pub fn run(&self) -> Result<Tuned, String> {
        self.run_watched(&|_| true)
    }

    /// Searches, and reports the progress after each setting. If `watch` returns false, the search
    /// ends, and the result is that of the settings so far.
    ///
    /// # Errors
    /// As for [`Tune::run`].
    pub fn run_watched(&self, watch: &(dyn Fn(Progress) -> bool + Sync)) -> Result<Tuned, String> {
        let scenario = &self.scenario;
        let minimized = self.minimized()?;
        if let Some(why) = scenario.unsupported_on(self.release) {
            return Err(why.to_string());
        }
        let before = run(scenario, self.release)?;
        let mut reference = Reference::new(&before);
        for capacity in &self.capacities {
            if !reference.measure_at(capacity)? {
                return Err(format!("no HPA scales on {}, which has a capacity", capacity.metric));
            }
        }
        let days = days(scenario.until);
        let done = AtomicUsize::new(0);
        let goes_on = |settings: usize| {
            let done = settings + done.fetch_add(settings, Ordering::Relaxed);
            watch(Progress { done: done.min(self.settings), most: self.settings })
        };
        let evaluator = Evaluator {
            release: self.release,
            axes: &[],
            days: &days,
            reference: &reference,
            price: self.price,
            jobs: self.jobs.max(1),
            goes_on: &goes_on,
        };
        let current = evaluator.figures(scenario, &before);
        let recommended = recommended(&before);
        let stopped = stopped(&before);
        let notes = before.notes;
        drop((before.ticks, before.serving_changes, before.request_changes, before.vpa));
        let axes = self.axes(current.whole.scaling().needed_peak_replicas, &recommended)?;
        let evaluator = Evaluator { axes: &axes, ..evaluator };
        let searching = Searching::new(self, minimized, evaluator, current)?;
        let tuned = Searching { stopped, ..searching }.tuned()?;
        Ok(Tuned { notes, ..tuned })
    }

    /// The scenario with a setting, without its expectations.
    ///
    /// # Errors
    /// If an API server rejects the setting.
    pub fn scenario_with(&self, setting: &Setting) -> Result<Arc<Scenario>, String> {
        let changes = setting.changes.iter().map(|Change { hpa, path, to, .. }| {
            let mut path = FieldPath::parse(path)?;
            path.name.clone_from(hpa);
            Ok((path, to))
        });
        let changes: Vec<(FieldPath, &Value)> = changes.collect::<Result<_, String>>()?;
        let values = changes.iter().map(|(path, to)| (path, *to));
        let mut varied = with_values(&self.scenario, values)?;
        varied.expect = Vec::new();
        Ok(Arc::new(varied))
    }

    /// The figure to minimize. By default, `cost` if there are prices, otherwise `pod-hours`; with
    /// a VPA, prices or a figure are required.
    fn minimized(&self) -> Result<Column, String> {
        let without_price = |name: &str| name == COST && self.price.is_none();
        let bounds = self.objective.iter().flat_map(|objective| &objective.0);
        if bounds.into_iter().any(|bound| without_price(bound.column())) {
            return Err("the objective limits `cost`, which requires prices".to_owned());
        }
        match self.minimize {
            Some(column) if !without_price(column.name()) => Ok(column),
            None if self.price.is_some() => COST.parse(),
            _ if self.scenario.vpa.is_some() => {
                Err("with a VPA, the cost requires prices, for example --price \
                     cpu=0.03,memory=0.004; or name another figure to minimize, for example \
                     --minimize memory-requested"
                    .to_owned())
            }
            _ => "pod-hours".parse(),
        }
    }

    /// The figure that the search trades off against the minimized one.
    fn risk(&self, minimized: Column) -> Result<Column, String> {
        let name = match (self.scenario.hpas.is_empty(), minimized.name()) {
            (false, "missing") => "pod-hours",
            (false, _) => "missing",
            (true, "short") if self.price.is_some() => COST,
            (true, "short") => "cpu-requested",
            (true, _) => "short",
        };
        name.parse()
    }

    /// The fields to vary, of all autoscalers of the first target. `recommended`: the largest
    /// recommendations of the VPA.
    fn axes(&self, needed: i32, recommended: &[Recommended]) -> Result<Vec<Axis>, String> {
        let rules = Rules::of(self.release);
        let defaults = Defaults {
            needed,
            has_behavior: rules.admission.has_behavior,
            has_tolerance: rules.admission.has_tolerance
                && self.scenario.gates_by(&rules).enabled(Gate::HpaConfigurableTolerance),
        };
        let mut tree = scenario::to_manifests(&self.scenario);
        for Vary { path, .. } in &self.vary {
            path.find(&mut tree)?;
        }
        let hpas = &self.scenario.hpas;
        let names: Vec<&str> = hpas.iter().map(|hpa| &*hpa.name).collect();
        let vpa = self.scenario.vpa_name().map(|name| &**name);
        let given = |kind: AutoscalerKind, name: &str| -> Vec<Vary> {
            let own = self.vary.iter().filter(|vary| vary.path.is_of(kind, name, &names, vpa));
            own.cloned().collect()
        };
        let mut axes = Vec::new();
        for hpa in hpas.iter().filter(|hpa| hpa.target == 0) {
            let owner = Owner { kind: None, name: (hpas.len() > 1).then_some(&*hpa.name) };
            axes.extend(match self.vary.is_empty() {
                true => default_axes(&hpa.manifest, owner, defaults),
                false => given_axes(&mut tree, owner, &given(AutoscalerKind::Hpa, &hpa.name))?,
            });
        }
        if let Some(name) = vpa {
            let kind = (!hpas.is_empty()).then_some(AutoscalerKind::Vpa);
            let owner = Owner { kind, name: None };
            axes.extend(match self.vary.is_empty() {
                true => default_axes_of_vpa(&tree["vpa"], owner, recommended),
                false => given_axes(&mut tree, owner, &given(AutoscalerKind::Vpa, name))?,
            });
        }
        // A path must lead to a field that can be set.
        for axis in &axes {
            let mut tree = tree.clone();
            let object = axis.path.find(&mut tree)?;
            let metrics = object["spec"]["metrics"].as_array().map_or(0, Vec::len);
            if !axis.path.is_of_policy() {
                axis.path.set(object, axis.values[axis.current].clone())?;
                axis.path.check_metric(object, metrics)?;
            }
        }
        Ok(axes)
    }
}

/// The error of a figure that does not exist without an HPA or without a VPA.
fn does_not_apply(what: &str, figure: &str, scenario: &Scenario) -> String {
    let lacks = if scenario.hpas.is_empty() { "an HPA" } else { "a VPA" };
    format!("{what} `{figure}`, which requires {lacks}")
}

/// The largest amounts that the VPA of a run recommends, without its policies.
fn recommended(run: &FreeRun) -> Vec<Recommended> {
    let mut all: Vec<Recommended> = Vec::new();
    let Some(vpa) = &run.vpa else { return all };
    let snapshots = vpa.snapshots().iter().flat_map(|snapshot| snapshot.statuses.values());
    let recommendations = snapshots.filter_map(|status| status.recommendation.as_ref());
    for container in recommendations.flat_map(|it| &it.container_recommendations) {
        let name = &*container.container_name;
        let index = all.iter().position(|it| it.container == name).unwrap_or(all.len());
        if index == all.len() {
            all.push(Recommended { container: name.to_owned(), cpu: None, memory: None });
        }
        let uncapped = &container.uncapped_target;
        let milli = |amount: &Option<Quantity>| amount.as_ref().map(Quantity::milli);
        let known = &mut all[index];
        known.cpu = known.cpu.max(milli(&uncapped.cpu));
        known.memory = known.memory.max(milli(&uncapped.memory));
    }
    all
}

/// The names of the metrics of HPAs whose load is that of each pod. Memory is left out: programs
/// rarely share it.
fn loads_per_pod(scenario: &Scenario) -> Vec<String> {
    let is_per_pod = |source: &UsageSource| !matches!(source, UsageSource::Load { .. });
    let metrics = &scenario.metrics;
    let resources = metrics.resources.iter().map(|it| (&it.name, &it.source));
    let loads = resources.chain(metrics.pods.iter().map(|it| (&it.name, &it.source)));
    let per_pod: BTreeSet<&str> = loads
        .filter(|(name, source)| &***name != "memory" && is_per_pod(source))
        .map(|(name, _)| &**name)
        .collect();
    let read = scenario.hpas.iter().flat_map(|hpa| &hpa.spec.metrics);
    let read: BTreeSet<&str> = read.filter_map(|metric| metric.name()).collect();
    per_pod.intersection(&read).map(|name| (*name).to_owned()).collect()
}

/// A search in progress.
struct Searching<'s> {
    tune: &'s Tune,
    evaluator: Evaluator<'s>,
    objective: Bounds,
    minimized: Column,
    risk: Column,
    start: Point,
    current: Measured,
    measured: BTreeMap<Point, Measured>,
    is_interrupted: bool,
    /// Why the controller can't scale any HPA with the current setting.
    stopped: Option<String>,
    /// The number of settings with different figures that meet the objective on all days.
    kept_settings: usize,
    /// The number of settings that the checks have tried.
    checked_settings: usize,
    /// The points that an API server rejects, with its reason.
    rejected: BTreeMap<Point, String>,
}

impl<'s> Searching<'s> {
    fn new(
        tune: &'s Tune,
        minimized: Column,
        evaluator: Evaluator<'s>,
        current: Measured,
    ) -> Result<Searching<'s>, String> {
        let objective = tune.objective.clone().unwrap_or_else(Bounds::no_worse);
        let applying = objective.applying_to(&current.whole);
        if tune.objective.is_some() && applying.0.len() < objective.0.len() {
            let is_other =
                |bound: &&Bound| !applying.0.iter().any(|it| it.column() == bound.column());
            let other = objective.0.iter().find(is_other).map_or("", Bound::column);
            return Err(does_not_apply("the objective limits", other, &tune.scenario));
        }
        if !minimized.applies(&current.whole) {
            return Err(does_not_apply(
                "the figure to minimize is",
                minimized.name(),
                &tune.scenario,
            ));
        }
        let start: Point = evaluator.axes.iter().map(|axis| axis.current).collect();
        Ok(Searching {
            tune,
            evaluator,
            minimized,
            risk: tune.risk(minimized)?,
            objective: applying,
            start,
            current,
            measured: BTreeMap::new(),
            is_interrupted: false,
            stopped: None,
            kept_settings: 0,
            checked_settings: 0,
            rejected: BTreeMap::new(),
        })
    }

    /// Fails if all other values of a field are invalid.
    fn check_fields(&self) -> Result<(), String> {
        for (index, axis) in self.evaluator.axes.iter().enumerate() {
            let alone = (0..axis.values.len()).filter(|value| *value != axis.current);
            let reasons = alone.map(|value| {
                let mut point = self.start.clone();
                point[index] = value;
                self.rejected.get(&point)
            });
            let reasons: Vec<Option<&String>> = reasons.collect();
            if let Some(Some(first)) = reasons.first()
                && reasons.iter().all(Option::is_some)
            {
                let path = axis.path.to_string();
                return Err(match first.contains(&path) {
                    true => (*first).clone(),
                    false => format!("{path}: {first}"),
                });
            }
        }
        Ok(())
    }

    fn tuned(mut self) -> Result<Tuned, String> {
        let axes = self.evaluator.axes;
        let grid: Vec<usize> = axes.iter().map(|axis| axis.values.len()).collect();
        let start = self.start.clone();
        let (most, seed) = (self.tune.settings.max(1), self.tune.seed);
        let mut search = Search { grid: &grid, start: &start, most, seed };
        if !search.is_exhaustive() {
            search.most = (most - most / PART_FOR_SIMPLER).max(1);
        }
        let mut scores = search.run(&mut |points| self.scores(points));
        if !search.is_exhaustive() {
            self.add_simpler(&mut scores, most);
        }
        // Defaults can contradict other fields of the manifest, such as a maximum.
        if !self.tune.vary.is_empty() {
            self.check_fields()?;
        }
        self.measured.entry(start.clone()).or_insert_with(|| self.current.clone());
        // The default fields can only hide the cause, with limits that contradict each other.
        let is_hopeless = || self.measured.values().all(|it| it.is_stopped);
        let is_stopped = self.tune.vary.is_empty() || is_hopeless();
        self.stopped = self.stopped.take().filter(|_| is_stopped);
        let conditions = self.conditions();
        let best = match self.stopped {
            Some(_) => None,
            None => self.best(&scores, &conditions),
        };
        let best = best.map(|best| self.simplified(best, &mut scores, &conditions));
        let (best, checks) = best.map_or((None, Vec::new()), |it| (Some(it.point), it.checks));
        let contributions = best.as_ref().map(|best| self.contributions(best)).unwrap_or_default();
        let mut front = front(&scores, &start);
        front.retain(|_| self.stopped.is_none());
        let setting = |point: &Point| self.setting(point, &self.measured[point]);
        Ok(Tuned {
            objective: self.objective.to_string(),
            minimized: self.minimized.name(),
            risk: self.risk.name(),
            current: setting(&start),
            patches: best.as_ref().map(|best| self.patches(best)).transpose()?.unwrap_or_default(),
            best: best.as_ref().map(setting),
            contributions,
            checks,
            kept_settings: self.kept_settings,
            checked_settings: self.checked_settings,
            front: front.iter().map(setting).collect(),
            stopped: self.stopped.clone(),
            loads_per_pod: loads_per_pod(&self.tune.scenario),
            varied: axes.iter().map(varied).collect(),
            evaluated: scores.len(),
            invalid: self.rejected.len(),
            grid: u64::try_from(search.size()).unwrap_or(u64::MAX),
            is_exhaustive: search.is_exhaustive() && !self.is_interrupted,
            is_interrupted: self.is_interrupted,
            days: self.current.days.len(),
            invalid_reason: self.rejected.values().next().cloned(),
            notes: Vec::new(),
            all: self.measured.iter().map(|(point, it)| self.setting(point, it)).collect(),
        })
    }

    /// Evaluates the best settings without each of their changes, since a search finds settings
    /// with changes that have no effect. Of settings with the same figures, the front and the best
    /// setting are those with the fewest changes.
    fn add_simpler(&mut self, scores: &mut Scores, most: usize) {
        for axis in 0..self.start.len() {
            let mut points = front(scores, &self.start);
            points.extend(self.kept(scores).into_iter().take(1));
            let mut simpler = Vec::new();
            for mut point in points {
                if point[axis] != self.start[axis] {
                    point[axis] = self.start[axis];
                    simpler.push(point);
                }
            }
            simpler.sort();
            simpler.dedup();
            simpler.retain(|point| !scores.contains_key(point));
            simpler.truncate(most.saturating_sub(scores.len()));
            let found = self.scores(&simpler);
            scores.extend(simpler.into_iter().zip(found));
        }
    }

    /// The settings that meet the objective on the days of the search, from the cheapest on. Of
    /// settings with the same cost, the one with the fewest changes is the first.
    fn kept(&self, scores: &Scores) -> Vec<Point> {
        let all = by_cost(scores, &self.start).into_iter();
        let mut kept: Vec<_> = all.filter(|(_, score)| score.violation == 0.0).collect();
        let changes = |point: &Point| changed(point, &self.start).len();
        kept.sort_by(|(one, a), (other, b)| {
            a.cost.total_cmp(&b.cost).then(changes(one).cmp(&changes(other)))
        });
        kept.into_iter().map(|(point, _)| point.clone()).collect()
    }

    /// Removes the unnecessary changes of the best setting: without any remaining change, it would
    /// cost more, meet the objective on fewer days, or pass fewer checks.
    fn simplified(&mut self, best: Best, scores: &mut Scores, conditions: &[Condition]) -> Best {
        let fewer = self.with_fewer_changes(&best.point);
        let unknown: Vec<Point> =
            fewer.iter().filter(|point| !scores.contains_key(*point)).cloned().collect();
        let found = self.scores(&unknown);
        scores.extend(unknown.into_iter().zip(found));
        let cost = |point: &Point| scores.get(point).and_then(|score| Some((*score)?.cost));
        // The figures can differ by rounding.
        let most = cost(&best.point).map_or(f64::INFINITY, |cost| cost + cost.abs() * 1e-9);
        let candidates = self.kept(scores).into_iter().filter(|point| {
            let is_cheap = cost(point).is_some_and(|cost| cost <= most);
            is_cheap
                && fewer.contains(point)
                && self.days_kept(point) >= self.days_kept(&best.point)
        });
        for point in candidates.collect::<Vec<_>>() {
            let checks = self.checks(&point, conditions);
            self.is_interrupted |= !(self.evaluator.goes_on)(0);
            if self.is_interrupted {
                return best;
            }
            let simpler = Best { point, checks };
            if simpler.failed() <= best.failed() {
                return self.simplified(simpler, scores, conditions);
            }
        }
        best
    }

    /// The settings with a part of the changes of a setting: every part or, if there are many
    /// changes, only the parts that lack one change.
    fn with_fewer_changes(&self, point: &Point) -> Vec<Point> {
        let axes = changed(point, &self.start);
        let count = u32::try_from(axes.len()).unwrap_or(u32::MAX);
        let kept: Vec<u32> = match count {
            0..=MOST_COMBINED => (0..(1 << count) - 1).collect(),
            count => (0..count.min(31)).map(|axis| !(1 << axis)).collect(),
        };
        let fewer = kept.into_iter().map(|kept| {
            let mut fewer = point.clone();
            let removed = axes.iter().enumerate().filter(|(bit, _)| kept >> bit & 1 == 0);
            removed.for_each(|(_, axis)| fewer[*axis] = self.start[*axis]);
            fewer
        });
        fewer.collect()
    }

    /// The number of days on which a setting meets the objective.
    fn days_kept(&self, point: &Point) -> usize {
        let measured = self.measured.get(point);
        measured.map_or(0, |it| days_kept(it, &self.current, &self.objective))
    }

    fn setting(&self, point: &Point, measured: &Measured) -> Setting {
        setting(self.evaluator.axes, point, measured, &self.current, &self.objective)
    }

    /// Evaluates points.
    fn scores(&mut self, points: &[Point]) -> Vec<Option<Score>> {
        let measured = self.evaluator.measure_all(&self.tune.scenario, points);
        self.is_interrupted |= measured.len() < points.len();
        let scored = points.iter().zip(measured).map(|(point, measured)| {
            let measured = match measured {
                Ok(measured) => measured,
                Err(why) => {
                    self.rejected.insert(point.clone(), why);
                    return None;
                }
            };
            let score = self.score(&measured);
            self.measured.insert(point.clone(), measured);
            score
        });
        scored.collect()
    }

    /// The score. The objective must hold on the days that the search uses: the first, the third,
    /// and so on. None: a figure does not exist.
    fn score(&self, measured: &Measured) -> Option<Score> {
        let days = || measured.days.iter().zip(&self.current.days).step_by(2);
        let violations = days().flat_map(|(day, base)| {
            let excess = |bound: &Bound| {
                let limit = bound.limit(base)?.abs();
                Some(bound.excess(day, base)? / if limit > 0.0 { limit } else { 1.0 })
            };
            self.objective.0.iter().map(excess)
        });
        Some(Score {
            violation: violations.sum::<Option<f64>>()?,
            cost: self.minimized.figure(&measured.whole)?,
            risk: self.risk.figure(&measured.whole)?,
        })
    }

    /// The cheapest setting that meets the objective on all days and passes all checks; if none of
    /// the checked ones does, the cheapest one with the checks that it fails.
    fn best(&mut self, scores: &Scores, conditions: &[Condition]) -> Option<Best> {
        let is_kept = |point: &Point| self.days_kept(point) == self.current.days.len();
        let (kept, others): (Vec<Point>, Vec<Point>) =
            self.kept(scores).into_iter().partition(is_kept);
        let distinct = self.distinct(kept);
        let mut candidates = to_check(&distinct, &front(scores, &self.start), &self.start);
        self.kept_settings = distinct.len();
        let first = match candidates.is_empty() {
            true => others.into_iter().next()?,
            false => candidates.remove(0),
        };
        self.checked_settings = 1;
        let first = Best { checks: self.checks(&first, conditions), point: first };
        for point in candidates {
            // The first one is the result of an interrupted search.
            self.is_interrupted |= !(self.evaluator.goes_on)(0);
            if self.is_interrupted || first.failed() == 0 {
                break;
            }
            self.checked_settings += 1;
            if let Some(checks) = self.passed(&point, conditions) {
                return Some(Best { point, checks });
            }
        }
        Some(first)
    }

    /// The first settings of those with the same figures. `points` are in the order of their cost.
    fn distinct(&self, points: Vec<Point>) -> Vec<Point> {
        let mut distinct: Vec<Point> = Vec::new();
        for point in points {
            let figures = &self.measured[&point];
            let cost = |it: &Measured| self.minimized.figure(&it.whole);
            let known = distinct.iter().rev().map(|it| &self.measured[it]);
            let mut same_cost = known.take_while(|it| cost(it) == cost(figures));
            if !same_cost.any(|it| it == figures) {
                distinct.push(point);
            }
        }
        distinct
    }

    /// Other conditions than those of the search, each with the current setting under it.
    fn conditions(&self) -> Vec<Condition> {
        let scenario = &self.tune.scenario;
        let noise = (1..self.tune.runs).filter_map(|run| {
            let varied = scenario::with_noise_of_run(scenario, run)?;
            Some((format!("noise of run {}", run + 1), varied))
        });
        let startup = scenario.workload.startup.ready.filter(|ready| *ready > Span::ZERO);
        let startup = match startup {
            Some(ready) => vec![Span(ready.0 / 2), Span(ready.0.saturating_mul(2))],
            // Pods that are ready at once are an assumption, too.
            None if !scenario.hpas.is_empty() => vec![USUAL_STARTUP],
            None => Vec::new(),
        };
        let startup = startup.into_iter().map(|ready| {
            let mut varied = (**scenario).clone();
            varied.workload.startup.ready = Some(ready);
            (format!("start-up of {ready}"), varied)
        });
        // After Ctrl-C, no more checks are run.
        let goes_on = |_: &(String, Scenario)| !self.is_interrupted && (self.evaluator.goes_on)(0);
        let all = noise.chain(startup).take_while(goes_on);
        let conditions = all.filter_map(|(name, scenario)| {
            let current = self.evaluator.measure(&scenario, &self.start).ok()?;
            Some(Condition { name, scenario, current })
        });
        conditions.collect()
    }

    /// All checks of a setting.
    fn checks(&self, point: &Point, conditions: &[Condition]) -> Vec<Check> {
        let goes_on = |_: &&Condition| (self.evaluator.goes_on)(0);
        let others = conditions.iter().take_while(goes_on);
        let others = others.map(|condition| self.check(point, condition));
        self.checks_of_days(point).into_iter().chain(others).collect()
    }

    /// All checks of a setting that meets the objective on all days. None: it does not pass one,
    /// and the others are not run.
    fn passed(&self, point: &Point, conditions: &[Condition]) -> Option<Vec<Check>> {
        // The longest start-up is the last condition; few settings fail only the others.
        let others = conditions.iter().rev().map(|condition| {
            let check = (self.evaluator.goes_on)(0).then(|| self.check(point, condition));
            check.filter(|check| check.broken.is_empty())
        });
        let others: Vec<Check> = others.collect::<Option<_>>()?;
        Some(self.checks_of_days(point).into_iter().chain(others.into_iter().rev()).collect())
    }

    /// The checks on the days that the search does not use.
    fn checks_of_days(&self, point: &Point) -> Vec<Check> {
        let Some(measured) = self.measured.get(point) else { return Vec::new() };
        let days = measured.days.iter().zip(&self.current.days).enumerate();
        let checks = days.skip(1).step_by(2).map(|(index, (day, base))| Check {
            condition: format!("day {}", index + 1),
            broken: self.broken(day, base),
        });
        checks.collect()
    }

    fn check(&self, point: &Point, condition: &Condition) -> Check {
        let broken = match self.evaluator.measure(&condition.scenario, point) {
            Ok(measured) => {
                let days = measured.days.iter().zip(&condition.current.days).enumerate();
                let broken = days.flat_map(|(index, (day, base))| {
                    let on = (measured.days.len() > 1).then(|| format!("day {}: ", index + 1));
                    let on = on.unwrap_or_default();
                    self.broken(day, base).into_iter().map(move |it| format!("{on}{it}"))
                });
                broken.collect()
            }
            Err(why) => vec![why],
        };
        Check { condition: condition.name.clone(), broken }
    }

    /// The bounds of the objective that figures break.
    fn broken(&self, figures: &Figures, base: &Figures) -> Vec<String> {
        let broken = self.objective.0.iter().filter(|it| !it.is_kept(figures, base));
        broken.map(|bound| bound.broken(figures, base)).collect()
    }

    /// The best setting without each of its changes.
    fn contributions(&self, best: &Point) -> Vec<Without> {
        let without = changed(best, &self.start).into_iter().map(|axis| {
            let mut point = best.clone();
            point[axis] = self.start[axis];
            let measured = match self.measured.get(&point) {
                Some(known) => Some(known.clone()),
                None => self.evaluator.measure(&self.tune.scenario, &point).ok(),
            };
            let kept = |it: &Measured| days_kept(it, &self.current, &self.objective);
            Without {
                change: change(&self.evaluator.axes[axis], best[axis]),
                figures: measured.as_ref().map(|measured| measured.whole),
                days_kept: measured.as_ref().map_or(0, kept),
            }
        });
        without.collect()
    }

    /// The patches of the autoscalers that a setting changes.
    fn patches(&self, point: &Point) -> Result<Vec<Patch>, String> {
        let before = scenario::to_manifests(&self.tune.scenario);
        let after = self.evaluator.manifests(&self.tune.scenario, point)?;
        let hpas = |tree: &Value| tree["hpas"].as_array().cloned().unwrap_or_default();
        let hpas = hpas(&before).into_iter().zip(hpas(&after));
        let hpas = hpas.map(|(before, after)| (AutoscalerKind::Hpa, before, after));
        let vpa = (AutoscalerKind::Vpa, before["vpa"].clone(), after["vpa"].clone());
        let changed = hpas.chain([vpa]).filter(|(_, before, after)| before != after);
        let patch = |(kind, before, manifest): (AutoscalerKind, Value, Value)| Patch {
            kind,
            name: manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            patch: merge_patch(&before, &manifest),
            manifest,
        };
        Ok(changed.map(patch).collect())
    }
}

/// The settings to check, of those that meet the objective, which are in the order of their cost:
/// the cheapest ones, and then settings of the front, evenly, with both ends. The current setting
/// is always one of them.
fn to_check(kept: &[Point], front: &[Point], start: &Point) -> Vec<Point> {
    if kept.len() <= MOST_CHECKED {
        return kept.to_vec();
    }
    let (cheapest, others) = kept.split_at(CHEAPEST_CHECKED);
    let of_front: Vec<&Point> = others.iter().filter(|it| front.contains(it)).collect();
    // One is left for the current setting.
    let of_front = spread(&of_front, MOST_CHECKED - CHEAPEST_CHECKED - 1);
    let others = others.iter().filter(|it| *it == start || of_front.contains(it));
    cheapest.iter().chain(others).cloned().collect()
}

/// The best setting of a search, with its checks.
struct Best {
    point: Point,
    checks: Vec<Check>,
}

impl Best {
    /// The number of checks that the setting does not pass.
    fn failed(&self) -> usize {
        self.checks.iter().filter(|check| !check.broken.is_empty()).count()
    }
}

/// Other conditions than those of the search.
struct Condition {
    name: String,
    scenario: Scenario,
    current: Measured,
}

fn varied(axis: &Axis) -> Varied {
    let path = axis.path.to_string();
    Varied { hpa: axis.path.name.clone(), path, values: axis.values.clone() }
}
