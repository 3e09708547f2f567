//! The form of the events of a timeline in scenario files: `at`, other fields, and exactly one
//! action, which is a field with the action's name.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected,
    Visitor,
};
use serde::ser::Serialize;
use serde_json::{Value, json};

use super::text::{As, Instant, PositiveDuration};
use kube_autoscaler_models::tagged::Tagged;
use kube_autoscaler_models::time::{Span, Time};

/// An event in the form of scenario files.
pub(super) trait EventForm: Sized {
    /// The actions: an enum with one variant per action, in the order of messages.
    type Action: for<'de> Deserialize<'de> + JsonSchema;

    /// The expected value, for messages about a value that is not an event.
    const EXPECTED: &'static str;

    /// The names of all fields: `at` and others, then the actions.
    fn fields() -> &'static [&'static str];

    /// An event with values that [`read`] replaces.
    fn placeholder() -> Self;

    /// The value of `at`.
    fn at(&mut self) -> &mut Time;

    /// The value of `for`.
    fn lasts(&mut self) -> &mut Option<Span>;

    /// The action.
    fn action(&mut self) -> &mut Self::Action;

    /// Reads the value of a further field.
    fn read_field<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<(), A::Error>;

    /// The hint for an event without an action.
    fn add_action() -> String;
}

/// The names of the variants of an enum in the order of their declaration, as serde knows them.
pub(crate) fn variants<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    /// A deserializer that records the names of the variants and then fails.
    struct Names<'a>(&'a Cell<&'static [&'static str]>);
    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = serde::de::value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::invalid_type(Unexpected::Unit, &visitor))
        }
        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _name: &'static str,
            variants: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.set(variants);
            self.deserialize_any(visitor)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }
    let names = Cell::new([].as_slice());
    let _ = T::deserialize(Names(&names));
    names.get()
}

/// The name of the variant of a value, as serde knows it. The variant must have a field.
pub(crate) fn variant(value: &impl Serialize) -> String {
    let fields = serde_json::to_value(value).unwrap_or_default();
    fields.as_object().and_then(|fields| fields.keys().next().cloned()).unwrap_or_default()
}

/// Reads the name of one of some fields.
pub(crate) struct FieldName(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let name = String::deserialize(deserializer)?;
        if self.0.contains(&name.as_str()) {
            Ok(name)
        } else {
            Err(D::Error::unknown_field(&name, self.0))
        }
    }
}

/// Reads an event. A derived implementation would buffer the fields, and lose their positions.
pub(crate) fn read<'de, E: EventForm, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<E, D::Error> {
    struct Fields<E>(PhantomData<E>);
    impl<'de, E: EventForm> Visitor<'de> for Fields<E> {
        type Value = E;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(E::EXPECTED)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<E, A::Error> {
            event(map)
        }
    }
    deserializer.deserialize_map(Fields(PhantomData))
}

fn event<'de, E: EventForm, A: MapAccess<'de>>(mut map: A) -> Result<E, A::Error> {
    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    struct At(#[serde(with = "As::<Instant>")] Time);
    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    struct For(#[serde(with = "As::<Option<PositiveDuration>>")] Option<Span>);

    let mut event = E::placeholder();
    let mut has_time = false;
    let names = variants::<E::Action>();
    let mut actions: Vec<String> = Vec::new();
    while let Some(name) = map.next_key_seed(FieldName(E::fields()))? {
        match name.as_str() {
            "at" => {
                *event.at() = map.next_value::<At>()?.0;
                has_time = true;
            }
            "for" => *event.lasts() = map.next_value::<For>()?.0,
            other if !names.contains(&other) => event.read_field(other, &mut map)?,
            _ => {
                if actions.is_empty() {
                    *event.action() = map.next_value_seed(Tagged::new(&name))?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
                actions.push(name);
            }
        }
    }
    if !has_time {
        return Err(A::Error::missing_field("at"));
    }
    let wrong = match actions.as_slice() {
        [_] => return Ok(event),
        [] => format!("the event has no action\n{}", E::add_action()),
        several => format!(
            "expected one action, found {}: {}\nwrite a separate event for each action",
            several.len(),
            several.join(", ")
        ),
    };
    Err(A::Error::custom(wrong))
}

/// The JSON Schema of an event: each action is a field with its own description. Actions with the
/// schema's extension `for: false` can't be combined with `for`.
pub(super) struct EventSchema<E>(PhantomData<E>);

impl<E: EventForm + JsonSchema> JsonSchema for EventSchema<E> {
    fn schema_name() -> Cow<'static, str> {
        E::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut event = E::json_schema(generator);
        let actions = E::Action::json_schema(generator);
        let mut choices = Vec::new();
        for action in actions.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            let Some(Value::String(name)) = action.pointer("/required/0") else { continue };
            let mut field = action["properties"][name].clone();
            field["description"] = action["description"].clone();
            let mut choice = json!({ "required": [name] });
            if action.get("for").is_some() {
                choice["properties"] = json!({ "for": false });
            }
            choices.push(choice);
            if let Some(fields) = event.get_mut("properties").and_then(Value::as_object_mut) {
                fields.insert(name.clone(), field);
            }
        }
        event.insert("oneOf".to_owned(), choices.into());
        event
    }
}
