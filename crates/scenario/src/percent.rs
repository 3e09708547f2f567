//! Usage in percent of the request: `perPod: 50%`. The percentages are replaced by amounts before
//! the file is decoded, so nothing else knows them.

use super::autoscalers::Autoscalers;
use super::decode::decode_scenario;
use super::node::{Node, NodeKind};
use super::raw::Workload;
use crate::diagnostic::{Diagnostic, Hint};
use kube_autoscaler_models::quantity::Quantity;

/// Replaces the percentages in the usage of resources. Returns the problems of the percentages
/// without an amount, which are replaced by 0.
pub(crate) fn replace(root: &mut Node, autoscalers: Autoscalers) -> Vec<Diagnostic> {
    let workload = match root.entry("workload") {
        Some((_, node)) => {
            let decoded = decode_scenario(node, autoscalers).ok();
            decoded.filter(|decoded| decoded.malformed.is_empty()).map(|decoded| decoded.value)
        }
        // Without an HPA, all its fields have defaults.
        None => (autoscalers == Autoscalers::Vpas).then(Workload::default),
    };
    let mut percentages = Percentages { workload, problems: Vec::new() };
    percentages.replace_in(root, "metrics");
    percentages.replace_in(root, "history");
    percentages.problems
}

/// How exactly a percentage is converted.
#[derive(Clone, Copy)]
enum Precision {
    /// Values are whole milli-units of cpu, or whole bytes.
    Value,
    /// A unit is multiplied by values, so it has all digits of a quantity.
    Unit,
}

/// Visits the values of a signal.
fn each_value(signal: &mut Node, visit: &mut dyn FnMut(&mut Node, Precision)) {
    if matches!(signal.kind, NodeKind::Scalar { .. }) {
        return visit(signal, Precision::Value);
    }
    for list in ["steps", "points"] {
        if let Some(NodeKind::List(points)) = signal.entry_mut(list).map(|it| &mut it.kind) {
            for value in points.iter_mut().filter_map(|point| point.entry_mut("value")) {
                visit(value, Precision::Value);
            }
        }
    }
    // A unit belongs to a recorded signal.
    if let Some(unit) = signal.entry_mut("unit") {
        visit(unit, Precision::Unit);
    }
    for field in ["mean", "amplitude"] {
        if let Some(value) = signal.entry_mut("sine").and_then(|sine| sine.entry_mut(field)) {
            visit(value, Precision::Value);
        }
    }
    // The values of a factor are numbers.
    for field in ["of", "backlog"] {
        if let Some(of) = signal.entry_mut(field) {
            each_value(of, visit);
        }
    }
    if let Some(NodeKind::List(parts)) = signal.entry_mut("add").map(|it| &mut it.kind) {
        parts.iter_mut().for_each(|part| each_value(part, visit));
    }
}

/// The percentages of a file.
struct Percentages {
    /// The pods. None: the workload is invalid, which is reported when the file is decoded.
    workload: Option<Workload>,
    problems: Vec<Diagnostic>,
}

impl Percentages {
    /// Replaces the percentages in the usage of a field of the file.
    fn replace_in(&mut self, root: &mut Node, field: &str) {
        let usage = root.entry_mut(field).and_then(|metrics| metrics.entry_mut("resource"));
        let Some(NodeKind::List(entries)) = usage.map(|usage| &mut usage.kind) else { return };
        entries.iter_mut().for_each(|entry| self.replace_in_usage(entry));
    }

    fn replace_in_usage(&mut self, entry: &mut Node) {
        let Some(resource) = entry.entry("name").and_then(|(_, name)| text(name)) else { return };
        let resource = resource.to_owned();
        if let Some(node) = entry.entry_mut("load") {
            each_value(node, &mut |value, of| self.refuse(value, of));
        }
        let mut of = |node: &mut Node, container: Option<&str>| {
            each_value(node, &mut |value, of| self.replace(value, of, &resource, container));
        };
        // The limit of a load is that of each pod.
        for field in ["perPod", "limit"] {
            if let Some(node) = entry.entry_mut(field) {
                of(node, None);
            }
        }
        if let Some(NodeKind::Map(containers)) =
            entry.entry_mut("containers").map(|it| &mut it.kind)
        {
            containers.iter_mut().for_each(|(name, node)| of(node, Some(&name.text)));
        }
        if let Some(NodeKind::List(exceptions)) = entry.entry_mut("pods").map(|it| &mut it.kind) {
            let values = exceptions.iter_mut().filter_map(|entry| entry.entry_mut("value"));
            values.for_each(|node| of(node, None));
        }
    }

    /// Refuses a percentage of a total.
    fn refuse(&mut self, value: &mut Node, precision: Precision) {
        if percentage(value).is_none() {
            return;
        }
        let hint = match precision {
            Precision::Value => "write an amount, for example 8",
            Precision::Unit => "write an amount, for example 10m for percent of a core",
        };
        let what = "a percentage refers to the request of a pod, not to a total";
        self.add(value, what.to_owned(), Some(hint.into()));
    }

    /// Replaces a percentage of the request of a container, or of the whole pod.
    fn replace(
        &mut self,
        value: &mut Node,
        precision: Precision,
        resource: &str,
        container: Option<&str>,
    ) {
        let Some(percent) = percentage(value) else { return };
        if percent < 0.0 {
            let what = format!("expected a percentage of 0% or more, found {percent}%");
            return self.add(value, what, None);
        }
        if percent == 0.0 && matches!(precision, Precision::Unit) {
            let what = "expected a unit greater than 0%, found 0%".to_owned();
            return self.add(value, what, Some(super::text::UNIT_EXAMPLES.into()));
        }
        let Some(workload) = &self.workload else { return set(value, "1".to_owned()) };
        let Some(milli) = milli(workload, resource, container) else {
            let subject = container.map_or("the pods have".to_owned(), |container| {
                format!("the container `{container}` has")
            });
            let what = format!("a percentage requires a {resource} request, but {subject} none");
            let hint =
                format!("add `requests: {{{resource}: …}}` to the container, or write an amount");
            return self.add(value, what, Some(hint.into()));
        };
        let amount = milli as f64 * percent / 100.0;
        let text = match (resource, precision) {
            (_, Precision::Unit) => {
                format!("{:.9}{}{percent}", amount / 1000.0, super::text::PERCENT_MARK)
            }
            ("memory", Precision::Value) => format!("{:.0}", amount / 1000.0),
            _ => format!("{amount:.0}m"),
        };
        set(value, text);
    }

    /// Adds a problem, and replaces the percentage by a valid value and unit.
    fn add(&mut self, at: &mut Node, what: String, hint: Option<Hint>) {
        self.problems.push(Diagnostic::new(what).at_node(at).with_hint(hint));
        set(at, "1".to_owned());
    }
}

/// The request in milli-units, by which the controller divides the usage. None: there is none.
fn milli(workload: &Workload, resource: &str, container: Option<&str>) -> Option<i64> {
    let Workload { containers, init_containers, resources, .. } = workload;
    let sidecars = init_containers.detailed().iter().filter(|init| init.restart_policy.is_some());
    let sidecars = sidecars.map(|init| (init.name.as_str(), init.requests.clone()));
    // Requests default to limits.
    let running = containers.iter().map(|it| (&*it.name, it.to_api().requests)).chain(sidecars);
    let pod_resources = resources.as_ref().filter(|_| container.is_none());
    if let Some(request) = pod_resources.and_then(|of| of.requests.get(resource)) {
        return Some(request.milli());
    }
    let named = running.filter(|(name, _)| container.is_none_or(|of| of == *name));
    let requests = named.map(|(_, requests)| requests.get(resource).map(Quantity::milli));
    // The controller refuses pods in which one container has no request.
    requests.sum::<Option<i64>>().filter(|milli| *milli > 0)
}

fn text(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Scalar { text, .. } => Some(text),
        NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}

/// The number of a percentage.
fn percentage(value: &Node) -> Option<f64> {
    let number: f64 = text(value)?.strip_suffix('%')?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

fn set(value: &mut Node, text: String) {
    value.kind = NodeKind::Scalar { text, plain: true };
}

#[cfg(test)]
mod tests {
    use crate::resolved::{Signal, UsageSource};
    use crate::testing::{WEB, scenario};
    use crate::{AnyScenario, parse_any};

    /// The usage in milli-units, for the requests of two containers.
    fn usage(usage: &str) -> String {
        let text = WEB.replace("perPod: 500m", usage);
        let scenario = scenario(&text);
        match &scenario.metrics.resources[0].source {
            UsageSource::PerPod(Signal::Constant(value)) => value.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_limit_of_a_load_is_a_percentage_of_the_request_of_a_pod() {
        let limit = |limits: &str| {
            let text = WEB.replace("perPod: 500m", &format!("load: 4, limit: {limits}"));
            match &scenario(&text).metrics.resources[0].source {
                UsageSource::Load { limit, .. } => limit.as_ref().map(ToString::to_string),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(limit("80%"), limit("800m"));
        assert!(limit("80%").is_some());
    }

    #[test]
    fn requests_default_to_limits() {
        let text = WEB.replace("requests: {cpu: 1}", "limits: {cpu: 2}");
        let scenario = scenario(&text.replace("perPod: 500m", "perPod: 50%"));
        let UsageSource::PerPod(Signal::Constant(value)) = &scenario.metrics.resources[0].source
        else {
            panic!("a constant")
        };
        assert_eq!(value.to_string(), "1");
    }

    #[test]
    fn percentages_of_vpas_are_of_the_request() {
        let text = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
recommender: {flags: {storage: prometheus}}
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload: {podLabels: {tier: web}, containers: [{name: app, requests: {cpu: 2}}]}
metrics: {resource: [{name: cpu, perPod: 50%}]}
history: {length: 1d, resource: [{name: cpu, containers: {app: {csv: a.csv, unit: 100%}}}]}
until: 5m
";
        // Of values without a percent sign, the unit is the whole request.
        let read = |_: &str| Ok("time,value\n0,0.25\n3600,25%\n".to_owned());
        let scenario = match parse_any("x.yaml", text, &read) {
            Ok(AnyScenario::Vpa(scenario)) => scenario,
            other => panic!("{other:?}"),
        };
        let UsageSource::PerPod(Signal::Constant(now)) = &scenario.metrics.resources[0].source
        else {
            panic!("a constant")
        };
        assert_eq!(now.to_string(), "1");
        let history = scenario.history.expect("a history");
        let recorded = history.resource[0].source.signals().next().and_then(Signal::recorded);
        let samples = &recorded.expect("a recording").samples;
        let values: Vec<Option<i64>> = samples.iter().map(|sample| sample.milli).collect();
        assert_eq!(values[..2], [Some(500), Some(500)]);
    }

    #[test]
    fn percentages_are_of_the_request() {
        assert_eq!(usage("perPod: 50%"), "500m");
        assert_eq!(usage("perPod: 62.5%"), "625m");
        let steps = usage("perPod: {steps: [{at: 0s, value: 10%}, {at: 30s, value: \"2\"}]}");
        assert_eq!(steps, usage("perPod: {steps: [{at: 0s, value: 100m}, {at: 30s, value: 2}]}"));
        let noisy = usage("perPod: {noise: 10%, of: 50%}");
        assert_eq!(noisy, usage("perPod: {noise: 10, of: 500m}"));
        let sine = usage("perPod: {sine: {mean: 50%, amplitude: 20%, period: 1m}}");
        assert_eq!(sine, usage("perPod: {sine: {mean: 500m, amplitude: 200m, period: 1m}}"));
    }
}
