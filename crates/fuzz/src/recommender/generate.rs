//! The steps of a generated script.

use std::sync::Arc;

use super::super::dice::Dice;
use super::edge;
use super::plan::{Workload, flags};
use super::{Script, ScriptStep};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    ClusterChange, ContainerUsage, GoTime, PodMetrics, RecommenderFlags, Start,
};

/// The start of the year 2000 in seconds of Unix time: no scenario starts earlier.
const YEAR_2000: i64 = 946_684_800;

const DAY: i64 = 24 * 60 * 60;

/// Generates a script with about this many runs of the recommender of a release, which has all
/// flags of the script.
#[must_use]
pub fn script(seed: u64, index: u64, runs: usize, release: VpaRelease) -> Script {
    let mut dice = Dice::new(seed, index);
    let mut flags = flags(&mut dice);
    flags.retain(|flag, _| VpaRelease::of_flag(flag).is_none_or(|since| since <= release));
    let parsed = RecommenderFlags::parse(&flags).unwrap_or_default();
    let at = GoTime::from_unix(YEAR_2000 + dice.between(0, 1000 * DAY));
    let count = if dice.percent(20) { 2 } else { 1 };
    let workloads: Vec<Workload> =
        (0..count).map(|index| Workload::new(&mut dice, index)).collect();
    let mut generator = Generator::new(dice, parsed.clone(), at, workloads);
    let objects = generator.objects();
    let history = match parsed.uses_checkpoints() {
        true => Vec::new(),
        false => generator.history(),
    };
    let steps = (0..runs).map(|_| generator.step()).collect();
    let start = Start { at, flags: parsed, objects, history };
    Script { name: format!("seed {seed} index {index}"), flags, start, steps }
}

/// The state of the generation.
pub(super) struct Generator {
    pub(super) dice: Dice,
    pub flags: RecommenderFlags,
    epoch: GoTime,
    /// The end of the last step.
    now: Time,
    pub workloads: Vec<Workload>,
    /// The number of pods ever created.
    pub pods: usize,
    pub generation: i64,
    signals: Vec<Signal>,
    /// The percentage of steps with an unusual change.
    edges: u64,
    /// The seconds between a sample and the run that reads it.
    lag: i64,
}

/// The usage of a container, with noise.
#[derive(Clone, Debug)]
struct Signal {
    cpu: i64,
    memory: i64,
    /// In percent of the usage.
    noise: i64,
}

impl Generator {
    fn new(
        mut dice: Dice,
        flags: RecommenderFlags,
        epoch: GoTime,
        workloads: Vec<Workload>,
    ) -> Generator {
        let signals = (0..3).map(|_| Signal {
            cpu: dice.weighted(&[(10, 40), (10, 400), (5, 3000), (1, 0), (1, 900_000)]),
            memory: dice.weighted(&[
                (10, 20 << 20),
                (10, 400 << 20),
                (5, 5 << 30),
                (1, 0),
                (1, 900 << 30),
            ]),
            noise: dice.pick(&[0, 5, 60, 300]),
        });
        let signals = signals.collect();
        let edges = dice.pick(&[0, 3, 10, 40]);
        let lag = dice.between(0, 20);
        Generator {
            dice,
            flags,
            epoch,
            now: Time::ZERO,
            workloads,
            pods: 10,
            generation: 1,
            signals,
            edges,
            lag,
        }
    }

    /// The present time.
    pub(super) fn now(&self) -> GoTime {
        self.epoch.plus(Span(self.now.0))
    }

    fn objects(&mut self) -> Vec<ClusterChange> {
        let mut objects = Vec::new();
        for workload in &self.workloads {
            objects.push(ClusterChange::SetTarget(workload.target()));
            objects.push(ClusterChange::SetVpa(workload.vpa(&mut self.dice, 1)));
            let pods = workload.pods.iter();
            objects.extend(pods.map(|pod| ClusterChange::SetPod(workload.pod(pod))));
        }
        if self.dice.percent(10) {
            objects.push(ClusterChange::SetCheckpoint(edge::foreign_checkpoint(self, "app0")));
        }
        objects
    }

    fn step(&mut self) -> ScriptStep {
        let interval = self.flags.recommender_interval.0;
        let second = Span::from_secs(1).0;
        let span = match self.dice.below(100) {
            0 => interval / 2 / second * second + second,
            1 => 3 * interval + 7 * second,
            2 if self.edges > 0 => self.dice.between(1, 40) * interval,
            _ => interval,
        };
        let until = Time(self.now.0 + span);
        let mut changes = Vec::new();
        if self.dice.percent(self.edges) {
            edge::add(self, &mut changes);
        }
        let metrics = if self.dice.percent(self.edges / 3) {
            Err("the metrics API is unavailable".to_owned())
        } else {
            Ok(self.metrics(until).into())
        };
        changes.push(ClusterChange::SetMetrics(metrics));
        self.now = until;
        ScriptStep { changes, until }
    }

    fn metrics(&mut self, until: Time) -> Vec<PodMetrics> {
        let at = self.epoch.plus(Span(until.0)).unix();
        let mut items = Vec::new();
        for workload in &self.workloads {
            for pod in &workload.pods {
                if self.dice.percent(self.edges / 4) {
                    continue;
                }
                // Late samples are older than earlier ones.
                let late = if self.dice.percent(self.edges / 4) { 3600 } else { 0 };
                let timestamp = GoTime::from_unix(at - self.lag - self.dice.between(0, late));
                let containers = workload.containers.iter().enumerate();
                let containers = containers.map(|(index, name)| {
                    let signal = &self.signals[index % self.signals.len()];
                    usage(&mut self.dice, signal, name, self.edges > 0)
                });
                let containers = containers.collect();
                items.push(PodMetrics { pod: pod.name.clone(), timestamp, containers });
            }
        }
        items
    }

    /// The usage of a container of a history.
    pub(super) fn usage(&mut self, container: &Arc<str>) -> ContainerUsage {
        usage(&mut self.dice, &self.signals[0], container, false)
    }
}

fn usage(
    dice: &mut Dice,
    signal: &Signal,
    container: &Arc<str>,
    is_unusual: bool,
) -> ContainerUsage {
    let mut value = |usage: i64, huge: i64| match dice.below(400) {
        0 if is_unusual => 0,
        1 if is_unusual => huge,
        2 if is_unusual => -1,
        _ => usage + usage / 100 * dice.between(0, signal.noise),
    };
    let cpu = value(signal.cpu, 3_000_000);
    let memory = value(signal.memory, 3_000_000_000_000);
    ContainerUsage { container: container.clone(), cpu: Some(cpu), memory: Some(memory) }
}
