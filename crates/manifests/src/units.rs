//! Constant loads in another unit, such as 300 in place of 300m.

use super::DraftError;
use super::load::{HpaName, Load};
use super::pods::Pods;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::resolve::{MOST_CPU, Usual, is_implausible, rounded};

/// The pods that have the loads.
pub(super) struct Loaded<'a> {
    pub pods: &'a Pods,
    pub autoscalers: &'a [HpaName],
    /// The upper limit of the replicas.
    pub most_replicas: i64,
    /// The reference value of usage if the pods do not request the resource.
    pub without_request: &'a dyn Fn(&str) -> Option<Usual>,
}

impl Loaded<'_> {
    /// Rejects loads that are far from the requests of the pods. Recorded loads are checked when
    /// the scenario is read.
    pub(super) fn check_units(&self, loads: &[Load]) -> Result<(), DraftError> {
        let loads = loads
            .iter()
            .filter(|load| load.subject.is_resource() && load.subject.is_of(self.autoscalers));
        for load in loads {
            self.check(load)?;
        }
        Ok(())
    }

    fn check(&self, load: &Load) -> Result<(), DraftError> {
        let (resource, container) = (&*load.subject.name, load.subject.container.as_deref());
        let request = self.pods.request(resource, container).filter(|request| *request > 0);
        let (usual, whose) = match (request, container) {
            (Some(request), None) => (request, "a pod requests".to_owned()),
            (Some(request), Some(name)) => (request, format!("container {name} requests")),
            (None, _) => match (self.without_request)(resource) {
                Some((usual, whose)) => (usual, whose.to_owned()),
                None => return Ok(()),
            },
        };
        let pods = if load.total { self.most_replicas.max(1) } else { 1 };
        let Some(peak) = load.peak().map(|peak| peak / pods) else { return Ok(()) };
        if !is_implausible(resource, peak, usual, MOST_CPU) {
            return Ok(());
        }
        let format = if resource == "cpu" { Format::DecimalSI } else { Format::BinarySI };
        let shown = |milli: i64| Quantity::from_milli(milli, format);
        let each = if pods > 1 { format!(" for each of {pods} pods") } else { String::new() };
        let (unit, hint) = match resource {
            "cpu" => ("cores", "300m means 300 millicores, and 60% means 60% of the request"),
            _ => ("bytes", "300Mi means 300 MiB, and 60% means 60% of the request"),
        };
        let peak = if resource == "cpu" { rounded(peak) } else { shown(peak) };
        let usual = shown(usual);
        let what = format!(
            "--load {}: the unit seems to be wrong: the load is up to {peak} {unit}{each}, but \
             {whose} {usual}",
            load.subject
        );
        Err(DraftError::Options(Diagnostic::new(what).hint(hint)))
    }
}
