//! The decisions of the simulated updater and admission controller, compared with upstream's code.
//!
//! Model and engine share the simulated cluster, so a wrong decision would affect both equally.
//! After a run, upstream's updater and admission controller are asked about each decision.

use super::findings::Findings;
use crate::compare::{Controller, Divergence, FieldDifference, FieldPath};
use crate::engine::updater::{PodRequests, UpdaterAnswer, UpdaterRun, are_equal, requests_of};
use crate::engine::{EngineError, UpdaterEngine};
use crate::world::{PodDecision, VpaDecision, World};
use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::vpa::admission::recommended;
use kube_autoscaler_models::vpa::updater::{PodUpdate, Updater};

/// The reason in reports, in place of the reason for the HPA's decision.
const WHY: &str = "a decision of the VPA's simulated updater or admission controller, compared \
                   after the run";

/// Compares the decisions up to the first that upstream would not have made.
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
        // The decisions after a divergence of a controller are not those of upstream's cluster.
        if findings.comparison.divergence.is_some() {
            break;
        }
        let run = UpdaterRun { updater: updater.clone(), pods: &decision.pods };
        let answer = match &decision.made {
            VpaDecision::Admit(_) => engine.admit(&run)?,
            // Upstream's updater does not survive the run, and has no answer.
            VpaDecision::Update(_) if updater.crashes(&decision.pods) => continue,
            VpaDecision::Update(_) => {
                engine.run(std::slice::from_ref(&run))?.pop().unwrap_or_default()
            }
        };
        let fields = Vec::from_iter(difference(workload, &updater, decision, &answer));
        let earlier = findings.trace.ticks.iter().filter(|tick| tick.at < decision.at).count();
        let found = Divergence::new(Controller::Updater, 0, decision.at, fields);
        findings.comparison.found(found.after_ticks_of_hpa(earlier), || WHY.to_owned());
    }
    Ok(())
}

/// The difference between a decision and upstream's answer.
fn difference(
    workload: &str,
    updater: &Updater<'_>,
    decision: &PodDecision,
    answer: &UpdaterAnswer,
) -> Option<FieldDifference> {
    let name = |ordinal: u32| format!("{workload}-{ordinal}");
    match &decision.made {
        VpaDecision::Admit(spec) => {
            let pod = decision.pods.first()?;
            let field = FieldPath::AdmittedRequests(name(pod.ordinal));
            requests(field, spec, answer.admitted.first()?)
        }
        VpaDecision::Update(updates) => {
            if *updates != answer.updates && !updater.may_do(&decision.pods, &answer.updates) {
                let texts = [updates, &answer.updates].map(|it| update_texts(it, &name));
                let [model, upstream] = texts;
                return Some(FieldDifference::new(FieldPath::UpdatedPods, model, upstream));
            }
            answer.updated_requests.iter().find_map(|(ordinal, found)| {
                let pod = decision.pods.iter().find(|pod| pod.ordinal == *ordinal)?;
                let spec = recommended(updater.vpa, &pod.spec, updater.limits);
                let field = FieldPath::UpdatedRequests(name(*ordinal));
                requests(field, &spec, found)
            })
        }
    }
}

/// The difference between the requests of a pod.
fn requests(field: FieldPath, model: &PodSpec, upstream: &PodRequests) -> Option<FieldDifference> {
    let requests = requests_of(model);
    (!are_equal(&requests, upstream))
        .then(|| FieldDifference::new(field, joined(model, &requests), joined(model, upstream)))
}

/// The requests of a pod as one text: `app: cpu 250m, memory 1Gi`.
fn joined(spec: &PodSpec, requests: &[Requests]) -> String {
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
