//! `controller.flags` of a scenario file: flags of the kube-controller-manager with their values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::text::{As, Duration, Form, PositiveDuration};
use kube_autoscaler_models::flags::{Flag, FlagValue, Flags};
use kube_autoscaler_models::time::Span;

/// The flags that a file sets.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlagValues(pub BTreeMap<Flag, FlagValue>);

impl FlagValues {
    /// The name of the first flag, without the leading dashes.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        self.0.keys().next().map(|flag| flag.name())
    }

    /// All flags: those that are not set have the defaults of the newest release.
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        self.0.iter().for_each(|(flag, value)| flags.set(*flag, *value));
        flags
    }
}

/// The form of a flag's value in files.
enum ValueForm {
    PositiveDuration,
    Duration,
    Number,
    Count,
}

impl ValueForm {
    fn new(flag: Flag) -> ValueForm {
        match Flags::default().get(flag) {
            FlagValue::Duration(_) if flag == Flag::SyncPeriod => ValueForm::PositiveDuration,
            FlagValue::Duration(_) => ValueForm::Duration,
            FlagValue::Number(_) => ValueForm::Number,
            FlagValue::Count(_) => ValueForm::Count,
        }
    }
}

impl Serialize for FlagValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = |value: &FlagValue| match value {
            FlagValue::Duration(span) => Value::from(Duration::write(span)),
            FlagValue::Number(number) => Value::from(*number),
            FlagValue::Count(count) => Value::from(*count),
        };
        serializer.collect_map(self.0.iter().map(|(flag, value)| (flag.name(), json(value))))
    }
}

impl<'de> Deserialize<'de> for FlagValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FlagValues, D::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Positive(#[serde(with = "As::<PositiveDuration>")] Span);
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct NotNegative(#[serde(with = "As::<Duration>")] Span);

        struct Name(Flag);
        impl<'de> Deserialize<'de> for Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
                let name = String::deserialize(deserializer)?;
                let flag = Flag::by_name(&name).map(Name);
                flag.ok_or_else(|| D::Error::unknown_field(&name, Flag::NAMES))
            }
        }

        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = FlagValues;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of flags")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FlagValues, A::Error> {
                let mut values = BTreeMap::new();
                while let Some(Name(flag)) = map.next_key()? {
                    let value = match ValueForm::new(flag) {
                        ValueForm::PositiveDuration => map.next_value::<Positive>()?.0.into(),
                        ValueForm::Duration => map.next_value::<NotNegative>()?.0.into(),
                        ValueForm::Number => map.next_value::<f64>()?.into(),
                        ValueForm::Count => map.next_value::<i32>()?.into(),
                    };
                    values.insert(flag, value);
                }
                Ok(FlagValues(values))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl JsonSchema for FlagValues {
    fn schema_name() -> Cow<'static, str> {
        "Flags".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut field = |flag: Flag| {
            let mut schema = match ValueForm::new(flag) {
                ValueForm::PositiveDuration => generator.subschema_for::<As<PositiveDuration>>(),
                ValueForm::Duration => generator.subschema_for::<As<Duration>>(),
                ValueForm::Number => json_schema!({ "type": "number", "minimum": 0 }),
                ValueForm::Count => json_schema!({ "type": "integer", "minimum": 1 }),
            };
            schema.insert("description".to_owned(), flag.description().into());
            (flag.name().to_owned(), schema.to_value())
        };
        let fields: serde_json::Map<String, Value> =
            Flag::ALL.into_iter().map(&mut field).collect();
        json_schema!({
            "description": "Flags of the kube-controller-manager.",
            "type": "object", "additionalProperties": false, "properties": fields,
        })
    }
}
