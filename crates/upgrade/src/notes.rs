//! The differences of an HPA between two releases that need no search.

use std::sync::Arc;

use super::plan::ControlPlane;
use super::search::{Effect, Upgrade};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_lint as lint;
use kube_lockstep_lint::{Finding, Level, ObjectName, RULES, check};
use kube_lockstep_manifests::{HpaName, Manifests, ValidHpa, removed_versions};
use kube_lockstep_scenario::Scenario;

/// The findings of the rules of `lint` that are only for the newer release.
#[derive(Clone, Debug)]
pub struct Findings {
    /// On HPAs that the older release stored.
    stored: Vec<Finding>,
    /// On HPAs that are new.
    new: Vec<Finding>,
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
        Findings { stored: only_after(true), new: only_after(false) }
    }
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
    /// True if the newer release stops it.
    is_stopped: bool,
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
        let releases = [upgrade.from, upgrade.to];
        let refused = upgrade.rejections(original);
        let is_refused_once = refused[0].is_some() != refused[1].is_some();
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
        let mut others = [only(&from, &to), only(&to, &from)].concat();
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
        let is_refused_once = is_refused_once || !removed.is_empty();
        let has = |ObjectName { namespace, name, .. }: &ObjectName| {
            let name = HpaName { namespace: namespace.clone(), name: name.clone() };
            hpas.iter().any(|hpa| hpa.name == name)
        };
        let is_own = |it: &&Finding| has(&it.object) || it.other.as_ref().is_some_and(has);
        let findings = if refused[0].is_none() { &findings.stored } else { &findings.new };
        let own: Vec<&Finding> = findings.iter().filter(is_own).collect();
        others.extend(own.iter().map(|it| format!("on {}, {}", upgrade.to, it.diagnostic.what)));
        let is_stopped = own.iter().any(|it| it.rule.level == Level::Error);
        let refused = refused.into_iter().flatten().collect();
        Notes { refused, is_refused_once, others, is_stopped }
    }

    /// Returns true if a release rejects the HPA, so there is nothing to search.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
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
