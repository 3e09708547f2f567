//! Rolling updates: their limits, and the requests of the new pods.

use super::cursor::{At, Problems};
use crate::resolved::{RollingUpdate, Share, Surge, Workload};

/// Checks an update, and removes defaults.
pub(super) fn check(
    update: &mut RollingUpdate,
    workload: Option<&Workload>,
    at: At<'_>,
    problems: &mut Problems,
) {
    let Some(workload) = workload else { return };
    match workload.kind.as_str() {
        kind @ ("ReplicaSet" | "ReplicationController") => {
            let what = format!("a {kind} has no rolling updates");
            problems.hint(at, what, "only Deployments and StatefulSets have rolling updates");
            return;
        }
        "StatefulSet" => {
            let shares =
                [("maxSurge", update.max_surge), ("maxUnavailable", update.max_unavailable)];
            for (name, _) in shares.into_iter().filter(|(_, share)| share.is_some()) {
                let what = format!("`{name}` of a StatefulSet is not supported");
                problems.hint(
                    at.key_position(name),
                    what,
                    "a StatefulSet replaces one pod at a time",
                );
            }
        }
        _ => check_surge(update.surge(), at, problems),
    }
    for share in [&mut update.max_surge, &mut update.max_unavailable] {
        *share = share.filter(|share| *share != Share::DEFAULT);
    }
    check_containers(update, workload, at.key("containers"), problems);
}

fn check_surge(surge: Surge, at: At<'_>, problems: &mut Problems) {
    let Surge { max_surge, max_unavailable } = surge;
    if let Share::Percent(percent @ 101..) = max_unavailable {
        let what = format!("expected at most 100%, found {percent}%");
        problems.plain(at.key("maxUnavailable"), what);
    }
    let none = |share| matches!(share, Share::Pods(0) | Share::Percent(0));
    if none(max_surge) && none(max_unavailable) {
        let what = "`maxSurge` and `maxUnavailable` allow no pod to be replaced";
        let hint = "increase one of them: the API server rejects a Deployment in which both are 0";
        problems.hint(at, what, hint);
    }
}

/// Checks that the new pods have the same containers, since usage is given by container.
fn check_containers(
    update: &RollingUpdate,
    workload: &Workload,
    at: At<'_>,
    problems: &mut Problems,
) {
    if update.containers.is_empty() {
        if at.node().is_some() {
            problems.plain(at, "expected at least one container");
        }
        return;
    }
    let names = workload.spec.containers.iter().map(|container| &container.name);
    if !names.clone().eq(update.containers.iter().map(|container| &container.name)) {
        let names: Vec<&str> = names.map(|name| &**name).collect();
        let what = "a rolling update to other containers is not supported";
        let hint =
            format!("only the requests of these containers can change: {}", names.join(", "));
        problems.hint(at, what, hint);
    }
}
