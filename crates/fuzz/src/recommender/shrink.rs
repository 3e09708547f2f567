//! Shrinks a failing script: fewer steps, fewer changes, default flags.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Script;
use kube_autoscaler_models::vpa::{ClusterChange, ObjectName, RecommenderFlags};

/// The number of attempts after which shrinking ends.
const ATTEMPTS: usize = 400;

/// Returns the smallest script found for which `fails` returns true, as it does for `script`.
pub fn shrink(script: Script, mut fails: impl FnMut(&Script) -> bool) -> Script {
    let mut left = ATTEMPTS;
    let mut best = script;
    let mut attempt = |best: &mut Script, simplify: &mut dyn FnMut(&mut Script) -> bool| {
        let mut candidate = best.clone();
        if left == 0 || !simplify(&mut candidate) {
            return false;
        }
        left -= 1;
        let is_smaller = fails(&candidate);
        if is_smaller {
            *best = candidate;
        }
        is_smaller
    };
    // The failure may be long before the end.
    for part in [2, 4, 8, 16, 32] {
        let cut = |script: &mut Script| {
            let kept = script.steps.len() - script.steps.len() / part;
            let is_shorter = kept < script.steps.len();
            script.steps.truncate(kept);
            is_shorter
        };
        while attempt(&mut best, &mut { cut }) {}
    }
    for name in best.flags.keys().cloned().collect::<Vec<_>>() {
        attempt(&mut best, &mut |script| remove_flag(script, &name));
    }
    for (pod, container) in used_containers(&best) {
        attempt(&mut best, &mut |script| remove_usage(script, &pod, &container));
    }
    for index in (0..best.start.objects.len()).rev() {
        attempt(&mut best, &mut |script| {
            script.start.objects.remove(index);
            true
        });
    }
    // Several steps lose their changes at once, then each step.
    for size in [16, 4, 1] {
        for first in (0..best.steps.len()).step_by(size) {
            attempt(&mut best, &mut |script| remove_changes(script, first, size));
        }
    }
    attempt(&mut best, &mut remove_empty_items);
    // Usually, all of them can be merged at once.
    for size in [best.steps.len(), 16, 4, 1] {
        for first in (0..best.steps.len()).step_by(size.max(1)).rev() {
            attempt(&mut best, &mut |script| merge_empty_steps(script, first, size));
        }
    }
    best
}

fn remove_flag(script: &mut Script, name: &str) -> bool {
    script.flags.remove(name);
    let flags = RecommenderFlags::parse(&script.flags);
    flags.is_ok_and(|flags| {
        script.start.flags = flags;
        true
    })
}

/// Removes the changes of some steps, which keep their times.
fn remove_changes(script: &mut Script, first: usize, count: usize) -> bool {
    let steps = script.steps.iter_mut().skip(first).take(count);
    let mut removed = 0;
    for step in steps {
        removed += step.changes.len();
        step.changes.clear();
    }
    removed > 0
}

/// Removes the items without containers from the responses of the metrics API.
fn remove_empty_items(script: &mut Script) -> bool {
    let mut removed = 0;
    for change in script.steps.iter_mut().flat_map(|step| &mut step.changes) {
        if let ClusterChange::SetMetrics(Ok(items)) = change {
            let before = items.len();
            if items.iter().any(|item| item.containers.is_empty()) {
                Arc::make_mut(items).retain(|item| !item.containers.is_empty());
            }
            removed += before - items.len();
        }
    }
    removed > 0
}

/// Merges steps without changes into the steps before them.
fn merge_empty_steps(script: &mut Script, first: usize, count: usize) -> bool {
    let last = script.steps.len().min(first.saturating_add(count));
    let mut merged = 0;
    for index in (first.max(1)..last).rev() {
        if script.steps[index].changes.is_empty() {
            script.steps[index - 1].until = script.steps[index].until;
            script.steps.remove(index);
            merged += 1;
        }
    }
    merged > 0
}

/// The containers with usage.
fn used_containers(script: &Script) -> BTreeSet<(ObjectName, Arc<str>)> {
    let changes = script.steps.iter().flat_map(|step| &step.changes);
    let items = changes.filter_map(|change| match change {
        ClusterChange::SetMetrics(Ok(items)) => Some(items),
        _ => None,
    });
    let used = items.flat_map(|items| &**items).flat_map(|item| {
        item.containers.iter().map(|usage| (item.pod.clone(), usage.container.clone()))
    });
    used.collect()
}

fn remove_usage(script: &mut Script, pod: &ObjectName, container: &str) -> bool {
    for change in script.steps.iter_mut().flat_map(|step| &mut step.changes) {
        if let ClusterChange::SetMetrics(Ok(items)) = change {
            for item in Arc::make_mut(items).iter_mut().filter(|item| item.pod == *pod) {
                item.containers.retain(|usage| &*usage.container != container);
            }
        }
    }
    true
}
