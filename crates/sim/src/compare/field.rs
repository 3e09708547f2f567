//! The compared fields.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use kube_autoscaler_models::api::ConditionType;
use kube_autoscaler_models::vpa::{ObjectName, Resource};
use kube_lockstep_scenario::vpa::VpaValue;

/// A compared field. Its text is its name in reports: for a field of an object, the path in the
/// API.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum FieldPath {
    /// A field of the API server's answer to a change of an HPA.
    Api(ApiField),
    /// `status.desiredReplicas` of an HPA.
    DesiredReplicas,
    /// A field of a condition of an HPA: `status.conditions[ScalingLimited].reason`.
    Condition(ConditionType, ConditionField),
    /// An entry of a list of a reconcile: `events[0]`.
    Entry(EntryList, usize),
    /// A metric of the HPA controller itself, by its series.
    ControllerMetric(String),
    /// An amount that a VPA recommends: `default/web target.cpu of app`.
    Amount(AmountField),
    /// Another field of a VPA or a checkpoint: `default/web conditions`.
    Object(ObjectName, Cow<'static, str>),
    /// The pods that the updater evicts or resizes, in order.
    UpdatedPods,
    /// The requests that the updater sets in a pod, by the name of the pod.
    UpdatedRequests(String),
    /// The requests that the admission controller sets in a new pod, by the name of the pod.
    AdmittedRequests(String),
    /// A field of a run of the recommender in a scenario with an HPA, in which other ticks are
    /// numbered as well: `run 3 of the recommender: default/web target.cpu of app`.
    InRun(usize, Box<FieldPath>),
    /// Any other field, and most fields that are read from a file of results.
    Named(Cow<'static, str>),
}

/// The fields of the API server's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiField {
    /// When the server answered.
    At,
    /// The kind of answer: the HPA is stored, refused or deleted.
    Outcome,
    /// The name of the HPA.
    Name,
    /// The generation of the HPA.
    Generation,
    /// The stored spec.
    Spec,
}

/// The compared fields of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConditionField {
    /// `True`, `False` or `Unknown`.
    Status,
    /// One word, for programs.
    Reason,
    /// A sentence, for users.
    Message,
    /// When the status last changed.
    LastTransitionTime,
}

/// The lists of a reconcile that are compared entry by entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryList {
    /// The replicas that are written to the scale.
    ScaleWrites,
    /// The bodies of writes of a scale.
    SentScales,
    /// The metrics in the status.
    CurrentMetrics,
    Events,
    /// The requests that send events.
    SentEvents,
    /// The requests that read.
    Reads,
    /// The logged errors.
    Errors,
    /// The namespaces of requests in other namespaces.
    Namespaces,
}

/// An amount that a VPA recommends for a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AmountField {
    pub vpa: ObjectName,
    pub container: Arc<str>,
    /// The target or a bound.
    pub value: VpaValue,
    /// CPU or memory.
    pub resource: Resource,
}

impl FieldPath {
    /// The field without the run that it is in.
    #[must_use]
    pub fn without_run(&self) -> &FieldPath {
        match self {
            FieldPath::InRun(_, field) => field,
            other => other,
        }
    }

    /// The text without indices of lists and without names of objects, to group differences that
    /// may have one cause.
    #[must_use]
    pub fn kind(&self) -> Cow<'_, str> {
        match self {
            FieldPath::Entry(list, _) => list.name("").into(),
            FieldPath::Amount(AmountField { value, resource, .. }) => {
                format!("{}.{}", value.name(), resource.name()).into()
            }
            FieldPath::Object(_, field) => Cow::Borrowed(field),
            FieldPath::UpdatedRequests(_) => "updater: requests".into(),
            FieldPath::AdmittedRequests(_) => "admission: requests".into(),
            FieldPath::InRun(_, field) => field.kind(),
            other => other.to_string().into(),
        }
    }
}

impl Display for FieldPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FieldPath::Api(field) => f.write_str(field.name()),
            FieldPath::DesiredReplicas => f.write_str("status.desiredReplicas"),
            FieldPath::Condition(type_, field) => {
                write!(f, "status.conditions[{type_:?}].{}", field.name())
            }
            FieldPath::Entry(list, index) => f.write_str(&list.name(&index.to_string())),
            FieldPath::ControllerMetric(series) => write!(f, "metric {series}"),
            FieldPath::Amount(AmountField { vpa, container, value, resource }) => {
                write!(f, "{vpa} {}.{} of {container}", value.name(), resource.name())
            }
            FieldPath::Object(object, field) => write!(f, "{object} {field}"),
            FieldPath::UpdatedPods => f.write_str("updater: changes of pods"),
            FieldPath::UpdatedRequests(pod) => write!(f, "updater: requests of the pod {pod}"),
            FieldPath::AdmittedRequests(pod) => {
                write!(f, "admission: requests of the new pod {pod}")
            }
            FieldPath::InRun(run, field) => write!(f, "run {run} of the recommender: {field}"),
            FieldPath::Named(name) => f.write_str(name),
        }
    }
}

impl From<&'static str> for FieldPath {
    fn from(name: &'static str) -> FieldPath {
        FieldPath::Named(Cow::Borrowed(name))
    }
}

impl From<ApiField> for FieldPath {
    fn from(field: ApiField) -> FieldPath {
        FieldPath::Api(field)
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> String {
        path.to_string()
    }
}

/// Reads a field from a file of results. Only fields that reports treat specially, and whose names
/// are fixed, get their own variant.
impl From<String> for FieldPath {
    fn from(text: String) -> FieldPath {
        if let Some(field) = ApiField::ALL.into_iter().find(|field| field.name() == text) {
            return FieldPath::Api(field);
        }
        if text == FieldPath::DesiredReplicas.to_string() {
            return FieldPath::DesiredReplicas;
        }
        FieldPath::Named(Cow::Owned(text))
    }
}

impl ApiField {
    const ALL: [ApiField; 5] =
        [ApiField::At, ApiField::Outcome, ApiField::Name, ApiField::Generation, ApiField::Spec];

    const fn name(self) -> &'static str {
        match self {
            ApiField::At => "api.at",
            ApiField::Outcome => "api",
            ApiField::Name => "metadata.name",
            ApiField::Generation => "metadata.generation",
            ApiField::Spec => "spec",
        }
    }
}

impl ConditionField {
    const fn name(self) -> &'static str {
        match self {
            ConditionField::Status => "status",
            ConditionField::Reason => "reason",
            ConditionField::Message => "message",
            ConditionField::LastTransitionTime => "lastTransitionTime",
        }
    }
}

impl EntryList {
    /// The name of the entry with an index: `events[0]`.
    fn name(self, index: &str) -> String {
        match self {
            EntryList::ScaleWrites => format!("scale.spec.replicas[{index}]"),
            EntryList::SentScales => format!("scale[{index}] as sent"),
            EntryList::CurrentMetrics => format!("status.currentMetrics[{index}]"),
            EntryList::Events => format!("events[{index}]"),
            EntryList::SentEvents => format!("events as sent[{index}]"),
            EntryList::Reads => format!("reads[{index}]"),
            EntryList::Errors => format!("errors[{index}]"),
            EntryList::Namespaces => format!("namespaces[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_api() {
        let vpa = ObjectName::new("default", "web");
        let amount = AmountField {
            vpa: vpa.clone(),
            container: "app".into(),
            value: VpaValue::LowerBound,
            resource: Resource::Cpu,
        };
        let limited = FieldPath::Condition(ConditionType::ScalingLimited, ConditionField::Reason);
        let fields = [
            (limited, "status.conditions[ScalingLimited].reason", None),
            (
                FieldPath::Entry(EntryList::SentEvents, 2),
                "events as sent[2]",
                "events as sent[]".into(),
            ),
            (
                FieldPath::Entry(EntryList::SentScales, 0),
                "scale[0] as sent",
                "scale[] as sent".into(),
            ),
            (
                FieldPath::Amount(amount),
                "default/web lowerBound.cpu of app",
                "lowerBound.cpu".into(),
            ),
            (
                FieldPath::Object(vpa, "conditions".into()),
                "default/web conditions",
                "conditions".into(),
            ),
        ];
        for (field, text, kind) in fields {
            assert_eq!(
                (field.to_string(), &*field.kind()),
                (text.to_owned(), kind.unwrap_or(text))
            );
        }
    }

    #[test]
    fn fields_are_read_from_results() {
        for field in
            ApiField::ALL.map(FieldPath::Api).into_iter().chain([FieldPath::DesiredReplicas])
        {
            assert_eq!(FieldPath::from(field.to_string()), field);
        }
        assert_eq!(FieldPath::from("took".to_owned()), "took".into());
    }
}
