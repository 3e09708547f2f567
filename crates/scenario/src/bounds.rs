//! Bounds on the values that expectations compare.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{
    Amount, AnyQuantity, Form, NumberText, PercentBoundsText, PercentText, QuantityBounds, Read,
    TextOrMap,
};
use kube_autoscaler_models::quantity::Quantity;

/// Bounds on a value, both inclusive. In a file, a single value is the lower and the upper bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds<T> {
    /// The smallest value. `None`: any.
    pub min: Option<T>,
    /// The largest value. `None`: any.
    pub max: Option<T>,
}

impl<T: Clone> From<T> for Bounds<T> {
    fn from(only: T) -> Bounds<T> {
        Bounds { min: Some(only.clone()), max: Some(only) }
    }
}

impl<T: Ord> Bounds<T> {
    /// Returns true if the value is within the bounds.
    #[must_use]
    pub fn contains(&self, value: &T) -> bool {
        self.min.as_ref().is_none_or(|min| min <= value)
            && self.max.as_ref().is_none_or(|max| value <= max)
    }

    /// Returns true if no value is within the bounds.
    pub fn is_empty(&self) -> bool {
        self.min.as_ref().is_some_and(|min| !self.contains(min))
    }

    /// The value, if there is only one.
    #[must_use]
    pub fn only(&self) -> Option<&T> {
        self.min.as_ref().filter(|min| self.max.as_ref() == Some(min))
    }
}

/// `500m`, `at least 3`, `at most 1Gi`, `3 to 5`.
impl<T: Ord + fmt::Display> fmt::Display for Bounds<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only(), &self.min, &self.max) {
            (Some(only), _, _) => write!(f, "{only}"),
            (None, Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (None, Some(min), None) => write!(f, "at least {min}"),
            (None, None, Some(max)) => write!(f, "at most {max}"),
            (None, None, None) => f.write_str("any value"),
        }
    }
}

impl<T: Ord + Serialize> Serialize for Bounds<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.only() {
            Some(only) => only.serialize(serializer),
            None => AtLeastAtMost { at_least: self.min.as_ref(), at_most: self.max.as_ref() }
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bounds<i32> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounds<i32>, D::Error> {
        either::<NumberText, i32, D>(deserializer)
    }
}

impl JsonSchema for Bounds<i32> {
    fn schema_name() -> Cow<'static, str> {
        "Bounds".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMost<i32>>();
        json_schema!({
            "description": "A number of replicas, or bounds on it.",
            "anyOf": [NumberText::schema(), bounds],
        })
    }
}

impl<'de> Deserialize<'de> for Bounds<Quantity> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounds<Quantity>, D::Error> {
        either::<QuantityBounds, Read<AnyQuantity>, D>(deserializer)
    }
}

impl JsonSchema for Bounds<Quantity> {
    fn schema_name() -> Cow<'static, str> {
        "QuantityRange".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMost<Read<AnyQuantity>>>();
        json_schema!({
            "description": "A quantity, or bounds on it.",
            "anyOf": [AnyQuantity::schema(), bounds],
        })
    }
}

/// The form of bounds on a percentage, for fields of the type `Bounds<i32>`.
pub(super) struct Percentage;

impl Percentage {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bounds<i32>>, D::Error> {
        either::<PercentBoundsText, Read<PercentText>, D>(deserializer).map(Some)
    }
}

impl JsonSchema for Percentage {
    fn schema_name() -> Cow<'static, str> {
        "Percentage".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMost<Read<PercentText>>>();
        json_schema!({
            "description": "Percent of the request, or bounds on it.",
            "anyOf": [PercentBoundsText::schema(), bounds],
        })
    }
}

/// Reads a single value of the form `F`, or a map of bounds of the type `B`.
fn either<'de, F, B, D>(deserializer: D) -> Result<Bounds<F::Value>, D::Error>
where
    F: Form<Value: Clone>,
    B: Bound<Value = F::Value> + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(match TextOrMap::<F, AtLeastAtMost<B>>::deserialize(deserializer)? {
        TextOrMap::Text(only) => only.into(),
        TextOrMap::Map(bounds) => bounds.bounds(),
    })
}

/// The form of bounds in files.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AtLeastAtMost<B> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<B>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<B>,
}

impl<B: Bound> AtLeastAtMost<B> {
    pub(super) fn bounds(self) -> Bounds<B::Value> {
        Bounds { min: self.at_least.map(B::value), max: self.at_most.map(B::value) }
    }
}

impl<B: Bound> JsonSchema for AtLeastAtMost<B> {
    fn schema_name() -> Cow<'static, str> {
        B::NAME_OF_BOTH.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut bound = |which: &str| {
            let mut schema = generator.subschema_for::<B>();
            B::restrict(&mut schema);
            schema.insert("description".to_owned(), format!("The {which} {}.", B::NOUN).into());
            schema
        };
        json_schema!({
            "description": B::DESCRIPTION,
            "type": "object",
            "properties": {"atLeast": bound("smallest"), "atMost": bound("largest")},
            "additionalProperties": false,
            "minProperties": 1,
        })
    }
}

/// One bound in a file.
pub(super) trait Bound: JsonSchema {
    /// The type of the value that is compared.
    type Value;
    /// The name of the definition of both bounds in the JSON Schema.
    const NAME_OF_BOTH: &'static str;
    /// The description of both bounds there.
    const DESCRIPTION: &'static str;
    /// The word for the value in the descriptions of the two bounds.
    const NOUN: &'static str;

    fn value(self) -> Self::Value;
    /// Restricts the schema of the type to values that a bound can have.
    fn restrict(_: &mut Schema) {}
}

impl Bound for i32 {
    type Value = i32;
    const NAME_OF_BOTH: &'static str = "AtLeastAtMost";
    const DESCRIPTION: &'static str = "Bounds, both inclusive.";
    const NOUN: &'static str = "number";

    fn value(self) -> i32 {
        self
    }
    fn restrict(schema: &mut Schema) {
        schema.insert("minimum".to_owned(), 0.into());
    }
}

/// Implements [`Bound`] for bounds that are texts of a form.
macro_rules! text_bounds {
    ($($form:ty: $value:ty, $name:literal, $noun:literal, $description:literal;)*) => {$(
        impl Bound for Read<$form> {
            type Value = $value;
            const NAME_OF_BOTH: &'static str = $name;
            const DESCRIPTION: &'static str = $description;
            const NOUN: &'static str = $noun;

            fn value(self) -> $value {
                self.0
            }
        }
    )*};
}

text_bounds! {
    PercentText: i32, "PercentBounds", "percentage", "Bounds on a percentage.";
    AnyQuantity: Quantity, "AtLeastAtMostQuantity", "value", "Bounds on a quantity.";
    Amount: Quantity, "AmountBounds", "amount", "Bounds, both inclusive.";
}
