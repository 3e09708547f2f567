//! Faults that an audit planted and that no fixture found then. Each is planted in the model, and a
//! named fixture must find it: the faulty model then diverges from the model, which agrees with
//! upstream's recorded trace of the same fixture.

use crate::support;
use std::sync::Arc;

use kube_autoscaler_models::api::HpaSpec;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::recorded::{FOLDER, Recorded, Traces};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::{Engine, EngineError, Session, Step};
use kube_lockstep_sim::run::{Verdict, run_one};
use kube_lockstep_sim::trace::{ApiOutcome, Observation, Stepped};
use kube_lockstep_sim::world::{Change, Faults};
use rstest::rstest;
use serde_json::{Value, json};

/// A fault of a controller.
#[derive(Clone, Copy)]
struct Fault {
    /// Alters a change of the cluster as the controller sees it.
    change: fn(&mut Change),
    /// Undoes the effect of `change` on the specs that the API server stores.
    stored: fn(&mut HpaSpec),
    /// Other texts: the right one, and the wrong one.
    text: Option<(&'static str, &'static str)>,
}

const NONE: Fault = Fault { change: |_| {}, stored: |_| {}, text: None };

fn text(right: &'static str, wrong: &'static str) -> Fault {
    Fault { text: Some((right, wrong)), ..NONE }
}

#[rstest]
#[case::tolerance_of_scale_ups_downwards(
    "tolerance/the-tolerance-of-scale-ups-is-not-that-of-scale-downs",
    "1.37",
    Fault {
        change: |change| {
            if let Some(behavior) = behavior(change) {
                behavior["scaleDown"]["tolerance"] = behavior["scaleUp"]["tolerance"].clone();
            }
        },
        stored: |spec| {
            let down = spec.behavior.as_mut().and_then(|behavior| behavior.scale_down.as_mut());
            down.expect("the fixture has rules").tolerance = None;
        },
        ..NONE
    }
)]
#[case::words_of_the_error_of_an_object_average(
    "object-metric/the-error-of-an-average-names-the-object",
    "1.37",
    text(" on Ingress", " of Ingress")
)]
#[case::words_of_backoff_upscale(
    "older-versions/a-longer-upscale-delay-forbids-only-scale-ups",
    "1.11",
    text("still within the upscale forbidden window", "still within the upscale window")
)]
#[case::words_of_backoff_downscale(
    "older-versions/the-usual-delays-end-one-after-the-other",
    "1.7",
    text("still within the downscale forbidden window", "still within the downscale window")
)]
#[case::already_exists_taken_for_a_conflict(
    "errors/an-already-existing-object-is-not-a-conflict",
    "1.37",
    Fault {
        change: |change| {
            if let Change::Faults(Faults { update_scale: Some(error), .. }) = change {
                error.reason = "Conflict".to_owned();
            }
        },
        ..NONE
    }
)]
#[case::an_event_as_old_as_the_period_still_counts(
    "behavior/a-scale-up-as-old-as-the-longest-period-is-remembered",
    "1.37",
    Fault {
        change: |change| {
            let policies = behavior(change).map(|behavior| &mut behavior["scaleUp"]["policies"]);
            for policy in policies.and_then(Value::as_array_mut).into_iter().flatten() {
                let period = policy["periodSeconds"].as_i64().expect("a policy has a period");
                policy["periodSeconds"] = json!(period + 1);
            }
        },
        stored: |spec| {
            let up = spec.behavior.as_mut().and_then(|behavior| behavior.scale_up.as_mut());
            let policies = up.into_iter().filter_map(|up| up.policies.as_mut()).flatten();
            policies.for_each(|policy| policy.period_seconds -= 1);
        },
        ..NONE
    }
)]
fn the_fixture_finds_the_fault(#[case] id: &str, #[case] release: &str, #[case] fault: Fault) {
    let release: Release = release.parse().expect("a release");
    let scenario = support::load(&support::repository().join(format!("fixtures/{id}.yaml")));
    let verdict = |engine: &mut dyn Engine| run_one(&scenario, engine, &[]).verdict;
    let traces = Traces::Folder(support::repository().join(FOLDER));
    let recorded = verdict(&mut Recorded::new(release, traces));
    assert!(matches!(recorded, Verdict::Conforms), "upstream: {recorded:?}");
    match verdict(&mut Faulty { model: Model::new(release), fault }) {
        Verdict::Diverges(divergence) => assert_ne!(divergence.tick, 0, "{divergence:?}"),
        verdict => panic!("the fault is not found: {verdict:?}"),
    }
}

/// The behavior of an HPA that is created.
fn behavior(change: &mut Change) -> Option<&mut Value> {
    match change {
        Change::CreateHpa(manifest) => manifest.pointer_mut("/spec/behavior"),
        _ => None,
    }
}

/// The model with a fault, as an engine.
struct Faulty {
    model: Model,
    fault: Fault,
}

impl Engine for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn release(&self) -> Release {
        self.model.release()
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        Ok(Box::new(FaultySession { session: self.model.open(scenario)?, fault: self.fault }))
    }
}

struct FaultySession<'a> {
    session: Box<dyn Session + 'a>,
    fault: Fault,
}

impl Session for FaultySession<'_> {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut step = step.clone();
        step.apply.iter_mut().for_each(self.fault.change);
        self.session.send(&step)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        let mut stepped = self.session.receive()?;
        for answer in &mut stepped.api {
            if let ApiOutcome::Stored { spec, .. } = &mut answer.outcome {
                (self.fault.stored)(Arc::make_mut(spec));
            }
        }
        if let Some((right, wrong)) = self.fault.text {
            for tick in &mut stepped.ticks {
                let text = serde_json::to_string(tick).expect("a tick is written as JSON");
                *tick = serde_json::from_str(&text.replace(right, wrong)).expect("it is read");
            }
        }
        Ok(stepped)
    }

    fn close(self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        self.session.close()
    }
}
