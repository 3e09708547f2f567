//! One tick in full: the controller's input, each step of the decision, its writes, and the changes
//! of its own metrics.

use std::fmt::Write as _;
use std::sync::Arc;

use super::layout::{Align, Columns, hanging, wrap};
use super::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use super::{recommender, table};
use kube_autoscaler_models::api::{ConditionStatus, HpaCondition, HpaStatus};
use kube_autoscaler_models::derivation::{MetricDerivation, Path};
use kube_autoscaler_models::observation::{EventType, ReadText, SentEvent, StatusWrite};
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, FreeTick, explained_free_run, free_run};

/// Explains the tick with this index (from 0), if it exists. With a VPA, this is followed by the
/// last run of the recommender at or before the tick.
#[must_use]
pub fn tick_with_vpa(
    scenario: &Arc<Scenario>,
    release: Release,
    index: usize,
    columns: usize,
) -> Option<String> {
    let run = free_run(scenario, release);
    let mut out = tick(scenario, &run, index, &release.to_string(), columns)?;
    let at = run.ticks.get(index)?.observation.at;
    let Some(vpa) = &run.vpa else { return Some(out) };
    out.push('\n');
    match vpa.index_at(at) {
        Some(last) => {
            let run = explained_free_run(scenario, release, &|number| number == last);
            let vpa = run.vpa.as_ref()?;
            out.push_str(&recommender::explain_with_hpa(vpa, last, columns));
        }
        None => out.push_str("The recommender of the VPA has not run yet.\n"),
    }
    Some(out)
}

/// Explains the tick with this index (from 0), if it exists.
#[must_use]
pub fn tick(
    scenario: &Scenario,
    run: &FreeRun,
    index: usize,
    release: &str,
    columns: usize,
) -> Option<String> {
    let tick = run.ticks.get(index)?;
    let hpa = &tick.observation.hpa;
    let written =
        |tick: &FreeTick| tick.observation.status_write().is_some() && tick.observation.hpa == *hpa;
    let before = run.ticks[..index].iter().rev().find(|tick| written(tick));
    let before = before.and_then(|tick| tick.observation.status_write());
    let mut out = table::heading(&scenario.id, &scenario.requirement, release, columns);
    let several = scenario.has_several_hpas();
    let hpa_name = if several { format!(", HPA {hpa}") } else { String::new() };
    let (number, at) = (index + 1, tick.observation.at);
    let took = Some(tick.observation.took).filter(|took| *took != Span::ZERO);
    let took = took.map(|took| format!(", took {took}")).unwrap_or_default();
    let title = format!("tick {number} of {}, t={at}{took}{hpa_name}", run.ticks.len());
    let _ = writeln!(out, "{}", paint(STRONG, &title));
    section(&mut out, "Observed");
    out.push_str(&observed(tick, columns));
    section(&mut out, "Calculation");
    for (number, step) in tick.derivation.explain().iter().enumerate() {
        out.push_str(&hanging(&format!("{:>2}. ", number + 1), step, 2, columns));
    }
    section(&mut out, "Decision");
    let _ = writeln!(out, "  {}", decision(tick));
    section(&mut out, "Written");
    out.push_str(&writes(tick, before, columns));
    if tick.observation.controller_metrics().next().is_some() {
        section(&mut out, "Prometheus metrics");
        for change in tick.observation.controller_metrics() {
            let _ = writeln!(out, "  {change}");
        }
    }
    Some(out)
}

fn section(out: &mut String, title: &str) {
    let _ = writeln!(out, "\n{}", paint(STRONG, title));
}

fn observed(tick: &FreeTick, columns: usize) -> String {
    let mut table = Columns::new(&[Align::Left, Align::Left]);
    let mut row = |label: &str, text: String| {
        table.row(vec![label.to_owned(), text], anstyle::Style::new());
    };
    for ReadText { query, answer } in tick.observation.reads().filter_map(|it| it.read_text()) {
        row(&query, answer);
    }
    for metric in &tick.derivation.metrics {
        row(&metric.title(), usage(metric));
    }
    table.render(2, columns)
}

/// The pods by group and their usage; the total for an object metric or an external metric.
fn usage(metric: &MetricDerivation) -> String {
    if metric.is_total() {
        return total(metric);
    }
    let pods = metric.pods;
    let groups = [
        (pods.ready, "count"),
        (pods.unready, "not ready"),
        (pods.missing, "without metrics"),
        (pods.ignored, "failed or terminating"),
        (pods.unknown, "unknown to the controller"),
    ];
    let groups = groups.into_iter().filter(|(number, group)| *number > 0 || *group == "count");
    let groups: Vec<String> = groups.map(|(number, group)| format!("{number} {group}")).collect();
    let mut text = format!("pods: {}", groups.join(", "));
    if let Some(usage) = &metric.usage {
        let total = metric.amount(usage.total);
        let _ = write!(text, "; usage {total}");
        if usage.requests > 0 {
            let _ = write!(text, " of {} requested", metric.amount(usage.requests));
        }
    }
    text
}

fn total(metric: &MetricDerivation) -> String {
    let Some(usage) = &metric.usage else { return "no value".to_owned() };
    let mut text = format!("total {}", metric.amount(usage.total));
    if let Some(series) = usage.series {
        let _ = write!(text, " of {series} series");
    }
    match (usage.status_replicas, metric.path) {
        (Some(replicas), _) => {
            let _ = write!(text, ", spread over {replicas} pods (status.replicas)");
        }
        (None, Path::Ready) => {
            let _ = write!(text, "; pods: {} ready", metric.pods.ready);
        }
        (None, _) => {}
    }
    text
}

fn decision(tick: &FreeTick) -> String {
    let (before, after) = (tick.replicas_before, tick.replicas_after);
    let window = tick.derivation.held_by_window().map(|_| "stabilization");
    let limit = tick.derivation.limited_by().filter(|limit| Some(*limit) != window);
    let limits: Vec<&str> = window.into_iter().chain(limit).collect();
    let limited = match limits.as_slice() {
        [] => String::new(),
        limits => format!("  (limited by: {})", limits.join(", ")),
    };
    if before == after {
        let desired = tick.derivation.desired_replicas;
        // Without a scale, there are no desired replicas.
        let read = tick.derivation.current_replicas.is_some();
        let refused = if desired == after || tick.derivation.error.is_none() || !read {
            String::new()
        } else {
            format!(", although {desired} was desired")
        };
        format!("{} stays{refused}{limited}", paint(STRONG, &after.to_string()))
    } else {
        format!("{}{limited}", paint(STRONG, &format!("{before} → {after}")))
    }
}

fn writes(tick: &FreeTick, before: Option<&StatusWrite>, columns: usize) -> String {
    let observation = &tick.observation;
    let mut out = String::new();
    for write in observation.scale_writes() {
        let refused = write.error.as_ref().map(|error| format!(", refused: {error}"));
        let text = format!("{}{}", write.replicas, refused.unwrap_or_default());
        out.push_str(&hanging("scale     ", &text, 2, columns));
    }
    match observation.status_write() {
        Some(write) => {
            status(&mut out, &write.status, before.map(|write| &write.status), columns);
            if let Some(error) = &write.error {
                out.push_str(&hanging("refused   ", error, 2, columns));
            }
        }
        None => out.push_str("  status    not written: nothing in it changed\n"),
    }
    for (event, sent) in observation.deliveries() {
        let style = if event.type_ == EventType::Warning { WARN } else { GOOD };
        let text = format!("{}: {}", event.reason, event.message);
        let block = hanging("event     ", &text, 2, columns);
        out.push_str(&block.replacen("event", &paint(style, "event"), 1));
        let _ = writeln!(out, "              {}", paint(DIM, &delivery(sent)));
    }
    for error in observation.errors() {
        let block = hanging("error     ", error.as_str(), 2, columns);
        out.push_str(&block.replacen("error", &paint(BAD, "error"), 1));
    }
    out
}

/// `sent: patch with count 3, combined from similar events (name web.15s)`
pub(super) fn delivery(sent: Option<&SentEvent>) -> String {
    let Some(sent) = sent else { return "not sent: the rate limit is reached".to_owned() };
    let combined = if sent.is_combined() { ", combined from similar events" } else { "" };
    format!("sent: {} with count {}{combined}{}", sent.verb, sent.count, sent.times)
}

/// The status; `*` marks conditions that changed.
fn status(out: &mut String, status: &HpaStatus, before: Option<&HpaStatus>, columns: usize) {
    let number = |number: Option<i32>| number.map_or_else(|| "none".to_owned(), |n| n.to_string());
    let mut text = format!(
        "currentReplicas {}, desiredReplicas {}",
        number(status.current_replicas),
        status.desired_replicas
    );
    if let Some(at) = status.last_scale_time {
        let _ = write!(text, ", lastScaleTime t={at}");
    }
    if let Some(generation) = status.observed_generation {
        let _ = write!(text, ", observedGeneration {generation}");
    }
    if !status.current_metrics.is_empty() {
        let metrics: Vec<String> = status.current_metrics.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", currentMetrics {}", metrics.join("; "));
    }
    out.push_str(&hanging("status    ", &text, 2, columns));
    for condition in &status.conditions {
        let is = ConditionStatus::from(condition.status);
        let same = |other: &&HpaCondition| other.type_ == condition.type_;
        let known = before.and_then(|status| status.conditions.iter().find(same));
        let mark = if known == Some(condition) { ' ' } else { '*' };
        let head = format!(
            "{mark} {:?} {is} since t={}: {}",
            condition.type_, condition.last_transition_time, condition.reason
        );
        let _ = writeln!(out, "          {head}");
        for line in wrap(condition.message.as_str(), columns.saturating_sub(14)) {
            let _ = writeln!(out, "              {}", paint(DIM, &line));
        }
    }
}
