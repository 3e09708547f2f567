//! Drafts of scenarios: of HPAs with the same target, of a VPA, or of HPAs and the VPA that changes
//! their pods.

use serde_json::{Map, Value};

use super::hpa::ValidHpa;
use super::load::{HpaName, Load};
use super::objects::Object;
use super::pods::Pods;
use super::recommender::ValidVpa;
use super::select::Values;
use super::shape::{AFTER_THE_LAST_CHANGE, End};
use super::target::{
    DraftTarget, apply_requests, check_containers, check_requests_of_containers, fill_requests,
    missing_target, named_containers, namespace_note, read_target, startup,
};
use super::units::Loaded;
use super::usage::{self, Usage};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Missing};
use kube_autoscaler_models::api::{MetricSpec, PodSpec};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::kinds::API_VERSION;
use kube_lockstep_scenario::metrics::Metrics;
use kube_lockstep_scenario::raw::{AnyManifest, Controller, ScenarioFile, Workload};
use kube_lockstep_scenario::recorded::Recorded;
use kube_lockstep_scenario::resolve::{Reader, recorded_lengths, usual_pod};
use kube_lockstep_scenario::workload::ScaleDownOrder;
use kube_lockstep_scenario::write;

/// The length of a prediction of a VPA without a recorded load: the recommender remembers about
/// eight days.
const DAYS: Span = Span::from_mins(8 * 24 * 60);

/// The least length of a prediction of an HPA and a VPA without a recorded load: the bounds of the
/// recommendation become narrow, and pods are evicted.
const WITH_VPA: Span = Span::from_mins(24 * 60);

/// The autoscalers of one scenario, which have the same target: HPAs, a VPA, or HPAs and the VPA
/// that changes their pods.
pub(super) struct Group<'a> {
    pub(super) hpas: &'a [ValidHpa],
    pub(super) vpa: Option<&'a ValidVpa>,
}

/// The pods of a group and their loads.
pub(super) struct Mapped {
    pub(super) target: DraftTarget,
    pub(super) pods: Pods,
    /// The replicas at the start. None if neither the target nor the options set them.
    pub(super) replicas: Option<i32>,
    pub(super) metrics: Metrics,
    pub(super) until: Span,
    pub(super) used_loads: Vec<usize>,
    pub(super) missing: Vec<Missing>,
    pub(super) notes: Vec<String>,
    /// Notes on the manifest of the target.
    pub(super) target_notes: Vec<String>,
}

/// The inputs of drafts, apart from manifests.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) options: &'a DraftOptions,
    pub(super) values: &'a Values,
    pub(super) read: Reader<'a>,
}

impl Group<'_> {
    /// The kind of the first autoscaler.
    fn kind(&self) -> AutoscalerKind {
        if self.hpas.is_empty() { AutoscalerKind::Vpa } else { AutoscalerKind::Hpa }
    }

    fn names(&self) -> Vec<HpaName> {
        let hpas = self.hpas.iter().map(|hpa| hpa.name.clone());
        hpas.chain(self.vpa.map(ValidVpa::full_name)).collect()
    }

    fn target(&self, object: Option<&Object>) -> DraftTarget {
        let first_hpa = self.hpas.first().map(|ValidHpa { name, hpa, .. }| {
            (&*hpa.target.kind, &*hpa.target.name, &name.namespace)
        });
        let first_vpa = self.vpa.map(|ValidVpa { namespace, vpa, .. }| {
            (&*vpa.target.kind, &*vpa.target.name, namespace)
        });
        let (kind, name, namespace) = first_hpa.or(first_vpa).unwrap_or(("", "", &None));
        DraftTarget {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.clone(),
            containers: Vec::new(),
            object: object.cloned(),
        }
    }

    /// Maps the loads to the metrics of the autoscalers.
    pub(super) fn map(
        &self,
        object: Option<&Object>,
        sources: Sources<'_>,
    ) -> Result<Mapped, DraftError> {
        let Sources { options, values, .. } = sources;
        let (names, mut target) = (self.names(), self.target(object));
        let pods = object.map(|target| read_target(target, self.kind())).transpose()?;
        let mut pods = pods.unwrap_or_default();
        target.containers = check_containers(&pods, &target.to_string(), &names, values)?;
        self.complete(&mut pods, &names, sources)?;
        let hpa_metrics: Vec<MetricSpec> =
            self.hpas.iter().flat_map(|hpa| hpa.hpa.metrics.clone()).collect();
        let context = usage::Context {
            autoscalers: &names,
            hpa_metrics: &hpa_metrics,
            has_hpa: !self.hpas.is_empty(),
            vpa: self.vpa,
            has_target: object.is_some(),
            containers: &target.containers,
            examples: options.examples,
        };
        let mut usage = Usage::new(&values.loads, &mut pods, context);
        let metrics = usage.map();
        let Usage { used: used_loads, missing: missing_usage, notes, target_notes, .. } = usage;
        let until = self.end(&used_loads, sources)?;
        let missing = if object.is_none() && options.replicas.is_none() {
            missing_target(&target, self.kind(), missing_usage)
        } else {
            missing_usage
        };
        let replicas = options.replicas.or(pods.replicas);
        Ok(Mapped {
            target,
            pods,
            replicas,
            metrics,
            until,
            used_loads,
            missing,
            notes,
            target_notes,
        })
    }

    /// Adds the requests of the options to the pods, and checks that requests and loads fit the
    /// pods.
    fn complete(
        &self,
        pods: &mut Pods,
        names: &[HpaName],
        Sources { options, values, .. }: Sources<'_>,
    ) -> Result<(), DraftError> {
        let is_vpa_alone = self.hpas.is_empty();
        if is_vpa_alone && pods.containers.is_empty() {
            pods.containers = named_containers(&values.loads);
        }
        if self.vpa.is_some() {
            check_requests_of_containers(pods, names, &values.requests)?;
        }
        apply_requests(pods, names, &values.requests);
        let most = self.hpas.iter().map(|hpa| hpa.hpa.max_replicas).max();
        let most = most.or(options.replicas).or(pods.replicas).unwrap_or(1);
        let usual = |resource: &str| usual_pod(resource).filter(|_| is_vpa_alone);
        let loaded = Loaded {
            pods,
            autoscalers: names,
            most_replicas: i64::from(most),
            without_request: &usual,
        };
        loaded.check_units(&values.loads)
    }

    /// The end of a prediction that shows the used loads.
    fn end(&self, used: &[usize], sources: Sources<'_>) -> Result<Span, DraftError> {
        let Sources { options, values, read } = sources;
        if let Some(until) = options.until {
            return Ok(until);
        }
        let loads = || used.iter().map(|index| &values.loads[*index]);
        let recordings: Vec<&Recorded> = loads().flat_map(Load::recordings).collect();
        let lengths = recorded_lengths(recordings.iter().copied(), read);
        let lengths = lengths.map_err(DraftError::Options)?;
        let length = |recorded: &Recorded| {
            let index = recordings.iter().position(|it| *it == recorded);
            index.map_or(Span::ZERO, |index| lengths[index])
        };
        let end = loads().map(|load| load.shape.end(&length)).fold(End::default(), End::max);
        Ok(match self.kind() {
            AutoscalerKind::Vpa => end_of_vpa(end),
            AutoscalerKind::Hpa => end_of_hpas(end, self.vpa.is_some()),
        })
    }

    /// The workload. `ready`: the time after which new pods are ready.
    fn workload(
        &self,
        mut pods: Pods,
        replicas: i32,
        ready: Option<Span>,
        options: &DraftOptions,
    ) -> Workload {
        if options.examples {
            let metrics = self.hpas.iter().flat_map(|hpa| &hpa.hpa.metrics);
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

    /// Notes on the target, and on the status of the objects.
    fn manifest_notes(
        &self,
        target: Option<&Object>,
        mut target_notes: Vec<String>,
    ) -> Vec<Diagnostic> {
        let rollout = target.and_then(|it| Some((it.name(), it.rollout_strategy()?)));
        target_notes.extend(rollout.map(|(name, strategy)| {
            format!(
                "the strategy `{strategy}` of Rollout {name} is ignored: the prediction assumes \
                 that no update is in progress, and that all pods are of one version"
            )
        }));
        let mut notes = target.map_or_else(Vec::new, |target| target.notes(target_notes));
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
}

/// The end of a prediction of HPAs, or of HPAs and a VPA. `last` is the end of the loads that are
/// not recorded, and `recorded` the length of the recorded loads.
fn end_of_hpas(End { computed, recorded }: End, has_vpa: bool) -> Span {
    let end = computed.max(recorded).filter(|end| *end > Span::ZERO);
    let end = end.unwrap_or(AFTER_THE_LAST_CHANGE);
    if has_vpa && recorded.is_none() { end.max(WITH_VPA) } else { end }
}

/// The end of a prediction of a VPA alone.
fn end_of_vpa(End { computed, recorded }: End) -> Span {
    // A load that changes until the usual end needs no time after it.
    let later = computed.filter(|last| last.0 > DAYS.0 + AFTER_THE_LAST_CHANGE.0);
    recorded.filter(|end| *end > Span::ZERO).or(later).unwrap_or(DAYS)
}

/// Drafts the scenario of HPAs that scale the same target, and of the VPA that changes its pods.
pub(super) fn draft_hpas(
    group: &Group<'_>,
    target: Option<&Object>,
    sources: Sources<'_>,
) -> Result<Draft, DraftError> {
    let first = &group.hpas[0];
    let Sources { options, values, .. } = sources;
    let mapped = group.map(target, sources)?;
    let Mapped { pods, metrics, until, used_loads, replicas, mut missing, mut notes, .. } = mapped;
    let mut target_notes = Vec::new();
    if replicas.is_none() && target.is_some() {
        let what =
            format!("{} sets no replicas, so it starts with 1; see --replicas", mapped.target);
        target_notes.push(what);
    }
    target_notes.extend(namespace_note(first, target));
    target_notes.extend(mapped.target_notes);
    let loads: Vec<&Load> = used_loads.iter().map(|index| &values.loads[*index]).collect();
    notes.extend(group.vpa.map_or_else(Vec::new, |vpa| vpa.notes_with_hpas(&pods, &loads)));
    let ready = startup(&pods, options, &mut target_notes);
    let workload = group.workload(pods, replicas.unwrap_or(1), ready, options);
    missing.dedup();
    Ok(Draft {
        kind: AutoscalerKind::Hpa,
        name: first.name.to_string(),
        file: first.object.file.clone(),
        line: first.object.node.line,
        notes: notes.into_iter().map(Diagnostic::from).collect(),
        notes_on_recommender: Vec::new(),
        manifest_notes: group.manifest_notes(target, target_notes),
        missing,
        fields: fields_of(group, options, workload, metrics, until),
        until,
        used_loads,
        hpas: group.hpas.to_vec(),
        vpa: group.vpa.cloned(),
        pod_spec: PodSpec::default(),
        target: mapped.target,
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
    let mut file = ScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement: requirement(group),
        controller: Controller::with_flags(options.flags.clone()),
        hpa: if hpas.len() == 1 { hpas.pop() } else { None },
        hpas,
        workload,
        metrics,
        until: Time::ZERO + until,
        ..ScenarioFile::default()
    };
    if let Some(vpa) = group.vpa {
        vpa.add_to(&mut file);
    }
    write::fields(&file)
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
    let vpa_text = vpa.map_or_else(String::new, |vpa| {
        format!(", and VPA {} sets the requests of its pods", vpa.vpa.name)
    });
    let (kind, name) = (&target.kind, &target.name);
    format!("{subject} {verb} {kind} {name} from {least} to {most} replicas{vpa_text}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_with_a_vpa_lasts_a_day_unless_a_load_is_longer_or_recorded() {
        let (short, long) = (Span::from_mins(10), Span::from_mins(48 * 60));
        assert_eq!(end_of_hpas(End { computed: Some(short), recorded: None }, true), WITH_VPA);
        assert_eq!(end_of_hpas(End { computed: Some(long), recorded: None }, true), long);
        assert_eq!(end_of_hpas(End { computed: None, recorded: Some(short) }, true), short);
        assert_eq!(end_of_hpas(End { computed: Some(short), recorded: None }, false), short);
    }

    #[test]
    fn the_prediction_of_a_vpa_lasts_eight_days_unless_a_load_is_longer_or_recorded() {
        let (short, long) = (Span::from_mins(10), Span(2 * DAYS.0));
        assert_eq!(end_of_vpa(End { computed: None, recorded: None }), DAYS);
        assert_eq!(end_of_vpa(End { computed: Some(short), recorded: None }), DAYS);
        assert_eq!(end_of_vpa(End { computed: Some(DAYS), recorded: None }), DAYS);
        assert_eq!(end_of_vpa(End { computed: Some(long), recorded: None }), long);
        assert_eq!(end_of_vpa(End { computed: Some(long), recorded: Some(short) }), short);
    }
}
