//! Tests of rolling updates: the pods that exist over time.

use super::*;
use kube_lockstep_scenario::resolved;
use kube_lockstep_scenario::resolved::{RollingUpdate, Share};

fn update(max_surge: Share, max_unavailable: Share) -> Action {
    let (max_surge, max_unavailable) = (Some(max_surge), Some(max_unavailable));
    Action::RollingUpdate(RollingUpdate { max_surge, max_unavailable, containers: Vec::new() })
}

/// New pods become ready after 30 s.
fn slow(scenario: &mut Scenario) {
    scenario.workload.startup.ready = Some(secs(30));
}

/// The names of the pods, with the prefix `-` for unready pods and `x` for Terminating pods.
fn names(run: &mut Run, second: i64) -> Vec<String> {
    run.at(second);
    let texts = run.cluster.pods().iter().map(|pod| {
        let ready = pod.ready.is_some_and(|ready| ready.status == ConditionStatus::True);
        match (pod.deletion_timestamp, ready) {
            (Some(_), _) => format!("x{}", pod.name),
            (None, true) => pod.name.to_string(),
            (None, false) => format!("-{}", pod.name),
        }
    });
    texts.collect()
}

#[test]
fn an_old_pod_is_deleted_when_a_new_pod_is_ready() {
    let mut run = Run::new(&scenario(2, |s| {
        slow(s);
        s.schedule(10, None, update(Share::Pods(1), Share::Pods(0)));
    }));
    assert_eq!(names(&mut run, 9), ["web-0", "web-1"]);
    assert_eq!(names(&mut run, 10), ["web-0", "web-1", "-web-2"]);
    assert_eq!(run.replicas(39), (2, 3), "status.replicas counts old and new pods");
    assert_eq!(names(&mut run, 40), ["web-0", "web-2", "-web-3"]);
    assert_eq!(names(&mut run, 70), ["web-2", "web-3"]);
    assert_eq!(run.replicas(600), (2, 2));
}

#[test]
fn immediately_ready_pods_are_replaced_at_once() {
    let requests = [("cpu".into(), q("250m"))].into();
    let container = resolved::Container { name: "app".into(), requests, ..Default::default() };
    let spec = PodSpec { containers: vec![container.to_api()], ..PodSpec::default() };
    let mut run = Run::new(&scenario(3, |s| {
        let update = RollingUpdate { containers: vec![container], ..RollingUpdate::default() };
        s.schedule(10, None, Action::RollingUpdate(update));
    }));
    assert_eq!(names(&mut run, 10), ["web-3", "web-4", "web-5"]);
    assert!(run.cluster.pods().iter().all(|pod| *pod.spec == spec));
}

#[test]
fn a_change_of_replicas_during_an_update_is_distributed() {
    let mut run = Run::new(&scenario(10, |s| {
        s.workload.startup.ready = None;
        s.schedule(10, None, update(Share::Pods(3), Share::Pods(2)));
    }));
    assert_eq!(run.replicas(10), (10, 13));
    run.scale(20, 15);
    assert_eq!(run.replicas(30), (15, 18));
    let old = run
        .cluster
        .pods()
        .iter()
        .filter(|pod| pod.ready.is_some_and(|r| r.last_transition_time < t(0)));
    assert_eq!(old.count(), 8, "the other pods belong to the new revision or the new replicas");
    run.scale(40, 0);
    assert_eq!(run.replicas(50), (0, 0));
    run.scale(60, 2);
    assert_eq!(run.replicas(70), (2, 2), "the update is over");
}

#[test]
fn a_failed_pod_is_replaced_in_its_revision() {
    let mut run = Run::new(&scenario(2, |s| {
        s.workload.startup.ready = None;
        s.schedule(10, None, update(Share::Pods(1), Share::Pods(0)));
        s.schedule(20, None, Action::PodsFailed(pods(2, 2)));
    }));
    assert_eq!(names(&mut run, 30), ["web-0", "web-1", "-web-2", "-web-3"]);
    let phases = [PodPhase::Running, PodPhase::Running, PodPhase::Failed, PodPhase::Running];
    assert!(run.cluster.pods().iter().map(|pod| pod.phase).eq(phases));
}

#[test]
fn a_new_update_overtakes_a_running_update() {
    let mut run = Run::new(&scenario(2, |s| {
        slow(s);
        s.schedule(10, None, update(Share::Pods(1), Share::Pods(0)));
        s.schedule(20, None, update(Share::Pods(1), Share::Pods(0)));
    }));
    // The unready pod of the first update is deleted before a pod of the second is created.
    assert_eq!(names(&mut run, 20), ["web-0", "web-1", "-web-3"]);
    assert_eq!(names(&mut run, 50), ["web-0", "web-3", "-web-4"]);
    assert_eq!(names(&mut run, 80), ["web-3", "web-4"]);
}

#[test]
fn the_oldest_pods_of_two_updates_are_deleted_first() {
    let mut run = Run::new(&scenario(4, |s| {
        slow(s);
        s.schedule(10, None, update(Share::Pods(1), Share::Pods(0)));
        s.schedule(50, None, update(Share::Pods(1), Share::Pods(1)));
    }));
    assert_eq!(names(&mut run, 40), ["web-0", "web-1", "web-2", "web-4", "-web-5"]);
    // Unready pods are deleted before them.
    assert_eq!(names(&mut run, 50), ["web-0", "web-1", "web-4", "-web-6", "-web-7"]);
    assert_eq!(names(&mut run, 80), ["web-4", "web-6", "web-7", "-web-8", "-web-9"]);
    assert_eq!(names(&mut run, 110), ["web-6", "web-7", "web-8", "web-9"]);
}

#[test]
fn stateful_set_pods_are_created_when_their_name_is_free() {
    let mut run = Run::new(&scenario(2, |s| {
        s.workload.resource = "statefulsets".to_owned();
        s.workload.termination = Termination::lasting(secs(5));
        s.schedule(10, None, Action::PodsDeleted(pods(0, 0)));
    }));
    assert_eq!(names(&mut run, 14), ["xweb-0", "web-1"]);
    assert_eq!(run.replicas(14), (2, 2));
    assert_eq!(names(&mut run, 15), ["web-1", "web-2"]);
}

#[test]
fn a_stateful_set_replaces_its_pods_one_by_one() {
    let mut run = Run::new(&scenario(2, |s| {
        slow(s);
        s.workload.resource = "statefulsets".to_owned();
        s.workload.termination = Termination::lasting(secs(5));
        s.workload.kind = "StatefulSet".to_owned();
        s.schedule(10, None, Action::RollingUpdate(RollingUpdate::default()));
    }));
    assert_eq!(names(&mut run, 10), ["web-0", "xweb-1"]);
    assert_eq!(run.replicas(14), (2, 2), "status.replicas counts the Terminating pod");
    assert_eq!(names(&mut run, 15), ["web-0", "-web-2"]);
    assert_eq!(names(&mut run, 45), ["xweb-0", "web-2"]);
    assert_eq!(names(&mut run, 50), ["web-2", "-web-3"]);
    assert_eq!(names(&mut run, 200), ["web-2", "web-3"]);
}
