//! Whether a cluster keeps pace: how long its parts take for an answer, again and again. Where the
//! controller manager's own server can't be asked, a Deployment of nobody's is edited: another
//! controller in the same process has to see that.
//!
//! A reconcile that does not come may be the controller's decision, or nobody could have made it in
//! time. What was asked here meanwhile, and how late this process itself was to ask, tells which.

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

use crate::engine::cluster::access::client::object;
use crate::engine::cluster::access::{client, namespaces};

/// How often each part is asked.
const BEAT: Duration = Duration::from_millis(100);

/// How often a Deployment is edited, each time with two requests of the controller's.
const SLOW_BEAT: Duration = Duration::from_millis(300);

/// How often it is looked whether that was seen.
const GLANCE: Duration = Duration::from_millis(20);

/// What that Deployment is called, and its namespace.
pub(crate) const PULSE: &str = "kube-lockstep-pulse";

/// Shorter ones are not kept.
const SHORTEST: Duration = Duration::from_millis(50);

/// So much longer than three of its quickest answers may one take of a part that has time for more.
const EASE: Duration = Duration::from_millis(20);

/// How long all answers have been such, where there is time for more.
const REST: Duration = Duration::from_millis(250);

/// A time in which a part gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    /// Who gave none.
    pub(crate) of: &'static str,
    begin: Timestamp,
    /// Nothing while it lasts.
    end: Option<Timestamp>,
}

impl Stall {
    /// How long it lasted, or lasts by now.
    pub(crate) fn length(&self, now: Timestamp) -> Duration {
        let length = self.end.unwrap_or(now).duration_since(self.begin);
        Duration::try_from(length).unwrap_or_default()
    }
}

/// How the parts of a cluster have answered.
#[derive(Debug, Default)]
pub(crate) struct LatencyProbe(Mutex<Beats>);

#[derive(Debug, Default)]
struct Beats {
    stalls: Vec<Stall>,
    /// Of each part, its quickest answer.
    quickest: HashMap<&'static str, Duration>,
    /// When the last answer came that took long for a part with time for more.
    uneasy: Option<Timestamp>,
}

impl Beats {
    /// Whether so long is long for a part with time for more.
    fn is_long(&self, of: &'static str, length: Duration) -> bool {
        self.quickest.get(of).is_some_and(|quickest| length > EASE + *quickest * 3)
    }
}

impl LatencyProbe {
    fn lock(&self) -> MutexGuard<'_, Beats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a part for a path, again and again. Ends with the set.
    pub(crate) fn watch(
        self: &Arc<LatencyProbe>,
        (of, client, path): (&'static str, Client, &'static str),
        tasks: &mut JoinSet<()>,
    ) {
        let ask = async move || {
            // A refusal is an answer; what it means is for others.
            while matches!(client::get(&client, path).await, Err(error) if !is_answer(&error)) {
                sleep(BEAT).await;
            }
        };
        tasks.spawn(self.clone().beat(of, BEAT, ask));
    }

    /// Lets the Deployment controller see another version of a Deployment, again and again. Ends
    /// with the set.
    ///
    /// # Errors
    /// If the API server refuses.
    pub(crate) async fn watch_controllers(
        self: &Arc<LatencyProbe>,
        client: &Client,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), String> {
        let refused = |error: kube::Error| format!("{PULSE}: {error}");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let post = PostParams::default();
        namespaces.create(&post, &namespaces::namespace(PULSE)?).await.map_err(refused)?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), PULSE);
        let labels = json!({ "app": "pulse" });
        let deployment = object(json!({
            "metadata": { "name": PULSE },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "app", "image": "none" }] },
                },
            },
        }))?;
        deployments.create(&post, &deployment).await.map_err(refused)?;
        // That it may be edited is seen now, or never.
        let params = PatchParams::default();
        let edit = Patch::Merge(json!({ "spec": { "minReadySeconds": 1 } }));
        deployments.patch(PULSE, &params, &edit).await.map_err(refused)?;
        deployments.get(PULSE).await.map_err(refused)?;
        let mut seconds = 1;
        let ask = async move || {
            // Any field but the template, of which there would be a new ReplicaSet.
            seconds = (seconds + 1) % 2;
            let patch = Patch::Merge(json!({ "spec": { "minReadySeconds": seconds } }));
            let patched = deployments.patch(PULSE, &PatchParams::default(), &patch).await;
            let Ok(Some(wanted)) = patched.map(|it| it.metadata.generation) else { return };
            let has_seen = |it: &Deployment| {
                it.status.as_ref().and_then(|it| it.observed_generation) >= Some(wanted)
            };
            loop {
                match deployments.get(PULSE).await {
                    Ok(deployment) if has_seen(&deployment) => break,
                    // Nobody will ever see that it was.
                    Err(error) if is_answer(&error) => break,
                    _ => sleep(GLANCE).await,
                }
            }
        };
        tasks.spawn(self.clone().beat("the kube-controller-manager", SLOW_BEAT, ask));
        Ok(())
    }

    /// Asks again and again, and keeps how long the answers take.
    async fn beat(
        self: Arc<LatencyProbe>,
        of: &'static str,
        every: Duration,
        mut ask: impl AsyncFnMut(),
    ) {
        loop {
            let asleep = Instant::now();
            sleep(every).await;
            // The time in which nobody here came to ask counts, too.
            let late = asleep.elapsed().saturating_sub(every);
            self.begin(of, Timestamp::now() - late);
            ask().await;
            self.end(of, Timestamp::now());
        }
    }

    fn begin(&self, of: &'static str, at: Timestamp) {
        self.lock().stalls.push(Stall { of, begin: at, end: None });
    }

    fn end(&self, of: &'static str, at: Timestamp) {
        let mut beats = self.lock();
        let is_open = |stall: &Stall| stall.of == of && stall.end.is_none();
        let Some(open) = beats.stalls.iter().rposition(is_open) else { return };
        let Some(stall) = beats.stalls.get_mut(open) else { return };
        stall.end = Some(at);
        let length = stall.length(at);
        if length < SHORTEST {
            beats.stalls.remove(open);
        }
        if beats.is_long(of, length) {
            beats.uneasy = Some(at);
        }
        let quickest = beats.quickest.entry(of).or_insert(length);
        *quickest = length.min(*quickest);
    }

    /// Whether all parts answer so quickly that they have time for more.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let beats = self.lock();
        let since = |at: Timestamp| now.duration_since(at).unsigned_abs();
        let mut open = beats.stalls.iter().filter(|stall| stall.end.is_none());
        beats.uneasy.is_none_or(|at| since(at) >= REST)
            && !open.any(|stall| beats.is_long(stall.of, stall.length(now)))
    }

    /// The longest of those that were, or are, since an instant.
    pub(crate) fn longest(&self, since: Timestamp, now: Timestamp) -> Option<Stall> {
        let beats = self.lock();
        let recent = beats.stalls.iter().filter(|stall| stall.end.is_none_or(|end| end >= since));
        recent.max_by_key(|stall| stall.length(now)).cloned()
    }
}

/// Whether it was said by the one who was asked: what is not there says nothing.
fn is_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_and_ongoing_stalls_count() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let pulse = LatencyProbe::default();
        pulse.begin("kube-apiserver", at(0));
        pulse.end("kube-apiserver", at(20));
        assert_eq!(pulse.longest(at(0), at(30)), None);
        pulse.begin("kube-apiserver", at(100));
        pulse.begin("kube-controller-manager", at(110));
        pulse.end("kube-controller-manager", at(310));
        let longest = |since, now| {
            let stall = pulse.longest(at(since), at(now))?;
            Some((stall.of, stall.length(at(now)).as_millis()))
        };
        assert_eq!(longest(0, 200), Some(("kube-controller-manager", 200)));
        assert_eq!(longest(0, 400), Some(("kube-apiserver", 300)));
        // One that was over before plays no part; one that lasts does.
        assert_eq!(longest(350, 400), Some(("kube-apiserver", 300)));
        pulse.end("kube-apiserver", at(500));
        assert_eq!(longest(501, 600), None);
    }

    #[test]
    fn a_control_plane_with_fast_responses_is_idle() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let pulse = LatencyProbe::default();
        let answer = |begin, end| {
            pulse.begin("far away", at(begin));
            pulse.end("far away", at(end));
        };
        answer(0, 40);
        answer(140, 280);
        assert!(pulse.is_idle(at(280)), "as long as three of its quickest, and a little longer");
        answer(380, 521);
        assert!(!pulse.is_idle(at(770)));
        assert!(pulse.is_idle(at(771)), "for a while it was");
        pulse.begin("far away", at(800));
        assert!(pulse.is_idle(at(940)));
        assert!(!pulse.is_idle(at(941)), "it has not answered yet");
    }
}
