//! Shrinks a failing scenario to a small one that fails in the same way.
//!
//! It works on the tree of a scenario file, without knowledge of metrics, pods or policies: it cuts
//! off the end, moves everything to an earlier time, removes entries and fields, and simplifies
//! numbers. The parser of scenarios rejects invalid results, and the others are tried. Every step
//! makes the tree simpler by one measure, so it terminates. Fewer ticks count most, since a person
//! must read them.

mod later;
mod signals;
mod simpler;

use std::sync::Arc;

use serde_json::Value;

use self::simpler::{Measure, Place, measure};
use crate::model::time::Time;
use crate::scenario::{self, Scenario};

/// The result of shrinking.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest failing scenario.
    pub scenario: Arc<Scenario>,
    /// The number of scenarios that were tried.
    pub tried: usize,
}

/// A failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailurePoint {
    /// The time of the failure.
    pub at: Time,
    /// The replicas of the target up to the failure, the latest first.
    pub sizes: Vec<i32>,
}

/// Shrinks a failing scenario. `fails` runs a scenario and returns its failure, if it fails in the
/// same way; it is called at most `budget` times.
///
/// The result is the scenario as read from a file. `None` if the scenario does not fail after it is
/// written and read.
pub fn shrink(
    scenario: &Scenario,
    budget: usize,
    fails: &mut dyn FnMut(&Arc<Scenario>) -> Option<FailurePoint>,
) -> Option<Shrunk> {
    let tree = scenario::to_tree(scenario);
    let first = Arc::new(read(scenario, &tree)?);
    let seen = fails(&first)?;
    let size = measure(&tree);
    let mut work = Work { tree, best: first, seen, size, tried: 1, budget, fails };
    loop {
        let before = work.size;
        work.cut_the_end();
        work.start_later();
        work.try_flags();
        work.newer_versions();
        work.usual_kind();
        work.take_entries_away();
        work.take_fields_away();
        work.move_earlier();
        work.make_simpler();
        if work.size == before || work.tried >= work.budget {
            break;
        }
    }
    Some(Shrunk { scenario: work.best, tried: work.tried })
}

/// The scenario of a tree, if it is valid.
fn read(like: &Scenario, tree: &Value) -> Option<Scenario> {
    let nothing = |_: &str| Err("there is no other file".to_owned());
    let read = scenario::parse(&like.path, &scenario::tree_to_yaml(tree), &nothing).ok()?;
    Some(Scenario { id: like.id.clone(), ..read })
}

struct Work<'f> {
    tree: Value,
    best: Arc<Scenario>,
    /// The failure of the best candidate.
    seen: FailurePoint,
    size: Measure,
    tried: usize,
    budget: usize,
    fails: &'f mut dyn FnMut(&Arc<Scenario>) -> Option<FailurePoint>,
}

impl Work<'_> {
    /// Accepts a tree if it is simpler and still fails.
    fn take(&mut self, tree: Value) -> bool {
        let size = measure(&tree);
        if self.tried >= self.budget || size >= self.size {
            return false;
        }
        let Some(scenario) = read(&self.best, &tree) else { return false };
        let scenario = Arc::new(scenario);
        self.tried += 1;
        let Some(seen) = (self.fails)(&scenario) else { return false };
        (self.tree, self.best, self.seen, self.size) = (tree, scenario, seen, size);
        true
    }

    /// Accepts a tree if it fails earlier, so that it is simpler without its end.
    fn take_what_fails_earlier(&mut self, tree: Value) -> bool {
        if self.tried >= self.budget {
            return false;
        }
        let Some(scenario) = read(&self.best, &tree) else { return false };
        self.tried += 1;
        match (self.fails)(&Arc::new(scenario)) {
            Some(seen) if seen.at < self.seen.at => self.take(simpler::until(&tree, seen.at)),
            _ => false,
        }
    }

    /// The tree with a change at one place.
    fn with(&self, place: &Place, change: impl FnOnce(&mut Value)) -> Option<Value> {
        let mut tree = self.tree.clone();
        change(simpler::at_mut(&mut tree, place)?);
        Some(tree)
    }

    /// Removes everything after the failure.
    fn cut_the_end(&mut self) {
        // Later events are obstacles then.
        if !self.take(simpler::until(&self.tree, self.seen.at)) {
            let mut tree = self.tree.clone();
            tree["until"] = Value::from(self.seen.at.to_string());
            self.take(tree);
        }
    }

    /// Removes entries of lists: halves, then quarters, and so on.
    fn take_entries_away(&mut self) {
        for place in simpler::lists(&self.tree) {
            let Some(length) = simpler::length(&self.tree, &place) else { continue };
            let mut chunk = length;
            while chunk > 0 {
                let mut from = 0;
                while let Some(length) = simpler::length(&self.tree, &place)
                    && from < length
                {
                    let range = from..(from + chunk).min(length);
                    let smaller = self.with(&place, |list| simpler::drain(list, range));
                    if !smaller.is_some_and(|tree| self.take(tree)) {
                        from += chunk;
                    }
                }
                chunk /= 2;
            }
        }
    }

    /// Removes fields of maps, outer ones first: each has a default, or the parser rejects the
    /// tree.
    fn take_fields_away(&mut self) {
        for (place, name) in simpler::fields(&self.tree) {
            let smaller = self.with(&place, |map| simpler::remove(map, &name));
            if let Some(tree) = smaller {
                self.take(tree);
            }
        }
    }

    /// Simplifies values: signals become constants, numbers smaller, times rounder, quantities
    /// shorter.
    fn make_simpler(&mut self) {
        for place in simpler::places(&self.tree) {
            while let Some(value) = simpler::at(&self.tree, &place) {
                let candidates = simpler::candidates(value, &place);
                let took = candidates.into_iter().any(|candidate| {
                    let tree = self.with(&place, |value| *value = candidate);
                    tree.is_some_and(|tree| self.take(tree))
                });
                if !took {
                    break;
                }
            }
        }
    }
}
