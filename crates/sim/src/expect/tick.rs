//! The reconciles of a run, each with the state after it.

use std::fmt::{self, Display};
use std::sync::Arc;

use super::when::ExpectedTick as _;
use kube_autoscaler_models::api::HpaStatus;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;

/// A change of a target's replicas that was not made by the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalScale {
    /// The time of the change.
    pub at: Time,
    /// The target, by its index.
    pub target: usize,
    pub replicas: i32,
    /// When it happened, relative to the reconcile at that time.
    pub moment: Moment,
}

/// A moment relative to a reconcile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Moment {
    /// Before the reconcile.
    #[default]
    Before,
    /// During the reconcile, before it wrote the scale.
    BeforeWrite,
    /// During the reconcile, after it wrote the scale.
    AfterWrite,
}

impl ExternalScale {
    /// Returns true if it precedes the write of this reconcile.
    fn precedes(&self, tick: &Observation) -> bool {
        match self.moment {
            Moment::Before => self.at <= tick.at,
            Moment::BeforeWrite => self.at <= tick.end(),
            Moment::AfterWrite => self.at < tick.at,
        }
    }
}

/// The scale targets at t=0, the target of each HPA, and the end of the scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScaleTargets {
    /// The end.
    pub until: Time,
    /// The resource with its group, the name and the replicas.
    pub all: Vec<(String, Arc<str>, i32)>,
    /// The target of each HPA, by its index.
    pub hpas: Vec<(Arc<str>, usize)>,
}

impl ScaleTargets {
    /// The targets of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> ScaleTargets {
        let targets = scenario.targets();
        let targets = targets.map(|it| (it.group_resource(), it.name.clone(), it.replicas));
        let hpas = scenario.hpas.iter().map(|hpa| (hpa.name.clone(), hpa.target));
        ScaleTargets { until: scenario.until, all: targets.collect(), hpas: hpas.collect() }
    }

    /// The target of a reconcile: the target whose scale it read, or else the previous target of
    /// its HPA.
    fn target(&mut self, tick: &Observation) -> usize {
        let known = self.hpas.iter_mut().find(|(name, _)| *name == tick.hpa);
        let read = tick.target().and_then(|(resource, name)| {
            let same = |(its_resource, it, _): &(String, Arc<str>, i32)| {
                **its_resource == **resource && it == name
            };
            self.all.iter().position(same)
        });
        match (known, read) {
            (Some((_, target)), Some(read)) => {
                *target = read;
                read
            }
            (Some((_, target)), None) => *target,
            (None, read) => read.unwrap_or(0),
        }
    }
}

/// A reconcile, with the state after it.
#[derive(Clone)]
pub(super) struct Tick<'a> {
    /// The number, from 1, among all reconciles or among the reconciles of one HPA.
    pub number: usize,
    /// The index among all reconciles.
    pub index: usize,
    pub observation: &'a Observation,
    /// The target's replicas before the reconcile.
    pub before: i32,
    /// The target's replicas after the reconcile.
    pub replicas: i32,
    /// True if the reconcile changed the replicas.
    pub rescaled: bool,
    /// The stored status of the HPA after the reconcile.
    pub status: Option<&'a HpaStatus>,
}

impl Display for Tick<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {} (t={})", self.number, self.at())
    }
}

pub(super) fn fold<'a>(
    observations: &'a [Observation],
    mut targets: ScaleTargets,
    mut external_scales: &[ExternalScale],
) -> Vec<Tick<'a>> {
    let mut ticks = Vec::with_capacity(observations.len());
    // The stored status of each HPA.
    let mut statuses: Vec<(&str, &'a HpaStatus)> = Vec::new();
    for (index, observation) in observations.iter().enumerate() {
        while let [first, rest @ ..] = external_scales
            && first.precedes(observation)
        {
            targets.all[first.target].2 = first.replicas;
            external_scales = rest;
        }
        let target = targets.target(observation);
        let mut before = 0;
        // Without a target, a tick has no replicas.
        if let Some((resource, name, replicas)) = targets.all.get_mut(target) {
            before = *replicas;
            let written = match targets.hpas.is_empty() {
                true => observation.replicas_written_to(resource, name),
                false => observation.scaled_to(),
            };
            *replicas = written.unwrap_or(before);
        }
        let written = targets.all.get(target).map_or(0, |target| target.2);
        let rescaled = before != written;
        while let [first, rest @ ..] = external_scales
            && first.moment == Moment::AfterWrite
            && first.at <= observation.end()
        {
            targets.all[first.target].2 = first.replicas;
            external_scales = rest;
        }
        let replicas = targets.all.get(target).map_or(0, |target| target.2);
        let written = observation.status_write().filter(|write| write.error.is_none());
        if let Some(write) = written {
            statuses.retain(|(hpa, _)| *hpa != &*observation.hpa);
            statuses.push((&observation.hpa, &write.status));
        }
        let status = statuses.iter().find(|(hpa, _)| *hpa == &*observation.hpa);
        let status = status.map(|(_, status)| *status);
        let number = index + 1;
        ticks.push(Tick { number, index, observation, before, replicas, rescaled, status });
    }
    ticks
}
