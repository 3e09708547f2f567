//! Runs a scenario with disturbances: watch events that are late, writes that fail, and crashes.
//!
//! A scenario runs undisturbed first. The disturbances of the further runs are drawn from what that
//! run shows can be disturbed. For each expectation that a run does not meet, the result is a
//! smallest set of disturbances with which it is not met.

pub mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::fuzzing::NewEngine;
use kube_autoscaler_models::time::Span;
use kube_lockstep_report::counted;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::disturbance::{
    CrashPoint, Disturbable, Disturbance, DisturbanceKind, Hold, Watch, WriteError,
};
use kube_lockstep_sim::engine::{Engine, EngineError};
use kube_lockstep_sim::run::in_order::in_order;
use kube_lockstep_sim::run::leave_out::smallest;
use kube_lockstep_sim::run::{Outcome, Verdict, lockstep, run_one};

/// The delays of events, in nanoseconds. A controller reacts without time passing, so the shortest
/// one suffices to deliver an event after everything else of its instant.
const DELAYS: [Span; 5] = [
    Span(1_000_000),
    Span(10_000_000),
    Span(100_000_000),
    Span(1_000_000_000),
    Span(5_000_000_000),
];

/// How a scenario is explored.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The seed of the disturbances.
    pub seed: u64,
    /// The number of disturbed runs of a scenario.
    pub runs: usize,
    /// The kinds of disturbances that are drawn.
    pub kinds: Vec<DisturbanceKind>,
    /// The disturbances of the only disturbed run. Empty: they are drawn.
    pub given: Vec<Disturbance>,
    /// The number of workers, at least 1.
    pub jobs: usize,
    /// Cancelled from outside to end early. Failures that were found are reported, but not shrunk
    /// any further.
    pub stop: CancellationToken,
}

/// The result for a scenario.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The run without disturbances. If it does not conform, there are no further runs.
    pub undisturbed: Outcome,
    /// The number of disturbed runs.
    pub runs: usize,
    /// How many of them failed.
    pub failed: usize,
    /// True if nothing can be disturbed: no event of a watch, or no write, or neither, depending on
    /// the kinds of disturbances.
    pub is_undisturbable: bool,
    /// Whether each disturbance that the exploration knows was tried on its own.
    pub tried_each: bool,
    /// For each kind of failure, there is a finding that shows it.
    pub findings: Vec<Finding>,
    /// A run failed, and did not fail again with the same disturbances.
    pub unrepeated: usize,
    /// The given disturbances that did not happen, although the run conforms: for each, a sentence
    /// with what the run has instead.
    pub missing: Vec<String>,
    /// It was stopped.
    pub interrupted: bool,
}

/// A smallest set of disturbances with which a scenario fails.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The disturbances.
    pub disturbances: Vec<Disturbance>,
    /// The run with them.
    pub outcome: Outcome,
    /// What could be disturbed in this run, as far as it is known.
    pub disturbable: Disturbable,
    /// The number of the first run with this kind of failure, from 1.
    pub run: usize,
    /// The number of runs with this kind of failure.
    pub times: usize,
    /// The number of runs that shrank the set.
    pub tried: usize,
    /// True if shrinking was interrupted.
    pub cut_short: bool,
}

/// A kind of failure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// An expectation is not met, by its number.
    Unmet(usize),
    /// The engine reports a failure.
    Engine,
}

/// The kinds of a run's failures.
fn kinds(outcome: &Outcome) -> Vec<Kind> {
    match outcome.verdict {
        Verdict::Inconclusive { .. } => vec![Kind::Engine],
        _ => outcome.unmet.iter().map(|unmet| Kind::Unmet(unmet.number)).collect(),
    }
}

/// The failures of one kind.
struct Failures {
    first: usize,
    times: usize,
    /// The smallest set, of several the first one.
    set: Vec<Disturbance>,
}

impl Explored {
    fn new(undisturbed: Outcome) -> Explored {
        Explored {
            undisturbed,
            runs: 0,
            failed: 0,
            is_undisturbable: false,
            tried_each: false,
            findings: Vec::new(),
            unrepeated: 0,
            missing: Vec::new(),
            interrupted: false,
        }
    }
}

impl Explored {
    /// Returns true if something could be disturbed, each failure occurred again, and each given
    /// disturbance happened.
    #[must_use]
    pub fn is_conclusive(&self) -> bool {
        self.unrepeated == 0 && self.missing.is_empty() && !self.is_undisturbable
    }
}

/// What is explored.
struct Subject<'a> {
    plan: &'a Exploration,
    scenario: &'a Arc<Scenario>,
    /// What can be disturbed in the run without disturbances.
    seen: &'a Disturbable,
}

/// Explores a scenario. `progress` is called after each disturbed run with the number of runs, and
/// the failure if there is one.
///
/// # Errors
/// If the engine can't run, or can't disturb scenarios.
pub fn explore(
    plan: &Exploration,
    scenario: &Arc<Scenario>,
    new: NewEngine<'_>,
    progress: &mut dyn FnMut(usize, Option<&Outcome>),
) -> Result<Explored, EngineError> {
    let mut engine = new();
    engine.disturb(&[])?;
    let mut explored = Explored::new(run_one(scenario, &mut *engine, &[]));
    if explored.undisturbed.verdict != Verdict::Conforms {
        return Ok(explored);
    }
    let draws = Draws::new(plan, engine.disturbable().unwrap_or_default());
    explored.is_undisturbable = draws.singles.is_empty();
    let runs = draws.runs();
    let seen = &draws.disturbable;
    let work = |engine: &mut Box<dyn Engine>, index: usize| {
        (index < runs && !plan.stop.is_cancelled()).then(|| {
            let set = draws.set(index);
            let outcome = run_disturbed(&mut **engine, scenario, &set);
            let failed = Some(outcome).filter(|it| !kinds(it).is_empty());
            let run = engine.disturbable().filter(|_| draws.is_given() && failed.is_none());
            let missing = run.map_or_else(Vec::new, |run| missing(&set, &run));
            (set, failed, missing)
        })
    };
    let mut failures: BTreeMap<Kind, Failures> = BTreeMap::new();
    in_order(plan.jobs.min(runs), &|| new(), &work, &mut |index, (set, failed, missing)| {
        explored.runs += 1;
        explored.missing.extend(missing);
        explored.failed += usize::from(failed.is_some());
        for kind in failed.iter().flat_map(kinds) {
            let first = Failures { first: index, times: 0, set: set.clone() };
            let all = failures.entry(kind).or_insert(first);
            all.times += 1;
            if set.len() < all.set.len() {
                all.set.clone_from(&set);
            }
        }
        progress(index + 1, failed.as_ref());
        true
    });
    explored.tried_each = draws.try_each() && explored.runs >= draws.singles.len();
    for (kind, failures) in failures {
        // A run with fewer causes of failure says more about the others.
        if explored.findings.iter().any(|it| kinds(&it.outcome).contains(&kind)) {
            continue;
        }
        match shrunk(&Subject { plan, scenario, seen }, &mut *engine, kind, failures) {
            Some(finding) => explored.findings.push(finding),
            None => explored.unrepeated += 1,
        }
    }
    explored.interrupted = plan.stop.is_cancelled();
    Ok(explored)
}

/// For each disturbance that concerns no event or write of a run, a sentence that says so.
fn missing(set: &[Disturbance], run: &Disturbable) -> Vec<String> {
    let sentence = |it: &Disturbance| match it {
        Disturbance::Hold(Hold { resource, watch, event, .. }) => {
            let of_resource = |(_, it): &(usize, &Watch)| it.resource == *resource;
            let watches = run.numbered_watches().filter(of_resource).count();
            let found = run.numbered_watches().filter(of_resource).find(|(it, _)| it == watch);
            let events = found.map(|(_, watch)| watch.events.len());
            (events.unwrap_or(0) < *event).then(|| match events {
                Some(events) => {
                    let events = counted(events, "event");
                    format!("`{it}` did not happen: the watch of {resource} has {events}")
                }
                None => {
                    let noun = if watches == 1 { "watch" } else { "watches" };
                    format!("`{it}` did not happen: the run has {watches} {noun} of {resource}")
                }
            })
        }
        Disturbance::Answer { write, .. } | Disturbance::Crash { write, .. } => {
            let writes = run.writes.len();
            let has = || format!("the run has {}", counted(writes, "write"));
            (writes < *write).then(|| format!("`{it}` did not happen: {}", has()))
        }
    };
    set.iter().filter_map(sentence).collect()
}

/// Runs a scenario with disturbances.
fn run_disturbed(
    engine: &mut dyn Engine,
    scenario: &Arc<Scenario>,
    set: &[Disturbance],
) -> Outcome {
    match engine.disturb(set) {
        Ok(()) => run_one(scenario, engine, &[]),
        Err(error) => {
            let release = engine.release();
            let outcome = lockstep::unfinished(scenario, &engine.name().into(), release);
            Outcome { verdict: lockstep::inconclusive(error), ..outcome }
        }
    }
}

/// How often a finding is repeated, with and without its disturbances, before it is reported.
const REPETITIONS: usize = 3;

/// A smallest set with this kind of failure. `None` if the set does not fail each time, or the
/// scenario also fails without it.
fn shrunk(
    subject: &Subject<'_>,
    engine: &mut dyn Engine,
    kind: Kind,
    failures: Failures,
) -> Option<Finding> {
    let Subject { plan, scenario, seen } = *subject;
    let Failures { first, times, mut set } = failures;
    let mut tried = 0;
    let mut known = BTreeMap::from([(Vec::new(), false)]);
    let mut run = |set: &[Disturbance]| {
        let outcome = run_disturbed(engine, scenario, set);
        // Up to a disturbance, the run is the undisturbed one.
        let alone = || if set.len() == 1 { seen.clone() } else { Disturbable::default() };
        let disturbable = engine.disturbable().unwrap_or_else(alone);
        kinds(&outcome).contains(&kind).then_some((outcome, disturbable))
    };
    let mut found = run(&set)?;
    known.insert(set.clone(), true);
    if plan.given.is_empty() {
        shrink(&mut set, &mut |set| {
            let mut set = set.to_vec();
            set.sort();
            if plan.stop.is_cancelled() {
                return false;
            }
            *known.entry(set).or_insert_with_key(|set| {
                tried += 1;
                let failed = run(set);
                let fails = failed.is_some();
                if let Some(failed) = failed {
                    found = failed;
                }
                fails
            })
        });
    }
    // The writes are in their order.
    set.sort_by_key(|it| match it {
        Disturbance::Hold(_) => 0,
        Disturbance::Answer { write, .. } | Disturbance::Crash { write, .. } => *write,
    });
    // A controller that is not deterministic may fail without its disturbances, or not with them.
    let repeats = |run: &mut dyn FnMut(&[Disturbance]) -> bool| {
        (0..REPETITIONS).all(|_| !run(&[]) && run(&set))
    };
    if plan.given.is_empty() && !plan.stop.is_cancelled() {
        let mut fails = |set: &[Disturbance]| run(set).is_some();
        if !repeats(&mut fails) {
            return None;
        }
    }
    let (outcome, disturbable) = found;
    let cut_short = plan.stop.is_cancelled();
    let run = first + 1;
    Some(Finding { disturbances: set, outcome, disturbable, run, times, tried, cut_short })
}

/// Shrinks a set that fails: it still fails, and would not without any one of its disturbances, nor
/// with a shorter delay.
fn shrink(set: &mut Vec<Disturbance>, fails: &mut dyn FnMut(&[Disturbance]) -> bool) {
    loop {
        smallest(set, fails);
        if !shorten(set, fails) {
            return;
        }
    }
}

/// Shortens delays. Returns false if none can be shortened.
fn shorten(set: &mut Vec<Disturbance>, fails: &mut dyn FnMut(&[Disturbance]) -> bool) -> bool {
    let mut is_shorter = false;
    for place in 0..set.len() {
        let Disturbance::Hold(hold) = set[place].clone() else { continue };
        for delay in DELAYS.into_iter().filter(|delay| *delay < hold.delay) {
            let mut shorter = set.clone();
            shorter[place] = Disturbance::Hold(Hold { delay, ..hold.clone() });
            if fails(&shorter) {
                *set = shorter;
                is_shorter = true;
                break;
            }
        }
    }
    is_shorter
}

/// The disturbances of each run.
struct Draws<'a> {
    plan: &'a Exploration,
    disturbable: Disturbable,
    /// Each disturbance alone.
    singles: Vec<Disturbance>,
}

impl<'a> Draws<'a> {
    fn new(plan: &'a Exploration, disturbable: Disturbable) -> Draws<'a> {
        let mut singles = Vec::new();
        for (watch, seen) in disturbable.numbered_watches() {
            for event in 1..=seen.events.len() {
                singles.extend(DELAYS.map(|delay| {
                    let resource = seen.resource.clone();
                    Disturbance::Hold(Hold { resource, watch, event, delay })
                }));
            }
        }
        for write in 1..=disturbable.writes.len() {
            singles.extend(WriteError::ALL.map(|(with, _)| Disturbance::Answer { write, with }));
            let points = [CrashPoint::Before, CrashPoint::After];
            singles.extend(points.map(|when| Disturbance::Crash { write, when }));
        }
        singles.retain(|it| plan.kinds.contains(&it.kind()));
        Draws { plan, disturbable, singles }
    }

    fn is_given(&self) -> bool {
        !self.plan.given.is_empty()
    }

    /// Returns true if there are so few disturbances that half of the runs can try each of them.
    fn try_each(&self) -> bool {
        !self.is_given() && self.singles.len() <= self.plan.runs / 2
    }

    fn runs(&self) -> usize {
        match (self.is_given(), self.singles.is_empty()) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => self.plan.runs,
        }
    }

    /// The disturbances of a run. If there are few, the first runs try each of them alone.
    fn set(&self, index: usize) -> Vec<Disturbance> {
        if self.is_given() {
            return self.plan.given.clone();
        }
        if let Some(single) = self.singles.get(index)
            && self.try_each()
        {
            return vec![single.clone()];
        }
        let mut dice = Dice::new(self.plan.seed, index as u64);
        let mut set: Vec<Disturbance> = Vec::new();
        for _ in 0..dice.weighted(&[(4, 1), (4, 2), (2, 3), (1, 4)]) {
            let drawn = self.draw(&mut dice);
            if !set.iter().any(|it| place(it) == place(&drawn)) {
                set.push(drawn);
            }
        }
        set.sort();
        set
    }

    /// One disturbance. Each watch is as probable as any other, however many events it has.
    fn draw(&self, dice: &mut Dice) -> Disturbance {
        let Disturbable { watches, writes } = &self.disturbable;
        let [holds, answers, crashes] =
            DisturbanceKind::ALL.map(|kind| self.singles.iter().any(|it| it.kind() == kind));
        if holds && (!(answers || crashes) || dice.percent(60)) {
            let is_active = |watch: &usize| !watches[*watch].events.is_empty();
            let active: Vec<usize> = (0..watches.len()).filter(is_active).collect();
            let index = dice.pick(&active);
            let seen = &watches[index];
            let watch = self.disturbable.numbered_watches().nth(index).map_or(1, |(it, _)| it);
            let event = 1 + dice.below(seen.events.len() as u64) as usize;
            let resource = seen.resource.clone();
            return Disturbance::Hold(Hold { resource, watch, event, delay: dice.pick(&DELAYS) });
        }
        let write = 1 + dice.below(writes.len() as u64) as usize;
        if answers && (!crashes || dice.percent(50)) {
            return Disturbance::Answer { write, with: dice.pick(&WriteError::ALL).0 };
        }
        let when = dice.pick(&[CrashPoint::Before, CrashPoint::After]);
        Disturbance::Crash { write, when }
    }
}

/// What a disturbance concerns. A set has at most one for each event and each write.
fn place(disturbance: &Disturbance) -> (Option<&str>, usize, usize) {
    match disturbance {
        Disturbance::Hold(hold) => (Some(&hold.resource), hold.watch, hold.event),
        Disturbance::Answer { write, .. } | Disturbance::Crash { write, .. } => (None, 0, *write),
    }
}
