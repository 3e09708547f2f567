//! What is seen of the controller: one reconcile after the other.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::engine::cluster::clock::ScenarioClock;
use crate::engine::cluster::load::probe::{LatencyProbe, Stall};
use crate::engine::cluster::observe::action::{GAP, ObservedAction};
use crate::engine::cluster::observe::observability::Observability;
use crate::model::time::{Span, Time};

/// How long it is looked whether there are more events than there should be.
const AFTER_EVENTS: Duration = Duration::from_millis(200);

/// A reconcile as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct ObservedReconcile {
    /// When its first request came, and when its last one was answered.
    pub(crate) began: Time,
    pub(crate) ended: Time,
    /// What it did, in the protocol's words, in order.
    pub(crate) did: Vec<ObservedAction>,
}

/// The scale target of a scenario, by its name and its resource with the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TargetName {
    pub(crate) name: Arc<str>,
    pub(crate) resource: String,
}

impl TargetName {
    fn is_of(&self, did: &ObservedAction) -> bool {
        did.entry["name"] == *self.name && did.entry["resource"] == *self.resource
    }
}

/// The requests of the controller in a scenario's namespace, grouped into reconciles.
pub(crate) struct RequestStream {
    clock: ScenarioClock,
    target: TargetName,
    observability: Observability,
    probe: Arc<LatencyProbe>,
    requests: UnboundedReceiver<ObservedAction>,
    /// A reconcile without a request for this long counts as over.
    quiet: Duration,
    /// Requests of one reconcile are closer than this, and requests of two reconciles are not.
    apart: Span,
    /// Whether requests may have been missed.
    gap: bool,
    /// Requests that arrived before their reconcile was looked for.
    ahead: VecDeque<ObservedAction>,
    /// All events so far.
    events: Vec<ObservedAction>,
}

impl RequestStream {
    /// The requests of a controller that reconciles once each `period`.
    pub(crate) fn new(
        requests: UnboundedReceiver<ObservedAction>,
        target: TargetName,
        clock: ScenarioClock,
        period: Span,
        observability: Observability,
        probe: Arc<LatencyProbe>,
    ) -> RequestStream {
        let fifth = Duration::from_nanos(period.0.unsigned_abs()) / 5;
        RequestStream {
            clock,
            target,
            observability,
            probe,
            requests,
            quiet: fifth.clamp(Duration::from_millis(50), Duration::from_millis(500)),
            apart: Span(period.0 / 2),
            gap: false,
            ahead: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// The scenario starts at another instant.
    pub(crate) fn set_clock(&mut self, clock: ScenarioClock) {
        self.clock = clock;
    }

    /// The longest time since `since` in which a component of the cluster did not respond.
    pub(crate) fn stall(&self, since: Time) -> Option<(&'static str, Span)> {
        let now = Timestamp::now();
        let stall: Stall = self.probe.longest(self.clock.instant(since), now)?;
        let length = i64::try_from(stall.length(now).as_nanos()).unwrap_or(i64::MAX);
        Some((stall.of, Span(length)))
    }

    /// Waits for the next reconcile to begin, until an instant. Nothing if none began by then.
    pub(crate) async fn next_tick(&mut self, until: Time) -> Option<ObservedReconcile> {
        let next = self.next_by(until).await?;
        let (began, ended) = (self.clock.time(next.at), self.clock.time(next.done));
        Some(ObservedReconcile { began, ended, did: vec![next] })
    }

    /// Waits until something of a reconcile is told, until an instant. Whether something was.
    pub(crate) async fn is_told(&mut self, until: Time) -> bool {
        if let Some(next) = self.next_by(until).await {
            self.ahead.push_front(next);
        }
        !self.ahead.is_empty()
    }

    /// What is told next, until an instant. Events are put aside: they are written by the way, and
    /// may come much later than their reconcile.
    async fn next_by(&mut self, until: Time) -> Option<ObservedAction> {
        if let Some(next) = self.ahead.pop_front() {
            return Some(next);
        }
        loop {
            let left = (until - self.clock.now()).0.max(0).unsigned_abs();
            let next = timeout(Duration::from_nanos(left), self.requests.recv()).await.ok()??;
            if let Some(next) = self.put_aside(next) {
                return Some(next);
            }
        }
    }

    /// Gives what is told if it is of a reconcile, and no event.
    fn put_aside(&mut self, next: ObservedAction) -> Option<ObservedAction> {
        match next.what {
            GAP => self.gap = true,
            "event" => self.events.push(next),
            _ => return Some(next),
        }
        None
    }

    /// Whether something of a reconcile was told that nobody has looked at.
    pub(crate) fn has_more(&mut self) -> bool {
        while let Ok(next) = self.requests.try_recv() {
            let next = self.put_aside(next);
            self.ahead.extend(next);
        }
        !self.ahead.is_empty()
    }

    /// The last size that the controller gave the target after `since`, as far as it is known.
    pub(crate) fn size_since(&mut self, since: Time) -> Option<i64> {
        self.has_more();
        let later = self.ahead.iter().filter(|it| self.clock.time(it.at) > since);
        last_size(later, &self.target)
    }

    /// Whether something that the controller did may have been missed.
    pub(crate) fn has_gap(&self) -> bool {
        self.gap
    }

    /// Waits for the rest of a reconcile: for as many requests as it can have at the least, or at
    /// all if it has more than that, no longer than until an instant; for still more, but not long;
    /// and then for its silence. What it writes last is the status, if it is upstream's; of another
    /// nobody knows how many there are.
    pub(crate) async fn rest_of(
        &mut self,
        tick: &mut ObservedReconcile,
        many: &BTreeSet<usize>,
        until: Time,
    ) {
        let upstreams = !many.is_empty();
        let is_last =
            |it: &ObservedAction| it.what == "updateStatus" && it.entry["error"].is_null();
        let linger = self.observability.linger;
        let mut last = tick.did.iter().any(is_last);
        let quiet = Span(i64::try_from(self.quiet.as_nanos()).unwrap_or(0));
        let mut held = Span(quiet.0 / 2);
        loop {
            let silent = self.clock.now() + quiet;
            let has = tick.did.len();
            let next = many.range(has..).next();
            let limit = match next {
                _ if many.first().is_some_and(|least| has < *least) => silent.max(until),
                _ if last && upstreams && linger == Span::ZERO => break,
                // Another watch may still have something to tell.
                _ if last && upstreams => self.clock.now() + linger,
                // Without the scale it would have had as many.
                _ if upstreams && owes_status(&tick.did) => silent.max(until),
                // Nothing ends there.
                Some(next) if *next > has => silent.max(until),
                Some(_) if many.last().is_some_and(|most| has < *most) => {
                    silent.max(tick.began + self.apart)
                }
                _ => silent,
            };
            match self.next_by(limit).await {
                // The next reconcile, when this one should have done more.
                Some(next) if self.is_of_next(&next, tick, upstreams) => {
                    self.ahead.push_front(next);
                    break;
                }
                Some(next) => {
                    tick.ended = tick.ended.max(self.clock.time(next.done));
                    last |= is_last(&next);
                    tick.did.push(next);
                }
                // While nothing is answered, silence says nothing.
                None if upstreams
                    && self.clock.now() < until
                    && self.held_since(tick.ended) > held =>
                {
                    held = self.held_since(tick.ended);
                }
                None => break,
            }
        }
        // Requests are told when they are answered, by two that know nothing of each other.
        tick.did.sort_by_key(|it| it.at);
        let began = tick.did.iter().map(|it| self.clock.time(it.at)).min();
        let ended = tick.did.iter().map(|it| self.clock.time(it.done)).max();
        (tick.began, tick.ended) = (began.unwrap_or(tick.began), ended.unwrap_or(tick.ended));
    }

    /// For how long at most a part of the cluster has given no answer since an instant.
    pub(crate) fn held_since(&self, since: Time) -> Span {
        self.stall(since).map_or(Span::ZERO, |(_, length)| length)
    }

    /// What tells that this is what was left of the reconcile before: upstream's begins by reading
    /// the scale. Whether it does is for the model to say.
    pub(crate) fn is_rest(&self, tick: &ObservedReconcile, reads: bool) -> Option<String> {
        let first = tick.did.first()?;
        let writes = first.what == "updateScale" || reads && first.what == "updateStatus";
        let is_rest = self.observability.scope.scale_reads && writes;
        is_rest.then(|| {
            let at = self.clock.time(first.at);
            format!("what was done at {at} seems to be of the reconcile before, which was held up")
        })
    }

    /// Why a reconcile of upstream's controller can't be compared, if it can't. At `settled` the
    /// target's status had become `status_replicas`.
    pub(crate) fn is_torn(
        &self,
        tick: &ObservedReconcile,
        settled: Time,
        status_replicas: i32,
    ) -> Option<String> {
        if tick.began >= settled
            && let Some(why) = self.is_in_motion(tick, status_replicas)
        {
            return Some(why);
        }
        let write = tick.did.iter().find(|did| is_conflict(did))?;
        let at = self.clock.time(write.at);
        Some(format!("the target was changed by others while a reconcile scaled it at {at}"))
    }

    /// The target's own controller may write its status once more after the pods are as they should
    /// be, if pods were replaced at once.
    fn is_in_motion(&self, tick: &ObservedReconcile, was: i32) -> Option<String> {
        let read = tick.did.iter().find(|did| did.what == "getScale")?;
        let told = read.entry["statusReplicas"].as_i64()?;
        (self.target.is_of(read) && told != i64::from(was)).then(|| {
            let at = self.clock.time(read.at);
            format!("the target told of {told} replicas at {at}, after it had told of {was}")
        })
    }

    /// Whether that is of a reconcile after this one. Upstream's begins by reading the scale, and
    /// reads it again only if it has changed: all else is of this one, however long that takes.
    fn is_of_next(&self, next: &ObservedAction, tick: &ObservedReconcile, upstreams: bool) -> bool {
        let apart = self.clock.time(next.at) - tick.ended;
        if !upstreams || !self.observability.scope.scale_reads {
            return apart > self.apart;
        }
        let reads = |did: &ObservedAction| did.what == "getScale";
        let conflict =
            |did: &ObservedAction| did.what == "updateScale" && !did.entry["error"].is_null();
        let asks = tick.did.iter().any(|did| !reads(did)) && !tick.did.last().is_some_and(conflict);
        reads(next) && (apart > self.apart || asks && apart > Span::ZERO)
    }

    /// Waits until so many events were written since t=0, no longer than until an instant, and
    /// whether there are more. Gives all that were, in order.
    pub(crate) async fn events(&mut self, many: usize, until: Time) -> &[ObservedAction] {
        let mut goes_on = !self.ahead.is_empty();
        loop {
            let left = match self.events.len() < many {
                true => Duration::from_nanos((until - self.clock.now()).0.max(0).unsigned_abs()),
                // Those of a reconcile after the end are none of this.
                false if goes_on => break,
                false => AFTER_EVENTS,
            };
            match timeout(left, self.requests.recv()).await {
                Ok(Some(next)) if next.what == "event" => self.events.push(next),
                Ok(Some(next)) if next.what == GAP => self.gap = true,
                Ok(Some(_)) => goes_on = true,
                Ok(None) | Err(_) => break,
            }
        }
        &self.events
    }
}

/// The size that was written last of a target, if one was.
fn last_size<'a>(
    did: impl DoubleEndedIterator<Item = &'a ObservedAction>,
    target: &TargetName,
) -> Option<i64> {
    let scaled = |it: &&ObservedAction| it.what == "updateScale" && it.entry["error"].is_null();
    did.filter(|it| target.is_of(it)).rfind(scaled)?.entry["replicas"].as_i64()
}

/// Whether a scale was written, and the status that tells of it was not: upstream's always does
/// that, since the time of the last change is in it. After a conflict it is tried again first.
fn owes_status(did: &[ObservedAction]) -> bool {
    let scaled = |it: &&ObservedAction| {
        it.what == "updateScale" && (it.entry["error"].is_null() || is_conflict(it))
    };
    let scale = did.iter().filter(scaled).map(|it| it.at).max();
    scale.is_some_and(|at| !did.iter().any(|it| it.what == "updateStatus" && it.at >= at))
}

/// Whether a scale was written that somebody else had changed since it was read.
fn is_conflict(did: &ObservedAction) -> bool {
    let error = did.entry["error"].as_str().unwrap_or_default();
    did.what == "updateScale" && error.contains("the object has been modified")
}

impl ObservedReconcile {
    /// Leaves out each attempt that met a conflict, and the read after it, where the next attempt
    /// was to write the same: whether somebody comes between is chance, and nothing else comes of
    /// it.
    ///
    /// Upstream: pkg/controller/podautoscaler/horizontal.go, and client-go, util/retry
    pub(crate) fn forget_retries(&mut self) {
        let is_retried = |three: &[ObservedAction]| match three {
            [lost, read, next] => {
                let same = ["name", "resource", "replicas"];
                is_conflict(lost)
                    && (read.what, next.what) == ("getScale", "updateScale")
                    && same.iter().all(|field| lost.entry[field] == next.entry[field])
            }
            _ => false,
        };
        while let Some(place) = self.did.windows(3).position(is_retried) {
            self.did.drain(place..place + 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn did(all: &[(&'static str, Value)]) -> Vec<ObservedAction> {
        let did = (0..).zip(all).map(|(second, (what, entry))| {
            let at = Timestamp::from_second(second).unwrap();
            ObservedAction { at, done: at, what, by: String::new(), entry: entry.clone() }
        });
        did.collect()
    }

    fn owes(all: &[(&'static str, Value)]) -> bool {
        owes_status(&did(all))
    }

    /// What is left of a reconcile that writes these sizes, and meets a conflict each time but the
    /// last.
    fn left_of(sizes: &[i32]) -> Vec<&'static str> {
        let (last, lost) = sizes.split_last().unwrap();
        let mut all = vec![("getScale", json!({}))];
        for replicas in lost {
            let error = "the object has been modified; please apply your changes";
            all.push(("updateScale", json!({ "replicas": replicas, "error": error })));
            all.push(("getScale", json!({})));
        }
        all.push(("updateScale", json!({ "replicas": last })));
        let mut tick = ObservedReconcile { began: Time::ZERO, ended: Time::ZERO, did: did(&all) };
        tick.forget_retries();
        tick.did.into_iter().map(|it| it.what).collect()
    }

    #[test]
    fn the_last_write_of_the_targets_replicas_counts() {
        let write = |name: &str, replicas: i32, error: Value| {
            let mut entry = json!({ "name": name, "resource": "deployments.apps" });
            (entry["replicas"], entry["error"]) = (replicas.into(), error);
            ("updateScale", entry)
        };
        let target = TargetName { name: "web".into(), resource: "deployments.apps".to_owned() };
        let size = |all: &[(&'static str, Value)]| last_size(did(all).iter(), &target);
        let (web, db) = (write("web", 3, Value::Null), write("db", 9, Value::Null));
        let refused = write("web", 5, json!("not allowed"));
        let read = ("getScale", json!({ "name": "web", "resource": "deployments.apps" }));
        assert_eq!(size(&[db.clone(), refused.clone(), read.clone()]), None);
        assert_eq!(size(&[web.clone(), db, refused, read]), Some(3));
        assert_eq!(size(&[web, write("web", 4, Value::Null)]), Some(4));
    }

    #[test]
    fn retried_attempts_are_omitted() {
        assert_eq!(left_of(&[3]), ["getScale", "updateScale"]);
        assert_eq!(left_of(&[3, 3, 3]), ["getScale", "updateScale"]);
        // That is another decision.
        assert_eq!(left_of(&[3, 4]), ["getScale", "updateScale", "getScale", "updateScale"]);
    }

    #[test]
    fn a_scale_write_is_followed_by_a_status_write() {
        let (read, scaled) = (("getScale", json!({})), ("updateScale", json!({})));
        let status = ("updateStatus", json!({}));
        assert!(owes(&[read.clone(), scaled.clone()]));
        assert!(!owes(&[read.clone(), status.clone()]));
        assert!(!owes(&[read.clone(), scaled.clone(), status.clone()]));
        // That one is of the reconcile before.
        assert!(owes(&[read.clone(), status, scaled]));
        assert!(!owes(&[read.clone(), ("updateScale", json!({ "error": "not allowed" }))]));
        let lost = ("updateScale", json!({ "error": "the object has been modified" }));
        assert!(owes(&[read.clone(), lost, read]));
    }
}
