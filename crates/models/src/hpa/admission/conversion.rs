//! Conversion of HPAs between versions of the API, as the API server does it.
//!
//! Version v1 has neither a list of metrics nor behavior. It keeps them as JSON in annotations: the
//! API server writes the annotations when an HPA is read as v1, and reads them when an HPA is
//! submitted as v1. It decodes them as Go does: field names are case-insensitive, unknown fields
//! are ignored, and an annotation that can't be decoded is ignored as a whole.
//!
//! Not covered: fields that occur twice with different case, and versions that API servers no
//! longer serve (`scenario` converts them to v2 beforehand).
//!
//! Upstream: pkg/apis/autoscaling/v1/conversion.go and defaults.go.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::defaults::cpu_utilization;
use crate::api::{
    Behavior, ContainerResourceMetricSource, CrossVersionObjectReference, ExternalMetricSource,
    HpaSpec, LabelSelector, LabelSelectorRequirement, MetricIdentifier, MetricSourceType,
    MetricSpec, MetricTarget, MetricTargetType, ObjectMetricSource, PodsMetricSource,
    ResourceMetricSource, ScalingPolicy, ScalingRules,
};
use crate::quantity::{Format, Quantity};

/// A version of the API in which an HPA can be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ApiVersion {
    /// `autoscaling/v1`.
    V1,
    /// `autoscaling/v2`, in which HPAs are stored.
    #[default]
    V2,
}

/// The annotation of v1 with the metrics of v2.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// The annotation of v1 with the behavior of v2.
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Annotations that replace fields of another version. No stored HPA has them.
///
/// Upstream: pkg/apis/autoscaling/helpers.go, DropRoundTripHorizontalPodAutoscalerAnnotations
pub const ROUND_TRIP_ANNOTATIONS: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HpaSpecV1 {
    scale_target_ref: CrossVersionObjectReference,
    min_replicas: Option<i32>,
    max_replicas: i32,
    #[serde(rename = "targetCPUUtilizationPercentage")]
    target_cpu_utilization_percentage: Option<i32>,
}

/// Decodes the spec of an HPA, with the defaults of its version, but without the defaults of v2.
///
/// # Errors
/// The part of it that can't be decoded, or that the types of [`HpaSpec`] can't represent.
pub fn decode_spec(object: &Value) -> Result<(HpaSpec, ApiVersion), String> {
    if object["apiVersion"] != "autoscaling/v1" {
        let spec = HpaSpec::deserialize(&object["spec"]);
        return Ok((spec.map_err(|error| format!("spec: {error}"))?, ApiVersion::V2));
    }
    let spec = HpaSpecV1::deserialize(&object["spec"]).map_err(|error| format!("spec: {error}"))?;
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    Ok((from_v1(spec, annotation)?, ApiVersion::V1))
}

/// Upstream: v1/conversion.go, Convert_v1_HorizontalPodAutoscaler_To_autoscaling_…
fn from_v1<'a>(
    spec: HpaSpecV1,
    annotation: impl Fn(&str) -> Option<&'a str>,
) -> Result<HpaSpec, String> {
    let mut metrics = from_annotation(METRICS, &annotation, metrics_of)?.unwrap_or_default();
    metrics.extend(spec.target_cpu_utilization_percentage.map(cpu_utilization));
    if metrics.is_empty() {
        metrics.push(cpu_utilization(super::defaults::DEFAULT_CPU_UTILIZATION));
    }
    let behavior = from_annotation(BEHAVIOR, &annotation, behavior_of)?;
    let behavior = behavior.filter(|behavior| *behavior != Behavior::default());
    Ok(HpaSpec {
        scale_target_ref: spec.scale_target_ref,
        min_replicas: Some(spec.min_replicas.unwrap_or(1)),
        max_replicas: spec.max_replicas,
        metrics,
        behavior,
    })
}

/// The content of an annotation, if it can be decoded.
fn from_annotation<'a, T>(
    name: &str,
    annotation: &impl Fn(&str) -> Option<&'a str>,
    read: impl FnOnce(&Value) -> Result<T, Unread>,
) -> Result<Option<T>, String> {
    let json = annotation(name).and_then(|text| serde_json::from_str(text).ok());
    match json.map(|json: Value| read(&json)) {
        None | Some(Err(Unread::Mismatch)) => Ok(None),
        Some(Err(Unread::Unheld(what))) => Err(format!("annotation {name}: {what}")),
        Some(Ok(found)) => Ok(Some(found)),
    }
}

/// The spec of an HPA in version v2beta1 as v2: it has metrics in the form of v1's annotation, and
/// its behavior in the same annotation.
///
/// # Errors
/// The part of it that can't be decoded, or that the types of [`HpaSpec`] can't represent.
pub fn from_v2beta1(object: &Value) -> Result<HpaSpec, String> {
    let mut spec = object["spec"].clone();
    let metrics = spec.as_object_mut().and_then(|spec| spec.shift_remove("metrics"));
    let mut spec = HpaSpec::deserialize(spec).map_err(|error| format!("spec: {error}"))?;
    spec.metrics = metrics_of(&metrics.unwrap_or_default()).map_err(|unread| match unread {
        Unread::Mismatch => "spec.metrics: not of the form of autoscaling/v2beta1".to_owned(),
        Unread::Unheld(what) => format!("spec.metrics: {what}"),
    })?;
    drop_zero_totals(&mut spec);
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    let behavior = from_annotation(BEHAVIOR, &annotation, behavior_of)?;
    spec.behavior = behavior.filter(|behavior| *behavior != Behavior::default());
    Ok(spec)
}

/// Removes a zero total beside the average of an object's metric: v1 can't omit the total.
///
/// Upstream: v1/conversion.go, Convert_v1_ObjectMetricSource_To_autoscaling_ObjectMetricSource
pub fn drop_zero_totals(spec: &mut HpaSpec) {
    for source in spec.metrics.iter_mut().filter_map(|metric| metric.object.as_mut()) {
        let MetricTarget { type_, value, .. } = &mut source.target;
        let zero = value.as_ref().is_some_and(|value| value.sign() == 0);
        if *type_ == MetricTargetType::AverageValue && zero {
            *value = None;
        }
    }
}

/// The reason why a JSON value was not read.
#[derive(Debug)]
enum Unread {
    /// Go would not read it either.
    Mismatch,
    /// A value that upstream's validation would reject, and that the types here can't represent.
    Unheld(String),
}

/// Upstream: v1/conversion.go, Convert_v1_MetricSpec_To_autoscaling_MetricSpec and the functions
/// that it calls
fn metrics_of(json: &Value) -> Result<Vec<MetricSpec>, Unread> {
    list(json)?.iter().map(|json| metric(Fields::new(json)?)).collect()
}

fn metric(fields: Fields<'_>) -> Result<MetricSpec, Unread> {
    Ok(MetricSpec {
        type_: enum_value::<MetricSourceType>(fields.text("type")?, "metric type")?,
        resource: fields.object("resource", resource)?,
        container_resource: fields.object("containerResource", container_resource)?,
        pods: fields.object("pods", pods)?,
        object: fields.object("object", object)?,
        external: fields.object("external", external)?,
    })
}

fn resource(fields: Fields<'_>) -> Result<ResourceMetricSource, Unread> {
    let target = target_of_resource(fields)?;
    Ok(ResourceMetricSource { name: fields.text("name")?.into(), target })
}

fn container_resource(fields: Fields<'_>) -> Result<ContainerResourceMetricSource, Unread> {
    Ok(ContainerResourceMetricSource {
        name: fields.text("name")?.into(),
        container: fields.text("container")?.into(),
        target: target_of_resource(fields)?,
    })
}

fn target_of_resource(fields: Fields<'_>) -> Result<MetricTarget, Unread> {
    let average_utilization = fields.integer("targetAverageUtilization")?;
    let type_ = match average_utilization {
        Some(_) => MetricTargetType::Utilization,
        None => MetricTargetType::AverageValue,
    };
    let average_value = fields.quantity("targetAverageValue")?;
    Ok(MetricTarget { type_, value: None, average_value, average_utilization })
}

fn pods(fields: Fields<'_>) -> Result<PodsMetricSource, Unread> {
    let average = fields.quantity("targetAverageValue")?.unwrap_or_else(zero);
    let target = target(MetricTargetType::AverageValue, None, Some(average));
    Ok(PodsMetricSource { metric: identifier(fields, "selector")?, target })
}

/// v1 can't omit the total.
fn object(fields: Fields<'_>) -> Result<ObjectMetricSource, Unread> {
    let value = fields.quantity("targetValue")?.unwrap_or_else(Quantity::unset);
    let target = match fields.quantity("averageValue")? {
        None => target(MetricTargetType::Value, Some(value), None),
        Some(average) => target(MetricTargetType::AverageValue, Some(value), Some(average)),
    };
    let described = fields.object("target", |fields| {
        let api_version = fields.text("apiVersion")?;
        Ok(CrossVersionObjectReference {
            kind: fields.text("kind")?.to_owned(),
            name: fields.text("name")?.into(),
            api_version: (!api_version.is_empty()).then(|| api_version.to_owned()),
        })
    })?;
    Ok(ObjectMetricSource {
        described_object: described.unwrap_or_default().into(),
        metric: identifier(fields, "selector")?,
        target,
    })
}

fn external(fields: Fields<'_>) -> Result<ExternalMetricSource, Unread> {
    let value = fields.quantity("targetValue")?;
    let average = fields.quantity("targetAverageValue")?;
    let type_ = match value {
        Some(_) => MetricTargetType::Value,
        None => MetricTargetType::AverageValue,
    };
    let target = target(type_, value, average);
    Ok(ExternalMetricSource { metric: identifier(fields, "metricSelector")?, target })
}

fn zero() -> Quantity {
    Quantity::from_milli(0, Format::DecimalSI)
}

fn target(
    type_: MetricTargetType,
    value: Option<Quantity>,
    average_value: Option<Quantity>,
) -> MetricTarget {
    MetricTarget { type_, value, average_value, average_utilization: None }
}

fn identifier(fields: Fields<'_>, selector: &str) -> Result<Arc<MetricIdentifier>, Unread> {
    let selector = fields.object(selector, |fields| {
        let labels = fields.object("matchLabels", |labels| {
            let texts = labels.all().map(|(key, value)| Ok((key.clone(), text(value)?.into())));
            texts.collect::<Result<BTreeMap<String, String>, Unread>>()
        })?;
        let requirement = |json: &Value| {
            let fields = Fields::new(json)?;
            let values = fields.list("values")?.unwrap_or_default().iter();
            Ok(LabelSelectorRequirement {
                key: fields.text("key")?.to_owned(),
                operator: fields.text("operator")?.to_owned(),
                values: values
                    .map(|value| Ok(text(value)?.to_owned()))
                    .collect::<Result<_, _>>()?,
            })
        };
        let expressions = fields.list("matchExpressions")?.unwrap_or_default().iter();
        Ok(LabelSelector {
            match_labels: labels.unwrap_or_default(),
            match_expressions: expressions.map(requirement).collect::<Result<_, Unread>>()?,
        })
    })?;
    Ok(Arc::new(MetricIdentifier { name: fields.text("metricName")?.into(), selector }))
}

fn behavior_of(json: &Value) -> Result<Behavior, Unread> {
    let fields = Fields::new(json)?;
    Ok(Behavior {
        scale_up: fields.object("scaleUp", rules)?,
        scale_down: fields.object("scaleDown", rules)?,
    })
}

fn rules(fields: Fields<'_>) -> Result<ScalingRules, Unread> {
    let policy = |json: &Value| {
        let fields = Fields::new(json)?;
        Ok(ScalingPolicy {
            type_: enum_value(fields.text("type")?, "policy type")?,
            value: fields.integer("value")?.unwrap_or_default(),
            period_seconds: fields.integer("periodSeconds")?.unwrap_or_default(),
        })
    };
    let policies = fields.list("policies")?;
    Ok(ScalingRules {
        stabilization_window_seconds: fields.integer("stabilizationWindowSeconds")?,
        select_policy: match fields.get("selectPolicy") {
            None => None,
            Some(json) => Some(enum_value(text(json)?, "selectPolicy")?),
        },
        policies: policies
            .map(|policies| policies.iter().map(policy).collect::<Result<_, Unread>>())
            .transpose()?,
        tolerance: fields.quantity("tolerance")?,
    })
}

/// Decodes a text as one of the values of an enum.
fn enum_value<T: DeserializeOwned>(text: &str, type_name: &str) -> Result<T, Unread> {
    T::deserialize(Value::from(text))
        .map_err(|_| Unread::Unheld(format!("unknown {type_name}: {text:?}")))
}

fn text(json: &Value) -> Result<&str, Unread> {
    match json {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        _ => Err(Unread::Mismatch),
    }
}

fn list(json: &Value) -> Result<&[Value], Unread> {
    match json {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        _ => Err(Unread::Mismatch),
    }
}

/// Returns true if Go reads two names as the same field name. It ignores the case, and folds two
/// letters outside ASCII: the long s to `s` and the kelvin sign to `k`.
///
/// Upstream: Go's encoding/json, foldName
fn is_named(key: &str, name: &str) -> bool {
    let folded = |letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    key.chars().map(folded).eq(name.chars().map(folded))
}

/// An object as Go decodes it into a struct: names in any case, null as an absent value.
#[derive(Clone, Copy)]
struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    fn new(json: &'a Value) -> Result<Fields<'a>, Unread> {
        match json {
            Value::Null => Ok(Fields(None)),
            Value::Object(fields) => Ok(Fields(Some(fields))),
            _ => Err(Unread::Mismatch),
        }
    }

    fn all(self) -> impl DoubleEndedIterator<Item = (&'a String, &'a Value)> {
        self.0.into_iter().flatten()
    }

    /// The last value with this name that is not null.
    fn get(self, name: &str) -> Option<&'a Value> {
        let named = self.all().filter(|(key, _)| is_named(key, name));
        named.map(|(_, value)| value).rfind(|value| !value.is_null())
    }

    fn text(self, name: &str) -> Result<&'a str, Unread> {
        self.get(name).map_or(Ok(""), text)
    }

    fn integer(self, name: &str) -> Result<Option<i32>, Unread> {
        let Some(json) = self.get(name) else { return Ok(None) };
        let integer = json.as_i64().and_then(|number| i32::try_from(number).ok());
        integer.map(Some).ok_or(Unread::Mismatch)
    }

    /// Reads a quantity, which may be a bare number.
    fn quantity(self, name: &str) -> Result<Option<Quantity>, Unread> {
        let text = match self.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(Unread::Mismatch),
        };
        Quantity::parse(&text).map(Some).map_err(|_| Unread::Mismatch)
    }

    fn list(self, name: &str) -> Result<Option<&'a [Value]>, Unread> {
        self.get(name).map(list).transpose()
    }

    fn object<T>(
        self,
        name: &str,
        read: impl FnOnce(Fields<'a>) -> Result<T, Unread>,
    ) -> Result<Option<T>, Unread> {
        self.get(name).map(|json| read(Fields::new(json)?)).transpose()
    }
}

/// The fields of a metric's sources.
const SOURCES: [&str; 5] = ["resource", "containerResource", "pods", "object", "external"];

/// Converts a metric of a v2 spec to v2beta1, which is also the format of v1's annotation. Fields
/// that v2beta1 does not have are dropped.
///
/// Upstream: staging/src/k8s.io/api/autoscaling/v2beta1/types.go
#[must_use]
pub fn metric_to_v2beta1(metric: &Value) -> Value {
    let mut old = Map::new();
    for (name, value) in metric.as_object().into_iter().flatten() {
        let value = match SOURCES.contains(&name.as_str()) {
            true => source_to_v2beta1(name, value),
            false => value.clone(),
        };
        old.insert(name.clone(), value);
    }
    Value::Object(old)
}

fn source_to_v2beta1(kind: &str, source: &Value) -> Value {
    if !source.is_object() {
        return source.clone();
    }
    let (target, name) = (&source["target"], &source["metric"]["name"]);
    let selector = &source["metric"]["selector"];
    without_nulls(match kind {
        "resource" | "containerResource" => json!({
            "name": source["name"],
            "container": source["container"],
            "targetAverageUtilization": target["averageUtilization"],
            "targetAverageValue": target["averageValue"],
        }),
        "pods" => json!({
            "metricName": name,
            "selector": selector,
            "targetAverageValue": target["averageValue"],
        }),
        "object" => json!({
            "metricName": name,
            "selector": selector,
            "target": source["describedObject"],
            "targetValue": target["value"],
            "averageValue": target["averageValue"],
        }),
        _ => json!({
            "metricName": name,
            "metricSelector": selector,
            "targetValue": target["value"],
            "targetAverageValue": target["averageValue"],
        }),
    })
}

fn without_nulls(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// Converts the status of an HPA from v2beta1 to v2.
#[must_use]
pub fn status_from_v2beta1(mut status: Value) -> Value {
    if let Some(metrics) = status.get_mut("currentMetrics").and_then(Value::as_array_mut) {
        for metric in metrics {
            for (kind, source) in metric.as_object_mut().into_iter().flatten() {
                if SOURCES.contains(&kind.as_str()) {
                    *source = source_from_v2beta1(kind, source);
                }
            }
        }
    }
    status
}

fn source_from_v2beta1(kind: &str, source: &Value) -> Value {
    let current = without_nulls(json!({
        "value": source["currentValue"],
        "averageUtilization": source["currentAverageUtilization"],
        "averageValue": source["currentAverageValue"],
    }));
    if kind == "resource" {
        return json!({ "name": source["name"], "current": current });
    }
    let mut metric = json!({ "name": source["metricName"] });
    if !source["metricSelector"].is_null() {
        metric["selector"] = source["metricSelector"].clone();
    }
    let described = if kind == "object" { &source["target"] } else { &Value::Null };
    without_nulls(json!({ "metric": metric, "describedObject": described, "current": current }))
}
