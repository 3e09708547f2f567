//! The results as text, Markdown, JUnit's XML and annotations.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::measure::OF_TARGETS;
use super::result::{Field, GateResult, Kind, Verdict};
use kube_lockstep_manifests::AutoscalerKind;
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::columns::Column;
use kube_lockstep_report::comparison::figure_columns;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::github::{Annotation, AnnotationKind};
use kube_lockstep_report::layout::width;
use kube_lockstep_report::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use kube_lockstep_report::{junit, markdown, plain, wrapped};

/// What the results are about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The older version, as the user named it.
    pub base: String,
    /// The newer version.
    pub head: String,
    /// The release of Kubernetes.
    pub release: String,
    /// The budget of each autoscaler.
    pub budget: Bounds,
    /// The number of autoscalers of the newer version that are not changed.
    pub unchanged: usize,
}

/// The results of all changed autoscalers.
#[derive(Clone, Copy, Debug)]
pub struct Report<'r> {
    /// What they are about.
    pub subject: &'r Subject,
    /// The results.
    pub results: &'r [GateResult],
}

/// A figure before and after a change. Neither: the targets can't be compared.
struct Row {
    name: &'static str,
    base: Option<String>,
    head: Option<String>,
    /// Empty: there is none.
    difference: String,
}

impl Row {
    fn new(column: &Column, base: Option<&Figures>, head: Option<&Figures>) -> Row {
        let difference = base.zip(head).map(|(base, head)| column.difference_text(base, head));
        Row {
            name: column.name(),
            base: base.map(|it| column.text(it)),
            head: head.map(|it| column.text(it)),
            difference: difference.unwrap_or_default(),
        }
    }

    /// `pod-hours 198.04 → 192.65 (-2.7%)`.
    fn text(&self) -> String {
        let difference = match self.difference.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.difference),
        };
        format!("{} {}{difference}", self.name, self.figures())
    }

    /// `198.04 → 192.65`; one figure if the other is equal or missing; `-` without figures.
    fn figures(&self) -> String {
        match (&self.base, &self.head) {
            (Some(base), Some(head)) if base != head => format!("{base} → {head}"),
            (base, head) => head.as_ref().or(base.as_ref()).map_or("-", |it| it).to_owned(),
        }
    }
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Kind::Added => "added",
            Kind::Removed => "removed",
            Kind::Moved => "moved",
            Kind::Changed => "changed",
            Kind::Unchanged => "unchanged",
        }
    }

    /// Returns true if there are no changed fields whose places could be listed.
    fn has_own_place(self) -> bool {
        matches!(self, Kind::Added | Kind::Removed | Kind::Unchanged)
    }
}

impl Verdict {
    /// The verdict in reports.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Kept => "within budget",
            Verdict::Broken => "over budget",
            Verdict::NotChecked => "not checked",
            Verdict::NotMeasured => "not measured",
            Verdict::Removed => "removed",
        }
    }
}

impl GateResult {
    /// `HPA shop/web`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.autoscaler, self.name)
    }

    /// Returns true if a figure is measured against targets that can't be compared.
    fn is_incomparable(&self, column: &Column) -> bool {
        !self.unlike_metrics.is_empty() && OF_TARGETS.contains(&column.name())
    }

    /// A figure in both versions.
    fn row(&self, column: &Column) -> Row {
        let is_comparable = !self.is_incomparable(column);
        let figures = |of: &'_ Option<Figures>| of.filter(|_| is_comparable);
        Row::new(column, figures(&self.base).as_ref(), figures(&self.head).as_ref())
    }

    /// The figures that differ or that a bound is for. If there is only one version, all figures
    /// apart from 0.
    fn rows(&self, budget: &Bounds) -> Vec<Row> {
        let (base, head) = (self.base.as_ref(), self.head.as_ref());
        let figures: Vec<&Figures> = base.into_iter().chain(head).collect();
        let is_bound = |column: &Column| budget.0.iter().any(|it| it.column() == column.name());
        let is_shown = |column: &Column| {
            is_bound(column)
                || match (base, head) {
                    _ if self.is_incomparable(column) => false,
                    (Some(base), Some(head)) => column.text(base) != column.text(head),
                    _ => figures.iter().any(|it| column.figure(it).is_some_and(|it| it != 0.0)),
                }
        };
        let columns = figure_columns(&figures).into_iter().filter(is_shown);
        match figures.is_empty() {
            true => Vec::new(),
            false => columns.map(|column| self.row(&column)).collect(),
        }
    }

    /// The reasons for the verdict and what could not be checked, each with the verdict that it is
    /// a reason for, and notes.
    fn reasons(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let broken = self.broken.iter().map(|why| (Verdict::Broken, why));
        let not_measured = self.not_measured.iter().map(|why| (Verdict::NotMeasured, why));
        let not_checked = self.not_checked.iter().map(|why| (Verdict::NotChecked, why));
        let reasons = broken.chain(not_measured).chain(not_checked);
        let reasons = reasons.map(|(verdict, why)| (verdict.text(), Cow::from(why)));
        let article = if self.autoscaler == AutoscalerKind::Hpa.to_string() { "an" } else { "a" };
        let note =
            |target: &String| format!("{target} no longer has {article} {}", self.autoscaler);
        reasons
            .chain(self.targets_without_autoscaler.iter().map(|it| ("note", note(it).into())))
            .collect()
    }

    /// The reasons for the verdict alone, in one line.
    fn reasons_for_verdict(&self) -> String {
        let verdict = self.verdict().text();
        let reasons = self.reasons().into_iter().filter(|(label, _)| *label == verdict);
        reasons.map(|(_, why)| why.into_owned()).collect::<Vec<_>>().join("; ")
    }

    fn text(&self, budget: &Bounds, columns: usize) -> String {
        let verdict = self.verdict();
        let style = match verdict {
            Verdict::Kept => GOOD,
            Verdict::Broken => BAD,
            Verdict::NotChecked | Verdict::NotMeasured => WARN,
            Verdict::Removed => DIM,
        };
        let mut out = match verdict {
            Verdict::Removed => format!("{}: removed\n", paint(STRONG, &self.title())),
            _ => {
                let verdict = paint(style, verdict.text());
                format!("{}, {}: {verdict}\n", paint(STRONG, &self.title()), self.change.text())
            }
        };
        for Field { object, text, file, line, .. } in &self.fields {
            let place = match (file, line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                _ => String::new(),
            };
            out += &wrapped("  ", &format!("{place}{object}: {text}"), columns);
        }
        if self.change.has_own_place() {
            let _ = writeln!(out, "  {}:{}", self.file, self.line);
        }
        let rows = self.rows(budget);
        let most = |text: fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or(0);
        let (names, bases) =
            (most(|row| width(row.name)), most(|row| row.base.as_deref().map_or(0, width)));
        for row in &rows {
            let figures = match (&row.base, &row.head) {
                (Some(base), Some(head)) if base == head => format!("{base:>bases$}"),
                (Some(base), Some(head)) => format!("{base:>bases$} → {head}"),
                (None, None) => format!("{:>bases$}", "-"),
                (base, head) => head.clone().or(base.clone()).unwrap_or_default(),
            };
            let line = format!("  {:<names$}  {figures:<18}  {}", row.name, row.difference);
            let _ = writeln!(out, "{}", line.trim_end());
        }
        for (label, why) in self.reasons() {
            out += &wrapped(&format!("  {label}: "), &why, columns);
        }
        out
    }

    /// The annotations: an error at each changed line if a bound is broken, otherwise one at the
    /// first changed line.
    #[must_use]
    pub fn annotations(&self, budget: &Bounds) -> Vec<Annotation> {
        let kind = match self.verdict() {
            Verdict::Broken => AnnotationKind::Error,
            Verdict::NotChecked | Verdict::NotMeasured => AnnotationKind::Warning,
            Verdict::Kept => AnnotationKind::Notice,
            Verdict::Removed => return Vec::new(),
        };
        let own_place = || (self.file.clone(), self.line);
        let places = self.fields.iter().filter_map(|field| field.file.clone().zip(field.line));
        let mut places: Vec<(String, usize)> = places.collect();
        places.dedup();
        if places.is_empty() {
            places.push(own_place());
        }
        if kind != AnnotationKind::Error {
            places.truncate(1);
        }
        let rows = self.rows(budget).into_iter();
        let figures = rows.filter(|row| row.head.is_some() || row.base.is_some());
        let figures = figures.map(|row| row.text());
        let reasons = self.reasons().into_iter().map(|(label, why)| format!("{label}: {why}"));
        let message = reasons.chain(figures).collect::<Vec<_>>().join("\n");
        let title = format!("{}: {}", self.title(), self.verdict().text());
        let annotation = |(file, line): (String, usize)| Annotation {
            kind,
            file,
            line: Some(line),
            column: None,
            title: title.clone(),
            message: message.clone(),
        };
        places.into_iter().map(annotation).collect()
    }
}

impl Report<'_> {
    fn count(&self, verdict: Verdict) -> usize {
        self.results.iter().filter(|result| result.verdict() == verdict).count()
    }

    /// `1 added, 2 changed, 10 unchanged`.
    fn changes(&self) -> String {
        let of = |kind: Kind| self.results.iter().filter(|it| it.change == kind).count();
        let kinds = [Kind::Added, Kind::Changed, Kind::Moved, Kind::Removed];
        let kinds = kinds.map(|it| (of(it), it.text()));
        let counts = kinds.into_iter().chain([(self.subject.unchanged, "unchanged")]);
        let counts = counts.filter(|(count, _)| *count > 0);
        let texts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    }

    /// `1 over budget, 2 within budget`.
    fn verdicts(&self) -> String {
        let all = [Verdict::Broken, Verdict::NotMeasured, Verdict::NotChecked, Verdict::Kept];
        let counts = all.map(|verdict| (self.count(verdict), verdict.text()));
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let texts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        if texts.is_empty() { "nothing to measure".to_owned() } else { texts.join(", ") }
    }

    /// The figures of all changed autoscalers added up, if there are several.
    fn total(&self) -> Vec<String> {
        // A moved one has no figures before.
        let measured = || {
            let results = self.results.iter().filter(|it| it.change != Kind::Moved);
            results.filter(|it| it.base.is_some() || it.head.is_some())
        };
        if measured().count() < 2 {
            return Vec::new();
        }
        let sum = |of: fn(&GateResult) -> Option<Figures>| {
            let figures = measured().filter_map(of);
            figures.reduce(Figures::join).unwrap_or_default()
        };
        let (base, head) = (sum(|it| it.base), sum(|it| it.head));
        let columns = figure_columns(&[&base, &head]).into_iter();
        let columns = columns.filter(|it| {
            ["pod-hours", "cost", "missing"].contains(&it.name())
                && !self.results.iter().any(|result| result.is_incomparable(it))
        });
        columns.map(|column| Row::new(&column, Some(&base), Some(&head)).text()).collect()
    }

    /// The results as text.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let Subject { base, head, release, budget, .. } = self.subject;
        let about = format!("Autoscalers from {base} to {head}: {}", self.changes());
        let mut out = wrapped("", &about, columns);
        let about = format!("Budget of each, on {release}: {budget}");
        out += &wrapped("", &about, columns);
        for result in self.results {
            let _ = write!(out, "\n{}", result.text(budget, columns));
        }
        let total = self.total();
        if !total.is_empty() {
            let _ = write!(out, "\n{}", wrapped("In total: ", &total.join(", "), columns));
        }
        let _ = write!(out, "\n{}", wrapped("", &self.verdicts(), columns));
        out
    }

    /// The results as Markdown, for a pull request.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Subject { base, head, release, budget, .. } = self.subject;
        let inline = markdown::inline;
        let mut out = format!("# Autoscalers: {}\n\n", self.verdicts());
        let _ = writeln!(
            out,
            "From `{base}` to `{head}`: {}. Budget of each, on {release}: `{budget}`.",
            self.changes()
        );
        out += &self.markdown_table();
        for result in self.results {
            let verdict = result.verdict().text();
            let _ = writeln!(out, "\n## {}: {verdict}\n", inline(&result.title()));
            for (label, why) in result.reasons() {
                let _ = writeln!(out, "- **{label}**: {}", inline(&why));
            }
            for Field { object, text, file, line, .. } in &result.fields {
                let place = file.as_ref().zip(*line);
                let place = place.map(|(file, line)| format!(" ({file}:{line})"));
                let text = format!("{object}: {text}{}", place.unwrap_or_default());
                let _ = writeln!(out, "- {}", inline(&text));
            }
            if result.change.has_own_place() {
                let GateResult { change, file, line, .. } = result;
                let _ = writeln!(out, "- {} ({file}:{line})", change.text());
            }
        }
        let total = self.total();
        if !total.is_empty() {
            let _ = writeln!(out, "\nIn total: {}.", inline(&total.join(", ")));
        }
        out
    }

    /// The figures of all measured autoscalers, as a table.
    fn markdown_table(&self) -> String {
        let figures = |it: &'_ GateResult| it.base.into_iter().chain(it.head);
        let all: Vec<Figures> = self.results.iter().flat_map(figures).collect();
        if all.is_empty() {
            return String::new();
        }
        let columns = figure_columns(&all.iter().collect::<Vec<_>>()).into_iter();
        let is_shown =
            |column: &Column| all.iter().any(|it| column.figure(it).is_some_and(|it| it != 0.0));
        let columns: Vec<Column> = columns.filter(is_shown).collect();
        let names: Vec<&str> = columns.iter().map(Column::name).collect();
        let mut out = format!("\n| autoscaler | verdict | {} |\n", names.join(" | "));
        let _ = writeln!(out, "|---|---|{}", "--:|".repeat(columns.len()));
        for result in self.results {
            let cell = |column: &Column| result.row(column).figures();
            let cells: Vec<String> = columns.iter().map(cell).collect();
            let title = markdown::inline(&result.title());
            let verdict = result.verdict().text();
            let _ = writeln!(out, "| {title} | {verdict} | {} |", cells.join(" | "));
        }
        out
    }

    /// The results as JUnit's XML: one test case for each autoscaler.
    ///
    /// # Errors
    /// If they can't be written as XML.
    pub fn junit(&self) -> io::Result<String> {
        let mut suite = TestSuite::new(format!("gate {}", self.subject.release));
        for result in self.results {
            let text = || plain(&result.text(&self.subject.budget, 100));
            let reasons = result.reasons_for_verdict();
            let status = match result.verdict() {
                Verdict::Kept | Verdict::Removed => TestCaseStatus::success(),
                Verdict::Broken => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_type("over budget").set_message(reasons).set_description(text());
                    status
                }
                Verdict::NotChecked | Verdict::NotMeasured => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(reasons);
                    status
                }
            };
            let mut case = TestCase::new(result.title(), status);
            case.set_classname("gate");
            if result.verdict() == Verdict::Kept {
                case.set_system_out(text());
            }
            suite.add_test_case(case);
        }
        let mut report = quick_junit::Report::new("kube-lockstep");
        report.add_test_suite(suite);
        junit::document(&report)
    }
}
