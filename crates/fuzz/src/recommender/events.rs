//! The events of a generated scenario: OOM kills, pods that come and go, edits, restarts, and
//! problems with metrics.

use serde_json::{Value, json};

use super::generate::Draft;
use super::objects;
use kube_autoscaler_models::time::{Span, Time};

/// Adds the events up to the next run of the recommender.
pub(super) fn step(draft: &mut Draft) {
    let due = draft.now + draft.interval;
    let mut next = due;
    if draft.dice.percent(draft.edges) {
        let at = time_before(draft, due);
        if unusual(draft, at) {
            next = at;
        }
    }
    problem_with_metrics(draft, due);
    draft.now = next;
}

/// A time at the next run, or between the last one and the next one.
fn time_before(draft: &mut Draft, due: Time) -> Time {
    let seconds = draft.interval.0 / Span::from_secs(1).0;
    match draft.dice.below(10) {
        0..=3 => due,
        4 => draft.now,
        5 => draft.now + Span::from_secs(1),
        _ => draft.now + Span::from_secs(draft.dice.between(0, seconds)),
    }
}

/// Adds one or a few events. Returns true if the recommender restarts.
fn unusual(draft: &mut Draft, at: Time) -> bool {
    let Some(pod) = draft.pods.any(&mut draft.dice) else {
        scale(draft, at, 2);
        return false;
    };
    match draft.dice.below(18) {
        0..=3 => oom(draft, at, pod),
        4 => terminated(draft, at, pod),
        5 => evict(draft, at, pod),
        6 | 7 => replace(draft, at, pod),
        8 => relabel(draft, at, pod),
        9 => end(draft, at, pod),
        10 | 11 => edit_vpa(draft, at),
        12 => target(draft, at),
        13 => delete_or_create_vpa(draft, at),
        14 => return checkpoint(draft, at),
        15 => init_containers(draft, at, pod),
        _ => return restart(draft, at),
    }
    false
}

/// A set of pods: usually only one.
fn pods(draft: &mut Draft, pod: u32) -> String {
    draft.dice.weighted(&[(8, pod.to_string()), (1, format!("0-{pod}")), (1, "all".to_owned())])
}

fn container(draft: &mut Draft) -> String {
    draft.dice.pick(&draft.containers)
}

/// A container is killed and restarted between two updates of the pod.
fn oom(draft: &mut Draft, at: Time, pod: u32) {
    let (pods, container) = (pods(draft, pod), container(draft));
    if draft.dice.percent(50) {
        let memory = draft.dice.pick(&["0", "300Mi", "9Gi"]);
        let in_status = json!({ "pods": pods, "memoryInStatus": { &*container: memory } });
        draft.event(at, "editPods", in_status);
    }
    let longest = draft.dice.weighted(&[(5, 5), (2, 600), (1, 90_000), (1, 400_000)]);
    let age = Span::from_secs(draft.dice.between(0, longest)).to_string();
    draft.event(at, "oomKill", json!({ "pods": pods, "container": container, "age": age }));
}

/// All containers are killed, which an update of the pod shows, and perhaps restarted, which
/// another update shows.
fn terminated(draft: &mut Draft, at: Time, pod: u32) {
    let states: &[&str] =
        if draft.dice.percent(50) { &["terminated", "restarted"] } else { &["terminated"] };
    for shown in states {
        for container in draft.containers.clone() {
            let kill = json!({ "pods": pod.to_string(), "container": container, "shown": shown });
            draft.event(at, "oomKill", kill);
        }
    }
}

fn evict(draft: &mut Draft, at: Time, pod: u32) {
    let usage = draft.dice.between(1 << 20, 1 << 31).to_string();
    let (pods, container) = (pods(draft, pod), container(draft));
    draft.event(at, "evict", json!({ "pods": pods, "container": container, "usage": usage }));
}

/// A pod is deleted and replaced, perhaps after an eviction, or the workload is scaled.
fn replace(draft: &mut Draft, at: Time, pod: u32) {
    if draft.dice.percent(30) {
        evict(draft, at, pod);
    }
    if draft.dice.percent(60) {
        draft.pods.replace(pod);
        return draft.event(at, "podsDeleted", pod.to_string());
    }
    let replicas = draft.dice.below(4) as usize;
    scale(draft, at, replicas);
}

fn scale(draft: &mut Draft, at: Time, replicas: usize) {
    draft.pods.scale(replicas);
    draft.event(at, "scale", replicas);
}

/// The labels of pods with one of two sets of labels.
pub(super) fn labels(track: u64) -> Value {
    json!({ "app": "web", "track": format!("t{track}") })
}

fn relabel(draft: &mut Draft, at: Time, pod: u32) {
    let labels = match draft.has_tracks {
        true => labels(draft.dice.below(2)),
        // No VPA selects the pod.
        false => draft.dice.pick(&[json!({ "app": "web" }), json!({ "app": "other" })]),
    };
    let pods = pods(draft, pod);
    draft.event(at, "relabel", json!({ "pods": pods, "labels": labels }));
}

/// A pod ends, and is usually replaced, as by a controller.
fn end(draft: &mut Draft, at: Time, pod: u32) {
    let running = draft.pods.count_running();
    let action = draft.dice.pick(&["podsSucceeded", "podsFailed"]);
    draft.pods.end(pod);
    draft.event(at, action, pod.to_string());
    if draft.dice.percent(30) {
        init_containers(draft, at, pod);
    }
    if draft.dice.percent(70) {
        scale(draft, at, running);
    }
}

/// A pod gets other init containers, or none.
fn init_containers(draft: &mut Draft, at: Time, pod: u32) {
    let one = container(draft);
    let names = draft.dice.pick(&[vec![one], draft.init_containers.clone()]);
    let pods = pods(draft, pod);
    draft.event(at, "editPods", json!({ "pods": pods, "initContainers": names }));
}

/// Adds an event of a VPA.
fn event_of(draft: &mut Draft, vpa: usize, at: Time, action: &str, argument: Value) {
    draft.event(at, action, argument);
    if let Some((_, event)) = draft.timeline.last_mut()
        && draft.vpas.len() > 1
    {
        event["vpa"] = objects::VPAS[vpa].into();
    }
}

fn any_vpa(draft: &mut Draft) -> usize {
    draft.dice.below(draft.vpas.len() as u64) as usize
}

fn edit_vpa(draft: &mut Draft, at: Time) {
    let vpa = any_vpa(draft);
    if draft.vpas[vpa] {
        let patch = objects::edit(draft);
        event_of(draft, vpa, at, "editVpa", patch);
    }
}

fn delete_or_create_vpa(draft: &mut Draft, at: Time) {
    let vpa = any_vpa(draft);
    let existed = draft.vpas[vpa];
    if existed {
        event_of(draft, vpa, at, "deleteVpa", json!({}));
    }
    draft.vpas[vpa] = !existed || draft.dice.percent(70);
    if draft.vpas[vpa] {
        event_of(draft, vpa, at, "createVpa", json!({}));
        let patch = objects::edit(draft);
        event_of(draft, vpa, at, "editVpa", patch);
    }
}

fn target(draft: &mut Draft, at: Time) {
    let orphan = draft.dice.percent(75);
    if !orphan {
        draft.pods.scale(0);
    }
    draft.event(at, "targetDeleted", json!({ "orphan": orphan }));
    draft.pods.scale(draft.replicas);
    lasting(draft, &[(3, 1), (2, 2), (1, 12)]);
}

/// Sets the duration of the last event, in intervals of the recommender.
fn lasting(draft: &mut Draft, intervals: &[(u64, i64)]) {
    let lasts = Span(draft.dice.weighted(intervals) * draft.interval.0);
    if let Some((_, event)) = draft.timeline.last_mut() {
        event["for"] = lasts.to_string().into();
    }
}

/// A checkpoint is deleted or replaced. A recommender that starts afterwards reads it. Returns true
/// if it starts.
fn checkpoint(draft: &mut Draft, at: Time) -> bool {
    if draft.dice.percent(30) {
        let (_, _, name) = objects::checkpoint_name(&mut draft.dice);
        draft.event(at, "deleteCheckpoint", name);
        return false;
    }
    let checkpoint = objects::checkpoint(draft, at);
    draft.event(at, "setCheckpoint", checkpoint);
    draft.dice.percent(50) && restart(draft, at)
}

fn restart(draft: &mut Draft, at: Time) -> bool {
    draft.event(at, "restartRecommender", json!({}));
    true
}

/// Adds problems with the metrics that the next run reads.
fn problem_with_metrics(draft: &mut Draft, due: Time) {
    if draft.dice.percent(draft.edges / 3) {
        draft.event(due, "metricsError", "the metrics API is unavailable");
        lasting(draft, &[(8, 1), (1, 2), (1, 5)]);
    }
    let all = "all".to_owned();
    if draft.dice.percent(1) {
        // The recommender reads the same samples again.
        let pod = draft.pods.any(&mut draft.dice).unwrap_or(0).to_string();
        let pods = draft.dice.pick(&[all, pod]);
        draft.event(due, "metricsStale", pods);
        let longest = if draft.edges > 0 { 40 } else { 3 };
        let intervals = draft.dice.between(2, longest);
        return lasting(draft, &[(1, intervals)]);
    }
    if !draft.dice.percent(draft.edges / 3) {
        return;
    }
    let Some(pod) = draft.pods.any(&mut draft.dice) else { return };
    let pods = pods(draft, pod);
    match draft.dice.below(10) {
        0..=3 => draft.event(due, "metricsMissing", pods),
        4..=7 => {
            // Late samples are older than earlier ones.
            let by = format!("{}s", draft.dice.between(1, 3600));
            draft.event(due, "metricsLate", json!({ "pods": pods, "by": by }));
        }
        8 => {
            let container = container(draft);
            let of = json!({ "pods": pods, "container": container });
            draft.event(due, "containerMetricsMissing", of);
        }
        _ => {
            let resource = draft.dice.pick(&["cpu", "memory"]);
            draft.event(due, "resourceMissing", json!({ "pods": pods, "resource": resource }));
        }
    }
    lasting(draft, &[(6, 1), (2, 2), (1, 12)]);
    if draft.dice.percent(30)
        && let Some((_, event)) = draft.timeline.last_mut()
    {
        event["newPods"] = true.into();
    }
}
