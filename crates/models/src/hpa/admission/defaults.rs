//! Defaults that the API server sets when an HPA is stored.

use crate::api::{
    HpaSpec, MetricSourceType, MetricSpec, MetricTarget, MetricTargetType, ResourceMetricSource,
    ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy,
};

/// The target utilization of cpu of an HPA without metrics.
pub(super) const DEFAULT_CPU_UTILIZATION: i32 = 80;
/// The period of the default policies.
const PERIOD_SECONDS: i32 = 15;

/// Sets the defaults of omitted fields. An empty `behavior` gets its defaults; an absent one stays
/// absent.
///
/// Upstream: pkg/apis/autoscaling/v2/defaults.go, SetDefaults_HorizontalPodAutoscaler
pub fn set_defaults(spec: &mut HpaSpec) {
    spec.min_replicas.get_or_insert(1);
    if spec.metrics.is_empty() {
        spec.metrics.push(cpu_utilization(DEFAULT_CPU_UTILIZATION));
    }
    if let Some(behavior) = &mut spec.behavior {
        behavior.scale_up = Some(generate_hpa_scale_up_rules(behavior.scale_up.take()));
        behavior.scale_down = Some(generate_hpa_scale_down_rules(behavior.scale_down.take()));
    }
}

/// The metric of cpu with a target utilization.
pub(crate) fn cpu_utilization(percent: i32) -> MetricSpec {
    MetricSpec {
        type_: MetricSourceType::Resource,
        resource: Some(ResourceMetricSource {
            name: "cpu".into(),
            target: MetricTarget {
                type_: MetricTargetType::Utilization,
                value: None,
                average_value: None,
                average_utilization: Some(percent),
            },
        }),
        container_resource: None,
        pods: None,
        object: None,
        external: None,
    }
}

/// Upstream: defaults.go, GenerateHPAScaleUpRules
fn generate_hpa_scale_up_rules(rules: Option<ScalingRules>) -> ScalingRules {
    let defaults = ScalingRules {
        stabilization_window_seconds: Some(0),
        select_policy: Some(SelectPolicy::Max),
        policies: Some(vec![
            policy(ScalingPolicyType::Pods, 4),
            policy(ScalingPolicyType::Percent, 100),
        ]),
        tolerance: None,
    };
    copy_hpa_scaling_rules(rules, defaults)
}

/// The window stays absent: its default is the controller's flag.
///
/// Upstream: defaults.go, GenerateHPAScaleDownRules
fn generate_hpa_scale_down_rules(rules: Option<ScalingRules>) -> ScalingRules {
    let defaults = ScalingRules {
        stabilization_window_seconds: None,
        select_policy: Some(SelectPolicy::Max),
        policies: Some(vec![policy(ScalingPolicyType::Percent, 100)]),
        tolerance: None,
    };
    copy_hpa_scaling_rules(rules, defaults)
}

fn policy(type_: ScalingPolicyType, value: i32) -> ScalingPolicy {
    ScalingPolicy { type_, value, period_seconds: PERIOD_SECONDS }
}

/// Upstream: defaults.go, copyHPAScalingRules
fn copy_hpa_scaling_rules(from: Option<ScalingRules>, to: ScalingRules) -> ScalingRules {
    let Some(from) = from else { return to };
    ScalingRules {
        stabilization_window_seconds: from
            .stabilization_window_seconds
            .or(to.stabilization_window_seconds),
        select_policy: from.select_policy.or(to.select_policy),
        policies: from.policies.or(to.policies),
        tolerance: from.tolerance.or(to.tolerance),
    }
}
