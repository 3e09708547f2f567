//! The decisions of the simulated updater and admission controller, compared with upstream's code.
//!
//! The simulation decides in the world of the model and of the engine alike. After a run,
//! upstream's updater and admission controller are asked about each decision.

use super::findings::Findings;
use crate::compare::FieldDifference;
use crate::engine::updater::{PodDecisions, RequestTexts, request_texts};
use crate::engine::{EngineError, UpdaterEngine};
use crate::model::api::PodSpec;
use crate::model::vpa::admission::recommended;
use crate::model::vpa::updater::{PodUpdate, Updater};
use crate::world::{Decision, PodDecision, World};

/// Adds the first decision that upstream would not have made to the findings.
///
/// # Errors
/// If the engine is broken.
pub(super) fn compare(
    world: &World,
    workload: &str,
    engine: &mut dyn UpdaterEngine,
    findings: &mut Findings<'_>,
) -> Result<(), EngineError> {
    for (updater, decision) in world.pod_decisions() {
        let answers = engine.decide(&[(updater.clone(), &decision.pods)])?;
        let Some(answer) = answers.first() else { continue };
        if let Some(field) = difference(workload, &updater, decision, answer) {
            let earlier = findings.trace.ticks.iter().filter(|tick| tick.at <= decision.at);
            findings.found(earlier.count(), decision.at, vec![field]);
            return Ok(());
        }
    }
    Ok(())
}

/// The difference between a decision and upstream's answer.
fn difference(
    workload: &str,
    updater: &Updater<'_>,
    decision: &PodDecision,
    answer: &PodDecisions,
) -> Option<FieldDifference> {
    let name = |ordinal: u32| format!("{workload}-{ordinal}");
    match &decision.made {
        Decision::Admit(spec) => {
            let pod = decision.pods.first()?;
            let field = format!("admission: requests of the new pod {}", name(pod.ordinal));
            requests(field, spec, answer.admitted.first()?)
        }
        Decision::Update(updates) => {
            if *updates != answer.updates && !updater.may_do(&decision.pods, &answer.updates) {
                return Some(FieldDifference {
                    field: "updater: changes of pods".to_owned(),
                    model: update_texts(updates, &name),
                    upstream: update_texts(&answer.updates, &name),
                });
            }
            let updated = answer.updated_requests.iter();
            updated
                .filter_map(|(ordinal, found)| {
                    let pod = decision.pods.iter().find(|pod| pod.ordinal == *ordinal)?;
                    let spec = recommended(updater.vpa, &pod.spec, updater.limits);
                    let field = format!("updater: requests of the pod {}", name(*ordinal));
                    requests(field, &spec, found)
                })
                .next()
        }
    }
}

/// The difference between the requests of a pod.
fn requests(field: String, model: &PodSpec, upstream: &RequestTexts) -> Option<FieldDifference> {
    let texts = request_texts(model);
    (texts != *upstream).then(|| FieldDifference {
        field,
        model: joined(model, &texts),
        upstream: joined(model, upstream),
    })
}

/// The requests of a pod as one text: `app: cpu 250m, memory 1Gi`.
fn joined(spec: &PodSpec, requests: &RequestTexts) -> String {
    let containers = spec.containers.iter().zip(requests).map(|(container, requests)| {
        let amounts: Vec<String> =
            requests.iter().map(|(resource, amount)| format!("{resource} {amount}")).collect();
        format!("{}: {}", container.name, amounts.join(", "))
    });
    containers.collect::<Vec<_>>().join("; ")
}

/// The changes of a run of the updater as one text: `evicts web-1, updates web-2`.
fn update_texts(updates: &[PodUpdate], name: &dyn Fn(u32) -> String) -> String {
    if updates.is_empty() {
        return "none".to_owned();
    }
    let texts = updates.iter().map(|update| match update {
        PodUpdate::Evict(ordinal) => format!("evicts {}", name(*ordinal)),
        PodUpdate::InPlace(ordinal) => format!("updates {}", name(*ordinal)),
    });
    texts.collect::<Vec<_>>().join(", ")
}
