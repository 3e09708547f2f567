//! One attempt at a scenario on a cluster. `docs/wall-clock.md` lists the compared behavior and the
//! tolerances.
//!
//! This file uses the cluster: it applies the scenario's world to the cluster, waits for
//! reconciles, and passes them to the pure [`checker`], which compares them with the model.

pub(super) mod during;
mod events;
mod reading;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::during::{Expected, conflicts};
use self::reading::FoundReconcile;
use crate::cluster::tolerances::RECONCILE_TIMEOUT;
use crate::cluster::{Cluster, Observability, ObservedReconcile, ScenarioSession};
use crate::wall_clock::checker::{CheckResult, Checker, Precision};
use crate::wall_clock::custom_controller::WRITES_SPEC_REPLICAS;
use crate::wall_clock::uncertainty::{History, Uncertainty};
use crate::wall_clock::window;
use kube_autoscaler_models::observation::{Event, Observation};
use kube_autoscaler_models::rules::{Release, Rules};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_engines::plan::Compared;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::ChangesDuringReconcile;
use kube_lockstep_sim::engine::{EngineError, Step};
use kube_lockstep_sim::run::during::pending;
use kube_lockstep_sim::run::findings::Findings;
use kube_lockstep_sim::run::lockstep::free_run;
use kube_lockstep_sim::run::predicted::Predicted;
use kube_lockstep_sim::trace::{ApiAnswer, Scope, Stepped};
use kube_lockstep_sim::world::{Change, World};

/// The result of an attempt.
pub(in crate::wall_clock) struct Attempted<'k> {
    pub findings: Findings<'k>,
    /// The number of reconciles for which the model allows several outcomes.
    pub ambiguous_ticks: usize,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// Why an unmet expectation is no verdict, if that is the case.
    pub(in crate::wall_clock) uncertainty: Option<EngineError>,
}

/// The cluster and the settings of an attempt.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    pub cluster: &'a Cluster,
    pub stop: &'a CancellationToken,
    pub compared: Compared,
}

/// A running attempt.
struct WallClockRun<'a> {
    scenario: &'a Arc<Scenario>,
    world: World,
    /// The events in the middle of reconciles that have not happened yet, by their index.
    pending: Vec<usize>,
    checker: Checker,
    /// The time up to which the world was advanced; it never goes back.
    advanced: Time,
    /// The last reconcile, and its due time.
    last: Option<(ObservedReconcile, Time)>,
    observability: Observability,
    /// The compared fields, if the controller is not upstream's.
    custom: Option<Scope>,
    /// The delay of a custom controller's first reconcile, which delays the whole scenario.
    late: Span,
    /// True if the controller retries a write of the scale after a conflict.
    retries_conflicts: bool,
    /// True if the controller wrote replicas without the scale subresource.
    direct: bool,
    /// The events that each reconcile should have written, and its index in the trace if it was
    /// observed.
    events: Vec<(Option<usize>, Vec<Event>)>,
}

/// Runs a scenario once. `history` has the reasons why earlier attempts had no verdict.
///
/// # Errors
/// If there is no verdict: the cluster is broken or can't be changed as the scenario requires, or a
/// difference is uncertain.
pub(super) async fn attempt<'k>(
    scenario: &Arc<Scenario>,
    release: Release,
    on: On<'_>,
    history: &mut History,
    mut findings: Findings<'k>,
) -> Result<Attempted<'k>, EngineError> {
    let On { cluster, stop, compared } = on;
    cluster.check()?;
    let mut run =
        WallClockRun::new(scenario, Rules::of(release), cluster.observability(), compared);
    let mut session = match cluster.open(scenario, stop).await {
        Ok(Some(session)) => session,
        Ok(None) => return Err(cluster.interrupted()),
        Err(error) => return Err(cluster.check().err().unwrap_or(error)),
    };
    let done = tokio::select! {
        done = run.run_and_compare_events(&mut session, &mut findings) => Some(done),
        // The objects of the scenario are still removed.
        () = stop.cancelled() => None,
    };
    let done = done.unwrap_or_else(|| Err(cluster.interrupted()));
    let checked = run.custom.is_none() && findings.comparison.divergence.is_none();
    let predicted = checked.then(|| free_run(scenario, release));
    let expected = predicted.as_ref().map_or(0, |run| run.trace.ticks.len());
    let missed = predicted.as_ref().and_then(|predicted| run.missed_event(predicted));
    let mut notes = run.notes(&session, &findings);
    notes.extend(window::missing_note(run.events.len(), expected));
    let no_verdict = run.no_verdict(&mut session, &findings, expected, history);
    let no_verdict = no_verdict.or(missed).filter(|_| done.is_ok());
    run.checker.uncertainties.close();
    let remaining = run.checker.uncertainties.remaining(history);
    let reason = no_verdict.as_ref().or(remaining.as_ref());
    reason.filter(|_| done.is_ok()).into_iter().for_each(|why| history.add(why));
    let [no_verdict, uncertainty] =
        [no_verdict, remaining].map(|it| it.map(|why| without_verdict(&session, &why)));
    session.close().await;
    // The last output of a failed cluster is more informative than a missing answer.
    cluster.check()?;
    done?;
    if let Some(error) = no_verdict {
        return Err(error);
    }
    let ambiguous_ticks = run.checker.ambiguous_ticks;
    Ok(Attempted { findings, ambiguous_ticks, notes, uncertainty })
}

impl<'a> WallClockRun<'a> {
    fn new(
        scenario: &'a Arc<Scenario>,
        rules: Rules,
        observability: Observability,
        compared: Compared,
    ) -> WallClockRun<'a> {
        let custom = compared.scope().map(|scope| scope.and(observability.scope));
        let precision =
            Precision { uncertainty: observability.uncertainty, custom: custom.is_some() };
        WallClockRun {
            scenario,
            world: World::new(scenario),
            pending: pending(scenario),
            retries_conflicts: rules.scale.update_attempts > 1,
            checker: Checker::new(scenario, rules, precision),
            advanced: Time::ZERO,
            last: None,
            observability,
            custom,
            late: Span::ZERO,
            direct: false,
            events: Vec::new(),
        }
    }

    async fn run_and_compare_events(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        self.run(session, findings).await?;
        if self.custom.is_some() {
            return Ok(());
        }
        if findings.comparison.divergence.is_none() {
            self.checker.uncertainties.whole_scenario();
        }
        self.compare_events(session, findings).await
    }

    async fn run(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        let start = self.world.advance(Time::ZERO);
        let mut events: VecDeque<Change> = self.world.api_events(Time::ZERO).into();
        session.begin(&start).await?;
        self.checker.apply(&start, Time::ZERO);
        let mut last_event = Time::ZERO;
        let end = self.scenario.until;
        while findings.comparison.divergence.is_none() {
            let due = self.checker.next_reconcile();
            // An action takes effect completely before the next one.
            if let Some(due) = due.filter(|due| *due <= session.now()) {
                self.change(session, due).await?;
                self.tick(session, findings, due).await?;
                continue;
            }
            if let Some(event) = events.pop_front() {
                self.change(session, session.now()).await?;
                self.edit(session, findings, &event).await?;
                continue;
            }
            let next_event = self.world.next_api_event(last_event).filter(|at| *at <= end);
            // A reconcile that is due at the time of an event comes first.
            let slack = self.checker.window.slack;
            let before = |due: Time, event: Time| due - self.late <= event + slack;
            match (next_event, due) {
                (Some(event), due) if due.is_none_or(|due| !before(due, event)) => {
                    self.change(session, event + self.late).await?;
                    session.wait_until(event + self.late).await;
                    events = self.world.api_events(event).into();
                    last_event = event;
                }
                (_, Some(due)) if before(due, end) => {
                    self.change(session, due).await?;
                    self.tick(session, findings, due).await?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Applies the world at a future time to the cluster.
    async fn change(&mut self, session: &mut ScenarioSession, at: Time) -> Result<(), EngineError> {
        self.advanced = self.advanced.max(at - self.late);
        let changes = self.world.advance(self.advanced);
        if session.is_settled_by_now() {
            self.checker.settled();
        }
        self.checker.change(&changes, session.now(), at);
        session.apply(&changes).await
    }

    /// Sends a user's request for the HPA, and compares the API server's answers.
    async fn edit(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        event: &Change,
    ) -> Result<(), EngineError> {
        let begin = session.now();
        let seen = session.act(event).await?;
        // In the model, the controller observes the edit when the request ends.
        let at = session.now();
        let mut model = self.checker.edit(event, begin, at);
        if let (Some(model), Some(seen)) = (&mut model, &seen) {
            model.at = seen.at;
        }
        self.compare_answers(findings, model, seen, at);
        Ok(())
    }

    /// Compares the API server's answer to a request for the HPA.
    fn compare_answers(
        &self,
        findings: &mut Findings<'_>,
        model: Option<ApiAnswer>,
        seen: Option<ApiAnswer>,
        at: Time,
    ) {
        let step = Step { until: at, ..Step::default() };
        let predicted = Predicted { step, api: model.into_iter().collect(), decisions: Vec::new() };
        let stepped = Stepped { now: at, api: seen.into_iter().collect(), ticks: Vec::new() };
        findings.compare(&predicted, stepped, self.observability.scope);
    }

    /// Waits for the due reconcile, and compares it.
    async fn tick(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        due: Time,
    ) -> Result<(), EngineError> {
        self.checker.uncertainties.next(session.now());
        let last = self.last.take();
        let scope = self.observability.scope;
        let slack = self.checker.window.slack;
        let Expected { next, during, before } = self.expected(session, findings, due).await?;
        let visible = next.as_ref().is_some_and(|it| requests(it, scope) > 0);
        // The reconcile makes only requests that cannot be observed; a request that can be observed
        // is an error.
        let hidden = !visible && next.as_ref().is_some_and(|it| requests(it, Scope::ALL) > 0);
        if !(visible || hidden && session.requests().has_request_by(due + slack).await) {
            let decision = self.checker.unobservable(due);
            self.events
                .extend(decision.map(|it| (None, it.observation.events().cloned().collect())));
            return Ok(());
        }
        let Some(mut tick) =
            session.requests().next_reconcile(self.checker.window.deadline(due)).await
        else {
            let idle = session.idle(self.scenario.flags.sync_period);
            if let Some(idle) = idle.filter(|_| findings.trace.ticks.is_empty()) {
                return Err(idle);
            }
            let missing = self.checker.missing(due);
            self.compare(session, findings, None, missing, due);
            return Ok(());
        };
        let possible = self.possible_requests(&tick, during.as_ref());
        // A custom controller's reconcile ends when the requests pause.
        let since = if during.is_some() { session.now() } else { tick.began };
        session.requests().complete(&mut tick, &possible, since + RECONCILE_TIMEOUT).await;
        if self.custom.is_some() {
            if findings.trace.ticks.is_empty() {
                self.late = (tick.began - due).max(Span::ZERO);
            }
        } else {
            let conflicts = conflicts(next.as_ref());
            if self.retries_conflicts && conflicts == 0 {
                tick.forget_retries();
            }
            let reads = next.is_some_and(|it| it.reads().next().is_some());
            if let Some(why) = session.requests().continuation_reason(&tick, reads) {
                return self.resume(session, findings, last, tick, why);
            }
            if let Some(why) = session.incomparable_reason(&tick, before, conflicts) {
                return Err(without_verdict(session, &Uncertainty::NotComparable(why)));
            }
        }
        let mut seen = self.read(session, &tick, due)?;
        seen.reconcile.settled = before.settled;
        seen.reconcile.during = during;
        let outcome = self.checker.observe(&seen.reconcile);
        let outcome = outcome.map_err(|why| without_verdict(session, &why))?;
        self.last = Some((tick, due));
        self.compare(session, findings, Some(seen), outcome, due);
        Ok(())
    }

    /// The numbers of requests that the model allows for a reconcile; none for a custom controller.
    fn possible_requests(
        &self,
        tick: &ObservedReconcile,
        during: Option<&ChangesDuringReconcile>,
    ) -> BTreeSet<usize> {
        if self.custom.is_some() {
            return BTreeSet::new();
        }
        let count = |it: &Observation| requests(it, self.observability.scope);
        self.checker.possible_requests(tick.began, during, count).collect()
    }

    /// Compares the last reconcile again, with its delayed requests.
    fn resume(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        last: Option<(ObservedReconcile, Time)>,
        rest: ObservedReconcile,
        why: String,
    ) -> Result<(), EngineError> {
        let reopened =
            self.checker.reopen(rest.began, |since| session.requests().stalled_since(since));
        let Some((mut tick, due)) = last.filter(|_| reopened) else {
            return Err(without_verdict(session, &Uncertainty::NotComparable(why)));
        };
        self.checker.uncertainties.set(Uncertainty::Resumed(why));
        tick.ended = rest.ended;
        tick.actions.extend(rest.actions);
        findings.take_back();
        self.events.pop();
        let seen = self.read(session, &tick, due)?;
        let outcome = self.checker.observe_all(&seen.reconcile);
        let outcome = outcome.map_err(|why| without_verdict(session, &why))?;
        self.compare(session, findings, Some(seen), outcome, due);
        Ok(())
    }

    /// Compares the outcome of an observation, and applies the writes of the reconcile to the
    /// world.
    fn compare(
        &mut self,
        session: &mut ScenarioSession,
        findings: &mut Findings<'_>,
        seen: Option<FoundReconcile>,
        outcome: CheckResult,
        due: Time,
    ) {
        let (decision, seen) = match outcome {
            CheckResult::Predicted { decision, scaled } => {
                let index = findings.trace.ticks.len();
                self.events.push((Some(index), decision.observation.events().cloned().collect()));
                if let (Some((target, replicas)), Some(seen)) = (scaled, &seen) {
                    self.advanced = self.advanced.max(seen.reconcile.seen.at - self.late);
                    self.world.scaled(self.advanced, target, replicas);
                    session.scaled(replicas);
                }
                (Some(*decision), seen)
            }
            CheckResult::Extra => (None, seen),
            CheckResult::Missing(decision) => (decision.map(|decision| *decision), None),
        };
        let (ticks, unread, scope) = match seen {
            Some(FoundReconcile { reconcile, unread }) => {
                (vec![reconcile.seen], unread, reconcile.scope)
            }
            None => (Vec::new(), None, self.observability.scope),
        };
        let now = ticks.first().map_or(due, |tick| tick.at);
        let stepped = Stepped { now, api: Vec::new(), ticks };
        findings.compare(
            &Predicted::reconciles(due, decision.into_iter().collect()),
            stepped,
            scope,
        );
        findings.found(findings.trace.ticks.len(), now, unread.into_iter().collect());
    }

    /// Why there is no verdict, if there is none: the cluster may have caused a divergence.
    fn no_verdict(
        &self,
        session: &mut ScenarioSession,
        findings: &Findings<'_>,
        expected: usize,
        history: &History,
    ) -> Option<Uncertainty> {
        let Checker { uncertainties, window, .. } = &self.checker;
        let stall = session.stall(uncertainties.since_previous());
        let reason = || uncertainties.reason(window.slack, stall, history);
        let seen = self.events.len();
        let few = || window::missing_note(seen, expected).map(Uncertainty::TooFewReconciles);
        let few = || few().filter(|_| window::are_too_few(seen, expected));
        let uncertain = findings.comparison.divergence.as_ref().and_then(|_| reason());
        let gap = session.has_gap().then_some(Uncertainty::WatchInterrupted);
        uncertain.or(gap).or_else(few)
    }

    /// Notes on a custom controller.
    fn notes(&self, session: &ScenarioSession, findings: &Findings<'_>) -> Vec<String> {
        let direct = self.direct.then(|| WRITES_SPEC_REPLICAS.to_owned());
        let refused = match (self.custom, &findings.comparison.divergence) {
            (Some(_), Some(_)) => session.forbidden(),
            _ => Vec::new(),
        };
        let refused = refused.into_iter().map(|why| format!("a request was forbidden: {why}"));
        direct.into_iter().chain(refused).collect()
    }
}

fn without_verdict(session: &ScenarioSession, why: &Uncertainty) -> EngineError {
    session.broken(why.to_string())
}

/// The number of observable requests of a reconcile.
fn requests(tick: &Observation, scope: Scope) -> usize {
    let reads = scope.visible(tick).len();
    reads + tick.actions().filter(|action| action.is_write()).count()
}
