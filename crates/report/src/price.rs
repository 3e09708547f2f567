//! The cost of pods.

use std::str::FromStr;

use super::bound::number;
use kube_autoscaler_models::api::{PodSpec, Requests};

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
        let amount = |resource| request(spec, resource);
        let gib = 1024.0 * 1024.0 * 1024.0;
        self.pod + self.core * amount("cpu") + self.gib * amount("memory") / gib
    }
}

/// The request of a pod, as the scheduler counts it: pod-level requests take precedence; the
/// containers count while they run together, or an init container if it requests more.
///
/// Upstream: component-helpers, resource/helpers.go, `PodRequests`
fn request(spec: &PodSpec, resource: &str) -> f64 {
    let amount = |requests: &Requests| requests.get(resource).map_or(0.0, |it| it.approx_f64());
    let (mut sidecars, mut largest) = (0.0, 0.0_f64);
    for container in &spec.init_containers {
        let together = sidecars + amount(&container.requests);
        largest = largest.max(together);
        if container.sidecar {
            sidecars = together;
        }
    }
    let main: f64 = spec.containers.iter().map(|it| amount(&it.requests)).sum();
    let containers = largest.max(main + sidecars);
    let of_pod = spec.requests.as_ref().and_then(|requests| requests.get(resource));
    of_pod.map_or(containers, |it| it.approx_f64()) + amount(&spec.overhead)
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
    use kube_autoscaler_models::api::Container;

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
        assert!((request(&spec, "cpu") - 2.35).abs() < 1e-12);
        spec.init_containers.remove(1);
        assert!((request(&spec, "cpu") - 1.85).abs() < 1e-12);
        spec.requests = Some(requests(&[("cpu", "3")]));
        assert!((request(&spec, "cpu") - 3.1).abs() < 1e-12);
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
