//! OOM kills in updates of pods, and the memory that they count.

use std::collections::BTreeMap;

use super::super::api::ObjectName;
use super::super::pod::{
    ContainerState, ContainerStatus, Labels, Pod, PodContainer, Terminated, observe_update,
};
use super::super::time::GoTime;
use crate::api::PodPhase;
use crate::rules::{VpaRelease, VpaRules};

/// A pod whose container requests this memory in its specification and its status.
fn pod(restarts: i32, state: ContainerState, last: Option<Terminated>, memory: i64) -> Pod {
    let status = ContainerStatus {
        name: "app".into(),
        restart_count: restarts,
        state,
        last_terminated: last,
        memory_request: Some(memory),
    };
    Pod {
        name: ObjectName::new("ns", "web-0"),
        labels: Labels::new(BTreeMap::new()),
        phase: PodPhase::Running,
        containers: vec![PodContainer { name: "app".into(), memory_request: memory }],
        init_containers: Vec::new(),
        statuses: vec![status],
    }
}

/// Upstream: observer.go, OnUpdate: a restart shows a kill of the instance before it, which had the
/// requests of the old pod; a container that has just ended had those of the new one.
#[test]
fn a_kill_counts_the_requests_that_were_in_effect() {
    let kill = || Terminated {
        reason: "OOMKilled".to_owned(),
        finished_at: GoTime::from_unix(946_684_800),
    };
    let rules = VpaRules::of(VpaRelease::NEWEST);
    let old = pod(0, ContainerState::Running, None, 100);
    for (new, expected) in [
        (pod(1, ContainerState::Running, Some(kill()), 200), 100),
        (pod(0, ContainerState::Terminated(kill()), None, 200), 200),
    ] {
        let found = observe_update(&old, &new, &rules);
        let requested: Vec<i64> = found.iter().map(|oom| oom.kill.requested).collect();
        assert_eq!(requested, [expected], "{new:?}");
    }
}
