//! Steps of an exact metric within the tolerance.

use crate::context::{Context, HpaWithTarget, Metric};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::hpa::metrics::Tolerances;
use kube_autoscaler_models::quantity::Quantity;
use kube_lockstep_manifests::Load;

pub(super) const RULE: Rule = Rule {
    id: "tolerance-hides-step",
    level: Level::Note,
    summary: "A metric that says exactly how many replicas are wanted changes by less than the \
              tolerance.",
    reason: "A change within the tolerance, 10% by default, has no effect. If a schedule wants 22 \
             replicas in place of 20, the HPA keeps 20.",
    link: "https://github.com/kubernetes/enhancements/tree/master/keps/sig-autoscaling/\
           4951-configurable-hpa-tolerance",
    check,
};

/// A target of 1 for each replica, in milli-units.
const ONE: i64 = 1000;

/// A step without an effect.
struct Hidden {
    replicas: i32,
    wanted: i32,
    evidence: Evidence,
}

fn check(context: &Context<'_>) -> Vec<Found> {
    let of_hpa =
        |hpa| HpaWithTarget::metrics(hpa).filter_map(move |metric| finding(context, hpa, metric));
    context.hpas.iter().flat_map(of_hpa).collect()
}

fn finding(context: &Context<'_>, hpa: &HpaWithTarget<'_>, metric: Metric<'_>) -> Option<Found> {
    let average = metric.total()?.average_value.as_ref().map(Quantity::milli)?;
    let (min, max) = (hpa.hpa.hpa.min_replicas.max(1), hpa.hpa.hpa.max_replicas);
    let tolerances = context.tolerances(hpa.hpa);
    let steps = Steps { average, min, max, tolerances };
    let hidden = match context.load(hpa.hpa, metric).map(Load::step_values) {
        Some(values) if !values.is_empty() => steps.hidden_in(&values)?,
        _ => steps.hidden_of_one()?,
    };
    let Hidden { replicas, wanted, evidence } = hidden;
    let name = metric.spec.name().unwrap_or_default();
    let tolerance = if wanted > replicas { tolerances.scale_up } else { tolerances.scale_down };
    let start = match evidence {
        Evidence::Assumed => {
            format!("if {name} is the number of wanted replicas, as its target 1 says")
        }
        _ => format!("with the given load of {name}"),
    };
    let what = format!(
        "{start}, a step from {replicas} to {wanted} replicas is within the tolerance of \
         {tolerance} and has no effect"
    );
    let hint = "set `tolerance: 0` in behavior.scaleUp and behavior.scaleDown (from Kubernetes \
                1.35 on), or let the metric change by more than the tolerance";
    Some(Found::at(hpa.object(), &metric.path(), evidence, what).hint(hint))
}

/// The steps of a metric whose target is an average over the replicas.
struct Steps {
    /// The target in milli-units.
    average: i64,
    min: i32,
    max: i32,
    tolerances: Tolerances,
}

impl Steps {
    /// Returns true if a value in milli-units changes nothing.
    ///
    /// Upstream: replica_calculator.go, GetExternalPerPodMetricReplicas
    fn is_hidden(&self, value: i64, replicas: i32) -> bool {
        let ratio = value as f64 / (self.average as f64 * f64::from(replicas));
        self.tolerances.is_within(ratio)
    }

    /// The first step of a load without an effect.
    fn hidden_in(&self, values: &[i64]) -> Option<Hidden> {
        let replicas = |value: i64| {
            let wanted = (value as f64 / self.average as f64).ceil();
            wanted.clamp(f64::from(self.min), f64::from(self.max)) as i32
        };
        let mut steps =
            values.windows(2).map(|step| (replicas(step[0]), replicas(step[1]), step[1]));
        let is_hidden = |(before, after, value): &(i32, i32, i64)| {
            before != after && self.is_hidden(*value, *before)
        };
        let (replicas, wanted, _) = steps.find(is_hidden)?;
        Some(Hidden { replicas, wanted, evidence: Evidence::Derived })
    }

    /// The smallest step by one replica without an effect, if the metric counts replicas.
    fn hidden_of_one(&self) -> Option<Hidden> {
        let is_hidden =
            |replicas: i32, wanted: i32| self.is_hidden(i64::from(wanted) * ONE, replicas);
        // The more replicas there are, the smaller is a step by one.
        let can_be_hidden = is_hidden(self.max - 1, self.max) || is_hidden(self.max, self.max - 1);
        if self.average != ONE || self.min >= self.max || !can_be_hidden {
            return None;
        }
        let ups = (self.min..self.max).map(|replicas| (replicas, replicas + 1));
        let downs = (self.min..self.max).map(|replicas| (replicas + 1, replicas));
        let mut steps = ups.chain(downs);
        let (replicas, wanted) = steps.find(|(replicas, wanted)| is_hidden(*replicas, *wanted))?;
        Some(Hidden { replicas, wanted, evidence: Evidence::Assumed })
    }
}
