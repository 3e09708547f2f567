//! A property test that compares the state of the cluster after the changes with a second, simple
//! simulation. It advances second by second, computes everything each time, and does not track
//! published state.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::strategies::scenarios;
use super::*;
use crate::world::rollout::{Pods, ReplicaSet, Rollout};
use kube_autoscaler_models::api::PodReady;
use kube_lockstep_scenario::resolved::RollingUpdate;

/// A pod of the simple simulation; times in seconds.
#[derive(Clone, Default)]
struct SimplePod {
    ordinal: u32,
    revision: u32,
    created: i64,
    started: Option<i64>,
    ended: Option<PodPhase>,
    due: Option<i64>,
    unready: Option<i64>,
    ready: Option<(bool, i64)>,
    /// Events and their end times.
    holds: Vec<(usize, i64)>,
    /// Timestamp and usage of a stale sample.
    frozen: Option<(i64, Option<Usage>)>,
}

/// Usage by container, then by resource.
type Usage = Vec<(String, Vec<(String, i64)>)>;

struct Simple<'a> {
    scenario: &'a Scenario,
    pods: Vec<SimplePod>,
    /// Removed pods whose samples are still stale.
    removed: Vec<SimplePod>,
    /// The number of initial pods.
    initial: u32,
    /// The number of pods created so far.
    created: u32,
    replicas: i32,
    revision: u32,
    /// The rolling update in progress. [`Rollout`] has its own tests.
    update: Option<Rollout>,
    /// The end times of the deletions of the target.
    deletions: Vec<i64>,
    empty: Vec<(usize, i64)>,
    /// Errors and empty responses of single metrics, and their end times.
    disturbed: Vec<(usize, i64)>,
}

impl<'a> Simple<'a> {
    fn new(scenario: &'a Scenario) -> Simple<'a> {
        let age = -scenario.workload.age.0 / 1_000_000_000;
        let pod = |ordinal: i32| SimplePod {
            ordinal: u32::try_from(ordinal).expect("small"),
            created: age,
            started: Some(age),
            ready: Some((true, age)),
            ..SimplePod::default()
        };
        let replicas = scenario.workload.replicas;
        let initial = scenario
            .workload
            .quota
            .map_or(replicas, |quota| replicas.min(i32::try_from(quota).expect("small")));
        let pods: Vec<SimplePod> = (0..initial).map(pod).collect();
        let initial = u32::try_from(initial).expect("small");
        Simple {
            scenario,
            pods,
            removed: Vec::new(),
            initial,
            created: initial,
            replicas,
            revision: 0,
            update: None,
            deletions: Vec::new(),
            empty: Vec::new(),
            disturbed: Vec::new(),
        }
    }

    fn second(&mut self, now: i64) {
        let mut stale = false;
        for (index, event) in self.scenario.timeline.iter().enumerate() {
            if event.at == t(now) {
                let end = event.lasts.map_or(i64::MAX, |span| now + span.0 / 1_000_000_000);
                self.begin(index, end, now, &event.action);
                stale |= matches!(event.action, Action::MetricsStale(_));
            }
        }
        self.pods.iter_mut().for_each(|pod| pod.holds.retain(|(_, end)| *end > now));
        self.removed.iter_mut().for_each(|pod| pod.holds.retain(|(_, end)| *end > now));
        let is_stale = |(index, _): &(usize, i64)| {
            matches!(self.scenario.timeline[*index].action, Action::MetricsStale(_))
        };
        self.removed.retain(|pod| pod.holds.iter().any(is_stale));
        if !self.deletions.is_empty() {
            self.deletions.retain(|end| *end > now);
            if self.deletions.is_empty() {
                self.replicas = self.scenario.workload.replicas;
            }
        }
        self.empty.retain(|(_, end)| *end > now);
        self.disturbed.retain(|(_, end)| *end > now);
        self.update_derived(now);
        self.act(now);
        if stale {
            let usages: Vec<_> = self.pods.iter().map(|pod| self.usage(pod, now)).collect();
            let stamp = self.stamp(now);
            for (index, usage) in usages.into_iter().enumerate() {
                if self.held(&self.pods[index], |action| matches!(action, Action::MetricsStale(_)))
                    && self.pods[index].frozen.is_none()
                {
                    self.pods[index].frozen = Some((stamp, usage));
                }
            }
        }
    }

    fn begin(&mut self, index: usize, end: i64, now: i64, action: &Action) {
        let grace = self.scenario.workload.termination;
        let Some(set) = action.pods() else {
            match action {
                Action::TargetDeleted(deletion) => {
                    if self.deletions.is_empty() && !deletion.keeps_pods() {
                        self.replicas = 0;
                        self.update = None;
                        self.pods.iter_mut().for_each(|pod| delete(pod, now, grace));
                    }
                    self.deletions.push(end);
                }
                _ if !self.deletions.is_empty() && !action.can_end() => {}
                Action::Scale(replicas) => self.replicas = *replicas,
                Action::RollingUpdate(update) => self.begin_update(update),
                Action::MetricsEmpty(_) => self.empty.push((index, end)),
                Action::MetricError(..) | Action::MetricEmpty(_) => {
                    self.disturbed.push((index, end))
                }
                _ => {}
            }
            return;
        };
        for pod in &mut self.pods {
            let named = match set {
                PodSet::All => true,
                PodSet::Ordinals(ranges) => {
                    ranges.iter().any(|(a, b)| (*a..=*b).contains(&pod.ordinal))
                }
            };
            if named {
                match action {
                    Action::PodsFailed(_) => drop(pod.ended.get_or_insert(PodPhase::Failed)),
                    Action::PodsSucceeded(_) => drop(pod.ended.get_or_insert(PodPhase::Succeeded)),
                    Action::PodsDeleted(_) => delete(pod, now, grace),
                    Action::PodsStuckTerminating(_) => {
                        pod.holds.push((index, end));
                        delete(pod, now, grace);
                    }
                    _ => pod.holds.push((index, end)),
                }
            }
        }
    }

    fn held(&self, pod: &SimplePod, is_action: fn(&Action) -> bool) -> bool {
        pod.holds.iter().any(|(index, _)| is_action(&self.scenario.timeline[*index].action))
    }

    fn update_derived(&mut self, now: i64) {
        let startup = self.scenario.workload.startup;
        let passed = |since: i64, span: Option<Span>| {
            span.is_some_and(|span| since + span.0 / 1_000_000_000 <= now)
        };
        let mut remaining = Vec::new();
        for mut pod in std::mem::take(&mut self.pods) {
            let stuck = self.held(&pod, |action| matches!(action, Action::PodsStuckTerminating(_)));
            if pod.due.is_some_and(|due| due <= now) && !stuck {
                let stale = self.held(&pod, |action| matches!(action, Action::MetricsStale(_)));
                if stale && pod.frozen.is_some() {
                    self.removed.push(pod);
                }
                continue;
            }
            let active = pod.ended.is_none() && pod.due.is_none();
            if active && pod.started.is_none() && passed(pod.created, startup.pending) {
                pod.started = Some(now);
            }
            if !self.held(&pod, |action| matches!(action, Action::MetricsStale(_))) {
                pod.frozen = None;
            }
            let initial = pod.ordinal < self.initial;
            let was_ready = pod.ready.is_some_and(|(ready, _)| ready);
            let stays = pod.ended.is_none() && was_ready && pod.unready.is_none_or(|at| now < at);
            let ready = (active || stays)
                && (initial || passed(pod.created, startup.ready))
                && !self.held(&pod, |action| matches!(action, Action::PodsUnready(_)));
            if pod.started.is_some() && pod.ready.is_none_or(|(old, _)| old != ready) {
                pod.ready = Some((ready, now));
            }
            remaining.push(pod);
        }
        self.pods = remaining;
    }

    fn begin_update(&mut self, update: &RollingUpdate) {
        let desired = self.desired();
        let current = vec![ReplicaSet { revision: self.revision, desired }];
        let before = self.update.take().map_or(current, |rollout| rollout.replica_sets);
        self.revision += 1;
        let surge = update.surge();
        self.update = Some(Rollout::new(before, self.revision, surge, desired));
    }

    fn desired(&self) -> usize {
        let quota = self.scenario.workload.quota.unwrap_or(u32::MAX);
        u32::try_from(self.replicas).unwrap_or(0).min(quota) as usize
    }

    fn act(&mut self, now: i64) {
        if !self.deletions.is_empty() {
            if self.scenario.workload.kind == "Deployment" {
                match self.update.as_ref().map(|rollout| rollout.replica_sets.clone()) {
                    Some(sets) => {
                        sets.iter().for_each(|set| self.fit(set.desired, Some(set.revision), now))
                    }
                    None => self.fit(self.desired(), None, now),
                }
                self.update_derived(now);
            }
            return;
        }
        while let Some(mut rollout) = self.update.take() {
            rollout.scale(self.desired());
            let created = self.created;
            let before = self.active(None).len();
            for set in rollout.replica_sets.clone() {
                self.fit(set.desired, Some(set.revision), now);
            }
            let acted = self.created != created || self.active(None).len() != before;
            self.update_derived(now);
            let ready = |i: &usize| self.pods[*i].ready.is_some_and(|(ready, _)| ready);
            let available = |set: &ReplicaSet| Pods {
                available: self.active(Some(set.revision)).into_iter().filter(ready).count(),
            };
            let available: Vec<Pods> = rollout.replica_sets.iter().map(available).collect();
            if acted || rollout.proceed(&available) {
                self.update = Some(rollout);
            } else if !rollout.is_over() {
                self.update = Some(rollout);
                return;
            }
        }
        self.fit(self.desired(), None, now);
        self.update_derived(now);
    }

    /// The indices of the active pods of one revision or of all.
    fn active(&self, revision: Option<u32>) -> Vec<usize> {
        let counts = |pod: &SimplePod| {
            let selected = revision.is_none_or(|revision| pod.revision == revision);
            selected && pod.ended.is_none() && pod.due.is_none()
        };
        (0..self.pods.len()).filter(|&i| counts(&self.pods[i])).collect()
    }

    /// Creates or deletes pods until the number of active pods is the desired one.
    fn fit(&mut self, desired: usize, revision: Option<u32>, now: i64) {
        let quota = self.scenario.workload.quota.unwrap_or(u32::MAX) as usize;
        let grace = self.scenario.workload.termination;
        loop {
            let active = self.active(revision);
            if active.len() < desired && self.active(None).len() < quota {
                let (ordinal, revision) = (self.created, revision.unwrap_or(self.revision));
                self.created += 1;
                let pod = SimplePod { ordinal, revision, created: now, ..SimplePod::default() };
                self.pods.push(pod);
            } else if active.len() > desired {
                let ready = |i: usize| self.pods[i].ready.is_some_and(|(ready, _)| ready);
                let first = match self.scenario.workload.scale_down_order {
                    ScaleDownOrder::Oldest => active[0],
                    ScaleDownOrder::Newest => active[active.len() - 1],
                    ScaleDownOrder::ReplicaSet => *active
                        .iter()
                        .rev()
                        .min_by_key(|&&i| (self.pods[i].started.is_some(), ready(i)))
                        .expect("some"),
                };
                delete(&mut self.pods[first], now, grace);
            } else {
                break;
            }
        }
    }

    /// The time of the sample that a query returns now.
    fn stamp(&self, now: i64) -> i64 {
        let sampling = self.scenario.metrics.sampling;
        let at = now - sampling.lag.0 / 1_000_000_000;
        sampling.resolution.map_or(at, |step| {
            let step = step.0 / 1_000_000_000;
            at.div_euclid(step) * step
        })
    }

    fn usage(&self, pod: &SimplePod, now: i64) -> Option<Usage> {
        let scenario = self.scenario;
        let metrics = scenario.workload.startup.metrics.0 / 1_000_000_000;
        let reports = pod.started.is_some_and(|started| started + metrics <= now);
        if !reports
            || pod.ended.is_some()
            || !self.empty.is_empty()
            || self.held(pod, |action| matches!(action, Action::MetricsMissing(_)))
        {
            return None;
        }
        if let Some((_, usage)) = &pod.frozen {
            return usage.clone().map(|usage| self.hide(pod, usage));
        }
        let names = scenario.workload.spec.containers.iter().map(|c| c.name.to_string());
        let usage = names.enumerate().map(|(position, name)| {
            let usage = scenario.metrics.resources.iter().map(|resource| {
                let value = self.value(pod, resource, position, &name, now);
                (resource.name.to_string(), value)
            });
            (name.clone(), usage.collect())
        });
        Some(self.hide(pod, usage.collect()))
    }

    fn value(
        &self,
        pod: &SimplePod,
        resource: &ResourceUsage,
        position: usize,
        name: &str,
        now: i64,
    ) -> i64 {
        let at = t(self.stamp(now));
        let value = |signal: &Signal| milli_at(signal, at);
        let named = |other: &&Exception| match &other.pods {
            PodSet::All => true,
            PodSet::Ordinals(ranges) => {
                ranges.iter().any(|(a, b)| (*a..=*b).contains(&pod.ordinal))
            }
        };
        if let Some(other) = resource.exceptions.iter().rev().find(named) {
            return if position == 0 { value(&other.value) } else { 0 };
        }
        match &resource.source {
            UsageSource::PerPod(signal) => {
                if position == 0 {
                    value(signal)
                } else {
                    0
                }
            }
            UsageSource::PerContainer(signals) => {
                signals.0.iter().find(|(n, _)| **n == *name).map_or(0, |(_, signal)| value(signal))
            }
            UsageSource::Load { total, limit } => {
                let serves = |pod: &SimplePod| {
                    pod.due.is_none() && pod.ready.is_some_and(|(ready, _)| ready)
                };
                let serving = self.pods.iter().filter(|pod| serves(pod)).count();
                if position > 0 || !serves(pod) {
                    return 0;
                }
                let share = value(total).div_euclid(i64::try_from(serving).expect("small"));
                limit.as_ref().map_or(share, |limit| share.min(limit.milli()))
            }
        }
    }

    fn hide(&self, pod: &SimplePod, mut usage: Usage) -> Usage {
        for (index, _) in &pod.holds {
            match &self.scenario.timeline[*index].action {
                Action::ContainerMetricsMissing(ContainerOfPods { container: name, .. }) => {
                    for (_, values) in usage.iter_mut().filter(|(n, _)| **n == **name) {
                        values.clear();
                    }
                }
                Action::ResourceMissing(ResourceOfPods { resource: name, .. }) => {
                    usage.iter_mut().for_each(|(_, values)| values.retain(|(n, _)| **n != **name));
                }
                _ => {}
            }
        }
        usage
    }

    /// Descriptions of the pods, samples and custom metrics that a query returns now.
    fn query(&self, now: i64) -> Described {
        let (mut pods, mut samples) = (Vec::new(), Vec::new());
        for pod in &self.pods {
            let status = |ready| if ready { ConditionStatus::True } else { ConditionStatus::False };
            let api = Pod {
                name: format!("web-{}", pod.ordinal).into(),
                labels: Arc::default(),
                deletion_timestamp: pod.due.map(t),
                phase: match (pod.ended, pod.started) {
                    (Some(ended), _) => ended,
                    (None, Some(_)) => PodPhase::Running,
                    (None, None) => PodPhase::Pending,
                },
                start_time: pod.started.map(t),
                ready: pod.ready.map(|(ready, since)| PodReady {
                    status: status(ready),
                    last_transition_time: t(since),
                }),
                spec: Arc::default(),
            };
            pods.push(describe_pod(&api));
        }
        for pod in self.pods.iter().chain(&self.removed) {
            if let Some(usage) = self.usage(pod, now) {
                let stamp = pod.frozen.as_ref().map_or(self.stamp(now), |(stamp, _)| *stamp);
                samples.push(format!("web-{} {stamp} {usage:?}", pod.ordinal));
            }
        }
        pods.sort();
        samples.sort();
        (pods, samples, self.custom(now))
    }

    /// Descriptions of the metrics `rps` and `queue`.
    fn custom(&self, now: i64) -> Vec<String> {
        let stamp = self.stamp(now);
        let mut texts = Vec::new();
        let rps = &self.scenario.metrics.pods[0];
        let (error, empty) = self.disturbance("rps");
        texts.extend(error.map(|code| format!("rps error {code}")));
        for pod in self.pods.iter().filter(|_| error.is_none() && !empty) {
            let metrics = self.scenario.workload.startup.metrics.0 / 1_000_000_000;
            let reports = pod.started.is_some_and(|started| started + metrics <= now);
            if reports
                && pod.ended.is_none()
                && !self.held(pod, |action| matches!(action, Action::MetricMissing(..)))
            {
                let like_usage = ResourceUsage {
                    name: "rps".into(),
                    source: rps.source.clone(),
                    exceptions: rps.exceptions.clone(),
                };
                let value = self.value(pod, &like_usage, 0, "app", now);
                texts.push(format!("rps web-{} {stamp} {value}", pod.ordinal));
            }
        }
        let (error, empty) = self.disturbance("queue");
        texts.extend(error.map(|code| format!("queue error {code}")));
        if error.is_none() && !empty {
            let signal = self.scenario.metrics.externals[0].value.as_ref().expect("one value");
            texts.push(format!("queue {stamp} {}", milli_at(signal, t(stamp))));
        }
        texts.sort();
        texts
    }

    fn disturbance(&self, metric: &str) -> (Option<u16>, bool) {
        let (mut code, mut empty) = (None, false);
        for (index, _) in &self.disturbed {
            match &self.scenario.timeline[*index].action {
                Action::MetricError(it) if *it.metric == *metric => code = Some(it.error.code),
                Action::MetricEmpty(name) => empty |= **name == *metric,
                _ => {}
            }
        }
        (code, empty)
    }
}

/// Descriptions of pods, samples and custom metrics.
type Described = (Vec<String>, Vec<String>, Vec<String>);

fn milli_at(signal: &Signal, at: Time) -> i64 {
    match signal {
        Signal::Constant(value) => value.milli(),
        Signal::Steps(steps) => {
            let past = steps.iter().rev().find(|step| step.at <= at);
            past.unwrap_or(&steps[0]).value.milli()
        }
        _ => panic!("these scenarios have no such signal"),
    }
}

fn delete(pod: &mut SimplePod, now: i64, grace: Termination) {
    if pod.due.is_none() {
        let runs = pod.started.is_some() && pod.ended.is_none();
        let after = |span: Span| if runs { now + span.0 / 1_000_000_000 } else { now };
        pod.due = Some(after(grace.duration));
        pod.unready = Some(after(grace.ready));
    }
}

/// Descriptions of the state of a cluster.
fn describe_cluster(cluster: &Cluster) -> Described {
    let mut pods: Vec<_> = cluster.pods().iter().map(|pod| describe_pod(pod)).collect();
    let samples = cluster.pod_metrics().expect("no faults").iter().map(|sample| {
        let usage: Usage = sample
            .containers
            .iter()
            .map(|container| {
                let usage = container.usage.iter();
                let usage = usage.map(|(name, value)| (name.to_string(), value.milli()));
                (container.name.to_string(), usage.collect())
            })
            .collect();
        format!("{} {} {usage:?}", sample.name, sample.timestamp.0 / 1_000_000_000)
    });
    let mut samples: Vec<_> = samples.collect();
    pods.sort();
    samples.sort();
    let mut custom = Vec::new();
    let seconds = |at: Time| at.0 / 1_000_000_000;
    let (rps, queue) =
        (&cluster.custom_metrics().pods["rps"], &cluster.custom_metrics().externals["queue"]);
    custom.extend(rps.error.as_ref().map(|error| format!("rps error {}", error.code)));
    custom.extend(queue.error.as_ref().map(|error| format!("queue error {}", error.code)));
    custom.extend(
        rps.values
            .iter()
            .map(|it| format!("rps {} {} {}", it.name, seconds(it.timestamp), it.value.milli())),
    );
    let series = queue.series.iter();
    custom.extend(series.map(|it| format!("queue {} {}", seconds(it.timestamp), it.value.milli())));
    custom.sort();
    (pods, samples, custom)
}

/// The times of queries, and the replicas that the controller then writes.
fn queries() -> impl Strategy<Value = BTreeMap<i64, Option<i32>>> {
    proptest::collection::btree_map(0..80_i64, proptest::option::of(0..7_i32), 1..12)
}

proptest! {
    // The seed is fixed, so that the result is reproducible.
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changes_add_up_to_a_simple_simulation(
        scenario in scenarios(),
        queries in queries(),
    ) {
        let mut simple = Simple::new(&scenario);
        let mut run = Run::new(&scenario);
        // This world has published nothing before a query.
        let mut unpublished = World::new(&scenario);
        for now in 0..80 {
            simple.second(now);
            let Some(written) = queries.get(&now) else { continue };
            run.at(now);
            prop_assert_eq!(describe_cluster(&run.cluster), simple.query(now), "t={}s", now);
            let mut once = Run { world: unpublished.clone(), cluster: Cluster::default() };
            once.at(now);
            if simple.deletions.is_empty() {
                prop_assert_eq!(once.replicas(now), run.replicas(now));
            }
            prop_assert_eq!(describe_cluster(&once.cluster), describe_cluster(&run.cluster));
            prop_assert_eq!(run.at(now), vec![], "no further changes at t={}s", now);
            if let Some(replicas) = written.filter(|_| simple.deletions.is_empty()) {
                run.scale(now, replicas);
                unpublished.scaled(t(now), 0, replicas);
                simple.replicas = replicas;
                simple.act(now);
            }
        }
    }
}
