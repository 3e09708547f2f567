//! Checks what a scenario leaves open for a search.

use super::cursor::{At, Problems};
use super::timeline::{self, ResolveContext};
use super::values::{check_replicas, not_after_end};
use crate::error::suggest;
use crate::raw::ScenarioFile;
use crate::resolved::{Action, Metrics, Signal, TimelineEvent};
use crate::search::{MOST_COMBINATIONS, MOST_VALUES, OpenEvents, OpenMetric, Search};
use kube_autoscaler_models::counted::{counted, listed, thousands};
use kube_autoscaler_models::time::{Span, Time};

/// The times of an expectation that a search can check while a run goes on.
const WHENS: [&str; 4] = ["always", "never", "within", "atMost"];

/// Resolves the search. `context` has no limit on the pods that exist: events may create more.
pub(super) fn resolve(
    context: &ResolveContext<'_>,
    metrics: &Metrics,
    root: At<'_>,
    problems: &mut Problems,
) -> Option<Box<Search>> {
    let mut search = context.file.search.clone()?;
    let at = root.key("search");
    for (index, replicas) in search.replicas.iter().enumerate() {
        check_replicas(*replicas, at.key("replicas").index(index), problems);
        if search.replicas[..index].contains(replicas) {
            problems.plain(at.key("replicas").index(index), format!("duplicate value {replicas}"));
        }
    }
    if search.replicas.is_empty() && at.key("replicas").node().is_some() {
        problems.plain(at.key("replicas"), "expected at least one number of replicas");
    } else if search == Search::default() {
        let hint = "add `choose`, `events` or `replicas`; or remove `search`";
        problems.hint(at, "the search leaves nothing open", hint);
    }
    for (index, open) in search.choose.iter().enumerate() {
        let at = at.key("choose").index(index);
        if search.choose[..index].iter().any(|other| other.metric == open.metric) {
            problems.plain(at.key("metric"), format!("duplicate metric `{}`", open.metric));
        }
        check_metric(open, metrics, context.until, at, problems);
    }
    let combinations = search.combinations();
    if combinations > MOST_COMBINATIONS {
        let what = format!(
            "the search has {} of initial replicas and values, including the value of each \
             metric in `metrics`; the limit is {}",
            counted(combinations, "combination"),
            thousands(MOST_COMBINATIONS)
        );
        problems.hint(
            at.key_position("choose"),
            what,
            "list fewer initial replicas, values or metrics",
        );
    }
    if let Some(events) = &mut search.events {
        check_events(context, events, at.key("events"), problems);
    }
    check_scenario(context.file, metrics, root, problems);
    check_expectations(context.file, root, problems);
    search.line = root.key_position("search").line;
    Some(Box::new(search))
}

fn check_metric(
    open: &OpenMetric,
    metrics: &Metrics,
    until: Time,
    at: At<'_>,
    problems: &mut Problems,
) {
    let OpenMetric { metric, values, every, from, to } = open;
    let mut metrics = metrics.clone();
    let is_usage = metrics.resources.iter().any(|usage| usage.name == *metric);
    let named = metrics.names().filter(|name| *name == &**metric).count();
    let names: Vec<String> = metrics.names().map(str::to_owned).collect();
    let constant = metrics.named_mut(metric).all(|it| matches!(it, Signal::Constant(_)));
    let at_metric = at.key("metric");
    match named {
        0 => {
            let what = format!("the scenario has no metric `{metric}`");
            let hint = suggest(metric, names.iter().map(String::as_str));
            problems.add(at_metric.problem(what, hint));
        }
        1 if metrics.named_mut(metric).count() == 0 => {
            let what = format!("the metric `{metric}` has several values");
            problems.hint(at_metric, what, "give it one value, without `containers` or `series`");
        }
        1 if !constant => {
            let what = format!("the metric `{metric}` has a value that changes");
            let hint = "give it a constant value in `metrics`: the value up to the first choice";
            problems.hint(at_metric, what, hint);
        }
        1 => {}
        _ => problems.plain(at_metric, format!("several metrics have the name `{metric}`")),
    }
    let at_values = at.key("values");
    if values.is_empty() {
        problems.plain(at_values, "expected at least one value");
    }
    if values.len() > MOST_VALUES {
        let what = format!("expected at most {MOST_VALUES} values, found {}", values.len());
        problems.plain(at_values, what);
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            problems.plain(at_values.index(index), format!("duplicate value {}", value.0));
        } else if is_usage && value.0.sign() < 0 {
            let what = format!("usage can't be negative, found {}", value.0);
            problems.plain(at_values.index(index), what);
        }
    }
    whole_seconds(every.map(|every| every.0), at.key("every"), problems);
    check_times(*from, *to, until, at, problems);
}

/// Checks the times of the first and the last choice.
fn check_times(
    from: Option<Time>,
    to: Option<Time>,
    until: Time,
    at: At<'_>,
    problems: &mut Problems,
) {
    for (name, time) in [("from", from), ("to", to)] {
        let Some(time) = time else { continue };
        whole_seconds(Some(time.0), at.key(name), problems);
        not_after_end(time, until, at.key(name), problems);
    }
    let from = from.unwrap_or_default();
    if let Some(to) = to.filter(|to| from > *to) {
        problems.plain(at.key("to"), format!("expected {from} or later, found {to}"));
    }
}

/// The times at which a search chooses must be whole seconds, like the times of the API.
fn whole_seconds(nanos: Option<i64>, at: At<'_>, problems: &mut Problems) {
    if nanos.is_some_and(|nanos| nanos % Span::from_secs(1).0 != 0) {
        problems.plain(at, "expected whole seconds");
    }
}

fn check_events(
    context: &ResolveContext<'_>,
    events: &mut OpenEvents,
    at: At<'_>,
    problems: &mut Problems,
) {
    if events.at_most == 0 {
        problems.plain(at.key("atMost"), "expected 1 or more, found 0");
    }
    if events.of.is_empty() {
        problems.plain(at.key("of"), "expected at least one event");
    }
    if events.to.is_some() && events.every.is_none() {
        problems.plain(at.key_position("to"), "`to` requires `every`");
    }
    whole_seconds(events.every.map(|every| every.0), at.key("every"), problems);
    let first = events.of.iter().map(|event| event.at).min();
    check_times(first, events.to, context.until, at, problems);
    for (index, event) in events.of.iter().enumerate() {
        let at = at.key("of").index(index);
        if events.of[..index].contains(event) {
            problems.plain(at, "the same event is listed twice");
        }
        whole_seconds(Some(event.at.0), at.key("at"), problems);
        if event.at == Time::ZERO {
            problems.plain(at.key("at"), "a search can choose events from 1s on");
        }
        let name = event.action.name();
        let is_stale = matches!(event.action, Action::MetricsStale(_));
        if is_stale || event.action.requires_vpa() {
            problems.plain(at.key_position(&name), format!("a search can't choose `{name}`"));
        }
        refuse(event, at, problems);
    }
    let of = ScenarioFile { timeline: events.of.clone(), ..context.file.clone() };
    let context = ResolveContext { file: &of, reach: None, ..*context };
    events.of = timeline::resolve_each(&context, at.key("of"), problems);
}

/// Refuses an event that a search does not support anywhere in the scenario.
fn refuse(event: &TimelineEvent, at: At<'_>, problems: &mut Problems) {
    let name = match &event.action {
        _ if event.during.is_some() => "during",
        Action::CacheLag(_) => "cacheLag",
        Action::MetricsSlow(_) => "metricsSlow",
        _ => return,
    };
    let hint = "remove the event, or the search";
    problems.hint(at.key_position(name), format!("a search does not support `{name}`"), hint);
}

/// Checks the parts of the scenario that a search does not support.
fn check_scenario(file: &ScenarioFile, metrics: &Metrics, at: At<'_>, problems: &mut Problems) {
    for (index, event) in file.timeline.iter().enumerate() {
        refuse(event, at.key("timeline").index(index), problems);
    }
    let hint = "remove it: with older samples, the values of several choices would matter at once";
    let sampling = at.key("metrics").key("sampling");
    for (name, is_given) in [
        ("lag", metrics.sampling.lag != Span::ZERO),
        ("resolution", metrics.sampling.resolution.is_some()),
    ] {
        if is_given {
            let what = format!("a search does not support `{name}`");
            problems.hint(sampling.key_position(name), what, hint);
        }
    }
    for (index, of) in file.workload.pods.iter().enumerate() {
        if of.sample_lag.is_some() {
            let at = at.key("workload").key("pods").index(index).key_position("sampleLag");
            problems.hint(at, "a search does not support `sampleLag`", hint);
        }
    }
}

/// Checks that the expectations can be checked reconcile by reconcile.
fn check_expectations(file: &ScenarioFile, at: At<'_>, problems: &mut Problems) {
    if file.expect.is_empty() {
        let hint = format!("add an expectation with {}", listed(&WHENS, "or"));
        problems.hint(at.key("search"), "a search requires expectations", hint);
    }
    for index in 0..file.expect.len() {
        let at = at.key("expect").index(index);
        let others = ["tick", "at", "series", "sequence", "since"];
        if let [name, ..] = at.given(&others).as_slice() {
            let hint = format!("use {}", listed(&WHENS, "or"));
            let what = format!("a search can't check `{name}`");
            problems.hint(at.key_position(name), what, hint);
        }
    }
}
