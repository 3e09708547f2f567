//! Unusual changes of a generated script: OOM kills, pods that come and go, edits, restarts.

use std::collections::BTreeMap;

use super::super::dice::Dice;
use super::generate::Generator;
use super::plan::{NAMESPACE, oom_killed};
use kube_autoscaler_models::api::PodPhase;
use kube_autoscaler_models::time::Span;
use kube_autoscaler_models::vpa::{
    BUCKETS, BucketWeight, Checkpoint, CheckpointSpec, CheckpointStatus, ClusterChange,
    ContainerState, GoTime, HistogramCheckpoint, HistorySample, ObjectName, ObservedOom, OomKill,
    PodHistory,
};

/// Adds one or two unusual changes.
pub(super) fn add(generator: &mut Generator, changes: &mut Vec<ClusterChange>) {
    let workload = generator.dice.below(generator.workloads.len() as u64) as usize;
    match generator.dice.below(16) {
        0..=3 => oom(generator, workload, changes),
        4 => terminated(generator, workload, changes),
        5 => evict(generator, workload, changes),
        6 | 7 => replace_pod(generator, workload, changes),
        8 => relabel(generator, workload, changes),
        9 => phase(generator, workload, changes),
        10 | 11 => edit(generator, workload, changes),
        12 => target(generator, workload, changes),
        13 => vpa(generator, workload, changes),
        14 => checkpoint(generator, changes),
        _ => changes.push(ClusterChange::Restart),
    }
}

/// The index of a random pod of a workload.
fn any_pod(generator: &mut Generator, workload: usize) -> Option<usize> {
    let pods = generator.workloads[workload].pods.len() as u64;
    (pods > 0).then(|| generator.dice.below(pods) as usize)
}

/// A container is killed and restarted between two updates of the pod.
fn oom(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let Some(index) = any_pod(generator, workload) else { return };
    let age = generator.dice.weighted(&[(5, 5), (2, 600), (1, 90_000), (1, 400_000)]);
    let at = generator.now().plus(Span::from_secs(-generator.dice.between(0, age)));
    let request = generator.dice.pick(&[None, Some(0), Some(300 << 20), Some(9 << 30)]);
    let workload = &mut generator.workloads[workload];
    workload.pods[index].restarts += 1;
    let mut pod = workload.pod(&workload.pods[index]);
    let container = generator.dice.below(pod.statuses.len() as u64) as usize;
    for (position, status) in pod.statuses.iter_mut().enumerate() {
        status.memory_request = request;
        if position == container {
            status.last_terminated = Some(oom_killed(at));
        }
    }
    changes.push(ClusterChange::SetPod(pod));
}

/// A container is killed, which an update shows, and restarted, which another update shows.
fn terminated(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let Some(index) = any_pod(generator, workload) else { return };
    let at = generator.now();
    let workload = &mut generator.workloads[workload];
    let mut pod = workload.pod(&workload.pods[index]);
    for status in &mut pod.statuses {
        status.state = ContainerState::Terminated(oom_killed(at));
    }
    changes.push(ClusterChange::SetPod(pod));
    if generator.dice.percent(50) {
        workload.pods[index].restarts += 1;
        let mut pod = workload.pod(&workload.pods[index]);
        for status in &mut pod.statuses {
            status.last_terminated = Some(oom_killed(at));
        }
        changes.push(ClusterChange::SetPod(pod));
    }
}

fn evict(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let Some(index) = any_pod(generator, workload) else { return };
    let requested = generator.dice.between(1 << 20, 1 << 31);
    let at = generator.now();
    let workload = &generator.workloads[workload];
    let oom = ObservedOom {
        pod: workload.pods[index].name.clone(),
        container: workload.containers[0].clone(),
        kill: OomKill { at, requested },
    };
    changes.push(ClusterChange::Evict(oom));
}

/// A pod is deleted, after an OOM kill of one of its containers or without; another one may follow.
fn replace_pod(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let number = generator.pods;
    generator.pods += 1;
    let mut track = 0;
    if let Some(index) = any_pod(generator, workload) {
        if generator.dice.percent(30) {
            evict(generator, workload, changes);
        }
        let pod = generator.workloads[workload].pods.remove(index);
        track = pod.track;
        changes.push(ClusterChange::DeletePod(pod.name));
    }
    if generator.dice.percent(75) {
        let workload = &mut generator.workloads[workload];
        let index = workload.add_pod(number, track);
        changes.push(ClusterChange::SetPod(workload.pod(&workload.pods[index])));
    }
}

fn relabel(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let Some(index) = any_pod(generator, workload) else { return };
    let workload = &mut generator.workloads[workload];
    if workload.has_tracks {
        workload.pods[index].track ^= 1;
    }
    changes.push(ClusterChange::SetPod(workload.pod(&workload.pods[index])));
}

fn phase(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let Some(index) = any_pod(generator, workload) else { return };
    let workload = &generator.workloads[workload];
    let mut pod = workload.pod(&workload.pods[index]);
    pod.phase = generator.dice.pick(&[PodPhase::Succeeded, PodPhase::Failed, PodPhase::Unknown]);
    if generator.dice.percent(30) {
        pod.init_containers = vec![workload.containers[0].clone()];
    }
    changes.push(ClusterChange::SetPod(pod));
}

fn edit(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    generator.generation += 1;
    let vpa = generator.workloads[workload].vpa(&mut generator.dice, generator.generation);
    changes.push(ClusterChange::SetVpa(vpa));
}

fn target(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let mut target = generator.workloads[workload].target();
    match generator.dice.below(6) {
        0 => return changes.push(ClusterChange::DeleteTarget(target)),
        1 => target.has_parent = true,
        2 => target.error = Some("it is not scalable".to_owned()),
        _ => {}
    }
    changes.push(ClusterChange::SetTarget(target));
}

/// A VPA is deleted, or created again.
fn vpa(generator: &mut Generator, workload: usize, changes: &mut Vec<ClusterChange>) {
    let name = ObjectName::new(NAMESPACE, generator.workloads[workload].name.clone());
    changes.push(ClusterChange::DeleteVpa(name));
    if generator.dice.percent(70) {
        edit(generator, workload, changes);
    }
}

/// A checkpoint is deleted or replaced. A recommender that starts afterwards reads it.
fn checkpoint(generator: &mut Generator, changes: &mut Vec<ClusterChange>) {
    let vpa = generator.dice.pick(&["app0", "app1", "gone"]);
    if generator.dice.percent(30) {
        let name = ObjectName::new(NAMESPACE, format!("{vpa}-c0"));
        return changes.push(ClusterChange::DeleteCheckpoint(name));
    }
    changes.push(ClusterChange::SetCheckpoint(foreign_checkpoint(generator, vpa)));
    if generator.dice.percent(50) {
        changes.push(ClusterChange::Restart);
    }
}

/// A checkpoint that the recommender did not write. It may be invalid.
pub(super) fn foreign_checkpoint(generator: &mut Generator, vpa: &str) -> Checkpoint {
    let container = generator.dice.weighted(&[(5, "c0"), (3, "c1"), (1, "gone")]);
    let now = generator.now();
    let dice = &mut generator.dice;
    let ago = |dice: &mut Dice| now.plus(Span::from_secs(-dice.between(0, 10 * 24 * 3600)));
    let version = dice.weighted(&[(8, "v3"), (1, "v2"), (1, "")]);
    let last = ago(dice).truncate_to_second();
    let status = CheckpointStatus {
        last_update_time: last,
        version: version.into(),
        cpu: histogram(dice, ago),
        memory: histogram(dice, ago).into(),
        first_sample_start: last.plus(Span::from_secs(-dice.between(0, 30 * 24 * 3600))),
        last_sample_start: last,
        total_samples_count: dice.weighted(&[(5, 1000), (1, 1), (1, 0)]),
    };
    Checkpoint {
        metadata: ObjectName::new(NAMESPACE, format!("{vpa}-{container}")),
        spec: CheckpointSpec { vpa_object_name: vpa.into(), container_name: container.into() },
        status,
    }
}

/// A histogram with a few buckets, at most one of which does not exist.
fn histogram(dice: &mut Dice, time: impl Fn(&mut Dice) -> GoTime) -> HistogramCheckpoint {
    let weights: BTreeMap<i64, u32> = (0..dice.below(5))
        .map(|_| (dice.between(0, BUCKETS as i64 - 1), 1 + dice.below(10_000) as u32))
        .collect();
    let invalid = dice.percent(5).then(|| (dice.pick(&[-1, BUCKETS as i64]), 1));
    let weights = weights.into_iter().chain(invalid);
    HistogramCheckpoint {
        reference: time(dice).truncate_to_second(),
        weights: weights.map(|(bucket, weight)| BucketWeight { bucket, weight }).collect(),
        total: dice.weighted(&[(5, 37.25), (5, 1234.5), (2, 0.0), (1, 1e12), (1, -1.0)]),
    }
}

impl Generator {
    /// A history of one pod for each set of labels: upstream reads several pods in a random order.
    pub(super) fn history(&mut self) -> Vec<PodHistory> {
        let mut history = Vec::new();
        let start = self.now();
        let pods = self.workloads.iter().flat_map(|workload| {
            let tracks = if workload.has_tracks { 2 } else { 1 };
            workload.pods.iter().take(tracks).map(|pod| workload.pod(pod)).collect::<Vec<_>>()
        });
        for pod in pods.collect::<Vec<_>>() {
            let mut samples = Vec::new();
            for hour in 0..self.dice.between(1, 48) {
                let at = start.plus(Span::from_mins(60 * (hour - 48)));
                for container in &pod.containers {
                    samples.push(HistorySample { at, usage: self.usage(&container.name) });
                }
            }
            history.push(PodHistory { pod: pod.name, labels: pod.labels, samples });
        }
        history
    }
}
