//! Shrinks a failing scenario to a small one that fails in the same way.
//!
//! It works on the tree of a scenario file: it cuts off the end, moves everything to an earlier
//! time, replaces signals by simpler ones, removes entries and fields, and simplifies numbers. It
//! knows the fields that contain times, signals and references, but not their meaning for the
//! controller. The parser of scenarios rejects invalid results; the valid results are tried. Every
//! step makes the tree simpler by one measure, so shrinking terminates.

mod durations;
mod later;
mod signals;
mod simpler;

use std::sync::Arc;

use serde_json::Value;

use self::simpler::Path;
pub use self::simpler::{Measure, Priority, measure};
use kube_autoscaler_models::time::Time;

/// The result of shrinking.
#[derive(Clone, Debug)]
pub struct Shrunk<S> {
    /// The smallest failing scenario.
    pub scenario: Arc<S>,
    /// The tree of its file.
    pub tree: Value,
    /// The number of scenarios that were tried.
    pub tried: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailurePoint {
    /// The time of the failure.
    pub at: Time,
    /// The replicas of the target up to the failure, the latest first. Empty: no controller changes
    /// them.
    pub replicas: Vec<i32>,
}

/// Shrinks a failing scenario, given by the tree of its file. `read` reads a tree, if it is valid.
/// `fails` runs a scenario and returns its failure, if it fails in the same way; it is called at
/// most `budget` times.
///
/// `None` if the scenario that is read from the tree does not fail.
pub fn shrink<S>(
    tree: Value,
    budget: usize,
    priority: Priority,
    read: &dyn Fn(&Value) -> Option<S>,
    fails: &mut dyn FnMut(&Arc<S>) -> Option<FailurePoint>,
) -> Option<Shrunk<S>> {
    let first = Arc::new(read(&tree)?);
    let failure = fails(&first)?;
    let size = measure(&tree, priority);
    let tried = 1;
    let mut work = Work { tree, best: first, failure, size, tried, budget, priority, read, fails };
    loop {
        let before = work.size;
        work.cut_the_end();
        work.start_later();
        work.try_flags();
        work.newer_versions();
        work.usual_kind();
        work.remove_entries();
        work.remove_fields();
        work.move_earlier();
        work.simplify_values();
        if work.size == before || work.tried >= work.budget {
            break;
        }
    }
    Some(Shrunk { scenario: work.best, tree: work.tree, tried: work.tried })
}

struct Work<'f, S> {
    tree: Value,
    best: Arc<S>,
    /// The failure of the best candidate.
    failure: FailurePoint,
    size: Measure,
    tried: usize,
    budget: usize,
    priority: Priority,
    read: &'f dyn Fn(&Value) -> Option<S>,
    fails: &'f mut dyn FnMut(&Arc<S>) -> Option<FailurePoint>,
}

impl<S> Work<'_, S> {
    /// Accepts a tree if it is simpler and still fails.
    fn accept(&mut self, tree: Value) -> bool {
        let size = measure(&tree, self.priority);
        if self.tried >= self.budget || size >= self.size {
            return false;
        }
        let Some(scenario) = (self.read)(&tree).map(Arc::new) else { return false };
        self.tried += 1;
        let Some(failure) = (self.fails)(&scenario) else { return false };
        (self.tree, self.best, self.failure, self.size) = (tree, scenario, failure, size);
        true
    }

    /// Accepts a tree if it fails earlier, so that it is simpler without its end.
    fn accept_if_earlier(&mut self, tree: Value) -> bool {
        if self.tried >= self.budget {
            return false;
        }
        let Some(scenario) = (self.read)(&tree) else { return false };
        self.tried += 1;
        match (self.fails)(&Arc::new(scenario)) {
            Some(failure) if failure.at < self.failure.at => {
                self.accept(simpler::until(&tree, failure.at))
            }
            _ => false,
        }
    }

    /// A copy of the tree with a change at one path.
    fn with(&self, path: &Path, change: impl FnOnce(&mut Value)) -> Option<Value> {
        let mut tree = self.tree.clone();
        change(simpler::at_mut(&mut tree, path)?);
        Some(tree)
    }

    /// Removes everything after the failure.
    fn cut_the_end(&mut self) {
        // Events after the new end may make the scenario invalid.
        if !self.accept(simpler::until(&self.tree, self.failure.at)) {
            let mut tree = self.tree.clone();
            tree["until"] = Value::from(self.failure.at.to_string());
            self.accept(tree);
        }
    }

    /// Removes entries of lists: halves, then quarters, and so on.
    fn remove_entries(&mut self) {
        for path in simpler::lists(&self.tree) {
            let Some(length) = simpler::length(&self.tree, &path) else { continue };
            let mut chunk = length;
            while chunk > 0 {
                let mut from = 0;
                while let Some(length) = simpler::length(&self.tree, &path)
                    && from < length
                {
                    let range = from..(from + chunk).min(length);
                    let smaller = self.with(&path, |list| simpler::drain(list, range));
                    if !smaller.is_some_and(|tree| self.accept(tree)) {
                        from += chunk;
                    }
                }
                chunk /= 2;
            }
        }
    }

    /// Removes fields of maps, outer ones first: each has a default, or the parser rejects the
    /// tree.
    fn remove_fields(&mut self) {
        for (path, name) in simpler::fields(&self.tree) {
            let smaller = self.with(&path, |map| simpler::remove(map, &name));
            if let Some(tree) = smaller {
                self.accept(tree);
            }
        }
    }

    /// Simplifies values: signals become constants, numbers become smaller, times rounder, and
    /// quantities shorter.
    fn simplify_values(&mut self) {
        for path in simpler::paths(&self.tree) {
            while let Some(value) = simpler::at(&self.tree, &path) {
                let candidates = simpler::candidates(value, &path);
                let accepted = candidates.into_iter().any(|candidate| {
                    let tree = self.with(&path, |value| *value = candidate);
                    tree.is_some_and(|tree| self.accept(tree))
                });
                if !accepted {
                    break;
                }
            }
        }
    }
}
