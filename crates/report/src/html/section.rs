//! One scenario of a page: its verdict, its divergence, and its timelines.

use std::borrow::Cow;
use std::sync::Arc;

use maud::{Markup, html};

use super::figures::Figures;
use super::panels::{Panels, compressed};
use crate::change::{Between, moment};
use crate::prediction::Predicted;
use crate::presentation::prediction::Head;
use crate::presentation::{Detail, Mark, Presentation, words};
use crate::unmet::UnmetOf;
use crate::writes::Shown;
use crate::{counted, difference, outcome};
use kube_autoscaler_models::rules::{ChangeRow, VpaChange, VpaRelease};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::compare::{Divergence, EntryList, FieldDifference, FieldPath};
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::change::Changed;
use kube_lockstep_sim::run::recommender::{FreeRecommenderRun, free_recommender_run};
use kube_lockstep_sim::run::{FreeRun, Note, Outcome, Setting, Verdict, free_run};

/// A scenario of a page. The same result on several releases is shown once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub id: String,
    pub requirement: String,
    /// The first difference, or why there is no verdict, in one line. May be empty.
    gist: String,
    pub verdict: &'static str,
    /// The releases with this result, in the order of the run.
    pub releases: Vec<String>,
    /// The small chart of the replicas.
    spark: String,
    /// The HTML above the timelines. [`RELEASES`] stands for the list of releases.
    body: String,
    timelines: String,
    /// The data of the panels of the timelines, as JSON.
    panels: String,
    /// True if the timelines are shown; otherwise, a note takes their place.
    shows_timelines: bool,
}

/// A change of a scenario between two releases, with the runs of the model on both.
#[derive(Debug)]
pub struct ScenarioChange<'a> {
    line: usize,
    differing: Differing<'a>,
    runs: ChangedRuns<'a>,
}

/// The runs of the model on two releases, the older one first.
#[derive(Debug)]
enum ChangedRuns<'a> {
    /// Of the HPA controller, with the recommender if there is one.
    Hpa(&'a Arc<Scenario>, Box<[FreeRun; 2]>),
    /// Of the recommender alone.
    Vpa(&'a VpaScenario, [VpaRelease; 2], Box<[FreeRecommenderRun; 2]>),
}

impl<'a> ScenarioChange<'a> {
    /// A change between two releases of Kubernetes.
    #[must_use]
    pub fn hpa(
        scenario: &'a Arc<Scenario>,
        between: Between,
        changed: &'a Changed,
    ) -> ScenarioChange<'a> {
        let runs = [between.from, between.to].map(|release| free_run(scenario, release));
        ScenarioChange::of_runs(scenario, between, changed, runs)
    }

    /// A change between two releases of Kubernetes, with these runs of the model.
    #[must_use]
    pub fn of_runs(
        scenario: &'a Arc<Scenario>,
        between: Between,
        changed: &'a Changed,
        runs: [FreeRun; 2],
    ) -> ScenarioChange<'a> {
        let (line, differing) = (scenario.line, Differing::new(between, changed));
        ScenarioChange { line, differing, runs: ChangedRuns::Hpa(scenario, Box::new(runs)) }
    }

    /// The same change with this explanation, unless rows of the model explain it.
    #[must_use]
    pub fn because(mut self, since: &str, what: &str, link: &'static str) -> ScenarioChange<'a> {
        if self.differing.rows.is_empty() {
            let (since, what) = (since.to_owned(), Cow::Owned(what.to_owned()));
            self.differing.rows.push(Explanation { since, what, links: vec![link] });
        }
        self
    }

    /// A change between two releases of the VPA's recommender.
    #[must_use]
    pub fn vpa(
        scenario: &'a VpaScenario,
        between: Between<VpaRelease>,
        changed: &'a Changed<VpaChange>,
    ) -> ScenarioChange<'a> {
        let releases = [between.from, between.to];
        let runs = releases.map(|release| free_recommender_run(scenario, release, &|_| false));
        let (line, differing) = (scenario.line, Differing::new(between, changed));
        ScenarioChange {
            line,
            differing,
            runs: ChangedRuns::Vpa(scenario, releases, Box::new(runs)),
        }
    }

    /// The predictions on both releases.
    fn predictions(&self) -> [Predicted<'_>; 2] {
        [0, 1].map(|index| match &self.runs {
            ChangedRuns::Hpa(scenario, runs) => Predicted::hpa(scenario, &runs[index], &[]),
            ChangedRuns::Vpa(scenario, releases, runs) => {
                Predicted::vpa(scenario, &runs[index], releases[index])
            }
        })
    }
}

/// The contents of a section, apart from its figures.
struct Contents {
    id: String,
    requirement: String,
    gist: String,
    verdict: &'static str,
    release: String,
    body: Markup,
}

/// The verdicts, the worst first.
pub(super) const VERDICTS: [&str; 8] = [
    "diverges",
    "unmet",
    "unexplained",
    "inconclusive",
    "skipped",
    "changed",
    PREDICTED,
    "conforms",
];

/// The verdict of a prediction.
pub(super) const PREDICTED: &str = "predicted";

/// The number of verdicts that are failures, whose sections are open.
pub(super) const FAILURES: usize = 4;

impl Section {
    fn new(head: Contents, spark: String, timelines: Markup, panels: Panels) -> Section {
        let Contents { id, requirement, gist, verdict, release, body } = head;
        Section {
            id,
            requirement,
            gist,
            verdict,
            releases: vec![release],
            spark,
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
    }

    /// The section of an outcome.
    pub(super) fn from_outcome(
        outcome: &Outcome,
        setting: Option<&Setting>,
        detail: Detail,
    ) -> Section {
        let figures = Figures::new(Presentation::from_outcome(outcome, detail), detail);
        let body = html! {
            (facts(outcome, figures.counts(), setting))
            (verdict(outcome))
            (unmet(UnmetOf::outcome(outcome), &outcome.unmet))
            (writes(outcome))
            @for known in &outcome.known {
                p.note { b { "Known disagreement: " } (known.reason) " (" (known.field) ")" }
            }
            (notes(&outcome.notes, &outcome.path))
        };
        let mut panels = Panels::default();
        let is_named = !figures.is_empty() && matches!(outcome.verdict, Verdict::Diverges(_));
        let timelines = html! {
            @if is_named { h2 { "Timeline of the engine (" (outcome.engine) ")" } }
            (figures.html(&mut panels))
        };
        let head = Contents {
            id: outcome.id.clone(),
            requirement: outcome.requirement.clone(),
            gist: gist(outcome),
            verdict: outcome.verdict.name(),
            release: outcome.release.clone(),
            body,
        };
        Section::new(head, figures.spark(), timelines, panels)
    }

    /// The section of a prediction.
    pub(super) fn from_prediction(predicted: &Predicted<'_>, detail: Detail) -> Section {
        let Head { id, path, requirement, release, notes, undetermined } = predicted.head();
        let figures = Figures::new(predicted.prediction().presentation(None, detail), detail);
        let (of, unmet) =
            (UnmetOf { id, path, release: &release, is_without_model: false }, predicted.unmet);
        let body = html! {
            p.facts { (path) (figures.counts()) }
            (self::unmet(of, unmet))
            @if let Some(why) = undetermined {
                p.note { b { "The run ends early: " } (why.to_string()) }
            }
            (self::notes(notes, path))
        };
        let mut panels = Panels::default();
        let timelines = figures.html(&mut panels);
        let head = Contents {
            id: id.to_owned(),
            requirement: requirement.to_owned(),
            gist: String::new(),
            verdict: if unmet.is_empty() { PREDICTED } else { "unmet" },
            release,
            body,
        };
        Section::new(head, figures.spark(), timelines, panels)
    }

    /// The section of a change between two releases: what changed, why, and the timelines of the
    /// model on both.
    pub(super) fn from_change(change: &ScenarioChange<'_>, detail: Detail) -> Section {
        let Differing { from, to, first, rows } = &change.differing;
        let mark = Mark::changed(first, from.clone(), to.clone());
        let predictions = change.predictions();
        let [older, newer] = predictions.map(|it| {
            let run = it.prediction().presentation(Some(mark.clone()), detail);
            Figures::new(run, detail)
        });
        let Head { id, path, requirement, .. } = predictions[1].head();
        let mut panels = Panels::default();
        let timelines = if newer.looks_like(&older) && detail.is_coarse() {
            html! {
                h2 { "Model of " (from) " and " (to) }
                p.note { "The charts are the same. The steps below are those of " (to) "." }
                (newer.html(&mut panels))
            }
        } else {
            html! {
                @for (release, figures) in [(from, &older), (to, &newer)] {
                    @if !figures.is_empty() {
                        h2 { "Model of " (release) }
                        (figures.html(&mut panels))
                    }
                }
            }
        };
        let head = Contents {
            id: id.to_owned(),
            requirement: requirement.to_owned(),
            gist: mark.gist() + &since(&change.differing),
            verdict: if rows.is_empty() { "unexplained" } else { "changed" },
            release: to.clone(),
            body: html! {
                p.facts { (path) ":" (change.line) }
                (changed_fields(&change.differing))
            },
        };
        Section::new(head, newer.spark(), timelines, panels)
    }

    /// The section with another name and another description.
    pub(super) fn named(self, id: &str, requirement: &str) -> Section {
        Section { id: id.to_owned(), requirement: requirement.to_owned(), ..self }
    }

    /// Returns true if the sections differ by their releases only.
    pub(super) fn is_same(&self, other: &Section) -> bool {
        (&self.id, self.verdict, &self.gist, &self.body, &self.timelines, &self.panels)
            == (&other.id, other.verdict, &other.gist, &other.body, &other.timelines, &other.panels)
    }

    fn shown_body(&self) -> String {
        self.body.replace(RELEASES, &ranges(&self.releases))
    }

    /// The content below the summary, as HTML.
    pub(super) fn content(&self) -> String {
        self.shown_body() + &self.timelines
    }

    /// The size of the timelines in a page, in bytes; 0 without any.
    pub(super) fn size_of_timelines(&self) -> usize {
        if self.timelines.is_empty() {
            return 0;
        }
        self.timelines.len() + compressed(&self.panels).len()
    }

    /// The size in a page, in bytes. On its own, the data is compressed less than in the page.
    pub(super) fn size(&self) -> usize {
        self.html(false, true).into_string().len() + compressed(self.shown_panels()).len()
    }

    /// The data of the panels in a page, as JSON.
    pub(super) fn shown_panels(&self) -> &str {
        if self.shows_timelines { &self.panels } else { "{}" }
    }

    /// Does not show the timelines.
    pub(super) fn leave_out_timelines(&mut self) {
        self.shows_timelines = false;
    }

    /// Returns true if no timeline is shown.
    pub(super) fn lacks_timelines(&self) -> bool {
        !self.shows_timelines || self.timelines.is_empty()
    }

    /// The folder of the scenario.
    pub(super) fn area(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |(area, _)| area)
    }

    /// The place in the order of the page.
    pub(super) fn rank(&self) -> usize {
        VERDICTS.iter().position(|verdict| *verdict == self.verdict).unwrap_or(VERDICTS.len())
    }

    /// The section as HTML. `shows_releases`: the run has several.
    pub(super) fn html(&self, is_open: bool, shows_releases: bool) -> Markup {
        let area = self.area();
        let name = self.id.strip_prefix(area).unwrap_or(&self.id);
        // An id of HTML has no spaces; the name of a setting may.
        let anchor = format!("{}@{}", self.id, self.releases.join(",")).replace(' ', "-");
        html! {
            details.s id=(anchor) data-v=(self.verdict) data-a=(area)
                data-r=(self.releases.join(" ")) open=[is_open.then_some("open")] {
                summary {
                    span.badge.(self.verdict) { (self.verdict) }
                    span.name {
                        span.area { (area) } (name)
                        @if shows_releases { span.rel { (ranges(&self.releases)) } }
                    }
                    (maud::PreEscaped(&self.spark))
                    span.req { (self.requirement) }
                    @if !self.gist.is_empty() {
                        span.req.gist { (self.gist.replace(RELEASES, &ranges(&self.releases))) }
                    }
                }
                div.body {
                    (maud::PreEscaped(self.shown_body()))
                    @if self.shows_timelines {
                        (maud::PreEscaped(&self.timelines))
                    } @else {
                        p.note { "The timeline is left out, because the page would be too large." }
                    }
                }
            }
        }
    }
}

/// The first difference, or the reason, in one line.
fn gist(outcome: &Outcome) -> String {
    match &outcome.verdict {
        Verdict::Diverges(first) => Mark::diverges(first, &outcome.engine).gist(),
        Verdict::Skipped { why } => cut(&why.with_release(RELEASES)),
        Verdict::Inconclusive { why, .. } => cut(why),
        Verdict::Conforms | Verdict::Unmet => String::new(),
    }
}

/// The first line of a text, cut to a length.
fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    words::cut(text.lines().next().unwrap_or_default(), LONGEST)
}

/// Stands for the releases of a section, so that the same reason on several releases is shown once:
/// `it applies to releases >=1.30, not to 1.27–1.29`.
const RELEASES: &str = "\u{e000}";

/// `1.30–1.37`, for consecutive releases.
fn ranges(releases: &[String]) -> String {
    let minor =
        |release: &String| release.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
    let mut groups: Vec<Vec<&String>> = Vec::new();
    for release in releases {
        match groups.last_mut() {
            Some(group)
                if group.last().and_then(|last| minor(last)).map(|last| last + 1)
                    == minor(release)
                    && minor(release).is_some() =>
            {
                group.push(release);
            }
            _ => groups.push(vec![release]),
        }
    }
    let text = |group: &Vec<&String>| match group.as_slice() {
        [only] => (*only).clone(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    };
    groups.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// File, figures, and the command that repeats the run. Without the release, which may differ.
fn facts(outcome: &Outcome, figures: &str, setting: Option<&Setting>) -> Markup {
    let is_failure = !matches!(outcome.verdict, Verdict::Conforms | Verdict::Skipped { .. });
    html! {
        p.facts {
            (outcome.path) ":" (outcome.line) (figures)
            @if let Some(release) = outcome.vpa_release { " · " (release) }
        }
        @if is_failure {
            p.facts { "Replay: " (command(&outcome::replay_command(outcome, setting))) }
        }
    }
}

/// A command, without line breaks inside its options.
fn command(text: &str) -> Markup {
    html! {
        code {
            @for (index, word) in text.split(' ').enumerate() {
                @if index > 0 { " " }
                @if word.starts_with('-') { span.o { (word) } } @else { (word) }
            }
        }
    }
}

/// The notes of a scenario. Several are folded, so that they do not hide the charts.
fn notes(notes: &[Note], path: &str) -> Markup {
    let notes = notes.iter().map(|note| format!("{}: {}", note.place(path), note.what));
    let notes: Vec<String> = notes.collect();
    html! {
        @if let [only] = notes.as_slice() {
            p.note { b { "Note: " } (only) }
        } @else if !notes.is_empty() {
            details.notes {
                summary { (counted(notes.len(), "note")) }
                @for note in &notes { p.note { (note) } }
            }
        }
    }
}

fn verdict(outcome: &Outcome) -> Markup {
    match &outcome.verdict {
        Verdict::Diverges(divergence) => diverges(outcome, divergence),
        Verdict::Inconclusive { why, output } => html! {
            p.note { b { "No verdict: " } (why) }
            @if !output.is_empty() { pre tabindex="0" { (printable(output)) } }
        },
        Verdict::Skipped { why } => html! {
            p.note { b { "Skipped: " } (why.with_release(RELEASES)) }
        },
        Verdict::Conforms | Verdict::Unmet => html! {},
    }
}

/// Text without control characters, which XML does not allow.
fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() && c != '\n' { '.' } else { c };
    text.trim_end().replace('\t', "    ").chars().map(visible).collect()
}

fn diverges(outcome: &Outcome, divergence: &Divergence) -> Markup {
    let why = &divergence.why;
    html! {
        div.div {
            p { b {
                @if divergence.is_api_answer() {
                    "The API server's answer differs, t=" (divergence.at)
                } @else {
                    "Diverges at tick " (divergence.scenario_tick()) ", t=" (divergence.at)
                }
            } }
            div.wide tabindex="0" role="region" aria-label="Fields" { table
                style=(sides("model", &outcome.engine)) {
                thead { tr { th { "field" } th { "model" } th { (outcome.engine) } } }
                tbody {
                    @for field in &divergence.fields {
                        (differing_field(field))
                    }
                }
            } }
            @if !why.is_empty() { p { b { "Why the model said so: " } (why) } }
            @if outcome.not_compared > 0 {
                p.hint { (counted(outcome.not_compared, "later tick")) " not compared" }
            }
        }
    }
}

/// A field with both values, in which what differs is marked.
fn differing_field(field: &FieldDifference) -> Markup {
    let [model, seen] = difference::parts(&field.model, &field.upstream);
    let marked = |[before, differs, after]: [String; 3]| {
        html! {
            (before) @if !differs.is_empty() { mark { (differs) } } (after)
        }
    };
    html! {
        tr {
            th scope="row" { (field.field.to_string()) }
            td.m { (marked(model)) }
            td.e { (marked(seen)) }
        }
    }
}

/// The first tick that differs between two releases.
#[derive(Debug)]
struct Differing<'a> {
    from: String,
    to: String,
    first: &'a Divergence,
    /// The rows of the model that explain it.
    rows: Vec<Explanation>,
}

/// A row of the model, or another explanation.
#[derive(Debug)]
struct Explanation {
    since: String,
    what: Cow<'static, str>,
    links: Vec<&'static str>,
}

impl<'a> Differing<'a> {
    fn new<C: ChangeRow>(between: Between<C::Release>, changed: &'a Changed<C>) -> Differing<'a> {
        let rows = changed.rows.iter().map(|row| Explanation {
            since: row.since().to_string(),
            what: row.what().into(),
            links: row.links().collect(),
        });
        let (from, to) = (between.from.to_string(), between.to.to_string());
        Differing { from, to, first: &changed.first, rows: rows.collect() }
    }
}

/// The first row of the model that explains a change: `; since 1.37: …`.
fn since(differing: &Differing<'_>) -> String {
    let row = differing.rows.first();
    row.map(|row| format!("; since {}: {}", row.since, row.what)).unwrap_or_default()
}

/// The names of the sides of a table, which a narrow screen shows before each value.
fn sides(one: &str, other: &str) -> String {
    format!("--m:{one:?};--e:{other:?}")
}

/// The fields of the first tick that changed, and the rows of the model that explain them.
fn changed_fields(differing: &Differing<'_>) -> Markup {
    let Differing { from, to, first, rows } = differing;
    let fields = without_repetition(&first.fields);
    html! {
        div.div.explained[!rows.is_empty()] {
            p { b { "Changed: " (moment(first)) } }
            div.wide tabindex="0" role="region" aria-label="Fields" { table
                style=(sides(from, to)) {
                thead { tr { th { "field" } th { (from) } th { (to) } } }
                tbody {
                    @for field in fields {
                        (differing_field(field))
                    }
                }
            } }
            @for row in rows {
                p {
                    b { "Since " (row.since) ": " } (row.what)
                    @for link in &row.links { " " a href=(link) { (link) } }
                }
            }
            @if rows.is_empty() {
                p { "No row of the model explains this change." }
            }
        }
    }
}

/// The fields, without the requests that send an event if the event itself is among them.
fn without_repetition(fields: &[FieldDifference]) -> Vec<&FieldDifference> {
    let repeats = |field: &FieldDifference| {
        let FieldPath::Entry(EntryList::SentEvents, index) = field.field else { return false };
        let event = FieldPath::Entry(EntryList::Events, index);
        field.only_shows_event && fields.iter().any(|other| other.field == event)
    };
    fields.iter().filter(|field| !repeats(field)).collect()
}

/// The writes up to the first unmet expectation.
fn writes(outcome: &Outcome) -> Markup {
    let Some(shown) = Shown::of(outcome) else { return Markup::default() };
    html! {
        div.div {
            p { b { (shown.title()) } }
            ul { @for line in shown.lines() { li { (line) } } }
        }
    }
}

fn unmet(of: UnmetOf<'_>, unmet: &[Unmet]) -> Markup {
    html! {
        @if !unmet.is_empty() {
            div.div {
                p { b { (counted(unmet.len(), "unmet expectation")) } }
                ul {
                    @for unmet in unmet {
                        li {
                            (of.path) ":" (unmet.line) ": " (unmet.what)
                            @if !unmet.why.is_empty() { div { "why: " (unmet.why) } }
                            @if let Some(command) = of.explain_command(unmet) {
                                div { "explain it: " (self::command(&command)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
