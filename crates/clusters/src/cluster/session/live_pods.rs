//! The pods of a workload in a namespace, kept up to date by a watch: the pods that the real target
//! selects, or that match the scenario's selector if there is no target.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Error, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::observe::watch_retry::retried;
use crate::cluster::timeouts::SELECTOR_POLL_INTERVAL;
use crate::cluster::workload::resource_of;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::Workload;
use kube_lockstep_sim::world::RealPod;

/// The pods of a workload in a namespace.
#[derive(Debug)]
pub(crate) struct LivePods {
    namespace: String,
    /// The scenario's selector.
    selector: Arc<str>,
    resource: ApiResource,
    name: Arc<str>,
    seen: Mutex<Selected>,
}

#[derive(Debug)]
struct Selected {
    /// All pods of the namespace.
    pods: Writer<Pod>,
    text: String,
    /// `None` if the selector is invalid: it then selects nothing.
    selector: Option<Selector>,
    /// The reason why it is not the target's selector.
    why: Option<String>,
}

impl LivePods {
    /// No pods are known until [`LivePods::watch`] runs.
    pub(crate) fn new(namespace: &str, workload: &Workload) -> LivePods {
        let Workload { name, selector, .. } = workload;
        let resource = resource_of(workload);
        let seen = Selected {
            pods: Writer::default(),
            text: selector.to_string(),
            selector: Selector::parse(selector).ok(),
            why: None,
        };
        let (namespace, name) = (namespace.to_owned(), name.clone());
        LivePods { namespace, selector: selector.clone(), resource, name, seen: Mutex::new(seen) }
    }

    fn lock(&self) -> MutexGuard<'_, Selected> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A description for messages.
    pub(crate) fn describe(&self) -> String {
        let pods = self.pods(Timestamp::now());
        let seen = self.lock();
        let ready = pods.iter().filter(|pod| pod.ready).count();
        let of = match &seen.why {
            None => format!("{}/{}", self.target(), self.name),
            Some(why) => format!("{why}; its pods are selected by the scenario's selector"),
        };
        let many =
            if pods.len() == 1 { "1 pod".to_owned() } else { format!("{} pods", pods.len()) };
        format!("{of} ({}): {many}, {ready} ready", seen.text)
    }

    fn target(&self) -> String {
        kube_autoscaler_models::api::with_group(&self.resource.plural, &self.resource.group)
    }

    /// The selected pods in the order of their creation, with times relative to `epoch`.
    pub(crate) fn pods(&self, epoch: Timestamp) -> Vec<RealPod> {
        let seen = self.lock();
        let Some(selector) = &seen.selector else { return Vec::new() };
        let mut own = seen.pods.as_reader().state();
        own.retain(|pod| selector.matches(pod.labels()));
        own.sort_by_key(|pod| {
            let created = pod.metadata.creation_timestamp.as_ref().map(|it| it.0);
            (created, pod.name_any())
        });
        own.iter().map(|pod| real(pod, epoch)).collect()
    }

    /// Reads the target's selector. Returns true if it has changed.
    async fn update_selector(&self, client: &Client) -> bool {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &self.namespace, &self.resource);
        let target = format!("{}/{}", self.target(), self.name);
        let (text, why) = match api.get_scale(&self.name).await {
            Ok(scale) => match scale.status.and_then(|status| status.selector) {
                Some(selector) if !selector.is_empty() => (selector, None),
                _ => (self.selector.to_string(), Some(format!("{target} has no selector"))),
            },
            Err(Error::Api(status)) if status.code == 404 => {
                (self.selector.to_string(), Some(format!("there is no {target}")))
            }
            Err(Error::Api(status)) => {
                let why = format!("{target} can't be read ({})", status.message);
                (self.selector.to_string(), Some(why))
            }
            // Without a response, the selector is kept.
            Err(_) => return false,
        };
        let mut seen = self.lock();
        if seen.text == text && seen.why == why {
            return false;
        }
        seen.selector = Selector::parse(&text).ok();
        (seen.text, seen.why) = (text, why);
        true
    }

    /// Watches the pods and the target's selector until the future is dropped. Sets `ready` after
    /// the initial list, and sends changes of the target to `notes`.
    pub(crate) async fn watch(
        &self,
        client: &Client,
        metrics: &Metrics,
        ready: watch::Sender<bool>,
        notes: UnboundedSender<String>,
    ) {
        self.update_selector(client).await;
        let publish = || metrics.see(&self.namespace, |epoch| self.pods(epoch));
        let api: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let mut problem = String::new();
        let mut events = pin!(retried(api, watcher::Config::default(), |error| {
            let text = error.to_string();
            if text != problem {
                // The receiver is gone at the end.
                let _ = notes.send(format!("{}: pods: {text}", self.namespace));
                problem = text;
            }
        }));
        let watch_pods = async {
            while let Some(event) = events.next().await {
                self.lock().pods.apply_watcher_event(&event);
                match event {
                    Event::Init | Event::InitApply(_) => {}
                    Event::InitDone => {
                        publish();
                        ready.send_replace(true);
                    }
                    Event::Apply(_) | Event::Delete(_) => publish(),
                }
            }
        };
        let poll_selector = async {
            loop {
                tokio::time::sleep(SELECTOR_POLL_INTERVAL).await;
                if self.update_selector(client).await {
                    publish();
                    // The receiver is dropped at the end of the run.
                    let _ = notes.send(format!("{}: {}", self.namespace, self.describe()));
                }
            }
        };
        tokio::select! {
            () = watch_pods => {}
            () = poll_selector => {}
        }
    }
}

/// The properties of a pod that its metrics depend on.
fn real(pod: &Pod, epoch: Timestamp) -> RealPod {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    let start = status.and_then(|status| status.start_time.as_ref()).map_or(epoch, |it| it.0);
    let nanos = start.as_nanosecond() - epoch.as_nanosecond();
    let started = Time(i64::try_from(nanos).unwrap_or_default());
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    let sidecars = init.filter(|it| it.restart_policy.as_deref() == Some("Always"));
    RealPod {
        name: pod.name_any().into(),
        labels: pod.labels().clone(),
        containers: containers.chain(sidecars).map(|it| it.name.as_str().into()).collect(),
        started: (phase != "Pending").then_some(started),
        ready: is_ready && pod.metadata.deletion_timestamp.is_none(),
        over: matches!(phase, "Failed" | "Succeeded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn live_pods_are_read_from_their_status() {
        let pod = |status: serde_json::Value| -> Pod {
            serde_json::from_value(json!({
                "metadata": { "name": "web-1", "labels": { "app": "web" } },
                "spec": {
                    "initContainers": [
                        { "name": "once" }, { "name": "proxy", "restartPolicy": "Always" },
                    ],
                    "containers": [{ "name": "app" }],
                },
                "status": status,
            }))
            .expect("a pod")
        };
        let epoch: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let running = json!({
            "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": ready,
        });
        let seen = real(&pod(running.clone()), epoch);
        assert_eq!(seen.containers, ["app", "proxy"].map(Arc::from));
        assert_eq!(seen.started, Some(Time::from_secs(-60)));
        assert!(seen.ready && !seen.over);
        let mut going = pod(running);
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(epoch));
        assert!(!real(&going, epoch).ready, "the pod is being deleted");
        let pending = real(&pod(json!({})), epoch);
        assert_eq!((pending.started, pending.ready, pending.over), (None, false, false));
        assert!(real(&pod(json!({ "phase": "Failed" })), epoch).over);
    }
}
