//! Repeatedly measures the latency of a cluster's components. If the controller manager's own
//! endpoint is not reachable, a Deployment is edited instead, and another controller in the same
//! process has to observe the edit.
//!
//! If a reconcile is missing, either the controller decided so, or the machine was too busy. The
//! latencies at that time, and the delay of this process itself, distinguish the two.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::cluster::access::{client, namespaces};
use crate::cluster::manifests::deployment;
use crate::cluster::timeouts::{PROBE_EDIT_INTERVAL, PROBE_INTERVAL, PROBE_POLL_INTERVAL};
use crate::cluster::tolerances::SHORTEST_STALL;

/// The name of the edited Deployment, and of its namespace.
pub(crate) const PROBE_OBJECT: &str = "kube-lockstep-latency-probe";

/// Slack added to three times the fastest response before a component counts as busy.
const LATENCY_SLACK: Duration = Duration::from_millis(20);

/// A cluster is idle when no component was busy for this long.
const IDLE_FOR: Duration = Duration::from_millis(250);

/// A time in which a component did not respond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    pub component: &'static str,
    begin: Timestamp,
    /// `None`: the stall has not ended.
    end: Option<Timestamp>,
}

impl Stall {
    /// The length of the stall so far.
    pub(crate) fn length(&self, now: Timestamp) -> Duration {
        let length = self.end.unwrap_or(now).duration_since(self.begin);
        Duration::try_from(length).unwrap_or_default()
    }
}

/// A path of a component's HTTP server that is requested repeatedly.
pub(crate) struct Endpoint {
    pub component: &'static str,
    pub client: Client,
    pub path: &'static str,
}

/// The response times of a cluster's components.
#[derive(Debug, Default)]
pub(crate) struct LatencyProbe(Mutex<History>);

#[derive(Debug, Default)]
struct History {
    stalls: Vec<Stall>,
    /// The fastest response of each component.
    fastest: HashMap<&'static str, Duration>,
    /// The time of the last response of a busy component.
    busy: Option<Timestamp>,
}

impl History {
    /// Returns true if a component that takes this long to respond is busy.
    fn is_busy(&self, component: &'static str, length: Duration) -> bool {
        let fastest = self.fastest.get(component);
        fastest.is_some_and(|fastest| length > LATENCY_SLACK + *fastest * 3)
    }
}

impl LatencyProbe {
    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to probe an endpoint. The probe ends with the set.
    pub(crate) fn probe_endpoint(self: &Arc<Self>, endpoint: Endpoint, tasks: &mut JoinSet<()>) {
        let Endpoint { component, client, path } = endpoint;
        let request = async move || {
            // An error status is also a response.
            while matches!(client::get(&client, path).await, Err(error) if !is_response(&error)) {
                sleep(PROBE_INTERVAL).await;
            }
        };
        tasks.spawn(self.clone().repeat(component, PROBE_INTERVAL, request));
    }

    /// Starts to probe the Deployment controller: edits a Deployment, and waits until the
    /// controller has observed the edit. The probe ends with the set.
    ///
    /// # Errors
    /// If the API server rejects a request.
    pub(crate) async fn probe_controllers(
        self: &Arc<Self>,
        client: &Client,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), String> {
        let deployments = create_deployment(client).await?;
        let mut seconds = 1;
        let edit = async move || {
            // Not in the template: that would create a new ReplicaSet.
            seconds = (seconds + 1) % 2;
            let patch = Patch::Merge(json!({ "spec": { "minReadySeconds": seconds } }));
            let patched = deployments.patch(PROBE_OBJECT, &PatchParams::default(), &patch).await;
            let Ok(Some(generation)) = patched.map(|it| it.metadata.generation) else { return };
            let is_observed = |it: &Deployment| {
                it.status.as_ref().and_then(|it| it.observed_generation) >= Some(generation)
            };
            loop {
                match deployments.get(PROBE_OBJECT).await {
                    Ok(deployment) if is_observed(&deployment) => break,
                    // The Deployment was deleted: the edit will never be observed.
                    Err(error) if is_response(&error) => break,
                    _ => sleep(PROBE_POLL_INTERVAL).await,
                }
            }
        };
        tasks.spawn(self.clone().repeat("the kube-controller-manager", PROBE_EDIT_INTERVAL, edit));
        Ok(())
    }

    /// Sends requests to a component, and records how long the responses take.
    async fn repeat(
        self: Arc<Self>,
        component: &'static str,
        interval: Duration,
        mut request: impl AsyncFnMut(),
    ) {
        loop {
            let asleep = Instant::now();
            sleep(interval).await;
            // A delay of this process also counts.
            let late = asleep.elapsed().saturating_sub(interval);
            self.begin(component, Timestamp::now() - late);
            request().await;
            self.end(component, Timestamp::now());
        }
    }

    fn begin(&self, component: &'static str, at: Timestamp) {
        self.lock().stalls.push(Stall { component, begin: at, end: None });
    }

    fn end(&self, component: &'static str, at: Timestamp) {
        let mut history = self.lock();
        let is_open = |stall: &Stall| stall.component == component && stall.end.is_none();
        let Some(open) = history.stalls.iter().rposition(is_open) else { return };
        let Some(stall) = history.stalls.get_mut(open) else { return };
        stall.end = Some(at);
        let length = stall.length(at);
        if length < SHORTEST_STALL {
            history.stalls.remove(open);
        }
        if history.is_busy(component, length) {
            history.busy = Some(at);
        }
        let fastest = history.fastest.entry(component).or_insert(length);
        *fastest = length.min(*fastest);
    }

    /// Returns true if all components respond quickly, and have done so for a while.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let history = self.lock();
        let since = |at: Timestamp| now.duration_since(at).unsigned_abs();
        let mut open = history.stalls.iter().filter(|stall| stall.end.is_none());
        history.busy.is_none_or(|at| since(at) >= IDLE_FOR)
            && !open.any(|stall| history.is_busy(stall.component, stall.length(now)))
    }

    /// The longest stall that ended after `since`, or has not ended.
    pub(crate) fn longest(&self, since: Timestamp, now: Timestamp) -> Option<Stall> {
        let history = self.lock();
        let recent = history.stalls.iter().filter(|stall| stall.end.is_none_or(|end| end >= since));
        recent.max_by_key(|stall| stall.length(now)).cloned()
    }
}

/// Creates the Deployment, and tries each kind of request once: a missing permission fails here.
async fn create_deployment(client: &Client) -> Result<Api<Deployment>, String> {
    let refused = |error: kube::Error| format!("{PROBE_OBJECT}: {error}");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let post = PostParams::default();
    let namespace = namespaces::namespace(PROBE_OBJECT);
    namespaces.create(&post, &namespace).await.map_err(refused)?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), PROBE_OBJECT);
    let deployment = deployment(PROBE_OBJECT, 0, "app=latency-probe");
    deployments.create(&post, &deployment).await.map_err(refused)?;
    let edit = Patch::Merge(json!({ "spec": { "minReadySeconds": 1 } }));
    deployments.patch(PROBE_OBJECT, &PatchParams::default(), &edit).await.map_err(refused)?;
    deployments.get(PROBE_OBJECT).await.map_err(refused)?;
    Ok(deployments)
}

/// Returns true if the component itself responded.
fn is_response(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn an_open_stall_counts_until_now_and_a_short_stall_does_not() {
        let probe = LatencyProbe::default();
        probe.begin("kube-apiserver", at(0));
        probe.end("kube-apiserver", at(20));
        assert_eq!(probe.longest(at(0), at(30)), None);
        probe.begin("kube-apiserver", at(100));
        probe.begin("kube-controller-manager", at(110));
        probe.end("kube-controller-manager", at(310));
        let longest = |since, now| {
            let stall = probe.longest(at(since), at(now))?;
            Some((stall.component, stall.length(at(now)).as_millis()))
        };
        assert_eq!(longest(0, 200), Some(("kube-controller-manager", 200)));
        assert_eq!(longest(0, 400), Some(("kube-apiserver", 300)));
        // A stall that has not ended counts; a stall that ended earlier does not.
        assert_eq!(longest(350, 400), Some(("kube-apiserver", 300)));
        probe.end("kube-apiserver", at(500));
        assert_eq!(longest(501, 600), None);
    }

    #[test]
    fn a_cluster_is_idle_while_responses_are_nearly_as_fast_as_possible() {
        let probe = LatencyProbe::default();
        let respond = |begin, end| {
            probe.begin("far away", at(begin));
            probe.end("far away", at(end));
        };
        respond(0, 40);
        respond(140, 280);
        assert!(probe.is_idle(at(280)), "three times the fastest response and the slack");
        respond(380, 521);
        assert!(!probe.is_idle(at(770)));
        assert!(probe.is_idle(at(771)), "no component was busy for a while");
        probe.begin("far away", at(800));
        assert!(probe.is_idle(at(940)));
        assert!(!probe.is_idle(at(941)), "there is no response yet");
    }
}
