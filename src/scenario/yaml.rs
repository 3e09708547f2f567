//! Parses YAML text into trees with positions. Only this file uses the YAML library.
//!
//! Deliberately not supported: merge keys, tags, duplicate keys, and documents with very deep
//! nesting or very large expansions of aliases.

use std::collections::HashMap;

use serde_yaml::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::error::Problem;
use super::node::{Key, Kind, Node};

/// The largest depth of nesting. Deeper documents could overflow the stack.
const MAX_DEPTH: usize = 64;
/// The largest number of nodes. Aliases repeat their nodes, so a small text may contain many.
const MAX_NODES: usize = 1_000_000;

/// Reads all documents of a text.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, Problem> {
    let mut loader = Loader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| explain(&error))?;
        loader.event(event, span)?;
    }
    Ok(loader.documents)
}

fn problem(line: usize, column: usize, what: impl Into<String>, hint: Option<&str>) -> Problem {
    Problem { file: None, line, column, what: what.into(), hint: hint.map(str::to_owned) }
}

/// An open collection.
struct Open {
    line: usize,
    column: usize,
    anchor: usize,
    map: bool,
    items: Vec<Node>,
    entries: Vec<(Key, Node)>,
    key: Option<Key>,
}

#[derive(Default)]
struct Loader {
    documents: Vec<Node>,
    open: Vec<Open>,
    /// The nodes of anchors, with their sizes.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl Loader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let tag = match &event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, _, tag)
            | Event::MappingStart(_, _, tag) => tag.as_ref(),
            _ => None,
        };
        if let Some(tag) = tag {
            let what = format!("the tag `{}`: tags are not supported", tag.original());
            return Err(problem(line, column, what, Some("to make a number text, quote it")));
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let kind = Kind::Scalar { text: text.into_owned(), plain };
                self.add(Node { line, column, kind }, anchor)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor);
                let (mut node, size) = known.cloned().ok_or_else(|| {
                    problem(line, column, "an alias refers to a node that contains it", None)
                })?;
                self.nodes += size;
                (node.line, node.column) = (line, column);
                self.add(node, 0)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(line, column, anchor, false),
            Event::MappingStart(_, anchor, _) => self.begin(line, column, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(done) => {
                    let Open { line, column, anchor, map, items, entries, .. } = done;
                    let kind = if map { Kind::Map(entries) } else { Kind::List(items) };
                    self.add(Node { line, column, kind }, anchor)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        line: usize,
        column: usize,
        anchor: usize,
        map: bool,
    ) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(problem(line, column, what, None));
        }
        let (items, entries) = (Vec::new(), Vec::new());
        self.open.push(Open { line, column, anchor, map, items, entries, key: None });
        Ok(())
    }

    /// Adds a complete node to the open collection, or to the documents.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(problem(node.line, node.column, "the document is too large", None));
        }
        if anchor > 0 {
            let size = size(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.documents.push(node),
            Some(open) if !open.map => open.items.push(node),
            Some(open) => match open.key.take() {
                Some(key) => open.entries.push((key, node)),
                None => open.key = Some(as_key(node, &open.entries)?),
            },
        }
        Ok(())
    }
}

fn size(node: &Node) -> usize {
    match &node.kind {
        Kind::Scalar { .. } => 1,
        Kind::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Kind::Map(entries) => 1 + entries.iter().map(|(_, node)| size(node)).sum::<usize>(),
    }
}

fn as_key(node: Node, others: &[(Key, Node)]) -> Result<Key, Problem> {
    let (line, column) = (node.line, node.column);
    let Kind::Scalar { text, .. } = node.kind else {
        let hint = "did you mean text in quotes? `{` and `[` begin maps and lists";
        return Err(problem(line, column, "a list or map is not supported as a key", Some(hint)));
    };
    if let Some((first, _)) = others.iter().find(|(other, _)| other.text == text) {
        let what = format!("duplicate field `{text}`, first on line {}", first.line);
        return Err(problem(line, column, what, None));
    }
    if text == "<<" {
        let hint = "write the fields out; scenarios are meant to be read";
        return Err(problem(line, column, "merge keys are not supported", Some(hint)));
    }
    Ok(Key { text, line, column })
}

/// The parser's error, with a hint for the usual causes.
fn explain(error: &ScanError) -> Problem {
    let what = error.info();
    let (line, column) = (error.marker().line(), error.marker().col() + 1);
    let hint = if what.contains("quot") {
        Some("a quotation mark is opened, here or above, and not closed")
    } else if what.contains("tab") {
        Some("indent YAML with spaces, not with tabs")
    } else if what.contains("mapping values are not allowed") {
        Some("check the indentation of this line; a text with `: ` in it must be quoted")
    } else if what.contains("simple key") {
        Some("a colon and a space are missing, or the line is indented differently than the last")
    } else if what.contains("indentation") || what.contains("block collection") {
        Some("members of one map or list begin in the same column")
    } else if ["flow", "bracket", "placement of ':'"].iter().any(|part| what.contains(part)) {
        Some("a `{` or `[` is not closed, here or above, or a comma is missing")
    } else {
        None
    };
    problem(line, column, format!("not valid YAML: {what}"), hint)
}
