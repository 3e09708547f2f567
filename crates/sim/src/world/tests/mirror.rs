//! Tests with real pods in place of simulated pods.

use super::*;
use crate::world::{Mirror, RealPod};
use kube_lockstep_scenario::resolved::PodsMetric;

/// A running and ready pod with a container `app`.
fn real(name: &str) -> RealPod {
    RealPod {
        name: name.into(),
        labels: BTreeMap::from([("run".to_owned(), "it".to_owned())]),
        containers: vec!["app".into()],
        started: Some(t(-100)),
        ready: true,
        over: false,
    }
}

fn unready(name: &str) -> RealPod {
    RealPod { ready: false, ..real(name) }
}

struct Live {
    mirror: Mirror,
    cluster: Cluster,
}

impl Live {
    fn new(speed: u32, change: impl FnOnce(&mut Scenario)) -> Live {
        let scenario = scenario(5, change);
        let mirror = Mirror::new(&scenario, speed.try_into().expect("a speed"));
        Live { mirror: mirror.expect("no HPA is divided"), cluster: Cluster::default() }
    }

    fn at(&mut self, at: Time) -> Vec<String> {
        for change in self.mirror.advance(at) {
            self.cluster.apply(&change, &|_, _| Ok(())).expect("a template");
        }
        match self.cluster.pod_metrics() {
            Ok(_) => describe_samples(&self.cluster),
            Err(error) => vec![error.message.to_string()],
        }
    }
}

fn load(total: &str) -> UsageSource {
    UsageSource::Load { total: Signal::Constant(q(total)), limit: None }
}

#[test]
fn the_ready_pods_share_the_load() {
    let mut live = Live::new(1, |it| it.metrics.resources = vec![cpu(load("1"))]);
    assert_eq!(live.at(t(0)), Vec::<String>::new(), "no pod was set");
    live.mirror.see(t(0), &[real("web-a"), real("web-b"), unready("web-c")]);
    let pending = RealPod { started: None, ..unready("web-d") };
    assert_eq!(
        live.at(t(0)),
        ["web-a 0s app=cpu:500m", "web-b 0s app=cpu:500m", "web-c 0s app=cpu:0"]
    );
    live.mirror.see(t(9), &[real("web-b"), real("web-c"), real("web-e"), real("web-f"), pending]);
    let quarter = |name: &str| format!("{name} 10s app=cpu:250m");
    assert_eq!(live.at(t(10)), ["web-b", "web-c", "web-e", "web-f"].map(quarter));
    live.mirror.see(t(11), &[]);
    assert_eq!(live.at(t(11)), Vec::<String>::new());
}

#[test]
fn pods_are_numbered_in_order_of_creation() {
    let constant = |value: &str| Signal::Constant(q(value));
    let mut live = Live::new(1, |it| {
        it.metrics.resources[0].exceptions = vec![Exception::new(pods(1, 1), constant("900m"))];
        let source = UsageSource::PerPod(constant("1"));
        let exceptions = vec![Exception::new(pods(2, 3), constant("7"))];
        let labels = BTreeMap::new();
        it.metrics.pods = vec![PodsMetric { name: "jobs".into(), labels, source, exceptions }];
    });
    live.mirror.see(t(0), &[real("z"), real("a"), real("m")]);
    assert_eq!(live.at(t(0)), ["a 0s app=cpu:900m", "m 0s app=cpu:100m", "z 0s app=cpu:100m"]);
    // A later pod does not reuse the ordinal of a deleted pod.
    live.mirror.see(t(1), &[real("z"), real("m"), real("b")]);
    assert_eq!(live.at(t(1)), ["b", "m", "z"].map(|name| format!("{name} 1s app=cpu:100m")));
    let jobs = &live.cluster.custom_metrics().pods["jobs"];
    let values: Vec<String> =
        jobs.values.iter().map(|value| format!("{}={}", value.name, value.value)).collect();
    assert_eq!(values, ["b=7", "m=7", "z=1"]);
    assert_eq!(jobs.values[0].labels["run"], "it", "the label of the pod");
}

#[test]
fn samples_have_the_labels_and_containers_of_the_pod() {
    let mut live = Live::new(1, |_| ());
    live.mirror.see(t(0), &[real("a")]);
    live.at(t(0));
    let labels = |live: &Live| live.cluster.pod_metrics().expect("no fault")[0].labels.clone();
    assert_eq!(labels(&live)["run"], "it");
    let other = RealPod {
        labels: BTreeMap::from([("run".to_owned(), "other".to_owned())]),
        containers: vec!["nginx".into(), "proxy".into()],
        ..real("a")
    };
    live.mirror.see(t(0), std::slice::from_ref(&other));
    assert_eq!(live.at(t(0)), ["a 0s nginx=cpu:100m proxy=cpu:0"], "by position");
    assert_eq!(labels(&live)["run"], "other");
    let containers = vec!["proxy".into(), "app".into()];
    live.mirror.see(t(0), &[RealPod { containers, ..other }]);
    assert_eq!(live.at(t(0)), ["a 0s proxy=cpu:0 app=cpu:100m"], "by name");
}

#[test]
fn only_actions_on_metrics_are_applied() {
    let mut live = Live::new(10, |it| {
        it.workload.startup.metrics = secs(40);
        it.schedule(100, Some(100), Action::MetricsMissing(pods(0, 0)));
        it.schedule(150, None, Action::PodsFailed(PodSet::All));
        it.schedule(300, Some(50), Action::MetricsError(error(503).into()));
        it.schedule(400, None, Action::Scale(0));
        it.schedule(400, None, Action::EditHpa(serde_json::json!({})));
    });
    assert_eq!(live.mirror.left_out(), ["podsFailed", "scale", "editHpa"]);
    live.mirror.see(t(0), &[real("a"), real("b")]);
    let sample = |name: &str, at: i64| format!("{name} {at}s app=cpu:100m");
    assert_eq!(live.at(t(0)), [sample("a", 0), sample("b", 0)]);
    assert_eq!(live.at(t(10)), [sample("b", 10)], "ten times as fast");
    assert_eq!(live.at(t(20)), [sample("a", 20), sample("b", 20)]);
    assert_eq!(live.at(t(30)), ["error 503"]);
    let young = RealPod { started: Some(t(50)), ..real("c") };
    live.mirror.see(t(50), &[real("a"), real("b"), young]);
    assert_eq!(live.at(t(53)), [sample("a", 53), sample("b", 53)], "the new pod has no sample yet");
    assert_eq!(live.at(t(54)), [sample("a", 54), sample("b", 54), sample("c", 54)]);
}

#[test]
fn a_recreated_pod_has_a_sample() {
    let mut live = Live::new(1, |it| it.metrics.resources = vec![cpu(load("1"))]);
    live.mirror.see(t(0), &[real("web-0")]);
    assert_eq!(live.at(t(0)), ["web-0 0s app=cpu:1"]);
    live.mirror.see(t(1), &[]);
    live.mirror.see(t(1), &[real("web-0")]);
    assert_eq!(live.at(t(1)), ["web-0 1s app=cpu:1"]);
    let over = RealPod { over: true, ..unready("web-0") };
    live.mirror.see(t(2), &[over]);
    assert_eq!(live.at(t(2)), Vec::<String>::new(), "the pod has ended");
}
