//! The manifests as rules see them: HPAs with their targets.

use kube_autoscaler_models::api::{MetricSpec, MetricTarget, SelectPolicy};
use kube_autoscaler_models::flags::{FeatureGates, Gate};
use kube_autoscaler_models::hpa::metrics::Tolerances;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::selector::Selector;
use kube_lockstep_manifests::{Load, Manifests, Object, ValidHpa, ValidWorkload};

use super::Options;

/// What rules read.
pub(crate) struct Context<'a> {
    pub(crate) manifests: &'a Manifests,
    pub(crate) options: &'a Options,
    /// The behavior of the release.
    pub(crate) rules: Rules,
    pub(crate) hpas: Vec<HpaWithTarget<'a>>,
    /// The pods that HPAs select.
    pub(crate) selected: Vec<SelectedPods<'a>>,
}

/// The pods of a workload, and the HPAs that select them.
pub(crate) struct SelectedPods<'a> {
    pub(crate) workload: &'a ValidWorkload,
    /// The indices of the HPAs in [`Context::hpas`].
    pub(crate) by: Vec<usize>,
}

/// An HPA and its target.
pub(crate) struct HpaWithTarget<'a> {
    pub(crate) hpa: &'a ValidHpa,
    /// None: it is not in the manifests.
    pub(crate) target: Option<&'a ValidWorkload>,
    /// The selector of the target's pods. None: it is unknown.
    pub(crate) selector: Option<Selector>,
}

/// A metric of an HPA.
#[derive(Clone, Copy)]
pub(crate) struct Metric<'a> {
    /// Its index in `spec.metrics`.
    pub(crate) index: usize,
    pub(crate) spec: &'a MetricSpec,
}

/// The usage of pods, or of one container, and its target.
#[derive(Clone, Copy)]
pub(crate) struct ResourceTarget<'a> {
    /// `cpu` or `memory`.
    pub(crate) resource: &'a str,
    pub(crate) container: Option<&'a str>,
    pub(crate) target: &'a MetricTarget,
}

impl<'a> Context<'a> {
    pub(crate) fn new(manifests: &'a Manifests, options: &'a Options) -> Context<'a> {
        let with_target = |hpa: &'a ValidHpa| {
            let target = manifests.target(hpa);
            HpaWithTarget { hpa, target, selector: target.and_then(ValidWorkload::selector) }
        };
        let hpas: Vec<_> = manifests.hpas.iter().map(with_target).collect();
        let selected = manifests.workloads.iter().filter(|workload| has_own_pods(workload));
        let selected = selected.map(|workload| {
            let selects = |hpa: &HpaWithTarget<'_>| {
                let matches = |it: &Selector| it.matches(&workload.pods.labels);
                hpa.is_in_namespace_of(&workload.object)
                    && hpa.selector.as_ref().is_some_and(matches)
            };
            let by = (0..hpas.len()).filter(|index| selects(&hpas[*index])).collect();
            SelectedPods { workload, by }
        });
        let (selected, rules) = (selected.collect(), Rules::of(options.release));
        Context { manifests, options, rules, hpas, selected }
    }

    /// The feature gates of the controller.
    pub(crate) fn gates(&self) -> &FeatureGates {
        &self.options.gates.controller_manager
    }

    /// The tolerances of an HPA, by the default flag of the controller.
    pub(crate) fn tolerances(&self, hpa: &ValidHpa) -> Tolerances {
        let tolerance = self.rules.default_flags.tolerance;
        Tolerances::for_hpa(hpa.hpa.behavior.as_ref(), tolerance, &self.rules, self.gates())
    }

    /// The load of a metric of an HPA.
    pub(crate) fn load(&self, hpa: &ValidHpa, metric: Metric<'_>) -> Option<&'a Load> {
        self.manifests.load(hpa, metric.spec)
    }

    /// Returns true if pod-level requests count.
    pub(crate) fn has_pod_level_requests(&self) -> bool {
        self.gates().enabled(Gate::PodLevelResources)
    }
}

/// Returns false if another workload creates the pods: those of a ReplicaSet of a Deployment are
/// pods of the Deployment.
fn has_own_pods(workload: &ValidWorkload) -> bool {
    const CREATED: [&str; 4] = ["ReplicaSet", "ReplicationController", "Job", "Pod"];
    !workload.object.has_owner() || !CREATED.contains(&&*workload.object.kind())
}

impl<'a> HpaWithTarget<'a> {
    /// Returns true if an object is in the namespace of the HPA. If only the HPA or its target
    /// names a namespace, the other manifest leaves it open.
    fn is_in_namespace_of(&self, object: &Object) -> bool {
        let namespace = object.namespace();
        let is_of_target = |target: &ValidWorkload| target.object.namespace() == namespace;
        self.hpa.name.namespace == namespace || self.target.is_some_and(is_of_target)
    }

    /// Returns true if both HPAs scale the same object.
    pub(crate) fn has_same_target(&self, other: &HpaWithTarget<'_>) -> bool {
        let is_one = |(one, other): (&ValidWorkload, &ValidWorkload)| std::ptr::eq(one, other);
        let have_one = self.target.zip(other.target).is_some_and(is_one);
        self.hpa.has_same_target(other.hpa) || have_one && self.shares_namespace(other)
    }

    /// Returns true if both HPAs can be in the same namespace.
    pub(crate) fn shares_namespace(&self, other: &HpaWithTarget<'_>) -> bool {
        self.object().shares_namespace(other.object())
    }

    pub(crate) fn object(&self) -> &'a Object {
        &self.hpa.object
    }

    /// `HPA shop/web`.
    pub(crate) fn title(&self) -> String {
        format!("HPA {}", self.hpa.name)
    }

    /// `Deployment web`.
    pub(crate) fn target_title(&self) -> String {
        format!("{} {}", self.hpa.hpa.target.kind, self.hpa.hpa.target.name)
    }

    /// Returns false if scale-ups are disabled.
    pub(crate) fn can_scale_up(&self) -> bool {
        let rules = self.hpa.hpa.behavior.as_ref().and_then(|it| it.scale_up.as_ref());
        rules.is_none_or(|it| it.select_policy != Some(SelectPolicy::Disabled))
    }

    /// Returns true if the HPA can change the replicas.
    pub(crate) fn can_change(&self) -> bool {
        self.hpa.hpa.min_replicas < self.hpa.hpa.max_replicas
    }

    /// Returns true if the HPA can scale down.
    pub(crate) fn can_scale_down(&self) -> bool {
        let hpa = &self.hpa.hpa;
        let rules = hpa.behavior.as_ref().and_then(|it| it.scale_down.as_ref());
        let is_disabled = rules.is_some_and(|it| it.select_policy == Some(SelectPolicy::Disabled));
        !is_disabled && self.can_change()
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric<'a>> {
        self.hpa.hpa.metrics.iter().enumerate().map(|(index, spec)| Metric { index, spec })
    }
}

impl<'a> Metric<'a> {
    /// The field of the metric. Older versions of the API have another form, whose position is that
    /// of the spec.
    pub(crate) fn path(self) -> String {
        format!("spec.metrics.{}", self.index)
    }

    /// The usage that the metric is about, if it is of cpu or memory.
    pub(crate) fn resource(self) -> Option<ResourceTarget<'a>> {
        let of_pods = self.spec.resource.as_ref().map(|it| (&it.name, None, &it.target));
        let of_container = || {
            let source = self.spec.container_resource.as_ref()?;
            Some((&source.name, Some(&*source.container), &source.target))
        };
        let (resource, container, target) = of_pods.or_else(of_container)?;
        Some(ResourceTarget { resource, container, target })
    }

    /// The target of an object's or external metric.
    pub(crate) fn total(self) -> Option<&'a MetricTarget> {
        let object = self.spec.object.as_ref().map(|it| &it.target);
        object.or(self.spec.external.as_ref().map(|it| &it.target))
    }

    /// Returns true if the pods that the selector matches affect the proposal: in averages over
    /// pods, and in the number of ready pods. The controller divides other totals by the replicas.
    pub(crate) fn counts_pods(self) -> bool {
        self.total().is_none_or(|target| target.average_value.is_none())
    }
}
