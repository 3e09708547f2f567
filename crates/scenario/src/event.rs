//! The form of the events of a timeline in scenario files: `at`, other fields, and exactly one
//! action, which is a field with the action's name.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{
    Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor,
};
use serde::ser::Serialize;
use serde_json::{Value, json};

use super::action::{Action, Empty, TimelineEvent};
use super::text::{As, Instant, PositiveDuration};
use kube_autoscaler_models::tagged::Tagged;
use kube_autoscaler_models::time::{Span, Time};

/// The names of the variants of an enum, or of the fields of a struct, in the order of their
/// declaration, as serde knows them.
pub(crate) fn names<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    /// A deserializer that records the names and then fails.
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
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _name: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.set(fields);
            self.deserialize_any(visitor)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
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

/// The names of all fields of events: `at` and others, then the actions.
fn fields() -> &'static [&'static str] {
    static FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let own = ["at", "during", "for", "hpa", "vpa", "target", "newPods"];
        own.iter().chain(names::<Action>()).copied().collect()
    });
    &FIELDS
}

/// A derived implementation would buffer the fields, and lose their positions.
impl<'de> Deserialize<'de> for TimelineEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimelineEvent, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = TimelineEvent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event, for example {at: 60s, scale: 7}")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TimelineEvent, A::Error> {
                event(map)
            }
        }
        deserializer.deserialize_struct("TimelineEvent", fields(), Fields)
    }
}

fn event<'de, A: MapAccess<'de>>(mut map: A) -> Result<TimelineEvent, A::Error> {
    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    struct At(#[serde(with = "As::<Instant>")] Time);
    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    struct For(#[serde(with = "As::<Option<PositiveDuration>>")] Option<Span>);

    // The values are replaced below.
    let mut event = TimelineEvent::new(Time::ZERO, Action::RestartController(Empty {}));
    let mut has_time = false;
    let mut actions: Vec<String> = Vec::new();
    while let Some(name) = map.next_key::<String>()? {
        match name.as_str() {
            "at" => {
                event.at = map.next_value::<At>()?.0;
                has_time = true;
            }
            "for" => event.lasts = map.next_value::<For>()?.0,
            "during" => event.during = Some(map.next_value()?),
            "hpa" => event.hpa = map.next_value()?,
            "vpa" => event.vpa = map.next_value()?,
            "target" => event.target = map.next_value()?,
            "newPods" => event.new_pods = map.next_value()?,
            action if !names::<Action>().contains(&action) => {
                return Err(A::Error::unknown_field(action, fields()));
            }
            _ => {
                if actions.is_empty() {
                    event.action = map.next_value_seed(Tagged::new(&name))?;
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
        [] => "the event has no action\nfor example {at: 60s, for: 2m, metricsMissing: \"0-2\"}"
            .to_owned(),
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
pub(super) struct EventSchema;

impl JsonSchema for EventSchema {
    fn schema_name() -> Cow<'static, str> {
        TimelineEvent::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut event = TimelineEvent::json_schema(generator);
        let actions = Action::json_schema(generator);
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
