//! Many scenarios on a real cluster of a release, side by side.
//!
//! The flags of the controller are the cluster's, so scenarios are played in groups that agree on
//! them, each group on a cluster of its own.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::sleep;

use super::findings::Findings;
use super::in_order::as_they_come;
use super::lockstep::{conclude, free_run, inconclusive, trace_of, unfinished};
use super::many::{EngineChoice, Plan, start};
use super::own::{Compared, Own};
use super::wall;
use super::{Event, Note, Outcome, Summary, Verdict};
use crate::engine::cluster::control_plane::Settings;
use crate::engine::cluster::{Cluster, CustomKind, docker, image, k3s, kind, unfit};
use crate::engine::{EngineError, embedded};
use crate::model::observation::Observation;
use crate::model::rules::{Release, Rules};
use crate::model::time::{Span, Time};
use crate::scenario::Scenario;
use crate::trace::Trace;

/// How many control planes there are at a time: one takes most of a gigabyte, and while it starts a
/// core.
const CLUSTERS: usize = 4;

/// How many are played at a time that had no verdict at first.
const AGAIN: usize = 12;

/// How often a scenario is played at most.
const MOST_TIMES: u32 = 3;

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(50);

/// Reconciles that are closer may come in another order.
const APART: Span = Span::from_millis(300);

/// How scenarios are played where time is real.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// How many times as fast as they are written.
    pub speed: NonZero<u32>,
    /// Those that then still take longer are skipped.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        // Sync periods of 15 s become 1 s: much longer than a reconcile takes.
        let speed = NonZero::<u32>::MIN.saturating_add(14);
        Pace { speed, longest: Duration::from_secs(60) }
    }
}

/// A scenario of the plan: as it is written, and as it is played.
pub(super) struct Part {
    pub(super) written: Arc<Scenario>,
    pub(super) played: Result<Arc<Scenario>, String>,
}

impl Part {
    fn of(scenario: &Arc<Scenario>, release: Release, pace: Pace) -> Part {
        let played = play(scenario, release, pace).map(Arc::new);
        Part { written: scenario.clone(), played }
    }

    /// How long it is played.
    fn length(&self) -> Time {
        self.played.as_ref().map_or(Time::ZERO, |played| played.until)
    }
}

/// The scenario at that pace, or why it can't be played.
fn play(scenario: &Scenario, release: Release, pace: Pace) -> Result<Scenario, String> {
    if let Some(why) = scenario.lacking(release) {
        return Err(why);
    }
    let on_a_cluster = |why: String| format!("on a real cluster: {why}");
    if let Some(why) = unfit(scenario) {
        return Err(on_a_cluster(why));
    }
    let faster = scenario.faster(pace.speed).map_err(on_a_cluster)?;
    if let Some(why) = too_long(&faster, pace) {
        return Err(on_a_cluster(why));
    }
    let faster = Arc::new(faster);
    let why = unordered(&free_run(&faster, release).trace);
    why.map_or(Ok(Arc::unwrap_or_clone(faster)), |why| Err(on_a_cluster(why)))
}

/// Why a scenario at its pace is not wanted, if it is not.
pub(super) fn too_long(faster: &Scenario, pace: Pace) -> Option<String> {
    let length = Duration::from_nanos(faster.until.0.unsigned_abs());
    let (takes, longest) = (faster.until, Span(pace.longest.as_nanos() as i64));
    (length > pace.longest).then(|| format!("it takes {takes}, and at most {longest} is wanted"))
}

/// Whether, as the model has it, the HPA is edited just when a reconcile is due of which nothing
/// can be seen: which of them is the first makes a difference then, and is chance.
pub(super) fn unordered(trace: &Trace) -> Option<String> {
    let is_hidden = |tick: &&Observation| {
        tick.reads.is_empty() && tick.status_write.is_none() && tick.scale_writes.is_empty()
    };
    trace.ticks.iter().filter(is_hidden).find_map(|tick| {
        let at = tick.at;
        let edited = trace.api.iter().any(|(_, edit)| (edit.at - at).0.abs() < APART.0);
        edited.then(|| format!("at {at} it is edited, and a reconcile that leaves no trace is due"))
    })
}

/// What scenarios have to agree on to be played on one cluster.
fn settings(scenario: &Scenario, release: Release, own: Option<&Own>) -> Settings {
    let mut flags = scenario.flags_by(&Rules::of(release));
    // Of one HPA nobody can tell how many workers there are.
    flags.concurrent_syncs = 1;
    Settings {
        gates: scenario.gate_overrides.clone(),
        hpa_controller: own.is_none(),
        custom_kinds: CustomKind::of(&scenario.workload).into_iter().collect(),
        controller: own.map(|own| own.controller.clone()),
        ..Settings::of(flags)
    }
}

/// Runs all scenarios of a plan on clusters.
///
/// # Errors
/// If no cluster can be built, fetched or started.
pub(super) fn run_all(
    plan: &Plan,
    parts: &[(Release, Vec<usize>)],
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, EngineError> {
    let name: Arc<str> = match &plan.own {
        Some(own) => format!("{} + {}", embedded::NAME, own.controller.name()).into(),
        None => plan.engine.cluster().unwrap_or(embedded::NAME).into(),
    };
    let runtime = runtime(&name)?;
    let mut summary = Summary::default();
    let own = plan.own.as_ref().map(|own| format!("; {}", own.note())).unwrap_or_default();
    let pace = format!("{} times as fast as written{own}", plan.pace.speed);
    sink(start(plan, name.clone(), Some(pace)));
    for (release, part) in parts {
        let begin = Instant::now();
        let mut of_release = Summary::default();
        let mut groups: Vec<(Settings, Vec<Part>)> = Vec::new();
        for scenario in part.iter().filter_map(|index| plan.scenarios.get(*index)) {
            let part = Part::of(scenario, *release, plan.pace);
            match &part.played {
                Err(why) => {
                    let mut outcome = unfinished(scenario, &name, *release);
                    outcome.verdict = Verdict::Skipped { why: why.clone() };
                    of_release.add(&outcome);
                    sink(Event::Finished(Box::new(outcome)));
                }
                Ok(played) => {
                    let settings = settings(played, *release, plan.own.as_ref());
                    match groups.iter_mut().find(|(other, _)| other.agrees(&settings)) {
                        Some((of_all, parts)) => {
                            of_all.custom_kinds.extend(settings.custom_kinds);
                            parts.push(part);
                        }
                        None => groups.push((settings, vec![part])),
                    }
                }
            }
        }
        if groups.is_empty() {
            summary.join(&of_release);
            continue;
        }
        // What is long is begun first: most scenarios agree, and of them the longest.
        groups.sort_by_key(|(_, parts)| Reverse(parts.len()));
        for (_, parts) in &mut groups {
            parts.sort_by_key(|part| Reverse(part.length()));
        }
        let ground = Ground::prepare(plan, (&name, *release), &runtime, sink)?;
        let on = (&ground, &runtime, &name);
        play_all(plan, *release, &groups, on, &mut |event| {
            if let Event::Finished(outcome) = &event {
                of_release.add(outcome);
            }
            sink(event);
        })?;
        summary.join(&of_release);
        of_release.elapsed = begin.elapsed();
        summary.elapsed += of_release.elapsed;
        if parts.len() > 1 {
            summary.releases.push((*release, of_release));
        }
    }
    sink(Event::Ended(summary.clone()));
    Ok(summary)
}

/// Plays groups, each on a cluster of its own, some of them at a time.
fn play_all(
    plan: &Plan,
    release: Release,
    groups: &[(Settings, Vec<Part>)],
    (ground, runtime, name): (&Ground, &Runtime, &Arc<str>),
    sink: &mut dyn FnMut(Event),
) -> Result<(), EngineError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let turns = Semaphore::new(plan.jobs.max(1));
    let starting = Mutex::new(());
    let calm = AtomicBool::new(false);
    let play = |tell: &Sender<Result<Event, EngineError>>| -> Result<(), EngineError> {
        // Whoever listens does so until all is over.
        let event = |event: Event| drop(tell.send(Ok(event)));
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((settings, parts)) = groups.get(number) else { return Ok(()) };
            if plan.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            // The largest one is alone until all of its scenarios have begun: clusters that start
            // take the time that reconciles need.
            while number > 0 && !calm.load(Ordering::Relaxed) {
                if plan.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                std::thread::sleep(GLANCE);
            }
            let what = format!("control plane {} of {}", number + 1, groups.len());
            event(Event::Preparing { what, fraction: None });
            let group = Group { plan, name, release, parts, turns: &turns, calm: &calm };
            // One after the other: at once each would take longer.
            let start = async {
                let _turn = starting.lock().await;
                ground.start(name, settings).await
            };
            let cluster = runtime.block_on(start)?;
            group.play(runtime, &cluster, &mut |outcome| {
                event(Event::Finished(Box::new(outcome)));
            });
            runtime.block_on(cluster.stop());
        }
    };
    let (sender, receiver) = channel();
    let mut error = None;
    std::thread::scope(|threads| {
        for _ in 0..ground.at_once(plan).min(groups.len()) {
            let (sender, play, failed) = (sender.clone(), &play, &failed);
            threads.spawn(move || {
                if let Err(error) = play(&sender) {
                    failed.store(true, Ordering::Relaxed);
                    drop(sender.send(Err(error)));
                }
            });
        }
        drop(sender);
        for told in receiver {
            match told {
                Ok(event) => sink(event),
                Err(first) => drop(error.get_or_insert(first)),
            }
        }
    });
    error.map_or(Ok(()), Err)
}

/// What clusters of a release are made from.
enum Ground {
    /// The program of a control plane.
    Embedded(PathBuf),
    /// An image of that.
    Image(String),
    /// An image of k3s.
    K3s(String),
    /// An image of kind's nodes.
    Kind(String),
}

impl Ground {
    /// How many of them may be there at a time.
    fn at_once(&self, plan: &Plan) -> usize {
        match self {
            // A program of the user's may want something that there is only once, as a port.
            Ground::Embedded(_) | Ground::Image(_) if plan.own.is_none() => CLUSTERS,
            _ => 1,
        }
    }

    /// Builds or fetches what a cluster of the release needs.
    fn prepare(
        plan: &Plan,
        (name, release): (&Arc<str>, Release),
        runtime: &Runtime,
        sink: &mut dyn FnMut(Event),
    ) -> Result<Ground, EngineError> {
        let mut tell = |what: &str, fraction| {
            sink(Event::Preparing { what: what.to_owned(), fraction });
        };
        match plan.engine {
            EngineChoice::K3s => {
                let image = docker::image(name, release, plan.image.clone(), k3s::usual)?;
                let tell = &mut |what: &str| tell(what, None);
                runtime.block_on(docker::ensure(name, &image, tell))?;
                Ok(Ground::K3s(image))
            }
            EngineChoice::Kind => {
                // kind fetches it by itself.
                let image = docker::image(name, release, plan.image.clone(), kind::usual)?;
                Ok(Ground::Kind(image))
            }
            EngineChoice::Image => {
                // A minute's build is for nothing where there is no Docker.
                runtime.block_on(docker::connect(name))?;
                if let Some(image) = &plan.image {
                    runtime.block_on(docker::ensure(name, image, &mut |what| tell(what, None)))?;
                    return Ok(Ground::Image(image.clone()));
                }
                let program = embedded::ensure(release, &plan.stop, &mut tell)?;
                let tell = &mut |what: &str| tell(what, None);
                let image = image::ensure(name, &program, release, tell);
                runtime.block_on(image).map(Ground::Image)
            }
            _ => embedded::ensure(release, &plan.stop, &mut tell).map(Ground::Embedded),
        }
    }

    /// Starts one for scenarios that agree on its settings.
    async fn start(&self, name: &Arc<str>, settings: &Settings) -> Result<Cluster, EngineError> {
        let settings = settings.clone();
        match self {
            Ground::Embedded(program) => Cluster::embedded(name, program, settings).await,
            Ground::Image(image) => Cluster::image(name, image, settings).await,
            Ground::K3s(image) => Cluster::k3s(name, image, settings).await,
            Ground::Kind(image) => Cluster::kind(name, image, &settings).await,
        }
    }
}

pub(super) fn runtime(name: &Arc<str>) -> Result<Runtime, EngineError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| EngineError::Broken {
        engine: name.clone(),
        why: format!("no thread can be started: {error}"),
        output: String::new(),
    })
}

/// Scenarios that are played on one cluster.
pub(super) struct Group<'a> {
    pub(super) plan: &'a Plan,
    pub(super) name: &'a Arc<str>,
    pub(super) release: Release,
    pub(super) parts: &'a [Part],
    /// As many scenarios are played at a time, on all clusters together.
    pub(super) turns: &'a Semaphore,
    /// Whether all of them have begun.
    pub(super) calm: &'a AtomicBool,
}

impl Group<'_> {
    /// Plays all of them side by side. Those without a verdict are played again when the others
    /// have begun: a machine that was too busy has the time then.
    pub(super) fn play(&self, runtime: &Runtime, cluster: &Cluster, done: &mut dyn FnMut(Outcome)) {
        let (unfinished, again) = (AtomicUsize::new(self.parts.len()), Again::default());
        let work = |(): &mut (), index: usize| {
            let Some(part) = self.parts.get(index) else {
                self.calm.store(true, Ordering::Relaxed);
                let replay = again.replay(&unfinished, self, cluster);
                return runtime.block_on(replay);
            };
            let outcome = runtime.block_on(self.turn(part, cluster));
            let outcome = outcome.and_then(|outcome| match &outcome.verdict {
                // A cluster that is broken will be no better then.
                Verdict::Inconclusive { why, .. } if cluster.check().is_ok() => {
                    again.lock().push_back((index, why.clone(), 1));
                    None
                }
                _ => Some(outcome),
            });
            unfinished.fetch_sub(1, Ordering::Release);
            Some(outcome)
        };
        let workers = self.plan.jobs.clamp(1, self.parts.len().max(1));
        as_they_come(workers, &|| (), &work, &mut |_, outcome| {
            outcome.into_iter().for_each(&mut *done);
            true
        });
    }

    /// Plays one when its turn has come. Nothing if all is to end.
    async fn turn(&self, part: &Part, cluster: &Cluster) -> Option<Outcome> {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let stopped = self.plan.stop.load(Ordering::Relaxed);
        if stopped { None } else { Some(self.one(part, cluster).await) }
    }

    async fn one(&self, part: &Part, cluster: &Cluster) -> Outcome {
        let begin = Instant::now();
        let mut outcome = unfinished(&part.written, self.name, self.release);
        let Ok(played) = &part.played else { return outcome };
        let trace = trace_of(&part.written, self.name, &self.release.to_string());
        let findings = Findings::new(trace, &self.plan.known);
        let compared = self.plan.own.as_ref().map_or(Compared::All, |own| own.compared);
        let with = (cluster, &*self.plan.stop, compared);
        match wall::follow(played, self.release, with, findings).await {
            Ok(followed) => {
                conclude(&mut outcome, (played, self.release), followed.findings);
                outcome.boundaries = followed.boundaries;
                outcome.notes.extend(boundaries(&part.written, followed.boundaries, outcome.ticks));
                let line = outcome.line;
                let note = |what: String| Note { line, what, of_reading: false };
                outcome.notes.extend(followed.notes.into_iter().map(note));
            }
            Err(error) => outcome.verdict = inconclusive(error),
        }
        outcome.elapsed = begin.elapsed();
        outcome
    }
}

/// Scenarios that have had no verdict, why, and how often they were played.
struct Again {
    waiting: std::sync::Mutex<VecDeque<(usize, String, u32)>>,
    turns: Semaphore,
}

impl Default for Again {
    fn default() -> Again {
        Again { waiting: std::sync::Mutex::default(), turns: Semaphore::new(AGAIN) }
    }
}

impl Again {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(usize, String, u32)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays the next one that waits: its outcome, or nothing if it waits again. Ends if there will
    /// be none any more.
    async fn replay(
        &self,
        unfinished: &AtomicUsize,
        group: &Group<'_>,
        cluster: &Cluster,
    ) -> Option<Option<Outcome>> {
        let (index, why, times) = loop {
            // Those that are unfinished now may be among those that wait then.
            let unfinished = unfinished.load(Ordering::Acquire);
            let next = self.lock().pop_front();
            match next {
                Some(next) if next.2 == 1 || unfinished == 0 => break next,
                // The last time it has as much time as can be.
                Some(next) => self.lock().push_back(next),
                None if unfinished == 0 => return None,
                None => {}
            }
            sleep(GLANCE).await;
        };
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let mut outcome = group.turn(group.parts.get(index)?, cluster).await?;
        if let Verdict::Inconclusive { why, .. } = &outcome.verdict
            && times < MOST_TIMES
            && cluster.check().is_ok()
        {
            self.lock().push_back((index, why.clone(), times + 1));
            return Some(None);
        }
        let what = format!(
            "it was played {} before, with more beside it, without a verdict: {why}",
            if times == 1 { "once" } else { "twice" }
        );
        let line = outcome.line;
        outcome.notes.push(Note { line, what, of_reading: false });
        outcome.replays = usize::try_from(times).unwrap_or_default();
        Some(Some(outcome))
    }
}

/// What has to be said of reconciles for which the clock allowed two outcomes.
fn boundaries(scenario: &Scenario, boundaries: usize, ticks: usize) -> Option<Note> {
    let what = format!(
        "{boundaries} of {ticks} ticks fell on a boundary in time: two outcomes were right, and \
         the one that was seen was followed"
    );
    (boundaries > 0).then_some(Note { line: scenario.line, what, of_reading: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(id: &str) -> Arc<Scenario> {
        let path = format!("{}/fixtures/{id}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let folder = std::path::Path::new(&path).parent().expect("a folder").to_owned();
        let read = move |name: &str| {
            std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string())
        };
        Arc::new(crate::scenario::parse("x.yaml", &text, &read).expect("it makes sense"))
    }

    #[test]
    fn an_order_that_cannot_be_seen_is_no_verdict() {
        let scenario = fixture("targets/a-kind-that-is-not-served");
        let why = play(&scenario, Release::V1_37, Pace::default()).expect_err("both at 45 s");
        assert!(why.contains("at 3s it is edited, and a reconcile that leaves no trace"), "{why}");
        let scenario = fixture("tolerance/just-above-the-upper-edge-scales-up");
        assert!(play(&scenario, Release::V1_37, Pace::default()).is_ok());
    }

    /// What is skipped should be meant to be.
    #[test]
    fn what_does_not_fit_a_wall_clock_is_named() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let mut skipped = Vec::new();
        let mut folders: Vec<_> = std::fs::read_dir(folder).expect("fixtures").collect();
        folders.retain(|it| it.as_ref().is_ok_and(|it| it.path().is_dir()));
        for folder in folders.into_iter().flatten() {
            let of = folder.file_name().to_string_lossy().into_owned();
            if of == "invalid" || of == "manifests" {
                continue;
            }
            for file in std::fs::read_dir(folder.path()).expect("fixtures").flatten() {
                let name = file.file_name().to_string_lossy().into_owned();
                let Some(name) = name.strip_suffix(".yaml") else { continue };
                let id = format!("{of}/{name}");
                let why = play(&fixture(&id), Release::V1_37, Pace::default()).err();
                skipped.extend(why.map(|why| format!("{id}: {why}")));
            }
        }
        skipped.sort();
        insta::assert_snapshot!(skipped.join("\n"));
    }
}
