//! What is seen of the controller: one reconcile after the other.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;

use crate::engine::cluster::observe::audit_log::Did;
use crate::engine::cluster::observe::watches::GAP;
use crate::engine::cluster::session::scenario_session::Scene;
use crate::model::api::with_group;
use crate::model::time::{Span, Time};

/// How long it is looked whether there are more events than there should be.
const AFTER_EVENTS: Duration = Duration::from_millis(200);

/// A reconcile as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// When its first request came, and when its last one was answered.
    pub(crate) began: Time,
    pub(crate) ended: Time,
    /// What it did, in the protocol's words, in order.
    pub(crate) did: Vec<Did>,
}

impl Scene {
    /// Waits for the next reconcile to begin, until an instant. Nothing if none began by then.
    pub(crate) async fn next_tick(&mut self, until: Time) -> Option<Tick> {
        let next = self.next_by(until).await?;
        let (began, ended) = (self.time(next.at), self.time(next.done));
        Some(Tick { began, ended, did: vec![next] })
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
    async fn next_by(&mut self, until: Time) -> Option<Did> {
        if let Some(next) = self.ahead.pop_front() {
            return Some(next);
        }
        loop {
            let left = (until - self.now()).0.max(0).unsigned_abs();
            let next = timeout(Duration::from_nanos(left), self.did.recv()).await.ok()??;
            if let Some(next) = self.put_aside(next) {
                return Some(next);
            }
        }
    }

    /// Gives what is told if it is of a reconcile, and no event.
    fn put_aside(&mut self, next: Did) -> Option<Did> {
        match next.what {
            GAP => self.gap = true,
            "event" => self.events.push(next),
            _ => return Some(next),
        }
        None
    }

    /// Whether something of a reconcile was told that nobody has looked at.
    pub(crate) fn has_more(&mut self) -> bool {
        while let Ok(next) = self.did.try_recv() {
            let next = self.put_aside(next);
            self.ahead.extend(next);
        }
        !self.ahead.is_empty()
    }

    /// Whether a reconcile came meanwhile and gave the target another size than the world says.
    pub(crate) fn is_overtaken(&mut self) -> bool {
        self.has_more();
        let resource = with_group(&self.resource.plural, &self.resource.group);
        let since = self.ahead.iter().filter(|it| self.time(it.at) > self.sized);
        let size = last_size(since, (&self.name, &resource));
        size.is_some_and(|size| size != i64::from(self.replicas))
    }

    /// Whether something that the controller did may have been missed.
    pub(crate) fn has_gap(&self) -> bool {
        self.gap
    }

    /// Waits for the rest of a reconcile: for as many requests as it can have at the least, or at
    /// all if it has more than that, no longer than until an instant; for still more, but not long;
    /// and then for its silence. What it writes last is the status, if it is upstream's; of another
    /// nobody knows how many there are.
    pub(crate) async fn rest_of(&mut self, tick: &mut Tick, many: &BTreeSet<usize>, until: Time) {
        let upstreams = !many.is_empty();
        let is_last = |it: &Did| it.what == "updateStatus" && it.entry["error"].is_null();
        let linger = self.stage.sight.linger;
        let mut last = tick.did.iter().any(is_last);
        let quiet = Span(i64::try_from(self.quiet.as_nanos()).unwrap_or(0));
        let mut held = Span(quiet.0 / 2);
        loop {
            let silent = self.now() + quiet;
            let has = tick.did.len();
            let next = many.range(has..).next();
            let limit = match next {
                _ if many.first().is_some_and(|least| has < *least) => silent.max(until),
                _ if last && upstreams && linger == Span::ZERO => break,
                // Another watch may still have something to tell.
                _ if last && upstreams => self.now() + linger,
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
                    tick.ended = tick.ended.max(self.time(next.done));
                    last |= is_last(&next);
                    tick.did.push(next);
                }
                // While nothing is answered, silence says nothing.
                None if upstreams && self.now() < until && self.held_since(tick.ended) > held => {
                    held = self.held_since(tick.ended);
                }
                None => break,
            }
        }
        // Requests are told when they are answered, by two that know nothing of each other.
        tick.did.sort_by_key(|it| it.at);
        let began = tick.did.iter().map(|it| self.time(it.at)).min();
        let ended = tick.did.iter().map(|it| self.time(it.done)).max();
        (tick.began, tick.ended) = (began.unwrap_or(tick.began), ended.unwrap_or(tick.ended));
    }

    /// For how long at most a part of the cluster has given no answer since an instant.
    pub(crate) fn held_since(&self, since: Time) -> Span {
        self.stall(since).map_or(Span::ZERO, |(_, length)| length)
    }

    /// What tells that this is what was left of the reconcile before: upstream's begins by reading
    /// the scale. Whether it does is for the model to say.
    pub(crate) fn is_rest(&self, tick: &Tick, reads: bool) -> Option<String> {
        let first = tick.did.first()?;
        let writes = first.what == "updateScale" || reads && first.what == "updateStatus";
        let is_rest = self.stage.sight.scope.scale_reads && writes;
        is_rest.then(|| {
            let at = self.time(first.at);
            format!("what was done at {at} seems to be of the reconcile before, which was held up")
        })
    }

    /// Why a reconcile of upstream's can't be compared, if it can't.
    pub(crate) fn is_torn(&self, tick: &Tick) -> Option<String> {
        if let Some(why) = self.is_in_motion(tick) {
            return Some(why);
        }
        let write = tick.did.iter().find(|did| is_conflict(did))?;

        let at = self.time(write.at);
        Some(format!("the target was changed by others while a reconcile scaled it at {at}"))
    }

    /// What tells that the target's own controller was still at work, after its status was as it
    /// should be: of pods that were replaced at once, it may write what is over by then.
    fn is_in_motion(&self, tick: &Tick) -> Option<String> {
        if tick.began < self.settled {
            return None;
        }
        let read = tick.did.iter().find(|did| did.what == "getScale")?;
        let told = read.entry["statusReplicas"].as_i64()?;
        let resource = with_group(&self.resource.plural, &self.resource.group);
        let is_target = read.entry["name"] == *self.name && read.entry["resource"] == *resource;
        (is_target && told != i64::from(self.status_replicas)).then(|| {
            let (at, was) = (self.time(read.at), self.status_replicas);
            format!("the target told of {told} replicas at {at}, after it had told of {was}")
        })
    }

    /// Whether that is of a reconcile after this one. Upstream's begins by reading the scale, and
    /// reads it again only if it has changed: all else is of this one, however long that takes.
    fn is_of_next(&self, next: &Did, tick: &Tick, upstreams: bool) -> bool {
        let apart = self.time(next.at) - tick.ended;
        if !upstreams || !self.stage.sight.scope.scale_reads {
            return apart > self.apart;
        }
        let reads = |did: &Did| did.what == "getScale";
        let conflict = |did: &Did| did.what == "updateScale" && !did.entry["error"].is_null();
        let asks = tick.did.iter().any(|did| !reads(did)) && !tick.did.last().is_some_and(conflict);
        reads(next) && (apart > self.apart || asks && apart > Span::ZERO)
    }

    /// Waits until so many events were written since t=0, no longer than until an instant, and
    /// whether there are more. Gives all that were, in order.
    pub(crate) async fn events(&mut self, many: usize, until: Time) -> &[Did] {
        let mut goes_on = !self.ahead.is_empty();
        loop {
            let left = match self.events.len() < many {
                true => Duration::from_nanos((until - self.now()).0.max(0).unsigned_abs()),
                // Those of a reconcile after the end are none of this.
                false if goes_on => break,
                false => AFTER_EVENTS,
            };
            match timeout(left, self.did.recv()).await {
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
    did: impl DoubleEndedIterator<Item = &'a Did>,
    (name, resource): (&str, &str),
) -> Option<i64> {
    let of_target = |it: &&Did| it.entry["name"] == *name && it.entry["resource"] == *resource;
    let scaled = |it: &&Did| it.what == "updateScale" && it.entry["error"].is_null();
    did.filter(of_target).rfind(scaled)?.entry["replicas"].as_i64()
}

/// Whether a scale was written, and the status that tells of it was not: upstream's always does
/// that, since the time of the last change is in it. After a conflict it is tried again first.
fn owes_status(did: &[Did]) -> bool {
    let scaled =
        |it: &&Did| it.what == "updateScale" && (it.entry["error"].is_null() || is_conflict(it));
    let scale = did.iter().filter(scaled).map(|it| it.at).max();
    scale.is_some_and(|at| !did.iter().any(|it| it.what == "updateStatus" && it.at >= at))
}

/// Whether a scale was written that somebody else had changed since it was read.
fn is_conflict(did: &Did) -> bool {
    let error = did.entry["error"].as_str().unwrap_or_default();
    did.what == "updateScale" && error.contains("the object has been modified")
}

impl Tick {
    /// Leaves out each attempt that met a conflict, and the read after it, where the next attempt
    /// was to write the same: whether somebody comes between is chance, and nothing else comes of
    /// it.
    ///
    /// Upstream: pkg/controller/podautoscaler/horizontal.go, and client-go, util/retry
    pub(crate) fn forget_retries(&mut self) {
        let is_retried = |three: &[Did]| match three {
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
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn did(all: &[(&'static str, Value)]) -> Vec<Did> {
        let did = (0..).zip(all).map(|(second, (what, entry))| {
            let at = Timestamp::from_second(second).unwrap();
            Did { at, done: at, what, by: String::new(), entry: entry.clone() }
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
        let mut tick = Tick { began: Time::ZERO, ended: Time::ZERO, did: did(&all) };
        tick.forget_retries();
        tick.did.into_iter().map(|it| it.what).collect()
    }

    #[test]
    fn the_size_that_counts_is_the_last_one_that_was_written_of_the_target() {
        let write = |name: &str, replicas: i32, error: Value| {
            let mut entry = json!({ "name": name, "resource": "deployments.apps" });
            (entry["replicas"], entry["error"]) = (replicas.into(), error);
            ("updateScale", entry)
        };
        let size =
            |all: &[(&'static str, Value)]| last_size(did(all).iter(), ("web", "deployments.apps"));
        let (web, db) = (write("web", 3, Value::Null), write("db", 9, Value::Null));
        let refused = write("web", 5, json!("not allowed"));
        let read = ("getScale", json!({ "name": "web", "resource": "deployments.apps" }));
        assert_eq!(size(&[db.clone(), refused.clone(), read.clone()]), None);
        assert_eq!(size(&[web.clone(), db, refused, read]), Some(3));
        assert_eq!(size(&[web, write("web", 4, Value::Null)]), Some(4));
    }

    #[test]
    fn an_attempt_that_is_made_again_is_left_out() {
        assert_eq!(left_of(&[3]), ["getScale", "updateScale"]);
        assert_eq!(left_of(&[3, 3, 3]), ["getScale", "updateScale"]);
        // That is another decision.
        assert_eq!(left_of(&[3, 4]), ["getScale", "updateScale", "getScale", "updateScale"]);
    }

    #[test]
    fn a_scale_that_was_written_has_a_status_to_come() {
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
