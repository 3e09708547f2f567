//! How predictions are measured: prices, and the load that a pod serves well.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::failure::Failure;
use kube_lockstep_report::capacity::Capacity;
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::price::Price;
use kube_lockstep_scenario::Scenario;

/// How predictions are measured.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct MeasureArgs {
    /// The prices of an hour of a requested core (cpu), a requested GiB (memory), or a pod (pod),
    /// for example cpu=0.03,memory=0.004
    #[arg(long, value_name = "PRICES")]
    pub(super) price: Option<Price>,
    /// The highest load of a metric that a pod serves well, for example cpu=90% or requests=120;
    /// can be repeated. Missing pods and times above the target are measured against it, in place
    /// of the current target
    #[arg(long, value_name = "METRIC=AMOUNT")]
    pub(super) capacity: Vec<Capacity>,
}

impl MeasureArgs {
    /// Measures against the capacities of the metrics of a scenario. Returns the names of these
    /// metrics.
    pub(super) fn apply(&self, reference: &mut Reference) -> Result<Vec<String>, Failure> {
        let mut used = Vec::new();
        for capacity in &self.capacity {
            let applied = reference.measure_at(capacity);
            if applied.map_err(|why| Failure::usage(format!("--capacity: {why}")))? {
                used.push(capacity.metric.clone());
            }
        }
        Ok(used)
    }

    /// The capacities of metrics of scenarios.
    pub(super) fn capacities_of<'s>(
        &self,
        scenarios: impl IntoIterator<Item = &'s Arc<Scenario>>,
    ) -> Vec<Capacity> {
        let metrics: Vec<String> = scenarios.into_iter().flat_map(|it| metrics(it)).collect();
        self.capacity.iter().filter(|it| metrics.contains(&it.metric)).cloned().collect()
    }

    /// Fails if no HPA has the metric of a capacity.
    pub(super) fn check_used(&self, used: &BTreeSet<String>) -> Result<(), Failure> {
        let unused = self.capacity.iter().find(|capacity| !used.contains(&capacity.metric));
        unused.map_or(Ok(()), |capacity| {
            let what = format!("--capacity: no HPA scales on {}", capacity.metric);
            Err(Failure::usage(what).hint("name a metric of an HPA, for example cpu"))
        })
    }

    /// Fails if the pods of a scenario cost nothing.
    pub(super) fn check_price(&self, scenario: &Scenario) -> Result<(), Failure> {
        let is_free =
            |price: Price| scenario.vpa.is_none() && price.of(&scenario.workload.spec) == 0.0;
        if self.price.is_some_and(is_free) {
            let what = format!("{}: the pods have no requests with a price", scenario.path);
            let hint = "set the requests with --request, or give a price per pod: --price pod=0.05";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(())
    }
}

/// A note on a cost of 0. A VPA can set requests, so only a prediction
/// shows whether the cost is 0.
pub(super) fn note_on_cost(figures: &Figures) -> Option<&'static str> {
    let is_free = figures.cost == Some(0.0) && figures.pod_hours > 0.0;
    is_free.then_some(
        "the cost is 0, because the pods never have a request with a price; set the requests with \
         --request, or give a price per pod: --price pod=0.05",
    )
}

/// The names of the metrics of the HPAs of a scenario.
pub(super) fn metrics(scenario: &Scenario) -> impl Iterator<Item = String> {
    let metrics = scenario.hpas.iter().flat_map(|hpa| &hpa.spec.metrics);
    metrics.filter_map(|metric| metric.name().map(str::to_owned))
}
