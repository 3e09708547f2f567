//! Usage in percent of the request: `perPod: 50%`. The percentages are replaced by amounts before
//! the file is decoded, so nothing else knows them.

use super::decode::{Nulls, decode};
use super::error::Problem;
use super::node::{Kind, Node};
use super::raw::Workload;
use crate::model::quantity::Quantity;

/// Replaces the percentages in the usage of resources. Returns the problems of the percentages
/// without an amount, which are replaced by 0.
pub(super) fn replace(root: &mut Node) -> Vec<Problem> {
    let workload = root.entry("workload").map(|(_, node)| node);
    let workload = workload.and_then(|node| decode(node, Nulls::Refused).ok());
    let mut percentages = Percentages { workload, problems: Vec::new() };
    let usage = root.entry_mut("metrics").and_then(|metrics| metrics.entry_mut("resource"));
    let Some(Kind::List(entries)) = usage.map(|usage| &mut usage.kind) else { return Vec::new() };
    for entry in entries {
        let Some(resource) = entry.entry("name").and_then(|(_, name)| text(name)) else { continue };
        let resource = resource.to_owned();
        for total in ["load", "limit"] {
            let Some(node) = entry.entry_mut(total) else { continue };
            each_value(node, &mut |value, of| percentages.refuse(value, of));
        }
        let mut of = |node: &mut Node, container: Option<&str>| {
            each_value(node, &mut |value, of| percentages.replace(value, of, &resource, container));
        };
        if let Some(node) = entry.entry_mut("perPod") {
            of(node, None);
        }
        if let Some(Kind::Map(containers)) = entry.entry_mut("containers").map(|it| &mut it.kind) {
            containers.iter_mut().for_each(|(name, node)| of(node, Some(&name.text)));
        }
        if let Some(Kind::List(exceptions)) = entry.entry_mut("pods").map(|it| &mut it.kind) {
            let values = exceptions.iter_mut().filter_map(|entry| entry.entry_mut("value"));
            values.for_each(|node| of(node, None));
        }
    }
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
    if matches!(signal.kind, Kind::Scalar { .. }) {
        return visit(signal, Precision::Value);
    }
    for list in ["steps", "points"] {
        if let Some(Kind::List(points)) = signal.entry_mut(list).map(|it| &mut it.kind) {
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
    if let Some(of) = signal.entry_mut("of") {
        each_value(of, visit);
    }
}

/// The percentages of a file.
struct Percentages {
    /// The pods. None: the workload is invalid, which is reported when the file is decoded.
    workload: Option<Workload>,
    problems: Vec<Problem>,
}

impl Percentages {
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
        self.add(value, what.to_owned(), Some(hint.to_owned()));
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
        let Some(workload) = &self.workload else { return set(value, "0".to_owned()) };
        let Some(milli) = milli(workload, resource, container) else {
            let subject = container.map_or("the pods have".to_owned(), |container| {
                format!("the container `{container}` has")
            });
            let what = format!("a percentage requires a {resource} request, but {subject} none");
            let hint =
                format!("add `requests: {{{resource}: …}}` to the container, or write an amount");
            return self.add(value, what, Some(hint));
        };
        let amount = milli as f64 * percent / 100.0;
        let text = match (resource, precision) {
            (_, Precision::Unit) => format!("{:.9}", amount / 1000.0),
            ("memory", Precision::Value) => format!("{:.0}", amount / 1000.0),
            _ => format!("{amount:.0}m"),
        };
        set(value, text);
    }

    /// Adds a problem, and replaces the percentage.
    fn add(&mut self, at: &mut Node, what: String, hint: Option<String>) {
        let Node { line, column, .. } = *at;
        self.problems.push(Problem { file: None, line, column, what, hint });
        set(at, "0".to_owned());
    }
}

/// The request in milli-units, by which the controller divides the usage. None: there is none.
fn milli(workload: &Workload, resource: &str, container: Option<&str>) -> Option<i64> {
    let Workload { containers, init_containers, resources, .. } = workload;
    let sidecars = init_containers.iter().filter(|init| init.restart_policy.is_some());
    let sidecars = sidecars.map(|init| (init.name.as_str(), &init.requests));
    let running = containers.iter().map(|it| (&*it.name, &it.requests)).chain(sidecars);
    let of_pod = resources.as_ref().filter(|_| container.is_none());
    if let Some(request) = of_pod.and_then(|of| of.requests.get(resource)) {
        return Some(request.milli());
    }
    let named = running.filter(|(name, _)| container.is_none_or(|of| of == *name));
    let requests = named.map(|(_, requests)| requests.get(resource).map(Quantity::milli));
    // The controller refuses pods in which one container has no request.
    requests.sum::<Option<i64>>().filter(|milli| *milli > 0)
}

fn text(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar { text, .. } => Some(text),
        Kind::List(_) | Kind::Map(_) => None,
    }
}

/// The number of a percentage.
fn percentage(value: &Node) -> Option<f64> {
    let number: f64 = text(value)?.strip_suffix('%')?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

fn set(value: &mut Node, text: String) {
    value.kind = Kind::Scalar { text, plain: true };
}

#[cfg(test)]
mod tests {
    use crate::scenario::resolved::{Signal, UsageSource};
    use crate::scenario::testing::{WEB, scenario};

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
