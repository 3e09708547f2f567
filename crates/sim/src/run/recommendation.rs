//! The recommendations of a VPA, and how its amounts were derived: for tables, explanations and
//! unmet expectations.

use std::fmt::Write as _;

use super::recommender::FreeRecommenderRun;
use crate::expect::Unmet;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::vpa::{
    Bound, ContainerRecommendation, Estimation, Resource, VpaStatus,
};
use kube_lockstep_scenario::vpa::{VpaExpectation, VpaScenario, VpaValue};

/// The index of the uncapped target in the values of [`Amounts`].
const UNCAPPED: usize = 3;

/// The recommendation of a resource of a container.
pub struct Amounts {
    /// The name of the container.
    pub container: String,
    /// CPU or memory.
    pub resource: Resource,
    amounts: [Option<Quantity>; 4],
    /// Target, lower bound, upper bound and uncapped target, as in the status.
    pub texts: [String; 4],
    /// The four amounts in cores or bytes, for the charts of HTML pages.
    pub values: [f64; 4],
}

impl Amounts {
    /// A value with its unit: exact, as a recommendation may be one in thousandths of a byte.
    fn exact(&self, index: usize) -> String {
        let whole = self.amounts[index].as_ref().and_then(|amount| {
            let whole = match self.resource {
                Resource::Cpu => amount.milli(),
                Resource::Memory => amount.value(),
            };
            quantity(self.resource, whole).compare(amount).is_eq().then_some(whole)
        });
        whole.map_or_else(|| self.texts[index].clone(), |whole| self.resource.exact(whole))
    }

    /// Returns true if a policy or a flag changes the target.
    pub fn is_capped(&self) -> bool {
        self.texts[0] != self.texts[UNCAPPED]
    }

    /// Returns true if a value is the amount that was derived.
    fn is_derived(&self, index: usize, estimation: &Estimation) -> bool {
        let derived = quantity(estimation.resource, estimation.amount);
        self.amounts[index].as_ref().is_some_and(|amount| amount.compare(&derived).is_eq())
    }
}

/// An amount in millicores or bytes.
fn quantity(resource: Resource, amount: i64) -> Quantity {
    match resource {
        Resource::Cpu => Quantity::from_milli(amount, Format::DecimalSI),
        Resource::Memory => Quantity::from_units(amount, Format::BinarySI),
    }
}

/// The recommendation of a status: one entry for each resource of a container.
pub fn amounts(status: &VpaStatus) -> Vec<Amounts> {
    let containers = status.containers();
    let of = |container: &ContainerRecommendation, resource: Resource| {
        let values =
            VpaValue::ALL.map(|value| value.of(container).amount(resource.name()).cloned());
        values.iter().any(Option::is_some).then(|| Amounts {
            container: container.container_name.to_string(),
            resource,
            texts: values.each_ref().map(|it| it.as_ref().map_or_else(String::new, text)),
            values: values.each_ref().map(|it| it.as_ref().map_or(0.0, units)),
            amounts: values,
        })
    };
    let resources = |container| [Resource::Cpu, Resource::Memory].map(|it| of(container, it));
    containers.iter().flat_map(resources).flatten().collect()
}

fn text(amount: &Quantity) -> String {
    amount.to_string()
}

/// The amount in cores or bytes. The quotient has the digits of the amount, `0.476`; a product of a
/// power of ten may not. Upstream's thousandths of larger amounts overflow.
fn units(amount: &Quantity) -> f64 {
    match amount.value().checked_mul(1000) {
        Some(_) => amount.milli() as f64 / 1000.0,
        None => amount.approx_f64(),
    }
}

/// The value that an estimation becomes, without policies.
pub(super) fn value_of(bound: Bound) -> VpaValue {
    match bound {
        Bound::Target => VpaValue::Target,
        Bound::Lower => VpaValue::LowerBound,
        Bound::Upper => VpaValue::UpperBound,
    }
}

/// The derivation of an amount as text.
pub struct Derivation {
    /// `target.cpu`.
    pub what: String,
    /// `the 90th percentile is in bucket …`.
    pub how: String,
}

/// How an amount was derived, and what a policy or rounding makes of it. `result`: the
/// recommendation that contains it, if any.
pub fn derivation_of(estimation: &Estimation, result: Option<&Amounts>) -> Derivation {
    let value = value_of(estimation.bound);
    let (name, index) = (value.name(), value as usize);
    let resource = estimation.resource.name();
    let mut how = estimation.to_string();
    if let Some(result) = result
        && !result.is_derived(index, estimation)
    {
        let _ = write!(how, "; with the policy and rounding: {}", result.exact(index));
    }
    if let Some(result) = result
        && estimation.bound == Bound::Target
        && result.is_capped()
    {
        let _ = write!(how, "; uncappedTarget: {}", result.exact(UNCAPPED));
    }
    if result.is_none() {
        how.push_str("; not in the recommendation");
        if estimation.bucket.is_some() {
            how.push_str(", because of the policy of the container");
        }
    }
    Derivation { what: format!("{name}.{resource}"), how }
}

/// Adds to unmet expectations how the expected amounts were derived. `explain` runs the model
/// again. Its argument selects, by index, the runs whose amounts are derived.
pub(super) fn with_reasons(
    scenario: &VpaScenario,
    unmet: Vec<Unmet>,
    explain: impl FnOnce(&dyn Fn(usize) -> bool) -> Option<FreeRecommenderRun>,
) -> Vec<Unmet> {
    let runs: Vec<usize> = unmet.iter().filter_map(|unmet| Some(unmet.tick?.index)).collect();
    if runs.is_empty() {
        return unmet;
    }
    let Some(explained) = explain(&|run| runs.contains(&run)) else { return unmet };
    let with_reason = |unmet: Unmet| {
        let expected = unmet.number.checked_sub(1).and_then(|index| scenario.expect.get(index));
        unmet.with_reason(|run| reason(scenario, expected?, &explained, run))
    };
    unmet.into_iter().map(with_reason).collect()
}

/// How the amounts of an expectation were derived in a run, in one line.
fn reason(
    scenario: &VpaScenario,
    expected: &VpaExpectation,
    run: &FreeRecommenderRun,
    index: usize,
) -> Option<String> {
    let only = scenario.vpas.first().map(|vpa| &vpa.metadata.name.name);
    let (vpa, container) = (expected.vpa.as_ref().or(only)?, expected.container.as_ref()?);
    let derived = &run.explained.get(&index)?.derived;
    let derived = derived.iter().find(|it| it.vpa.name == *vpa)?;
    let recommended = amounts(run.snapshots.get(index)?.status(vpa)?);
    let is_expected = |it: &&Estimation| {
        let is_bound = |value: VpaValue| match value {
            VpaValue::UncappedTarget => it.bound == Bound::Target,
            value => value == value_of(it.bound),
        };
        let mut ranges = expected.amounts().filter(|(value, _)| is_bound(*value));
        ranges.any(|(_, amounts)| amounts.ranges().any(|(resource, _)| resource == it.resource))
    };
    let text = |it: &Estimation| {
        let is_of = |of: &&Amounts| of.container == **container && of.resource == it.resource;
        let Derivation { what, how } = derivation_of(it, recommended.iter().find(is_of));
        format!("{what}: {how}")
    };
    let texts = derived.estimations.get(container)?.iter().filter(is_expected).map(text);
    Some(texts.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_tables_for_programs_have_the_digits_of_the_amounts() {
        let text = |amount: &str| units(&Quantity::parse(amount).expect("a quantity")).to_string();
        assert_eq!(text("476m"), "0.476");
        assert_eq!(text("250Mi"), "262144000");
        assert_eq!(text("100P"), "100000000000000000");
    }
}
