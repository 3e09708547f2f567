//! The explanation of one run of the recommender: its samples, and how each amount follows from
//! them.

use super::rows::conditions;
use super::text::updater_reasons;
use crate::counted;
use crate::presentation::blocks::Block;
use kube_autoscaler_models::vpa::{Resource, Samples, Shares, VpaStatus};
use kube_lockstep_sim::run::VpaRun;
use kube_lockstep_sim::run::recommendation::{Amounts, Derivation, amounts, derivation_of};
use kube_lockstep_sim::run::recommender::{Derived, ExplainedRun, FreeRecommenderRun};

/// The smallest share of the samples that is not shown as 0.00%.
const SMALLEST_SHARE: f64 = 0.000_05;

/// The largest number of buckets of a histogram that are listed.
const BUCKETS: usize = 12;

/// One run of the recommender alone.
pub(crate) fn alone(run: &FreeRecommenderRun, index: usize) -> Vec<Block> {
    let Some(snapshot) = run.snapshots.get(index) else { return Vec::new() };
    let (number, runs) = (index + 1, run.snapshots.len());
    let title = format!("tick {number} of {runs}, t={}", snapshot.at);
    let mut blocks = vec![Block::Space, Block::line(0, title)];
    blocks.extend(explanation(run, index));
    blocks
}

/// One run of the recommender in a scenario with an HPA, and the runs of the updater up to the next
/// run.
pub(crate) fn with_hpa(vpa: &VpaRun, index: usize) -> Vec<Block> {
    let run = &vpa.charted.run;
    let Some(snapshot) = run.snapshots.get(index) else { return Vec::new() };
    let (number, runs) = (index + 1, run.snapshots.len());
    let title = format!("run {number} of {runs} of the recommender, t={}", snapshot.at);
    let mut blocks = vec![Block::Heading(title, format!("model of {}", vpa.release))];
    blocks.extend(explanation(run, index));
    let last = vpa.updater_reports.len().checked_sub(1);
    for (index, report) in vpa.updater_reports.iter().enumerate() {
        let changes = report.pods.iter().any(|(_, it)| it.reason.is_ok());
        if (changes || Some(index) == last) && !report.pods.is_empty() {
            let title = format!("run of the updater, t={}", report.at);
            blocks.extend([Block::Space, Block::heading(title)]);
            blocks.extend(updater_reasons(report));
        }
    }
    blocks
}

/// The samples of a run, and how each amount follows from them.
fn explanation(run: &FreeRecommenderRun, index: usize) -> Vec<Block> {
    let Some(snapshot) = run.snapshots.get(index) else { return Vec::new() };
    let Some(explained) = run.explained.get(&index) else { return Vec::new() };
    let logs = explained.start_log.iter();
    let logs = logs.map(|log| Block::text(2, "log of the start: ", log.to_string()));
    let mut blocks: Vec<Block> = logs.collect();
    blocks.extend(usage(explained));
    blocks.extend(explained.account.iter().map(|it| Block::text(2, "", it.to_string())));
    blocks.extend(snapshot.log.iter().map(|log| Block::text(2, "log: ", log.to_string())));
    for (name, samples) in &snapshot.checkpoints {
        let samples = counted(usize::try_from(*samples).unwrap_or(0), "sample");
        blocks.push(Block::line(2, format!("checkpoint {name}: {samples}")));
    }
    let none = VpaStatus::default();
    for derived in &explained.derived {
        let status = snapshot.statuses.get(&derived.vpa).unwrap_or(&none);
        blocks.extend(of_vpa(derived, status));
    }
    blocks
}

/// The conditions and the amounts of a VPA.
fn of_vpa(derived: &Derived, status: &VpaStatus) -> Vec<Block> {
    let Derived { vpa, samples, estimations } = derived;
    let mut blocks = vec![Block::Space, Block::heading(format!("VPA {}", vpa.name))];
    for (condition, text) in status.conditions.iter().zip(conditions(status)) {
        let separator = if condition.message.is_empty() { "" } else { ": " };
        blocks.push(Block::text(2, "", format!("{text}{separator}{}", condition.message)));
    }
    if let Some(generation) = status.observed_generation {
        blocks.push(Block::line(2, format!("observedGeneration={generation}")));
    }
    let recommended = amounts(status);
    for (container, estimations) in estimations {
        blocks.push(Block::line(2, format!("container {container}")));
        blocks.extend(samples.get(container).into_iter().flat_map(describe));
        for estimation in estimations {
            let is_it =
                |it: &&Amounts| it.container == **container && it.resource == estimation.resource;
            let Derivation { what, how } =
                derivation_of(estimation, recommended.iter().find(is_it));
            blocks.push(Block::text(4, format!("{what}: "), how));
        }
    }
    blocks
}

/// The usage that the run read.
fn usage(run: &ExplainedRun) -> Vec<Block> {
    let items = match &run.usage {
        Ok(items) if items.is_empty() => {
            return vec![Block::line(2, "the metrics API returns no samples")];
        }
        Ok(items) => items,
        Err(error) => return vec![Block::line(2, format!("the metrics API fails: {error}"))],
    };
    let mut blocks = Vec::new();
    for item in items.iter() {
        for container in &item.containers {
            let none = || "none, which counts as 0".to_owned();
            let text = |resource: Resource, amount: Option<i64>| {
                amount.map_or_else(none, |it| resource.exact(it))
            };
            let cpu = text(Resource::Cpu, container.cpu);
            let memory = text(Resource::Memory, container.memory);
            let (pod, container, at) = (&item.pod.name, &container.container, item.timestamp);
            let text = format!("sample of {pod} {container} at {at}: cpu {cpu}, memory {memory}");
            blocks.push(Block::line(2, text));
        }
    }
    blocks
}

fn describe(samples: &Samples) -> Vec<Block> {
    let Samples { count, first, last, cpu, memory } = samples;
    let text = match count {
        0 => "no cpu samples".to_owned(),
        _ => {
            let count = counted(usize::try_from(*count).unwrap_or(0), "cpu sample");
            format!("{count} from {first} to {last}")
        }
    };
    let mut texts = vec![text];
    texts.extend(distribution(Resource::Cpu, cpu));
    texts.extend(distribution(Resource::Memory, memory));
    texts.into_iter().map(|text| Block::line(4, text)).collect()
}

/// The buckets of a resource with their shares.
fn distribution(resource: Resource, shares: &Shares) -> Vec<String> {
    let mut texts = Vec::new();
    let Shares { buckets, lighter } = shares;
    let name = resource.name();
    if *lighter >= SMALLEST_SHARE {
        let share = percent(*lighter);
        texts.push(format!("buckets of {name} that weigh less than 0.0001 each: {share}"));
    }
    let skipped = buckets.len().saturating_sub(BUCKETS);
    let mut below: f64 = 0.0;
    for (index, bucket) in buckets.iter().enumerate() {
        below += bucket.share;
        if index < skipped {
            continue;
        }
        if index == skipped && skipped > 0 {
            let share = percent(below - bucket.share);
            texts.push(format!("{skipped} lower buckets of {name}: {share}"));
        }
        let sum = match index + 1 == buckets.len() {
            true => String::new(),
            false => format!(", {} up to here", percent(below)),
        };
        let (bucket, share) = (bucket.text(resource), percent(bucket.share));
        texts.push(format!("{bucket}: {share}{sum}"));
    }
    texts
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}
