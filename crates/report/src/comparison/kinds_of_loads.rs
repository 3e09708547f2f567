//! The need for each kind of load and of metric.

use std::sync::Arc;

use crate::comparison::Reference;
use crate::figures::Figures;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_scenario::testing::{WEB, scenario};
use kube_lockstep_scenario::{Scenario, parse};
use kube_lockstep_sim::run::free_run;

const CPU: &str = "- type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}";
const USAGE: &str = "resource: [{name: cpu, perPod: 500m}]";

/// Two pods that stay two, with a metric of the HPA and the responses of the metrics APIs.
fn stays(metric: &str, metrics: &str) -> Arc<Scenario> {
    let text = WEB.replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2");
    scenario(&text.replace(CPU, metric).replace(USAGE, metrics))
}

fn figures(scenario: &Arc<Scenario>) -> Figures {
    let run = free_run(scenario, Release::NEWEST);
    Figures::new(scenario, &run, &Reference::new(&run))
}

fn needed(metric: &str, metrics: &str) -> i32 {
    let figures = figures(&stays(metric, metrics));
    let missing = f64::from((figures.scaling().needed_peak_replicas - 2).max(0)) * 120.0 / 3600.0;
    assert!((figures.scaling().missing_pod_hours - missing).abs() < 1e-9, "{metrics}: {figures:?}");
    figures.scaling().needed_peak_replicas
}

#[test]
fn the_usage_of_all_ready_pods_is_the_load() {
    assert_eq!(needed(CPU, "resource: [{name: cpu, perPod: 900m}]"), 4);
    let own = "resource: [{name: cpu, perPod: 500m, pods: [{pods: \"1\", value: 2100m}]}]";
    assert_eq!(needed(CPU, own), 6, "500m + 2100m");
}

#[test]
fn the_usage_of_a_container_is_its_load() {
    let text = WEB.replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2");
    let containers = "[{name: app, requests: {cpu: 1}}, {name: log, requests: {cpu: 200m}}]";
    let text = text.replace("[{name: app, requests: {cpu: 1}}]", containers);
    let needed = |container: &str, usage: &str| {
        let metric = format!(
            "- type: ContainerResource
      containerResource: {{name: cpu, container: {container}, \
             target: {{type: Utilization, averageUtilization: 10}}}}"
        );
        let usage = format!("resource: [{{name: cpu, {usage}}}]");
        let scenario = scenario(&text.replace(CPU, &metric).replace(USAGE, &usage));
        figures(&scenario).scaling().needed_peak_replicas
    };
    let usage = "containers: {app: 3, log: 400m}";
    assert_eq!(needed("app", usage), 60, "2 × 3 / (10% of 1)");
    assert_eq!(needed("log", usage), 40, "2 × 0.4 / (10% of 0.2)");
    assert_eq!((needed("app", "load: 3"), needed("log", "load: 3")), (30, 0));
}

#[test]
fn a_load_above_the_limits_of_the_pods_counts() {
    assert_eq!(needed(CPU, "resource: [{name: cpu, load: 5, limit: 1}]"), 10);
}

#[test]
fn each_kind_of_metric_has_its_need() {
    let pods = "- type: Pods
      pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 10}}";
    assert_eq!(needed(pods, "pods: [{name: rps, load: 71}]"), 8);
    let external = |target: &str, selector: &str| {
        format!(
            "- type: External
      external: {{metric: {{name: queue{selector}}}, target: {{{target}}}}}"
        )
    };
    let average = "type: AverageValue, averageValue: 30";
    let several = "external: [{name: queue, series: \
                   [{labels: {q: a}, value: 100}, {labels: {q: b}, value: 50}]}]";
    assert_eq!(needed(&external(average, ""), several), 5);
    let only = external(average, ", selector: {matchLabels: {q: a}}");
    assert_eq!(needed(&only, several), 4, "as observed");
    // With 2 pods, the value is 2.5 times the target.
    let value = external("type: Value, value: 60", "");
    assert_eq!(needed(&value, several), 5);
    let object = "- type: Object
      object: {metric: {name: rps}, describedObject: {apiVersion: v1, kind: Service, name: web},
        target: {type: AverageValue, averageValue: 10}}";
    let served = "object: [{name: rps, object: {kind: Service, name: web}, value: 35}]";
    assert_eq!(needed(object, served), 4);
}

#[test]
fn the_largest_need_of_several_metrics_counts() {
    let memory = "- type: Resource
      resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}";
    let both = format!("{CPU}\n    {memory}");
    let usage = |memory: &str| {
        format!("resource: [{{name: cpu, load: 2}}, {{name: memory, load: {memory}}}]")
    };
    assert_eq!(needed(&both, &usage("50Mi")), 4);
    assert_eq!(needed(&both, &usage("701Mi")), 8);
}

/// At 30s, the recording has no sample.
#[test]
fn nothing_is_needed_in_a_gap_of_a_recording() {
    let usage = "resource: [{name: cpu, load: {csv: load.csv, hold: 30s}}]";
    let text =
        WEB.replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2").replace(USAGE, usage);
    let load = "t,cores\n0,2\n60,2\n90,2\n";
    let read = |_: &str| Ok(load.to_owned());
    let scenario = Arc::new(parse("x.yaml", &text, &read).expect("a valid scenario"));
    let figures = figures(&scenario);
    assert_eq!((figures.scaling().needed_peak_replicas, figures.scaling().excess_replicas), (4, 0));
    assert!(
        (figures.scaling().missing_pod_hours - 2.0 * 90.0 / 3600.0).abs() < 1e-9,
        "{figures:?}"
    );
}

/// The metrics are missing for a minute, but the load is known.
#[test]
fn the_load_does_not_depend_on_the_metrics() {
    let text = WEB.replace(
        USAGE,
        "resource: [{name: cpu, load: {steps: [{at: 0s, value: 1}, {at: 30s, value: 2}]}}]",
    );
    let text = format!("{text}timeline:\n- {{at: 30s, for: 1m, metricsEmpty: {{}}}}\n");
    let figures = figures(&scenario(&text));
    let causes = figures.scaling().missing_pod_hours_by_cause;
    assert!((causes.other - 2.0 * 60.0 / 3600.0).abs() < 1e-9, "{figures:?}");
    assert_eq!(
        (figures.scaling().missing_pod_hours, figures.scaling().failed_seconds),
        (causes.other, 60.0)
    );
}

#[test]
fn a_higher_target_and_the_tolerance_are_causes() {
    let text = WEB.replace(USAGE, "resource: [{name: cpu, load: 2180m}]");
    let text = text.replace("replicas: 2", "replicas: 4");
    let first = scenario(&text);
    let run = free_run(&first, Release::NEWEST);
    let reference = Reference::new(&run);
    let figures = Figures::new(&first, &run, &reference);
    let hours = |pods: f64| pods * 120.0 / 3600.0;
    assert!((figures.scaling().missing_pod_hours_by_cause.tolerance - hours(1.0)).abs() < 1e-9);
    let higher = scenario(&text.replace("averageValue: 500m", "averageValue: 700m"));
    let figures = Figures::new(&higher, &free_run(&higher, Release::NEWEST), &reference);
    assert!((figures.scaling().missing_pod_hours_by_cause.target - hours(1.0)).abs() < 1e-9);
    assert!((figures.scaling().missing_pod_hours - hours(1.0)).abs() < 1e-9, "{figures:?}");
}
