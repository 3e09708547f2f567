//! The samples of the fake metrics API: from the scenario to the API, and as they were served.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::metrics_api::json::{ContainerSample, PodSample};
use crate::cluster::metrics_api::state::Metrics;
use kube_autoscaler_models::api::{ApiError, ContainerMetrics, PodSpec};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{ContainerUsage, GoTime, ObjectName, PodMetrics};
use kube_lockstep_sim::world::{Change, Faults, PodMetricsChange, Samples};

/// The window of each sample, which the recommender does not read.
const WINDOW: Span = Span::from_secs(30);

/// The name of the template of all samples. The recommender does not select samples by labels.
const TEMPLATE: &str = "pod";

/// Serves samples in a namespace from now on, in place of those of the pods in `before`.
pub(super) fn serve(
    metrics: &Metrics,
    namespace: &str,
    epoch: GoTime,
    before: Vec<Arc<str>>,
    samples: &Result<Arc<Vec<PodMetrics>>, String>,
) {
    let labels = BTreeMap::new();
    let (name, spec) = (TEMPLATE.into(), PodSpec::default());
    let (set, error) = match samples {
        Ok(samples) => (samples.iter().map(|it| sample(it, epoch)).collect(), None),
        Err(why) => (Vec::new(), Some(unavailable(why))),
    };
    let window = Some(WINDOW);
    let served = PodMetricsChange { window, set, delete: before, ..PodMetricsChange::default() };
    metrics.apply(namespace, &Change::PodTemplate { name, labels, spec });
    metrics
        .apply(namespace, &Change::Faults(Faults { list_pod_metrics: error, ..Faults::default() }));
    metrics.apply(namespace, &Change::PodMetrics(served));
}

fn unavailable(why: &str) -> ApiError {
    ApiError { code: 503, reason: "ServiceUnavailable".to_owned(), message: why.into() }
}

fn sample(metrics: &PodMetrics, epoch: GoTime) -> Samples {
    let containers = metrics.containers.iter().map(|usage| {
        let cpu = usage.cpu.map(|it| ("cpu".into(), Quantity::from_milli(it, Format::DecimalSI)));
        let memory = usage.memory;
        let memory = memory.map(|it| ("memory".into(), Quantity::from_units(it, Format::BinarySI)));
        ContainerMetrics {
            name: usage.container.clone(),
            usage: cpu.into_iter().chain(memory).collect(),
        }
    });
    Samples {
        pods: Shared::new(vec![metrics.pod.name.clone()]),
        template: TEMPLATE.into(),
        timestamp: Some(Time(metrics.timestamp.since(epoch).0)),
        containers: containers.collect(),
    }
}

/// Reads samples as they were served. The recommender rounds amounts up.
pub(super) fn read(served: &[PodSample]) -> Vec<PodMetrics> {
    let usage = |ContainerSample { name, usage }: &ContainerSample| ContainerUsage {
        container: name.clone(),
        cpu: usage.get("cpu").map(Quantity::milli),
        memory: usage.get("memory").map(Quantity::value),
    };
    let text = |name: &Option<String>| name.as_deref().unwrap_or_default().into();
    let read = |PodSample { metadata, timestamp, containers, .. }: &PodSample| PodMetrics {
        pod: ObjectName { namespace: text(&metadata.namespace), name: text(&metadata.name) },
        timestamp: GoTime::from_timestamp(*timestamp),
        containers: containers.iter().map(usage).collect(),
    };
    served.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn samples_are_read_as_they_were_served() {
        let epoch = GoTime::from_unix(1_000_000);
        let usage = |container: &str, cpu, memory| ContainerUsage {
            container: container.into(),
            cpu,
            memory,
        };
        let samples = vec![PodMetrics {
            pod: ObjectName::new("shop", "web-0"),
            timestamp: epoch.plus(Span::from_secs(4)),
            containers: vec![usage("app", Some(1250), Some(3 << 20)), usage("log", None, Some(1))],
        }];
        let metrics = Metrics::for_cluster(true);
        let (to, _) = unbounded_channel();
        let start = Timestamp::from_second(epoch.unix()).expect("a time");
        metrics.open_samples("shop", start, to);
        serve(&metrics, "shop", epoch, Vec::new(), &Ok(Arc::new(samples.clone())));
        let mut namespaces = metrics.lock();
        let served = namespaces.get_mut("shop").expect("it is served").now();
        let pods = served
            .cluster
            .pod_metrics()
            .expect("no error")
            .iter()
            .map(|pod| PodSample::new("shop", &pod.name, served.timestamp(pod.timestamp), pod));
        let pods: Vec<_> = pods.collect();
        let answer = serde_json::to_value(&pods).expect("JSON");
        assert_eq!(answer[0]["timestamp"], "1970-01-12T13:46:44Z");
        assert_eq!(answer[0]["containers"][0]["usage"]["cpu"], "1250m");
        assert_eq!(read(&pods), samples);
    }
}
