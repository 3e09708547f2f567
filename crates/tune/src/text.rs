//! The result of a search as text.

use serde_json::Value;

use super::tuned::{Change, Check, Setting, Tuned, Without};
use kube_lockstep_report::comparison::{Column, ComparisonRow, Figures, figures_text};
use kube_lockstep_report::front::{Dot, FrontChart};
use kube_lockstep_report::{counted, thousands, wrapped};
use kube_lockstep_sim::run::shell_word;

/// The width of a text, and the width from which tables are divided.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    /// The columns of text.
    pub columns: usize,
    /// The most columns of a table.
    pub most: usize,
}

/// The most settings of the front that the table shows.
const MOST_OF_FRONT: usize = 8;

impl Change {
    /// `maxReplicas: 10 → 20`.
    #[must_use]
    pub fn text(&self) -> String {
        let Change { hpa, path, from, to } = self;
        let hpa = hpa.as_ref().map(|hpa| format!("{hpa}: ")).unwrap_or_default();
        let path = path.strip_prefix("spec.").unwrap_or(path);
        format!("{hpa}{path}: {} → {}", value_text(from), value_text(to))
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(value_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, it): (&String, &Value)| format!("{name}: {}", value_text(it));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

impl Setting {
    /// The changes from the current setting.
    #[must_use]
    pub fn text(&self) -> String {
        match self.changes.is_empty() {
            true => "the current setting".to_owned(),
            false => self.changes.iter().map(Change::text).collect::<Vec<_>>().join("; "),
        }
    }
}

impl Tuned {
    /// The settings to show, with their names: the current one, the best one, and others of the
    /// front.
    #[must_use]
    pub fn shown(&self) -> Vec<(String, &Setting)> {
        let mut shown = vec![("current".to_owned(), &self.current)];
        let changed = self.best.iter().filter(|best| !best.changes.is_empty());
        shown.extend(changed.map(|best| ("best".to_owned(), best)));
        let is_new =
            |setting: &&Setting| !shown.iter().any(|(_, known)| known.point == setting.point);
        let others: Vec<&Setting> = self.front.iter().filter(is_new).collect();
        let count = others.len().min(MOST_OF_FRONT);
        // Evenly, with both ends.
        let index = |n: usize| if count < 2 { 0 } else { n * (others.len() - 1) / (count - 1) };
        let letters = ('a'..).take(count).enumerate();
        let others: Vec<(String, &Setting)> =
            letters.map(|(n, letter)| (letter.to_string(), others[index(n)])).collect();
        shown.extend(others);
        shown
    }

    /// The result as text. `subject`: the name of the HPA, and the release.
    #[must_use]
    pub fn text(&self, subject: &Subject<'_>, width: Width) -> String {
        let mut out = wrapped("", &self.headline(), width.columns);
        out.push('\n');
        let shown = self.shown();
        let row = |(name, setting): &(String, &Setting)| subject.row(name, setting.figures);
        out += &figures_text(&shown.iter().map(row).collect::<Vec<_>>(), width.most);
        out.push('\n');
        for (name, setting) in shown.iter().skip(1) {
            let mut text = setting.text();
            if self.days > 1 {
                text += &format!("; {}", self.days_text(setting.days_kept));
            } else if setting.days_kept == 0 {
                text += "; the objective is not kept";
            }
            out += &wrapped(&format!("{name}  "), &text, width.columns);
        }
        out += &self.contributions_text(subject, width);
        out += &self.checks_text(width);
        for patch in &self.patches {
            let namespace = patch.manifest["metadata"]["namespace"].as_str();
            let namespace = namespace.map(|it| format!(" -n {}", shell_word(it)));
            out += &format!(
                "\nkubectl patch hpa {}{} --type merge -p {}\n",
                shell_word(&patch.hpa),
                namespace.unwrap_or_default(),
                shell_word(&patch.patch.to_string())
            );
        }
        out
    }

    /// The chart of all settings.
    #[must_use]
    pub fn chart(&self, subject: &Subject<'_>) -> FrontChart {
        let shown = self.shown();
        let figure = |name: &str, setting: &Setting| {
            name.parse().map_or(0.0, |column: Column| column.figure(&setting.figures))
        };
        let dot = |setting: &Setting| Dot {
            across: figure(self.minimized, setting),
            up: figure(self.risk, setting),
            is_on_front: self.front.iter().any(|it| it.point == setting.point),
            is_kept: setting.days_kept == self.days,
            name: shown.iter().find(|(_, it)| it.point == setting.point).map(|it| it.0.clone()),
            about: setting.text(),
        };
        let named = shown.iter().map(|(_, setting)| *setting);
        let is_shown = |setting: &&Setting| shown.iter().any(|(_, it)| it.point == setting.point);
        let others = self.all.iter().filter(|setting| !is_shown(setting));
        let dots = named.chain(others).map(dot).collect();
        FrontChart {
            title: format!("{}/{}", subject.namespace, subject.hpa),
            across: self.minimized,
            up: self.risk,
            dots,
        }
    }

    /// The result in one or two sentences.
    #[must_use]
    pub fn headline(&self) -> String {
        let searched = self.searched();
        let Tuned { objective, minimized, .. } = self;
        let Some(best) = &self.best else {
            return format!("No setting keeps the objective {objective}. Searched: {searched}.");
        };
        if best.changes.is_empty() {
            return format!(
                "The current setting has the least {minimized} of those that keep the objective \
                 {objective}. Searched: {searched}."
            );
        }
        let column = self.minimized.parse::<Column>().ok();
        let figure = |setting: &Setting| column.map(|it| it.figure(&setting.figures));
        let text = |setting: &Setting| column.map(|it| it.text(&setting.figures));
        let (before, after) = (figure(&self.current), figure(best));
        let percent = before.zip(after).filter(|(before, _)| *before > 0.0);
        let percent = percent.map(|(before, after)| (after - before) / before * 100.0);
        let percent = percent.map(|percent| format!(" ({percent:+.1}%)")).unwrap_or_default();
        let days = if self.days > 1 { self.days_text(best.days_kept) } else { String::new() };
        let is_kept = self.checks.iter().all(|check| check.broken.is_empty());
        format!(
            "The best setting changes {} and has {minimized} {} → {}{percent}. It keeps the \
             objective {objective}{}{days}{}. Searched: {searched}.",
            counted(best.changes.len(), "field"),
            text(&self.current).unwrap_or_default(),
            text(best).unwrap_or_default(),
            if days.is_empty() { "" } else { " " },
            if is_kept { "" } else { ", but does not pass all checks" },
        )
    }

    /// `300 settings of a grid of 403,200`.
    fn searched(&self) -> String {
        let settings = counted(self.evaluated, "setting");
        let of = match (self.is_interrupted, self.is_exhaustive) {
            (true, _) => format!("{settings}, until the search was interrupted"),
            (_, true) => format!("all {settings} of the grid"),
            _ => format!("{settings} of a grid of {}", thousands(self.grid)),
        };
        match self.invalid {
            0 => of,
            invalid => format!("{of}; {} invalid", thousands(invalid)),
        }
    }

    fn days_text(&self, kept: usize) -> String {
        match kept {
            kept if kept == self.days => format!("on all {kept} days"),
            kept => format!("on {kept} of {} days", self.days),
        }
    }

    /// The figures of the best setting without each of its changes.
    fn contributions_text(&self, subject: &Subject<'_>, width: Width) -> String {
        if self.contributions.len() < 2 {
            return String::new();
        }
        let row = |without: &Without| {
            let path = without.change.path.trim_start_matches("spec.");
            let path = path.trim_start_matches("behavior.");
            // The end of a long path: `target.averageUtilization`.
            let parts: Vec<&str> = path.split('.').collect();
            let short = parts[parts.len().saturating_sub(2)..].join(".");
            Some(subject.row(&format!("without {short}"), without.figures?))
        };
        let best = self.best.iter().map(|best| subject.row("best", best.figures));
        let rows: Vec<ComparisonRow> =
            best.chain(self.contributions.iter().filter_map(row)).collect();
        format!("\n{}", figures_text(&rows, width.most))
    }

    fn checks_text(&self, width: Width) -> String {
        if self.checks.is_empty() {
            return String::new();
        }
        let broken: Vec<&Check> = self.checks.iter().filter(|it| !it.broken.is_empty()).collect();
        let conditions = |checks: &[&Check]| {
            checks.iter().map(|check| &*check.condition).collect::<Vec<_>>().join(", ")
        };
        let kept: Vec<&Check> = self.checks.iter().filter(|it| it.broken.is_empty()).collect();
        let mut out = "\n".to_owned();
        if !kept.is_empty() {
            let text = format!("the best setting keeps the objective: {}", conditions(&kept));
            out += &wrapped("checked: ", &text, width.columns);
        }
        for check in broken {
            let text = format!("{}: {}", check.condition, check.broken.join("; "));
            out += &wrapped("not kept: ", &text, width.columns);
        }
        out
    }
}

/// The HPA of a search.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// The namespace of the HPA.
    pub namespace: &'s str,
    /// The name of the HPA.
    pub hpa: &'s str,
    /// The release of Kubernetes.
    pub release: &'s str,
}

impl Subject<'_> {
    /// The row of a setting in a table.
    #[must_use]
    pub fn row(&self, setting: &str, figures: Figures) -> ComparisonRow {
        ComparisonRow {
            setting: setting.to_owned(),
            namespace: self.namespace.to_owned(),
            hpa: self.hpa.to_owned(),
            release: self.release.to_owned(),
            run: None,
            figures: Some(figures),
            first_difference: None,
            not_compared: None,
        }
    }
}
