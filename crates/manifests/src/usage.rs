//! The metrics of a scenario from loads: each metric of the HPA gets the load of its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Missing;
use super::load::{HpaName, Load, Subject, whole_bytes};
use super::pods::Pods;
use kube_autoscaler_models::api::{
    ContainerResourceMetricSource, LabelSelector, MetricIdentifier, MetricSpec, MetricTarget,
    ObjectMetricSource,
};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_lockstep_scenario::defaults::APP;
use kube_lockstep_scenario::entries::Entries;
use kube_lockstep_scenario::metrics::{
    DescribedObject, ExternalMetric, Metrics, ObjectMetric, PodsMetric, ResourceUsage, Series,
    Signal, UsageSource,
};
use kube_lockstep_scenario::recorded::Recorded;

/// Builds the metrics of a scenario.
pub(crate) struct Usage<'a> {
    pub loads: &'a [Load],
    pub pods: &'a mut Pods,
    context: Context<'a>,
    /// The indices of the loads of this scenario's metrics.
    pub used: Vec<usize>,
    pub missing: Vec<Missing>,
    pub notes: Vec<String>,
    /// Notes on the manifest of the target.
    pub of_target: Vec<String>,
    metrics: Metrics,
}

/// The HPAs whose metrics get loads.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub hpas: &'a [HpaName],
    /// True if a VPA changes the requests of the pods.
    pub(super) has_vpa: bool,
    /// Whether the manifests contain the target. Otherwise, its containers are assumed.
    pub has_target: bool,
    /// The containers of the target. Empty: they are unknown.
    pub containers: &'a [String],
    /// Whether a metric without a load has its target as its value, so that the user can edit it.
    pub examples: bool,
}

impl Context<'_> {
    /// Returns false if the load is for a container that only other targets have.
    fn has_container(&self, load: &Load) -> bool {
        let container = load.subject.container.as_ref();
        self.containers.is_empty() || container.is_none_or(|it| self.containers.contains(it))
    }
}

/// The value of a metric.
struct Found {
    signal: Signal,
    total: bool,
}

impl Found {
    /// The value of the series that the selector matches: without labels, or with some.
    fn of_series(self, metric: &MetricIdentifier) -> (Option<Signal>, Vec<Series>) {
        let labels = required_labels(metric.selector.as_ref());
        match labels.is_empty() {
            true => (Some(self.signal), Vec::new()),
            false => (None, vec![Series { labels, value: self.signal }]),
        }
    }
}

impl<'a> Usage<'a> {
    pub(crate) fn new(loads: &'a [Load], pods: &'a mut Pods, context: Context<'a>) -> Usage<'a> {
        Usage {
            loads,
            pods,
            context,
            used: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
            of_target: Vec::new(),
            metrics: Metrics::default(),
        }
    }

    /// The field `metrics`.
    pub(crate) fn of(&mut self, metrics: &[MetricSpec]) -> Metrics {
        for resource in ["cpu", "memory"] {
            self.add_resource(resource, metrics);
        }
        for metric in metrics {
            if let Some(source) = &metric.pods {
                self.add_pods(&source.metric, &source.target);
            } else if let Some(source) = &metric.object {
                self.add_object(source);
            } else if let Some(source) = &metric.external {
                self.add_external(&source.metric, &source.target);
            }
        }
        std::mem::take(&mut self.metrics)
    }

    /// Adds the usage of a resource, which several metrics may refer to.
    fn add_resource(&mut self, resource: &str, metrics: &[MetricSpec]) {
        let of_pod = metrics.iter().filter_map(|it| it.resource.as_ref());
        let of_pod: Vec<&MetricTarget> =
            of_pod.filter(|it| *it.name == *resource).map(|it| &it.target).collect();
        let of_containers = metrics.iter().filter_map(|it| it.container_resource.as_ref());
        let of_containers: Vec<&ContainerResourceMetricSource> =
            of_containers.filter(|it| *it.name == *resource).collect();
        let asked = !of_pod.is_empty() || !of_containers.is_empty();
        if !asked {
            return;
        }
        let loads = self.applicable(|load| load.subject.name == resource);
        let loads = self.without_replaced(loads, &of_containers);
        self.note_on_loads_of_pods(resource, &loads, &of_pod, &of_containers);
        if of_pod.iter().any(|target| target.average_utilization.is_some()) {
            self.check_requests(resource, None);
        }
        for source in &of_containers {
            if source.target.average_utilization.is_some() {
                self.check_requests(resource, Some(&source.container));
            }
        }
        if loads.is_empty() {
            self.missing_resource(resource, &of_pod, &of_containers);
            return;
        }
        let only = match (loads.as_slice(), of_containers.as_slice()) {
            ([only], [] | [_]) => Some(&self.loads[*only]),
            _ => None,
        };
        // The usage of a pod is in its first container.
        let named = only.and_then(|load| load.subject.container.clone());
        let asked = of_containers.first().map(|source| source.container.to_string());
        if let (Some(load), Some(total)) = (only, only.map(|load| load.total)) {
            let container = named.or(asked);
            let by_pod = load.recorded().is_some_and(|recorded| recorded.by.is_some());
            if container.is_none() || total || by_pod {
                self.make_first(container.as_deref());
                let usage = self.shared(resource, load, container.as_deref());
                self.add_usage(resource, usage);
                return;
            }
        }
        self.add_containers(resource, &loads, &of_containers);
    }

    /// Notes that more pods do not lower a load per pod: above the target, it drives an HPA to its
    /// maximum, and a recording may be meant as a total.
    fn note_on_loads_of_pods(
        &mut self,
        resource: &str,
        loads: &[usize],
        of_pod: &[&MetricTarget],
        of_containers: &[&ContainerResourceMetricSource],
    ) {
        for load in loads.iter().map(|index| &self.loads[*index]) {
            let container = load.subject.container.as_deref();
            let of_its_container = of_containers
                .iter()
                .filter(|source| container.is_none_or(|container| *source.container == *container));
            let mut targets = of_pod
                .iter()
                .map(|target| (*target, None))
                .chain(of_its_container.map(|source| (&source.target, Some(&*source.container))));
            let exceeds = |(target, container): (&MetricTarget, Option<&str>)| {
                let request = self.pods.request(resource, container);
                load.constant_of_each(request).is_some_and(|usage| is_above(usage, target, request))
            };
            let total = Load::total_of(resource, container);
            let is_average = |it: &&Recorded| it.by.is_none() && it.percent.is_none();
            if let Some(recorded) = load.recorded().filter(|_| !load.total).filter(is_average) {
                let path = recorded.source.path();
                self.notes.push(format!(
                    "{path}: each pod has the recorded usage, however many pods there are; if it \
                     is the usage of all pods together, use --load {total}"
                ));
            }
            if let Some(shown) = load.constant().filter(|_| targets.any(exceeds)) {
                let first = of_containers.first().map(|source| &*source.container);
                let of_one = container.or(first).map(|name| format!("container {name} of "));
                let of_one = of_one.unwrap_or_default();
                self.notes.push(format!(
                    "{of_one}each pod uses {shown} however many pods there are, so more \
                     pods don't lower the usage of each, and the HPA scales to its maximum; for \
                     work that the pods share, use --load {total}"
                ));
            }
        }
    }

    /// The loads that apply to these HPAs. A load of one HPA takes precedence over one of all HPAs,
    /// unless they are of different containers.
    fn applicable(&mut self, matches: impl Fn(&Load) -> bool) -> Vec<usize> {
        let all: Vec<usize> = (0..self.loads.len())
            .filter(|index| {
                let load = &self.loads[*index];
                load.subject.is_of(self.context.hpas)
                    && self.context.has_container(load)
                    && matches(load)
            })
            .collect();
        self.used.extend(&all);
        let subject = |index: &usize| &self.loads[*index].subject;
        let of_one: Vec<&Subject> =
            all.iter().map(subject).filter(|subject| subject.hpa.is_some()).collect();
        let is_overridden = |subject: &Subject| {
            subject.hpa.is_none()
                && of_one.iter().any(|other| {
                    [&subject.container, &other.container].contains(&&None)
                        || subject.container == other.container
                })
        };
        let hpas = |subject: &Subject| -> Vec<bool> {
            self.context.hpas.iter().map(|it| subject.is_of(std::slice::from_ref(it))).collect()
        };
        let conflict = of_one.iter().find_map(|one| {
            let is_other = |other: &&&Subject| {
                one.hpa != other.hpa
                    && (&one.name, &one.container, &one.labels)
                        == (&other.name, &other.container, &other.labels)
            };
            Some((*one, *of_one.iter().find(is_other)?))
        });
        if let Some((one, other)) = conflict {
            let shared = Subject { hpa: None, ..one.clone() };
            let missing = only_one(one, other);
            let flag = match hpas(one) == hpas(other) {
                true => missing.flag,
                false => format!("--load {shared}=… for both autoscalers"),
            };
            self.missing.push(Missing { flag, ..missing });
        }
        all.iter().filter(|index| !is_overridden(subject(index))).copied().collect()
    }

    /// The container of a load that names none.
    fn first<'s>(&'s self, asked: &[&'s ContainerResourceMetricSource]) -> &'s str {
        let asked = asked.first().map(|source| &*source.container);
        let first = self.pods.containers.first().map(|it| &*it.name);
        asked.or(first).unwrap_or(APP)
    }

    /// Leaves out loads that name no container if the container that they are for has a load of its
    /// own. Other targets can use them.
    fn without_replaced(
        &mut self,
        mut loads: Vec<usize>,
        asked: &[&ContainerResourceMetricSource],
    ) -> Vec<usize> {
        let all = self.loads;
        let subject = |index: &usize| &all[*index].subject;
        let first = self.first(asked).to_owned();
        let own = loads.iter().map(subject).find(|it| it.container.as_ref() == Some(&first));
        let Some(own) = own else { return loads };
        let is_replaced = |index: &usize| subject(index).container.is_none();
        let notes = loads.iter().filter(|index| is_replaced(index));
        self.notes.extend(notes.map(|index| replaced(subject(index), own, &first)));
        self.used.retain(|index| !(loads.contains(index) && is_replaced(index)));
        loads.retain(|index| !is_replaced(index));
        loads
    }

    fn add_usage(&mut self, resource: &str, source: UsageSource) {
        self.metrics.resources.push(ResourceUsage::new(resource, source));
    }

    /// Usage in the first container: that of the load or of the HPA's metric, if they name one.
    fn shared(&mut self, resource: &str, load: &Load, container: Option<&str>) -> UsageSource {
        let request = self.pods.request(resource, container);
        self.check_relative(resource, load, request);
        let is_whole = container.is_none() || self.pods.running().count() == 1;
        let signal = match is_whole {
            true => load.signal_of_whole(request),
            false => load.signal(request.unwrap_or(0)),
        };
        if !load.total {
            return UsageSource::PerPod(signal);
        }
        let main = self.pods.main_container().filter(|_| self.context.has_vpa);
        let container = container.or(main.map(|it| &*it.name));
        let limit = self.pods.limit(resource, container);
        if let Some(limit) = &limit {
            let user = container.map_or("a pod".to_owned(), |name| format!("container {name}"));
            self.of_target.push(format!("{user} uses at most its cpu limit, {limit}"));
        }
        UsageSource::Load { total: signal, limit }
    }

    /// Usage by container.
    fn add_containers(
        &mut self,
        resource: &str,
        loads: &[usize],
        asked: &[&ContainerResourceMetricSource],
    ) {
        let mut containers = Entries::default();
        let mut refused = false;
        let example = if resource == "cpu" { "300m" } else { "200Mi" };
        for index in loads {
            let load = &self.loads[*index];
            if let Some(missing) = not_combined(resource, load, example) {
                refused = true;
                self.missing.push(missing);
                continue;
            }
            let name = load.subject.container.as_deref().unwrap_or(self.first(asked));
            let (name, request) = (Arc::from(name), self.pods.request(resource, Some(name)));
            self.check_relative(resource, load, request);
            containers.insert(name, load.signal_of_whole(request));
        }
        let has_none = |name: &Arc<str>| containers.get(name).is_none();
        let of_metrics: Vec<Arc<str>> =
            asked.iter().map(|source| source.container.clone()).filter(has_none).collect();
        let running = self.pods.running().map(|container| container.name.clone());
        let running: Vec<Arc<str>> = running.filter(has_none).collect();
        for name in running.iter().filter(|_| asked.is_empty() && !refused) {
            self.of_target.push(format!(
                "container {name} has no load of {resource}, so its usage is 0; to set it, add \
                 --load {resource}/{name}={example}"
            ));
        }
        for container in of_metrics.iter().filter(|_| !refused) {
            let what = format!("there is no load of {resource} of container {container}");
            let flag = format!("--load {resource}/{container}={example}");
            self.missing.push(Missing::load(what, flag));
        }
        if self.context.examples {
            // A load that is refused may be that of any container.
            for name in of_metrics.into_iter().chain(running.into_iter().filter(|_| refused)) {
                containers.insert(name, Signal::Constant(Quantity::as_written(example)));
            }
        }
        if !containers.is_empty() {
            self.add_usage(resource, UsageSource::PerContainer(containers));
        }
    }

    /// Moves a container to the front: it has the usage of the pod.
    fn make_first(&mut self, name: Option<&str>) {
        let containers = &mut self.pods.containers;
        if let Some(index) = containers.iter().position(|it| Some(&*it.name) == name) {
            let container = containers.remove(index);
            containers.insert(0, container);
        }
    }

    /// The utilization is the usage in percent of the request, which each container needs.
    fn check_requests(&mut self, resource: &str, of: Option<&str>) {
        if self.pods.requests.contains_key(resource) && of.is_none() {
            return;
        }
        let containers = self.pods.running().filter(|it| of.is_none_or(|name| *it.name == *name));
        let without: Vec<String> = containers
            .filter(|it| !it.requests.contains_key(resource))
            .map(|it| it.name.to_string())
            .collect();
        for name in without {
            let whose = match self.context.has_target {
                true => format!("container {name} requests"),
                false => "the pods request".to_owned(),
            };
            let what = format!("{whose} no {resource}, so the HPA can't calculate a utilization");
            let value = if resource == "cpu" { "500m" } else { "512Mi" };
            let flag = match self.pods.containers.len() {
                1 => format!("--request {resource}={value}"),
                _ => format!("--request {resource}/{name}={value}"),
            };
            self.missing.push(Missing::request(what, flag));
        }
    }

    fn check_relative(&mut self, resource: &str, load: &Load, request: Option<i64>) {
        if load.is_relative() && request.is_none() {
            let what = format!("the load of {resource} is in percent, but the pods request none");
            let value = if resource == "cpu" { "500m" } else { "512Mi" };
            let flag = format!("--request {resource}={value}");
            // The utilization may require the same request.
            if !self.missing.iter().any(|it| it.flag == flag) {
                self.missing.push(Missing::request(what, flag));
            }
        }
    }

    fn missing_resource(
        &mut self,
        resource: &str,
        of_pod: &[&MetricTarget],
        of_containers: &[&ContainerResourceMetricSource],
    ) {
        let has_value = |target: &&MetricTarget| at_target(resource, target, None).is_some();
        let is_of_an_hpa = !of_containers.is_empty() || of_pod.iter().any(has_value);
        let reader = if is_of_an_hpa { "" } else { ", which the VPA reads" };
        let what = format!("there is no load of {resource}{reader}");
        let (value, total) = if resource == "cpu" { ("300m", "8") } else { ("200Mi", "8Gi") };
        let flag = match of_containers.first().filter(|_| of_pod.is_empty()) {
            Some(source) => format!("--load {resource}/{}={value} (per pod)", source.container),
            None => format!(
                "--load {resource}={value} (per pod) or --load {resource}=total:{total} (shared)"
            ),
        };
        self.missing.push(Missing::load(what, flag));
        if !self.context.examples {
            return;
        }
        if let Some(source) = of_containers.first().filter(|_| of_pod.is_empty()) {
            self.make_first(Some(&source.container));
        }
        let container = of_containers.first().map(|source| &*source.container);
        let target = of_pod.first().copied().or(of_containers.first().map(|it| &it.target));
        let request = self.pods.request(resource, container);
        let idle = target.and_then(|target| at_target(resource, target, request));
        let value = idle.unwrap_or_else(|| Quantity::as_written(value));
        self.add_usage(resource, UsageSource::PerPod(Signal::Constant(value)));
    }

    /// The load of a metric; an example if there is none.
    fn find(
        &mut self,
        metric: &MetricIdentifier,
        target: &MetricTarget,
        form: &str,
    ) -> Option<Found> {
        let labels = required_labels(metric.selector.as_ref());
        let matches = |load: &Load| {
            let of_metric = *load.subject.name == *metric.name;
            of_metric && (load.subject.labels.is_empty() || load.subject.labels == labels)
        };
        // A load with labels takes precedence; this metric does not use the other one.
        let before = self.used.len();
        let all = self.applicable(matches);
        let has_labels = |index: &usize| !self.loads[*index].subject.labels.is_empty();
        let found = all.iter().copied().max_by_key(has_labels);
        let used = self.used.split_off(before);
        self.used.extend(used.iter().filter(|it| !all.contains(it) || Some(**it) == found));
        if let Some(index) = found {
            let load = &self.loads[index];
            return Some(Found { signal: load.signal(0), total: load.total });
        }
        let name = &metric.name;
        let what = format!("there is no load of {name}");
        self.missing.push(Missing::load(what, form.replace("NAME", name)));
        let signal = at_target(name, target, None).map_or_else(Signal::zero, Signal::Constant);
        self.context.examples.then_some(Found { signal, total: false })
    }

    fn add_pods(&mut self, metric: &MetricIdentifier, target: &MetricTarget) {
        let form = "--load NAME=100 (per pod) or --load NAME=total:1k (shared)";
        let Some(Found { signal, total }) = self.find(metric, target, form) else { return };
        let (name, labels) = (metric.name.clone(), required_labels(metric.selector.as_ref()));
        let source = match total {
            true => UsageSource::Load { total: signal, limit: None },
            false => UsageSource::PerPod(signal),
        };
        if !self.metrics.pods.iter().any(|other| other.name == name) {
            self.metrics.pods.push(PodsMetric { name, labels, source, exceptions: Vec::new() });
        }
    }

    fn add_object(&mut self, source: &ObjectMetricSource) {
        let form = "--load NAME=2k";
        let Some(found) = self.find(&source.metric, &source.target, form) else { return };
        let described = &source.described_object;
        let version = described.api_version.as_deref().filter(|it| it.contains('/'));
        let object = DescribedObject {
            api_version: version.map(Arc::from),
            kind: described.kind.as_str().into(),
            name: described.name.clone(),
        };
        let name = source.metric.name.clone();
        let mut others = self.metrics.objects.iter();
        if !others.any(|other| other.name == name && other.object == object) {
            let (value, series) = found.of_series(&source.metric);
            self.metrics.objects.push(ObjectMetric { name, object, value, series });
        }
    }

    fn add_external(&mut self, metric: &MetricIdentifier, target: &MetricTarget) {
        let Some(found) = self.find(metric, target, "--load NAME=30") else { return };
        let (name, (value, series)) = (metric.name.clone(), found.of_series(metric));
        let others = &mut self.metrics.externals;
        match others.iter_mut().find(|other| other.name == name) {
            None => others.push(ExternalMetric { name, value, series }),
            // One metric, selected by different labels.
            Some(same) if same.value.is_none() => {
                let new = series.into_iter().filter(|it| !same.series.contains(it));
                same.series.extend(new.collect::<Vec<_>>());
            }
            Some(_) => {}
        }
    }
}

/// What is missing if two loads are of the same pods and the same container.
pub(super) fn only_one(one: &Subject, other: &Subject) -> Missing {
    let what =
        format!("the loads {one} and {other} can't be combined: both describe the same pods");
    Missing::load(what, "only one of the two".to_owned())
}

/// The note on a load that a load of this container replaces.
pub(super) fn replaced(load: &Subject, by: &Subject, container: &str) -> String {
    format!("container {container} has the load of --load {by}, not that of --load {load}")
}

/// A load in place of one that can't be combined with loads of other containers.
fn not_combined(resource: &str, load: &Load, example: &str) -> Option<Missing> {
    let (what, flag) = if load.total {
        (
            format!("a total of {resource} can't be combined with loads of containers"),
            format!("--load {resource}/CONTAINER={example} for each container"),
        )
    } else {
        load.recorded()?.by.as_ref()?;
        (
            format!(
                "a load of {resource} with `by` can't be combined with loads of other containers: \
                 each pod would have several series"
            ),
            format!(
                "--load {resource}/CONTAINER=prometheus(FILE) for each container, without `by`: a \
                 recording of the average of the pods"
            ),
        )
    };
    Some(Missing::load(what, flag))
}

/// Returns true if the usage of each pod, in milli-units, is above the target and the default
/// tolerance.
fn is_above(usage: i64, target: &MetricTarget, request: Option<i64>) -> bool {
    let of_request = target.average_utilization.zip(request);
    let of_request = of_request.map(|(percent, request)| request / 100 * i64::from(percent));
    let target = of_request.or(target.average_value.as_ref().map(Quantity::milli));
    target.is_some_and(|target| usage / 11 > target / 10)
}

/// The value of a metric at which an HPA does not scale. `None` if the target has no value.
fn at_target(metric: &str, target: &MetricTarget, request: Option<i64>) -> Option<Quantity> {
    if let Some(percent) = target.average_utilization {
        let request = request.unwrap_or_else(|| example_request(metric).milli());
        let value = request / 100 * i64::from(percent);
        return Some(match metric {
            "memory" => whole_bytes(value),
            _ => Quantity::from_milli(value, Format::DecimalSI),
        });
    }
    target.average_value.as_ref().or(target.value.as_ref()).cloned()
}

/// The example of the request of a container.
pub(super) fn example_request(resource: &str) -> Quantity {
    Quantity::as_written(if resource == "cpu" { "1" } else { "1Gi" })
}

/// Labels that a selector matches, if they are simple to find.
pub(crate) fn required_labels(selector: Option<&LabelSelector>) -> BTreeMap<String, String> {
    let Some(selector) = selector else { return BTreeMap::new() };
    let mut labels = selector.match_labels.clone();
    for requirement in &selector.match_expressions {
        let value = match requirement.operator.as_str() {
            "In" => requirement.values.first().cloned(),
            "Exists" => Some("any".to_owned()),
            _ => None,
        };
        if let Some(value) = value {
            labels.entry(requirement.key.clone()).or_insert(value);
        }
    }
    labels
}
