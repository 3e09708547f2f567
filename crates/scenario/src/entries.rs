//! Maps that keep the order of the file.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A map in the order of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Entries<V>(pub Vec<(Arc<str>, V)>);

impl<V> Default for Entries<V> {
    fn default() -> Entries<V> {
        Entries(Vec::new())
    }
}

impl<V> Entries<V> {
    /// Returns true if the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| value)
    }

    /// Sets the value of a name. A new value replaces an earlier one in its position.
    pub fn insert(&mut self, name: Arc<str>, value: V) {
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.0.push((name, value)),
        }
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<V>, D::Error> {
        Entries::read(deserializer, "a map")
    }
}

impl<'de, V: Deserialize<'de>> Entries<V> {
    /// Reads a map. `expected` describes the map in messages.
    pub(crate) fn read<D: Deserializer<'de>>(
        deserializer: D,
        expected: &'static str,
    ) -> Result<Entries<V>, D::Error> {
        deserializer.deserialize_map(AnyFields(expected, PhantomData))
    }

    /// Reads a map like [`Entries::read`]. `type_name` is its type for the decoder's hints.
    pub(crate) fn read_type<D: Deserializer<'de>>(
        deserializer: D,
        type_name: &'static str,
        expected: &'static str,
    ) -> Result<Entries<V>, D::Error> {
        deserializer.deserialize_struct(type_name, &[], AnyFields(expected, PhantomData))
    }
}

/// Visits a map of any fields, with its description in messages.
struct AnyFields<V>(&'static str, PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for AnyFields<V> {
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

/// Reads a map as JSON. `expected` describes it in messages.
pub(super) fn read_object<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Value, D::Error> {
    let entries = Entries::<Value>::read(deserializer, expected)?;
    Ok(entries.0.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
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
