//! Many scenarios on a real cluster of a release, side by side.
//!
//! The flags of the controller are the cluster's, so scenarios are played in groups that agree on
//! them, each group on a cluster of its own.

use std::cmp::Reverse;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::engine::cluster::Cluster;
use crate::engine::cluster::CustomKind;
use crate::engine::cluster::provision::docker;
use crate::engine::cluster::provision::image;
use crate::engine::cluster::provision::k3s;
use crate::engine::cluster::provision::kind;
use crate::engine::cluster::settings::Settings;
use crate::engine::cluster::unfit;
use crate::engine::registry::EngineChoice;
use crate::engine::{EngineError, embedded};
use crate::model::observation::Observation;
use crate::model::rules::{Release, Rules};
use crate::model::time::Span;
use crate::run::Event;
use crate::run::Summary;
use crate::run::Verdict;
use crate::run::group::Course;
use crate::run::group::Group;
use crate::run::group::Part;
use crate::run::lockstep::free_run;
use crate::run::lockstep::unfinished;
use crate::run::plan::{CustomController, Pace, Plan};
use crate::scenario::Scenario;
use crate::trace::Trace;

/// How many control planes there are at a time: one takes most of a gigabyte.
const CLUSTERS: usize = 6;

/// How many control planes start at the beginning, one after the other: while they do, reconciles
/// have less time than they need.
const AT_FIRST: usize = 4;

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(50);

/// Shorter sync periods are too short for the reconciles of many HPAs.
const SHORTEST_PERIOD: Span = Span::from_millis(200);

/// Reconciles that are closer may come in another order.
const APART: Span = Span::from_millis(300);

/// The scenario at that pace, or why it can't be played.
fn play(scenario: &Scenario, release: Release, pace: Pace) -> Result<Scenario, String> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(why);
    }
    let on_a_cluster = |why: String| format!("on a real cluster: {why}");
    if let Some(why) = unfit(scenario) {
        return Err(on_a_cluster(why));
    }
    let faster = scenario.faster(pace.speed).map_err(on_a_cluster)?;
    if let Some(why) = too_short(&faster, release).or_else(|| too_long(&faster, pace)) {
        return Err(on_a_cluster(why));
    }
    let faster = Arc::new(faster);
    let why = unordered(&free_run(&faster, release).trace);
    why.map_or(Ok(Arc::unwrap_or_clone(faster)), |why| Err(on_a_cluster(why)))
}

/// Why a scenario is too fast for a controller, if it is.
fn too_short(faster: &Scenario, release: Release) -> Option<String> {
    let period = faster.flags_by(&Rules::of(release)).sync_period;
    (period < SHORTEST_PERIOD).then(|| {
        format!("its sync period would be {period}, and less than {SHORTEST_PERIOD} is too short")
    })
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
        !tick.actions().iter().any(|action| action.is_read() || action.is_write())
    };
    trace.ticks.iter().filter(is_hidden).find_map(|tick| {
        let at = tick.at;
        let edited = trace.api.iter().any(|(_, edit)| (edit.at - at).0.abs() < APART.0);
        edited.then(|| format!("at {at} it is edited, and a reconcile that leaves no trace is due"))
    })
}

/// What scenarios have to agree on to be played on one cluster.
fn settings(scenario: &Scenario, release: Release, own: Option<&CustomController>) -> Settings {
    let rules = Rules::of(release);
    let mut flags = scenario.flags_by(&rules);
    // Of one HPA nobody can tell how many workers there are.
    flags.concurrent_syncs = 1;
    let mut gates = scenario.gate_overrides.clone();
    if own.is_none() {
        // What upstream's own parts do anyhow needs no others; somebody's controller may not.
        let mut as_by_default = scenario.gates_by(&rules);
        let changed: Vec<&str> = as_by_default.changed().map(|(gate, _)| gate.name()).collect();
        gates.retain(|name, on| {
            changed.contains(&name.as_str()) || as_by_default.set(name, *on).is_err()
        });
    }
    Settings {
        gates,
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
    let name = plan.engine_name();
    let runtime = runtime(&name)?;
    let mut summary = Summary::default();
    let own =
        plan.cluster.controller.as_ref().map(|own| format!("; {}", own.note())).unwrap_or_default();
    let are_expected = plan.scenarios.iter().any(|scenario| !scenario.expect.is_empty());
    let unchecked = match are_expected && plan.cluster.pace.speed.get() > 1 {
        true => ", so `expect` is not checked",
        false => "",
    };
    let pace = format!("{} times as fast as written{unchecked}{own}", plan.cluster.pace.speed);
    sink(plan.started(name.clone(), Some(pace)));
    for (release, part) in parts {
        let begin = Instant::now();
        let mut of_release = Summary::default();
        let mut groups: Vec<(Settings, Vec<Part>)> = Vec::new();
        for scenario in part.iter().filter_map(|index| plan.scenarios.get(*index)) {
            let played = match play(scenario, *release, plan.cluster.pace) {
                Ok(played) => Arc::new(played),
                Err(why) => {
                    let mut outcome = unfinished(scenario, &name, *release);
                    outcome.verdict = Verdict::Skipped { why };
                    of_release.add(&outcome);
                    sink(Event::Finished(Box::new(outcome)));
                    continue;
                }
            };
            let settings = settings(&played, *release, plan.cluster.controller.as_ref());
            let part = Part { written: scenario.clone(), played };
            match groups.iter_mut().find(|(other, _)| other.agrees(&settings)) {
                Some((of_all, parts)) => {
                    of_all.custom_kinds.extend(settings.custom_kinds);
                    parts.push(part);
                }
                None => groups.push((settings, vec![part])),
            }
        }
        if groups.is_empty() {
            summary.join(&of_release);
            continue;
        }
        in_order(&mut groups);
        let ground = Ground::prepare(plan, (&name, *release), &runtime, sink)?;
        let course =
            Course::new(plan, (&name, *release), groups.iter().flat_map(|(_, parts)| parts));
        play_all(&course, &groups, (&ground, &runtime), &mut |event| {
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

/// The largest group first, since most scenarios agree; of the others, and within each, what takes
/// longest.
fn in_order(groups: &mut Vec<(Settings, Vec<Part>)>) {
    for (_, parts) in &mut *groups {
        parts.sort_by_key(|part| Reverse(part.length()));
    }
    groups.sort_by_key(|(_, parts)| Reverse(parts.first().map(Part::length)));
    let largest = (0..groups.len()).rev().max_by_key(|it| groups.get(*it).map(|it| it.1.len()));
    if let Some(largest) = largest.and_then(|it| groups.get_mut(..=it)) {
        largest.rotate_right(1);
    }
}

/// Plays groups, each on a cluster of its own, some of them at a time.
fn play_all(
    course: &Course<'_>,
    groups: &[(Settings, Vec<Part>)],
    (ground, runtime): (&Ground, &Runtime),
    sink: &mut dyn FnMut(Event),
) -> Result<(), EngineError> {
    let (plan, name) = (course.plan, course.name);
    let at_once = ground.at_once(plan).min(groups.len()).min(plan.jobs.max(1));
    let of_first = groups.get(..at_once.min(AT_FIRST)).unwrap_or_default();
    let all_of_first: usize = of_first.iter().map(|(_, parts)| parts.len()).sum();
    // When so many have begun, those that begin are short, and there is time for more clusters.
    let at_first = all_of_first * 3 / 4;
    let waiting: Mutex<Vec<usize>> = Mutex::new((0..groups.len()).collect());
    let settings_of = |number: usize| groups.get(number).map(|(settings, _)| settings);
    // One that the cluster can be had for at little cost, or else one that none can be had for so.
    let next = |kept: Option<&Cluster>| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |number: &usize| {
            settings_of(*number).is_some_and(|it| kept.is_some_and(|kept| kept.can_become(it)))
        };
        let is_apart = |number: &usize| {
            let (usual, own) = (settings_of(0), settings_of(*number));
            *number < of_first.len()
                || usual.zip(own).is_some_and(|(usual, own)| !usual.can_become(own))
        };
        let place = waiting.iter().position(fits).or_else(|| waiting.iter().position(is_apart));
        (!waiting.is_empty()).then(|| waiting.remove(place.unwrap_or(0)))
    };
    let is_under_way = || {
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.first().is_none_or(|number| *number >= of_first.len())
    };
    let started = AtomicUsize::new(0);
    // What is played meanwhile has the other cores.
    let cores = available_parallelism().map_or(1, NonZero::get);
    let starting = Semaphore::new((cores / 2).max(1));
    let failed = AtomicBool::new(false);
    let ends = || plan.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let wait = |until: &dyn Fn() -> bool| {
        while !until() && !ends() {
            std::thread::sleep(GLANCE);
        }
    };
    let play = |tell: &Sender<Result<Event, EngineError>>| -> Result<(), EngineError> {
        // Whoever listens does so until all is over.
        let event = |event: Event| drop(tell.send(Ok(event)));
        let mut kept: Option<Cluster> = None;
        loop {
            // Those that are there take what they can first.
            if kept.is_none() && is_under_way() {
                wait(&|| course.have_begun(at_first));
            }
            let number = next(kept.as_ref()).filter(|_| !ends());
            let group = number.and_then(|number| Some((number, groups.get(number)?)));
            let fits = |kept: &mut Cluster| {
                group.is_some_and(|(_, (settings, _))| kept.can_become(settings))
            };
            if let Some(kept) = kept.take_if(|kept| !fits(kept)) {
                runtime.block_on(kept.stop());
            }
            let Some((number, (settings, parts))) = group else { return Ok(()) };
            // What takes longest of all is on the first one.
            wait(&|| number == 0 || started.load(Ordering::Relaxed) > 0);
            if number >= of_first.len() && kept.is_none() {
                wait(&|| course.have_begun(at_first));
            }
            if ends() {
                if let Some(kept) = kept.take() {
                    runtime.block_on(kept.stop());
                }
                return Ok(());
            }
            let what = format!("control plane {} of {}", number + 1, groups.len());
            event(Event::Preparing { what, fraction: None });
            let cluster = runtime.block_on(async {
                let _turn = match kept {
                    Some(_) => None,
                    // It is never closed.
                    None => starting.acquire().await.ok(),
                };
                let settings = &Settings { small: number > 0, ..settings.clone() };
                match kept.take() {
                    Some(mut kept) => match kept.change(settings).await {
                        Ok(()) => Ok(kept),
                        Err(_) => {
                            kept.stop().await;
                            ground.start(name, settings).await
                        }
                    },
                    None => ground.start(name, settings).await,
                }
            });
            started.fetch_add(1, Ordering::Relaxed);
            let cluster = match cluster {
                Ok(cluster) => cluster,
                // Flags or feature gates may be what it fails of, and others may start.
                Err(error @ EngineError::Broken { .. }) if number > 0 => {
                    course.fail(parts, &error, &mut |outcome| {
                        event(Event::Finished(Box::new(outcome)));
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            if ends() {
                runtime.block_on(cluster.stop());
                return Ok(());
            }
            Group { course, parts, cluster: &cluster }.play(runtime, &mut |outcome| {
                event(Event::Finished(Box::new(outcome)));
            });
            match cluster.check() {
                Ok(()) => kept = Some(cluster),
                Err(_) => runtime.block_on(cluster.stop()),
            }
        }
    };
    let (sender, receiver) = channel();
    let mut error = None;
    std::thread::scope(|threads| {
        for _ in 0..at_once {
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
            Ground::Embedded(_) | Ground::Image(_) if plan.cluster.controller.is_none() => CLUSTERS,
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
                let image = docker::image(name, release, plan.cluster.image.clone(), k3s::usual)?;
                let tell = &mut |what: &str| tell(what, None);
                runtime.block_on(docker::ensure(name, &image, tell))?;
                Ok(Ground::K3s(image))
            }
            EngineChoice::Kind => {
                // kind fetches it by itself.
                let image = docker::image(name, release, plan.cluster.image.clone(), kind::usual)?;
                Ok(Ground::Kind(image))
            }
            EngineChoice::Image => {
                // A minute's build is for nothing where there is no Docker.
                runtime.block_on(docker::connect(name))?;
                if let Some(image) = &plan.cluster.image {
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
        Arc::new(crate::scenario::parse(id, &text, &read).expect("it makes sense"))
    }

    #[test]
    fn a_gate_at_its_default_requires_no_other_control_plane() {
        let scenario = fixture("zero/by-gate-a-raised-minimum-revives-the-workload");
        let gates = |release| settings(&scenario, release, None).gates;
        assert!(gates(Release::NEWEST).is_empty(), "it is on");
        assert!(
            gates(Release::known("1.35").expect("known")).contains_key("HPAScaleToZero"),
            "it is off"
        );
        // Upstream has it, and the model does not ask for it.
        let without = fixture("requests/without-the-gate-pod-level-requests-say-nothing");
        assert_eq!(settings(&without, Release::NEWEST, None).gates, without.gate_overrides);
    }

    #[test]
    fn an_unobservable_order_has_no_verdict() {
        let scenario = fixture("targets/a-kind-that-is-not-served");
        let why = play(&scenario, Release::NEWEST, Pace::default()).expect_err("both at 45 s");
        assert!(why.contains("at 3s it is edited, and a reconcile that leaves no trace"), "{why}");
        let scenario = fixture("tolerance/just-above-the-upper-edge-scales-up");
        assert!(play(&scenario, Release::NEWEST, Pace::default()).is_ok());
    }

    #[test]
    fn large_groups_run_first_and_then_long_scenarios() {
        let group = |ids: &[&str]| {
            let one = |id: &&str| Part { written: fixture(id), played: fixture(id) };
            let parts: Vec<Part> = ids.iter().map(one).collect();
            (settings(&parts[0].played, Release::NEWEST, None), parts)
        };
        let (long, short) = (
            "stabilization/kep-853-story-5-ten-minutes-of-recommendations",
            "tolerance/just-above-the-upper-edge-scales-up",
        );
        let one = "tolerance/flag-of-the-controller";
        let mut groups = vec![group(&[one]), group(&[long]), group(&[short, long, one])];
        in_order(&mut groups);
        let ids = groups.iter().map(|(_, parts)| parts.iter().map(|it| &*it.written.id).collect());
        let ids: Vec<Vec<&str>> = ids.collect();
        assert_eq!(ids, [vec![long, short, one], vec![long], vec![one]]);
    }

    /// What is skipped should be meant to be.
    #[test]
    fn scenarios_that_wall_clocks_do_not_support_are_listed() {
        insta::assert_snapshot!(skipped(Release::NEWEST));
    }

    #[test]
    fn scenarios_that_wall_clocks_do_not_support_on_1_33_are_listed() {
        insta::assert_snapshot!(skipped(Release { minor: 33 }));
    }

    fn skipped(release: Release) -> String {
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
                let why = play(&fixture(&id), release, Pace::default()).err();
                skipped.extend(why.map(|why| format!("{id}: {why}")));
            }
        }
        skipped.sort();
        skipped.join("\n")
    }
}
