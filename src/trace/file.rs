//! Trace files: the recorded traces of a scenario on all releases.
//!
//! A file begins with the scenario, its hash, and the engine. Then follows a section for each
//! behavior, newest release first: the builds of upstream that behave so, the hash of the trace,
//! and the trace. The first section has the trace in full. Each other section has a patch of the
//! section above it.
//!
//! A line of a trace, which is one JSON value, is broken into several lines in the file: all lines
//! but its first are indented. A hunk of a patch begins with the lines that it applies to, as
//! `@@ 5 12`: numbers of lines in the trace above, from 1. Then follow the lines that are removed
//! there, after `-`, and the lines that replace them, after `+`. `-... 20 more lines` stands for
//! lines that are removed as well. If no line is removed, the others are inserted before the line.
//!
//! The program reads these files. Only the test suites can write them.

use std::ops::Range;

use super::header::{Build, Header};
use super::text::{TextError, verify};

/// The first word of the first line: the scenario's id and hash follow.
pub const SCENARIO: &str = "scenario ";
/// The first word of the second line: the name follows.
pub const ENGINE: &str = "engine ";
/// The first word of a line of a section: a version and the hash of the sources follow.
pub const RELEASE: &str = "release ";
/// The first word of a line of a section: the hash of the trace follows.
pub const BODY: &str = "body ";
/// The start of a hunk: line numbers follow.
pub const HUNK: &str = "@@ ";
/// The start of a line about further removed lines: their number follows.
pub const MORE: &str = "-... ";
/// The end of such a line.
pub const MORE_LINES: &str = " more lines";

/// The text of a trace file.
#[derive(Debug)]
pub struct TraceFile<'t> {
    lines: Vec<&'t str>,
    /// Newest release first.
    sections: Vec<Section>,
}

/// The releases with one behavior.
#[derive(Debug)]
struct Section {
    header: Header,
    /// The lines below the header, as indices.
    content: Range<usize>,
}

/// The change of a trace at one of its lines.
#[derive(Clone)]
struct Edit {
    /// The first line that is removed, or the line before which others are inserted, as an index.
    at: usize,
    /// The number of removed lines.
    removed: usize,
    /// The inserted lines, as indices into the file.
    inserted: Range<usize>,
}

impl<'t> TraceFile<'t> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// If the text is not a trace file.
    pub fn new(text: &'t str) -> Result<TraceFile<'t>, TextError> {
        let lines: Vec<&str> = text.lines().collect();
        let (scenario, hash) = words(&lines, 0, SCENARIO)?;
        let engine = after(&lines, 1, ENGINE)?;
        let mut sections = Vec::new();
        let mut next = 2;
        while next < lines.len() {
            let mut builds = Vec::new();
            while lines.get(next).is_some_and(|line| line.starts_with(RELEASE)) {
                let (version, sources) = words(&lines, next, RELEASE)?;
                let version = version.parse().map_err(|what| error(next, what))?;
                builds.push(Build { version, sources: sources.to_owned() });
                next += 1;
            }
            builds.reverse();
            let header = Header {
                scenario: scenario.to_owned(),
                hash: hash.to_owned(),
                body: after(&lines, next, BODY)?.to_owned(),
                engine: engine.to_owned(),
                builds,
            };
            let start = next + 1;
            let below = lines.iter().skip(start);
            next = start + below.take_while(|line| !line.starts_with(RELEASE)).count();
            sections.push(Section { header, content: start..next });
        }
        Ok(TraceFile { lines, sections })
    }

    /// The headers of the traces, newest release first.
    pub fn headers(&self) -> impl Iterator<Item = &Header> {
        self.sections.iter().map(|section| &section.header)
    }

    /// The lines of the file that the traces consist of, newest release first. `unbroken` makes the
    /// text of a trace of them.
    ///
    /// # Errors
    /// If a patch does not apply.
    pub fn bodies(&self) -> impl Iterator<Item = Result<Vec<&'t str>, TextError>> {
        let mut newer: Option<Vec<&'t str>> = None;
        self.sections.iter().map(move |section| {
            let body = match &newer {
                None => self.lines[section.content.clone()].to_vec(),
                Some(newer) => self.patched(newer, section)?,
            };
            newer = Some(body.clone());
            Ok(body)
        })
    }

    /// The text of one of the traces, without its header.
    ///
    /// # Errors
    /// If a patch does not apply, or the trace is not as recorded.
    pub fn body(&self, index: usize) -> Result<String, TextError> {
        let lines = self.bodies().take(index + 1).last().unwrap_or_else(|| Ok(Vec::new()))?;
        let body = unbroken(&lines);
        if let Some(Section { header, content }) = self.sections.get(index) {
            verify(header, &body)
                .map_err(|TextError { what, .. }| error(content.start - 1, what))?;
        }
        Ok(body)
    }

    fn patched(&self, newer: &[&'t str], section: &Section) -> Result<Vec<&'t str>, TextError> {
        let mut edits = Vec::new();
        let mut next = section.content.start;
        while next < section.content.end {
            next = self.read_hunk(next, newer, &mut edits)?;
        }
        edits.sort_by_key(|edit| edit.at);
        let mut body = Vec::new();
        let mut kept = 0;
        for Edit { at, removed, inserted } in edits {
            // `read_hunk` checked that the lines exist.
            body.extend(newer.iter().take(at).skip(kept));
            body.extend(self.lines[inserted].iter().map(|line| &line[1..]));
            kept = at + removed;
        }
        body.extend(newer.iter().skip(kept));
        Ok(body)
    }

    /// Reads the hunk at a line of the file. Returns the line after it.
    fn read_hunk(
        &self,
        start: usize,
        newer: &[&str],
        edits: &mut Vec<Edit>,
    ) -> Result<usize, TextError> {
        let numbers = after(&self.lines, start, HUNK)?.split(' ').map(str::parse::<usize>);
        let numbers: Vec<usize> = numbers
            .collect::<Result<_, _>>()
            .map_err(|_| error(start, "expected the numbers of lines".to_owned()))?;
        let first = start + 1;
        let signed = |from: usize, sign: char| {
            let lines = self.lines.iter().skip(from);
            from + lines.take_while(|line| line.starts_with(sign)).count()
        };
        let inserted = signed(first, '-');
        let end = signed(inserted, '+');
        for number in numbers {
            let at = number.checked_sub(1).filter(|at| *at <= newer.len());
            let at = at.ok_or_else(|| error(start, format!("there is no line {number}")))?;
            let mut removed = 0;
            for line in first..inserted {
                let text = self.lines[line];
                removed += match text.strip_prefix(MORE).and_then(|it| it.strip_suffix(MORE_LINES))
                {
                    Some(more) => more.parse().map_err(|_| not_applicable(line))?,
                    None if newer.get(at + removed) == Some(&&text[1..]) => 1,
                    None => return Err(not_applicable(line)),
                };
            }
            if at + removed > newer.len() {
                return Err(not_applicable(start));
            }
            edits.push(Edit { at, removed, inserted: inserted..end });
        }
        Ok(end)
    }
}

/// The text of a trace whose lines are broken.
#[must_use]
pub fn unbroken(lines: &[&str]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        if line.starts_with('{') && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.trim_start_matches(' '));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The text after the first word of a line.
fn after<'t>(lines: &[&'t str], index: usize, word: &str) -> Result<&'t str, TextError> {
    let rest = lines.get(index).and_then(|line| line.strip_prefix(word));
    rest.ok_or_else(|| error(index, format!("expected a line that begins with `{}`", word.trim())))
}

/// The two texts after the first word of a line.
fn words<'t>(lines: &[&'t str], index: usize, word: &str) -> Result<(&'t str, &'t str), TextError> {
    let two = after(lines, index, word)?.rsplit_once(' ');
    two.ok_or_else(|| error(index, format!("expected two texts after `{}`", word.trim())))
}

fn not_applicable(index: usize) -> TextError {
    let what = "the trace of the newer releases does not have the lines that are removed here: one \
                of the traces was changed after it was recorded; restore the file with git, or \
                remove it and record it again with `ci/record`";
    error(index, what.to_owned())
}

/// An error in a line, given by its index.
fn error(index: usize, what: String) -> TextError {
    TextError { line: index + 1, what }
}
