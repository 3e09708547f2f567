//! Additional HPAs for the same workload or for other targets, with or without overlapping
//! selectors.

use serde_json::{Value, json};

use super::{Draft, hpa, workload};
use crate::area::Area;
use kube_lockstep_scenario::resolved::{Autoscaler, BUILT_IN, OtherTarget, ScalableKind};

/// Names before and after the first HPA's, since the order of names matters.
const NAMES: [&str; 7] = ["a", "api", "m", "web-2", "wea", "z", "zz"];

/// All HPAs, the first of which has this manifest, and their targets.
pub(super) fn hpas(draft: &mut Draft, first: Value) -> (Vec<Autoscaler>, Vec<OtherTarget>) {
    let mut hpas = vec![autoscaler(draft, first)];
    if !draft.likely(Area::Several, 5, 100) {
        return (hpas, Vec::new());
    }
    let targets: Vec<OtherTarget> =
        (0..draft.dice.weighted(&[(1, 0), (12, 1), (6, 3)])).map(|n| target(draft, n)).collect();
    let (min, max) = (draft.min, draft.max);
    let mut names = NAMES.to_vec();
    for _ in 0..draft.dice.weighted(&[(6, 1), (3, 2), (1, 4), (1, 6)]) {
        let at = draft.dice.below(names.len() as u64) as usize;
        let name = names.remove(at);
        if draft.dice.percent(60) {
            draft.min = draft.dice.replicas(1, min.max(2) + 2).max(1);
            draft.max = draft.dice.replicas(draft.min, max.saturating_add(2)).max(draft.min);
        }
        // The manifest of this HPA sets zero again if the HPA may scale to zero.
        draft.min = draft.min.max(1);
        // Two HPAs for the same pods are ambiguous: neither of them scales.
        let same = targets.is_empty() || draft.dice.percent(5);
        let target = if same { 0 } else { draft.dice.replicas(1, targets.len() as i32) as usize };
        draft.podless = target > 0;
        let mut manifest = hpa::manifest(draft);
        draft.podless = false;
        manifest["metadata"]["name"] = json!(name);
        if let Some(other) = target.checked_sub(1).and_then(|index| targets.get(index)) {
            let kind = other.scalable_kind().expect("generated targets are of built-in kinds");
            let version = match kind.group {
                "" => kind.version.to_owned(),
                group => format!("{group}/{}", kind.version),
            };
            manifest["spec"]["scaleTargetRef"] =
                json!({ "apiVersion": version, "kind": other.kind, "name": &*other.name });
        }
        hpas.push(Autoscaler { target, ..autoscaler(draft, manifest) });
    }
    (draft.min, draft.max) = (min, max);
    if draft.dice.percent(30) {
        draft.flags.concurrent_syncs = draft.dice.replicas(1, 3);
    }
    draft.hpas = hpas.iter().map(|hpa| hpa.name.clone()).collect();
    draft.others = targets.len();
    (hpas, targets)
}

/// The HPA of a manifest that was just generated.
fn autoscaler(draft: &Draft, manifest: Value) -> Autoscaler {
    Autoscaler::new(manifest, draft.api_version).expect("generated HPAs can be decoded")
}

/// The name of a target without pods.
pub(super) fn target_name(number: u64) -> String {
    format!("t{number}")
}

fn target(draft: &mut Draft, number: u64) -> OtherTarget {
    let name = target_name(number);
    let [deployment, _, stateful_set, replication_controller] = BUILT_IN;
    let kinds = [deployment, stateful_set, replication_controller];
    let ScalableKind { kind, .. } = draft.dice.pick(&kinds);
    let own = format!("app={name}");
    let both = format!("app in ({},{name})", workload::NAME);
    let selector = draft.dice.weighted(&[
        (40, own.as_str()),
        (2, "tier=back"),
        // These selectors match the workload's pods.
        (1, both.as_str()),
        (1, "app=web"),
        (1, "!missing"),
        (1, "app!=t0"),
    ]);
    let selector = (selector != own).then(|| selector.into());
    let replicas = draft.dice.replicas(0, draft.max.min(60) + 1);
    OtherTarget { kind: kind.to_owned(), name: name.into(), replicas, selector }
}
