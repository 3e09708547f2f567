//! The part of a scenario that has a VPA whose recommendations are applied to pods: the VPA and its
//! recommender, updater and admission controller. Usually, the scenario has an HPA as well.

use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::resolved::{Scenario, TimelineEvent};
use super::skip_reason::SkipReason;
use super::vpa::VpaScenario;
use kube_autoscaler_models::rules::{InPlaceMode, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::admission::Limits;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;
use kube_autoscaler_models::vpa::{ClusterChange, UpdateMode, VerticalPodAutoscaler};

/// A VPA whose recommendations are applied.
#[derive(Clone, PartialEq, Debug)]
pub struct WithVpa {
    /// The VPA, its recommender, their events and the expectations of recommendations. With an HPA,
    /// the workload has the names and limits of containers only, and there is no usage.
    pub recommender: Arc<VpaScenario>,
    /// The release of the recommender.
    pub release: VpaRelease,
    /// The flags of the updater.
    pub updater: UpdaterFlags,
}

impl WithVpa {
    /// The limits of the workload's containers.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let containers = self.recommender.workload.containers.iter();
        containers.map(|container| (container.name.clone(), container.limits.clone())).collect()
    }

    /// The VPA that exists at a time.
    #[must_use]
    pub fn in_force(&self, at: Time) -> Option<&VerticalPodAutoscaler> {
        let begun = self.recommender.timeline.iter().rev().filter(|event| event.at <= at);
        let mut changed = begun.filter_map(|event| match &event.change {
            Some(ClusterChange::SetVpa(vpa)) => Some(Some(vpa)),
            Some(ClusterChange::DeleteVpa(_)) => Some(None),
            _ => None,
        });
        changed.next().unwrap_or_else(|| self.recommender.vpas.first())
    }

    /// Why the release does not support the VPA or its recommender's flags, if it does not.
    #[must_use]
    pub fn unsupported(&self) -> Option<SkipReason> {
        let changed = self.recommender.timeline.iter().filter_map(|event| match &event.change {
            Some(ClusterChange::SetVpa(vpa)) => Some(vpa),
            _ => None,
        });
        let mut vpas = self.recommender.vpas.iter().chain(changed);
        let rejected = rejects_in_place(self.release)
            .filter(|_| vpas.any(|vpa| vpa.mode() == UpdateMode::InPlaceOrRecreate));
        self.recommender.unsupported_on(self.release).or(rejected.map(SkipReason::from))
    }

    /// Notes on what the simulation of the updater and the admission controller assumes.
    pub(crate) fn notes(&self, kind: &str) -> Vec<Diagnostic> {
        let mut notes = Vec::from_iter(self.note_on_release().map(Diagnostic::new));
        if kind == "StatefulSet" {
            let what = "in this simulation, replacement pods of a StatefulSet get new names, so \
                        the recommender treats them as different pods; in a cluster, they keep \
                        their names";
            notes.push(Diagnostic::new(what));
        }
        notes
    }

    /// A note if the updater and the admission controller of the release are not those that are
    /// simulated.
    fn note_on_release(&self) -> Option<String> {
        let changes_pods = self.recommender.vpas.iter().any(|vpa| vpa.mode() != UpdateMode::Off);
        (self.release < VpaRelease::OLDEST_UPDATER && changes_pods).then(|| {
            format!(
                "the updater and the admission controller are simulated as in {} and later, and \
                 are not compared with those of {}",
                VpaRelease::OLDEST_UPDATER,
                self.release
            )
        })
    }

    /// A note if the VPA never changes the pods of a workload with this number of replicas.
    fn note_without_changes(&self, replicas: i32) -> Option<String> {
        let vpa = self.recommender.vpas.first()?;
        let policy = vpa.spec.update_policy.as_ref();
        let least = policy.and_then(|policy| policy.min_replicas);
        let least = least.unwrap_or(self.updater.min_replicas);
        match vpa.mode() {
            UpdateMode::Off => Some(
                "with updateMode Off, the VPA only recommends requests and changes no pods".into(),
            ),
            UpdateMode::Initial => {
                Some("with updateMode Initial, the VPA sets the requests of new pods only".into())
            }
            _ => (replicas < least).then(|| {
                format!(
                    "the updater changes no pods: the workload has fewer than {least} replicas, \
                     the minimum that `minReplicas` of the VPA or the updater's flag \
                     `min-replicas` sets"
                )
            }),
        }
    }
}

impl VpaScenario {
    /// The scenario without an HPA in which the updater and the admission controller apply the
    /// recommendations to the pods, without expectations. None: there are several VPAs.
    #[must_use]
    pub fn applied(&self, release: VpaRelease) -> Option<Scenario> {
        if self.vpas.len() > 1 {
            return None;
        }
        let is_of_recommender = |event: &TimelineEvent| {
            event.action.requires_vpa() || event.action.changes_containers()
        };
        let mut recommender = VpaScenario { expect: Vec::new(), ..self.clone() };
        recommender.timeline.retain(is_of_recommender);
        let file = Arc::make_mut(&mut recommender.file);
        // There is only one.
        file.vpa = file.vpa.take().or_else(|| file.vpas.pop());
        let mut world = self.world();
        world.timeline.retain(|event| !is_of_recommender(event));
        let (recommender, updater) = (Arc::new(recommender), UpdaterFlags::default());
        let vpa = WithVpa { recommender, release, updater };
        let mut notes = self.notes.clone();
        notes.extend(vpa.notes(&world.workload.kind));
        let note = vpa.note_without_changes(world.workload.replicas);
        notes.extend(note.map(Diagnostic::from));
        Some(Scenario { vpa: Some(Arc::new(vpa)), notes, ..world })
    }
}

impl Scenario {
    /// The names of the containers of the pods.
    #[must_use]
    pub fn container_names(&self) -> Vec<Arc<str>> {
        self.workload.spec.containers.iter().map(|it| it.name.clone()).collect()
    }

    /// The name of the VPA, if there is one.
    #[must_use]
    pub fn vpa_name(&self) -> Option<&Arc<str>> {
        Some(&self.vpa.as_ref()?.recommender.names().next()?.name)
    }

    /// The scenario with another release of its VPA.
    #[must_use]
    pub fn with_vpa_release(&self, release: VpaRelease) -> Scenario {
        let with_release = |vpa: &Arc<WithVpa>| Arc::new(WithVpa { release, ..(**vpa).clone() });
        let vpa = self.vpa.as_ref().map(with_release);
        let note = vpa.as_ref().and_then(|vpa| vpa.note_on_release()).map(Diagnostic::from);
        let notes = self.notes.iter().cloned().chain(note).collect();
        Scenario { vpa, notes, ..self.clone() }
    }
}

/// Why a release rejects VPAs with the update mode `InPlaceOrRecreate`, if it does.
pub(crate) fn rejects_in_place(release: VpaRelease) -> Option<String> {
    const NAME: &str = "InPlaceOrRecreate";
    match release.in_place_mode() {
        InPlaceMode::Accepted => None,
        InPlaceMode::Gated => Some(format!(
            "the admission webhook of {release} rejects this VPA: `updateMode: {NAME}` requires \
             the feature gate {NAME}"
        )),
        InPlaceMode::Rejected => Some(format!(
            "the API of {release} rejects this VPA: spec.updatePolicy.updateMode: \
             Unsupported value: {NAME:?}: supported values: \"Off\", \"Initial\", \"Recreate\", \
             \"Auto\""
        )),
    }
}
