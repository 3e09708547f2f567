//! The runs of the VPA's recommender in a scenario, and free runs of the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expect::Unmet;
use crate::expect::recommender::evaluate;
use crate::model::rules::{VpaRelease, VpaRules};
use crate::model::time::Time;
use crate::model::vpa::{
    ClusterChange, Estimation, ObjectName, PodMetrics, Samples, Session, Snapshot,
};
use crate::scenario::vpa::VpaScenario;
use crate::trace::recommender::{Entry, RecommenderTrace};
use crate::world::recommender::script;

/// The name of the model in reports.
pub const MODEL: &str = crate::engine::model::NAME;

/// What a recommender did in a scenario.
#[derive(Clone, Debug)]
pub struct RecommenderRun {
    /// The scenario.
    pub scenario: Arc<VpaScenario>,
    /// The runs, for recordings.
    pub trace: RecommenderTrace,
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
}

/// How the amounts of one VPA were derived, by container.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The VPA.
    pub vpa: ObjectName,
    /// The samples that count.
    pub samples: BTreeMap<Arc<str>, Samples>,
    /// The estimation of each amount.
    pub estimations: BTreeMap<Arc<str>, Vec<Estimation>>,
}

/// How the amounts of a run were derived.
#[derive(Clone, Debug)]
pub struct ExplainedRun {
    /// The derivations, by VPA.
    pub derived: Vec<Derived>,
    /// The usage that the run read, or the error.
    pub usage: Result<Arc<Vec<PodMetrics>>, String>,
}

/// The result of a free run of the model.
#[derive(Clone, Debug)]
pub struct FreeRecommenderRun {
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
    /// How the amounts of the runs that were asked for were derived, by index.
    pub explained: BTreeMap<usize, ExplainedRun>,
    /// The expectations that are not met.
    pub unmet: Vec<Unmet>,
    /// Why the scenario can't be run to its end, if it can't.
    pub undetermined: Option<String>,
}

/// Runs the model alone. `is_explained` selects runs, by index, whose amounts are derived.
#[must_use]
pub fn free_recommender_run(
    scenario: &VpaScenario,
    release: VpaRelease,
    is_explained: &dyn Fn(usize) -> bool,
) -> FreeRecommenderRun {
    let script = script(scenario);
    let (mut session, _) = Session::open(&script.start, VpaRules::of(release));
    let mut free = FreeRecommenderRun {
        snapshots: Vec::new(),
        explained: BTreeMap::new(),
        unmet: Vec::new(),
        undetermined: None,
    };
    for step in &script.steps {
        let stepped = session.step(&step.changes, step.until);
        for run in &stepped.runs {
            if run.run.is_undetermined {
                free.undetermined = Some(undetermined(run.at));
                return free;
            }
            let index = free.snapshots.len();
            free.snapshots.push(Snapshot::of(session.objects(), run));
            if is_explained(index) {
                free.explained.insert(index, explained(&mut session));
            }
        }
    }
    free.unmet = evaluate(scenario, release, &free.snapshots);
    free
}

/// What the model predicts by any set of rules.
#[must_use]
pub fn predicted(scenario: &VpaScenario, rules: VpaRules) -> Vec<Entry> {
    let script = script(scenario);
    let (mut session, log) = Session::open(&script.start, rules);
    let mut entries = vec![Entry::Start(log)];
    for step in &script.steps {
        let stepped = session.step(&step.changes, step.until);
        if step.changes.contains(&ClusterChange::Restart) {
            entries.push(Entry::Start(stepped.log));
        }
        entries.extend(stepped.runs.into_iter().map(Entry::Run));
    }
    entries
}

fn explained(session: &mut Session) -> ExplainedRun {
    let (names, now) = (names(session), session.now());
    let usage = session.objects().metrics.clone();
    let recommender = session.recommender();
    let derived = names.into_iter().map(|vpa| {
        let samples = recommender.samples(&vpa, now);
        let estimations = recommender.explain(&vpa, now);
        Derived { vpa, samples, estimations }
    });
    ExplainedRun { derived: derived.collect(), usage }
}

pub(super) fn names(session: &Session) -> Vec<ObjectName> {
    session.objects().vpas.keys().cloned().collect()
}

pub(super) fn undetermined(at: Time) -> String {
    format!(
        "the result of the run at {at} is random upstream: histograms of pods with different \
         labels and different reference times are merged in a random order"
    )
}
