//! One scenario of a page: its verdict, its divergence, and its timelines.

use std::sync::Arc;

use maud::{Markup, html};

use super::detail::Detail;
use super::lane::Selectable;
use super::mark::Mark;
use super::panels::{Panels, compressed};
use super::timeline::{Run, Timeline};
use super::vpa::VpaRun;
use super::{actions, chart, ticks, words};
use crate::change::{Between, moment};
use crate::unmet::UnmetOf;
use crate::{counted, difference, outcome};
use kube_autoscaler_models::rules::{ChangeRow, Release, VpaChange, VpaRelease};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::compare::{Divergence, EntryList, FieldDifference, FieldPath};
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::change::Changed;
use kube_lockstep_sim::run::recommender::{FreeRecommenderRun, free_recommender_run};
use kube_lockstep_sim::run::{FreeRun, Outcome, Setting, Verdict, free_run};

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
    /// Whether the timelines are shown, or a note.
    shows_timelines: bool,
}

/// A change of a scenario between two releases, with the runs of the model on both.
pub(super) struct ChangeOf<'a> {
    scenario: &'a Arc<Scenario>,
    between: Between,
    changed: &'a Changed,
    runs: [FreeRun; 2],
}

impl<'a> ChangeOf<'a> {
    pub(super) fn new(
        scenario: &'a Arc<Scenario>,
        between: Between,
        changed: &'a Changed,
    ) -> ChangeOf<'a> {
        let runs = [between.from, between.to].map(|release| free_run(scenario, release));
        ChangeOf { scenario, between, changed, runs }
    }
}

/// A change of a scenario of the VPA's recommender between two releases, as [`ChangeOf`].
pub(super) struct VpaChangeOf<'a> {
    scenario: &'a VpaScenario,
    between: Between<VpaRelease>,
    changed: &'a Changed<VpaChange>,
    runs: [FreeRecommenderRun; 2],
}

impl<'a> VpaChangeOf<'a> {
    pub(super) fn new(
        scenario: &'a VpaScenario,
        between: Between<VpaRelease>,
        changed: &'a Changed<VpaChange>,
    ) -> VpaChangeOf<'a> {
        let releases = [between.from, between.to];
        let runs = releases.map(|release| free_recommender_run(scenario, release, &|_| false));
        VpaChangeOf { scenario, between, changed, runs }
    }
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
    /// The section of an outcome.
    pub(super) fn of_outcome(
        outcome: &Outcome,
        setting: Option<&Setting>,
        detail: Detail,
    ) -> Section {
        let (mut run, mut vpa) = (Run::of_outcome(outcome), VpaRun::of_outcome(outcome, detail));
        share_axis(&mut run, &mut vpa);
        let body = html! {
            (facts(outcome, &all_figures(run.as_ref(), vpa.as_ref()), setting))
            (verdict(outcome))
            (unmet(UnmetOf::outcome(outcome), &outcome.unmet))
            @for known in &outcome.known {
                p.note { b { "Known disagreement: " } (known.reason) " (" (known.field) ")" }
            }
            (notes(outcome.notes.iter().map(|note| {
                let what = of_any_release(&note.what, &outcome.release);
                format!("{}: {what}", note.place(&outcome.path))
            })))
        };
        let mut panels = Panels::default();
        let is_drawn = run.is_some() || vpa.is_some();
        let timelines = html! {
            @if is_drawn && matches!(outcome.verdict, Verdict::Diverges(_)) {
                h2 { "Timeline of the engine (" (outcome.engine) ")" }
            }
            (figures(run.as_ref(), detail, &mut panels))
            @if let Some(run) = &vpa { (run.html(&mut panels)) }
        };
        Section {
            id: outcome.id.clone(),
            requirement: outcome.requirement.clone(),
            gist: gist(outcome),
            verdict: outcome.verdict.name(),
            releases: vec![outcome.release.clone()],
            spark: match &vpa {
                Some(vpa) if run.is_none() => vpa.spark(),
                _ => spark(run.as_ref()),
            },
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
    }

    /// The section of a run of the model alone.
    pub(super) fn of_model(
        scenario: &Arc<Scenario>,
        free: &FreeRun,
        unmet: &[Unmet],
        detail: Detail,
    ) -> Section {
        let run = Predicted::of(scenario, free, detail);
        let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &free.trace.release };
        let body = html! {
            p.facts { (scenario.path) (all_figures(run.hpa.as_ref(), run.vpa.as_ref())) }
            (self::unmet(of, unmet))
            @if let Some(why) = &free.undetermined {
                p.note { b { "The run ends early: " } (why.to_string()) }
            }
            (notes(free.notes.iter().map(|it| {
                format!("{}: {}", it.place(&scenario.path), it.what)
            })))
        };
        let mut panels = Panels::default();
        let timelines = run.html(&mut panels);
        Section {
            id: scenario.id.clone(),
            requirement: scenario.requirement.clone(),
            gist: String::new(),
            verdict: if unmet.is_empty() { PREDICTED } else { "unmet" },
            releases: vec![free.trace.release.clone()],
            spark: spark(run.hpa.as_ref()),
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
    }

    /// The section of a run of the model of the VPA's recommender alone.
    pub(super) fn of_vpa(
        scenario: &VpaScenario,
        free: &FreeRecommenderRun,
        release: VpaRelease,
        detail: Detail,
    ) -> Section {
        let run = VpaRun::of_model(scenario, free, release, None, detail);
        let name = release.to_string();
        let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &name };
        let body = html! {
            p.facts { (scenario.path) (all_figures(None, run.as_ref())) }
            (self::unmet(of, &free.unmet))
            @if let Some(why) = &free.undetermined {
                p.note { b { "The run ends early: " } (why.to_string()) }
            }
            (notes(free.notes.iter().map(|it| {
                format!("{}: {}", it.place(&scenario.path), it.what)
            })))
        };
        let mut panels = Panels::default();
        let timelines = html! { @if let Some(run) = &run { (run.html(&mut panels)) } };
        Section {
            id: scenario.id.clone(),
            requirement: scenario.requirement.clone(),
            gist: String::new(),
            verdict: if free.unmet.is_empty() { PREDICTED } else { "unmet" },
            releases: vec![name],
            spark: run.map(|run| run.spark()).unwrap_or_default(),
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
    }

    /// The section of a change between two releases: what changed, why, and the timelines of the
    /// model on both.
    pub(super) fn of_change(change: &ChangeOf<'_>, detail: Detail) -> Section {
        let ChangeOf { scenario, between, changed, runs } = change;
        let mark = Mark::changed(&changed.first, between.from.to_string(), between.to.to_string());
        let [older, newer] =
            runs.each_ref().map(|free| Predicted::of(scenario, free, detail).marked(&mark));
        let body = html! {
            p.facts { (scenario.path) ":" (scenario.line) }
            (changed_fields(&Differing::of(*between, changed)))
        };
        let mut panels = Panels::default();
        let mut model_of = |release: Release, run: &Predicted<'_>| {
            let html = run.hpa.is_some().then(|| run.html(&mut panels));
            html! { @if let Some(html) = html { h2 { "Model of " (release) } (html) } }
        };
        let is_same = newer.hpa.is_some() && newer.charts() == older.charts();
        let timelines = if is_same && newer.vpa.is_none() && detail.is_coarse() {
            let names = format!("{} and {}", between.from, between.to);
            html! {
                h2 { "Model of " (names) }
                p.note { "The charts are the same. The steps below are those of " (between.to) "." }
                (newer.html(&mut panels))
            }
        } else {
            let older = model_of(between.from, &older);
            html! { (older) (model_of(between.to, &newer)) }
        };
        Section {
            id: scenario.id.clone(),
            requirement: scenario.requirement.clone(),
            gist: mark.gist() + &since(&Differing::of(*between, changed)),
            verdict: if changed.rows.is_empty() { "unexplained" } else { "changed" },
            releases: vec![between.to.to_string()],
            spark: spark(newer.hpa.as_ref()),
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
    }

    /// The section with another name and another description.
    pub(super) fn named(self, id: &str, requirement: &str) -> Section {
        Section { id: id.to_owned(), requirement: requirement.to_owned(), ..self }
    }

    /// The section of a change between two releases of the VPA's recommender.
    pub(super) fn of_vpa_change(change: &VpaChangeOf<'_>, detail: Detail) -> Section {
        let VpaChangeOf { scenario, between, changed, runs } = change;
        let releases = [between.from, between.to];
        let mark = Mark::changed(&changed.first, between.from.to_string(), between.to.to_string());
        let mut panels = Panels::default();
        let runs = [0, 1].map(|index| {
            let (free, release) = (&runs[index], releases[index]);
            VpaRun::of_model(scenario, free, release, Some(mark.clone()), detail)
                .map(|run| (run.html(&mut panels), run.spark()))
        });
        let body = html! {
            p.facts { (scenario.path) ":" (scenario.line) }
            (changed_fields(&Differing::of(*between, changed)))
        };
        let timelines = html! {
            @for (release, run) in releases.iter().zip(&runs) {
                @if let Some((figures, _)) = run { h2 { "Model of " (release) } (figures) }
            }
        };
        let [_, newer] = runs;
        Section {
            id: scenario.id.clone(),
            requirement: scenario.requirement.clone(),
            gist: mark.gist() + &since(&Differing::of(*between, changed)),
            verdict: if changed.rows.is_empty() { "unexplained" } else { "changed" },
            releases: vec![between.to.to_string()],
            spark: newer.map(|(_, spark)| spark).unwrap_or_default(),
            body: body.into_string(),
            timelines: timelines.into_string(),
            panels: panels.into_json(),
            shows_timelines: true,
        }
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
        Verdict::Skipped { why } => cut(&of_any_release(why, &outcome.release)),
        Verdict::Inconclusive { why, .. } => cut(why),
        Verdict::Conforms | Verdict::Unmet => String::new(),
    }
}

/// The first line of a text, cut to a length.
fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    words::cut(text.lines().next().unwrap_or_default(), LONGEST)
}

/// Makes the timelines of an HPA and a VPA end at the same time.
fn share_axis(hpa: &mut Option<Run<'_>>, vpa: &mut Option<VpaRun<'_>>) {
    if let (Some(hpa), Some(vpa)) = (hpa, vpa) {
        let end = hpa.end.max(vpa.end);
        (hpa.end, vpa.end) = (end, end);
    }
}

/// Stands for the releases of a section.
const RELEASES: char = '\u{e000}';

/// A reason that names its release at last, with [`RELEASES`] instead, so that the same reason on
/// several releases is shown once: `it applies to releases >=1.30, not to 1.27–1.29`.
fn of_any_release(why: &str, release: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match why.rsplit_once(release) {
        Some((before, after)) if !before.ends_with(|c| is_part(c) || c == '.') => {
            let mut after_dot = after.strip_prefix('.').unwrap_or(after).chars();
            match after_dot.next() {
                Some(next) if is_part(next) => why.to_owned(),
                _ => format!("{before}{RELEASES}{after}"),
            }
        }
        _ => why.to_owned(),
    }
}

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
fn notes(notes: impl Iterator<Item = String>) -> Markup {
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

fn all_figures(run: Option<&Run<'_>>, vpa: Option<&VpaRun<'_>>) -> String {
    figures_of(run) + &vpa.map(VpaRun::figures).unwrap_or_default()
}

fn figures_of(run: Option<&Run<'_>>) -> String {
    let Some(run) = run else { return String::new() };
    let ticks = counted(run.ticks.len(), "tick");
    format!(" · {ticks} · {} of replicas", counted(run.rescales(), "change"))
}

fn verdict(outcome: &Outcome) -> Markup {
    match &outcome.verdict {
        Verdict::Diverges(divergence) => diverges(outcome, divergence),
        Verdict::Inconclusive { why, output } => html! {
            p.note { b { "No verdict: " } (why) }
            @if !output.is_empty() { pre tabindex="0" { (printable(output)) } }
        },
        Verdict::Skipped { why } => html! {
            p.note { b { "Skipped: " } (of_any_release(why, &outcome.release)) }
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
                    @for field in divergence.named_fields() {
                        (differing_field(&field))
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
struct Differing<'a> {
    from: String,
    to: String,
    first: &'a Divergence,
    /// The rows of the model that explain it.
    rows: Vec<Explanation>,
}

/// A row of the model.
struct Explanation {
    since: String,
    what: &'static str,
    links: Vec<&'static str>,
}

impl<'a> Differing<'a> {
    fn of<C: ChangeRow>(between: Between<C::Release>, changed: &'a Changed<C>) -> Differing<'a> {
        let rows = changed.rows.iter().map(|row| Explanation {
            since: row.since().to_string(),
            what: row.what(),
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
        let event = fields.iter().find(|other| other.field == event);
        let is_of =
            |sent: &str, event: &str| sent.strip_prefix(FIRST_SENT).unwrap_or(sent) == event;
        event.is_some_and(|event| {
            is_of(&field.model, &event.model) && is_of(&field.upstream, &event.upstream)
        })
    };
    fields.iter().filter(|field| !repeats(field)).collect()
}

/// How an event is sent the first time.
const FIRST_SENT: &str = "create with count 1: ";

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

fn spark(run: Option<&Run<'_>>) -> String {
    let timelines = run.map(Run::timelines).unwrap_or_default();
    timelines.first().map(|timeline| chart::sparkline(timeline).into_string()).unwrap_or_default()
}

fn figures(run: Option<&Run<'_>>, detail: Detail, panels: &mut Panels) -> Markup {
    let timelines = run.map(Run::timelines).unwrap_or_default();
    html! { @for timeline in &timelines { (figure(timeline, detail, panels)) } }
}

/// A run of the model alone.
struct Predicted<'a> {
    hpa: Option<Run<'a>>,
    /// The VPA beside the HPA.
    vpa: Option<VpaRun<'a>>,
    detail: Detail,
}

impl<'a> Predicted<'a> {
    fn of(scenario: &'a Arc<Scenario>, free: &'a FreeRun, detail: Detail) -> Predicted<'a> {
        let mut hpa = Run::of_model(scenario, free);
        let mut vpa = VpaRun::beside_hpa(scenario, free, detail);
        share_axis(&mut hpa, &mut vpa);
        Predicted { hpa, vpa, detail }
    }

    /// With a mark of the first tick that differs from another run.
    fn marked(mut self, mark: &Mark<'a>) -> Predicted<'a> {
        if let Some(run) = &mut self.hpa {
            run.mark = Some(mark.clone());
        }
        self
    }

    fn html(&self, panels: &mut Panels) -> Markup {
        html! {
            (figures(self.hpa.as_ref(), self.detail, panels))
            @if let Some(run) = &self.vpa { (run.html(panels)) }
        }
    }

    /// The charts of all HPAs, to compare them.
    fn charts(&self) -> String {
        let timelines = self.hpa.as_ref().map(Run::timelines).unwrap_or_default();
        timelines.iter().map(|it| chart::all(it, self.detail).into_string()).collect()
    }
}

/// The charts of one HPA, and the panel for its ticks.
fn figure(timeline: &Timeline<'_>, detail: Detail, panels: &mut Panels) -> Markup {
    let axis = timeline.axis(detail.columns);
    let marked = timeline.mark.as_ref().map(|mark| mark.on(axis));
    panels.add(ticks::of(timeline, detail));
    Selectable {
        kind: "hpa",
        name: &timeline.hpa,
        charts: chart::all(timeline, detail),
        marked,
        below: actions::list(&actions::of(timeline)),
    }
    .draw()
}
