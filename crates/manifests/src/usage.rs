//! The metrics of a scenario from loads: each metric of an HPA, and each resource that a VPA reads,
//! gets the load of its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::load::{HpaName, Load, Subject};
use super::pods::Pods;
use super::recommender::ValidVpa;
use super::shape::whole_bytes;
use super::{Missing, MissingValue};
use kube_autoscaler_models::api::{
    LabelSelector, MetricIdentifier, MetricSpec, MetricTarget, ObjectMetricSource,
};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_lockstep_scenario::defaults::APP;
use kube_lockstep_scenario::entries::Entries;
use kube_lockstep_scenario::metrics::{
    DescribedObject, ExternalMetric, Metrics, ObjectMetric, PodsMetric, ResourceUsage, Series,
    UsageSource,
};
use kube_lockstep_scenario::recorded::Recorded;
use kube_lockstep_scenario::signal::Signal;

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
    pub target_notes: Vec<String>,
    metrics: Metrics,
}

/// The autoscalers whose metrics get loads.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub autoscalers: &'a [HpaName],
    /// The metrics of the HPAs. Empty if there is no HPA.
    pub hpa_metrics: &'a [MetricSpec],
    pub has_hpa: bool,
    /// The VPA that reads the usage of the containers.
    pub vpa: Option<&'a ValidVpa>,
    /// True if the manifests contain the target. Otherwise, its containers are assumed.
    pub has_target: bool,
    /// The containers of the target. Empty: they are unknown.
    pub containers: &'a [String],
    /// True if a metric without a load has its target as its value, so that the user can edit it.
    pub examples: bool,
}

impl Context<'_> {
    /// Returns false if the load is for a container that only other targets have.
    fn has_container(&self, load: &Load) -> bool {
        let container = load.subject.container.as_ref();
        self.containers.is_empty() || container.is_none_or(|it| self.containers.contains(it))
    }
}

/// The autoscalers' metrics of a resource.
#[derive(Default)]
struct Readers<'a> {
    /// The targets of the metrics of pods.
    pod_targets: Vec<&'a MetricTarget>,
    /// The containers of the metrics of containers, with their targets.
    container_targets: Vec<(Arc<str>, Option<&'a MetricTarget>)>,
    /// True if a VPA reads the usage of the pods, but no HPA does.
    only_by_vpa: bool,
}

impl Readers<'_> {
    fn are_none(&self) -> bool {
        self.pod_targets.is_empty() && self.container_targets.is_empty() && !self.only_by_vpa
    }

    /// The container that has the usage of a pod, if the metrics name one.
    fn container(&self) -> Option<&Arc<str>> {
        self.container_targets.first().map(|(container, _)| container)
    }
}

/// The value of a metric.
struct Found {
    signal: Signal,
    total: bool,
}

impl Found {
    /// The value of the series that the selector matches: without labels, or with some.
    fn selected_series(self, metric: &MetricIdentifier) -> (Option<Signal>, Vec<Series>) {
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
            target_notes: Vec::new(),
            metrics: Metrics::default(),
        }
    }

    /// The field `metrics`.
    pub(crate) fn map(&mut self) -> Metrics {
        for resource in ["cpu", "memory"] {
            self.add_resource(resource);
        }
        for metric in self.context.hpa_metrics {
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

    /// The metrics of a resource.
    fn readers(&self, resource: &str) -> Readers<'a> {
        let Context { hpa_metrics, has_hpa, vpa, .. } = self.context;
        let mut readers = Readers::default();
        for metric in hpa_metrics {
            if let Some(source) = metric.resource.as_ref().filter(|it| *it.name == *resource) {
                readers.pod_targets.push(&source.target);
            }
            let source = metric.container_resource.as_ref();
            if let Some(source) = source.filter(|it| *it.name == *resource) {
                readers.container_targets.push((source.container.clone(), Some(&source.target)));
            }
        }
        let Some(vpa) = vpa.filter(|_| readers.are_none()) else { return readers };
        if has_hpa || self.pods.containers.len() == 1 {
            readers.only_by_vpa = vpa.reads_any(self.pods, resource);
        } else {
            let containers = self.pods.containers.iter().map(|it| it.name.clone());
            let read = containers.filter(|name| vpa.reads(name, resource));
            readers.container_targets = read.map(|name| (name, None)).collect();
        }
        readers
    }

    /// Adds the usage of a resource, which several metrics may refer to.
    fn add_resource(&mut self, resource: &str) {
        let readers = self.readers(resource);
        let has_hpa = self.context.has_hpa;
        if has_hpa && readers.are_none() {
            return;
        }
        let mut loads = self.applicable(|load| load.subject.name == resource);
        let is_divided = !has_hpa && self.pods.containers.len() != 1;
        if !is_divided {
            loads = self.without_replaced(loads, &readers);
        }
        if has_hpa {
            self.note_on_loads_of_pods(resource, &loads, &readers);
        }
        self.check_requests_of_targets(resource, &readers);
        if loads.is_empty() && readers.are_none() {
            return;
        }
        if loads.is_empty() && !is_divided {
            self.missing_resource(resource, &readers);
            return;
        }
        let all = self.loads;
        let only = match (loads.as_slice(), readers.container_targets.len()) {
            _ if is_divided => None,
            ([only], 0 | 1) => Some(&all[*only]),
            // Several loads of a container are an error.
            ([.., last], _) if !has_hpa => Some(&all[*last]),
            _ => None,
        };
        if let Some(load) = only {
            // The usage of a pod is in its first container.
            let named = load.subject.container.as_deref();
            let only_container = self.pods.containers.first().filter(|_| !has_hpa);
            let only_container = only_container.map(|it| it.name.clone());
            let container =
                named.or(readers.container().or(only_container.as_ref()).map(|it| &**it));
            let by_pod = load.is_by_pod();
            if container.is_none() || load.total || by_pod || !has_hpa {
                self.make_first(container);
                let usage = self.shared(resource, load, container);
                self.add_usage(resource, usage);
                return;
            }
        }
        self.add_containers(resource, &loads, &readers);
    }

    /// Checks the requests that the utilization is calculated from.
    fn check_requests_of_targets(&mut self, resource: &str, readers: &Readers<'_>) {
        if readers.pod_targets.iter().any(|target| target.average_utilization.is_some()) {
            self.check_requests(resource, None);
        }
        for (container, target) in &readers.container_targets {
            if target.is_some_and(|target| target.average_utilization.is_some()) {
                self.check_requests(resource, Some(container));
            }
        }
    }

    /// Notes that more pods do not lower a load per pod: above the target, it drives an HPA to its
    /// maximum, and a recording may be meant as a total.
    fn note_on_loads_of_pods(&mut self, resource: &str, loads: &[usize], readers: &Readers<'_>) {
        for load in loads.iter().map(|index| &self.loads[*index]) {
            let container = load.subject.container.as_deref();
            let is_its_own = |name: &str| container.is_none_or(|container| *name == *container);
            let own_container_targets =
                readers.container_targets.iter().filter(|(name, _)| is_its_own(name));
            let own_container_targets = own_container_targets
                .filter_map(|(name, target)| Some(((*target)?, Some(&**name))));
            let pod_targets = readers.pod_targets.iter().map(|target| (*target, None));
            let mut targets = pod_targets.chain(own_container_targets);
            let exceeds = |(target, container): (&MetricTarget, Option<&str>)| {
                let request = self.pods.request(resource, container);
                load.constant_of_each(request).is_some_and(|usage| is_above(usage, target, request))
            };
            let total = Load::total_of(resource, container);
            let is_average = |it: &&Recorded| it.by.is_none() && it.percent.is_none();
            let average = load.recordings().into_iter().find(is_average);
            if let Some(recorded) = average.filter(|_| !load.total) {
                let path = recorded.source.path();
                self.notes.push(format!(
                    "{path}: each pod has the recorded usage, however many pods there are; if it \
                     is the usage of all pods together, use --load {total}"
                ));
            }
            if let Some(shown) = load.constant().filter(|_| targets.any(exceeds)) {
                let first = readers.container().map(|name| &**name);
                let whose = container.or(first).map(|name| format!("container {name} of "));
                let whose = whose.unwrap_or_default();
                self.notes.push(format!(
                    "{whose}each pod uses {shown} however many pods there are, so more \
                     pods don't lower the usage of each, and the HPA scales to its maximum; for \
                     work that the pods share, use --load {total}"
                ));
            }
        }
    }

    /// The indices of the loads that apply to these autoscalers. A load for one autoscaler takes
    /// precedence over a load for all of them, unless they are for different containers.
    fn applicable(&mut self, matches: impl Fn(&Load) -> bool) -> Vec<usize> {
        let all: Vec<usize> = (0..self.loads.len())
            .filter(|index| {
                let load = &self.loads[*index];
                load.subject.is_of(self.context.autoscalers)
                    && self.context.has_container(load)
                    && matches(load)
            })
            .collect();
        self.used.extend(&all);
        let subject = |index: &usize| &self.loads[*index].subject;
        let with_hpa: Vec<&Subject> =
            all.iter().map(subject).filter(|subject| subject.hpa.is_some()).collect();
        let is_overridden = |subject: &Subject| {
            subject.hpa.is_none()
                && with_hpa.iter().any(|other| {
                    [&subject.container, &other.container].contains(&&None)
                        || subject.container == other.container
                })
        };
        let autoscalers = |subject: &Subject| -> Vec<bool> {
            let all = self.context.autoscalers.iter();
            all.map(|it| subject.is_of(std::slice::from_ref(it))).collect()
        };
        let conflict = with_hpa.iter().find_map(|one| {
            let is_other = |other: &&&Subject| {
                one.hpa != other.hpa
                    && (&one.name, &one.container, &one.labels)
                        == (&other.name, &other.container, &other.labels)
            };
            Some((*one, *with_hpa.iter().find(is_other)?))
        });
        if let Some((one, other)) = conflict {
            let shared = Subject { hpa: None, ..one.clone() };
            let missing = only_one(one, other);
            let flag = match autoscalers(one) == autoscalers(other) {
                true => missing.flag,
                false => format!("--load {shared}=… for both autoscalers"),
            };
            self.missing.push(Missing { flag, ..missing });
        }
        all.iter().filter(|index| !is_overridden(subject(index))).copied().collect()
    }

    /// The container of a load that names none.
    fn first(&self, readers: &Readers<'_>) -> Arc<str> {
        let first = self.pods.containers.first().map(|it| &it.name);
        readers.container().or(first).cloned().unwrap_or_else(|| APP.into())
    }

    /// Leaves out loads that name no container if the container that they are for has a load of its
    /// own. Other targets can use them.
    fn without_replaced(&mut self, mut loads: Vec<usize>, readers: &Readers<'_>) -> Vec<usize> {
        let all = self.loads;
        let subject = |index: &usize| &all[*index].subject;
        let first = self.first(readers);
        let own = loads.iter().map(subject).find(|it| it.container.as_deref() == Some(&*first));
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
        self.check_relative(resource, load, container);
        let is_whole =
            container.is_none() || !self.context.has_hpa || self.pods.running().count() == 1;
        let signal = match is_whole {
            true => load.signal_of_whole(request),
            false => load.signal(request.unwrap_or(0)),
        };
        if !load.total {
            return UsageSource::PerPod(signal);
        }
        let main = self.pods.main_container().filter(|_| self.context.vpa.is_some());
        let container = container.or(main.map(|it| &*it.name));
        let limit = self.pods.limit(resource, container);
        if limit.is_none() && load.is_backlog() {
            let what = format!(
                "a backlog of {resource} requires a {resource} limit, but the pods have none"
            );
            let without = format!("--load {resource}=total:8, a load without a backlog");
            self.missing.push(Missing::load(what, without));
        }
        if let Some(limit) = &limit {
            let user = container.map_or("a pod".to_owned(), |name| format!("container {name}"));
            self.target_notes.push(format!("{user} uses at most its cpu limit, {limit}"));
        }
        UsageSource::Load { total: signal, limit }
    }

    /// Usage by container.
    fn add_containers(&mut self, resource: &str, loads: &[usize], readers: &Readers<'_>) {
        let mut containers = Entries::default();
        let mut refused = false;
        let example = examples(resource).each;
        for index in loads {
            let load = &self.loads[*index];
            let refusal = self.not_combined(resource, load);
            let container = match refusal {
                None => self.container_of(load, loads, readers),
                Some(missing) => Err(missing),
            };
            match container {
                Ok(name) => {
                    let request = self.pods.request(resource, Some(&name));
                    self.check_relative(resource, load, Some(&name));
                    containers.insert(name, load.signal_of_whole(request));
                }
                Err(missing) => {
                    refused = true;
                    self.missing.push(missing);
                }
            }
        }
        let has_none = |name: &Arc<str>| containers.get(name).is_none();
        let read = readers.container_targets.iter().map(|(container, _)| container.clone());
        let read: Vec<Arc<str>> = read.filter(has_none).collect();
        let running = self.pods.running().filter(|_| self.context.has_hpa);
        let running = running.map(|container| container.name.clone());
        let running: Vec<Arc<str>> = running.filter(has_none).collect();
        let is_used = !readers.container_targets.is_empty() || refused;
        for name in running.iter().filter(|_| !is_used) {
            self.target_notes.push(format!(
                "container {name} has no load of {resource}, so its usage is 0; to set it, add \
                 --load {resource}/{name}={example}"
            ));
        }
        for container in read.iter().filter(|_| !refused) {
            let what = format!("there is no load of {resource} of container {container}");
            let flag = format!("--load {resource}/{container}={example}");
            self.missing.push(Missing::load(what, flag));
        }
        if self.context.examples {
            // A load that is refused may be that of any container.
            for name in read.into_iter().chain(running.into_iter().filter(|_| refused)) {
                containers.insert(name, Signal::Constant(Quantity::as_written(example)));
            }
        }
        if !self.context.has_hpa {
            containers.0.sort_by(|one, other| one.0.cmp(&other.0));
        }
        if !containers.is_empty() {
            self.add_usage(resource, UsageSource::PerContainer(containers));
        }
    }

    /// The container that has a load. Without an HPA, a load that names none is that of the only
    /// container without a load of its own.
    fn container_of(
        &self,
        load: &Load,
        loads: &[usize],
        readers: &Readers<'_>,
    ) -> Result<Arc<str>, Missing> {
        if let Some(name) = &load.subject.container {
            return Ok(name.as_str().into());
        }
        if self.context.has_hpa {
            return Ok(self.first(readers));
        }
        let named = |name: &str| {
            let containers = loads.iter().map(|index| &self.loads[*index].subject.container);
            containers.flatten().any(|container| *container == *name)
        };
        let mut open = readers.container_targets.iter().filter(|(name, _)| !named(name));
        if let (Some((name, _)), None) = (open.next(), open.next()) {
            return Ok(name.clone());
        }
        let resource = &load.subject.name;
        let names: Vec<&str> = self.pods.containers.iter().map(|it| &*it.name).collect();
        let what = format!(
            "the load of {resource} names no container, and the pods have {}",
            names.join(", ")
        );
        let example = examples(resource).each;
        let flags = names.iter().map(|name| format!("--load {resource}/{name}={example}"));
        Err(Missing::load(what, flags.collect::<Vec<_>>().join(" ")))
    }

    /// Asks for another load in place of one that can't be combined with loads of other containers.
    fn not_combined(&self, resource: &str, load: &Load) -> Option<Missing> {
        let (has_hpa, example) = (self.context.has_hpa, examples(resource).each);
        let by_pod = load.is_by_pod();
        let (what, flag) = match load.total {
            true if has_hpa => (
                format!("a total of {resource} can't be combined with loads of containers"),
                format!("--load {resource}/CONTAINER={example} for each container"),
            ),
            true => {
                let container = load.subject.container.as_deref().unwrap_or("CONTAINER");
                (
                    format!(
                        "a total of {resource} is not supported for pods with several containers"
                    ),
                    format!("--load {resource}/{container}={example}, the usage of each pod"),
                )
            }
            false if has_hpa && by_pod => (
                format!(
                    "a load of {resource} with `by` can't be combined with loads of other \
                     containers: each pod would have several series"
                ),
                format!(
                    "--load {resource}/CONTAINER=prometheus(FILE) for each container, without \
                     `by`: a recording of the average of the pods"
                ),
            ),
            false => return None,
        };
        Some(Missing::load(what, flag))
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
            let flag = self.request_flag(resource, Some(&name));
            self.missing.push(Missing::request(what, flag));
        }
    }

    /// The flag that sets the request of a container, or of the pods.
    fn request_flag(&self, resource: &str, container: Option<&str>) -> String {
        let value = examples(resource).request;
        match container.filter(|_| self.pods.containers.len() > 1) {
            Some(name) => format!("--request {resource}/{name}={value}"),
            None => format!("--request {resource}={value}"),
        }
    }

    /// A load in percent requires a request of the container, or of the pods.
    fn check_relative(&mut self, resource: &str, load: &Load, container: Option<&str>) {
        if load.is_relative() && self.pods.request(resource, container).is_none() {
            let whose = match container.filter(|_| self.context.has_target) {
                Some(name) => format!("container {name} requests"),
                None => "the pods request".to_owned(),
            };
            let what = format!("the load of {resource} is in percent, but {whose} none");
            let flag = self.request_flag(resource, container);
            // The utilization may require the same request.
            match self.missing.iter_mut().find(|it| it.flag == flag) {
                Some(missing) => missing.value = MissingValue::Request { of_load: true },
                None => {
                    self.missing.push(Missing { what, flag, value: MissingValue::RequestOfLoad });
                }
            }
        }
    }

    fn missing_resource(&mut self, resource: &str, readers: &Readers<'_>) {
        let is_of_vpa = readers.only_by_vpa && self.context.has_hpa;
        let reader = if is_of_vpa { ", which the VPA reads" } else { "" };
        let what = format!("there is no load of {resource}{reader}");
        let Examples { each, total, .. } = examples(resource);
        let named = readers.container().filter(|_| readers.pod_targets.is_empty());
        let flag = match named {
            Some(container) => format!("--load {resource}/{container}={each} (per pod)"),
            None => format!(
                "--load {resource}={each} (per pod) or --load {resource}=total:{total} (shared)"
            ),
        };
        self.missing.push(Missing::load(what, flag));
        if !self.context.examples {
            return;
        }
        self.make_first(named.map(|name| &**name));
        let container_target = readers.container_targets.first().and_then(|(_, target)| *target);
        let target = readers.pod_targets.first().copied().or(container_target);
        let request = self.pods.request(resource, readers.container().map(|name| &**name));
        let idle = target.and_then(|target| at_target(resource, target, request));
        let value = idle.unwrap_or_else(|| Quantity::as_written(each));
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
            let is_this_metric = *load.subject.name == *metric.name;
            is_this_metric && (load.subject.labels.is_empty() || load.subject.labels == labels)
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
        if matches!(signal, Signal::Backlog(_)) {
            let name = &metric.name;
            let what = format!(
                "{name} is a metric of type Pods; only metrics of type Object or External can be \
                 queues"
            );
            self.missing.push(Missing::load(what, form.replace("NAME", name)));
            return;
        }
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
            let (value, series) = found.selected_series(&source.metric);
            self.metrics.objects.push(ObjectMetric { name, object, value, series });
        }
    }

    fn add_external(&mut self, metric: &MetricIdentifier, target: &MetricTarget) {
        let Some(found) = self.find(metric, target, "--load NAME=30") else { return };
        let (name, (value, series)) = (metric.name.clone(), found.selected_series(metric));
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
fn only_one(one: &Subject, other: &Subject) -> Missing {
    let what =
        format!("the loads {one} and {other} can't be combined: both describe the same pods");
    Missing::load(what, "only one of the two".to_owned())
}

/// The note on a load that a load of this container replaces.
fn replaced(load: &Subject, by: &Subject, container: &str) -> String {
    format!("container {container} has the load of --load {by}, not that of --load {load}")
}

/// Returns true if the usage of each pod, in milli-units, is above the target and the default
/// tolerance.
fn is_above(usage: i64, target: &MetricTarget, request: Option<i64>) -> bool {
    let requested = target.average_utilization.zip(request);
    let requested = requested.map(|(percent, request)| request / 100 * i64::from(percent));
    let target = requested.or(target.average_value.as_ref().map(Quantity::milli));
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

/// Examples of amounts of a resource, for messages and drafts.
#[derive(Clone, Copy)]
pub(super) struct Examples {
    /// The usage of each pod.
    pub each: &'static str,
    /// The usage of all pods.
    pub total: &'static str,
    pub request: &'static str,
}

pub(super) fn examples(resource: &str) -> Examples {
    match resource {
        "cpu" => Examples { each: "300m", total: "8", request: "500m" },
        _ => Examples { each: "200Mi", total: "8Gi", request: "512Mi" },
    }
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
