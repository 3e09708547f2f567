//! HPAs that a change stops because another HPA selects the same pods.

use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_lint::{AMBIGUOUS_SELECTOR, ObjectName, Options, check};
use kube_lockstep_manifests::{ChangedDraft, Draft, HpaName, Manifests, Versions};

/// The pairs of HPAs that select the same pods, and of which a change stops one or both.
#[derive(Clone, Debug)]
pub struct AmbiguousHpas(Vec<Pair>);

/// Two HPAs that select the same pods.
#[derive(Clone, Debug)]
struct Pair {
    hpas: [HpaName; 2],
    /// The HPAs that the change stops.
    stopped: Vec<HpaName>,
    why: String,
}

/// The reason why the controller stops an HPA.
#[derive(Clone, Copy, Debug)]
pub struct Reason<'p> {
    /// The reason, with the names of both HPAs.
    pub text: &'p str,
    /// True if a prediction contains both HPAs, because they have the same target.
    pub is_predicted: bool,
}

impl AmbiguousHpas {
    /// Finds the pairs, by the rule of `kube-lockstep lint`.
    #[must_use]
    pub fn new(versions: &Versions, release: Release) -> AmbiguousHpas {
        let Versions { base_manifests, head_manifests, .. } = versions;
        let before = pairs(base_manifests.as_ref(), release);
        let was_stopped =
            |hpa: &HpaName| before.iter().flat_map(|it| &it.hpas).any(|it| it.is_same(hpa));
        let mut after = pairs(head_manifests.as_ref(), release);
        after.iter_mut().for_each(|pair| pair.stopped.retain(|hpa| !was_stopped(hpa)));
        AmbiguousHpas(after)
    }

    /// Why the change stops these autoscalers. Empty: it does not.
    #[must_use]
    pub fn reasons(&self, change: &ChangedDraft) -> Vec<Reason<'_>> {
        let names = change.head.as_ref().map(Draft::hpa_names).unwrap_or_default();
        let is_own = |hpa: &HpaName| names.iter().any(|name| name.is_same(hpa));
        let pairs = self.0.iter().filter(|pair| pair.stopped.iter().any(is_own));
        let is_predicted = |pair: &Pair| pair.hpas.iter().all(is_own);
        pairs.map(|it| Reason { text: &it.why, is_predicted: is_predicted(it) }).collect()
    }
}

/// The pairs in a version.
fn pairs(manifests: Option<&Manifests>, release: Release) -> Vec<Pair> {
    let is_stopped = Rules::of(release).pods.ambiguous_selector_is_checked;
    let Some(manifests) = manifests.filter(|_| is_stopped) else { return Vec::new() };
    let name = |object: ObjectName| HpaName { namespace: object.namespace, name: object.name };
    let findings = check(manifests, &Options::of(release), &[AMBIGUOUS_SELECTOR]).into_iter();
    let pair = |(hpa, other, why): (ObjectName, ObjectName, String)| {
        let hpas = [name(other), name(hpa)];
        Pair { stopped: hpas.to_vec(), hpas, why }
    };
    findings.filter_map(|it| Some(pair((it.object, it.other?, it.diagnostic.what)))).collect()
}
