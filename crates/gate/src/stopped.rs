//! What a change stops: HPAs that can no longer scale, and metrics that can no longer be computed.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_autoscaler_models::derivation::{Branch, Derivation, MetricDerivation};
use kube_lockstep_report::comparison::ticks;
use kube_lockstep_sim::run::FreeRun;

/// The HPAs, and the metrics of HPAs, that fail in all reconciles after a change, but not before
/// it, each with the reason. None: the autoscalers are added, or have another target than before.
pub(super) fn stopped(base: Option<&FreeRun>, head: &FreeRun) -> Vec<String> {
    let names: BTreeSet<&Arc<str>> = ticks(head).map(|tick| &tick.observation.hpa).collect();
    let mut stopped = Vec::new();
    for hpa in names {
        let reconciles: Vec<&Derivation> = reconciles(head, hpa).collect();
        let Some(last) = reconciles.last() else { continue };
        if !reconciles.iter().any(|it| it.proposal.is_some()) {
            let has_scaled = |run| ticks(run).any(|tick| tick.derivation.proposal.is_some());
            let verb = match base.map(has_scaled) {
                None => "can't scale",
                Some(true) => "no longer scales",
                Some(false) => continue,
            };
            stopped.extend(failure(last).map(|why| format!("HPA {hpa} {verb}: {why}")));
            continue;
        }
        for metric in &last.metrics {
            let (name, has_failed) = (&metric.name, base.map(|run| fails(run, hpa, metric)));
            if has_failed != Some(true) && fails(head, hpa, metric) {
                let why = metric.error.as_ref().map_or("", |error| error.as_str());
                stopped.push(format!("metric {name} of HPA {hpa} can't be computed: {why}"));
            }
        }
    }
    stopped
}

/// The reconciles of an HPA.
fn reconciles<'r>(run: &'r FreeRun, hpa: &Arc<str>) -> impl Iterator<Item = &'r Derivation> {
    ticks(run).filter(move |tick| tick.observation.hpa == *hpa).map(|tick| &tick.derivation)
}

/// Why a reconcile proposes no replicas. None: it need not, because the replicas are outside of the
/// limits.
fn failure(reconcile: &Derivation) -> Option<String> {
    let of_metric = reconcile.metrics.iter().find_map(|metric| metric.error.as_ref());
    match of_metric.or(reconcile.error.as_ref()) {
        Some(error) => Some(error.to_string()),
        None if reconcile.branch == Branch::Disabled => {
            Some("the target has 0 replicas, so scaling is disabled".to_owned())
        }
        None => None,
    }
}

/// Returns true if a metric of an HPA fails in all reconciles.
fn fails(run: &FreeRun, hpa: &Arc<str>, like: &MetricDerivation) -> bool {
    let is_like = |it: &&MetricDerivation| (&it.name, &it.source) == (&like.name, &like.source);
    let mut same = reconciles(run, hpa).filter_map(|it| it.metrics.iter().find(is_like)).peekable();
    same.peek().is_some() && same.all(|metric| metric.error.is_some())
}
