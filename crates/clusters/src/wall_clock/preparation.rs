//! Prepares scenarios for a cluster: they run faster than written, and only if the outcome does not
//! depend on a random order or on settings that the cluster lacks.
//!
//! The flags of an existing cluster can't be set. The sync period is measured, and determines the
//! speed of scenarios; the other flags and the feature gates can't be observed, and are assumed to
//! have their default values. A scenario runs if, by the model, these values do not change its
//! outcome.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::metrics_api::held_query::HeldQuery;
use crate::cluster::tolerances::{SHORTEST_EDIT_DISTANCE, SHORTEST_SYNC_PERIOD};
use crate::cluster::{CustomKind, unsupported_reason};
use kube_autoscaler_models::flags::{Flag, Flags, Gate};
use kube_autoscaler_models::observation::{ControllerAction, Observation};
use kube_autoscaler_models::rules::{Release, Rules};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_engines::plan::{Pace, ReleasePlan};
use kube_lockstep_engines::record::Record;
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::run::Verdict;
use kube_lockstep_sim::run::lockstep::{FreeRun, free_run, unfinished};
use kube_lockstep_sim::trace::Trace;

/// A scenario of the plan: as written, and as it runs on the cluster.
#[derive(Clone)]
pub(super) struct PreparedScenario {
    pub written: Arc<Scenario>,
    pub prepared: Arc<Scenario>,
}

impl PreparedScenario {
    /// Its length, at the speed of the cluster.
    pub(super) fn length(&self) -> Time {
        self.prepared.until
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_nanos(self.length().0.unsigned_abs())
    }
}

/// Prepares the scenarios of a part. Scenarios that can't run on the cluster are recorded as
/// skipped.
pub(super) fn prepare_all(
    part: &ReleasePlan,
    name: &Arc<str>,
    record: &mut Record<'_>,
    prepare: impl Fn(&Scenario) -> Result<Scenario, SkipReason>,
) -> Vec<PreparedScenario> {
    let mut all = Vec::new();
    for written in &part.scenarios {
        match prepare(written) {
            Ok(prepared) => {
                let (written, prepared) = (written.clone(), Arc::new(prepared));
                all.push(PreparedScenario { written, prepared });
            }
            Err(why) => {
                let mut outcome = unfinished(written, name, part.release);
                outcome.verdict = Verdict::Skipped { why };
                record.finished(outcome);
            }
        }
    }
    all
}

/// The accelerated scenario on a new cluster, or the reason why it can't run there.
pub(super) fn for_new_cluster(
    scenario: &Scenario,
    release: Release,
    pace: Pace,
) -> Result<Scenario, SkipReason> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(why);
    }
    let on_a_cluster = |why: String| SkipReason::from(format!("on a real cluster: {why}"));
    if let Some(why) = unsupported_reason(scenario) {
        return Err(on_a_cluster(why));
    }
    let has_workers = Rules::of(release).flags[Flag::ConcurrentSyncs as usize];
    if scenario.interrupts_reconciles() && !has_workers {
        let why = "an action during a reconcile: the controller of this release has only one \
                   worker, so the reconciles of all other scenarios would be delayed";
        return Err(on_a_cluster(why.to_owned()));
    }
    let faster = scenario.faster(pace.speed).map_err(on_a_cluster)?;
    if let Some(why) =
        too_short(&faster, release).or_else(|| pace.too_long(faster.until.since_start()))
    {
        return Err(on_a_cluster(why));
    }
    let faster = Arc::new(faster);
    let run = free_run(&faster, release);
    let why = unordered(&run.trace).or_else(|| cannot_be_held(&run).map(str::to_owned));
    why.map_or(Ok(Arc::unwrap_or_clone(faster)), |why| Err(on_a_cluster(why)))
}

/// The reason why a scenario is too fast for a controller, if it is.
fn too_short(faster: &Scenario, release: Release) -> Option<String> {
    let period = faster.flags_by(&Rules::of(release)).sync_period;
    (period < SHORTEST_SYNC_PERIOD).then(|| {
        let least = SHORTEST_SYNC_PERIOD;
        format!("its sync period would be {period}, but the minimum is {least}")
    })
}

/// Why the outcome is random, if, by the model, the HPA is edited at the time of a reconcile that
/// can't be observed: the outcome depends on their order.
fn unordered(trace: &Trace) -> Option<String> {
    let is_hidden =
        |tick: &&Observation| !tick.actions().any(|action| action.is_read() || action.is_write());
    trace.ticks.iter().filter(is_hidden).find_map(|tick| {
        let at = tick.at;
        let is_close = |edit: Time| (edit - at).0.abs() < SHORTEST_EDIT_DISTANCE.0;
        let edited = trace.api.iter().any(|(_, edit)| is_close(edit.at));
        edited.then(|| {
            format!("the HPA is edited at {at}, the time of a reconcile that can't be observed")
        })
    })
}

/// The query whose answer must be held back, so that something can happen after the first `after`
/// requests of a reconcile: the last of these requests, or, if that is another request, the next
/// query. `None` if the reconcile has no such query.
pub(super) fn held_query(tick: &Observation, after: usize) -> Option<HeldQuery> {
    let queries = |from: usize, to: usize| {
        let requests = tick.requests().take(to).skip(from);
        requests.filter(|it| it.is_metric_query()).count()
    };
    let number = queries(0, after);
    if queries(after.checked_sub(1)?, after) == 1 {
        return Some(HeldQuery { number, shows_changes: false });
    }
    let has_next = queries(after, usize::MAX) > 0;
    has_next.then_some(HeldQuery { number: number + 1, shows_changes: true })
}

/// The reason why an action during a reconcile can't be executed, if any: the controller
/// continues with a request that can't be held back.
fn cannot_be_held(run: &FreeRun) -> Option<&'static str> {
    let queries = |tick: &Observation| tick.reads().any(ControllerAction::is_metric_query);
    let mut interrupted = run.ticks.iter().filter(|tick| !tick.derivation.during.is_empty());
    interrupted.any(|tick| !queries(&tick.observation)).then_some(
        "an action during a reconcile that queries no metrics: only the answer to a query of \
         metrics can be held back",
    )
}

/// The scenario on an existing cluster with this sync period, or the reason why it can't run there.
pub(super) fn for_existing_cluster(
    scenario: &Scenario,
    release: Release,
    period: Span,
    pace: Pace,
) -> Result<Scenario, SkipReason> {
    if let Some(why) = scenario.unsupported_on(release) {
        return Err(why);
    }
    let on_this_cluster = |why: String| SkipReason::from(format!("on this cluster: {why}"));
    if let Some(why) = unsupported_reason(scenario) {
        return Err(format!("on a real cluster: {why}").into());
    }
    if scenario.interrupts_reconciles() {
        let why = "actions during a reconcile, which would delay the other reconciles";
        return Err(on_this_cluster(why.to_owned()));
    }
    if CustomKind::from_workload(&scenario.workload).is_some() {
        let kind = &scenario.workload.kind;
        return Err(on_this_cluster(format!("no CRD is created for the kind {kind}")));
    }
    let rules = Rules::of(release);
    let gates = scenario.gates_by(&rules);
    if let Some((gate, _)) = gates.changed().next() {
        return Err(on_this_cluster(assumed_default(gate)));
    }
    let speed = speed(scenario.flags_by(&rules).sync_period, period).map_err(on_this_cluster)?;
    let faster = scenario.faster(speed).map_err(on_this_cluster)?;
    if let Some(why) = pace.too_long(faster.until.since_start()) {
        return Err(on_this_cluster(why));
    }
    with_flags_of(faster, release, period).map_err(on_this_cluster)
}

fn assumed_default(gate: Gate) -> String {
    format!("the feature gate {} is assumed to have its default value", gate.name())
}

/// The speed at which the sync period of a scenario equals that of the cluster.
fn speed(written: Span, period: Span) -> Result<NonZero<u32>, String> {
    let times = written.0.checked_div(period.0).and_then(|times| u32::try_from(times).ok());
    let times = times.and_then(NonZero::new);
    let divides = written.0.checked_rem(period.0) == Some(0);
    times.filter(|_| divides).ok_or_else(|| {
        format!("its sync period of {written} is not a multiple of the cluster's, {period}")
    })
}

/// The scenario with the cluster's flags, if the model makes the same decisions with them, and if
/// queries and writes are enough to observe its reconciles.
fn with_flags_of(faster: Scenario, release: Release, period: Span) -> Result<Scenario, String> {
    let rules = Rules::of(release);
    let required = faster.flags_by(&rules);
    let defaults = Flags { sync_period: period, ..rules.default_flags };
    let concurrent_syncs = required.concurrent_syncs;
    let assumed = Flags { concurrent_syncs, ..defaults };
    let faster = Arc::new(faster);
    let run = |flags: Flags| {
        let scenario = Arc::new(Scenario { flags, ..(*faster).clone() });
        free_run(&scenario, release)
    };
    let as_written = run(required);
    if let Some(why) =
        unordered(&as_written.trace).or(as_written.undetermined.map(|random| random.why))
    {
        return Err(why);
    }
    let differs = |flags: Flags| run(flags).trace != as_written.trace;
    if required != assumed && differs(assumed) {
        let all = required.differing(&assumed);
        let with_effect: Vec<Flag> =
            all.iter().copied().filter(|flag| differs(required.with(*flag, &assumed))).collect();
        let flags = if with_effect.is_empty() { all } else { with_effect };
        let names: Vec<String> = flags.iter().map(|flag| format!("--{}", flag.name())).collect();
        return Err(format!(
            "it requires a different value of {}, and the cluster is assumed to have the default",
            names.join(" and ")
        ));
    }
    let mut ticks = as_written.trace.ticks.iter();
    if !ticks.any(|tick| tick.reads().any(ControllerAction::is_metric_query)) {
        let why = "it queries no metrics, so its reconciles can't be observed without an audit log";
        return Err(why.to_owned());
    }
    Ok(Scenario { flags: assumed, ..Arc::unwrap_or_clone(faster) })
}

#[cfg(test)]
pub(super) mod tests {
    use kube_lockstep_scenario::Diagnostic;
    use std::collections::BTreeSet;

    use super::*;
    use kube_lockstep_scenario::testing::{WEB, scenario};

    /// A scenario that scales up.
    fn text() -> String {
        WEB.replace("perPod: 500m", "perPod: 700m").replace("replicas: 2", "replicas: 3")
    }

    fn prepared(text: &str, period: Span) -> Result<Scenario, String> {
        for_existing_cluster(&scenario(text), Release::NEWEST, period, Pace::default())
            .map_err(|why| why.to_string())
    }

    pub(crate) fn fixture(id: &str) -> Arc<Scenario> {
        let path = format!("{}/../../fixtures/{id}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let folder = std::path::Path::new(&path).parent().expect("a folder").to_owned();
        let read = move |name: &str| {
            std::fs::read_to_string(folder.join(name))
                .map_err(|error| Diagnostic::new(error.to_string()))
        };
        Arc::new(kube_lockstep_scenario::parse(id, &text, &read).expect("a valid scenario"))
    }

    #[test]
    fn the_speed_follows_from_the_sync_period() {
        let speed_for = |written: i64, period: i64| {
            let speed = speed(Span::from_millis(written), Span::from_millis(period));
            speed.map(NonZero::get)
        };
        assert_eq!(speed_for(15_000, 15_000), Ok(1));
        assert_eq!(speed_for(15_000, 1000), Ok(15));
        assert_eq!(speed_for(30_000, 15_000), Ok(2));
        let why = speed_for(15_000, 4000).expect_err("3.75");
        assert_eq!(why, "its sync period of 15s is not a multiple of the cluster's, 4s");
        assert!(speed_for(10_000, 15_000).is_err(), "slower than written");
        assert!(speed_for(15_000, 0).is_err());
    }

    #[test]
    fn flags_without_effect_may_differ() {
        let prepared = prepared(&text(), Span::from_secs(1)).expect("it only scales up");
        assert_eq!(prepared.flags.sync_period, Span::from_secs(1));
        assert_eq!(prepared.flags.downscale_stabilization, Span::from_mins(5));
        assert_eq!(prepared.until.since_start(), Span::from_secs(8));
    }

    #[test]
    fn flags_with_an_effect_are_reported() {
        let down = text().replace("perPod: 700m", "perPod: 100m").replace("2m\n", "6m\n");
        let why = prepared(&down, Span::from_secs(1)).expect_err("a window of 20 s is over");
        let flag = "--horizontal-pod-autoscaler-downscale-stabilization";
        assert!(why.contains(&format!("it requires a different value of {flag},")), "{why}");
        let longer = Pace { longest: Duration::from_secs(900), ..Pace::default() };
        let as_written =
            for_existing_cluster(&scenario(&down), Release::NEWEST, Span::from_secs(15), longer);
        assert!(as_written.is_ok(), "{as_written:?}");
        let with_flag = format!(
            "{}controller: {{flags: {{horizontal-pod-autoscaler-tolerance: 0.5}}}}\n",
            text()
        );
        let why = prepared(&with_flag, Span::from_secs(1)).expect_err("a ratio of 1.4");
        assert!(why.contains("of --horizontal-pod-autoscaler-tolerance,"), "{why}");
    }

    #[test]
    fn gates_that_differ_from_their_default_are_reported() {
        let text = format!("{}controller: {{featureGates: {{HPAScaleToZero: false}}}}\n", text());
        let why = prepared(&text, Span::from_secs(1)).expect_err("it is on");
        assert!(why.contains("HPAScaleToZero"), "{why}");
    }

    #[test]
    fn a_scenario_without_queries_is_reported() {
        let text = text().replace("replicas: 3", "replicas: 0");
        let why = prepared(&text, Span::from_secs(1)).expect_err("scaling is disabled");
        assert!(why.contains("it queries no metrics"), "{why}");
    }

    #[test]
    fn an_unobservable_order_has_no_verdict() {
        let scenario = fixture("targets/a-kind-that-is-not-served");
        let why =
            for_new_cluster(&scenario, Release::NEWEST, Pace::default()).expect_err("both at 45 s");
        let why = why.to_string();
        assert!(why.contains("the HPA is edited at 3s, the time of a reconcile"), "{why}");
        let scenario = fixture("tolerance/just-above-the-upper-edge-scales-up");
        assert!(for_new_cluster(&scenario, Release::NEWEST, Pace::default()).is_ok());
    }

    /// All reasons to skip a fixture; `…` stands for any text. Another reason may be a mistake.
    const REASONS: &[&str] = &[
        "… has no flag --horizontal-pod-autoscaler-upscale-delay",
        "a VPA, whose updater and admission controller are simulated",
        "a deletion of the HPA after a read of the scale: …",
        "a metric of a …, which has no CRD",
        "a pod quota",
        "a scaleDownOrder other than replicaSet",
        "after a slow response, the next reconcile follows a resync, which can't be observed",
        "caches that lag, which can't be delayed",
        "all scenarios share the controller, so it can't be restarted",
        "an action after a write of the scale: the next request can't be held back",
        "an action after a write of the status: the next request can't be held back",
        "an action before a retry of a write: the retry can't be held back",
        "containers without a request: the controller names a random pod in the status",
        "errors of the API server can't be injected",
        "feature gate … does not exist in this release",
        "it takes …, but the limit is 1m",
        "its behavior is in the annotation autoscaling.alpha.kubernetes.io/behavior",
        "its periodSeconds of … is not divisible by 15",
        "objects in other namespaces",
        "pod overhead, which requires a RuntimeClass",
        "several HPAs, whose reconciles can't be distinguished",
        "the HPA is edited at …, the time of a reconcile that can't be observed",
        "the selector …, which is not a list of labels",
        "the target can't be deleted and created again",
        "the workload controller sets the order of a rolling update",
        "unrecognized feature gate: …",
    ];

    #[test]
    fn scenarios_are_skipped_for_known_reasons_only() {
        let is = |reason: &str, known: &str| match known.split_once('…') {
            Some((start, end)) => reason.starts_with(start) && reason.ends_with(end),
            None => reason == known,
        };
        let mut unused: BTreeSet<&str> = REASONS.iter().copied().collect();
        let mut unknown = Vec::new();
        for release in [Release::NEWEST, Release { minor: 33 }] {
            for (id, why) in skipped(release) {
                // It begins with `on 1.37: ` or `on a real cluster: `.
                let reason = why.split_once(": ").map_or(&*why, |(_, reason)| reason);
                match REASONS.iter().find(|known| is(reason, known)) {
                    Some(known) => _ = unused.remove(known),
                    None => unknown.push(format!("{id} is skipped: {why}")),
                }
            }
        }
        assert!(unknown.is_empty(), "{}", unknown.join("\n"));
        assert!(unused.is_empty(), "no fixture is skipped because of {unused:?}");
    }

    /// The ids of skipped fixtures, each with the reason.
    fn skipped(release: Release) -> Vec<(String, String)> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let mut skipped = Vec::new();
        let mut folders: Vec<_> = std::fs::read_dir(folder).expect("fixtures").collect();
        folders.retain(|it| it.as_ref().is_ok_and(|it| it.path().is_dir()));
        for folder in folders.into_iter().flatten() {
            let area = folder.file_name().to_string_lossy().into_owned();
            if area == "invalid" || area == "manifests" {
                continue;
            }
            for file in std::fs::read_dir(folder.path()).expect("fixtures").flatten() {
                let name = file.file_name().to_string_lossy().into_owned();
                let Some(name) = name.strip_suffix(".yaml") else { continue };
                let id = format!("{area}/{name}");
                let why = for_new_cluster(&fixture(&id), release, Pace::default()).err();
                skipped.extend(why.map(|why| (id, why.to_string())));
            }
        }
        skipped
    }
}
