//! From estimates to the recommendation that is written: rounding and post-processors.
//!
//! Upstream: `pkg/recommender/model/types.go`, `pkg/recommender/routines/*_post_processor.go`,
//! `pkg/utils/vpa/capping.go`

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::aggregate::Resource;
use super::api::{
    ContainerPolicy, ContainerRecommendation, Recommendation, ResourceList, ResourcePolicy,
    ScalingMode, VerticalPodAutoscaler,
};
use super::context::Context;
use super::estimator::{BOUNDS, Minimum};
use super::flags::RecommenderFlags;
use super::float::Amount;
use super::merged::MergedContainer;
use crate::quantity::{Format, Quantity};
use crate::rules::VpaRules;

/// The recommendation for the containers of a VPA.
///
/// Upstream: recommender.go, processVPAUpdate
pub(super) fn recommend(
    containers: &[MergedContainer],
    vpa: &VerticalPodAutoscaler,
    context: Context<'_>,
) -> Recommendation {
    let Context { flags, rules, .. } = context;
    let policy = vpa.spec.resource_policy.as_ref();
    let recommended = |it: &&MergedContainer| has_recommendation(it, policy, rules);
    let minimum = minimum_of(containers, policy, context);
    let mut container_recommendations = Vec::with_capacity(containers.len());
    for merged in containers.iter().filter(recommended) {
        let name = &merged.name;
        let policy = policy.and_then(|policy| policy.for_container(name));
        let [target, lower_bound, upper_bound] = resource_lists(merged, policy, context, minimum);
        let mut container = ContainerRecommendation {
            container_name: name.clone(),
            lower_bound,
            upper_bound,
            uncapped_target: target.clone(),
            target,
        };
        if flags.cpu_integer_post_processor_enabled && is_integer(name, &vpa.metadata.annotations) {
            make_cpu_integer(&mut container);
        }
        cap(&mut container, policy, flags);
        container_recommendations.push(container);
    }
    Recommendation { container_recommendations }
}

/// Returns true if the recommendation contains a container.
fn has_recommendation(
    MergedContainer { name, aggregate, .. }: &MergedContainer,
    policy: Option<&ResourcePolicy>,
    rules: &VpaRules,
) -> bool {
    let policy = policy.and_then(|policy| policy.for_container(name));
    let is_on = policy.and_then(|policy| policy.mode) != Some(ScalingMode::Off);
    is_on && (rules.recommends_without_samples || aggregate.count > 0)
}

/// The minimum of each container: that of the pod, divided among the containers with a
/// recommendation.
pub(super) fn minimum_of(
    containers: &[MergedContainer],
    policy: Option<&ResourcePolicy>,
    Context { flags, rules, .. }: Context<'_>,
) -> Minimum {
    let recommended = containers.iter().filter(|it| has_recommendation(it, policy, rules));
    Minimum::per_container(flags, recommended.count())
}

/// The values of a recommendation, in the order of [`BOUNDS`].
fn resource_lists(
    container: &MergedContainer,
    policy: Option<&ContainerPolicy>,
    context: Context<'_>,
    minimum: Minimum,
) -> [ResourceList; BOUNDS.len()] {
    let amounts = |resource: Resource| {
        let estimate = || container.estimate(context.flags, minimum, resource);
        controls(policy, resource).then(|| estimate().map(|estimated| estimated.amount))
    };
    let (cpu, memory) = (amounts(Resource::Cpu), amounts(Resource::Memory));
    std::array::from_fn(|bound| ResourceList {
        cpu: cpu.map(|millicores| cpu_quantity(millicores[bound], context.flags)),
        memory: memory.map(|bytes| memory_quantity(bytes[bound], context)),
    })
}

/// Returns true if a policy includes a resource.
fn controls(policy: Option<&ContainerPolicy>, resource: Resource) -> bool {
    let controlled = policy.and_then(|policy| policy.controlled_resources.as_ref());
    controlled.is_none_or(|names| names.iter().any(|name| name == resource.name()))
}

/// Upstream: ResourcesAsResourceList
fn cpu_quantity(millicores: Amount, flags: &RecommenderFlags) -> Quantity {
    let rounded = match flags.round_cpu_millicores {
        1 => millicores,
        scale => round_up_to_scale(millicores, scale),
    };
    Quantity::from_milli(rounded, Format::DecimalSI)
}

/// Upstream: ResourcesAsResourceList
fn memory_quantity(bytes: Amount, Context { flags, rules, .. }: Context<'_>) -> Quantity {
    let rounded = match flags.round_memory_bytes {
        1 => bytes,
        scale => round_up_to_scale(bytes, scale),
    };
    let format = if rules.memory_is_binary { Format::BinarySI } else { Format::DecimalSI };
    let quantity = Quantity::from_units(rounded, format);
    if !flags.humanize_memory || rounded == 0 {
        return quantity;
    }
    Quantity::parse_stored(&humanize(rounded)).unwrap_or(quantity)
}

/// Rounds up to a multiple. A scale that is not positive has no effect. Upstream: RoundUpToScale
fn round_up_to_scale(value: Amount, scale: i64) -> Amount {
    if value == 0 || scale <= 0 {
        return value;
    }
    ((value as f64 / scale as f64).ceil() as i64).wrapping_mul(scale)
}

/// Memory in its largest unit with two decimals. Upstream: HumanizeMemoryQuantity
fn humanize(bytes: Amount) -> String {
    match binary_unit(bytes) {
        Some((unit, suffix)) => format!("{:.2}{suffix}", bytes as f64 / unit as f64),
        None => bytes.to_string(),
    }
}

/// The largest binary unit that a number of bytes reaches, with its suffix.
pub(super) fn binary_unit(bytes: Amount) -> Option<(Amount, &'static str)> {
    const UNITS: [(Amount, &str); 4] =
        [(1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")];
    UNITS.into_iter().find(|(unit, _)| bytes >= *unit)
}

/// Returns true if an annotation selects the container for the integer CPU post-processor.
///
/// Upstream: cpu_integer_post_processor.go
fn is_integer(container: &str, annotations: &BTreeMap<String, String>) -> bool {
    annotations.iter().any(|(name, value)| {
        let selected = name
            .strip_prefix("vpa-post-processor.kubernetes.io/")
            .and_then(|name| name.strip_suffix("_integerCPU"));
        value == "true" && selected == Some(container)
    })
}

/// Rounds CPU up to whole cores, including the uncapped target.
fn make_cpu_integer(container: &mut ContainerRecommendation) {
    let lists = [
        &mut container.target,
        &mut container.lower_bound,
        &mut container.upper_bound,
        &mut container.uncapped_target,
    ];
    for cpu in lists.into_iter().filter_map(|list| list.cpu.as_mut()) {
        let cores = cpu.milli().div_euclid(1000) + i64::from(cpu.milli().rem_euclid(1000) > 0);
        *cpu = Quantity::from_units(cores, Format::DecimalSI);
    }
}

/// Limits the target and the bounds by the policy of the container and by flags.
///
/// Upstream: capping.go, applyVPAPolicyForContainer
fn cap(
    container: &mut ContainerRecommendation,
    policy: Option<&ContainerPolicy>,
    flags: &RecommenderFlags,
) {
    if policy.is_none() && !flags.limits_containers() {
        return;
    }
    let least = policy.and_then(|policy| policy.min_allowed.as_ref());
    let most = policy.and_then(|policy| policy.max_allowed.as_ref());
    let lists = [&mut container.target, &mut container.lower_bound, &mut container.upper_bound];
    for list in lists {
        let cpu = (&mut list.cpu, "cpu", &flags.container_recommendation_max_allowed_cpu);
        let memory =
            (&mut list.memory, "memory", &flags.container_recommendation_max_allowed_memory);
        for (value, name, everywhere) in [cpu, memory] {
            let Some(value) = value else { continue };
            let least = least.and_then(|list| list.get(name));
            let most = most.and_then(|list| list.get(name));
            limit(value, least, Ordering::Less);
            // A limit of zero in the policy disables the flag as well.
            limit(value, most.or(everywhere.as_ref()), Ordering::Greater);
        }
    }
}

/// Replaces a value that is on the given side of a bound. A bound of zero has no effect.
///
/// Upstream: capping.go, maybeCapToMin and maybeCapToMax
pub(super) fn limit(value: &mut Quantity, bound: Option<&Quantity>, side: Ordering) {
    if let Some(bound) = bound.filter(|bound| bound.sign() != 0)
        && value.compare(bound) == side
    {
        *value = bound.clone();
    }
}
