//! The expected values of `status.currentMetrics`, as `kubectl get hpa` prints them.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::text::{
    AnyQuantity, As, Form, PercentBoundsText, PercentText, QuantityBounds, TextOrMap,
};
use kube_autoscaler_models::quantity::Quantity;

/// A metric of the HPA's status, with at least one of its values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a metric, for example {name: cpu, utilization: 101}")]
#[schemars(extend("anyOf" = [
    {"required": ["utilization"]},
    {"required": ["averageValue"]},
    {"required": ["value"]},
]))]
pub struct ExpectedMetric {
    /// The metric's name, for example `cpu`.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The container of a metric of type ContainerResource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// Percent of the request, averaged over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<PercentRange>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<QuantityRange>,
    /// A total, of an object or an external metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<QuantityRange>,
}

/// Bounds on a percentage, inclusive. A number alone is both bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "TextOrMap<PercentBoundsText, PercentBounds>")]
pub struct PercentRange {
    /// At least.
    pub min: i32,
    /// At most.
    pub max: i32,
}

/// Bounds on a percentage.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
struct PercentBounds {
    /// The smallest percentage.
    #[serde(
        default,
        deserialize_with = "As::<Option<PercentText>>::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<As<PercentText>>")]
    at_least: Option<i32>,
    /// The largest percentage.
    #[serde(
        default,
        deserialize_with = "As::<Option<PercentText>>::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<As<PercentText>>")]
    at_most: Option<i32>,
}

impl From<TextOrMap<PercentBoundsText, PercentBounds>> for PercentRange {
    fn from(range: TextOrMap<PercentBoundsText, PercentBounds>) -> PercentRange {
        match range {
            TextOrMap::Text(percent) => PercentRange { min: percent, max: percent },
            TextOrMap::Map(PercentBounds { at_least, at_most }) => {
                PercentRange { min: at_least.unwrap_or(0), max: at_most.unwrap_or(i32::MAX) }
            }
        }
    }
}

impl Serialize for PercentRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PercentRange { min, max } = *self;
        if min == max {
            return serializer.serialize_i32(min);
        }
        let at_least = (min != 0 || max == i32::MAX).then_some(min);
        PercentBounds { at_least, at_most: (max != i32::MAX).then_some(max) }.serialize(serializer)
    }
}

impl JsonSchema for PercentRange {
    fn schema_name() -> Cow<'static, str> {
        "Percentage".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<PercentBounds>();
        json_schema!({
            "description": "Percent of the request, or bounds on it.",
            "anyOf": [PercentBoundsText::schema(), bounds],
        })
    }
}

/// Bounds on a quantity, inclusive. A quantity alone is both bounds.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(from = "TextOrMap<QuantityBounds, AtLeastAtMostQuantity>")]
pub struct QuantityRange {
    /// At least.
    pub min: Option<Quantity>,
    /// At most.
    pub max: Option<Quantity>,
}

/// Bounds on a quantity.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
struct AtLeastAtMostQuantity {
    /// The smallest value.
    #[serde(
        default,
        with = "super::text::As::<Option<AnyQuantity>>",
        skip_serializing_if = "Option::is_none"
    )]
    at_least: Option<Quantity>,
    /// The largest value.
    #[serde(
        default,
        with = "super::text::As::<Option<AnyQuantity>>",
        skip_serializing_if = "Option::is_none"
    )]
    at_most: Option<Quantity>,
}

impl From<TextOrMap<QuantityBounds, AtLeastAtMostQuantity>> for QuantityRange {
    fn from(range: TextOrMap<QuantityBounds, AtLeastAtMostQuantity>) -> QuantityRange {
        match range {
            TextOrMap::Text(value) => QuantityRange { min: Some(value.clone()), max: Some(value) },
            TextOrMap::Map(AtLeastAtMostQuantity { at_least, at_most }) => {
                QuantityRange { min: at_least, max: at_most }
            }
        }
    }
}

impl QuantityRange {
    /// Returns true if the value is within the bounds.
    #[must_use]
    pub fn contains(&self, value: &Quantity) -> bool {
        self.min.as_ref().is_none_or(|min| min.compare(value).is_le())
            && self.max.as_ref().is_none_or(|max| max.compare(value).is_ge())
    }

    /// Returns true if no value is within the bounds.
    pub fn is_empty(&self) -> bool {
        self.min.as_ref().is_some_and(|min| !self.contains(min))
    }

    /// The value, if there is only one.
    #[must_use]
    pub fn only(&self) -> Option<&Quantity> {
        self.min.as_ref().filter(|min| self.max.as_ref() == Some(min))
    }
}

impl Serialize for QuantityRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.only() {
            Some(only) => serializer.collect_str(only),
            None => {
                let QuantityRange { min, max } = self.clone();
                AtLeastAtMostQuantity { at_least: min, at_most: max }.serialize(serializer)
            }
        }
    }
}

impl JsonSchema for QuantityRange {
    fn schema_name() -> Cow<'static, str> {
        "QuantityRange".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMostQuantity>();
        json_schema!({
            "description": "A quantity, or bounds on it.",
            "anyOf": [AnyQuantity::schema(), bounds],
        })
    }
}
