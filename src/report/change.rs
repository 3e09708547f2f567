//! The changes between two releases, as text and as Markdown.

use std::fmt::{self, Write as _};

use super::counted;
use super::layout::hanging;
use super::style::{BAD, DIM, GOOD, STRONG, paint};
use crate::compare::{Divergence, FieldDifference};
use crate::model::rules::{Change, Release, VpaRelease};
use crate::run::change::Changed;
use crate::run::recommender_change::RecommenderChanged;

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

/// The maximum number of scenarios that the text shows for each explanation, unless all are
/// requested.
const SHOWN: usize = 3;

/// The result of comparing scenarios on two releases.
#[derive(Clone, Debug)]
pub struct Changes<'a, R = Release> {
    /// The releases.
    pub between: Between<R>,
    /// The scenarios that changed.
    pub changed: Vec<ChangedScenario<'a, R>>,
    /// The number of scenarios that did not change.
    pub same: usize,
    /// The ids of the scenarios that were not compared, with the reasons.
    pub skipped: &'a [(String, String)],
}

/// A scenario that changed between two releases.
#[derive(Clone, Debug)]
pub struct ChangedScenario<'a, R = Release> {
    id: &'a str,
    first: &'a Divergence,
    /// The rows that explain the first difference. Empty: it is unexplained.
    rows: Vec<Row<R>>,
    /// The rows that change something else.
    also: Vec<Row<R>>,
}

/// A row of the model: one change of upstream's behavior.
#[derive(Clone, PartialEq, Debug)]
struct Row<R> {
    since: R,
    what: &'static str,
    links: Vec<&'static str>,
}

impl<'a> ChangedScenario<'a> {
    /// A scenario of an HPA.
    #[must_use]
    pub fn of_hpa(id: &'a str, changed: &'a Changed) -> ChangedScenario<'a> {
        let rows = |rows: &[&'static Change]| {
            let row = |row: &&'static Change| Row {
                since: row.since,
                what: row.what,
                links: row.links().collect(),
            };
            rows.iter().map(row).collect()
        };
        let (also, rows) = (rows(&changed.also), rows(&changed.rows));
        ChangedScenario { id, first: &changed.first, rows, also }
    }
}

impl<'a> ChangedScenario<'a, VpaRelease> {
    /// A scenario of the VPA's recommender.
    #[must_use]
    pub fn of_vpa(id: &'a str, changed: &'a RecommenderChanged) -> ChangedScenario<'a, VpaRelease> {
        let rows = changed.rows.iter();
        let rows =
            rows.map(|row| Row { since: row.since, what: row.what, links: vec![row.source] });
        ChangedScenario { id, first: &changed.first, rows: rows.collect(), also: Vec::new() }
    }
}

impl<R: Copy + Ord + fmt::Display> ChangedScenario<'_, R> {
    /// The first difference and the rows that explain it, as text.
    #[must_use]
    pub fn text(&self, between: Between<R>, columns: usize) -> String {
        let Between { from, to } = between;
        let mut out = format!("{}  {from} -> {to}\n", paint(STRONG, self.id));
        out.push_str(&difference(self.first, columns));
        for row in &self.rows {
            out.push_str(&hanging(&format!("  {}  ", row.since), row.what, 0, columns));
            for link in &row.links {
                let _ = writeln!(out, "        {}", paint(DIM, link));
            }
        }
        for Row { since, what, .. } in self.also.iter().take(ALSO) {
            out.push_str(&hanging(&format!("  also {since}  "), what, 0, columns));
        }
        if self.also.len() > ALSO {
            let _ = writeln!(out, "  and {}", counted(self.also.len() - ALSO, "more row"));
        }
        if self.rows.is_empty() {
            let text = "unexplained: no row of the model explains this change";
            let _ = writeln!(out, "  {}", paint(BAD, text));
        }
        out.push('\n');
        out
    }
}

/// The scenarios of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// At most three for each explanation, preferably with different first differences; all that
    /// are unexplained.
    Examples,
    /// All that changed.
    All,
}

impl<R: Copy + Ord + fmt::Display> Changes<'_, R> {
    /// The number of changes that no row of the model explains.
    #[must_use]
    pub fn unexplained(&self) -> usize {
        self.changed.iter().filter(|changed| changed.rows.is_empty()).count()
    }

    /// The changed scenarios, how many of them each row of the model explains, why scenarios were
    /// not compared, and the figures.
    #[must_use]
    pub fn text(&self, shown: Shown, columns: usize) -> String {
        let mut out = String::new();
        for group in self.groups() {
            // Nothing hides a change without an explanation.
            let examples = match shown {
                Shown::Examples if !group[0].rows.is_empty() => examples(&group),
                Shown::Examples | Shown::All => group.clone(),
            };
            for changed in &examples {
                out.push_str(&changed.text(self.between, columns));
            }
            if examples.len() < group.len() {
                let more = counted(group.len() - examples.len(), "more scenario");
                let text = format!("{more} with the same explanation; --all shows them");
                let _ = writeln!(out, "{}\n", paint(DIM, &format!("… {text}")));
            }
        }
        out.push_str(&self.ending(columns));
        out
    }

    /// The changed scenarios, grouped by the rows that explain them.
    fn groups(&self) -> Vec<Vec<&ChangedScenario<'_, R>>> {
        let mut groups: Vec<Vec<&ChangedScenario<'_, R>>> = Vec::new();
        for changed in &self.changed {
            match groups.iter_mut().find(|group| group[0].rows == changed.rows) {
                Some(group) => group.push(changed),
                None => groups.push(vec![changed]),
            }
        }
        groups
    }

    fn ending(&self, columns: usize) -> String {
        let mut out = String::new();
        if self.changed.len() > 1 {
            let _ = writeln!(
                out,
                "Changes, with the number of scenarios whose first difference they explain:"
            );
            for row in self.rows() {
                let ids: Vec<&str> = self.explained_by(row).map(|it| it.id).collect();
                let text = format!("{} ({})", row.what, for_example(&ids));
                out.push_str(&hanging(&format!("{}  ", row.since), &text, 2, columns));
            }
            out.push('\n');
        }
        let mut reasons: Vec<&str> = self.skipped.iter().map(|(_, why)| &**why).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for reason in reasons {
            let skipped = self.skipped.iter().filter(|(_, why)| why == reason);
            let ids: Vec<&str> = skipped.map(|(id, _)| &**id).collect();
            let text = match *ids {
                [only] => format!("{only}: {reason}"),
                _ => format!("{reason} ({})", for_example(&ids)),
            };
            out.push_str(&hanging("not compared  ", &text, 0, columns));
        }
        let unexplained = self.unexplained();
        let style = if unexplained > 0 { BAD } else { GOOD };
        let _ = writeln!(
            out,
            "{} -> {}: {} changed, {}; {} unchanged, {} not compared",
            self.between.from,
            self.between.to,
            counted(self.changed.len(), "scenario"),
            paint(style, &format!("{unexplained} unexplained")),
            self.same,
            self.skipped.len()
        );
        out
    }

    /// All changed scenarios as Markdown, grouped by the rows that explain them.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Between { from, to } = self.between;
        let mut out = format!("# From {from} to {to}\n\n");
        let _ = writeln!(
            out,
            "{} changed, {} unchanged, {} could not be compared.\n",
            counted(self.changed.len(), "scenario"),
            self.same,
            self.skipped.len()
        );
        for row in self.rows() {
            let links: Vec<String> = row.links.iter().map(|link| format!("<{link}>")).collect();
            let _ = writeln!(out, "## {}: {}\n\n{}\n", row.since, row.what, links.join(", "));
            for changed in self.explained_by(row) {
                let _ = writeln!(out, "- `{}`{}", changed.id, first(changed.first));
            }
            out.push('\n');
        }
        if self.unexplained() > 0 {
            out.push_str("## Unexplained\n\n");
            for changed in self.changed.iter().filter(|changed| changed.rows.is_empty()) {
                let _ = writeln!(out, "- `{}`{}", changed.id, first(changed.first));
            }
        }
        out
    }

    /// The rows that explain changes, in the order of releases, each once.
    fn rows(&self) -> Vec<&Row<R>> {
        let mut rows: Vec<&Row<R>> = Vec::new();
        for row in self.changed.iter().flat_map(|changed| &changed.rows) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows.sort_by_key(|row| row.since);
        rows
    }

    /// The scenarios whose changes a row explains.
    fn explained_by(&self, row: &Row<R>) -> impl Iterator<Item = &ChangedScenario<'_, R>> {
        self.changed.iter().filter(move |changed| changed.rows.contains(row))
    }
}

/// Up to [`SHOWN`] scenarios of a group: first those whose first differences are not the same.
fn examples<'a, R>(group: &[&'a ChangedScenario<'a, R>]) -> Vec<&'a ChangedScenario<'a, R>> {
    let mut shown: Vec<&ChangedScenario<'_, R>> = Vec::new();
    for &changed in group {
        if !shown.iter().any(|it| it.first == changed.first) && shown.len() < SHOWN {
            shown.push(changed);
        }
    }
    for &changed in group {
        if !shown.iter().any(|it| it.id == changed.id) && shown.len() < SHOWN {
            shown.push(changed);
        }
    }
    shown
}

/// `3 scenarios, for example a/b`.
fn for_example(ids: &[&str]) -> String {
    match ids {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, ..] => format!("{}, for example {first}", counted(ids.len(), "scenario")),
    }
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
