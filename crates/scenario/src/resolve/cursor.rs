//! Positions in the file, for messages.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Hint, Place};
use crate::node::{Node, NodeKind};

/// A position in the tree: a node, or the nearest existing one.
#[derive(Clone, Copy)]
pub(super) struct At<'n> {
    node: Option<&'n Node>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl<'n> At<'n> {
    pub(super) fn root(node: &'n Node) -> At<'n> {
        At { node: Some(node), line: node.line, column: node.column }
    }

    /// The value of a field; without one, the position of the map.
    pub(super) fn key(self, name: &str) -> At<'n> {
        match self.node.and_then(|node| node.entry(name)) {
            // The position of the key, since an empty value has no useful position.
            Some((key, node)) if node.is_null() => {
                At { node: Some(node), line: key.line, column: key.column }
            }
            Some((_, node)) => At::root(node),
            None => At { node: None, ..self },
        }
    }

    /// The name of a field; without one, the position of the map.
    pub(super) fn key_position(self, name: &str) -> At<'n> {
        match self.node.and_then(|node| node.entry(name)) {
            Some((key, _)) => At { node: None, line: key.line, column: key.column },
            None => At { node: None, ..self },
        }
    }

    /// An element of a list; without one, the position of the list.
    pub(super) fn index(self, index: usize) -> At<'n> {
        match self.node.and_then(|node| node.item(index)) {
            Some(node) => At::root(node),
            None => At { node: None, ..self },
        }
    }

    /// The node, if it exists.
    pub(super) fn node(self) -> Option<&'n Node> {
        self.node
    }

    /// The names that the map contains, in the order of `names`.
    pub(super) fn given<'a>(self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| self.key(name).node().is_some()).collect()
    }

    pub(super) fn is_map(self) -> bool {
        self.node.is_some_and(|node| matches!(node.kind, NodeKind::Map(_)))
    }

    /// Follows a path in the API server's format: `spec.metrics[0].resource`.
    pub(super) fn follow(self, path: &str) -> At<'n> {
        let mut at = self;
        for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
            let index = part.strip_suffix(']').and_then(|index| index.parse().ok());
            let next = index.map_or_else(|| at.key(part), |index| at.index(index));
            if next.node.is_none() {
                break;
            }
            at = next;
        }
        at
    }

    pub(super) fn problem(self, what: impl Into<String>, hint: Option<Hint>) -> Diagnostic {
        Diagnostic::new(what).at_place(self.place()).with_hint(hint)
    }

    /// A note on the position.
    pub(super) fn note(self, what: impl Into<String>) -> Diagnostic {
        self.problem(what, None)
    }

    /// The position without its node.
    pub(super) fn place(self) -> Place {
        Place { file: None, line: self.line, column: self.column }
    }
}

/// The problems found so far.
pub(super) struct Problems {
    list: Vec<Diagnostic>,
    /// The positions of malformed texts.
    malformed: HashSet<Option<Box<Place>>>,
}

impl Problems {
    /// Starts with the problems of malformed texts. No further problem is reported at the same
    /// position, since a valid value replaces each text.
    pub(super) fn new(malformed: Vec<Diagnostic>) -> Problems {
        let places = malformed.iter().map(|problem| problem.place.clone()).collect();
        Problems { malformed: places, list: malformed }
    }

    pub(super) fn add(&mut self, problem: Diagnostic) {
        if !self.malformed.contains(&problem.place) {
            self.list.push(problem);
        }
    }

    /// Adds a problem whose position was not known.
    pub(super) fn add_at(&mut self, at: At<'_>, problem: Diagnostic) {
        self.add(problem.at_place(at.place()));
    }

    /// Adds a problem without a hint.
    pub(super) fn plain(&mut self, at: At<'_>, what: impl Into<String>) {
        self.add(at.problem(what, None));
    }

    /// Adds a problem with a hint.
    pub(super) fn hint(&mut self, at: At<'_>, what: impl Into<String>, hint: impl Into<Hint>) {
        self.add(at.problem(what, Some(hint.into())));
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Sets the file of the problems from an index on.
    pub(super) fn in_file(&mut self, from: usize, file: &str) {
        let places = self.list.iter_mut().skip(from).filter_map(|problem| problem.place.as_mut());
        places.for_each(|place| place.file = Some(file.to_owned()));
    }

    /// The problems, sorted by position; problems in other files are last.
    pub(super) fn into_list(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(|a, b| a.place.cmp(&b.place));
        self.list
    }

    /// The problems as an error, if there are any.
    pub(super) fn into_result(self) -> Result<(), Vec<Diagnostic>> {
        if self.list.is_empty() { Ok(()) } else { Err(self.into_list()) }
    }
}
