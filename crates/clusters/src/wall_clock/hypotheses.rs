//! The set of model states that are compatible with all reconciles observed so far.
//!
//! The time at which a reconcile reads the clock cannot be observed, only the times at which its
//! requests begin and end. The set therefore holds one hypothesis for each of the sampled clock
//! readings; each observed reconcile filters it. A hypothesis that is ruled out is replaced by a
//! copy of one that is not.

use super::custom_controller::predict_stored_status;
use super::event_recorder::Recorder;
use kube_autoscaler_models::api::Text;
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::compare;
use kube_lockstep_sim::engine::model::{ChangesDuringReconcile, InterruptedReconcile, Simulation};
use kube_lockstep_sim::trace::{ApiAnswer, Scope};
use kube_lockstep_sim::world::Change;

/// An observed reconcile.
#[derive(Clone, Debug)]
pub(super) struct Reconcile {
    /// The due time according to the model.
    pub due: Time,
    /// When its first request began, and when its last one was answered.
    pub began: Time,
    pub ended: Time,
    /// Its requests.
    pub seen: Observation,
    /// The part of the observation that is compared.
    pub scope: Scope,
    /// The names of pods: of several equal pods, the controller may name any.
    pub pods: Vec<String>,
    /// The longest time for which a component was unresponsive since the reconcile was due.
    pub(super) stall: Span,
    /// When the last change of the cluster before it was complete.
    pub(super) settled: Time,
    /// The changes in the middle of it.
    pub during: Option<ChangesDuringReconcile>,
}

/// The times at which a reconcile may have read the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReadings {
    middle: Time,
    pub earliest: Time,
    latest: Time,
}

impl ClockReadings {
    /// From `before` its first request to `after` its last one.
    pub(super) fn new(reconcile: &Reconcile, before: Span, after: Span) -> ClockReadings {
        let Reconcile { began, ended, .. } = *reconcile;
        let middle = Time(began.0 + (ended - began).0 / 2);
        ClockReadings { middle, earliest: began - before, latest: ended + after }
    }

    fn samples(&self) -> [Time; 3] {
        [self.middle, self.earliest, self.latest]
    }
}

/// The rules for comparing hypotheses with a reconcile.
#[derive(Clone, Copy)]
pub(super) struct Filter<'a> {
    pub reconcile: &'a Reconcile,
    pub scope: Scope,
    pub readings: ClockReadings,
    /// The possible delay of a reconcile without a read before its first write.
    pub(super) slack: Span,
    /// True if the controller is not upstream's, and may write a status that is already stored.
    pub custom: bool,
}

/// A model state, and the remaining budget of the event recorder.
#[derive(Clone)]
pub(super) struct Hypothesis {
    pub simulation: Simulation,
    recorder: Recorder,
}

impl Hypothesis {
    /// Advances as if a reconcile had happened at `at`; if the HPA was deleted, drops its key.
    fn reconcile(&mut self, at: Time, during: Option<&ChangesDuringReconcile>) -> Option<Decision> {
        self.simulation.mark_ready(at);
        let mut decision = match during {
            None => self.simulation.sync(at)?,
            Some(changes) => {
                let next = &mut |it: &InterruptedReconcile<'_>| {
                    (it.before < changes.after).then(|| changes.clone())
                };
                self.simulation.sync_while(at, next).decision?
            }
        };
        self.recorder.record(&mut decision.observation, at);
        Some(decision)
    }

    /// The prediction of a reconcile that reads the clock at `at`. Values that the model cannot
    /// predict are taken from the observed reconcile.
    fn predict(&self, at: Time, filter: &Filter<'_>) -> Option<Prediction> {
        let mut hypothesis = self.clone();
        let mut decision = hypothesis.reconcile(at, filter.reconcile.during.as_ref())?;
        let seen = &filter.reconcile.seen;
        if filter.custom {
            predict_stored_status(&mut decision, seen, &self.simulation);
        }
        adopt_unknowns(&mut decision.observation, filter);
        let agrees = compare::observations(&decision.observation, seen, filter.scope).is_empty();
        Some(Prediction { hypothesis, decision, agrees })
    }
}

struct Prediction {
    hypothesis: Hypothesis,
    decision: Decision,
    agrees: bool,
}

/// Adopts the values of the observed reconcile that the model cannot predict exactly: the time at
/// which it began, the second in which it wrote a time, and which of several equal pods it names.
fn adopt_unknowns(model: &mut Observation, filter: &Filter<'_>) {
    let Filter { reconcile: Reconcile { seen, pods, .. }, readings, slack, .. } = *filter;
    let earliest =
        readings.earliest - if seen.reads().next().is_none() { slack } else { Span::ZERO };
    let second = model.at.truncate_to_second();
    (model.at, model.took) = (seen.at, seen.took);
    let (Some(model), Some(seen)) = (model.status_write_mut(), seen.status_write()) else {
        return;
    };
    let possible = earliest.truncate_to_second()..=readings.latest.truncate_to_second();
    let adopt_time = |model: &mut Time, seen: Time| {
        if *model == second && possible.contains(&seen) {
            *model = seen;
        }
    };
    if let (Some(model), Some(seen)) =
        (&mut model.status.last_scale_time, seen.status.last_scale_time)
    {
        adopt_time(model, seen);
    }
    for (model, seen) in model.status.conditions.iter_mut().zip(&seen.status.conditions) {
        adopt_pod_names(&mut model.message, &seen.message, pods);
        adopt_time(&mut model.last_transition_time, seen.last_transition_time);
    }
}

/// Adopts a message that differs only in the names of pods: of several equal pods, the controller
/// names the first in its cache.
pub(super) fn adopt_pod_names(model: &mut Text, seen: &Text, pods: &[String]) {
    let masked = |text: &Text| {
        let mask = |text: String, pod: &String| text.replace(pod.as_str(), "?");
        // Names are sorted: a name precedes the names that it is a prefix of.
        pods.iter().rev().fold(text.as_str().to_owned(), mask)
    };
    if model != seen && masked(model) == masked(seen) {
        *model = seen.clone();
    }
}

/// One hypothesis for each sampled clock reading.
#[derive(Clone)]
pub(super) struct Hypotheses([Hypothesis; 3]);

/// The hypotheses that predict an observed reconcile.
pub(super) struct Supported {
    pub(super) hypotheses: Hypotheses,
    pub decision: Decision,
    /// True if some required another clock reading, or were ruled out.
    pub ambiguous: bool,
}

/// All hypotheses are ruled out: the first prediction, if the model allows a reconcile.
pub(super) type RuledOut = Option<Box<(Hypotheses, Decision)>>;

impl Hypotheses {
    pub(super) fn new(scenario: &Scenario, rules: Rules) -> Hypotheses {
        let recorder = Recorder::new(&rules);
        let simulation = Simulation::new(scenario, rules).with_wall_clock();
        let hypothesis = Hypothesis { simulation, recorder };
        Hypotheses([hypothesis.clone(), hypothesis.clone(), hypothesis])
    }

    pub(super) fn first(&self) -> &Hypothesis {
        let Hypotheses([first, ..]) = self;
        first
    }

    /// The decision of the first hypothesis for a reconcile at `at`.
    pub(super) fn predict(
        &self,
        at: Time,
        during: Option<&ChangesDuringReconcile>,
    ) -> Option<Decision> {
        self.first().clone().reconcile(at, during)
    }

    /// The decisions of all hypotheses for a reconcile at these times.
    pub(super) fn predict_each(
        &self,
        times: [Time; 2],
        during: Option<&ChangesDuringReconcile>,
    ) -> impl Iterator<Item = Decision> {
        let each = self.0.iter();
        each.flat_map(move |it| times.map(|at| it.clone().reconcile(at, during))).flatten()
    }

    /// Advances all hypotheses as if a reconcile had happened that makes no requests.
    pub(super) fn reconcile(&mut self, at: Time) -> Option<Decision> {
        let [decision, ..] = self.0.each_mut().map(|it| it.reconcile(at, None));
        decision
    }

    /// Applies a change of the cluster. Returns the answer of the API server to a request.
    pub(super) fn apply(&mut self, change: &Change, at: Time) -> Option<ApiAnswer> {
        let [answer, ..] = self.0.each_mut().map(|it| it.simulation.apply(change, at));
        answer
    }

    pub(super) fn apply_all<'a>(
        &mut self,
        changes: impl IntoIterator<Item = &'a Change>,
        at: Time,
    ) {
        for change in changes {
            self.apply(change, at);
        }
    }

    /// Applies the writes of a reconcile, apart from the first `committed` requests. Returns the
    /// target that was scaled, and its replicas.
    pub(super) fn commit(
        &mut self,
        seen: &Observation,
        ended: Time,
        committed: usize,
    ) -> Option<(usize, i32)> {
        let [scaled, ..] = self.0.each_mut().map(|it| it.simulation.commit(seen, ended, committed));
        scaled
    }

    /// Advances each hypothesis with a clock reading that predicts the reconcile, if possible its
    /// own.
    ///
    /// # Errors
    /// If no hypothesis predicts the reconcile.
    pub(super) fn filter(&self, filter: &Filter<'_>) -> Result<Supported, RuledOut> {
        let samples = filter.readings.samples();
        let mut first: RuledOut = None;
        let mut agreeing = [None, None, None];
        for (index, (hypothesis, agreeing)) in self.0.iter().zip(&mut agreeing).enumerate() {
            let own_first = samples.iter().cycle().skip(index).take(samples.len());
            let predictions = own_first
                .enumerate()
                .filter_map(|(further, at)| Some((hypothesis.predict(*at, filter)?, further > 0)));
            for (prediction, is_other) in predictions {
                let Prediction { hypothesis, decision, agrees } = prediction;
                if agrees {
                    *agreeing = Some((hypothesis, decision, is_other));
                    break;
                }
                first.get_or_insert_with(|| {
                    let Hypotheses([_, second, third]) = self.clone();
                    Box::new((Hypotheses([hypothesis, second, third]), decision))
                });
            }
        }
        let ambiguous = agreeing.iter().any(|it| it.as_ref().is_none_or(|(.., other)| *other));
        let Some((survivor, decision, _)) = agreeing.iter().flatten().next().cloned() else {
            return Err(first);
        };
        let next = agreeing.map(|it| it.map_or_else(|| survivor.clone(), |(it, ..)| it));
        Ok(Supported { hypotheses: Hypotheses(next), decision, ambiguous })
    }

    /// Returns true if a hypothesis predicts the reconcile for the earliest or the latest clock
    /// reading.
    pub(super) fn agrees_at_the_edges(&self, filter: &Filter<'_>) -> bool {
        let ClockReadings { earliest, latest, .. } = filter.readings;
        let mut each = self.0.iter().flat_map(|it| [earliest, latest].map(|at| (it, at)));
        each.any(|(it, at)| it.predict(at, filter).is_some_and(|it| it.agrees))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::observation::ControllerAction;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::testing::{WEB, scenario};
    use kube_lockstep_sim::world::World;

    /// The replicas that a reconcile reads.
    fn read(observation: &Observation) -> Option<i32> {
        observation.reads().find_map(|read| match read {
            ControllerAction::GetScale { answer: Ok(found), .. } => Some(found.replicas),
            _ => None,
        })
    }

    #[test]
    fn a_hypothesis_that_is_ruled_out_is_replaced() {
        let scenario = scenario(&format!("{WEB}timeline: [{{at: 10s, scale: 5}}]\n"));
        let mut world = World::new(&scenario);
        let mut hypotheses = Hypotheses::new(&scenario, Rules::of(Release::NEWEST));
        hypotheses.apply_all(&world.advance(Time::ZERO), Time::ZERO);
        hypotheses.apply_all(&world.api_events(Time::ZERO), Time::ZERO);
        let mut seen = hypotheses.predict(Time::ZERO, None).expect("a reconcile").observation;
        seen.took = Span::ZERO;
        // Only one hypothesis has other replicas than those that the reconcile read.
        let changes = world.advance(Time::from_secs(10));
        for change in &changes {
            hypotheses.0[1].simulation.apply(change, Time::ZERO);
        }
        let (at, scope) = (Time::ZERO, Scope { events: false, errors: false, ..Scope::ALL });
        let reconcile = Reconcile {
            due: at,
            began: at,
            ended: at,
            seen,
            scope,
            pods: Vec::new(),
            stall: Span::ZERO,
            settled: at,
            during: None,
        };
        let readings = ClockReadings::new(&reconcile, Span::ZERO, Span::ZERO);
        let filter =
            Filter { reconcile: &reconcile, scope, readings, slack: Span::ZERO, custom: false };
        let Ok(supported) = hypotheses.filter(&filter) else { panic!("two hypotheses agree") };
        assert!(supported.ambiguous);
        let next = supported.hypotheses.predict_each([Time::from_secs(15); 2], None);
        let replicas: Vec<_> = next.map(|decision| read(&decision.observation)).collect();
        assert_eq!(replicas, [Some(2); 6]);
    }
}
