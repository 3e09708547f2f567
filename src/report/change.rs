//! The changes between two releases, as text and as Markdown.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::counted;
use super::layout::hanging;
use super::style::{BAD, DIM, GOOD, STRONG, paint};
use crate::compare::{Divergence, FieldDifference};
use crate::model::rules::{Change, Release, VpaRelease};
use crate::run::change::Changed;
use crate::run::recommender_change::RecommenderChanged;
use crate::scenario::Scenario;
use crate::scenario::vpa::VpaScenario;

/// The two releases of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Between<R = Release> {
    /// The older release.
    pub from: R,
    /// The newer release.
    pub to: R,
}

/// The maximum number of differing fields that are shown.
const FIELDS: usize = 4;

/// The maximum number of rows with other changes that are shown.
const ALSO: usize = 3;

/// The change of one scenario.
#[must_use]
pub fn text(id: &str, between: Between, changed: &Changed, columns: usize) -> String {
    let Between { from, to } = between;
    let mut out = format!("{}  {from} -> {to}\n", paint(STRONG, id));
    out.push_str(&difference(&changed.first, columns));
    for row in &changed.rows {
        out.push_str(&hanging(&format!("  {}  ", row.since), row.what, 0, columns));
        for link in row.links() {
            let _ = writeln!(out, "        {}", paint(DIM, link));
        }
    }
    for Change { since, what, .. } in changed.also.iter().take(ALSO) {
        out.push_str(&hanging(&format!("  also {since}  "), what, 0, columns));
    }
    if changed.also.len() > ALSO {
        let _ = writeln!(out, "  and {}", counted(changed.also.len() - ALSO, "more row"));
    }
    if changed.rows.is_empty() {
        let _ = writeln!(
            out,
            "  {}",
            paint(BAD, "unexplained: no row of the model explains this change")
        );
    }
    out.push('\n');
    out
}

/// The tick of the first difference. The answers of the API server can differ before any tick.
pub(super) fn moment(first: &Divergence) -> String {
    match first.tick {
        0 => format!("before the first tick (t={})", first.at),
        tick => format!("tick {tick} (t={})", first.at),
    }
}

/// The first difference: its tick and some fields.
fn difference(first: &Divergence, columns: usize) -> String {
    let mut out = format!("  {}\n", moment(first));
    let shown = &first.fields[..first.fields.len().min(FIELDS)];
    for field in shown {
        let FieldDifference { field, model: old, upstream: new } = field;
        let (old, new) = narrowed(old, new);
        let text = format!("{field}: {old} -> {new}");
        out.push_str(&hanging("    ", &text, 2, columns));
    }
    let more = first.fields.len() - shown.len();
    if more > 0 {
        let _ = writeln!(out, "    and {}", counted(more, "more field"));
    }
    out
}

/// The change of one scenario of a VPA.
#[must_use]
pub fn recommender(
    id: &str,
    from: &str,
    to: &str,
    changed: &RecommenderChanged,
    columns: usize,
) -> String {
    let mut out = format!("{}  {from} -> {to}\n", paint(STRONG, id));
    out.push_str(&difference(&changed.first, columns));
    for row in &changed.rows {
        out.push_str(&hanging(&format!("  {}  ", row.since), row.what, 0, columns));
        let _ = writeln!(out, "        {}", paint(DIM, row.source));
    }
    if changed.rows.is_empty() {
        let text = "unexplained: no row of the model explains this change";
        let _ = writeln!(out, "  {}", paint(BAD, text));
    }
    out.push('\n');
    out
}

/// Longer values are truncated.
const SHORT: usize = 60;

/// The length of the common text shown around a difference.
const CONTEXT: usize = 24;

/// Returns two values, truncated to their differing parts if they are long.
fn narrowed(old: &str, new: &str) -> (String, String) {
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    if old.len().max(new.len()) <= SHORT {
        return (old.into_iter().collect(), new.into_iter().collect());
    }
    let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - begin;
    let pairs = old.iter().rev().zip(new.iter().rev());
    let end = pairs.take(rest).take_while(|(a, b)| a == b).count();
    let cut = |text: &[char]| {
        let (from, to) = (begin.saturating_sub(CONTEXT), text.len() - end.saturating_sub(CONTEXT));
        // If one is much longer than the other, its beginning is shown.
        let to = to.min(from + 3 * SHORT);
        let middle: String = text[from..to].iter().collect();
        let before = if from > 0 { "…" } else { "" };
        format!("{before}{middle}{}", if to < text.len() { "…" } else { "" })
    };
    (cut(&old), cut(&new))
}

/// The end of the text: if several scenarios changed, how many of them each row of the model
/// explains; then why scenarios were not compared, and the figures.
#[must_use]
pub fn ending(
    between: Between,
    found: &[(Arc<Scenario>, Changed)],
    same: usize,
    skipped: &[(String, String)],
    columns: usize,
) -> String {
    ending_of(between, &listed(found), same, skipped, columns)
}

/// The same for scenarios of VPAs.
#[must_use]
pub fn recommender_ending(
    between: Between<VpaRelease>,
    found: &[(Arc<VpaScenario>, RecommenderChanged)],
    same: usize,
    skipped: &[(String, String)],
    columns: usize,
) -> String {
    ending_of(between, &recommender_listed(found), same, skipped, columns)
}

fn ending_of<R: Copy + Ord + fmt::Display>(
    between: Between<R>,
    found: &[Listed<'_, R>],
    same: usize,
    skipped: &[(String, String)],
    columns: usize,
) -> String {
    let mut out = String::new();
    if found.len() > 1 {
        let _ = writeln!(
            out,
            "Changes, with the number of scenarios whose first difference they explain:"
        );
        for row in rows(found) {
            let ids: Vec<&str> = explained_by(row, found).map(|it| it.id).collect();
            let text = format!("{} ({})", row.what, examples(&ids));
            out.push_str(&hanging(&format!("{}  ", row.since), &text, 2, columns));
        }
        out.push('\n');
    }
    let mut reasons: Vec<&str> = skipped.iter().map(|(_, why)| &**why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let ids: Vec<&str> =
            skipped.iter().filter(|(_, why)| why == reason).map(|(id, _)| &**id).collect();
        let text = match *ids {
            [only] => format!("{only}: {reason}"),
            _ => format!("{reason} ({})", examples(&ids)),
        };
        out.push_str(&hanging("not compared  ", &text, 0, columns));
    }
    let unexplained = found.iter().filter(|changed| changed.rows.is_empty()).count();
    let style = if unexplained > 0 { BAD } else { GOOD };
    let _ = writeln!(
        out,
        "{} -> {}: {} changed, {}; {same} unchanged, {} not compared",
        between.from,
        between.to,
        counted(found.len(), "scenario"),
        paint(style, &format!("{unexplained} unexplained")),
        skipped.len()
    );
    out
}

/// `3 scenarios, for example a/b`.
fn examples(ids: &[&str]) -> String {
    match ids {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, ..] => format!("{}, for example {first}", counted(ids.len(), "scenario")),
    }
}

/// All changed scenarios, grouped by the rows that explain them.
#[must_use]
pub fn markdown(
    between: Between,
    found: &[(Arc<Scenario>, Changed)],
    same: usize,
    skipped: &[(String, String)],
) -> String {
    list(between, &listed(found), same, skipped)
}

/// All changed scenarios of the VPA's recommender, as [`markdown`].
#[must_use]
pub fn recommender_markdown(
    between: Between<VpaRelease>,
    found: &[(Arc<VpaScenario>, RecommenderChanged)],
    same: usize,
    skipped: &[(String, String)],
) -> String {
    list(between, &recommender_listed(found), same, skipped)
}

/// A changed scenario.
struct Listed<'a, R> {
    id: &'a str,
    first: &'a Divergence,
    rows: Vec<Row<R>>,
}

/// A row of the model that explains a change.
#[derive(Clone, PartialEq)]
struct Row<R> {
    since: R,
    what: &'static str,
    links: Vec<&'static str>,
}

fn listed(found: &[(Arc<Scenario>, Changed)]) -> Vec<Listed<'_, Release>> {
    let listed = found.iter().map(|(scenario, changed)| {
        let rows = changed.rows.iter().map(|row| Row {
            since: row.since,
            what: row.what,
            links: row.links().collect(),
        });
        Listed { id: &scenario.id, first: &changed.first, rows: rows.collect() }
    });
    listed.collect()
}

fn recommender_listed(
    found: &[(Arc<VpaScenario>, RecommenderChanged)],
) -> Vec<Listed<'_, VpaRelease>> {
    let listed = found.iter().map(|(scenario, changed)| {
        let rows = changed.rows.iter().map(|row| Row {
            since: row.since,
            what: row.what,
            links: vec![row.source],
        });
        Listed { id: &scenario.id, first: &changed.first, rows: rows.collect() }
    });
    listed.collect()
}

/// The rows that explain changes, in the order of releases, each once.
fn rows<'a, R: Copy + Ord>(found: &'a [Listed<'_, R>]) -> Vec<&'a Row<R>> {
    let mut rows: Vec<&Row<R>> = Vec::new();
    for row in found.iter().flat_map(|changed| &changed.rows) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.sort_by_key(|row| row.since);
    rows
}

/// The scenarios whose changes a row explains.
fn explained_by<'a, R: PartialEq>(
    row: &'a Row<R>,
    found: &'a [Listed<'a, R>],
) -> impl Iterator<Item = &'a Listed<'a, R>> {
    found.iter().filter(move |changed| changed.rows.contains(row))
}

fn list<R: Copy + Ord + fmt::Display>(
    between: Between<R>,
    found: &[Listed<'_, R>],
    same: usize,
    skipped: &[(String, String)],
) -> String {
    let Between { from, to } = between;
    let mut out = format!("# From {from} to {to}\n\n");
    let _ = writeln!(
        out,
        "{} changed, {same} unchanged, {} could not be compared.\n",
        counted(found.len(), "scenario"),
        skipped.len()
    );
    for row in rows(found) {
        let links: Vec<String> = row.links.iter().map(|link| format!("<{link}>")).collect();
        let _ = writeln!(out, "## {}: {}\n\n{}\n", row.since, row.what, links.join(", "));
        for changed in explained_by(row, found) {
            let _ = writeln!(out, "- `{}`{}", changed.id, first(changed.first));
        }
        out.push('\n');
    }
    let mut unexplained = found.iter().filter(|changed| changed.rows.is_empty()).peekable();
    if unexplained.peek().is_some() {
        out.push_str("## Unexplained\n\n");
        for changed in unexplained {
            let _ = writeln!(out, "- `{}`{}", changed.id, first(changed.first));
        }
    }
    out
}

/// The first field of the first tick that differs.
fn first(first: &Divergence) -> String {
    match first.fields.first() {
        None => String::new(),
        Some(FieldDifference { field, model: old, upstream: new }) => {
            let (old, new) = narrowed(old, new);
            format!(", {}: {field}: `{old}` → `{new}`", moment(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_to_their_difference() {
        assert_eq!(narrowed("3", "4"), ("3".to_owned(), "4".to_owned()));
        let long = |middle: &str| format!("{}{middle}{}", "a".repeat(80), "z".repeat(80));
        let (old, new) = narrowed(&long("one"), &long("two"));
        let expected = |middle: &str| format!("…{}{middle}{}…", "a".repeat(24), "z".repeat(24));
        assert_eq!((old, new), (expected("one"), expected("two")));
        let (old, new) = narrowed("none", &"n".repeat(500));
        assert_eq!((old.as_str(), new.chars().count()), ("none", 3 * SHORT + 1));
    }
}
