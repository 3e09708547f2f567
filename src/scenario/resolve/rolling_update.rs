//! Rolling updates: how many pods at a time, and what the new ones request.

use std::sync::Arc;

use super::cursor::{At, Problems};
use super::workload::container;
use crate::model::api::PodSpec;
use crate::scenario::raw::RollingUpdate as Typed;
use crate::scenario::resolved::{Action, RollingUpdate, Share, Surge, Workload};
use crate::scenario::scalars::ShareText;

/// What a Deployment has if nothing else is said.
const DEFAULT: Share = Share::Percent(25);

pub(super) fn resolve(
    typed: &Typed,
    workload: Option<&Workload>,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Action> {
    let workload = workload?;
    let kind = workload.kind.as_str();
    let surge = match kind {
        "ReplicaSet" | "ReplicationController" => {
            let what = format!("a {kind} has no rolling update: its pods stay as they are");
            problems.hint(at, what, "a Deployment has, and a StatefulSet");
            return None;
        }
        "StatefulSet" => {
            let given = [&typed.max_surge, &typed.max_unavailable];
            for (name, _) in
                ["maxSurge", "maxUnavailable"].iter().zip(given).filter(|it| it.1.is_some())
            {
                let what = format!("`{name}` of a StatefulSet is not supported");
                problems.hint(at.key_position(name), what, "it replaces one pod at a time");
            }
            None
        }
        _ => {
            let max_surge = share(typed.max_surge.as_ref(), at.key("maxSurge"), problems)?;
            let fewer = typed.max_unavailable.as_ref();
            let max_unavailable = share(fewer, at.key("maxUnavailable"), problems)?;
            let none = |share| matches!(share, Share::Pods(0) | Share::Percent(0));
            if let Share::Percent(percent @ 101..) = max_unavailable {
                let what = format!("expected at most 100%, found {percent}%");
                problems.plain(at.key("maxUnavailable"), what);
            }
            if none(max_surge) && none(max_unavailable) {
                let what = "neither `maxSurge` nor `maxUnavailable` lets a pod be replaced";
                problems.hint(at, what, "the API server refuses that; one of them has to be more");
            }
            Some(Surge { max_surge, max_unavailable })
        }
    };
    let spec = containers(typed, workload, at.key("containers"), problems);
    Some(Action::RollingUpdate(RollingUpdate { surge, spec }))
}

fn share(text: Option<&ShareText>, at: At<'_>, problems: &mut Problems) -> Option<Share> {
    let Some(ShareText(text)) = text else { return Some(DEFAULT) };
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse().map(Share::Percent),
        None => text.parse().map(Share::Pods),
    };
    if share.is_err() {
        let what = format!("expected a number of pods, or percent, found {text:?}");
        problems.hint(at, what, "for instance 1 or 25%");
    }
    share.ok()
}

/// The spec of the new pods, if it is another one. What the metrics say is said by container, hence
/// there have to be the same.
fn containers(
    typed: &Typed,
    workload: &Workload,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Arc<PodSpec>> {
    if typed.containers.is_empty() {
        if at.node().is_some() {
            problems.plain(at, "expected at least one container");
        }
        return None;
    }
    let list = typed.containers.iter().enumerate();
    let containers: Vec<_> =
        list.map(|(index, typed)| container(typed, at.index(index), problems)).collect();
    let old = &workload.spec.containers;
    let names = old.iter().map(|container| &container.name);
    if !names.clone().eq(containers.iter().map(|container| &container.name)) {
        let names: Vec<&str> = names.map(|name| &**name).collect();
        let what = "a rolling update to other containers is not supported";
        let hint = format!("only requests can change: name just {}", names.join(", "));
        problems.hint(at, what, hint);
    }
    Some(Arc::new(PodSpec { containers, ..(*workload.spec).clone() }))
}
