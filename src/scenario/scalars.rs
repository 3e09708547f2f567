//! The small values of scenario files, as typed: durations, quantities, pod sets, numbers with
//! bounds. They keep the text; lowering reads it, where it can say what is wrong in one go.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::decode::{AS_WRITTEN, TEXT_OR_MAP};

/// Text that may look like a number: kept as written.
macro_rules! as_written {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $schema:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub(super) struct $name(pub(super) String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        Ok($name(text.to_owned()))
                    }
                }
                deserializer.deserialize_newtype_struct(AS_WRITTEN, Text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

as_written! {
    /// A duration as Go writes them.
    Duration, "a duration such as 15s, 1m30s or 500ms", json_schema!({
        "title": "duration",
        "description": "A duration as Go writes them: 15s, 1m30s, 500ms, 1.5h.",
        "type": ["string", "integer"],
        "pattern": r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$",
        "minimum": 0,
        "maximum": 0,
        "examples": ["15s", "5m", "1m30s", "500ms"],
    })
}

as_written! {
    /// A duration, or `never`.
    DurationOrNever, "a duration such as 15s, or never", json_schema!({
        "title": "duration or never",
        "description": "A duration as Go writes them (10s, 1m30s), or `never`.",
        "type": ["string", "integer"],
        "pattern": r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$|^never$",
        "minimum": 0,
        "maximum": 0,
        "examples": ["10s", "never"],
    })
}

as_written! {
    /// A Kubernetes quantity.
    QuantityText, "a quantity such as 500m, 0.5 or 1Gi", json_schema!({
        "title": "quantity",
        "description": "A Kubernetes quantity: 500m, 0.5, 2, 128Mi, 1e3.",
        "type": ["string", "number"],
        "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([eE][+-]?[0-9]+)|[numkMGTPE]|[KMGTPE]i)?$",
        "examples": ["500m", "1", "128Mi"],
    })
}

as_written! {
    /// A set of pods by ordinal, written as cpusets are: `0-4,7`, or `all`.
    PodSetText, "a set of pods such as \"0-4,7\" or all", json_schema!({
        "title": "pod set",
        "description": "Pods by ordinal (the order of their creation, from 0), written as cpusets \
                        are: 0-4,7. Or `all`: every pod there is at that time.",
        "type": ["string", "integer"],
        "pattern": r"^(all|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
        "minimum": 0,
        "examples": ["all", "0-4,7", "3"],
    })
}

as_written! {
    /// A range of Kubernetes releases.
    ReleasesText, "a range of releases such as \">=1.23\"", json_schema!({
        "title": "releases",
        "description": "The Kubernetes releases on which the requirement holds, both ends \
                        included: >=1.23, <=1.20, 1.18 - 1.20, 1.37.",
        "type": ["string", "number"],
        "pattern": r"^\s*((>=|<=)?\s*v?1\.[0-9]+|v?1\.[0-9]+\s+-\s+v?1\.[0-9]+)\s*$",
        "examples": [">=1.23", "1.18 - 1.20", "1.37"],
    })
}

as_written! {
    /// The status of a condition.
    StatusText, "True or False", json_schema!({
        "title": "condition status",
        "description": "True or False, as in Kubernetes.",
        "enum": ["True", "False", true, false],
    })
}

/// A map in the order of the file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entries<V>(pub(super) Vec<(String, V)>);

impl<V> Default for Entries<V> {
    fn default() -> Entries<V> {
        Entries(Vec::new())
    }
}

impl<V> Entries<V> {
    /// Whether there are none.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<V>, D::Error> {
        Entries::read(deserializer, "a map")
    }
}

impl<'de, V: Deserialize<'de>> Entries<V> {
    /// Reads a map; `expected` says what of.
    pub(super) fn read<D: Deserializer<'de>>(
        deserializer: D,
        expected: &'static str,
    ) -> Result<Entries<V>, D::Error> {
        struct Map<V>(&'static str, PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Map<V> {
            type Value = Entries<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Map(expected, PhantomData))
    }
}

impl<V: Serialize> Serialize for Entries<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<V: JsonSchema> JsonSchema for Entries<V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", V::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<V>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// A scalar, or a map that says more.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ScalarOr<S, M> {
    /// The scalar, as written.
    Scalar(S),
    /// The map.
    Map(M),
}

impl<'de, S: From<String>, M: Deserialize<'de>> ScalarOr<S, M> {
    /// Reads either, by what is there. `expected` says what both are.
    pub(super) fn read<D: Deserializer<'de>>(
        deserializer: D,
        expected: &'static str,
    ) -> Result<ScalarOr<S, M>, D::Error> {
        struct Either<S, M>(&'static str, PhantomData<(S, M)>);
        impl<'de, S: From<String>, M: Deserialize<'de>> Visitor<'de> for Either<S, M> {
            type Value = ScalarOr<S, M>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ScalarOr<S, M>, E> {
                Ok(ScalarOr::Scalar(S::from(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScalarOr<S, M>, A::Error> {
                M::deserialize(de::value::MapAccessDeserializer::new(map)).map(ScalarOr::Map)
            }
        }
        deserializer.deserialize_newtype_struct(TEXT_OR_MAP, Either(expected, PhantomData))
    }
}

impl<S: Serialize, M: Serialize> Serialize for ScalarOr<S, M> {
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        match self {
            ScalarOr::Scalar(scalar) => scalar.serialize(serializer),
            ScalarOr::Map(map) => map.serialize(serializer),
        }
    }
}
