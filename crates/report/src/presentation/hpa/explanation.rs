//! One reconcile in full: the controller's input, each step of the decision, its writes, and the
//! changes of its own metrics.

use std::fmt::Write as _;

use crate::presentation::blocks::{Block, Tone};
use crate::presentation::rows::Column;
use kube_autoscaler_models::api::{ConditionStatus, HpaCondition, HpaStatus};
use kube_autoscaler_models::derivation::{Limit, MetricDerivation, Path};
use kube_autoscaler_models::observation::{EventType, ReadText, SentEvent, StatusWrite};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// The tick with this index (from 0), if it exists.
pub(crate) fn tick(scenario: &Scenario, run: &FreeRun, index: usize) -> Option<Vec<Block>> {
    let tick = run.ticks.get(index)?;
    let hpa = &tick.observation.hpa;
    let written =
        |tick: &FreeTick| tick.observation.status_write().is_some() && tick.observation.hpa == *hpa;
    let before = run.ticks[..index].iter().rev().find(|tick| written(tick));
    let before = before.and_then(|tick| tick.observation.status_write());
    let several = scenario.has_several_hpas();
    let hpa_name = if several { format!(", HPA {hpa}") } else { String::new() };
    let (number, at) = (index + 1, tick.observation.at);
    let took = Some(tick.observation.took).filter(|took| *took != Span::ZERO);
    let took = took.map(|took| format!(", took {took}")).unwrap_or_default();
    let title = format!("tick {number} of {}, t={at}{took}{hpa_name}", run.ticks.len());
    let mut blocks = vec![Block::heading(title)];
    let mut section = |title: &str, content: Vec<Block>| {
        blocks.extend([Block::Space, Block::heading(title)]);
        blocks.extend(content);
    };
    section("Observed", vec![observed(tick)]);
    let steps = tick.derivation.explain().into_iter().enumerate();
    let steps = steps.map(|(number, step)| Block::text(2, format!("{:>2}. ", number + 1), step));
    section("Calculation", steps.collect());
    section("Decision", vec![decision(tick)]);
    section("Written", writes(tick, before));
    let metrics = tick.observation.controller_metrics();
    let metrics: Vec<Block> = metrics.map(|it| Block::line(2, it.to_string())).collect();
    if !metrics.is_empty() {
        section("Prometheus metrics", metrics);
    }
    Some(blocks)
}

fn observed(tick: &FreeTick) -> Block {
    let reads = tick.observation.reads().filter_map(|it| it.read_text());
    let reads = reads.map(|ReadText { query, answer }| vec![query, answer]);
    let metrics = tick.derivation.metrics.iter();
    let metrics = metrics.map(|metric| vec![metric.title(), usage(metric)]);
    Block::Table(2, ["", ""].map(Column::text).into(), reads.chain(metrics).collect())
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

fn decision(tick: &FreeTick) -> Block {
    let (before, after) = (tick.replicas_before, tick.replicas_after);
    let limits: Vec<&str> = tick.derivation.applied_limits().map(Limit::name).collect();
    let limited = match limits.as_slice() {
        [] => String::new(),
        limits => format!("  (limited by: {})", limits.join(", ")),
    };
    if before != after {
        return Block::labelled_line(2, format!("{before} → {after}"), limited).with(Tone::Strong);
    }
    let desired = tick.derivation.desired_replicas;
    // Without a scale, there are no desired replicas.
    let read = tick.derivation.current_replicas.is_some();
    let refused = if desired == after || tick.derivation.error.is_none() || !read {
        String::new()
    } else {
        format!(", although {desired} was desired")
    };
    let text = format!(" stays{refused}{limited}");
    Block::labelled_line(2, after.to_string(), text).with(Tone::Strong)
}

fn writes(tick: &FreeTick, before: Option<&StatusWrite>) -> Vec<Block> {
    let observation = &tick.observation;
    let mut blocks = Vec::new();
    for write in observation.scale_writes() {
        let refused = write.error.as_ref().map(|error| format!(", refused: {error}"));
        let text = format!("{}{}", write.replicas, refused.unwrap_or_default());
        blocks.push(Block::text(2, "scale     ", text));
    }
    match observation.status_write() {
        Some(write) => {
            blocks.extend(status(&write.status, before.map(|write| &write.status)));
            let refused = write.error.iter();
            blocks.extend(refused.map(|error| Block::text(2, "refused   ", error.to_string())));
        }
        None => blocks.push(Block::line(2, "status    not written: nothing in it changed")),
    }
    for (event, sent) in observation.deliveries() {
        let is_warning = event.type_ == EventType::Warning;
        let tone = if is_warning { Tone::Warning } else { Tone::Good };
        let text = format!("{}: {}", event.reason, event.message);
        blocks.push(Block::text(2, "event     ", text).with(tone));
        blocks.push(Block::line(14, delivery(sent)).with(Tone::Detail));
    }
    let errors = observation.errors();
    let errors = errors.map(|it| Block::text(2, "error     ", it.as_str()).with(Tone::Failure));
    blocks.extend(errors);
    blocks
}

/// `sent: patch with count 3, combined from similar events (name web.15s)`
pub(super) fn delivery(sent: Option<&SentEvent>) -> String {
    let Some(sent) = sent else { return "not sent: the rate limit is reached".to_owned() };
    let combined = if sent.is_combined() { ", combined from similar events" } else { "" };
    format!("sent: {} with count {}{combined}{}", sent.verb, sent.count, sent.times)
}

/// The status; `*` marks conditions that changed.
fn status(status: &HpaStatus, before: Option<&HpaStatus>) -> Vec<Block> {
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
    let mut blocks = vec![Block::text(2, "status    ", text)];
    for condition in &status.conditions {
        let is = ConditionStatus::from(condition.status);
        let same = |other: &&HpaCondition| other.type_ == condition.type_;
        let known = before.and_then(|status| status.conditions.iter().find(same));
        let mark = if known == Some(condition) { ' ' } else { '*' };
        let head = format!(
            "{mark} {:?} {is} since t={}: {}",
            condition.type_, condition.last_transition_time, condition.reason
        );
        blocks.push(Block::line(10, head));
        blocks.push(Block::text(14, "", condition.message.as_str()).with(Tone::Detail));
    }
    blocks
}
