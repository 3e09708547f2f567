//! The real, unmodified upstream HPA controller of a release, in virtual time.
//!
//! A small Go program (`upstream/virtual`) hosts it and speaks the engine protocol. Its sources
//! are in the crate `data`. `build` compiles them once into the cache folder, `checkout`
//! compiles them against a local working tree, and `process` runs the result. This module
//! deliberately knows nothing about the controller's decisions.

mod artifact;
pub mod build;
mod cache;
pub mod checkout;
mod excerpt;
mod go;
pub mod objects;
mod process;
pub mod recommender;
mod staging;
pub mod updater;
mod v2beta1;
pub mod wire;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::artifact::NAME;
use self::build::{BuildOptions, Progress};
use self::process::Process;
pub use self::process::TIME_LIMIT;
use self::recommender::UpstreamRecommender;
use self::updater::UpdaterHost;
use self::wire::{Open, Request, has_changes_during_reconciles, takes_turns};
use kube_autoscaler_models::rules::{Release, Rules, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::{Diagnostic, Scenario, SkipReason};
use kube_lockstep_sim::engine::disturbance::{Disturbable, Disturbance};
use kube_lockstep_sim::engine::updater::VpaUpdater;
use kube_lockstep_sim::engine::{During, Engine, EngineError, Session, Step, VpaEngines};
use kube_lockstep_sim::trace::wire::{
    ALL_METRICS, Answer, Answered, DETAILS, DURING, Feature, Hello, Log, OLDEST_PROTOCOL, PROTOCOL,
};
use kube_lockstep_sim::trace::{Observation, Scope, Stepped};
use kube_lockstep_sim::world::Change;

/// The upstream controller of one release.
#[derive(Debug)]
pub struct Upstream {
    name: Arc<str>,
    program: PathBuf,
    release: Release,
    /// True if the program may report any release.
    any_release: bool,
    /// False: the model does not predict its controller.
    has_model: bool,
    limit: Duration,
    /// The options for building the recommenders that run with the controller.
    builds: BuildOptions,
    process: Option<Process>,
    /// The version of the protocol that the program speaks, once it has reported it.
    protocol: Option<u32>,
    /// The optional parts of the protocol that the program supports.
    supports: Vec<Feature>,
    /// The disturbances of the scenarios; `None` if nobody asked for them.
    disturbances: Option<Vec<Disturbance>>,
    /// What could be disturbed in the last scenario.
    disturbable: Option<Disturbable>,
    /// True if the process has observed all metrics, which slows down its later scenarios.
    has_observed_all_metrics: bool,
}

impl Upstream {
    /// Creates the engine for a program of `build`, or any program that speaks the protocol.
    #[must_use]
    pub fn new(program: PathBuf, release: Release) -> Upstream {
        Upstream {
            name: NAME.into(),
            program,
            release,
            any_release: false,
            has_model: true,
            limit: TIME_LIMIT,
            builds: BuildOptions::default(),
            process: None,
            protocol: None,
            supports: Vec::new(),
            disturbances: None,
            disturbable: None,
            has_observed_all_metrics: false,
        }
    }

    /// Creates the engine of a local checkout, which is compared with the rules of a release.
    #[must_use]
    pub(crate) fn from_checkout(program: PathBuf, name: Arc<str>, rules: Release) -> Upstream {
        Upstream { any_release: true, ..Upstream::new(program, rules).called(name) }
    }

    /// Sets another name, for programs that are not upstream's code.
    #[must_use]
    pub(crate) fn called(mut self, name: Arc<str>) -> Upstream {
        self.name = name;
        self
    }

    /// Only the expectations of scenarios are checked: the model does not predict the controller.
    #[must_use]
    pub fn without_model(mut self) -> Upstream {
        self.has_model = false;
        self
    }

    /// Sets the timeout for each answer.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Upstream {
        self.limit = limit;
        self
    }

    /// Sets whether the recommenders with the controller are built.
    #[must_use]
    pub(crate) fn with_builds(mut self, builds: BuildOptions) -> Upstream {
        self.builds = builds;
        self
    }

    /// A running process after its `hello`: the existing one, or a new one.
    fn process(&mut self) -> Result<&mut Process, EngineError> {
        let process = match self.process.take() {
            Some(process) => process,
            None => {
                let mut process = Process::start(&self.name, &self.program, self.limit)?;
                let release = (!self.any_release).then_some(self.release);
                let Hello { protocol, supports, .. } = introduce(&mut process, release)?;
                (self.protocol, self.supports) = (Some(protocol), supports);
                self.has_observed_all_metrics = false;
                process
            }
        };
        Ok(self.process.insert(process))
    }
}

/// Builds a recommender that runs with the HPA controller, and the updater with which its
/// simulation is compared. A failure is reported by each scenario that needs one.
pub fn prepare_recommender(release: VpaRelease, builds: &BuildOptions, progress: Progress<'_>) {
    drop(recommender::ensure(release, builds, progress));
    drop(updater::ensure(release, builds, progress));
}

/// Reads `hello`, and checks the release if required.
fn introduce(process: &mut Process, release: Option<Release>) -> Result<Hello, EngineError> {
    let answer = process.receive()?;
    let Answer::Hello(hello) = answer else {
        return Err(process.broken("it did not send `hello`"));
    };
    let (protocol, theirs) = (hello.protocol, &hello.release);
    if !(OLDEST_PROTOCOL..=PROTOCOL).contains(&protocol) {
        let (oldest, newest) = (OLDEST_PROTOCOL, PROTOCOL);
        let why = format!(
            "it uses protocol version {protocol}, this program versions {oldest} to {newest}"
        );
        return Err(process.broken(&why));
    }
    match release {
        Some(release) if !theirs.starts_with(&format!("v{release}.")) => {
            Err(process.broken(&format!("it is release {theirs}, not {release}")))
        }
        _ => Ok(hello),
    }
}

impl Engine for Upstream {
    fn name(&self) -> &str {
        &self.name
    }

    fn release(&self) -> Release {
        self.release
    }

    fn has_model(&self) -> bool {
        self.has_model
    }

    /// The scope is known after the program has reported its version of the protocol.
    fn scope(&self) -> Scope {
        let since = |version| self.protocol.is_none_or(|protocol| protocol >= version);
        Scope { all_metrics: since(ALL_METRICS), details: since(DETAILS), ..Scope::ALL }
    }

    fn disturb(&mut self, disturbances: &[Disturbance]) -> Result<(), EngineError> {
        self.process()?;
        if !self.supports.contains(&Feature::Disturbances) {
            let problem = Diagnostic::new("it does not support disturbances");
            let hint = "disturbances require an engine whose `hello` has `supports: \
                        [\"disturbances\"]`, such as one of the Go SDK";
            let engine = self.name.clone();
            return Err(EngineError::Unavailable { engine, problem: problem.hint(hint) });
        }
        self.disturbances = Some(disturbances.to_vec());
        Ok(())
    }

    fn disturbable(&mut self) -> Option<Disturbable> {
        self.disturbable.take()
    }

    /// The real recommender, and the real updater and admission controller, in processes of their
    /// own. They are built if necessary. The updater can be built for releases whose sources are Go
    /// modules.
    fn vpa(&mut self, release: VpaRelease) -> Result<VpaEngines, EngineError> {
        let program = recommender::ensure(release, &self.builds, &mut |_| {})?;
        let recommender = UpstreamRecommender::new(program, release).with_time_limit(self.limit);
        let updater = updater::ensure(release, &self.builds, &mut |_| {})?;
        let updater = updater.map(|program| -> Box<dyn Engine<VpaUpdater>> {
            Box::new(UpdaterHost::new(program, release, self.limit))
        });
        Ok(VpaEngines { recommender: Box::new(recommender), updater })
    }

    /// Reports scenarios that the program's version of the protocol cannot express.
    fn unsupported_reason(&mut self, scenario: &Scenario) -> Option<SkipReason> {
        // `open` reports a program that can't run.
        self.process().ok()?;
        if scenario.has_objects() && !self.supports.contains(&Feature::Objects) {
            return Some("the engine does not support `objects`".into());
        }
        if !has_changes_during_reconciles(scenario) {
            return None;
        }
        self.protocol.filter(|protocol| *protocol < DURING).map(|protocol| {
            let why = format!(
                "the engine speaks protocol version {protocol}, which has neither `during` nor \
                 `cacheLag`"
            );
            why.into()
        })
    }

    /// Does not wait for the answer: the model predicts the first steps in the meantime.
    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        if self.has_observed_all_metrics && !scenario.observed.all_metrics {
            self.process = None;
        }
        let release = self.release;
        self.process()?;
        let protocol = self.protocol.unwrap_or(PROTOCOL);
        self.has_observed_all_metrics = scenario.observed.all_metrics;
        self.disturbable = None;
        let disturbances = self.disturbances.clone();
        let open = Open::new(scenario, release, protocol).disturbed(disturbances.as_deref());
        let process = self.process()?;
        process.send(&Request::Open(Box::new(open)))?;
        process.write_without_waiting();
        let hpas = scenario.hpas.iter().map(|hpa| hpa.name.clone());
        let log = Log::new(Time::ZERO, scenario.namespace.clone(), hpas, takes_turns(scenario));
        Ok(Box::new(UpstreamSession {
            now: Time::ZERO,
            log: log.for_protocol(protocol).by_instant(scenario.has_objects()),
            opened: false,
            sent: VecDeque::new(),
            older: Older::for_release(release),
            closed: false,
            engine: self,
        }))
    }
}

impl Upstream {
    /// Ends a failed process and returns the error.
    fn give_up(&mut self, why: &str) -> EngineError {
        match self.process.take() {
            Some(mut process) => process.broken(why),
            None => EngineError::Broken {
                engine: self.name.clone(),
                why: why.to_owned(),
                output: String::new(),
            },
        }
    }
}

struct UpstreamSession<'a> {
    engine: &'a mut Upstream,
    /// The time of the last answer.
    now: Time,
    log: Log,
    /// True if the answer to `open` has been read.
    opened: bool,
    /// The steps without an answer yet.
    sent: VecDeque<SentStep>,
    older: Option<Older>,
    closed: bool,
}

/// The properties of a step that its answer must have, whatever the controller does.
struct SentStep {
    until: Time,
    /// The number of changes at the beginning that the API server answers.
    requests: usize,
    /// The answers to changes in the middle of reconciles.
    during: Vec<Answered>,
}

impl SentStep {
    fn new(step: &Step) -> SentStep {
        let requests = step.apply.iter().filter(|change| change.is_request()).count();
        let during = step.during.iter().map(|During { after, number, apply }| {
            let answers = apply.iter().filter(|change| change.is_request()).count();
            Answered { after: *after, number: *number, answers, at: None }
        });
        SentStep { until: step.until, requests, during: during.collect() }
    }

    /// Checks an answer to a step, which has this number of answers to changes. `during`: the
    /// number of answers to changes in the middle of reconciles.
    ///
    /// # Errors
    /// How the answer breaks the protocol.
    fn check(&self, answer: &Stepped, answers: usize, during: usize) -> Result<(), String> {
        let (until, requests) = (self.until, self.requests + during);
        if answer.now != until {
            return Err(format!("it ended a step at {}, not at {until}", answer.now));
        }
        if answers != requests {
            return Err(format!(
                "it returned {answers} `api` answers to a step with {requests} changes to HPAs or \
                 other objects"
            ));
        }
        Ok(())
    }
}

impl UpstreamSession<'_> {
    fn process(&mut self) -> Result<&mut Process, EngineError> {
        let Upstream { process, name, .. } = &mut *self.engine;
        process.as_mut().ok_or_else(|| EngineError::Broken {
            engine: name.clone(),
            why: "its process has exited".to_owned(),
            output: String::new(),
        })
    }

    fn answer(&mut self) -> Result<Answer, EngineError> {
        let older = self.older;
        let process = self.process()?;
        let answer = match older {
            Some(Older::V2alpha1 | Older::V2beta1) => process.receive_as(v2beta1::answer),
            Some(Older::V2beta2) | None => process.receive(),
        };
        if answer.is_err() {
            self.engine.process = None;
        }
        match answer? {
            Answer::Failed { why, unsupported: true } => {
                let process = self.engine.process.take();
                Err(process.map_or_else(|| self.engine.give_up(&why), |it| it.unsupported(&why)))
            }
            Answer::Failed { why, .. } => Err(self.engine.give_up(&why)),
            answer => Ok(answer),
        }
    }

    /// Reads the answer to `open`.
    fn await_opened(&mut self) -> Result<(), EngineError> {
        if self.opened {
            return Ok(());
        }
        match self.answer()? {
            Answer::Opened { epoch } => {
                self.log.starts_at(epoch);
                self.opened = true;
                Ok(())
            }
            answer => Err(self.engine.give_up(&format!("it answered {answer:?} to `open`"))),
        }
    }
}

impl Session for UpstreamSession<'_> {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        // Most steps contain no HPA and are sent unchanged.
        let has_hpa =
            |change: &Change| matches!(change, Change::CreateHpa(_) | Change::PatchHpa { .. });
        let older = self.older.filter(|_| step.changes().any(has_hpa)).map(|older| match older {
            Older::V2alpha1 => v2beta1::step(step, "autoscaling/v2alpha1"),
            Older::V2beta1 => v2beta1::step(step, "autoscaling/v2beta1"),
            Older::V2beta2 => as_v2beta2(step),
        });
        self.sent.push_back(SentStep::new(step));
        self.process()?.send(&Request::Step(older.as_ref().unwrap_or(step)))
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        self.await_opened()?;
        match self.answer()? {
            Answer::Stepped(answer) => {
                let sent = self.sent.pop_front();
                let during = sent.iter().flat_map(|sent| sent.during.iter().copied()).collect();
                let stepped = self.log.stepped(answer, self.now, during).and_then(|stepped| {
                    let (answers, during) = (self.log.answers(), self.log.answers_during());
                    let checked = sent.map(|sent| sent.check(&stepped, answers, during));
                    checked.unwrap_or(Ok(())).map(|()| stepped)
                });
                let stepped = stepped.map_err(|why| self.engine.give_up(&why))?;
                self.now = stepped.now;
                Ok(stepped)
            }
            answer => Err(self.engine.give_up(&format!("it answered {answer:?} to `step`"))),
        }
    }

    fn takes_steps_ahead(&self) -> bool {
        true
    }

    fn close(mut self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        self.closed = true;
        self.process()?.send(&Request::Close {})?;
        self.await_opened()?;
        match self.answer()? {
            Answer::Closed { disturbable } => {
                self.engine.disturbable = disturbable.map(|it| *it);
                Ok(self.log.unfinished())
            }
            answer => Err(self.engine.give_up(&format!("it answered {answer:?} to `close`"))),
        }
    }
}

/// The API version of HPAs on releases without v2.
#[derive(Clone, Copy, Debug)]
enum Older {
    V2alpha1,
    V2beta1,
    V2beta2,
}

impl Older {
    fn for_release(release: Release) -> Option<Older> {
        let rules = Rules::of(release);
        match (rules.admission.serves_v2, rules.admission.has_metric_selectors) {
            (true, _) => None,
            (false, true) => Some(Older::V2beta2),
            (false, false) if rules.admission.serves_v2beta1 => Some(Older::V2beta1),
            (false, false) => Some(Older::V2alpha1),
        }
    }
}

/// Converts HPAs from version v2 to v2beta2, which has the same fields.
fn as_v2beta2(step: &Step) -> Step {
    let mut step = step.clone();
    for change in step.changes_mut() {
        if let Change::CreateHpa(manifest) = change
            && manifest["apiVersion"] == "autoscaling/v2"
        {
            manifest["apiVersion"] = "autoscaling/v2beta2".into();
        }
    }
    step
}

/// A session that is dropped early leaves answers in the pipe, so its process can't be reused.
impl Drop for UpstreamSession<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.engine.process = None;
        }
    }
}
