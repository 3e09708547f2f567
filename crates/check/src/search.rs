//! The search: breadth first, from one time of a choice to the next.
//!
//! All runs of a layer are at the same time. Runs with equal states continue in the same way, so
//! only the first of them does. Of several ways to a state of a layer, the one with the fewest
//! choices is kept.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::choices::{Choices, Chosen, Distance};
use super::watch::{Expectations, Seen, Violation};
use educe::Educe;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::state::{Part, State};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::expect::Reconciled;
use kube_lockstep_sim::run::{ModelRun, RandomOutcome};

/// The progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The number of different states so far.
    pub states: usize,
    /// The number of steps so far: from a state, with a choice, to the time of the next choice.
    pub steps: u64,
    /// All choices before this time have been tried.
    pub reached: Time,
}

/// A run, just before a choice.
#[derive(Educe)]
#[educe(Clone)]
pub(crate) struct Node<'v> {
    /// Large: lists of runs are moved as they grow.
    run: Box<ModelRun<'v>>,
    /// The index of the initial replicas.
    replicas: usize,
    /// The present values of the open metrics.
    pub(crate) values: Vec<u8>,
    /// The number of events that may still happen.
    pub(crate) left: u32,
    seen: Seen,
    link: u32,
}

/// How a state was reached.
#[derive(Clone, Copy)]
struct Link {
    /// The link of the previous state. A first one is its own predecessor.
    before: u32,
    /// The index of the choice among those of the time of the previous state.
    choice: u32,
    /// The choices so far.
    distance: Distance,
}

/// Choices with which an expectation is not met.
pub(crate) struct Found {
    pub(crate) violation: Violation,
    /// The number of replicas at the start.
    pub(crate) replicas: i32,
    /// The choices with their times.
    pub(crate) path: Vec<(Time, Chosen)>,
}

/// Why a search ended.
pub(crate) enum End {
    /// An expectation is not met with some choices.
    Found(Box<Found>),
    /// All choices up to the end of the scenario were tried.
    Exhausted,
    /// All states were reached before the end of the scenario.
    Closed,
    /// The largest number of states was reached.
    TooMany,
    /// The caller ended it.
    Stopped,
}

/// The result of a search.
pub(crate) struct Searched {
    pub(crate) end: End,
    pub(crate) progress: Progress,
    /// The largest number of states at one time.
    pub(crate) widest: usize,
    /// The number of runs that end where upstream leaves the outcome to chance, and the first
    /// reason.
    pub(crate) random: usize,
    pub(crate) why_random: Option<String>,
}

/// A search of a scenario.
pub(crate) struct Search<'v> {
    pub(crate) choices: &'v Choices,
    pub(crate) variants: &'v [Arc<Scenario>],
    pub(crate) expectations: &'v Expectations,
    pub(crate) release: Release,
    pub(crate) until: Time,
    /// The largest number of states.
    pub(crate) most: usize,
    /// False: equal states are not merged.
    pub(crate) merges: bool,
}

/// The search so far.
struct Course<'v> {
    state: State,
    /// The states, with the index of their links.
    known: HashMap<u128, u32, BuildHasherDefault<FirstWord>>,
    links: Vec<Link>,
    /// The number of links of earlier layers than the one that is being reached.
    earlier: usize,
    best: Option<(Violation, Link)>,
    searched: Searched,
    /// Runs that have ended, whose memory the next copies use.
    ended: Vec<Node<'v>>,
}

/// The most ended runs to keep. Most runs end soon after they are copied, so a few are enough.
const MOST_ENDED: usize = 4;

impl<'v> Course<'v> {
    fn copy(&mut self, node: &Node<'v>) -> Node<'v> {
        match self.ended.pop() {
            Some(mut ended) => {
                ended.clone_from(node);
                ended
            }
            None => node.clone(),
        }
    }

    fn end(&mut self, node: Node<'v>) {
        if self.ended.len() < MOST_ENDED {
            self.ended.push(node);
        }
    }

    /// Keeps the earliest violation and, of equally early ones, the one with the fewest choices.
    fn found(&mut self, violation: Violation, step: Link) {
        let is_better = self
            .best
            .is_none_or(|(best, link)| (violation.at, step.distance) < (best.at, link.distance));
        if is_better {
            self.best = Some((violation, step));
        }
    }
}

impl<'v> Search<'v> {
    /// Searches. If `watch` returns false, the search ends.
    pub(crate) fn run(&self, state: State, watch: &mut dyn FnMut(Progress) -> bool) -> Searched {
        let progress = Progress { states: 0, steps: 0, reached: Time::ZERO };
        let searched =
            Searched { end: End::Exhausted, progress, widest: 0, random: 0, why_random: None };
        let (known, links, ended) = (HashMap::default(), Vec::new(), Vec::new());
        let mut course = Course { state, known, links, earlier: 0, best: None, searched, ended };
        let mut layer = self.start(&mut course);
        let mut at = Time::ZERO;
        loop {
            let next = self.choices.next(at + Span(1));
            let Some(following) = self.layer(at, next, layer, &mut course, watch) else {
                return course.searched;
            };
            if let Some((violation, link)) = course.best {
                course.searched.end = End::Found(Box::new(self.found(violation, link, &course)));
                return course.searched;
            }
            let Some(next) = next else { break };
            at = next;
            course.searched.progress.reached = at;
            if following.is_empty() {
                course.searched.end = End::Closed;
                return course.searched;
            }
            layer = following;
        }
        course.searched.progress.reached = self.until;
        course.searched
    }

    /// The runs that have not started. Their first choices are part of their start.
    fn start(&self, course: &mut Course<'v>) -> Vec<Node<'v>> {
        let nodes = self.first();
        let link = |node: &Node<'_>| {
            let distance = self.choices.distance_of_replicas(node.replicas);
            Link { before: node.link, choice: 0, distance }
        };
        course.links.extend(nodes.iter().map(link));
        nodes
    }

    /// The runs before the start, by the number of replicas.
    pub(crate) fn first(&self) -> Vec<Node<'v>> {
        let values = vec![0; self.choices.metrics.len()];
        let node = |replicas: usize| Node {
            run: Box::new(ModelRun::new(self.variant(replicas, &values), self.release)),
            replicas,
            values: values.clone(),
            left: self.choices.most_events,
            seen: self.expectations.nothing_seen(),
            link: replicas as u32,
        };
        (0..self.choices.replicas.len()).map(node).collect()
    }

    fn variant(&self, replicas: usize, values: &[u8]) -> &'v Arc<Scenario> {
        &self.variants[self.choices.variant(replicas, values)]
    }

    /// Continues all runs of a time with all choices. Returns the runs at the next time, or `None`
    /// if the search ends.
    fn layer(
        &self,
        at: Time,
        next: Option<Time>,
        layer: Vec<Node<'v>>,
        course: &mut Course<'v>,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Option<Vec<Node<'v>>> {
        let mut following = Vec::new();
        // Most runs of a layer have the same choices.
        let mut known: BTreeMap<(Vec<u8>, u32), Vec<Chosen>> = BTreeMap::new();
        course.earlier = course.links.len();
        for node in layer {
            let options = known.entry((node.values.clone(), node.left));
            let options =
                options.or_insert_with_key(|(values, left)| self.choices.at(at, values, *left));
            let last = options.len() - 1;
            let before = node.values.clone();
            let mut rest = Some(node);
            for (index, chosen) in (0..).zip(options.iter()) {
                // The last choice needs no copy of the run.
                let node = match index as usize == last {
                    true => rest.take(),
                    false => rest.as_ref().map(|node| course.copy(node)),
                };
                let Some(mut node) = node else { break };
                let so_far = course.links[node.link as usize].distance;
                let distance = so_far + self.choices.distance(at, &before, chosen);
                let step = Link { before: node.link, choice: index, distance };
                course.searched.progress.steps += 1;
                let violation = match self.advance(&mut node, at, next, chosen, &mut |_| {}) {
                    Ok(violation) => violation,
                    Err(random) => {
                        course.searched.random += 1;
                        course.searched.why_random.get_or_insert(random.why);
                        course.end(node);
                        continue;
                    }
                };
                if let Some(violation) = violation {
                    course.found(violation, step);
                } else if let Some(next) = next
                    && self.is_new(&mut node, next, step, course)
                {
                    node.link = course.links.len() as u32;
                    course.links.push(step);
                    node.run.release_memory();
                    following.push(node);
                } else {
                    course.end(node);
                }
            }
            course.searched.progress.states = course.links.len();
            if course.links.len() > self.most {
                course.searched.end = End::TooMany;
                return None;
            }
            if !watch(course.searched.progress) {
                course.searched.end = End::Stopped;
                return None;
            }
        }
        course.searched.widest = course.searched.widest.max(following.len());
        Some(following)
    }

    /// Continues a run with a choice, to the time of the next one. Returns the first expectation
    /// that is not met.
    pub(crate) fn advance(
        &self,
        node: &mut Node<'v>,
        at: Time,
        next: Option<Time>,
        chosen: &Chosen,
        each: &mut dyn FnMut(&Reconciled<'_>),
    ) -> Result<Option<Violation>, RandomOutcome> {
        let Node { run, replicas, values, left, seen, .. } = node;
        let variant = self.variant(*replicas, &chosen.values);
        if at == Time::ZERO {
            // The first values are part of the start.
            **run = ModelRun::new(variant, self.release);
        } else if chosen.values != *values {
            run.continue_with(variant);
        }
        values.clone_from(&chosen.values);
        if let Some(event) = chosen.event {
            run.begin_at(at, event);
            *left -= 1;
        }
        let end = next.unwrap_or(self.until + Span(1));
        let mut violation = None;
        run.run_before(end, &mut |tick| {
            each(tick);
            violation = self.expectations.watch(tick, seen);
            violation.is_none()
        })?;
        let expired = self.expectations.expired(seen, violation.map_or(end, |it| it.at));
        Ok(expired.or(violation))
    }

    /// True if no earlier run has reached the state of this run, which reaches it with a step.
    fn is_new(&self, node: &mut Node<'v>, at: Time, step: Link, course: &mut Course<'v>) -> bool {
        // A state that is not complete is like no other one.
        if !(self.add_to(node, at, &mut course.state) && self.merges) {
            return true;
        }
        let hash = course.state.hash();
        match course.known.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(course.links.len() as u32);
                true
            }
            Entry::Occupied(entry) => {
                let index = *entry.get() as usize;
                let known = &mut course.links[index];
                // A state that was reached in an earlier layer keeps its link: it leads to shorter
                // counterexamples.
                if index >= course.earlier && step.distance < known.distance {
                    *known = step;
                }
                false
            }
        }
    }

    /// Makes the state of a run at a time that it is about to reach. Returns false if it is not
    /// complete.
    pub(crate) fn add_to(&self, node: &mut Node<'v>, at: Time, state: &mut State) -> bool {
        state.begin(at);
        let is_complete = node.run.add_to(state);
        state.part(Part::Choices);
        self.choices.add_to(&node.values, node.left, state);
        let of = if self.choices.creates_target { node.replicas } else { 0 };
        state.count(of);
        state.part(Part::Expectations);
        self.expectations.add_to(&node.seen, self.until, state);
        is_complete
    }

    /// The choices that lead to a violation.
    fn found(&self, violation: Violation, last: Link, course: &Course<'v>) -> Found {
        let mut steps = vec![last.choice];
        let mut index = last.before;
        let replicas = loop {
            let link = course.links[index as usize];
            if link.before == index {
                break index as usize;
            }
            steps.push(link.choice);
            index = link.before;
        };
        let (mut at, mut values) = (Time::ZERO, vec![0; self.choices.metrics.len()]);
        let mut left = self.choices.most_events;
        let mut path = Vec::new();
        for choice in steps.into_iter().rev() {
            let chosen = self.choices.at(at, &values, left).swap_remove(choice as usize);
            values.clone_from(&chosen.values);
            left -= u32::from(chosen.event.is_some());
            path.push((at, chosen));
            at = self.choices.next(at + Span(1)).unwrap_or(self.until);
        }
        Found { violation, replicas: self.choices.replicas[replicas], path }
    }
}

/// The states are hashed already.
#[derive(Default)]
struct FirstWord(u64);

impl Hasher for FirstWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |word, byte| word.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }
}
