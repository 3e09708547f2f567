//! The result for all autoscalers, as text, Markdown and JSON.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::plan::Reason;
use super::search::{Difference, Effect, Example, Searched, Upgrade};
use kube_autoscaler_models::is_default::is_default;
use kube_lockstep_manifests::field::value_text;
use kube_lockstep_report::event_in_words;
use kube_lockstep_report::overview::{Overview, OverviewItem};
use kube_lockstep_report::style::{DIM, STRONG, paint};
use kube_lockstep_report::{counted, json, markdown, thousands, wrapped};

/// An HPA, or several of the same target.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The names, each with the namespace if the manifest sets one.
    pub names: Vec<String>,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is known without a search, such as fields without effect.
    pub notes: Vec<String>,
    /// The effect that is known without a search: a release rejects it, or stops it.
    pub known: Option<Effect>,
    /// True if the newer release no longer serves the API version of a manifest: the HPA continues
    /// to work, but the manifest can't be applied.
    pub must_be_rewritten: bool,
    /// The result of the search. None: it was not searched.
    pub searched: Option<Searched>,
}

/// A change of a release or of a feature gate, with the HPAs that it affects.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it changes.
    pub reason: Reason,
    /// Its largest effect.
    pub effect: Effect,
    /// The names of the HPAs with this effect.
    pub affected: Vec<String>,
    /// The names of those on whose given load it shows.
    pub on_given_load: Vec<String>,
    /// The number of HPAs with each smaller effect.
    pub otherwise: BTreeMap<Effect, usize>,
    /// The HPA of the example.
    pub example_of: usize,
    /// The difference that the example shows.
    pub difference: Difference,
    /// The simplest scenario that shows it.
    pub example: Option<Example>,
    /// The result of the example on the upstream controllers. None: it was not run.
    pub confirmed: Option<Confirmation>,
}

/// The result of an example on the upstream controllers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// True if both controllers do what the model predicts.
    pub is_confirmed: bool,
    /// The result as a sentence.
    pub text: String,
}

/// The result for all HPAs.
#[derive(Clone, Copy, Debug)]
pub struct Report<'r> {
    /// What was searched.
    pub upgrade: &'r Upgrade,
    /// The HPAs.
    pub subjects: &'r [Subject],
    /// The changes, oldest first.
    pub groups: &'r [Group],
    /// What concerns no single HPA, such as feature gates that one of the releases does not have.
    pub general: &'r [String],
    /// The problems of the invalid manifests, which are left out.
    pub invalid: &'r [String],
}

/// The form of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Text with this number of columns.
    Text(usize),
    /// Markdown.
    Markdown,
}

impl Effect {
    /// The effect as a heading.
    fn title(self) -> &'static str {
        match self {
            Effect::Replicas => "Other replicas",
            Effect::FirstReconcile => "The first reconcile at another time",
            Effect::Status => "Only another status, other events or requests",
        }
    }

    /// The effect without a larger one, in a sentence.
    fn only(self) -> &'static str {
        match self {
            Effect::Replicas => "other replicas",
            Effect::FirstReconcile => "only the first reconcile at another time",
            Effect::Status => "only another status, other events or requests",
        }
    }
}

/// The most names of HPAs that are listed for a change.
const MOST_NAMES: usize = 8;

impl Group {
    /// The groups of all differences, oldest change first.
    #[must_use]
    pub fn all(upgrade: &Upgrade, subjects: &[Subject]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (index, subject) in subjects.iter().enumerate() {
            let found = subject.searched.iter().flat_map(|searched| &searched.differences);
            for difference in found {
                let known = groups.iter_mut().find(|it| it.difference.cause == difference.cause);
                match known {
                    Some(group) => group.add(index, subject, difference),
                    None => {
                        let reason = upgrade.reason(difference.cause);
                        groups.push(Group::new(reason, index, subject, difference));
                    }
                }
            }
        }
        groups.sort_by_key(|group| group.difference.cause);
        groups
    }

    fn new(reason: Reason, index: usize, subject: &Subject, difference: &Difference) -> Group {
        let mut group = Group {
            reason,
            effect: difference.effect,
            affected: Vec::new(),
            on_given_load: Vec::new(),
            otherwise: BTreeMap::new(),
            example_of: index,
            difference: difference.clone(),
            example: None,
            confirmed: None,
        };
        group.add(index, subject, difference);
        group
    }

    fn add(&mut self, index: usize, subject: &Subject, difference: &Difference) {
        if difference.is_on_given_load {
            self.on_given_load.extend(subject.names.iter().cloned());
        }
        if difference.effect > self.effect {
            if !self.affected.is_empty() {
                *self.otherwise.entry(self.effect).or_default() += self.affected.len();
            }
            self.affected.clear();
        }
        if difference.order() < self.difference.order() {
            (self.effect, self.example_of) = (difference.effect, index);
            self.difference = difference.clone();
        }
        match difference.effect == self.effect {
            true => self.affected.extend(subject.names.iter().cloned()),
            false => {
                *self.otherwise.entry(difference.effect).or_default() += subject.names.len();
            }
        }
    }

    /// `3 HPAs: shop/web, shop/api, shop/mail; on the given load: shop/web`.
    fn who(&self) -> String {
        let names = |names: &[String]| {
            let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
            match names.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
                Some(more) => format!("{shown} and {more} more"),
                None => shown,
            }
        };
        let mut text = format!("{}: ", counted(self.affected.len(), "HPA"));
        text += &names(&self.affected);
        if !self.on_given_load.is_empty() {
            text += &format!("; on the given load: {}", names(&self.on_given_load));
        }
        for (effect, count) in self.otherwise.iter().rev() {
            text += &format!("; {} with {}", counted(*count, "more HPA"), effect.only());
        }
        text
    }

    /// Who is affected, the example, and whether it is confirmed.
    fn lines(&self, subjects: &[Subject]) -> Vec<String> {
        let confirmed = self.confirmed.as_ref().map(|it| it.text.clone());
        let lines = [Some(self.who()), self.example_text(subjects), confirmed];
        lines.into_iter().flatten().collect()
    }

    /// `For example web with 2 replicas, cpu 88%: at 15s, 3 replicas without this change, …`.
    fn example_text(&self, subjects: &[Subject]) -> Option<String> {
        let example = self.example.as_ref()?;
        let name = subjects.get(self.example_of)?.names.join(" and ");
        let first = example.changed.first.fields.first()?;
        let [before, after] = match &example.replicas {
            Some(replicas) => replicas.map(|it| counted(it.max(0) as usize, "replica")),
            None => [&first.model, &first.upstream].map(|it| quoted(it)),
        };
        let field = match &example.replicas {
            Some(_) => String::new(),
            None => format!("{} is ", first.field),
        };
        let described = described(example, self.difference.load_size().is_none());
        Some(format!(
            "For example {name} with {described}: at {}, {field}{before} without this change, and \
             {after} with it",
            example.at,
        ))
    }
}

/// A value with quotes if it has several words.
fn quoted(value: &str) -> String {
    match value {
        "" => "empty".to_owned(),
        text if text.contains(' ') && !text.starts_with(['"', '[', '{']) => format!("\"{text}\""),
        text => text.to_owned(),
    }
}

/// `3 replicas, cpu 88%, at 15s the controller restarts`.
fn described(example: &Example, is_given: bool) -> String {
    let Example { scenario, tree, .. } = example;
    let replicas = scenario.workload.replicas.max(0) as usize;
    let mut parts = vec![counted(replicas, "replica")];
    if is_given {
        parts.push("the given load".to_owned());
        return parts.join(", ");
    }
    let metrics = tree["metrics"].as_object().into_iter().flatten();
    let entries = metrics.filter_map(|(_, entries)| entries.as_array()).flatten();
    parts.extend(entries.flat_map(loads));
    for event in &scenario.timeline {
        let lasts = event.lasts.map(|lasts| format!(" for {lasts}")).unwrap_or_default();
        parts.push(format!("at {} {}{lasts}", event.at, event_in_words(event)));
    }
    parts.join(", ")
}

/// `cpu 88%`, `cpu of app 88%`, `queue{shard=a} 30`: the loads of a metric.
fn loads(entry: &Value) -> Vec<String> {
    let name = entry["name"].as_str().unwrap_or_default();
    if let Some(containers) = entry["containers"].as_object() {
        let load = |(container, usage): (&String, &Value)| {
            format!("{name} of {container} {}", signal_text(usage))
        };
        return containers.iter().map(load).collect();
    }
    let text = |of: &Value, signal: &Value| {
        let labels = of["labels"].as_object().into_iter().flatten();
        let labels = labels.map(|(label, value)| format!("{label}={}", value_text(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        format!("{name}{labels} {}", signal_text(signal))
    };
    match entry["series"].as_array() {
        Some(all) => all.iter().map(|series| text(series, &series["value"])).collect(),
        None => ["perPod", "value"]
            .iter()
            .filter_map(|field| entry.get(*field))
            .map(|signal| text(entry, signal))
            .collect(),
    }
}

/// `88%`, `40% and from 30s 88%`.
fn signal_text(signal: &Value) -> String {
    let Some(steps) = signal.get("steps").and_then(Value::as_array) else {
        return value_text(signal);
    };
    let step = |(index, step): (usize, &Value)| match index {
        0 => value_text(&step["value"]),
        _ => format!("from {} {}", value_text(&step["at"]), value_text(&step["value"])),
    };
    steps.iter().enumerate().map(step).collect::<Vec<_>>().join(" and ")
}

impl Subject {
    /// The largest effect of any change. None: no difference was found.
    #[must_use]
    pub fn effect(&self) -> Option<Effect> {
        let found = self.searched.iter().flat_map(|searched| &searched.differences);
        found.map(|difference| difference.effect).max().max(self.known)
    }
}

impl Report<'_> {
    fn count(&self, effect: Effect) -> usize {
        self.hpas(|it| it.effect() == Some(effect))
    }

    /// The number of HPAs of the subjects that meet a condition.
    fn hpas(&self, condition: impl Fn(&Subject) -> bool) -> usize {
        self.subjects.iter().filter(|it| condition(it)).map(|it| it.names.len()).sum()
    }

    /// `3 of 212 HPAs can have other replicas, …`.
    #[must_use]
    pub fn headline(&self) -> String {
        let Upgrade { from, to, .. } = self.upgrade;
        let total = self.hpas(|_| true);
        let mut parts = vec![format!(
            "From {from} to {to}, {} of {} can have other replicas",
            self.count(Effect::Replicas),
            counted(total, "HPA")
        )];
        let mut add = |count: usize, text: &str| {
            if count > 0 {
                parts.push(format!("{count} {text}"));
            }
        };
        for effect in [Effect::FirstReconcile, Effect::Status] {
            add(self.count(effect), &format!("with {}", effect.only()));
        }
        let rewritten = self.hpas(|it| it.must_be_rewritten);
        add(rewritten, &format!("in an API version that {to} no longer serves"));
        let none = self.hpas(|it| it.searched.is_some() && it.effect().is_none());
        add(none, "without a difference");
        let unknown = self.hpas(|it| it.searched.is_none() && it.known.is_none());
        add(unknown, "not searched");
        if !self.invalid.is_empty() {
            parts.push("invalid manifests are left out".to_owned());
        }
        parts.join("; ")
    }

    /// `Searched 38,400 generated loads in 12,098,400 ticks, with the seed 0.` None: no HPA was
    /// searched.
    fn searched(&self) -> Option<String> {
        let searched = || self.subjects.iter().filter_map(|it| it.searched.as_ref());
        searched().next()?;
        let scenarios: u64 = searched().map(|it| it.scenarios).sum();
        let ticks: u64 = searched().map(|it| it.ticks).sum();
        Some(format!(
            "Searched {} generated loads, about a third of them with events, in {} ticks, with the \
             seed {}. A difference that none of these loads shows is not found.",
            thousands(scenarios as usize),
            thousands(ticks as usize),
            self.upgrade.seed
        ))
    }

    /// The notes, each with the HPAs that it is for.
    fn notes(&self) -> Vec<(String, Vec<&str>)> {
        let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
        for subject in self.subjects {
            let own_names = || subject.names.iter().map(String::as_str);
            for note in &subject.notes {
                match notes.iter_mut().find(|(known, _)| known == note) {
                    Some((_, names)) => names.extend(own_names()),
                    None => notes.push((note.clone(), own_names().collect())),
                }
            }
        }
        notes
    }

    /// The general notes, the notes with their HPAs, and the problems of invalid manifests.
    fn remarks(&self) -> Vec<String> {
        let note = |(note, names): (String, Vec<&str>)| format!("{}: {note}", names.join(", "));
        let notes = self.notes().into_iter().map(note);
        let problems = self.invalid.iter();
        let problems = problems.map(|it| format!("Left out because it is invalid: {it}"));
        self.general.iter().cloned().chain(notes).chain(problems).collect()
    }

    /// The summary, and the changes with the HPAs that they affect, for a page.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let mut paragraphs = vec![format!("{}.", self.headline())];
        paragraphs.extend(self.searched());
        paragraphs.extend(self.remarks());
        let item = |group: &Group| OverviewItem {
            title: format!("{}: {}", group.reason.since, group.reason.what),
            link: group.reason.link.to_owned(),
            about: group.effect.title().to_owned(),
            lines: group.lines(self.subjects),
        };
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_key(|group| Reverse(group.effect));
        Overview { paragraphs, items: groups.into_iter().map(item).collect() }
    }

    /// The whole result as a document.
    #[must_use]
    pub fn document(&self, format: Format) -> String {
        let line = |indent: &str, text: &str| match format {
            Format::Text(columns) => wrapped(indent, text, columns),
            Format::Markdown => format!("{}\n", markdown::inline(text)),
        };
        let mut out = match format {
            Format::Text(_) => String::new(),
            Format::Markdown => {
                let Upgrade { from, to, .. } = self.upgrade;
                format!("# HPAs from {from} to {to}\n\n")
            }
        };
        out += &line("", &self.headline());
        if let Some(searched) = self.searched() {
            if format == Format::Markdown {
                out.push('\n');
            }
            out += &line("", &searched);
        }
        for remark in self.remarks() {
            out.push('\n');
            out += &line("", &remark);
        }
        for effect in [Effect::Replicas, Effect::FirstReconcile, Effect::Status] {
            let groups: Vec<&Group> = self.groups.iter().filter(|it| it.effect == effect).collect();
            if groups.is_empty() {
                continue;
            }
            let _ = match format {
                Format::Text(_) => write!(out, "\n{}\n", paint(STRONG, effect.title())),
                Format::Markdown => write!(out, "\n## {}\n", effect.title()),
            };
            groups.into_iter().for_each(|group| self.add_group(&mut out, group, format));
        }
        out
    }

    fn add_group(&self, out: &mut String, group: &Group, format: Format) {
        let Reason { since, what, link } = &group.reason;
        let texts = group.lines(self.subjects).into_iter();
        match format {
            Format::Text(columns) => {
                *out += &wrapped(&format!("  {since}  "), what, columns);
                let _ = writeln!(out, "        {}", paint(DIM, link));
                texts.for_each(|text| *out += &wrapped("        ", &text, columns));
            }
            Format::Markdown => {
                let what = markdown::inline(what);
                let _ = writeln!(out, "\n### {since}: [{what}]({link})\n");
                texts.for_each(|text| *out += &format!("- {}\n", markdown::inline(&text)));
            }
        }
    }

    /// The result as lines of JSON: the HPAs, the changes, and a summary.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for subject in self.subjects {
            json::line(out, &SubjectLine::new(subject, self.upgrade))?;
        }
        for group in self.groups {
            json::line(out, &serde_json::json!({ "change": GroupLine::new(group, self) }))?;
        }
        let effects = [Effect::Replicas, Effect::FirstReconcile, Effect::Status];
        let [replicas, first_reconcile, status] = effects.map(|effect| self.count(effect));
        let searched = || self.subjects.iter().filter_map(|it| it.searched.as_ref());
        let summary = serde_json::json!({
            "from": self.upgrade.from.to_string(),
            "to": self.upgrade.to.to_string(),
            "hpas": self.hpas(|_| true),
            "replicas": replicas,
            "firstReconcile": first_reconcile,
            "status": status,
            "notSearched": self.hpas(|it| it.searched.is_none()),
            "notes": self.general,
            "invalid": self.invalid,
            "scenarios": searched().map(|it| it.scenarios).sum::<u64>(),
            "ticks": searched().map(|it| it.ticks).sum::<u64>(),
            "seed": self.upgrade.seed,
        });
        json::line(out, &serde_json::json!({ "summary": summary }))
    }
}

/// An HPA as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubjectLine<'s> {
    /// Several HPAs with the same target are predicted together.
    hpas: &'s [String],
    file: &'s str,
    line: usize,
    notes: &'s [String],
    /// The newer release no longer serves the API version of the manifest.
    #[serde(skip_serializing_if = "is_default")]
    must_be_rewritten: bool,
    /// The largest effect; null without a difference.
    effect: Option<Effect>,
    changes: Vec<ChangeLine>,
    /// The predicted ticks; absent if the HPA was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticks: Option<u64>,
}

/// A change that affects an HPA, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeLine {
    since: String,
    what: Cow<'static, str>,
    link: &'static str,
    effect: Effect,
    on_given_load: bool,
}

impl<'s> SubjectLine<'s> {
    fn new(subject: &'s Subject, upgrade: &Upgrade) -> SubjectLine<'s> {
        let found = subject.searched.iter().flat_map(|searched| &searched.differences);
        let change = |difference: &Difference| {
            let Reason { since, what, link } = upgrade.reason(difference.cause);
            ChangeLine {
                since: since.to_string(),
                what,
                link,
                effect: difference.effect,
                on_given_load: difference.is_on_given_load,
            }
        };
        SubjectLine {
            hpas: &subject.names,
            file: &subject.file,
            line: subject.line,
            notes: &subject.notes,
            must_be_rewritten: subject.must_be_rewritten,
            effect: subject.effect(),
            changes: found.map(change).collect(),
            ticks: subject.searched.as_ref().map(|it| it.ticks),
        }
    }
}

/// A change with its example, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupLine<'g> {
    since: String,
    what: &'g str,
    link: &'static str,
    effect: Effect,
    hpas: &'g [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
    /// The scenario of the example, as the tree of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'g Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    /// The reason if it is not confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_confirmed: Option<&'g str>,
}

impl<'g> GroupLine<'g> {
    fn new(group: &'g Group, report: &Report<'_>) -> GroupLine<'g> {
        let Reason { since, what, link } = &group.reason;
        let confirmed = group.confirmed.as_ref();
        GroupLine {
            since: since.to_string(),
            what,
            link,
            effect: group.effect,
            hpas: &group.affected,
            example: group.example_text(report.subjects),
            scenario: group.example.as_ref().map(|example| &example.tree),
            confirmed: confirmed.map(|it| it.is_confirmed),
            not_confirmed: confirmed.filter(|it| !it.is_confirmed).map(|it| &*it.text),
        }
    }
}
