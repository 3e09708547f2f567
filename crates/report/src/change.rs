//! The changes between two releases, as text and as Markdown.

use std::fmt::Write as _;

use super::counted;
use super::layout::hanging;
use super::style::{BAD, DIM, GOOD, STRONG, paint};
use kube_autoscaler_models::rules::{Change, ChangeRow, Release};
use kube_lockstep_sim::compare::{Divergence, FieldDifference};
use kube_lockstep_sim::run::change::Changed;

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
pub struct Changes<'a, C: ChangeRow = Change> {
    /// The releases.
    pub between: Between<C::Release>,
    /// The scenarios that changed.
    pub changed: Vec<ChangedScenario<'a, C>>,
    /// The number of scenarios that did not change.
    pub same: usize,
    /// The ids of the scenarios that were not compared, with the reasons.
    pub skipped: &'a [(String, String)],
}

/// A scenario that changed between two releases.
#[derive(Clone, Debug)]
pub struct ChangedScenario<'a, C: 'static = Change> {
    pub id: &'a str,
    /// The change.
    pub changed: &'a Changed<C>,
}

impl<C: ChangeRow> ChangedScenario<'_, C> {
    /// The first difference and the rows that explain it, as text.
    #[must_use]
    pub fn text(&self, between: Between<C::Release>, columns: usize) -> String {
        let Between { from, to } = between;
        let Changed { first, rows, also } = self.changed;
        let mut out = format!("{}  {from} -> {to}\n", paint(STRONG, self.id));
        out.push_str(&difference(first, columns));
        for row in rows {
            out.push_str(&hanging(&format!("  {}  ", row.since()), row.what(), 0, columns));
            for link in row.links() {
                let _ = writeln!(out, "        {}", paint(DIM, link));
            }
        }
        for row in also.iter().take(ALSO) {
            out.push_str(&hanging(&format!("  also {}  ", row.since()), row.what(), 0, columns));
        }
        if also.len() > ALSO {
            let _ = writeln!(out, "  and {}", counted(also.len() - ALSO, "more row"));
        }
        if rows.is_empty() {
            let text = "unexplained: no row of the model explains this change";
            let _ = writeln!(out, "  {}", paint(BAD, text));
        }
        out.push('\n');
        out
    }

    /// Returns true if the same rows explain another change.
    fn has_rows_of(&self, other: &ChangedScenario<'_, C>) -> bool {
        let (own, others) = (&self.changed.rows, &other.changed.rows);
        own.iter().map(|row| row.what()).eq(others.iter().map(|row| row.what()))
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

impl<C: ChangeRow> Changes<'_, C> {
    /// The number of changes that no row of the model explains.
    #[must_use]
    pub fn unexplained(&self) -> usize {
        self.changed.iter().filter(|it| it.changed.rows.is_empty()).count()
    }

    /// The changed scenarios, how many of them each row of the model explains, why scenarios were
    /// not compared, and the figures.
    #[must_use]
    pub fn text(&self, shown: Shown, columns: usize) -> String {
        let mut out = String::new();
        for group in self.groups() {
            // Nothing hides a change without an explanation.
            let examples = match shown {
                Shown::Examples if !group[0].changed.rows.is_empty() => examples(&group),
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
    fn groups(&self) -> Vec<Vec<&ChangedScenario<'_, C>>> {
        let mut groups: Vec<Vec<&ChangedScenario<'_, C>>> = Vec::new();
        for changed in &self.changed {
            match groups.iter_mut().find(|group| group[0].has_rows_of(changed)) {
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
                let text = format!("{} ({})", row.what(), for_example(&ids));
                out.push_str(&hanging(&format!("{}  ", row.since()), &text, 2, columns));
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
            let links: Vec<String> = row.links().map(|link| format!("<{link}>")).collect();
            let _ = writeln!(out, "## {}: {}\n\n{}\n", row.since(), row.what(), links.join(", "));
            for changed in self.explained_by(row) {
                let _ = writeln!(out, "- `{}`{}", changed.id, first(&changed.changed.first));
            }
            out.push('\n');
        }
        if self.unexplained() > 0 {
            out.push_str("## Unexplained\n\n");
            for changed in self.changed.iter().filter(|it| it.changed.rows.is_empty()) {
                let _ = writeln!(out, "- `{}`{}", changed.id, first(&changed.changed.first));
            }
        }
        out
    }

    /// The rows that explain changes, in the order of releases, each once.
    fn rows(&self) -> Vec<&'static C> {
        let mut rows: Vec<&'static C> = Vec::new();
        for row in self.changed.iter().flat_map(|it| &it.changed.rows) {
            if !rows.iter().any(|known| known.what() == row.what()) {
                rows.push(row);
            }
        }
        rows.sort_by_key(|row| row.since());
        rows
    }

    /// The scenarios whose changes a row explains.
    fn explained_by(&self, row: &'static C) -> impl Iterator<Item = &ChangedScenario<'_, C>> {
        let is_it = |other: &&'static C| other.what() == row.what();
        self.changed.iter().filter(move |it| it.changed.rows.iter().any(is_it))
    }
}

/// Up to [`SHOWN`] scenarios of a group: first those whose first differences are not the same.
fn examples<'a, C>(group: &[&'a ChangedScenario<'a, C>]) -> Vec<&'a ChangedScenario<'a, C>> {
    let mut shown: Vec<&ChangedScenario<'_, C>> = Vec::new();
    for &changed in group {
        if !shown.iter().any(|it| it.changed.first == changed.changed.first) && shown.len() < SHOWN
        {
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
pub fn moment(first: &Divergence) -> String {
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
        let FieldDifference { field, model: old, upstream: new, .. } = field;
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
        Some(FieldDifference { field, model: old, upstream: new, .. }) => {
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
