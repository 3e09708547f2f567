//! Drafts of scenarios of HPAs with the same target, and possibly of the VPA that changes its pods.

use serde_json::{Map, Value};

use super::hpa::Hpa;
use super::load::{AFTER_THE_LAST_CHANGE, HpaName, Load};
use super::objects::Object;
use super::pods::Pods;
use super::recommender::{self, Vpa};
use super::target::{
    DraftTarget, apply_requests, check_containers, check_requests_of_containers, fill_requests,
    missing_target, namespace_note, read_target, startup,
};
use super::units::Loaded;
use super::usage::{self, Usage};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions};
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::kinds::API_VERSION;
use kube_lockstep_scenario::metrics::Metrics;
use kube_lockstep_scenario::raw::{AnyManifest, ScenarioFile, Workload};
use kube_lockstep_scenario::recording::RecordingError;
use kube_lockstep_scenario::resolve::{Reader, recorded_length};
use kube_lockstep_scenario::resolved::ManifestNote;
use kube_lockstep_scenario::workload::ScaleDownOrder;
use kube_lockstep_scenario::write;

/// The autoscalers of one target whose scenario has an HPA.
pub(super) struct Group<'a> {
    /// The HPAs, at least one.
    pub(super) hpas: &'a [Hpa],
    /// The VPA that changes the pods.
    pub(super) vpa: Option<&'a Vpa>,
}

impl Group<'_> {
    fn names(&self) -> Vec<HpaName> {
        let of_hpas = self.hpas.iter().map(|hpa| hpa.name.clone());
        of_hpas.chain(self.vpa.map(Vpa::full_name)).collect()
    }

    /// The largest `maxReplicas`.
    fn most_replicas(&self) -> i64 {
        self.hpas.iter().map(|hpa| hpa.hpa.max_replicas).max().unwrap_or(1).into()
    }

    /// The metrics of the HPAs, and the usage that the recommender of the VPA reads.
    fn metrics(&self, pods: &Pods) -> Vec<MetricSpec> {
        let of_hpas = self.hpas.iter().flat_map(|hpa| hpa.hpa.metrics.clone());
        let of_hpas: Vec<MetricSpec> = of_hpas.collect();
        let of_vpa = self.vpa.map_or_else(Vec::new, |vpa| vpa.usage_metrics(pods, &of_hpas));
        of_hpas.into_iter().chain(of_vpa).collect()
    }

    /// The workload. `ready`: the time after which new pods are ready.
    fn workload(
        &self,
        mut pods: Pods,
        replicas: i32,
        ready: Option<Span>,
        options: &DraftOptions,
        metrics: &[MetricSpec],
    ) -> Workload {
        if options.examples {
            fill_requests(&mut pods, metrics);
        }
        let target = &self.hpas[0].hpa.target;
        // With a VPA, limits matter: its admission controller keeps requests within them, or
        // changes both in proportion.
        let mut workload = pods.to_workload(&target.name, replicas, self.vpa.is_some());
        if target.kind == "StatefulSet" {
            workload.scale_down_order = ScaleDownOrder::Newest;
        }
        workload.startup.ready = ready.or(workload.startup.ready);
        workload
    }

    /// The end of a prediction that shows the used loads.
    fn end(
        &self,
        options: &DraftOptions,
        used: &[usize],
        read: Reader<'_>,
    ) -> Result<Span, DraftError> {
        let of_hpas = end(options, used, read)?;
        let loads = used_loads(options, used);
        Ok(self.vpa.map_or(of_hpas, |_| recommender::joint_end(options.until, &loads, of_hpas)))
    }

    /// Notes on the target, and on the status of the objects.
    fn manifest_notes(
        &self,
        target: Option<&Object>,
        mut of_target: Vec<String>,
    ) -> Vec<ManifestNote> {
        let rollout = target.and_then(|it| Some((it.name(), it.rollout_strategy()?)));
        of_target.extend(rollout.map(|(name, strategy)| {
            format!(
                "the strategy `{strategy}` of Rollout {name} is ignored: the prediction assumes \
                 that no update is in progress, and that all pods are of one version"
            )
        }));
        let mut notes = target.map_or_else(Vec::new, |target| target.notes(of_target));
        notes.extend(self.hpas[0].object.notes(Vec::from_iter(self.status_note(target))));
        notes
    }

    /// A note on the status of the objects, as in a list that `kubectl get` prints.
    fn status_note(&self, target: Option<&Object>) -> Option<String> {
        let hpas = self
            .hpas
            .iter()
            .filter(|hpa| hpa.has_status)
            .map(|hpa| format!("HPA {}", hpa.hpa.name));
        let vpa = self.vpa.filter(|vpa| vpa.has_status).map(|vpa| format!("VPA {}", vpa.vpa.name));
        let target = target.filter(|it| it.has_status());
        let target = target.map(|it| format!("{} {}", it.kind(), it.name()));
        let names: Vec<String> = hpas.chain(vpa).chain(target).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the status of {} is ignored: at the start, all pods are ready, and there are no \
                 earlier metrics and recommendations",
                names.join(", ")
            )
        })
    }

    /// Notes on a VPA in the same scenario.
    fn joint_notes(&self, pods: &Pods, options: &DraftOptions, used: &[usize]) -> Vec<String> {
        let loads = used_loads(options, used);
        self.vpa.map_or_else(Vec::new, |vpa| vpa.joint_notes(pods, &loads))
    }
}

/// Drafts the scenario of HPAs that scale the same target, and of the VPA that changes its pods.
pub(super) fn of_group(
    group: &Group<'_>,
    target: Option<&Object>,
    options: &DraftOptions,
    read: Reader<'_>,
) -> Result<Draft, DraftError> {
    let first = &group.hpas[0];
    let (kind, name) = (&first.hpa.target.kind, &*first.hpa.target.name);
    let pods = target.map(|target| read_target(target, AutoscalerKind::Hpa)).transpose()?;
    let mut pods = pods.unwrap_or_default();
    let (mut missing, mut of_target) = (Vec::new(), Vec::new());
    let names = group.names();
    let containers = check_containers(&pods, &format!("{kind} {name}"), &names, options)?;
    if group.vpa.is_some() {
        check_requests_of_containers(&pods, &names, &options.requests)?;
    }
    apply_requests(&mut pods, &names, &options.requests);
    let (most_replicas, without_request) = (group.most_replicas(), &|_: &str| None);
    let loaded = Loaded { pods: &pods, autoscalers: &names, most_replicas, without_request };
    loaded.check_units(options)?;
    let metric_specs = group.metrics(&pods);
    let (hpas, has_target) = (&names[..], target.is_some());
    let examples = options.examples;
    let has_vpa = group.vpa.is_some();
    let context = usage::Context { hpas, has_vpa, has_target, containers: &containers, examples };
    let mut usage = Usage::new(&options.loads, &mut pods, context);
    let metrics = usage.of(&metric_specs);
    let used_loads = std::mem::take(&mut usage.used);
    let until = group.end(options, &used_loads, read)?;
    let (mut of_usage, mut notes) =
        (std::mem::take(&mut usage.missing), std::mem::take(&mut usage.notes));
    let more_notes = usage.of_target;
    let replicas = options.replicas.or(pods.replicas);
    if target.is_none() && options.replicas.is_none() {
        let what = format!("{kind} {name}, which the HPA scales, is not in the manifests");
        missing.push(missing_target(what, &mut of_usage));
    } else if replicas.is_none() {
        let what = format!("{kind} {name} sets no replicas, so it starts with 1; see --replicas");
        of_target.push(what);
    }
    missing.extend(of_usage);
    of_target.extend(namespace_note(first, target));
    of_target.extend(more_notes);
    notes.extend(group.joint_notes(&pods, options, &used_loads));
    let ready = startup(&pods, options, &mut of_target);
    let workload = group.workload(pods, replicas.unwrap_or(1), ready, options, &metric_specs);
    missing.dedup();
    Ok(Draft {
        kind: AutoscalerKind::Hpa,
        name: first.name.to_string(),
        file: first.object.file.clone(),
        line: first.object.node.line,
        notes,
        manifest_notes: group.manifest_notes(target, of_target),
        missing,
        fields: fields_of(group, options, workload, metrics, until),
        until,
        used_loads,
        hpas: group.hpas.to_vec(),
        has_vpa,
        target: DraftTarget {
            kind: kind.clone(),
            name: name.to_owned(),
            namespace: first.name.namespace.clone(),
            containers,
            object: target.cloned(),
        },
    })
}

/// The fields of the scenario.
fn fields_of(
    group: &Group<'_>,
    options: &DraftOptions,
    workload: Workload,
    metrics: Metrics,
    until: Span,
) -> Map<String, Value> {
    let manifests = group.hpas.iter().map(|hpa| AnyManifest(hpa.hpa.manifest.clone()));
    let mut hpas: Vec<AnyManifest> = manifests.collect();
    let mut fields = write::fields(&ScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement: requirement(group),
        controller: options.flags.field(),
        hpa: if hpas.len() == 1 { hpas.pop() } else { None },
        hpas,
        workload,
        metrics,
        until: Time::ZERO + until,
        ..ScenarioFile::default()
    });
    // The VPA follows the HPAs.
    let before = fields.keys().take_while(|name| *name != "workload").count();
    for (name, value) in group.vpa.iter().flat_map(|vpa| write::fields(&vpa.fields())) {
        fields.shift_insert(before, name, value);
    }
    fields
}

/// `HPA web scales Deployment web from 2 to 10 replicas.`
fn requirement(Group { hpas, vpa }: &Group<'_>) -> String {
    let target = &hpas[0].hpa.target;
    let names: Vec<&str> = hpas.iter().map(|hpa| &*hpa.hpa.name).collect();
    let (subject, verb) = match names.as_slice() {
        [only] => (format!("HPA {only}"), "scales"),
        several => (format!("HPAs {}", several.join(", ")), "scale"),
    };
    let least = hpas.iter().map(|hpa| hpa.hpa.min_replicas).min().unwrap_or(1);
    let most = hpas.iter().map(|hpa| hpa.hpa.max_replicas).max().unwrap_or(1);
    let of_vpa = vpa.map_or_else(String::new, |vpa| {
        format!(", and VPA {} sets the requests of its pods", vpa.vpa.name)
    });
    let (kind, name) = (&target.kind, &target.name);
    format!("{subject} {verb} {kind} {name} from {least} to {most} replicas{of_vpa}.")
}

/// The loads that a scenario uses.
fn used_loads<'o>(options: &'o DraftOptions, used: &[usize]) -> Vec<&'o Load> {
    used.iter().map(|index| &options.loads[*index]).collect()
}

/// The end of a prediction that shows the used loads.
fn end(options: &DraftOptions, used: &[usize], read: Reader<'_>) -> Result<Span, DraftError> {
    if let Some(until) = options.until {
        return Ok(until);
    }
    let loads = || used.iter().map(|index| &options.loads[*index]);
    let recorded = recorded_end(loads(), read)?;
    let last = loads().filter_map(Load::end).max().max(recorded);
    Ok(last.filter(|last| *last > Span::ZERO).unwrap_or(AFTER_THE_LAST_CHANGE))
}

/// The end of the recorded loads among some loads. None: none is recorded.
pub(super) fn recorded_end<'l>(
    loads: impl Iterator<Item = &'l Load>,
    read: Reader<'_>,
) -> Result<Option<Span>, DraftError> {
    recorded_length(loads.filter_map(Load::recorded), read).map_err(|error| {
        let RecordingError { what, hint, .. } = error;
        DraftError::Options { what, hint }
    })
}
