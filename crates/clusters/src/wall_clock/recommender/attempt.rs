//! One attempt at a scenario of the recommender on a control plane.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::observed::{self, Window};
use super::relocation::Relocation;
use super::schedule::steps;
use crate::cluster::tolerances::{
    RECOMMENDER_CACHE_LAG, RECOMMENDER_LATE_WRITE_QUARTERS, RECOMMENDER_MISSING_INTERVALS,
    RECOMMENDER_RUN_DIVISOR, RECOMMENDER_START,
};
use crate::cluster::{RecommenderCluster, RecommenderSession, StartedRun};
use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, GoTime, RecommenderFlags, Script, Session, Start,
};
use kube_lockstep_sim::compare::KnownDisagreement;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::comparison::Comparison;
use kube_lockstep_sim::run::recommender::undetermined;
use kube_lockstep_sim::run::recommender_lockstep::Lockstep;

/// A scenario as it runs on a cluster.
#[derive(Clone, Debug)]
pub(super) struct PreparedScript {
    pub script: Script,
    /// The events whose actions matched no existing pod, by their indices.
    pub unmatched: Vec<usize>,
    /// The interval of the recommender in the cluster.
    pub interval: Span,
    /// The factor by which the scenario runs faster than written.
    pub speed: u32,
}

/// A running attempt.
struct Attempt<'a, 'c, 'k> {
    session: &'a mut RecommenderSession<'c>,
    interval: Duration,
    /// The changes since the last run, as the API server stored them.
    changes: Vec<ClusterChange>,
    /// The time when the last change was complete.
    changed: Timestamp,
    model: Session,
    lockstep: Lockstep,
    comparison: Comparison<'k>,
}

/// A scenario that was run, and its comparison with the model.
pub(super) struct Attempted<'k> {
    pub lockstep: Lockstep,
    pub comparison: Comparison<'k>,
}

/// Runs a scenario once.
///
/// # Errors
/// If there is no verdict.
pub(super) async fn attempt<'k>(
    prepared: &PreparedScript,
    cluster: &RecommenderCluster,
    release: VpaRelease,
    known: &'k [KnownDisagreement],
) -> Result<Attempted<'k>, EngineError> {
    cluster.check()?;
    let PreparedScript { script, interval, .. } = prepared;
    let mut session = RecommenderSession::open(cluster, &script.flags, *interval).await?;
    let compared = run_and_compare(prepared, &mut session, release, known).await;
    session.close().await;
    // The last output of a failed control plane is more informative than a missing answer.
    cluster.check()?;
    compared
}

async fn run_and_compare<'k>(
    prepared: &PreparedScript,
    session: &mut RecommenderSession<'_>,
    release: VpaRelease,
    known: &'k [KnownDisagreement],
) -> Result<Attempted<'k>, EngineError> {
    let PreparedScript { script, interval, speed, .. } = prepared;
    let relocation = Relocation {
        namespace: session.namespace().clone(),
        start: script.start.at,
        epoch: session.epoch(),
        speed: *speed,
    };
    let mut objects = Vec::new();
    for change in &script.start.objects {
        objects.push(session.apply(relocation.change(change)).await?);
    }
    session.start_recommender()?;
    let flags = RecommenderFlags {
        recommender_interval: *interval,
        vpa_object_namespace: relocation.namespace.to_string(),
        ..script.start.flags.clone()
    };
    let start = Start { at: relocation.epoch, flags, objects, history: Vec::new() };
    let (model, _) = Session::open(&start, VpaRules::of(release));
    let mut attempt = Attempt {
        session,
        interval: Duration::from_nanos(interval.0.unsigned_abs()),
        changes: Vec::new(),
        changed: Timestamp::now(),
        model,
        lockstep: Lockstep::new(false),
        comparison: Comparison::new(&script.name, &release.to_string(), known),
    };
    attempt.lockstep.started(&[], Vec::new(), &mut attempt.comparison);
    let mut starts = true;
    for step in steps(script, script.start.flags.recommender_interval) {
        for change in step.changes {
            starts |= *change == ClusterChange::Restart;
            attempt.apply(relocation.change(change)).await?;
        }
        for _ in 0..step.runs {
            attempt.run(starts).await?;
            starts = false;
            if attempt.comparison.undetermined.is_some() {
                return Ok(attempt.ended());
            }
        }
    }
    Ok(attempt.ended())
}

impl<'k> Attempt<'_, '_, 'k> {
    fn ended(self) -> Attempted<'k> {
        Attempted { lockstep: self.lockstep, comparison: self.comparison }
    }

    async fn apply(&mut self, change: ClusterChange) -> Result<(), EngineError> {
        let change = self.session.apply(change).await?;
        // The model gets the samples that were served, with the run that read them.
        if !matches!(change, ClusterChange::SetMetrics(_)) {
            self.changes.push(change);
            self.changed = Timestamp::now();
        }
        Ok(())
    }

    /// Waits for a run, and compares it. `starts`: the recommender has just started.
    async fn run(&mut self, starts: bool) -> Result<(), EngineError> {
        let limit = self.interval * RECOMMENDER_MISSING_INTERVALS
            + if starts { RECOMMENDER_START } else { Duration::ZERO };
        let started = self.session.next_run(limit).await?;
        let StartedRun { received, samples } = started;
        let begin = Instant::now();
        let since_change = received.duration_since(self.changed);
        if since_change.unsigned_abs() < RECOMMENDER_CACHE_LAG || since_change.is_negative() {
            return Err(self.session.broken("a run began before the cluster matched the scenario"));
        }
        if self.session.observed() > 0 {
            return Err(self.session.broken("writes of a run were observed after its time"));
        }
        let mut changes = std::mem::take(&mut self.changes);
        changes.push(ClusterChange::SetMetrics(samples));
        let mut predicted = self.model.run_at(&changes, GoTime::from_timestamp(received));
        if predicted.run.is_undetermined {
            self.comparison.undetermined = Some(undetermined(predicted.at));
            return Ok(());
        }
        self.wait_for_writes(begin, predicted.run.writes.len()).await?;
        let writes = self.session.take_writes();
        let window = Window::new(received, &writes);
        let observed = observed::run(&predicted, writes);
        let observed = observed.map_err(|why| self.session.broken(&why))?;
        observed::adopt_clock(&mut predicted, &observed, window);
        let at: Time = predicted.at;
        let runs = [Some(&predicted), Some(&observed)];
        self.lockstep.run(&mut self.model, at, runs, &mut self.comparison);
        Ok(())
    }

    /// Waits until the run is over: half of the interval, in which there may be more writes than
    /// predicted; or longer, if there are fewer.
    async fn wait_for_writes(&mut self, begin: Instant, count: usize) -> Result<(), EngineError> {
        let over = begin + self.interval / RECOMMENDER_RUN_DIVISOR;
        let latest = begin + self.interval * RECOMMENDER_LATE_WRITE_QUARTERS / 4;
        sleep_until(over).await;
        self.session.wait_for_writes(count, latest).await;
        if self.session.has_next_run() {
            return Err(self.session.broken("a run began before the previous one was over"));
        }
        Ok(())
    }
}
