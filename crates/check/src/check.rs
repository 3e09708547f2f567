//! The search of a scenario, and its result.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::choices::{Choices, Chosen};
use super::search::{End, Found, Progress, Search, Searched};
use super::watch::Expectations;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::state::State;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Point, Signal, TimelineEvent};
use kube_lockstep_sim::expect::{self, ScaleTargets};
use kube_lockstep_sim::run::{free_run, free_run_without_trace, state_scope};

/// The largest number of states by default.
pub const STATES: usize = 1_000_000;

/// A search for choices of a scenario with which one of its expectations is not met. It tries all
/// of them on the model, the shortest runs first.
#[derive(Clone, Debug)]
#[must_use = "nothing is searched before `run` is called"]
pub struct Check {
    scenario: Arc<Scenario>,
    release: Release,
    states: usize,
    merges: bool,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// What the search has found.
    pub outcome: Outcome,
    /// All choices before this time were tried.
    #[serde(with = "kube_autoscaler_models::as_text")]
    pub reached: Time,
    /// The number of different states.
    pub states: usize,
    /// The number of steps: from a state, with a choice, to the time of the next choice.
    pub steps: u64,
    /// The largest number of new states at one time.
    pub widest: usize,
    /// The number of steps that were not finished, because upstream leaves their outcome to chance.
    pub random: usize,
    /// The reason for the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_random: Option<String>,
    /// The shortest counterexample, with the fewest choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Counterexample>,
}

/// What a search has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// An expectation is not met with some choices.
    Counterexample,
    /// All expectations are met with all choices up to the end of the scenario, or, if
    /// [`Checked::random`] is not 0, with those that could be tried.
    Holds,
    /// The same, however long the scenario lasts: no new states can be reached.
    AlwaysHolds,
    /// There are more states than the search may reach. The expectations are met up to the time
    /// that it reached.
    TooManyStates,
    /// The search was interrupted. The expectations are met up to the time that it reached.
    Interrupted,
}

/// Choices with which an expectation is not met.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counterexample {
    /// The number of the expectation in the scenario, from 1.
    pub expectation: usize,
    /// The line of the expectation, from 1.
    pub line: usize,
    /// The expected and the observed value.
    pub what: String,
    /// The time at which the expectation is not met.
    #[serde(with = "kube_autoscaler_models::as_text")]
    pub at: Time,
    /// The choices that change something, in order of time.
    pub choices: Vec<Made>,
    /// The scenario with these choices, up to that time, with this expectation.
    #[serde(serialize_with = "as_file")]
    pub scenario: Arc<Scenario>,
}

/// A choice.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// Its time.
    #[serde(with = "kube_autoscaler_models::as_text")]
    pub at: Time,
    /// What was chosen: `cpu 2`.
    pub what: String,
}

/// The scenario as a file.
fn as_file<S: Serializer>(scenario: &Arc<Scenario>, serializer: S) -> Result<S::Ok, S::Error> {
    kube_lockstep_scenario::to_tree(scenario).serialize(serializer)
}

/// The event without its time: `editHpa {spec: {maxReplicas: 3}} of HPA web`.
fn described(event: &TimelineEvent) -> String {
    let hpa = event.hpa.as_ref().map(|hpa| format!(" of HPA {hpa}"));
    let target = event.target.as_ref().map(|target| format!(" of {target}"));
    let lasts = event.lasts.map(|lasts| format!(" for {lasts}"));
    let more = [hpa, target, lasts].into_iter().flatten();
    std::iter::once(event.action.to_string()).chain(more).collect()
}

impl Check {
    /// Creates a search of a scenario with a `search`, for the newest release.
    pub fn new(scenario: impl Into<Arc<Scenario>>) -> Check {
        let (release, states) = (Release::NEWEST, STATES);
        Check { scenario: scenario.into(), release, states, merges: true }
    }

    /// Sets the release.
    pub fn release(mut self, release: Release) -> Check {
        self.release = release;
        self
    }

    /// Sets the largest number of states (default: [`STATES`]).
    pub fn states(mut self, states: usize) -> Check {
        self.states = states;
        self
    }

    /// Continues all runs, even those that have reached the same state: for tests.
    #[doc(hidden)]
    pub fn without_merging(mut self) -> Check {
        self.merges = false;
        self
    }

    /// Searches.
    ///
    /// # Errors
    /// If the scenario has no search, or can't be predicted.
    pub fn run(&self) -> Result<Checked, String> {
        self.run_watched(&mut |_| true)
    }

    /// Searches, and reports the progress. If `watch` returns false, the search ends.
    ///
    /// # Errors
    /// As for [`Check::run`].
    pub fn run_watched(&self, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Checked, String> {
        self.with_search(&mut |search, state| {
            let searched = search.run(state, watch);
            self.checked(search, searched)
        })?
    }

    /// Prepares the search, and its first state.
    pub(crate) fn with_search<T>(
        &self,
        run: &mut dyn FnMut(&Search<'_>, State) -> T,
    ) -> Result<T, String> {
        let Check { scenario, release, states, merges } = self;
        let open = scenario.search.as_deref();
        let open = open.ok_or("the scenario has no `search`, so there is nothing to choose")?;
        if let Some(why) = scenario.unsupported_on(*release) {
            return Err(why.to_string());
        }
        let expectations = scenario.expect.iter().enumerate();
        let applying = expectations.filter(|(_, it)| {
            scenario.releases.contains(*release) && it.releases.contains(*release)
        });
        let expectations = Expectations::new(applying, scenario.until);
        if expectations.is_empty() {
            return Err(format!("the scenario has no expectations for {release}"));
        }
        let first = free_run_without_trace(scenario, *release);
        if let Some(why) = first.refused().or(first.undetermined.map(|random| random.why)) {
            return Err(why);
        }
        let choices = Choices::new(scenario, open)?;
        let variants = choices.variants(scenario, open);
        let scope = state_scope(&variants[0], *release, expectations.read_statuses());
        let search = Search {
            choices: &choices,
            variants: &variants,
            expectations: &expectations,
            release: *release,
            until: scenario.until,
            most: *states,
            merges: *merges,
        };
        Ok(run(&search, State::new(scope)))
    }

    fn checked(&self, search: &Search<'_>, searched: Searched) -> Result<Checked, String> {
        let Searched { end, progress, widest, random, why_random } = searched;
        let mut counterexample = None;
        let outcome = match end {
            End::Found(found) => {
                counterexample = Some(self.counterexample(search, &found)?);
                Outcome::Counterexample
            }
            End::Exhausted => Outcome::Holds,
            End::Closed => Outcome::AlwaysHolds,
            End::TooMany => Outcome::TooManyStates,
            End::Stopped => Outcome::Interrupted,
        };
        let Progress { states, steps, reached } = progress;
        Ok(Checked { outcome, reached, states, steps, widest, random, why_random, counterexample })
    }

    /// The counterexample of a path. The model runs it once more, as an ordinary scenario.
    fn counterexample(&self, search: &Search<'_>, found: &Found) -> Result<Counterexample, String> {
        let scenario = Arc::new(self.scenario_with(search.choices, found));
        let run = free_run(&scenario, self.release);
        let targets = ScaleTargets::new(&scenario);
        let (ticks, scales) = (&run.trace.ticks, &run.external_scales);
        let unmet = expect::evaluate(&scenario.expect, self.release, ticks, &targets, scales);
        let [unmet] = unmet.as_slice() else {
            // The states of two runs that continue differently were equal.
            return Err("the counterexample can't be reproduced: please report this".to_owned());
        };
        Ok(Counterexample {
            expectation: found.violation.index + 1,
            line: unmet.line,
            what: unmet.what.clone(),
            at: found.violation.at,
            choices: self.made(search.choices, found),
            scenario,
        })
    }

    /// The choices of a path that change something.
    fn made(&self, choices: &Choices, found: &Found) -> Vec<Made> {
        let mut made = Vec::new();
        let mut add = |at: Time, what: String| made.push(Made { at, what });
        if choices.replicas.len() > 1 {
            add(Time::ZERO, format!("replicas {}", found.replicas));
        }
        let mut before = vec![0; choices.metrics.len()];
        for (at, chosen) in &found.path {
            for ((open, value), before) in choices.metrics.iter().zip(&chosen.values).zip(before) {
                if open.differs(*value, before) {
                    add(*at, format!("{} {}", open.metric, open.values[usize::from(*value)]));
                }
            }
            before = chosen.values.clone();
            let event = self.event(chosen);
            event.into_iter().for_each(|event| add(*at, described(event)));
        }
        made
    }

    /// The event of a choice.
    fn event(&self, chosen: &Chosen) -> Option<&TimelineEvent> {
        let events = self.scenario.search.as_ref()?.events.as_ref()?;
        events.of.get(chosen.event? - self.scenario.timeline.len())
    }

    /// The scenario with choices, up to the time at which an expectation is not met.
    fn scenario_with(&self, choices: &Choices, found: &Found) -> Scenario {
        let Found { violation, replicas, path } = found;
        let mut scenario = (*self.scenario).clone();
        scenario.search = None;
        // It does not show the rules that the scenario covers.
        scenario.covers = Vec::new();
        scenario.hash = String::new();
        scenario.workload.replicas = *replicas;
        for (index, open) in choices.metrics.iter().enumerate() {
            let value = |chosen: &Chosen| open.values[usize::from(chosen.values[index])].clone();
            let points = path.iter().map(|(at, it)| Point { at: *at, value: value(it) });
            let mut points: Vec<Point> = points.collect();
            points.dedup_by(|later, earlier| later.value == earlier.value);
            let signal = match points.as_slice() {
                [only] => Signal::Constant(only.value.clone()),
                _ => Signal::Steps(points),
            };
            scenario.metrics.named_mut(&open.metric).for_each(|it| it.clone_from(&signal));
        }
        for (at, chosen) in path {
            let event = self.event(chosen);
            scenario.timeline.extend(event.map(|event| TimelineEvent { at: *at, ..event.clone() }));
        }
        scenario.until = violation.at;
        scenario.timeline.retain(|event| event.at <= violation.at);
        scenario.timeline.sort_by_key(|event| event.at);
        let mut expectation = scenario.expect.swap_remove(violation.index);
        for between in [&mut expectation.always, &mut expectation.never].into_iter().flatten() {
            between.to = between.to.filter(|to| *to < violation.at);
        }
        scenario.expect = vec![expectation];
        scenario
    }
}
