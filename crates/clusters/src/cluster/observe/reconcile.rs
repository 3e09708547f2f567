//! The observed actions of the controller, grouped into reconciles.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::cluster::clock::ScenarioClock;
use crate::cluster::load::probe::{LatencyProbe, Stall};
use crate::cluster::observe::action::ObservedAction;
use crate::cluster::observe::observability::Observability;
use crate::cluster::tolerances::{
    MAX_SILENCE, MIN_SILENCE, RECONCILE_DISTANCE_DIVISOR, SILENCE_DIVISOR, STALLED_SILENCE_DIVISOR,
    SURPLUS_EVENT_TIMEOUT,
};
use kube_autoscaler_models::observation::{ControllerAction, ScaleReplicas, ScaleWrite};
use kube_autoscaler_models::time::{Span, Time};

/// A reconcile as it was observed.
#[derive(Clone, Debug)]
pub(crate) struct ObservedReconcile {
    /// The time when its first request arrived.
    pub began: Time,
    /// The time when its last request was answered.
    pub ended: Time,
    /// The actions, in the order in which the requests arrived.
    pub actions: Vec<ObservedAction>,
}

/// The state of a cluster that matches the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SettledState {
    /// The time since when it has matched.
    pub(crate) settled: Time,
    /// The target's `status.replicas` in the world.
    pub status_replicas: i32,
}

/// The scale target of a scenario, by its name and its resource with the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TargetName {
    pub name: Arc<str>,
    pub resource: String,
}

impl TargetName {
    fn is(&self, name: &str, resource: &str) -> bool {
        *self.name == *name && self.resource == resource
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
    /// The minimum time between requests of different reconciles.
    apart: Span,
    /// Requests that arrived before their reconcile was awaited.
    ahead: VecDeque<ObservedAction>,
    /// All events so far.
    events: Vec<ObservedAction>,
}

impl RequestStream {
    /// Groups the requests of a controller that reconciles once per `period`.
    pub(crate) fn new(
        requests: UnboundedReceiver<ObservedAction>,
        target: TargetName,
        clock: ScenarioClock,
        period: Span,
        observability: Observability,
        probe: Arc<LatencyProbe>,
    ) -> RequestStream {
        let quiet = Duration::from_nanos(period.0.unsigned_abs()) / SILENCE_DIVISOR;
        RequestStream {
            clock,
            target,
            observability,
            probe,
            requests,
            quiet: quiet.clamp(MIN_SILENCE, MAX_SILENCE),
            apart: Span(period.0 / RECONCILE_DISTANCE_DIVISOR),
            ahead: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Moves the start of the scenario.
    pub(crate) fn set_clock(&mut self, clock: ScenarioClock) {
        self.clock = clock;
    }

    /// The longest time since `since` in which a component of the cluster did not respond.
    pub(crate) fn stall(&self, since: Time) -> Option<(&'static str, Span)> {
        let now = Timestamp::now();
        let stall: Stall = self.probe.longest(self.clock.instant(since), now)?;
        let length = i64::try_from(stall.length(now).as_nanos()).unwrap_or(i64::MAX);
        Some((stall.component, Span(length)))
    }

    /// Waits until a time for the first request of the next reconcile.
    pub(crate) async fn next_reconcile(&mut self, until: Time) -> Option<ObservedReconcile> {
        let next = self.next_by(until).await?;
        let (began, ended) = (self.clock.time(next.received), self.clock.time(next.answered));
        Some(ObservedReconcile { began, ended, actions: vec![next] })
    }

    /// Waits until a time for a request of a reconcile. Returns true if a request arrived.
    pub(crate) async fn has_request_by(&mut self, until: Time) -> bool {
        if let Some(next) = self.next_by(until).await {
            self.ahead.push_front(next);
        }
        !self.ahead.is_empty()
    }

    /// Waits until a time for the next request. Events are kept apart: the controller writes them
    /// in the background, and possibly much later than their reconcile.
    async fn next_by(&mut self, until: Time) -> Option<ObservedAction> {
        if let Some(next) = self.ahead.pop_front() {
            return Some(next);
        }
        loop {
            let next = timeout(self.time_left(until), self.requests.recv()).await.ok()??;
            if let Some(next) = self.unless_event(next) {
                return Some(next);
            }
        }
    }

    fn time_left(&self, until: Time) -> Duration {
        Duration::from_nanos((until - self.clock.now()).0.max(0).unsigned_abs())
    }

    /// Keeps an event, and returns any other action.
    fn unless_event(&mut self, next: ObservedAction) -> Option<ObservedAction> {
        if next.is_event() {
            self.events.push(next);
            return None;
        }
        Some(next)
    }

    /// Returns true if a request arrived that belongs to no reconcile yet.
    pub(crate) fn has_more(&mut self) -> bool {
        while let Ok(next) = self.requests.try_recv() {
            let next = self.unless_event(next);
            self.ahead.extend(next);
        }
        !self.ahead.is_empty()
    }

    /// Waits for the next request.
    pub(crate) async fn arrived(&mut self) {
        match self.requests.recv().await {
            Some(next) => {
                let next = self.unless_event(next);
                self.ahead.extend(next);
            }
            // The sources are closed: no request will arrive.
            None => pending().await,
        }
    }

    /// The replicas that the controller last wrote to the target after `since`, as far as they are
    /// known.
    pub(crate) fn replicas_since(&mut self, since: Time) -> Option<i32> {
        self.has_more();
        let later = self.ahead.iter().filter(|it| self.clock.time(it.received) > since);
        last_replicas(later, &self.target)
    }

    /// Waits for the other requests of a reconcile. `possible` contains the numbers of requests
    /// that the model allows; it is empty for a custom controller. Waits until `until` for the
    /// smallest of these numbers, then briefly for more requests, and then for silence. The last
    /// request of upstream's controller is the write of the status.
    pub(crate) async fn complete(
        &mut self,
        reconcile: &mut ObservedReconcile,
        possible: &BTreeSet<usize>,
        until: Time,
    ) {
        let is_upstreams = !possible.is_empty();
        let is_last = |it: &ObservedAction| it.is_status_write() && it.succeeded();
        let linger = self.observability.linger;
        let mut last = reconcile.actions.iter().any(is_last);
        let quiet = Span(i64::try_from(self.quiet.as_nanos()).unwrap_or(0));
        let mut stalled = Span(quiet.0 / STALLED_SILENCE_DIVISOR);
        loop {
            let silent = self.clock.now() + quiet;
            let has = reconcile.actions.len();
            let next = possible.range(has..).next();
            let limit = match next {
                _ if possible.first().is_some_and(|least| has < *least) => silent.max(until),
                _ if last && is_upstreams && linger == Span::ZERO => break,
                // Another watch may still report a request.
                _ if last && is_upstreams => self.clock.now() + linger,
                // A reconcile without the write of the scale has the same number of requests.
                _ if is_upstreams && owes_status(&reconcile.actions) => silent.max(until),
                // No reconcile has this number of requests.
                Some(next) if *next > has => silent.max(until),
                Some(_) if possible.last().is_some_and(|most| has < *most) => {
                    silent.max(reconcile.began + self.apart)
                }
                _ => silent,
            };
            match self.next_by(limit).await {
                // The next reconcile began before this one had all its requests.
                Some(next) if self.belongs_to_next(&next, reconcile, is_upstreams) => {
                    self.ahead.push_front(next);
                    break;
                }
                Some(next) => {
                    reconcile.ended = reconcile.ended.max(self.clock.time(next.answered));
                    last |= is_last(&next);
                    reconcile.actions.push(next);
                }
                // Silence does not end a reconcile while a component does not respond.
                None if is_upstreams
                    && self.clock.now() < until
                    && self.stalled_since(reconcile.ended) > stalled =>
                {
                    stalled = self.stalled_since(reconcile.ended);
                }
                None => break,
            }
        }
        // Two independent sources report requests when they are answered.
        reconcile.actions.sort_by_key(|it| it.received);
        let began = reconcile.actions.iter().map(|it| self.clock.time(it.received)).min();
        let ended = reconcile.actions.iter().map(|it| self.clock.time(it.answered)).max();
        reconcile.began = began.unwrap_or(reconcile.began);
        reconcile.ended = ended.unwrap_or(reconcile.ended);
    }

    /// The length of the longest stall since a time.
    pub(crate) fn stalled_since(&self, since: Time) -> Span {
        self.stall(since).map_or(Span::ZERO, |(_, length)| length)
    }

    /// The reason why the requests seem to belong to the previous reconcile, if any: a reconcile of
    /// upstream's controller begins with a read of the scale. `reads` is true if the model expects
    /// the next reconcile to read anything.
    pub(crate) fn continuation_reason(
        &self,
        reconcile: &ObservedReconcile,
        reads: bool,
    ) -> Option<String> {
        let first = reconcile.actions.first()?;
        let writes = first.scale_write().is_some() || reads && first.is_status_write();
        let continues = self.observability.scope.scale_reads && writes;
        continues.then(|| {
            let at = self.clock.time(first.received);
            format!(
                "the write at {at} seems to belong to the previous reconcile, which was delayed"
            )
        })
    }

    /// The reason why a reconcile of upstream's controller can't be compared, if any. `before` is
    /// the state of the cluster at its beginning, and `conflicts` the number of conflicts that the
    /// model predicts.
    pub(crate) fn incomparable_reason(
        &self,
        reconcile: &ObservedReconcile,
        before: SettledState,
        conflicts: usize,
    ) -> Option<String> {
        let SettledState { settled, status_replicas } = before;
        if reconcile.began >= settled
            && let Some(why) = self.status_changed(reconcile, status_replicas)
        {
            return Some(why);
        }
        let write = reconcile.actions.iter().filter(|it| it.is_conflict()).nth(conflicts)?;
        let at = self.clock.time(write.received);
        Some(format!("another client changed the target while a reconcile scaled it at {at}"))
    }

    /// Detects a late change of the target's status. If pods were replaced at once, the controller
    /// of the target may write the status once more after all pods match the scenario.
    fn status_changed(&self, reconcile: &ObservedReconcile, before: i32) -> Option<String> {
        let (read, name, resource, answer) =
            reconcile.actions.iter().find_map(|it| match &it.action {
                ControllerAction::GetScale { resource, name, answer } => {
                    Some((it, name, resource, answer))
                }
                _ => None,
            })?;
        let Ok(ScaleReplicas { status_replicas: now, .. }) = *answer else { return None };
        (self.target.is(name, resource) && now != before).then(|| {
            let at = self.clock.time(read.received);
            format!("the status of the target had {now} replicas at {at}, after {before}")
        })
    }

    /// Returns true if a request belongs to the next reconcile. A reconcile of upstream's
    /// controller begins with a read of the scale, and reads it again only after a conflict: every
    /// other request belongs to the current reconcile, however late it is.
    fn belongs_to_next(
        &self,
        next: &ObservedAction,
        reconcile: &ObservedReconcile,
        is_upstreams: bool,
    ) -> bool {
        let apart = self.clock.time(next.received) - reconcile.ended;
        if !is_upstreams || !self.observability.scope.scale_reads {
            return apart > self.apart;
        }
        let refused = |it: &ObservedAction| it.scale_write().is_some() && !it.succeeded();
        let expects_no_read = reconcile.actions.iter().any(|it| !it.is_scale_read())
            && !reconcile.actions.last().is_some_and(refused);
        next.is_scale_read() && (apart > self.apart || expects_no_read && apart > Span::ZERO)
    }

    /// Waits until a time for this number of events since t=0, and briefly for surplus events.
    /// Returns all events, in order.
    pub(crate) async fn events(&mut self, expected: usize, until: Time) -> &[ObservedAction] {
        let mut has_next = !self.ahead.is_empty();
        loop {
            let left = match self.events.len() < expected {
                true => self.time_left(until),
                // Events of a reconcile after the end do not belong to the scenario.
                false if has_next => break,
                false => SURPLUS_EVENT_TIMEOUT,
            };
            match timeout(left, self.requests.recv()).await {
                Ok(Some(next)) => has_next |= self.unless_event(next).is_some(),
                Ok(None) | Err(_) => break,
            }
        }
        &self.events
    }
}

/// The replicas that were last written to a target.
fn last_replicas<'a>(
    actions: impl DoubleEndedIterator<Item = &'a ObservedAction>,
    target: &TargetName,
) -> Option<i32> {
    let mut writes = actions.filter_map(ObservedAction::scale_write);
    let is_stored = |it: &&ScaleWrite| it.error.is_none() && target.is(&it.name, &it.resource);
    writes.rfind(is_stored).map(|it| it.replicas)
}

/// Returns true if a write of the scale must still be followed by a write of the status: upstream's
/// controller stores the time of the last change there. After a conflict it retries the scale
/// first.
fn owes_status(actions: &[ObservedAction]) -> bool {
    let scaled =
        |it: &&ObservedAction| it.scale_write().is_some() && it.succeeded() || it.is_conflict();
    let scale = actions.iter().filter(scaled).map(|it| it.received).max();
    scale.is_some_and(|at| !actions.iter().any(|it| it.is_status_write() && it.received >= at))
}

impl ObservedReconcile {
    /// Removes each write of the scale that met a conflict, and the read after it, if the retry
    /// wrote the same replicas: conflicts are random, and have no other effect.
    ///
    /// Upstream: pkg/controller/podautoscaler/horizontal.go, and client-go, util/retry
    pub(crate) fn forget_retries(&mut self) {
        let is_retried = |three: &[ObservedAction]| match three {
            [conflict, read, retry] => {
                let written = |it: &ObservedAction| {
                    let write = it.scale_write()?;
                    Some((write.name.clone(), write.resource.clone(), write.replicas))
                };
                conflict.is_conflict()
                    && read.is_scale_read()
                    && written(conflict) == written(retry)
            }
            _ => false,
        };
        while let Some(index) = self.actions.windows(3).position(is_retried) {
            self.actions.drain(index..index + 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFLICT: &str = "the object has been modified; please apply your changes";

    fn read() -> ControllerAction {
        let answer = Ok(ScaleReplicas { replicas: 1, status_replicas: 1 });
        let (resource, name) = ("deployments.apps".into(), "web".into());
        ControllerAction::GetScale { resource, name, answer }
    }

    fn write(name: &str, replicas: i32, error: Option<&str>) -> ControllerAction {
        let (resource, name) = ("deployments.apps".into(), name.into());
        let error = error.map(Into::into);
        ControllerAction::UpdateScale(ScaleWrite { resource, name, replicas, error, sent: None })
    }

    fn status() -> ControllerAction {
        ControllerAction::UpdateStatus(Box::default())
    }

    /// Actions that are a second apart.
    fn observed(actions: Vec<ControllerAction>) -> Vec<ObservedAction> {
        let actions = (0..).zip(actions).map(|(second, action)| {
            let at = Timestamp::from_second(second).unwrap();
            ObservedAction::new(at, at, action)
        });
        actions.collect()
    }

    #[test]
    fn the_last_replicas_are_those_that_were_stored_for_the_target() {
        let target = TargetName { name: "web".into(), resource: "deployments.apps".to_owned() };
        let last =
            |actions: Vec<ControllerAction>| last_replicas(observed(actions).iter(), &target);
        let (web, db) = (write("web", 3, None), write("db", 9, None));
        let refused = write("web", 5, Some("not allowed"));
        assert_eq!(last(vec![db.clone(), refused.clone(), read()]), None);
        assert_eq!(last(vec![web.clone(), db, refused, read()]), Some(3));
        assert_eq!(last(vec![web, write("web", 4, None)]), Some(4));
    }

    #[test]
    fn a_retried_write_is_removed() {
        /// The number of remaining actions of a reconcile that writes these replicas, and meets
        /// a conflict each time except the last.
        fn remaining(replicas: &[i32]) -> usize {
            let (last, conflicts) = replicas.split_last().unwrap();
            let retries =
                conflicts.iter().flat_map(|it| [write("web", *it, Some(CONFLICT)), read()]);
            let actions = [read()].into_iter().chain(retries).chain([write("web", *last, None)]);
            let (began, ended) = (Time::ZERO, Time::ZERO);
            let actions = observed(actions.collect());
            let mut reconcile = ObservedReconcile { began, ended, actions };
            reconcile.forget_retries();
            reconcile.actions.len()
        }
        assert_eq!(remaining(&[3]), 2);
        assert_eq!(remaining(&[3, 3, 3]), 2);
        assert_eq!(remaining(&[3, 4]), 4, "a different decision");
    }

    #[test]
    fn a_write_of_the_scale_is_followed_by_a_write_of_the_status() {
        let owes = |actions: Vec<ControllerAction>| owes_status(&observed(actions));
        let scaled = || write("web", 3, None);
        assert!(owes(vec![read(), scaled()]));
        assert!(!owes(vec![read(), status()]));
        assert!(!owes(vec![read(), scaled(), status()]));
        assert!(owes(vec![read(), status(), scaled()]), "a status write before the scale write");
        assert!(!owes(vec![read(), write("web", 3, Some("not allowed"))]));
        assert!(owes(vec![read(), write("web", 3, Some(CONFLICT)), read()]));
    }
}
