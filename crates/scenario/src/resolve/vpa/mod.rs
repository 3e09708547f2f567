//! Resolves a scenario of the VPA's recommender.

mod expect;
mod manifest;
mod notes;
mod timeline;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use self::manifest::{Gates, Vpa, checkpoint};
pub use self::manifest::{SingleVpa, single_vpa};
use super::cursor::{At, Problems};
use super::recordings::Recordings;
use super::values::{LATER_END, check_replicas};
use super::workload::check_resources;
use super::{Input, Reader, metrics, units};
use crate::autoscalers::Autoscalers;
use crate::defaults::APP;
use crate::diagnostic::Diagnostic;
use crate::error::suggest;
use crate::hash;
use crate::raw::{ScenarioFile, Workload};
use crate::resolved::{Action, Container, Metrics, ResourceUsage, TimelineEvent, UsageSource};
use crate::syntax::Syntax;
use crate::vpa::{History, VpaScenario, VpaWorkload};
use kube_autoscaler_models::selector::{is_dns1123_label, is_label_key, is_label_value};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{
    Checkpoint, ClusterChange, GoTime, RecommenderFlags, VerticalPodAutoscaler,
};

/// The largest number of runs of the recommender or of the updater: 100 days of one per minute.
const MOST_RUNS: i64 = 144_000;

/// The number of containers in the history of all pods, times their samples.
const MOST_HISTORY: i64 = 1_000_000;

/// Resolves the part of the VPAs and their recommender. After problems, the result is absent or
/// incomplete. With an HPA, its part has the pods and their usage.
pub(super) fn scenario(input: Input<'_>, problems: &mut Problems) -> Option<VpaScenario> {
    let Input { path, file, autoscalers, at, read } = input;
    let start = start(file, at, problems);
    let (flags, parsed_flags) = flags(file, at, problems);
    let gates = Gates { per_vpa_config: parsed_flags.per_vpa_config, ..Gates::default() };
    let vpas = vpas(file, at, read, gates, problems);
    let target = vpas.first().map(|vpa| vpa.object.spec.target_ref.clone());
    let name = target.as_ref().map_or("", |target| &target.name);
    let workload = workload(input, name, problems);
    let mut recordings = Recordings::for_vpa(read, file.until);
    let (metrics, history) = match autoscalers {
        Autoscalers::Vpas => {
            let metrics = usage(file, &workload, at.key("metrics"), &mut recordings, problems);
            (metrics, history(file, &workload, at.key("history"), read, problems))
        }
        _ => (Metrics::default(), None),
    };
    if history.is_some() && parsed_flags.uses_checkpoints() {
        let hint = "add `storage: prometheus` to `recommender.flags`, or remove the history";
        let what = "the recommender reads checkpoints instead of a history";
        problems.hint(at.key("history"), what, hint);
    }
    let runs = check_runs(file, &parsed_flags, at, problems);
    let checkpoints: Vec<_> = (0..file.checkpoints.len())
        .filter_map(|index| checkpoint(at.key("checkpoints").index(index), read, problems))
        .collect();
    let until = file.until;
    let context = timeline::Context { vpas: &vpas, workload: &workload, until, autoscalers };
    let events = timeline::resolve(&context, file, at.key("timeline"), read, gates, problems);
    let known = notes::Containers { file, workload: &workload, vpas: &vpas };
    let named = known.names(&checkpoints, &events);
    let expect = expect::resolve(&context, file, &named, runs, at.key("expect"), problems);
    let first = vpas.first()?;
    let mut scenario = VpaScenario {
        id: path.to_owned(),
        path: path.to_owned(),
        line: first.line,
        requirement: file.requirement.trim().to_owned(),
        upstream: file.upstream.clone().unwrap_or_default(),
        covers: file.covers.clone(),
        releases: file.releases.vpa(),
        hash: String::new(),
        notes: [
            recordings.notes(),
            known.notes(&checkpoints, &events, at),
            notes::on_restarts(file, at),
            notes::on_changes(file, autoscalers, &first.object.spec.target_ref.kind, at),
            notes::on_buckets(&checkpoints, at.key("checkpoints")),
        ]
        .concat(),
        start,
        flags,
        parsed_flags,
        namespace: first.object.metadata.name.namespace.clone(),
        target: target?,
        vpas: vpas.iter().map(|vpa| vpa.object.clone()).collect(),
        checkpoints,
        workload,
        metrics,
        history,
        timeline: events,
        until: file.until,
        expect,
        file: Arc::new(file.clone()),
    };
    scenario.hash = hash_of(&scenario, file, autoscalers);
    Some(scenario)
}

/// The scenario with the VPA and the flags of another file, which is otherwise the same. After
/// problems, the result is incomplete. `keeps_vpa`: the VPA, which can be in a file of its own, is
/// the same.
pub(super) fn changed(
    before: &VpaScenario,
    file: ScenarioFile,
    at: At<'_>,
    keeps_vpa: bool,
    problems: &mut Problems,
) -> VpaScenario {
    let (flags, parsed_flags) = flags(&file, at, problems);
    let gates = Gates { per_vpa_config: parsed_flags.per_vpa_config, ..Gates::default() };
    let read =
        Reader { file: &|_| Err("a setting can't name a file".into()), syntax: Syntax::Flags };
    let vpas = match keeps_vpa {
        true => before.vpas.clone(),
        false => {
            let vpas = vpas(&file, at, read, gates, problems);
            vpas.into_iter().map(|vpa| vpa.object).collect()
        }
    };
    check_runs(&file, &parsed_flags, at, problems);
    VpaScenario { flags, parsed_flags, vpas, file: Arc::new(file), ..before.clone() }
}

/// Resolves the usage in metrics.k8s.io.
fn usage(
    file: &ScenarioFile,
    workload: &VpaWorkload,
    at: At<'_>,
    recordings: &mut Recordings<'_>,
    problems: &mut Problems,
) -> Metrics {
    let Metrics { resources, sampling, .. } = file.metrics.clone();
    let given = Metrics { resources, sampling, ..Metrics::default() };
    let all = with_all_containers(file, workload);
    let metrics = metrics::usage(given, &all, file.until, at, recordings, problems);
    check_usage(&metrics.resources, workload, at.key("resource"), problems);
    recordings.note(units::check_vpa(&metrics, workload, at, problems));
    metrics
}

/// Everything that affects a run of a scenario.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hashed<'a> {
    start: i64,
    flags: &'a BTreeMap<String, String>,
    vpas: &'a [VerticalPodAutoscaler],
    checkpoints: &'a [Checkpoint],
    workload: &'a VpaWorkload,
    metrics: &'a Metrics,
    history: Option<&'a History>,
    /// In the form of the file.
    timeline: Vec<&'a TimelineEvent>,
    /// The checkpoints of the timeline, whose manifests may be in files.
    set_checkpoints: Vec<&'a Checkpoint>,
    until: String,
}

/// The hash of everything that affects a run. All fields are named, so that the compiler reports a
/// new one.
fn hash_of(scenario: &VpaScenario, file: &ScenarioFile, autoscalers: Autoscalers) -> String {
    let VpaScenario {
        start,
        flags,
        vpas,
        checkpoints,
        workload,
        metrics,
        history,
        timeline: events,
        until,
        // They are derived from the flags and the VPAs.
        parsed_flags: _,
        namespace: _,
        target: _,
        // Texts for users, and conditions that are checked afterwards.
        id: _,
        path: _,
        line: _,
        requirement: _,
        upstream: _,
        covers: _,
        releases: _,
        notes: _,
        expect: _,
        hash: _,
        // It has the same content.
        file: _,
    } = scenario;
    let timeline = file.timeline.iter();
    let mut timeline: Vec<_> =
        timeline.filter(|event| autoscalers.recommender_sees(&event.action)).collect();
    timeline.sort_by_key(|event| event.at);
    let set = events.iter().filter_map(|event| match &event.change {
        Some(ClusterChange::SetCheckpoint(checkpoint)) => Some(checkpoint),
        _ => None,
    });
    let hashed = Hashed {
        start: start.unix(),
        flags,
        vpas,
        checkpoints,
        workload,
        metrics,
        history: history.as_ref(),
        timeline,
        set_checkpoints: set.collect(),
        until: until.to_string(),
    };
    hash::hash_value(&serde_json::to_value(hashed).unwrap_or_default(), metrics.recorded())
}

/// The range of the virtual clock, in seconds since 1970. It begins with the year 2000, and ends
/// at the start of the day on which the nanoseconds since 1970 overflow an int64.
const CLOCK: Range<i64> = 946_684_800..9_223_286_400;

/// The range of the virtual clock, in messages.
const CLOCK_TEXT: &str = "2000-01-01T00:00:00Z or later, and before 2262-04-11T00:00:00Z";

/// The time of t=0, the default if there is a problem.
fn start(file: &ScenarioFile, at: At<'_>, problems: &mut Problems) -> GoTime {
    let default = GoTime::from_unix(CLOCK.start);
    let Some(text) = &file.recommender.start else { return default };
    let value = at.key("recommender").key("start");
    let start = match text.parse::<jiff::Timestamp>() {
        Ok(timestamp) if timestamp.subsec_nanosecond() == 0 => GoTime::from_timestamp(timestamp),
        _ => {
            let what = format!("expected a date and time in whole seconds, found {text:?}");
            problems.hint(value, what, "for example 2024-03-01T12:00:00Z");
            return default;
        }
    };
    if !CLOCK.contains(&start.unix()) {
        let what = format!("{text} is outside the range of the virtual clock");
        problems.hint(value, what, format!("expected {CLOCK_TEXT}"));
        return default;
    }
    if start.plus(file.until.since_start()).unix() >= CLOCK.end {
        let what = format!(
            "the scenario ends after the range of the virtual clock: {} after {text}",
            file.until
        );
        let hint = "decrease `until`, or set an earlier `start`: the scenario must end before \
                    2262-04-11T00:00:00Z";
        problems.hint(at.key("until"), what, hint);
    }
    start
}

fn flags(
    file: &ScenarioFile,
    at: At<'_>,
    problems: &mut Problems,
) -> (BTreeMap<String, String>, RecommenderFlags) {
    let at = at.key("recommender").key("flags");
    let mut flags = BTreeMap::new();
    RECOMMENDER.set_flags(&file.recommender.flags, at, problems, |name, text| {
        let flag = BTreeMap::from([(name.to_owned(), text)]);
        RecommenderFlags::parse(&flag).map_err(|error| error.why)?;
        flags.extend(flag);
        Ok(())
    });
    let parsed = RecommenderFlags::parse(&flags).unwrap_or_else(|error| {
        // Each flag alone is valid.
        problems.plain(at.key(&error.flag), error.why);
        RecommenderFlags::default()
    });
    (flags, parsed)
}

/// A component of the VPA with flags.
pub(super) struct Component {
    /// `recommender` or `updater`.
    pub name: &'static str,
    /// The flag for the time between two runs.
    pub interval: &'static str,
    /// The flags that the harness supports.
    pub flags: &'static [&'static str],
    /// Why a flag of upstream is not supported.
    pub unsupported: fn(&str) -> Option<&'static str>,
}

const RECOMMENDER: Component = Component {
    name: "recommender",
    interval: "recommender-interval",
    flags: &RecommenderFlags::NAMES,
    unsupported: RecommenderFlags::unsupported,
};

impl Component {
    /// Returns the number of runs of the component, and adds a problem if there are too many.
    /// `at`: the scenario.
    pub(super) fn check_runs(
        &self,
        until: Time,
        interval: Span,
        at: At<'_>,
        problems: &mut Problems,
    ) -> i64 {
        let runs = until.since_start().0 / interval.0.max(1);
        if runs > MOST_RUNS {
            let what = format!(
                "the scenario has {runs} runs of the {}, more than the limit of {MOST_RUNS}",
                self.name
            );
            let hint = format!("decrease `until`, or increase `{}`", self.interval);
            problems.hint(at.key("until"), what, hint);
        }
        runs
    }

    /// Sets the given flags. `set` returns the reason why a flag can't have a value. `at`: the
    /// flags.
    pub(super) fn set_flags(
        &self,
        given: &BTreeMap<String, Value>,
        at: At<'_>,
        problems: &mut Problems,
        mut set: impl FnMut(&str, String) -> Result<(), String>,
    ) {
        for (given_name, value) in given {
            let name = given_name.trim_start_matches('-');
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => {
                    let what = format!("expected a value of the flag `{given_name}`");
                    problems.plain(at.key(given_name), what);
                    continue;
                }
            };
            match set(name, text) {
                Ok(()) => {}
                Err(why) if self.flags.contains(&name) => problems.plain(at.key(given_name), why),
                Err(_) => problems.add(self.unknown_flag(name, at.key_position(given_name))),
            }
        }
    }

    /// The problem of a flag that upstream does not have, or that the harness does not support.
    fn unknown_flag(&self, name: &str, at: At<'_>) -> Diagnostic {
        let subject = format!("the flag `{name}` of the {}", self.name);
        match (self.unsupported)(name) {
            Some(why) => at.problem(format!("{subject} is not supported: {why}"), None),
            None => {
                let hint = suggest(name, self.flags.iter().copied());
                at.problem(format!("{subject} is unknown"), hint)
            }
        }
    }
}

/// Resolves `vpa`, or each of `vpas`.
fn vpas(
    file: &ScenarioFile,
    at: At<'_>,
    read: Reader<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Vec<Vpa> {
    let several = at.key("vpas");
    let places: Vec<At<'_>> = match (&file.vpa, several.node()) {
        (Some(_), None) => vec![at.key("vpa")],
        (None, _) => (0..file.vpas.len()).map(|index| several.index(index)).collect(),
        (Some(_), Some(_)) => {
            let what = "expected either `vpa` or `vpas`, found both";
            problems.hint(at.key_position("vpas"), what, "list all VPAs in `vpas`");
            return Vec::new();
        }
    };
    if places.is_empty() {
        problems.plain(several, "expected at least one VPA");
    }
    let mut vpas: Vec<Vpa> = Vec::new();
    for at in places {
        let Some(vpa) = manifest::resolve(at, read, gates, problems) else { continue };
        let name = vpa.name();
        if vpas.iter().any(|other| other.name() == name) {
            problems.plain(at, format!("duplicate VPA `{name}`"));
        }
        vpas.push(vpa);
    }
    vpas
}

/// The pods as the recommender sees them. With an HPA, its part determines the pods and checks
/// their containers.
fn workload(input: Input<'_>, target: &str, problems: &mut Problems) -> VpaWorkload {
    let (given, at) = (&input.file.workload, input.at.key("workload"));
    let mut workload = VpaWorkload {
        replicas: 1,
        labels: given.labels.clone(),
        containers: given.containers.clone(),
        ..VpaWorkload::default()
    };
    let is_alone = input.autoscalers == Autoscalers::Vpas;
    if is_alone {
        check_replicas(given.replicas(), at.key("replicas"), problems);
        workload.replicas = u32::try_from(given.replicas()).unwrap_or_default();
        workload.pod_labels = given.pod_labels.clone();
        workload.init_containers = given.init_containers.names().map(Arc::from).collect();
        workload.owned = given.owned;
        workload.keeps_ended_pods = given.replaces_ended_pods == Some(false);
        for (index, container) in given.containers.iter().enumerate() {
            check_resources(container, at.key("containers").index(index), problems);
        }
    }
    check_labels(&workload, at, problems);
    check_names(&workload, is_alone, at, problems);
    if workload.labels.is_empty() {
        workload.labels.insert("app".to_owned(), target.to_owned());
    }
    if workload.containers.is_empty() {
        let container = Container { name: APP.into(), ..Container::default() };
        workload.containers.push(container);
    }
    workload
}

fn check_labels(workload: &VpaWorkload, at: At<'_>, problems: &mut Problems) {
    for (field, labels) in [("labels", &workload.labels), ("podLabels", &workload.pod_labels)] {
        for (key, value) in labels {
            let wrong = is_label_key(key).into_iter().chain(is_label_value(value)).next();
            if let Some(wrong) = wrong {
                let what = format!("`{key}: {value}` is not a valid label: {wrong}");
                problems.plain(at.key(field).key(key), what);
            }
        }
    }
    for (key, value) in &workload.pod_labels {
        if let Some(other) = workload.labels.get(key).filter(|other| *other != value) {
            let what = format!("`{key}: {value}` contradicts `{key}: {other}` in `labels`");
            let hint = "each pod has one value of a label: remove one of them";
            problems.hint(at.key("podLabels").key(key), what, hint);
        }
    }
}

/// Checks the names of containers.
fn check_names(workload: &VpaWorkload, is_alone: bool, at: At<'_>, problems: &mut Problems) {
    let containers = workload.containers.iter().map(|container| &container.name);
    let names: Vec<&Arc<str>> = containers.chain(&workload.init_containers).collect();
    for (index, name) in names.iter().enumerate() {
        let at = match index.checked_sub(workload.containers.len()) {
            None => at.key("containers").index(index).key("name"),
            Some(init) => at.key("initContainers").index(init),
        };
        if !is_dns1123_label(name).is_empty() {
            problems.plain(at, format!("{name:?} is not a valid name of a container"));
        } else if is_alone && names[..index].contains(name) {
            problems.plain(at, format!("duplicate container `{name}`"));
        }
    }
}

/// The workload of a file with all containers that can have usage, including its init containers.
fn with_all_containers(file: &ScenarioFile, workload: &VpaWorkload) -> Workload {
    let init = workload.init_containers.iter();
    let init = init.map(|name| Container { name: name.clone(), ..Container::default() });
    let containers = workload.containers.iter().cloned().chain(init).collect();
    Workload { containers, ..file.workload.clone() }
}

/// Checks that usage is given by container if there are several.
fn check_usage(
    usage: &[ResourceUsage],
    workload: &VpaWorkload,
    at: At<'_>,
    problems: &mut Problems,
) {
    if workload.containers.len() < 2 {
        return;
    }
    for (index, usage) in usage.iter().enumerate() {
        if !matches!(usage.source, UsageSource::PerContainer(_)) {
            let hint = "use `containers`, with a value for each container";
            let what = "the usage is ambiguous: the pods have several containers";
            problems.hint(at.index(index), what, hint);
        }
    }
}

fn history(
    file: &ScenarioFile,
    workload: &VpaWorkload,
    at: At<'_>,
    read: Reader<'_>,
    problems: &mut Problems,
) -> Option<History> {
    let mut history = file.history.clone()?;
    if history.resource.is_empty() {
        let hint = "for example [{name: cpu, perPod: 500m}]";
        problems.hint(at.key("resource"), "the history has no usage", hint);
    }
    let end = Time::ZERO + history.length;
    let samples = history.length.0 / history.step.0.max(1);
    let containers = i64::try_from(workload.containers.len()).unwrap_or(i64::MAX);
    let pods = i64::from(workload.replicas);
    if samples.saturating_mul(containers).saturating_mul(pods) > MOST_HISTORY {
        problems.hint(at, "the history has too many samples", "increase `step`");
    }
    let mut recordings = Recordings::for_vpa(read, end);
    let given = Metrics { resources: history.resource, ..Metrics::default() };
    let all = with_all_containers(file, workload);
    let metrics = metrics::usage(given, &all, end, at, &mut recordings, problems);
    check_usage(&metrics.resources, workload, at.key("resource"), problems);
    history.resource = metrics.resources;
    Some(history)
}

/// Checks the number of runs of the recommender, and returns the largest possible one: a restart
/// can add one.
fn check_runs(
    file: &ScenarioFile,
    flags: &RecommenderFlags,
    at: At<'_>,
    problems: &mut Problems,
) -> i64 {
    let interval: Span = flags.recommender_interval;
    let runs = RECOMMENDER.check_runs(file.until, interval, at, problems);
    if runs == 0 {
        let what =
            format!("the scenario ends before the first run of the recommender, at {interval}");
        problems.hint(at.key("until"), what, LATER_END);
    }
    let restarts = file.timeline.iter();
    let restarts = restarts.filter(|event| matches!(event.action, Action::RestartRecommender(_)));
    runs + i64::try_from(restarts.count()).unwrap_or(i64::MAX)
}
