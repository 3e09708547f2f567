//! Trace files: the recorded traces of a scenario on all releases.
//!
//! A file begins with the scenario, its hash, and the engine. A section for each behavior follows,
//! newest release first: the builds of upstream with this behavior, the hash of the trace, and the
//! trace. The first section contains its trace in full, and each other section a patch of the trace
//! above it.
//!
//! Each line of a trace is a JSON value; see `text` and `recommender`. A long value is broken into
//! several lines, which are indented except for the first and the last. These lines have no commas
//! at their ends, so that a patch that adds the last member of a list changes no other line.
//!
//! A patch consists of hunks. A hunk begins with the places to which it applies, as `@@ 15s+7 30s`:
//! a time, and the number of lines below the first value at this time. Lines with `-` follow, which
//! are removed there, and lines with `+`, which replace them. `-... 20 more lines` removes 20 more
//! lines. If no lines are removed, the new lines are inserted before the place.
//!
//! The program reads these files. Only the test suites can write those of upstream's controllers; a
//! file with the trace of a program has one section without a build.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::Trace;
use super::broken::broken;
use super::header::{Build, Header};
use super::text::{self, TextError};
use kube_autoscaler_models::content_hash::content_hash;

/// The first word of the first line: the scenario's id and hash follow.
pub const SCENARIO: &str = "scenario ";
/// The first word of the second line: the engine's name follows.
pub const ENGINE: &str = "engine ";
/// The first word of a line of a section: a version and the hash of the sources follow.
pub const RELEASE: &str = "release ";
/// The first word of a line of a section: the hash of the trace follows.
pub const BODY: &str = "body ";
/// The start of a line with places of a hunk.
pub const PLACES: &str = "@@ ";
/// The start of a line that removes more lines: their number follows.
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

/// The change of a trace at one place.
struct Edit {
    /// The index of the first removed line or, if none is removed, of the line below the insertion.
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

    /// The broken lines of the traces, newest release first; see [`unbroken`].
    ///
    /// # Errors
    /// If a patch does not apply.
    pub fn traces(&self) -> impl Iterator<Item = Result<Vec<&'t str>, TextError>> {
        let mut newer: Option<Vec<&'t str>> = None;
        self.sections.iter().map(move |section| {
            let lines = match &newer {
                None => self.lines[section.content.clone()].to_vec(),
                Some(newer) => self.patched(newer, section)?,
            };
            newer = Some(lines.clone());
            Ok(lines)
        })
    }

    fn patched(&self, newer: &[&'t str], section: &Section) -> Result<Vec<&'t str>, TextError> {
        // Places above the first time are relative to the start of the trace.
        let times = times(newer).into_iter().chain([("", 0)]).collect();
        let mut edits = Vec::new();
        let mut next = section.content.start;
        while next < section.content.end {
            next = self.read_hunk(next, newer, &times, &mut edits)?;
        }
        // If one edit inserts lines at a place and another removes the line there, the insertion is
        // first.
        edits.sort_by_key(|edit: &Edit| (edit.at, edit.removed));
        let mut body = Vec::new();
        let mut kept = 0;
        for Edit { at, removed, inserted } in edits {
            body.extend_from_slice(newer.get(kept..at).unwrap_or_default());
            body.extend(self.lines[inserted].iter().map(|line| &line[1..]));
            kept = at + removed;
        }
        body.extend_from_slice(newer.get(kept..).unwrap_or_default());
        Ok(body)
    }

    /// Reads the hunk that begins at a line of the file. Returns the line after it.
    fn read_hunk(
        &self,
        start: usize,
        newer: &[&str],
        times: &HashMap<&str, usize>,
        edits: &mut Vec<Edit>,
    ) -> Result<usize, TextError> {
        let end_of = |from: usize, sign: &str| {
            let lines = self.lines.iter().skip(from);
            from + lines.take_while(|line| line.starts_with(sign)).count()
        };
        let first = end_of(start, PLACES);
        if first == start {
            return Err(error(start, format!("expected a line that begins with `{PLACES}`")));
        }
        let inserted = end_of(first, "-");
        let end = end_of(inserted, "+");
        for line in start..first {
            for text in self.lines[line][PLACES.len()..].split(' ') {
                let (time, below) = text.split_once('+').unwrap_or((text, "0"));
                let start = times.get(time).copied().zip(below.parse::<usize>().ok());
                let at = start.map(|(start, below)| start + below).filter(|at| *at <= newer.len());
                let at = at.ok_or_else(|| error(line, format!("there is no line {text}")))?;
                let removed = self.removed(first..inserted, newer, at)?;
                edits.push(Edit { at, removed, inserted: inserted..end });
            }
        }
        Ok(end)
    }

    /// The number of lines that a hunk removes at a place.
    fn removed(&self, hunk: Range<usize>, newer: &[&str], at: usize) -> Result<usize, TextError> {
        let mut removed = 0;
        for line in hunk {
            let text = self.lines[line];
            let more = text.strip_prefix(MORE).and_then(|text| text.strip_suffix(MORE_LINES));
            removed += match more {
                Some(more) => more.parse().map_err(|_| not_applicable(line))?,
                None if newer.get(at + removed) == Some(&&text[1..]) => 1,
                None => return Err(not_applicable(line)),
            };
            if at + removed > newer.len() {
                return Err(not_applicable(line));
            }
        }
        Ok(removed)
    }
}

/// The file with the trace of a program.
///
/// # Errors
/// If a value can't be written as JSON.
pub fn of_program(trace: &Trace) -> Result<String, serde_json::Error> {
    let text = text::write(trace, &[])?;
    let Trace { scenario, hash, engine, .. } = trace;
    let body = text::body(&text);
    let mut file = format!("{SCENARIO}{scenario} {hash}\n{ENGINE}{engine}\n");
    file.push_str(&format!("{BODY}{}\n", content_hash(body)));
    for line in body.lines().flat_map(broken) {
        file.push_str(&line);
        file.push('\n');
    }
    Ok(file)
}

/// The times in a trace, each with the line of the first value at this time.
#[must_use]
pub fn times<'t>(lines: &[&'t str]) -> Vec<(&'t str, usize)> {
    let mut known = HashSet::new();
    let mut times = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with('{')) {
        let after = line.split_once(r#""at":""#).and_then(|(_, after)| after.split_once('"'));
        if let Some((time, _)) = after
            && known.insert(time)
        {
            times.push((time, index));
        }
    }
    times
}

/// The text of a trace, in which each value has one line.
#[must_use]
pub fn unbroken(lines: &[&str]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        if line.starts_with('{') {
            if !text.is_empty() {
                text.push('\n');
            }
        } else {
            let is_first = text.ends_with(['{', '[']);
            let is_end = line.trim_start_matches(' ').starts_with(['}', ']']);
            if !is_first && !is_end {
                text.push(',');
            }
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
    let what = "the patch does not apply to the trace above it: the file was changed after it was \
                recorded; restore it, or remove it and record the scenario again with \
                `cargo xtask record`";
    error(index, what.to_owned())
}

/// An error in a line, given by its index.
fn error(index: usize, what: String) -> TextError {
    TextError { line: index + 1, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"scenario zero/one 6bf825dfc54411a9
engine upstream
release v1.37.2 d9daa65230ffd7ea
body 1
{"start":[]}
{"reconcile":{"at":"0s","actions":[
 {"a":1}
 {"b":[
  "one, {"
  2
 ]}
]}}
{"repeat":1}
{"reconcile":{"at":"15s","actions":[
 {"a":1}
]}}
release v1.36.5 3a7b52fa87c1e2f5
release v1.35.8 90d5f8bc33c1d7a4
body 2
@@ 0s+1 15s+1
- {"a":1}
+ {"a":2}
@@ 0s+2
- {"b":[
-... 3 more lines
@@ 15s+2
+ {"c":3}
release v1.34.1 3a7b52fa87c1e2f5
body 3
@@ +0
-{"start":[]}
@@ 15s+4
+{"repeat":2}
"#;

    fn traces(text: &str) -> Result<Vec<String>, String> {
        let file = TraceFile::new(text).map_err(|error| error.to_string())?;
        let traces = file.traces().map(|lines| lines.map(|lines| unbroken(&lines)));
        traces.collect::<Result<_, _>>().map_err(|error: TextError| error.to_string())
    }

    #[test]
    fn older_traces_are_patches_of_newer_ones() {
        let newest = r#"{"start":[]}
{"reconcile":{"at":"0s","actions":[{"a":1},{"b":["one, {",2]}]}}
{"repeat":1}
{"reconcile":{"at":"15s","actions":[{"a":1}]}}
"#;
        let older = "{\"start\":[]}\n\
                     {\"reconcile\":{\"at\":\"0s\",\"actions\":[{\"a\":2}]}}\n\
                     {\"repeat\":1}\n\
                     {\"reconcile\":{\"at\":\"15s\",\"actions\":[{\"a\":2},{\"c\":3}]}}\n";
        let oldest = format!("{}{{\"repeat\":2}}\n", older.trim_start_matches("{\"start\":[]}\n"));
        assert_eq!(traces(FILE), Ok(vec![newest.to_owned(), older.to_owned(), oldest]));
    }

    #[test]
    fn sections_name_the_builds() {
        let file = TraceFile::new(FILE).expect("a trace file");
        let headers: Vec<&Header> = file.headers().collect();
        let bodies: Vec<&str> = headers.iter().map(|header| header.body.as_str()).collect();
        assert_eq!(bodies, ["1", "2", "3"]);
        let Header { scenario, hash, engine, builds, .. } = headers[1];
        assert_eq!((&**scenario, &**hash, &**engine), ("zero/one", "6bf825dfc54411a9", "upstream"));
        let builds: Vec<String> = builds.iter().map(|build| build.version.to_string()).collect();
        assert_eq!(builds, ["v1.35.8", "v1.36.5"], "oldest first");
    }

    #[test]
    fn files_that_do_not_fit_together_are_errors() {
        for (from, to, error) in [
            ("scenario ", "", "line 1: expected a line that begins with `scenario`"),
            ("body 2\n", "", "line 19: expected a line that begins with `body`"),
            ("v1.36.5", "1.36", "line 17: expected a patch release such as v1.37.0 or vpa-1.8.0"),
            ("@@ 15s+2", "@@ 16s+2", "line 26: there is no line 16s+2"),
            ("@@ 0s+1 15s+1\n", "", "line 20: expected a line that begins with `@@ `"),
            ("{\"a\":1}", "{\"a\":4}", "line 21: the patch does not apply"),
            ("-... 3", "-... 99", "line 25: the patch does not apply"),
        ] {
            let text = FILE.replacen(from, to, 1);
            let found = traces(&text).expect_err(error);
            assert!(found.starts_with(error), "{found}");
        }
    }
}
