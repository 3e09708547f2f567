//! Writes trace files. `kube_lockstep::trace::file` describes and reads them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::iter;

use kube_lockstep::engine::recorded::Recording;
use kube_lockstep::trace::file::{BODY, ENGINE, HUNK, MORE, MORE_LINES, RELEASE, SCENARIO};
use kube_lockstep::trace::header::Build;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The longest line that is not broken, in bytes.
const WIDTH: usize = 100;

/// The longest sequence of removed lines that a hunk shows in full.
const SHOWN: usize = 4;

/// Writes the file with the traces of one scenario, oldest release first.
pub fn write(recordings: &[Recording]) -> String {
    let Some(newest) = recordings.last() else { return String::new() };
    let mut out = String::new();
    let header = &newest.header;
    let _ = writeln!(out, "{SCENARIO}{} {}\n{ENGINE}{}", header.scenario, header.hash, header.engine);
    let mut newer: Option<Vec<String>> = None;
    for Recording { header, .. } in recordings.iter().rev() {
        for Build { version, sources } in header.builds.iter().rev() {
            let _ = writeln!(out, "{RELEASE}{version} {sources}");
        }
        let _ = writeln!(out, "{BODY}{}", header.body);
        let recording = recordings.iter().find(|it| it.header == *header).unwrap_or(newest);
        let lines: Vec<String> = recording.body().lines().flat_map(broken).collect();
        match &newer {
            None => lines.iter().for_each(|line| out += &format!("{line}\n")),
            Some(newer) => write_patch(newer, &lines, &mut out),
        }
        newer = Some(lines);
    }
    out
}

/// Writes the hunks that make `older` of `newer`. Equal hunks are written once.
fn write_patch(newer: &[String], older: &[String], out: &mut String) {
    let mut order = Vec::new();
    let mut places: HashMap<String, Vec<String>> = HashMap::new();
    for change in capture_diff_slices(Algorithm::Myers, newer, older) {
        if matches!(change, DiffOp::Equal { .. }) {
            continue;
        }
        let removed = &newer[change.old_range()];
        let mut hunk = String::new();
        let shown = if removed.len() > SHOWN { SHOWN / 2 } else { removed.len() };
        removed[..shown].iter().for_each(|line| hunk += &format!("-{line}\n"));
        if removed.len() > shown {
            let _ = writeln!(hunk, "{MORE}{}{MORE_LINES}", removed.len() - shown);
        }
        older[change.new_range()].iter().for_each(|line| hunk += &format!("+{line}\n"));
        let places = places.entry(hunk.clone()).or_insert_with(|| {
            order.push(hunk);
            Vec::new()
        });
        places.push((change.old_range().start + 1).to_string());
    }
    for hunk in order {
        let _ = write!(out, "{HUNK}{}\n{hunk}", places[&hunk].join(" "));
    }
}

/// A line of a trace as lines of a file. Values that fit in a line are not broken, and neither are
/// the objects around a single member.
fn broken(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = line;
    let mut depth = 0;
    // Whether each container around the current value is broken.
    let mut containers: Vec<bool> = Vec::new();
    while let Some(token) = token(rest) {
        let is_end = matches!(token, "}" | "]");
        if is_end && containers.pop().is_some_and(|is_broken| is_broken) {
            depth -= 1;
        }
        add(&mut lines, token);
        let before = rest;
        rest = &rest[token.len()..];
        if matches!(token, "{" | "[") {
            let value = value(before);
            let column = lines.last().map_or(0, String::len);
            let is_broken = column + value.len() > WIDTH + 1 && members(value) > 1;
            containers.push(is_broken);
            depth += usize::from(is_broken);
        }
        let breaks = matches!(token, "{" | "[" | ",") && containers.last() == Some(&true);
        if breaks {
            lines.push(" ".repeat(depth));
        }
    }
    lines
}

fn add(lines: &mut [String], token: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(token);
    }
}

/// The first token of a JSON text: a bracket, a comma, a colon, a string, or another value.
fn token(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let end = match first {
        '"' => {
            let mut is_escaped = false;
            let mut ends = text.char_indices().skip(1).filter(|(_, c)| {
                let is_end = *c == '"' && !is_escaped;
                is_escaped = *c == '\\' && !is_escaped;
                is_end
            });
            ends.next().map_or(text.len(), |(end, _)| end + 1)
        }
        '{' | '}' | '[' | ']' | ',' | ':' => 1,
        _ => text.find(['}', ']', ',']).unwrap_or(text.len()),
    };
    Some(&text[..end])
}

/// The tokens of the container at the start of a JSON text, each with the number of containers
/// around it.
fn tokens(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = text;
    let mut depth = 0_usize;
    iter::from_fn(move || {
        let token = token(rest).filter(|_| depth > 0 || rest.len() == text.len())?;
        rest = &rest[token.len()..];
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth -= 1,
            _ => {}
        }
        Some((token, depth))
    })
}

/// The container at the start of a JSON text.
fn value(text: &str) -> &str {
    &text[..tokens(text).map(|(token, _)| token.len()).sum()]
}

/// The number of members of a container.
fn members(container: &str) -> usize {
    let commas = tokens(container).filter(|(token, depth)| (*token, *depth) == (",", 1));
    commas.count() + usize::from(container.len() > 2)
}
