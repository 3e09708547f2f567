//! Tests of the creation and deletion of pods, and of the actions of users.

use serde_json::json;

use super::*;
use crate::world::{Faults, MAX_PODS, PodState, ScaleTarget};

#[test]
fn the_initial_pods_have_been_ready_for_their_age() {
    let mut run = Run::new(&scenario(2, |_| {}));
    let changes = run.at(0);
    assert!(matches!(&changes[0], Change::PodTemplate { name, .. } if &**name == "t0"));
    assert_eq!(
        changes[1],
        Change::SetScale(ScaleTarget {
            resource: "deployments.apps".into(),
            name: "web".into(),
            replicas: Some(2),
            status_replicas: 2,
            selector: "app=web".into(),
        })
    );
    let expected = ["web-0 Running -1h ready -1h", "web-1 Running -1h ready -1h"];
    assert_eq!(run.pods(0), expected);
    assert_eq!(run.replicas(0), (2, 2));
    assert!(run.cluster.pods()[0].labels["app"] == "web");
}

#[test]
fn a_new_pod_is_pending_then_running_then_ready() {
    let mut run = Run::new(&scenario(0, |s| {
        s.workload.startup =
            Startup { pending: Some(secs(10)), ready: Some(secs(25)), metrics: secs(0) };
    }));
    run.scale(15, 1);
    for (second, pod) in [
        (15, "web-0 Pending"),
        (24, "web-0 Pending"),
        (25, "web-0 Running 25s unready 25s"),
        (39, "web-0 Running 25s unready 25s"),
        (40, "web-0 Running 25s ready 40s"),
        (90, "web-0 Running 25s ready 40s"),
    ] {
        assert_eq!(run.pods(second), [pod], "t={second}");
    }
}

#[test]
fn a_quota_keeps_pods_below_the_replicas() {
    let mut run = Run::new(&scenario(5, |s| s.workload.quota = Some(3)));
    assert_eq!((run.replicas(0), run.pods(0).len()), ((5, 3), 3));
    run.scale(15, 2);
    assert_eq!((run.replicas(30), run.pods(30).len()), ((2, 2), 2));
    run.scale(30, 9);
    assert_eq!((run.replicas(45), run.pods(45).len()), ((9, 3), 3));
}

#[test]
fn a_recreated_target_has_its_initial_state() {
    for (kind, leaving) in [("deployments", 2), ("statefulsets", 2)] {
        let mut run = Run::new(&scenario(2, |s| {
            s.workload.resource = kind.to_owned();
            s.workload.termination = Termination::lasting(secs(40));
            s.schedule(10, Some(20), Action::TargetDeleted(TargetDeletion::default()));
            s.schedule(12, Some(15), Action::TargetDeleted(TargetDeletion::default()));
            s.schedule(15, None, Action::Scale(7));
            s.schedule(16, None, Action::PodsFailed(PodSet::All));
        }));
        let resource = format!("{kind}.apps");
        let name: Arc<str> = "web".into();
        run.at(0);
        let changes = run.at(10);
        let deleted =
            Change::DeleteScale { resource: resource.as_str().into(), name: name.clone() };
        assert!(changes.contains(&deleted), "{changes:?}");
        let scale = run.cluster.scale(&resource, "web");
        let error = scale.get(|| resource.clone()).expect_err("deleted");
        assert_eq!(&*error.message, format!("{resource} \"web\" not found"));
        assert_eq!(scale.update_error(|| resource.clone()), Some(error));
        assert_eq!(run.pods(29).len(), leaving);
        assert!(!run.at(29).contains(&deleted), "the deletion is sent once");
        assert_eq!(run.replicas(30), (2, 2), "{kind}");
        let scale = run.cluster.scale(&resource, "web");
        assert_eq!(scale.update_error(|| resource.clone()), None);
        let ready = run.pods(50);
        assert_eq!(ready, ["web-2 Running 30s ready 30s", "web-3 Running 30s ready 30s"]);
    }
}

#[test]
fn only_a_deployment_replaces_orphans_before_it_is_created_again() {
    for (kind, replaced) in
        [("Deployment", vec!["web-1", "web-2", "web-3"]), ("StatefulSet", vec!["web-1", "web-2"])]
    {
        let mut run = Run::new(&scenario(3, |s| {
            s.workload.kind = kind.to_owned();
            let orphan = TargetDeletion { orphan: Some(true) };
            s.schedule(10, Some(20), Action::TargetDeleted(orphan));
            s.schedule(12, None, Action::Scale(7));
            s.schedule(15, None, Action::PodsDeleted(pods(0, 0)));
        }));
        let names = |pods: Vec<String>| -> Vec<String> {
            pods.iter().map(|pod| pod.split(' ').next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(names(run.pods(14)), ["web-0", "web-1", "web-2"], "{kind}");
        assert_eq!(names(run.pods(20)), replaced, "{kind}");
        assert_eq!(names(run.pods(30)), ["web-1", "web-2", "web-3"], "{kind}");
    }
}

#[test]
fn times_are_published_in_whole_seconds_rounded_down() {
    let mut run = Run::new(&scenario(0, |s| {
        s.workload.startup = Startup {
            pending: Some(Span::from_millis(1700)),
            ready: Some(Span::from_millis(3999)),
            metrics: secs(0),
        };
    }));
    run.at(0);
    run.world.scaled(t(0), 0, 1);
    assert_eq!(run.pods(10), ["web-0 Running 1s ready 3s"]);
}

#[test]
fn a_pod_is_never_ready_before_it_runs() {
    let startup = |pending, ready| {
        scenario(0, |s| s.workload.startup = Startup { pending, ready, metrics: secs(0) })
    };
    for (pending, ready, pod) in [
        (Some(20), Some(5), "web-0 Running 20s ready 20s"),
        (Some(20), Some(20), "web-0 Running 20s ready 20s"),
        (Some(20), None, "web-0 Running 20s unready 20s"),
        (None, Some(5), "web-0 Pending"),
    ] {
        let mut run = Run::new(&startup(pending.map(secs), ready.map(secs)));
        run.scale(0, 1);
        assert_eq!(run.pods(60), [pod], "{pending:?} {ready:?}");
    }
}

#[test]
fn a_replica_set_deletes_pending_then_unready_then_new_pods() {
    let mut run = Run::new(&scenario(4, |s| {
        s.workload.startup = Startup { pending: None, ready: None, metrics: secs(0) };
        s.schedule(5, None, Action::PodsUnready(pods(1, 1)));
    }));
    let names = |run: &mut Run, second| -> Vec<String> {
        let pods = run.pods(second).into_iter();
        pods.map(|pod| pod.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    run.scale(10, 5);
    assert_eq!(names(&mut run, 11), ["web-0", "web-1", "web-2", "web-3", "web-4"]);
    run.scale(20, 4);
    assert_eq!(names(&mut run, 20), ["web-0", "web-1", "web-2", "web-3"]);
    run.scale(30, 3);
    assert_eq!(names(&mut run, 30), ["web-0", "web-2", "web-3"]);
    run.scale(40, 1);
    assert_eq!(names(&mut run, 40), ["web-0"]);
}

#[test]
fn other_workloads_delete_the_newest_or_the_oldest_pods() {
    for (order, remaining) in [(ScaleDownOrder::Newest, "web-0"), (ScaleDownOrder::Oldest, "web-2")]
    {
        let mut run = Run::new(&scenario(3, |s| {
            s.workload.scale_down_order = order;
            s.schedule(5, None, Action::PodsUnready(pods(0, 0)));
        }));
        run.scale(10, 1);
        assert!(run.pods(10)[0].starts_with(remaining), "{order:?}");
    }
}

#[test]
fn a_deleted_pod_is_ready_while_its_containers_run() {
    let termination = Termination { duration: secs(30), ready: secs(10) };
    let mut run = Run::new(&scenario(2, |s| s.workload.termination = termination));
    run.scale(15, 1);
    let still_ready = "web-1 Running -1h ready -1h terminating 45s";
    assert_eq!(run.pods(15), ["web-0 Running -1h ready -1h", still_ready]);
    assert_eq!(run.pods(24)[1], still_ready);
    assert_eq!(run.pods(25)[1], "web-1 Running -1h unready 25s terminating 45s");

    let lasting = Termination::lasting(secs(30));
    let mut run = Run::new(&scenario(2, |s| s.workload.termination = lasting));
    run.scale(15, 1);
    let terminating = "web-1 Running -1h ready -1h terminating 45s";
    assert_eq!(run.pods(15), ["web-0 Running -1h ready -1h", terminating]);
    assert_eq!(run.replicas(15), (1, 1));
    assert_eq!(run.pods(44)[1], terminating);
    let changes = run.at(45);
    assert!(changes.contains(&Change::DeletePods(vec!["web-1".into()])), "{changes:?}");
    assert_eq!(run.pods(45), ["web-0 Running -1h ready -1h"]);
}

#[test]
fn unstarted_and_failed_pods_need_no_grace_period() {
    let mut run = Run::new(&scenario(1, |s| {
        s.workload.termination = Termination::lasting(secs(30));
        s.workload.startup.pending = None;
        s.schedule(20, None, Action::PodsFailed(pods(0, 0)));
        s.schedule(30, None, Action::PodsDeleted(PodSet::All));
    }));
    assert_eq!(run.pods(20), ["web-0 Failed -1h unready 20s", "web-1 Pending"]);
    assert_eq!(run.pods(30), ["web-2 Pending"]);
}

#[test]
fn failed_deleted_and_stuck_pods_are_replaced_at_once() {
    let mut run = Run::new(&scenario(3, |s| {
        s.workload.termination = Termination::lasting(secs(30));
        s.schedule(10, None, Action::PodsFailed(pods(0, 0)));
        s.schedule(10, None, Action::PodsDeleted(pods(1, 1)));
        s.schedule(10, Some(100), Action::PodsStuckTerminating(pods(2, 2)));
    }));
    assert_eq!(run.replicas(9), (3, 3));
    assert_eq!(
        run.pods(10),
        [
            "web-0 Failed -1h unready 10s",
            "web-1 Running -1h ready -1h terminating 40s",
            "web-2 Running -1h ready -1h terminating 40s",
            "web-3 Running 10s ready 10s",
            "web-4 Running 10s ready 10s",
            "web-5 Running 10s ready 10s",
        ]
    );
    assert_eq!(run.replicas(10), (3, 3));
    assert_eq!(run.pods(109).len(), 5);
    assert_eq!(run.pods(110).len(), 4);
    assert_eq!(run.pods(110)[0], "web-0 Failed -1h unready 10s");
}

#[test]
fn actions_do_not_affect_missing_pods() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(10, None, Action::PodsUnready(pods(0, 9)));
        s.schedule(10, None, Action::PodsFailed(pods(7, 8)));
    }));
    run.scale(15, 2);
    let expected = ["web-0 Running -1h unready 10s", "web-1 Running 15s ready 15s"];
    assert_eq!(run.pods(20), expected);
}

#[test]
fn a_pod_is_unready_while_any_action_affects_it() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(10, Some(20), Action::PodsUnready(PodSet::All));
        s.schedule(20, Some(20), Action::PodsUnready(PodSet::All));
        // This action begins when the previous one ends: the pod stays unready at t=40s.
        s.schedule(40, Some(10), Action::PodsUnready(PodSet::All));
        s.schedule(60, Some(0), Action::PodsUnready(PodSet::All));
    }));
    for (second, pod) in [
        (10, "web-0 Running -1h unready 10s"),
        (30, "web-0 Running -1h unready 10s"),
        (49, "web-0 Running -1h unready 10s"),
        (50, "web-0 Running -1h ready 50s"),
        (60, "web-0 Running -1h ready 50s"),
    ] {
        assert_eq!(run.pods(second), [pod], "t={second}");
    }
}

#[test]
fn a_pod_that_changes_back_keeps_its_new_times() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(3, Some(4), Action::PodsUnready(PodSet::All));
    }));
    run.at(0);
    let changes = run.at(15);
    let states = changes.iter().find_map(|change| match change {
        Change::SetPods(states) => Some(states),
        _ => None,
    });
    let [PodState { ready: Some(ready), .. }] = &states.expect("a change")[..] else {
        panic!("{changes:?}")
    };
    assert_eq!((ready.status, ready.last_transition_time), (ConditionStatus::True, t(7)));
}

#[test]
fn an_external_scale_changes_the_replicas() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(20, None, Action::Scale(4));
        s.schedule(40, None, Action::Scale(2));
    }));
    let replicas = |changes: &[Change]| {
        changes.iter().find_map(|change| match change {
            Change::SetScale(target) => Some((target.replicas, target.status_replicas)),
            _ => None,
        })
    };
    run.at(0);
    assert_eq!(replicas(&run.at(15)), None);
    assert_eq!(replicas(&run.at(30)), Some((Some(4), 4)));
    run.world.scaled(t(30), 0, 6);
    assert_eq!(run.world.replicas(0), 6);
    // Replicas that the controller wrote are not sent again.
    assert_eq!(replicas(&run.at(30)), Some((None, 6)));
    assert_eq!(replicas(&run.at(39)), None);
    assert_eq!(replicas(&run.at(45)), Some((Some(2), 2)));
    assert_eq!(run.world.replicas(0), 2);
}

#[test]
fn replicas_are_limited_by_the_quota() {
    let mut run = Run::new(&scenario(1, |_| {}));
    run.scale(0, i32::MAX);
    assert_eq!(run.replicas(15), (i32::MAX, i32::try_from(MAX_PODS).expect("small")));
    assert_eq!(count(&run.cluster, PodPhase::Running), MAX_PODS);
    run.scale(15, -1);
    assert_eq!(run.replicas(30), (-1, 0));
}

#[test]
fn actions_on_the_hpa_are_published_once() {
    let scenario = scenario(1, |s| {
        let patch = json!({"spec": {"maxReplicas": 3}});
        s.schedule(20, None, Action::EditHpa(patch));
        s.schedule(20, None, Action::PodsUnready(PodSet::All));
        s.schedule(20, None, Action::RestartController(Empty {}));
        s.schedule(40, None, Action::DeleteHpa(Empty {}));
        s.schedule(50, None, Action::CreateHpa(Empty {}));
    });
    let mut world = World::new(&scenario);
    let create = Change::CreateHpa(json!({"metadata": {"name": "web"}}));
    assert_eq!(world.next_api_event(Time(-1)), Some(t(0)));
    assert_eq!(world.api_events(t(0)), std::slice::from_ref(&create));
    assert_eq!(world.next_api_event(t(0)), Some(t(20)));
    let patch = json!({"spec": {"maxReplicas": 3}});
    let patch = Change::PatchHpa { name: "web".into(), patch };
    assert_eq!(world.api_events(t(20)), [patch, Change::RestartController]);
    assert_eq!(world.api_events(t(20)), []);
    assert_eq!(world.next_api_event(t(20)), Some(t(40)));
    assert_eq!(world.api_events(t(40)), [Change::DeleteHpa { name: "web".into() }]);
    assert_eq!(world.api_events(t(50)), [create]);
    assert_eq!(world.next_api_event(t(50)), None);
}

#[test]
fn the_later_of_two_faults_applies_first_then_the_earlier_one() {
    let mut run = Run::new(&scenario(1, |s| {
        s.schedule(10, Some(50), Action::MetricsError(error(500).into()));
        s.schedule(20, Some(20), Action::MetricsError(error(503).into()));
        s.schedule(20, Some(20), Action::UpdateScaleError(error(409)));
    }));
    let faults = |changes: &[Change]| {
        changes.iter().find_map(|change| match change {
            Change::Faults(faults) => Some(faults.clone()),
            _ => None,
        })
    };
    let list = |code| Faults { list_pod_metrics: Some(error(code)), ..Faults::default() };
    assert_eq!(faults(&run.at(0)), None);
    assert_eq!(faults(&run.at(15)), Some(list(500)));
    let both = Faults { update_scale: Some(error(409)), ..list(503) };
    assert_eq!(faults(&run.at(30)), Some(both));
    assert_eq!(run.cluster.pod_metrics(), Err(&error(503)));
    assert_eq!(faults(&run.at(31)), None);
    assert_eq!(faults(&run.at(40)), Some(list(500)));
    assert_eq!(faults(&run.at(60)), Some(Faults::default()));
    assert_eq!(run.samples(60).len(), 1);
}
