//! The page around the scenarios: head, figures, filters, style and script.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, PreEscaped, html};

use super::panels::compressed;
use super::section::{FAILURES, PREDICTED, Section, VERDICTS};
use super::share::leave_out_largest;
use crate::{counted, thousands};

/// Replacements that shorten the style sheet. No string in `page.css` contains one of these texts.
const SPACES: [(&str, &str); 7] =
    [(" {", "{"), ("{ ", "{"), ("{\n", "{"), (";\n", ";"), ("; ", ";"), (": ", ":"), (", ", ",")];

/// With at most this many scenarios, all of them are open.
const MOST_OPEN: usize = 20;

/// The maximum number of notes that are not folded.
const MOST_NOTES: usize = 3;

/// The contents of a page.
pub(super) struct Contents<'a> {
    pub title: &'a str,
    /// The engine and the releases, with a preposition: `on upstream 1.37`.
    pub subject: &'a str,
    pub notes: &'a [String],
    /// The content above the sections. With it, the sections are closed at first.
    pub overview: Option<Markup>,
    /// The subject of a section, singular: `scenario`.
    pub noun: &'a str,
    pub sections: Vec<Section>,
    /// The values of the overview, as JSON.
    pub values: Option<String>,
}

/// A whole page, which is valid as HTML and as XML.
pub(super) fn page(mut contents: Contents<'_>) -> String {
    // The sort is stable: otherwise in the order of the run.
    contents.sections.sort_by_key(Section::rank);
    loop {
        let page = draw(&contents);
        if !leave_out_largest(&mut contents.sections, page.len()) {
            return page;
        }
    }
}

fn draw(contents: &Contents<'_>) -> String {
    let sections = &contents.sections;
    let all_open = sections.len() <= MOST_OPEN && contents.overview.is_none();
    let several = sections.iter().any(|it| it.releases != sections[0].releases)
        || sections.iter().any(|section| section.releases.len() > 1);
    let is_open = |section: &Section| all_open || section.rank() < FAILURES;
    let body = html! {
        header {
            h1 { (contents.title) }
            p.sub { "kube-lockstep " (env!("CARGO_PKG_VERSION")) ", " (subject(contents)) }
            (notes(contents.notes))
        }
        @if let Some(overview) = &contents.overview { (overview) }
        @if sections.len() > 1 { (filters(sections, contents.noun)) }
        main {
            @for section in sections { (section.html(is_open(section), several)) }
            p.none hidden="hidden" { "No " (contents.noun) " matches the filters." }
        }
        script.data type="application/base64" { (PreEscaped(compressed(&data(contents)))) }
    };
    let style = compact(include_str!("page.css"));
    let style = SPACES.iter().fold(style, |style, (spaced, tight)| style.replace(spaced, tight));
    let style = format!("/*<![CDATA[*/{style}/*]]>*/");
    let script = concat!(include_str!("figure.js"), include_str!("page.js"));
    let script = format!("//<![CDATA[\n{}//]]>\n", compact(script));
    let title = format!("{}: {}", contents.title, subject(contents));
    let head = html! {
        (PreEscaped(r#"<meta charset="utf-8"/>"#))
        (PreEscaped(r#"<meta name="viewport" content="width=device-width, initial-scale=1"/>"#))
        (PreEscaped(r#"<meta name="color-scheme" content="light dark"/>"#))
        title { (title) }
        style { (PreEscaped(style)) }
    };
    let page = html! {
        (PreEscaped("<!DOCTYPE html>\n"))
        html lang="en" xmlns="http://www.w3.org/1999/xhtml" {
            head { (head) }
            body { (body) script { (PreEscaped(script)) } }
        }
    };
    page.into_string()
}

/// The data for the scripts, as JSON: the values of the overview, and the panels of each section in
/// the order of the page.
fn data(contents: &Contents<'_>) -> String {
    let values = contents.values.as_deref().unwrap_or("null");
    let sections = contents.sections.iter().map(Section::shown_panels);
    let sections: Vec<&str> = sections.collect();
    format!("{{\"values\":{values},\"sections\":[{}]}}", sections.join(","))
}

/// A style or script without indentation and comments of whole lines.
fn compact(code: &str) -> String {
    let lines = code.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("// "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// `332 scenarios on upstream 1.37`; `20 scenarios, 640 results on upstream 1.6–1.37`.
fn subject(contents: &Contents<'_>) -> String {
    let Contents { sections, subject, noun, .. } = contents;
    match sections.as_slice() {
        [only] if only.releases.len() == 1 => format!("{} {subject}", only.id),
        _ => {
            let ids: BTreeSet<&str> = sections.iter().map(|section| &*section.id).collect();
            let runs = sections.iter().map(|section| section.releases.len()).sum();
            let results = match runs == ids.len() {
                true => String::new(),
                false => format!(", {}", counted(runs, "result")),
            };
            format!("{}{results} {subject}", counted(ids.len(), noun))
        }
    }
}

/// The notes on the whole page. Many of them are folded.
fn notes(notes: &[String]) -> Markup {
    let (first, more) = notes.split_at(notes.len().min(MOST_NOTES));
    html! {
        @for note in first { p.note { (note) } }
        @if !more.is_empty() {
            details.notes {
                summary { (counted(more.len(), "more note")) }
                @for note in more { p.note { (note) } }
            }
        }
    }
}

/// The filters of the sections: those that distinguish some of them.
fn filters(sections: &[Section], noun: &str) -> Markup {
    let mut verdicts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut areas: BTreeMap<&str, usize> = BTreeMap::new();
    let mut releases: Vec<&String> = Vec::new();
    for section in sections {
        *verdicts.entry(section.rank()).or_default() += section.releases.len();
        *areas.entry(section.area()).or_default() += 1;
        for release in &section.releases {
            if !releases.contains(&release) {
                releases.push(release);
            }
        }
    }
    let hint = if noun == "scenario" { "id or requirement" } else { "name" };
    html! {
        form.filters role="search" aria-label=(format!("Filters of the {noun}s")) {
            @if verdicts.len() > 1 || sections.iter().any(|it| it.verdict != PREDICTED) {
            div.verdicts role="group" aria-label="Verdicts" {
                @for (rank, count) in &verdicts {
                    @let name = VERDICTS.get(*rank).copied().unwrap_or_default();
                    button.badge.(name) type="button" data-verdict=(name)
                        aria-pressed="true" { (name) " " b { (thousands(*count)) } }
                }
            }
            }
            label {
                span { "Search" }
                (PreEscaped(format!(
                    r#"<input type="search" name="text" placeholder="{hint}" autocomplete="off"/>"#
                )))
            }
            @if areas.len() > 1 {
                (select("area", "Area", areas.keys().copied().filter(|area| !area.is_empty())))
            }
            @if releases.len() > 1 {
                (select("release", "Release", releases.iter().map(|release| release.as_str())))
            }
            button.all type="button" data-all="open" { "Open all" }
            button.all type="button" data-all="close" { "Close all" }
            span.count role="status" {}
        }
    }
}

fn select<'a>(name: &str, label: &str, values: impl Iterator<Item = &'a str>) -> Markup {
    html! {
        label {
            span { (label) }
            select name=(name) {
                option value="" { "all" }
                @for value in values { option value=(value) { (value) } }
            }
        }
    }
}
