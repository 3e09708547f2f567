//! The checker: each observed reconcile filters the hypotheses.
//!
//! Pure: it uses neither a cluster nor a clock. A reconcile filters four sets of hypotheses in
//! turn, and the first set that is not empty afterwards decides:
//!
//! 1. the current hypotheses: agrees;
//! 2. the hypotheses for each intermediate state of a change in flight: agrees, ambiguous;
//! 3. the hypotheses from before an edit of the HPA that the controller may not have observed: no
//!    verdict;
//! 4. the hypotheses for a clock reading the timing slack away: differs, and no verdict in the
//!    first attempt.
//!
//! If all sets are empty, the reconcile differs.

use std::mem::take;

use super::hypotheses::{ClockReadings, Filter, Hypotheses, Reconcile, Supported};
use super::in_flight::InFlightChange;
use super::uncertainty::{Nondeterminism, Uncertainties, Uncertainty};
use super::window::{ReconcileWindow, Timing, may_not_have_observed};
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::observation::{ControllerAction, Observation};
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::ChangesDuringReconcile;
use kube_lockstep_sim::trace::{ApiAnswer, Scope};
use kube_lockstep_sim::world::Change;

/// The precision with which a controller is observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// The possible error of the observed time of a request.
    pub(super) uncertainty: Span,
    /// True if the controller is not upstream's, so that the times of its reconciles are not
    /// compared.
    pub custom: bool,
}

/// The state of a check.
pub(super) struct Checker {
    pub(super) hypotheses: Hypotheses,
    pub window: ReconcileWindow,
    pub(super) uncertainties: Uncertainties,
    /// Reconciles for which several outcomes were possible.
    pub ambiguous_ticks: usize,
    precision: Precision,
    /// The changes of the cluster that the next reconcile may observe in part.
    in_flight: Option<InFlightChange>,
    /// Edits of the HPA since the last reconcile.
    edits: Vec<Edit>,
    /// The state before the last reconcile, if that reconcile may not be over.
    open: Option<Open>,
}

/// An edit of the HPA.
struct Edit {
    end: Time,
    /// The hypotheses without the edit.
    before: Hypotheses,
}

/// The state before a reconcile that wrote nothing.
struct Open {
    ended: Time,
    hypotheses: Hypotheses,
    window: ReconcileWindow,
    ambiguous_ticks: usize,
}

/// The result of an observation.
pub(super) enum CheckResult {
    /// The prediction, and the target that was scaled with its replicas. The comparison decides
    /// whether the prediction agrees.
    Predicted { decision: Box<Decision>, scaled: Option<(usize, i32)> },
    /// The model expects no reconcile.
    Extra,
    /// The due reconcile did not happen.
    Missing(Option<Box<Decision>>),
}

impl Checker {
    pub(super) fn new(scenario: &Scenario, rules: Rules, precision: Precision) -> Checker {
        Checker {
            hypotheses: Hypotheses::new(scenario, rules),
            window: ReconcileWindow::new(scenario.flags.sync_period),
            uncertainties: Uncertainties::default(),
            ambiguous_ticks: 0,
            precision,
            in_flight: None,
            edits: Vec::new(),
            open: None,
        }
    }

    /// The due time of the next reconcile.
    pub(super) fn next_reconcile(&self) -> Option<Time> {
        self.hypotheses.first().simulation.next_sync()
    }

    /// The cluster begins to change. `at` is when the model's informers deliver the changes.
    pub(super) fn change(&mut self, changes: &[Change], now: Time, at: Time) {
        match &mut self.in_flight {
            // A custom controller may observe a change at any time.
            _ if changes.is_empty() || self.precision.custom => {}
            Some(in_flight) => in_flight.extend(changes, now),
            None => {
                let before = self.hypotheses.clone();
                self.in_flight = Some(InFlightChange::new(before, changes.to_vec(), now));
            }
        }
        self.apply(changes, at);
    }

    /// Applies changes of the cluster that no reconcile observes in part.
    pub(super) fn apply(&mut self, changes: &[Change], at: Time) {
        self.hypotheses.apply_all(changes, at);
        for edit in &mut self.edits {
            edit.before.apply_all(changes, at);
        }
    }

    /// All changes so far are complete: the next reconcile observes all of them.
    pub(super) fn settled(&mut self) {
        self.in_flight = None;
    }

    /// The HPA was edited between these times. Returns the answer of the model's API server.
    pub(super) fn edit(&mut self, change: &Change, begin: Time, end: Time) -> Option<ApiAnswer> {
        self.window.edited(begin, end);
        self.uncertainties.api_answer();
        self.edits.push(Edit { end, before: self.hypotheses.clone() });
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.edit(change, end);
        }
        self.hypotheses.apply(change, end)
    }

    /// The HPA was edited between these times, during a reconcile. Returns the answer of
    /// the model's API server.
    pub(super) fn edit_during(
        &mut self,
        change: &Change,
        begin: Time,
        end: Time,
    ) -> Option<ApiAnswer> {
        self.window.edited(begin, end);
        self.uncertainties.api_answer();
        self.hypotheses.clone().apply(change, end)
    }

    /// A reconcile that can't be observed is assumed to have happened when it was due.
    pub(super) fn unobservable(&mut self, due: Time) -> Option<Decision> {
        self.forget();
        self.hypotheses.reconcile(due)
    }

    /// No reconcile began before the deadline of the one that was due.
    pub(super) fn missing(&mut self, due: Time) -> CheckResult {
        self.forget();
        self.uncertainties.nondeterminism = self.pace();
        CheckResult::Missing(self.hypotheses.predict(due, None).map(Box::new))
    }

    /// Returns true if requests that began at `began` may continue the last reconcile, and restores
    /// the state before it. `stall` is how long a component was unresponsive since it ended.
    pub(super) fn reopen(&mut self, began: Time, stall: impl FnOnce(Time) -> Span) -> bool {
        let open = self.open.take().filter(|_| self.edits.is_empty());
        let near = |open: &Open| self.window.may_continue(open.ended, began, stall(open.ended));
        let Some(open) = open.filter(near) else { return false };
        (self.hypotheses, self.window) = (open.hypotheses, open.window);
        self.ambiguous_ticks = open.ambiguous_ticks + 1;
        true
    }

    /// Observes a reconcile again that was reopened, with all of its requests.
    ///
    /// # Errors
    /// See [`Checker::observe`].
    pub(super) fn observe_all(
        &mut self,
        reconcile: &Reconcile,
    ) -> Result<CheckResult, Uncertainty> {
        let in_flight = self.in_flight.take();
        let outcome = self.observe(reconcile)?;
        // The later changes were undone together with the reconcile.
        if let Some(in_flight) = in_flight {
            self.in_flight = Some(in_flight.after(&mut self.hypotheses, &reconcile.seen));
        }
        Ok(outcome)
    }

    /// Observes a reconcile.
    ///
    /// # Errors
    /// Why the reconcile can't have a verdict.
    pub(super) fn observe(&mut self, reconcile: &Reconcile) -> Result<CheckResult, Uncertainty> {
        let Reconcile { due, began, ended, settled, stall, ref seen, .. } = *reconcile;
        if began < settled {
            // Recorded even if the reconcile agrees.
            self.uncertainties.set(Uncertainty::ChangeInFlight { began, settled });
        }
        let (edits, in_flight) = self.forget();
        if !self.precision.custom && self.window.is_too_early(began, due) {
            self.uncertainties.nondeterminism = self.pace();
            return Ok(CheckResult::Extra);
        }
        if !self.precision.custom && self.window.is_too_late(began, due) {
            return Ok(self.missing(due));
        }
        let (window, ambiguous_ticks) = (self.window, self.ambiguous_ticks);
        let had_edits = !edits.is_empty();
        let mut partial = None;
        let supported = match self.hypotheses.filter(&self.filter(reconcile)) {
            Ok(supported) => Ok(supported),
            Err(first) => match self.in_part(reconcile, in_flight) {
                Some((supported, change)) => {
                    partial = Some(change);
                    Ok(supported)
                }
                None => Err(first),
            },
        };
        let (next, decision) = match supported {
            Ok(Supported { hypotheses, decision, ambiguous }) => {
                self.ambiguous_ticks += usize::from(ambiguous);
                (hypotheses, decision)
            }
            Err(first) => {
                self.explain(reconcile, &edits)?;
                let Some(first) = first else {
                    self.uncertainties.nondeterminism = self.pace();
                    return Ok(CheckResult::Extra);
                };
                *first
            }
        };
        let hypotheses = std::mem::replace(&mut self.hypotheses, next);
        let writes = seen.actions().any(ControllerAction::is_write);
        let can_continue = !had_edits && partial.is_none() && reconcile.during.is_none();
        if !writes && can_continue && !self.precision.custom {
            self.open = Some(Open { ended, hypotheses, window, ambiguous_ticks });
        }
        self.window.advance(Timing { due, began, ended, stall });
        let committed = reconcile.during.as_ref().map_or(0, |during| during.after);
        let scaled = self.hypotheses.commit(seen, ended, committed);
        self.in_flight = partial.map(|change| change.after(&mut self.hypotheses, seen));
        Ok(CheckResult::Predicted { decision: Box::new(decision), scaled })
    }

    /// Takes the state that applies only to the reconcile that was due.
    fn forget(&mut self) -> (Vec<Edit>, Option<InFlightChange>) {
        self.open = None;
        (take(&mut self.edits), self.in_flight.take())
    }

    /// The nondeterminism of a missing or extra reconcile; none for a custom controller, because
    /// the times of its reconciles are not compared.
    fn pace(&self) -> Option<Nondeterminism> {
        (!self.precision.custom).then_some(Nondeterminism::Pace)
    }

    fn filter<'a>(&self, reconcile: &'a Reconcile) -> Filter<'a> {
        let uncertainty = self.precision.uncertainty;
        let late = Span(uncertainty.0 + reconcile.stall.0);
        let readings = ClockReadings::new(reconcile, uncertainty, late);
        let (slack, custom) = (self.window.slack, self.precision.custom);
        Filter { reconcile, scope: reconcile.scope, readings, slack, custom }
    }

    /// The hypotheses for an intermediate state of a change in flight that predict the reconcile.
    fn in_part(
        &self,
        reconcile: &Reconcile,
        in_flight: Option<InFlightChange>,
    ) -> Option<(Supported, InFlightChange)> {
        // After an action during the reconcile, the changes before it can't be completed.
        let in_flight = in_flight.filter(|_| reconcile.during.is_none())?;
        let filter = self.filter(reconcile);
        let supported = |state: &Hypotheses| state.filter(&filter).ok();
        let found = if reconcile.began < reconcile.settled {
            in_flight.find(reconcile, supported)
        } else {
            // The metrics may have changed after the controller queried them.
            in_flight.before_the_last(filter.readings.earliest, supported)
        }?;
        Some((Supported { ambiguous: true, ..found }, in_flight))
    }

    /// Looks for an explanation of a reconcile that no hypothesis predicts.
    ///
    /// # Errors
    /// If the reconcile matches the HPA before an edit. The API server then refuses its status.
    fn explain(&mut self, reconcile: &Reconcile, edits: &[Edit]) -> Result<(), Uncertainty> {
        let Reconcile { began, stall, ref seen, scope, .. } = *reconcile;
        let filter = self.filter(reconcile);
        for edit in edits.iter().filter(|_| !self.precision.custom) {
            let refused = seen.status_write().is_none_or(|write| write.error.is_some());
            let without = Scope { status: false, errors: false, ..scope };
            let filter = Filter { scope: if refused { without } else { scope }, ..filter };
            if may_not_have_observed(began, edit.end, stall) && edit.before.filter(&filter).is_ok()
            {
                return Err(Uncertainty::EditNotObserved { began, edited: edit.end });
            }
        }
        let readings = ClockReadings::new(reconcile, filter.slack, filter.slack);
        if self.hypotheses.agrees_at_the_edges(&Filter { readings, ..filter }) {
            self.uncertainties.nondeterminism = Some(Nondeterminism::ClockReading);
        }
        Ok(())
    }

    /// The possible numbers of requests of a reconcile that began at `began`. If it is delayed, it
    /// may read the clock after the end of a window that was still open when it began.
    pub(super) fn possible_requests(
        &self,
        began: Time,
        during: Option<&ChangesDuringReconcile>,
        count: impl Fn(&Observation) -> usize,
    ) -> impl Iterator<Item = usize> {
        let each = self.hypotheses.predict_each([began, began + self.window.slack], during);
        each.map(move |decision| count(&decision.observation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::testing::{WEB, scenario};
    use kube_lockstep_sim::compare;
    use kube_lockstep_sim::engine::model::{InterruptedReconcile, Simulation};
    use kube_lockstep_sim::world::World;

    const RELEASE: Release = Release::NEWEST;

    /// A fault of the controller, or a tolerated delay. Times are in milliseconds.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Planted {
        Nothing,
        /// The second reconcile is this much later or, if negative, earlier.
        Delay(i64),
        Skip,
        /// The second reconcile happens twice.
        Twice,
        OneReplicaMore,
        OtherMessage,
        /// A condition whose status stays the same gets the time of the reconcile.
        NewTransitionTime,
        OtherReads,
        /// A reconcile writes the status that the previous reconcile should have written.
        LateStatus,
        /// The caches of the controller lack the user's change, which is complete.
        StaleCache,
        /// The caches of the controller lack the user's change, which is not complete.
        ChangeInFlight,
    }

    /// A simulated controller, the checker, and the world.
    struct Bench {
        checker: Checker,
        controller: Simulation,
        world: World,
        last: Option<Observation>,
    }

    impl Bench {
        fn new() -> Bench {
            Bench::with("timeline: [{at: 40s, scale: 5}]")
        }

        fn with(timeline: &str) -> Bench {
            Bench::of(&format!("{WEB}{timeline}\n"))
        }

        fn of(text: &str) -> Bench {
            let scenario = scenario(text);
            let precision = Precision { uncertainty: Span::from_millis(4), custom: false };
            let mut checker = Checker::new(&scenario, Rules::of(RELEASE), precision);
            let mut world = World::new(&scenario);
            let mut controller = Simulation::new(&scenario, Rules::of(RELEASE)).with_wall_clock();
            let start = world.advance(Time::ZERO);
            checker.apply(&start, Time::ZERO);
            for change in &start {
                controller.apply(change, Time::ZERO);
            }
            for change in world.api_events(Time::ZERO) {
                controller.apply(&change, Time::ZERO);
                checker.edit(&change, Time::ZERO, Time::ZERO);
            }
            Bench { checker, controller, world, last: None }
        }

        /// Changes the cluster. The controller observes the change unless its cache is stale.
        fn change(&mut self, at: Time, observed: bool) {
            self.world.api_events(at);
            let changes = self.world.advance(at);
            self.checker.settled();
            self.checker.change(&changes, at, at);
            for change in changes.iter().filter(|_| observed) {
                self.controller.apply(change, at);
            }
        }

        /// Runs a reconcile of the controller.
        fn reconcile(&mut self, at: Time) -> Observation {
            self.controller.mark_ready(at);
            let decision = self.controller.sync(at).expect("a reconcile");
            let mut seen = decision.observation;
            seen.took = Span::ZERO;
            self.controller.commit(&seen, at, 0);
            seen
        }

        /// Passes a reconcile that began at `at` and took 20 ms to the checker. `settling` is how
        /// long the cluster was changing after `at`.
        fn observe(&mut self, seen: Observation, at: Time, settling: Span) -> &'static str {
            self.observe_during(seen, at, settling, None)
        }

        /// Like [`Bench::observe`], with changes during the reconcile.
        fn observe_during(
            &mut self,
            mut seen: Observation,
            at: Time,
            settling: Span,
            during: Option<ChangesDuringReconcile>,
        ) -> &'static str {
            let Some(due) = self.checker.next_reconcile() else { return "nothing is due" };
            self.checker.uncertainties.next(due);
            let scope = Scope { events: false, errors: false, ..Scope::ALL };
            let (ended, settled) = (at + Span::from_millis(20), at + settling);
            let (pods, stall) = (Vec::new(), Span::ZERO);
            seen.at = at;
            let settled = if settling == Span::ZERO { Time::ZERO } else { settled };
            let reconcile =
                Reconcile { due, began: at, ended, seen, scope, pods, stall, settled, during };
            match self.checker.observe(&reconcile) {
                Ok(CheckResult::Predicted { decision, .. }) => {
                    let model = &decision.observation;
                    let differs = !compare::observations(model, &reconcile.seen, scope).is_empty();
                    if differs { "differs" } else { "agrees" }
                }
                Ok(CheckResult::Extra) => "extra",
                Ok(CheckResult::Missing(_)) => "missing",
                Err(_) => "no verdict",
            }
        }

        /// The result of the checker for a controller with a planted fault, and the number of
        /// ambiguous ticks.
        fn run(planted: Planted) -> (&'static str, usize) {
            let mut bench = Bench::new();
            let first = bench.reconcile(Time::ZERO);
            assert_eq!(bench.observe(first.clone(), Time::ZERO, Span::ZERO), "agrees");
            bench.last = Some(first);
            // The second reconcile, which is due a period after the end of the first one.
            let due = bench.checker.next_reconcile().expect("the second reconcile");
            let at = match planted {
                Planted::Delay(millis) => due + Span::from_millis(millis),
                Planted::Skip => due + Span::from_secs(15),
                _ => due,
            };
            if matches!(planted, Planted::StaleCache | Planted::ChangeInFlight) {
                bench.change(Time::from_secs(40), false);
            } else {
                bench.change(Time::from_secs(40), true);
            }
            let mut seen = bench.reconcile(at);
            let write = seen.status_write_mut();
            match planted {
                Planted::OneReplicaMore => {
                    write.expect("a status").status.desired_replicas += 1;
                }
                Planted::OtherMessage => {
                    let status = &mut write.expect("a status").status;
                    status.conditions[0].message = "the pods are fine".into();
                }
                Planted::NewTransitionTime => {
                    let status = &mut write.expect("a status").status;
                    assert_eq!(status.conditions[0].last_transition_time, Time::ZERO);
                    status.conditions[0].last_transition_time = at.truncate_to_second();
                }
                Planted::OtherReads => {
                    let last = seen.reads().last().cloned();
                    seen.retain(|action| Some(action) != last.as_ref());
                }
                Planted::LateStatus => {
                    let last = bench.last.take();
                    let late = last.as_ref().and_then(Observation::status_write);
                    *write.expect("a status") = late.expect("a status").clone();
                }
                _ => {}
            }
            let changing = match planted {
                Planted::ChangeInFlight => Span::from_millis(50),
                _ => Span::ZERO,
            };
            let again = (planted == Planted::Twice).then(|| seen.clone());
            let mut result = bench.observe(seen, at, changing);
            if let Some(again) = again {
                assert_eq!(result, "agrees");
                result = bench.observe(again, at + Span::from_millis(500), Span::ZERO);
            }
            (result, bench.checker.ambiguous_ticks)
        }
    }

    #[test]
    fn planted_faults_are_detected_and_tolerated_delays_agree() {
        let rows = [
            (Planted::Nothing, "agrees"),
            (Planted::Delay(900), "agrees"),
            (Planted::Delay(-900), "agrees"),
            (Planted::Delay(-1100), "extra"),
            (Planted::Skip, "missing"),
            (Planted::Twice, "extra"),
            (Planted::OneReplicaMore, "differs"),
            (Planted::OtherMessage, "differs"),
            (Planted::NewTransitionTime, "differs"),
            (Planted::OtherReads, "differs"),
            (Planted::LateStatus, "differs"),
            (Planted::StaleCache, "differs"),
            (Planted::ChangeInFlight, "agrees"),
        ];
        for (planted, expected) in rows {
            let (result, ambiguous) = Bench::run(planted);
            assert_eq!(result, expected, "{planted:?}");
            assert!(
                planted != Planted::ChangeInFlight || ambiguous == 1,
                "{planted:?} is ambiguous"
            );
        }
    }

    #[test]
    fn an_action_in_the_middle_of_a_reconcile_is_part_of_its_prediction() {
        for is_known in [true, false] {
            let timeline = "timeline: [{at: 0s, during: {after: getScale}, scale: 5}]";
            let mut bench = Bench::with(timeline);
            let changes = bench.world.happens(0, Time::ZERO);
            let during = ChangesDuringReconcile { after: 1, changes };
            let next =
                &mut |it: &InterruptedReconcile<'_>| (it.before == 0).then(|| during.clone());
            let reconciled = bench.controller.sync_while(Time::ZERO, next);
            let seen = reconciled.decision.expect("a reconcile").observation;
            let known = is_known.then_some(during);
            let result = bench.observe_during(seen, Time::ZERO, Span::ZERO, known);
            assert_eq!(result, if is_known { "agrees" } else { "differs" });
        }
    }

    #[test]
    fn a_reconcile_that_began_before_the_metrics_changed_agrees() {
        for (late, expected) in [(-30, "differs"), (1, "agrees"), (30, "agrees")] {
            let mut bench = Bench::with("timeline: [{at: 10s, metricsMissing: \"0\"}]");
            let began = Time::ZERO + Span::from_millis(110);
            let seen = bench.reconcile(began);
            let changes = bench.world.advance(Time::from_secs(10));
            assert!(changes.iter().any(|change| !change.changes_workload()));
            let changed = began + Span::from_millis(late);
            bench.checker.change(&changes, changed, changed);
            assert_eq!(bench.observe(seen, began, Span::ZERO), expected, "{late} ms later");
            assert_eq!(bench.checker.ambiguous_ticks, usize::from(expected == "agrees"));
            if expected == "differs" {
                continue;
            }
            // The next reconcile observes the change.
            for change in &changes {
                bench.controller.apply(change, changed);
            }
            let due = bench.checker.next_reconcile().expect("a reconcile");
            let seen = bench.reconcile(due);
            assert_eq!(bench.observe(seen, due, Span::ZERO), "agrees");
        }
    }

    #[test]
    fn a_reconcile_that_matches_the_hpa_before_an_edit_has_no_verdict() {
        let mut bench = Bench::new();
        let first = bench.reconcile(Time::ZERO);
        assert_eq!(bench.observe(first, Time::ZERO, Span::ZERO), "agrees");
        bench.change(Time::from_secs(40), true);
        let due = bench.checker.next_reconcile().expect("a reconcile");
        let patch = serde_json::json!({ "spec": { "maxReplicas": 3 } });
        let edit = Change::PatchHpa { name: "web".into(), patch };
        bench.checker.edit(&edit, due - Span::from_millis(60), due - Span::from_millis(50));
        let seen = bench.reconcile(due);
        assert_eq!(bench.observe(seen.clone(), due, Span::ZERO), "no verdict");
    }

    /// The hypotheses without an edit observe later changes of the cluster, too.
    #[test]
    fn a_change_after_an_edit_may_be_observed_without_the_edit() {
        let mut bench = Bench::new();
        let first = bench.reconcile(Time::ZERO);
        assert_eq!(bench.observe(first, Time::ZERO, Span::ZERO), "agrees");
        let due = bench.checker.next_reconcile().expect("a reconcile");
        let patch = serde_json::json!({ "spec": { "maxReplicas": 3 } });
        let edit = Change::PatchHpa { name: "web".into(), patch };
        bench.checker.edit(&edit, due - Span::from_millis(60), due - Span::from_millis(50));
        bench.change(Time::from_secs(40), true);
        let seen = bench.reconcile(due);
        assert_eq!(bench.observe(seen, due, Span::ZERO), "no verdict");
    }

    /// A reconcile that was observed in part, and then as a whole, has been observed once: its
    /// delay permits the next one to be early once.
    #[test]
    fn a_reopened_reconcile_moves_the_window_once() {
        let mut bench = Bench::with("");
        let first = bench.reconcile(Time::ZERO);
        assert_eq!(bench.observe(first, Time::ZERO, Span::ZERO), "agrees");
        let due = bench.checker.next_reconcile().expect("a reconcile");
        let began = due + Span::from_millis(500);
        let seen = bench.reconcile(began);
        assert_eq!(seen.actions().find(|action| action.is_write()), None);
        assert_eq!(bench.observe(seen.clone(), began, Span::ZERO), "agrees");
        let early = |bench: &Bench| {
            let window = bench.checker.window;
            let at = Time::from_secs(100);
            let is_early = |millis: &i64| window.is_too_early(at - Span::from_millis(*millis), at);
            (0..5000).find(is_early)
        };
        let once = early(&bench);
        assert!(bench.checker.reopen(began + Span::from_millis(20), |_| Span::ZERO));
        assert_eq!(bench.checker.next_reconcile(), Some(due));
        assert_eq!(bench.observe(seen, began, Span::ZERO), "agrees");
        assert_eq!(early(&bench), once);
        assert_eq!(bench.checker.ambiguous_ticks, 1);
    }

    /// At the second reconcile, the recommendation of the first one is still in the window; 600 ms
    /// later, it is not, and the target is scaled down.
    #[test]
    fn a_delayed_reconcile_may_have_the_requests_of_a_later_time() {
        let load = "{steps: [{at: 0s, value: 500m}, {at: 10s, value: 100m}]}";
        let flag = "horizontal-pod-autoscaler-downscale-stabilization: 15500ms";
        let text = WEB.replace("perPod: 500m", &format!("perPod: {load}"));
        let mut bench = Bench::of(&format!("{text}controller: {{flags: {{{flag}}}}}\n"));
        let first = bench.reconcile(Time::ZERO);
        assert_eq!(bench.observe(first, Time::ZERO, Span::ZERO), "agrees");
        bench.change(Time::from_secs(10), true);
        let due = bench.checker.next_reconcile().expect("a reconcile");
        let writes = |it: &Observation| it.actions().filter(|action| action.is_write()).count();
        let possible: Vec<usize> = bench.checker.possible_requests(due, None, writes).collect();
        assert_eq!(possible, [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn a_missing_reconcile_counts_from_the_second_attempt() {
        use crate::wall_clock::uncertainty::History;
        let mut bench = Bench::new();
        let due = bench.checker.next_reconcile().expect("a reconcile");
        bench.checker.uncertainties.next(due);
        assert!(matches!(bench.checker.missing(due), CheckResult::Missing(Some(_))));
        let (slack, mut history) = (bench.checker.window.slack, History::default());
        let why = bench.checker.uncertainties.reason(slack, None, &history).expect("a reason");
        history.add(&why);
        assert_eq!(bench.checker.uncertainties.reason(slack, None, &history), None);
    }
}
