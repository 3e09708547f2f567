//! The differences of an HPA between two releases that need no search.

use std::sync::Arc;

use super::plan::ControlPlane;
use super::search::{Effect, Upgrade};
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_lint as lint;
use kube_lockstep_lint::{AMBIGUOUS_SELECTOR, Finding, Level, ObjectName, RULES, check};
use kube_lockstep_manifests::{HpaName, Manifests, ValidHpa, removed_versions};
use kube_lockstep_scenario::Scenario;

/// The findings of the rules of `lint` that are only for the newer release.
#[derive(Clone, Debug)]
pub struct Findings {
    /// On HPAs that the older release stored.
    stored: Vec<Finding>,
    /// On HPAs that are new.
    new: Vec<Finding>,
    /// On HPAs that both releases stop, because another HPA selects the same pods.
    stopped: Vec<Finding>,
}

impl Findings {
    /// Finds them in manifests.
    #[must_use]
    pub fn new(manifests: &Manifests, upgrade: &Upgrade) -> Findings {
        let [before, after] = upgrade.control_planes();
        let of = |release, plane: ControlPlane, hpas_are_stored| {
            let options = lint::Options { release, gates: plane.gates, hpas_are_stored };
            check(manifests, &options, RULES)
        };
        let before = of(upgrade.from, before, false);
        let is_new = |finding: &Finding| {
            // The same finding can name its release.
            let key = |it: &Finding, release: Release| {
                let what = it.diagnostic.what.replace(&release.to_string(), "RELEASE");
                (it.rule.id, it.object.clone(), what)
            };
            let own = key(finding, upgrade.to);
            !before.iter().any(|other| key(other, upgrade.from) == own)
        };
        let only_after = |hpas_are_stored| {
            let all = of(upgrade.to, after, hpas_are_stored).into_iter();
            all.filter(is_new).collect()
        };
        let (stored, new) = (only_after(true), only_after(false));
        let is_stopped = |it: &&Finding| stops_by_pods(it) && is_checked(upgrade.from);
        let stopped = before.iter().filter(is_stopped).cloned().collect();
        Findings { stored, new, stopped }
    }
}

/// Returns true if another HPA selects the same pods.
fn stops_by_pods(finding: &Finding) -> bool {
    finding.rule.id == AMBIGUOUS_SELECTOR.id
}

/// Returns true if the controller of a release stops HPAs that select the same pods.
fn is_checked(release: Release) -> bool {
    Rules::of(release).pods.ambiguous_selector_is_checked
}

/// The differences of an HPA between both releases that need no search.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Why releases reject it.
    refused: Vec<String>,
    /// True if one of the releases rejects it, and the other one does not.
    is_refused_once: bool,
    /// Fields that have no effect on one of the releases, and the like.
    others: Vec<String>,
    /// True if the newer release stops it, and the older one does not.
    is_stopped: bool,
    /// True if an HPA that is not searched with it stops it: it has no replicas to search for.
    is_stopped_by_another: bool,
    /// The API versions of the manifest that the newer release no longer serves.
    removed_versions: bool,
}

/// What is assumed about a scenario on only one of the releases, such as fields without effect.
fn assumptions_of_one_side(original: &Arc<Scenario>, upgrade: &Upgrade) -> Vec<String> {
    let releases = [upgrade.from, upgrade.to];
    let sides = upgrade.sides(original);
    let of = |(release, side): (Release, &Result<Arc<Scenario>, _>)| -> Vec<(String, String)> {
        // If no scenario can have these gates, the notes are those for the defaults.
        let scenario = side.as_ref().unwrap_or(original);
        let notes = scenario.assumptions_on(release);
        // The same note on the other release is no difference.
        let key = |note: &String| note.replace(&release.to_string(), "RELEASE");
        notes.into_iter().map(|note| (key(&note), note)).collect()
    };
    let [from, to] = [(releases[0], &sides[0]), (releases[1], &sides[1])].map(of);
    let only = |notes: &[(String, String)], others: &[(String, String)]| -> Vec<String> {
        let is_other = |(key, _): &&(String, String)| others.iter().any(|(it, _)| it == key);
        let notes = notes.iter().filter(|note| !is_other(note));
        notes.map(|(_, note)| note.clone()).collect()
    };
    [only(&from, &to), only(&to, &from)].concat()
}

impl Notes {
    /// The notes on the HPAs of a scenario.
    #[must_use]
    pub fn new(
        hpas: &[ValidHpa],
        original: &Arc<Scenario>,
        findings: &Findings,
        upgrade: &Upgrade,
    ) -> Notes {
        let refused = upgrade.rejections(original);
        let is_refused_once = refused[0].is_some() != refused[1].is_some();
        let mut others = assumptions_of_one_side(original, upgrade);
        let removed = removed_versions(hpas, upgrade.from, upgrade.to);
        others.extend(removed.iter().map(|version| {
            format!("{} no longer serves {version}: apply the HPA as autoscaling/v2", upgrade.to)
        }));
        others.extend(upgrade.rejection_as_new(original).map(|why| {
            format!(
                "the API server of {} accepts the HPA only because it is already stored; it would \
                 reject a new HPA: {why}",
                upgrade.to
            )
        }));
        if upgrade.stores_tolerance_only_after(original) {
            others.push(format!(
                "before the upgrade, the API server of {} stores the HPA without `tolerance`: to \
                 set the field, apply the manifest again after the upgrade",
                upgrade.from
            ));
        }
        let has = |ObjectName { namespace, name, .. }: &ObjectName| {
            let name = HpaName { namespace: namespace.clone(), name: name.clone() };
            hpas.iter().any(|hpa| hpa.name == name)
        };
        let is_own = |it: &&Finding| has(&it.object) || it.other.as_ref().is_some_and(has);
        let new = if refused[0].is_none() { &findings.stored } else { &findings.new };
        let own: Vec<&Finding> = new.iter().filter(is_own).collect();
        let note = |releases: &str, it: &Finding| {
            format!("on {releases}, {} ({})", it.diagnostic.what, it.rule.link)
        };
        others.extend(own.iter().map(|it| note(&upgrade.to.to_string(), it)));
        let is_stopped = own.iter().any(|it| it.rule.level == Level::Error);
        // HPAs of one target are searched together, and stop each other in the search.
        let is_with_another =
            |it: &Finding| !(has(&it.object) && it.other.as_ref().is_some_and(has));
        let on_both: Vec<&Finding> =
            findings.stopped.iter().filter(is_own).filter(|it| is_with_another(it)).collect();
        let both = format!("{} and {}", upgrade.from, upgrade.to);
        others.extend(on_both.iter().map(|it| note(&both, it)));
        let by_another = own.iter().any(|it| stops_by_pods(it) && is_with_another(it));
        Notes {
            refused: refused.into_iter().flatten().collect(),
            is_refused_once,
            others,
            is_stopped,
            is_stopped_by_another: by_another || !on_both.is_empty(),
            removed_versions: !removed.is_empty(),
        }
    }

    /// Returns true if there is something to search: no release rejects the HPA, and no other HPA
    /// stops it.
    #[must_use]
    pub fn can_be_searched(&self) -> bool {
        self.refused.is_empty() && !self.is_stopped_by_another
    }

    /// Returns true if the newer release does not serve the API version of the manifest: the HPA
    /// continues to work, but the manifest can't be applied.
    #[must_use]
    pub fn must_be_rewritten(&self) -> bool {
        self.removed_versions
    }

    /// The effect on the HPA, if it is known without a search.
    #[must_use]
    pub fn effect(&self) -> Option<Effect> {
        (self.is_refused_once || self.is_stopped).then_some(Effect::Replicas)
    }

    /// The notes as sentences.
    #[must_use]
    pub fn all(self) -> Vec<String> {
        self.refused.into_iter().chain(self.others).collect()
    }
}
