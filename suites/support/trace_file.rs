//! Writes trace files. `kube_lockstep_sim::trace::file` describes and reads them.

use std::collections::HashMap;
use std::fmt::Write as _;

use kube_lockstep_engines::recorded::Recording;
use kube_lockstep_sim::trace::file::{
    BODY, ENGINE, MORE, MORE_LINES, PLACES, RELEASE, SCENARIO, times,
};
use kube_lockstep_sim::trace::header::Build;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The longest value that is not broken into lines, and the longest line of places, in bytes.
const WIDTH: usize = 120;

/// The longest sequence of removed lines that a hunk shows in full.
const SHOWN: usize = 4;

/// Writes the file with the traces of one scenario, which are given oldest release first.
pub fn write(recordings: &[Recording]) -> String {
    let Some(newest) = recordings.last() else { return String::new() };
    let mut out = String::new();
    let header = &newest.header;
    let _ = writeln!(out, "{SCENARIO}{} {}", header.scenario, header.hash);
    let _ = writeln!(out, "{ENGINE}{}", header.engine);
    let mut newer: Option<Vec<String>> = None;
    for recording in recordings.iter().rev() {
        for Build { version, sources } in recording.header.builds.iter().rev() {
            let _ = writeln!(out, "{RELEASE}{version} {sources}");
        }
        let _ = writeln!(out, "{BODY}{}", recording.header.body);
        let lines: Vec<String> = recording.body().lines().flat_map(broken).collect();
        match &newer {
            None => lines.iter().for_each(|line| write_line(&mut out, line)),
            Some(newer) => write_patch(newer, &lines, &mut out),
        }
        newer = Some(lines);
    }
    out
}

fn write_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Writes the hunks that change `newer` into `older`. Equal hunks are written once, with all
/// places.
fn write_patch(newer: &[String], older: &[String], out: &mut String) {
    let lines: Vec<&str> = newer.iter().map(String::as_str).collect();
    let times = times(&lines);
    let mut order = Vec::new();
    let mut places_of: HashMap<String, Vec<String>> = HashMap::new();
    // An insertion starts at the end of the operation before it; its own position is another one.
    let (mut old, mut new) = (0, 0);
    for change in capture_diff_slices(Algorithm::Myers, newer, older) {
        let removed = &newer[old..old + change.old_range().len()];
        let inserted = &older[new..new + change.new_range().len()];
        let place = place(&times, old);
        (old, new) = (old + removed.len(), new + inserted.len());
        if matches!(change, DiffOp::Equal { .. }) {
            continue;
        }
        let mut hunk = String::new();
        let shown = if removed.len() > SHOWN { SHOWN / 2 } else { removed.len() };
        removed[..shown].iter().for_each(|line| write_line(&mut hunk, &format!("-{line}")));
        if removed.len() > shown {
            let _ = writeln!(hunk, "{MORE}{}{MORE_LINES}", removed.len() - shown);
        }
        inserted.iter().for_each(|line| write_line(&mut hunk, &format!("+{line}")));
        let places = places_of.entry(hunk.clone()).or_insert_with(|| {
            order.push(hunk);
            Vec::new()
        });
        places.push(place);
    }
    for hunk in order {
        write_places(&places_of[&hunk], out);
        out.push_str(&hunk);
    }
}

/// The place of a line: the last time above it, and the number of lines below this time.
fn place(times: &[(&str, usize)], line: usize) -> String {
    let above = times.iter().rfind(|(_, start)| *start <= line);
    match above {
        Some((time, start)) if *start == line => (*time).to_owned(),
        Some((time, start)) => format!("{time}+{}", line - start),
        None => format!("+{line}"),
    }
}

/// Writes the places of a hunk, in several lines if there are many.
fn write_places(places: &[String], out: &mut String) {
    let mut width = 0;
    for place in places {
        if width > 0 && width + place.len() < WIDTH {
            let _ = write!(out, " {place}");
        } else {
            let end = if width > 0 { "\n" } else { "" };
            let _ = write!(out, "{end}{PLACES}{place}");
            width = 0;
        }
        width += place.len() + 1;
    }
    out.push('\n');
}

/// A line of a trace as lines of a file.
pub fn broken(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    write_value(line, &mut lines, 0);
    lines
}

/// Writes a JSON value, which continues the last line. A value that does not fit in a line has one
/// member per line; but if only its last member does not fit, only this member is broken.
fn write_value(value: &str, lines: &mut Vec<String>, depth: usize) {
    let column = lines.last().map_or(0, String::len);
    let members = members(value);
    if members.is_empty() || column + value.len() <= WIDTH {
        return add(lines, value);
    }
    let (open, close) = (&value[..1], &value[value.len() - 1..]);
    add(lines, open);
    let last = members.len() - 1;
    let before_last = members[..last].iter().map(|member| member.len() + 1).sum::<usize>();
    let (key, inner) = key_and_value(members[last]);
    let only_last = open == "{" && column + before_last + key.len() < WIDTH;
    if only_last && inner.starts_with(['{', '[']) {
        members[..last].iter().for_each(|member| add(lines, &format!("{member},")));
        add(lines, key);
        write_value(inner, lines, depth);
        return add(lines, close);
    }
    for member in members {
        lines.push(" ".repeat(depth + 1));
        let (key, inner) = key_and_value(member);
        add(lines, key);
        write_value(inner, lines, depth + 1);
    }
    lines.push(" ".repeat(depth));
    add(lines, close);
}

fn add(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

/// The key of a member of an object, with its colon, and the value. The key of a member of a list
/// is empty.
fn key_and_value(member: &str) -> (&str, &str) {
    let key = if member.starts_with('"') { string_end(member) } else { 0 };
    match member[key..].starts_with(':') {
        true => member.split_at(key + 1),
        false => ("", member),
    }
}

/// The length of the string at the start of a JSON text.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The members of a JSON object or list, as texts. Other values have none.
fn members(value: &str) -> Vec<&str> {
    if !value.starts_with(['{', '[']) || value.len() == 2 {
        return Vec::new();
    }
    let mut members = Vec::new();
    let (mut depth, mut start, mut at) = (0_usize, 1, 1);
    while at < value.len() - 1 {
        match value.as_bytes()[at] {
            b'"' => at += string_end(&value[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                members.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    members.push(&value[start..value.len() - 1]);
    members
}
