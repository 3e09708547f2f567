//! Writes trace files. `kube_lockstep_sim::trace::file` describes and reads them.

use std::collections::HashMap;
use std::fmt::Write as _;

use kube_lockstep_engines::recorded::Recording;
pub use kube_lockstep_sim::trace::broken::broken;
use kube_lockstep_sim::trace::file::{
    BODY, ENGINE, MORE, MORE_LINES, PLACES, RELEASE, SCENARIO, times,
};
use kube_lockstep_sim::trace::header::Build;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The longest line of places, in bytes.
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
