//! Parses YAML text into trees with positions. Only this file uses the YAML library.
//!
//! Deliberately not supported: documents with very deep nesting or very large expansions of
//! aliases; and in scenarios merge keys, tags, and duplicate keys.

use std::collections::{HashMap, HashSet};

use serde_yaml::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::node::{Key, Node, NodeKind};
use crate::diagnostic::{Diagnostic, Hint};

/// The key of a map whose entries are merged into another map.
const MERGE: &str = "<<";
/// The largest depth of nesting. Deeper documents could overflow the stack.
const MAX_DEPTH: usize = 64;
/// The largest number of nodes. Aliases repeat their nodes, so a small text may contain many.
const MAX_NODES: usize = 1_000_000;
/// The largest number of bytes in scalars, of which aliases may also make many.
const MAX_BYTES: usize = 64 << 20;

/// The kind of document in a YAML text.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Content {
    /// Scenarios, which are meant to be read.
    #[default]
    Scenarios,
    /// Manifests, in any form that kubectl reads.
    Manifests,
}

/// Reads all documents of a text.
pub fn documents(text: &str) -> Result<Vec<Node>, Diagnostic> {
    load(text, Content::Scenarios)
}

/// Reads all documents of a text with manifests. Duplicate keys are kept.
pub fn manifests(text: &str) -> Result<Vec<Node>, Diagnostic> {
    load(text, Content::Manifests)
}

fn load(text: &str, content: Content) -> Result<Vec<Node>, Diagnostic> {
    let mut loader = Loader { content, ..Loader::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| explain(&error))?;
        loader.event(event, span)?;
    }
    Ok(loader.documents)
}

fn problem(line: usize, column: usize, what: impl Into<String>, hint: Option<&str>) -> Diagnostic {
    Diagnostic::new(what).at(line, column).with_hint(hint.map(Hint::from))
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
    /// The lines of the keys, by their text.
    lines: HashMap<String, usize>,
}

#[derive(Default)]
struct Loader {
    content: Content,
    documents: Vec<Node>,
    open: Vec<Open>,
    /// The nodes of anchors, with their sizes.
    anchors: HashMap<usize, (Node, Size)>,
    /// The size of all nodes so far.
    size: Size,
}

/// The size of nodes, with all nodes below them.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn new(node: &Node) -> Size {
        let mut size = Size { nodes: 1, bytes: 0 };
        match &node.kind {
            NodeKind::Scalar { text, .. } => size.bytes = text.len(),
            NodeKind::List(items) => items.iter().for_each(|node| size.add(Size::new(node))),
            NodeKind::Map(entries) => {
                for (key, node) in entries {
                    size.bytes += key.text.len();
                    size.add(Size::new(node));
                }
            }
        }
        size
    }

    fn add(&mut self, other: Size) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn is_too_large(self) -> bool {
        self.nodes > MAX_NODES || self.bytes > MAX_BYTES
    }
}

impl Loader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let tag = match &event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, _, tag)
            | Event::MappingStart(_, _, tag) => tag.as_ref(),
            _ => None,
        };
        let is_core_tag = |tag: &str| self.content == Content::Manifests && tag.starts_with("!!");
        let tag = tag.map(|tag| tag.original());
        if let Some(tag) = tag.as_deref().filter(|tag| !is_core_tag(tag)) {
            let what = format!("the tag `{tag}`: tags are not supported");
            return Err(problem(line, column, what, Some("to make a number text, quote it")));
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain && tag.as_deref() != Some("!!str");
                self.grow(Size { nodes: 1, bytes: text.len() }, line, column)?;
                let kind = NodeKind::Scalar { text: text.into_owned(), plain };
                self.add(Node { line, column, kind }, anchor)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor);
                let size = known.map(|(_, size)| *size).unwrap_or_default();
                // Checked before the nodes are copied.
                self.grow(size, line, column)?;
                let (mut node, _) = self.anchors.get(&anchor).cloned().ok_or_else(|| {
                    problem(line, column, "an alias refers to a node that contains it", None)
                })?;
                (node.line, node.column) = (line, column);
                self.add(node, 0)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(line, column, anchor, false),
            Event::MappingStart(_, anchor, _) => self.begin(line, column, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(done) => {
                    let Open { line, column, anchor, map, items, entries, .. } = done;
                    let kind = match map {
                        true => NodeKind::Map(self.merged(entries)?),
                        false => NodeKind::List(items),
                    };
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
    ) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(problem(line, column, what, None));
        }
        self.grow(Size { nodes: 1, bytes: 0 }, line, column)?;
        let (items, entries, lines) = (Vec::new(), Vec::new(), HashMap::new());
        self.open.push(Open { line, column, anchor, map, items, entries, key: None, lines });
        Ok(())
    }

    /// Adds a complete node to the open collection, or to the documents.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor > 0 {
            let size = Size::new(&node);
            // The copy is kept for aliases.
            self.grow(size, node.line, node.column)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.documents.push(node),
            Some(open) if !open.map => open.items.push(node),
            Some(open) => match open.key.take() {
                Some(key) => open.entries.push((key, node)),
                None => open.key = Some(as_key(node, &mut open.lines, self.content)?),
            },
        }
        Ok(())
    }

    /// The entries of a map, with those of its merge keys.
    fn merged(&mut self, entries: Vec<(Key, Node)>) -> Result<Vec<(Key, Node)>, Diagnostic> {
        let (merge, mut own): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(key, _)| key.text == MERGE);
        let sources = merge.into_iter().flat_map(|(_, node)| match node.kind {
            NodeKind::List(items) => items,
            _ => vec![node],
        });
        for source in sources {
            let NodeKind::Map(entries) = source.kind else {
                let what = "expected a map after the merge key `<<`";
                return Err(problem(source.line, source.column, what, None));
            };
            let known: HashSet<String> = own.iter().map(|(key, _)| key.text.clone()).collect();
            own.extend(entries.into_iter().filter(|(key, _)| !known.contains(&key.text)));
        }
        Ok(own)
    }

    fn grow(&mut self, size: Size, line: usize, column: usize) -> Result<(), Diagnostic> {
        self.size.add(size);
        match self.size.is_too_large() {
            true => {
                let hint = "an alias (`*name`) counts as all nodes and text that it repeats";
                Err(problem(line, column, "the document is too large", Some(hint)))
            }
            false => Ok(()),
        }
    }
}

/// The key of a map. `lines` has the lines of the map's other keys.
fn as_key(
    node: Node,
    lines: &mut HashMap<String, usize>,
    content: Content,
) -> Result<Key, Diagnostic> {
    let (line, column) = (node.line, node.column);
    let NodeKind::Scalar { text, .. } = node.kind else {
        let hint = "did you mean text in quotes? `{` and `[` begin maps and lists";
        return Err(problem(line, column, "a list or map is not supported as a key", Some(hint)));
    };
    if content == Content::Manifests {
        return Ok(Key { text, line, column });
    }
    if let Some(first) = lines.insert(text.clone(), line) {
        let what = format!("duplicate field `{text}`, first on line {first}");
        let hint = "separate the objects of a file with a line `---`";
        let begins_object = column == 1 && (text == "apiVersion" || text == "kind");
        return Err(problem(line, column, what, begins_object.then_some(hint)));
    }
    if text == MERGE {
        let hint = "write the fields out; scenarios are meant to be read";
        return Err(problem(line, column, "merge keys are not supported", Some(hint)));
    }
    Ok(Key { text, line, column })
}

/// The parser's error, with a hint for the usual causes.
fn explain(error: &ScanError) -> Diagnostic {
    let what = error.info();
    let (line, column) = (error.marker().line(), error.marker().col() + 1);
    let hint = if what.contains("quot") {
        Some("a quotation mark is opened, here or above, and not closed")
    } else if what.contains("tab") {
        Some("indent YAML with spaces, not with tabs")
    } else if what.contains("mapping values are not allowed") {
        Some("check the indentation of this line, and quote text that contains `: `")
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
