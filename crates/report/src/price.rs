//! The cost of pods.

use std::str::FromStr;

use super::bound::number;
use kube_autoscaler_models::api::PodSpec;
use kube_lockstep_sim::run::pod_request;

/// The number of bytes in a GiB.
pub(super) const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The prices of an hour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Price {
    /// Of a pod.
    pod: f64,
    /// Of a requested core.
    core: f64,
    /// Of a requested GiB of memory.
    gib: f64,
}

impl Price {
    /// The price of an hour of a pod, by its requests.
    #[must_use]
    pub fn of(&self, spec: &PodSpec) -> f64 {
        let amount = |resource| pod_request(spec, resource) as f64 / 1000.0;
        self.of_hours(1.0, amount("cpu"), amount("memory") / GIB)
    }

    /// The price of pod-hours, core-hours and GiB-hours.
    #[must_use]
    pub(super) fn of_hours(&self, pods: f64, cores: f64, gib: f64) -> f64 {
        self.pod * pods + self.core * cores + self.gib * gib
    }
}

/// `cpu=0.03,memory=0.004`, `pod=0.05`.
impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Price, String> {
        let mut price = Price::default();
        for part in text.split(',') {
            let (name, amount) = part.split_once('=').ok_or_else(|| {
                format!("{part:?}: expected NAME=PRICE, for example cpu=0.03,memory=0.004")
            })?;
            let (name, amount) = (name.trim(), amount.trim());
            let field = match name {
                "pod" => &mut price.pod,
                "cpu" => &mut price.core,
                "memory" => &mut price.gib,
                _ => {
                    return Err(format!(
                        "{part:?}: expected a price of cpu, memory or pod, found {name:?}"
                    ));
                }
            };
            *field = number(amount).ok_or_else(|| {
                format!("{part:?}: expected a number such as 0.03, found {amount:?}")
            })?;
        }
        if price == Price::default() {
            return Err(format!("{text:?}: all prices are 0"));
        }
        Ok(price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::api::{Container, Requests};

    fn requests(list: &[(&str, &str)]) -> Requests {
        let parse =
            |(name, amount): &(&str, &str)| ((*name).into(), amount.parse().expect("a quantity"));
        list.iter().map(parse).collect()
    }

    fn container(list: &[(&str, &str)], sidecar: bool) -> Container {
        Container { requests: requests(list), sidecar, ..Container::default() }
    }

    #[test]
    fn a_pod_costs_its_requests() {
        let price: Price = "cpu=0.03,memory=0.004".parse().expect("prices");
        let spec = PodSpec {
            containers: vec![container(&[("cpu", "500m"), ("memory", "512Mi")], false)],
            ..PodSpec::default()
        };
        assert!((price.of(&spec) - (0.015 + 0.002)).abs() < 1e-12);
        let per_pod: Price = "pod=0.05".parse().expect("a price");
        assert_eq!(per_pod.of(&spec), 0.05);
    }

    #[test]
    fn init_containers_and_pod_level_requests_count_as_in_the_scheduler() {
        let mut spec = PodSpec {
            containers: vec![container(&[("cpu", "1")], false)],
            init_containers: vec![
                container(&[("cpu", "250m")], true),
                container(&[("cpu", "2")], false),
                container(&[("cpu", "500m")], true),
            ],
            overhead: requests(&[("cpu", "100m")]),
            ..PodSpec::default()
        };
        // The plain init container runs with the first sidecar: 2.25. Later, 1 + 0.25 + 0.5.
        assert_eq!(pod_request(&spec, "cpu"), 2350);
        spec.init_containers.remove(1);
        assert_eq!(pod_request(&spec, "cpu"), 1850);
        spec.requests = Some(requests(&[("cpu", "3")]));
        assert_eq!(pod_request(&spec, "cpu"), 3100);
    }

    #[test]
    fn errors_name_the_mistake() {
        let error = |text: &str| text.parse::<Price>().expect_err("a mistake");
        assert!(error("cpu").contains("expected NAME=PRICE"));
        assert!(error("gpu=1").contains("expected a price of cpu, memory or pod"));
        assert!(error("cpu=cheap").contains("expected a number such as 0.03"));
        assert!(error("cpu=-1").contains("expected a number such as 0.03"));
        assert!(error("cpu=0").contains("all prices are 0"));
    }
}
