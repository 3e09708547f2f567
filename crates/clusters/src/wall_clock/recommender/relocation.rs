//! Moves the objects of a scenario to a namespace of a cluster, and its times to the wall clock.

use std::sync::Arc;

use kube_autoscaler_models::time::Span;
use kube_autoscaler_models::vpa::{
    Checkpoint, CheckpointStatus, ClusterChange, ContainerState, ContainerStatus, GoTime,
    HistogramCheckpoint, ObjectName, ObservedOom, OomKill, Pod, PodMetrics, Target, Terminated,
    VerticalPodAutoscaler,
};

/// A namespace and a clock.
#[derive(Clone, Debug)]
pub(super) struct Relocation {
    /// The namespace in the cluster.
    pub namespace: Arc<str>,
    /// The time of t=0 in the scenario.
    pub start: GoTime,
    /// The instant of t=0.
    pub epoch: GoTime,
    /// The number of seconds of the scenario in one second.
    pub speed: u32,
}

impl Relocation {
    /// The instant of a time. Times before t=0 keep their distance from it.
    fn at(&self, time: GoTime) -> GoTime {
        if time.is_zero() {
            return time;
        }
        let since = time.since(self.start).0;
        let since = if since > 0 { since / i64::from(self.speed) } else { since };
        self.epoch.plus(Span(since)).truncate_to_second()
    }

    fn name(&self, name: &ObjectName) -> ObjectName {
        ObjectName { namespace: self.namespace.clone(), name: name.name.clone() }
    }

    /// A change in the cluster.
    pub(super) fn change(&self, change: &ClusterChange) -> ClusterChange {
        match change {
            ClusterChange::SetVpa(vpa) => ClusterChange::SetVpa(self.vpa(vpa)),
            ClusterChange::DeleteVpa(name) => ClusterChange::DeleteVpa(self.name(name)),
            ClusterChange::SetPod(pod) => ClusterChange::SetPod(self.pod(pod)),
            ClusterChange::DeletePod(name) => ClusterChange::DeletePod(self.name(name)),
            ClusterChange::SetCheckpoint(it) => ClusterChange::SetCheckpoint(self.checkpoint(it)),
            ClusterChange::DeleteCheckpoint(name) => {
                ClusterChange::DeleteCheckpoint(self.name(name))
            }
            ClusterChange::SetTarget(target) => ClusterChange::SetTarget(self.target(target)),
            ClusterChange::DeleteTarget(target) => ClusterChange::DeleteTarget(self.target(target)),
            ClusterChange::Evict(oom) => ClusterChange::Evict(ObservedOom {
                pod: self.name(&oom.pod),
                container: oom.container.clone(),
                kill: OomKill { at: self.at(oom.kill.at), ..oom.kill },
            }),
            ClusterChange::SetMetrics(metrics) => {
                let pods = metrics.as_ref().map(|pods| pods.iter().map(|it| self.sample(it)));
                let pods = pods.map(|pods| Arc::new(pods.collect())).map_err(String::clone);
                ClusterChange::SetMetrics(pods)
            }
            ClusterChange::Restart => ClusterChange::Restart,
        }
    }

    fn vpa(&self, vpa: &VerticalPodAutoscaler) -> VerticalPodAutoscaler {
        let mut vpa = vpa.clone();
        vpa.metadata.name = self.name(&vpa.metadata.name);
        for condition in &mut Arc::make_mut(&mut vpa.status).conditions {
            condition.last_transition_time = self.at(condition.last_transition_time);
        }
        vpa
    }

    fn target(&self, target: &Target) -> Target {
        Target { namespace: self.namespace.clone(), ..target.clone() }
    }

    fn sample(&self, sample: &PodMetrics) -> PodMetrics {
        PodMetrics {
            pod: self.name(&sample.pod),
            timestamp: self.at(sample.timestamp),
            containers: sample.containers.clone(),
        }
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Checkpoint {
        let status = &checkpoint.status;
        let histogram = |it: &HistogramCheckpoint| HistogramCheckpoint {
            reference: self.at(it.reference),
            ..it.clone()
        };
        Checkpoint {
            metadata: self.name(&checkpoint.metadata),
            spec: checkpoint.spec.clone(),
            status: CheckpointStatus {
                last_update_time: self.at(status.last_update_time),
                version: status.version.clone(),
                cpu: histogram(&status.cpu),
                memory: histogram(&status.memory).into(),
                first_sample_start: self.at(status.first_sample_start),
                last_sample_start: self.at(status.last_sample_start),
                total_samples_count: status.total_samples_count,
            },
        }
    }

    fn pod(&self, pod: &Pod) -> Pod {
        let status = |status: &ContainerStatus| ContainerStatus {
            state: match &status.state {
                ContainerState::Terminated(it) => ContainerState::Terminated(self.end(it)),
                other => other.clone(),
            },
            last_terminated: status.last_terminated.as_ref().map(|it| self.end(it)),
            ..status.clone()
        };
        Pod {
            name: self.name(&pod.name),
            statuses: pod.statuses.iter().map(status).collect(),
            ..pod.clone()
        }
    }

    fn end(&self, end: &Terminated) -> Terminated {
        Terminated { reason: end.reason.clone(), finished_at: self.at(end.finished_at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_of_the_scenario_pass_faster() {
        let start = GoTime::from_unix(946_684_800);
        let epoch = GoTime::from_unix(1_700_000_000);
        let shop = Relocation { namespace: "shop".into(), start, epoch, speed: 15 };
        assert_eq!(shop.at(start.plus(Span::from_mins(1))), epoch.plus(Span::from_secs(4)));
        assert_eq!(shop.at(start.plus(Span::from_secs(-30))), epoch.plus(Span::from_secs(-30)));
        assert_eq!(shop.at(GoTime::ZERO), GoTime::ZERO);
    }
}
