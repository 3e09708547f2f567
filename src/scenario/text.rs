//! Values that scenarios write as text: durations, quantities, sets of pods and the like. How each
//! of them is read, checked, written and described in the JSON Schema is said here once.
//!
//! The decoder finds a form by its name. It reports a text that does not have the form with its
//! position, and goes on with a harmless value in its place: so all such problems of a file are
//! reported at once, together with those that the validation finds later.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::node::shorten;
use super::podset::PodSetError;
use super::releases::RangeError;
use super::resolved::{PodSet, ReleaseRange, Share};
use crate::model::quantity::{Quantity, QuantityError};
use crate::model::time::{Span, SpanError, Time};

/// Text that does not have its form.
#[derive(Debug)]
pub(super) struct Malformed {
    /// What is wrong.
    pub(super) what: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

fn malformed(what: impl Into<String>) -> Malformed {
    Malformed { what: what.into(), hint: None }
}

impl Malformed {
    fn hint(self, hint: impl Into<String>) -> Malformed {
        Malformed { hint: Some(hint.into()), ..self }
    }
}

/// The text form of a value.
pub(super) trait Form {
    /// The value.
    type Value;
    /// The name by which the decoder finds the form. It starts with a NUL, which no type's name
    /// does.
    const NAME: &'static str;
    /// What is expected, for messages.
    const EXPECTED: &'static str;
    /// A text that stands in for one that is malformed.
    const FALLBACK: &'static str;
    /// The name of its definition in the JSON Schema.
    const SCHEMA_NAME: &'static str;
    /// Whether there may be a map in its place.
    const OR_MAP: bool = false;

    fn read(text: &str) -> Result<Self::Value, Malformed>;
    fn write(value: &Self::Value) -> String;
    fn schema() -> Schema;
}

/// What the decoder knows of a form.
pub(super) struct FormCheck {
    name: &'static str,
    /// Refuses a text that does not have the form.
    pub(super) check: fn(&str) -> Result<(), Malformed>,
    /// A text that stands in for one that is malformed.
    pub(super) fallback: &'static str,
    /// Whether there may be a map in its place.
    pub(super) or_map: bool,
}

impl FormCheck {
    const fn of<F: Form>() -> FormCheck {
        FormCheck { name: F::NAME, check: check::<F>, fallback: F::FALLBACK, or_map: F::OR_MAP }
    }

    /// The form of that name.
    pub(super) fn named(name: &str) -> Option<&'static FormCheck> {
        static ALL: [FormCheck; 14] = [
            FormCheck::of::<Duration>(),
            FormCheck::of::<PositiveDuration>(),
            FormCheck::of::<DurationOrNever>(),
            FormCheck::of::<Instant>(),
            FormCheck::of::<End>(),
            FormCheck::of::<AnyQuantity>(),
            FormCheck::of::<Amount>(),
            FormCheck::of::<QuantityText>(),
            FormCheck::of::<SignalText>(),
            FormCheck::of::<PodSet>(),
            FormCheck::of::<Share>(),
            FormCheck::of::<ReleaseRange>(),
            FormCheck::of::<NumberText>(),
            FormCheck::of::<Status>(),
        ];
        ALL.iter().find(|form| form.name == name)
    }
}

fn check<F: Form>(text: &str) -> Result<(), Malformed> {
    F::read(text).map(drop)
}

/// For fields: `#[serde(with = "As::<Duration>")]`, or `As::<Option<Duration>>`.
pub(super) struct As<F>(PhantomData<F>);

/// A value that is read by its form.
struct Read<F: Form>(F::Value);

impl<'de, F: Form> Deserialize<'de> for Read<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read<F>, D::Error> {
        struct Text<F>(PhantomData<F>);
        impl<'de, F: Form> Visitor<'de> for Text<F> {
            type Value = Read<F>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(F::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Read<F>, E> {
                F::read(text).map(Read).map_err(E::custom)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Read<F>, D::Error> {
                deserializer.deserialize_str(self)
            }
        }
        deserializer.deserialize_newtype_struct(F::NAME, Text(PhantomData))
    }
}

impl<F: Form> As<F> {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<F::Value, D::Error> {
        Read::<F>::deserialize(d).map(|read| read.0)
    }

    pub(super) fn serialize<S: Serializer>(value: &F::Value, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&F::write(value))
    }
}

impl<F: Form> As<Option<F>> {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<F::Value>, D::Error> {
        Option::<Read<F>>::deserialize(d).map(|read| read.map(|read| read.0))
    }

    pub(super) fn serialize<S: Serializer>(
        value: &Option<F::Value>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(F::write).serialize(s)
    }
}

impl<F: Form> JsonSchema for As<F> {
    fn schema_name() -> Cow<'static, str> {
        F::SCHEMA_NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        F::schema()
    }
}

impl<F: Form> JsonSchema for As<Option<F>> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        Option::<As<F>>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<As<F>>::json_schema(generator)
    }
}

/// A map of values by name, for instance requests by resource: `As<ByName<Amount>>`.
pub(super) struct ByName<F>(PhantomData<F>);

impl<F: Form> As<ByName<F>> {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<BTreeMap<Arc<str>, F::Value>, D::Error> {
        let values = BTreeMap::<Arc<str>, Read<F>>::deserialize(d)?;
        Ok(values.into_iter().map(|(name, read)| (name, read.0)).collect())
    }

    pub(super) fn serialize<S: Serializer>(
        values: &BTreeMap<Arc<str>, F::Value>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_map(values.iter().map(|(name, value)| (name, F::write(value))))
    }
}

impl<F: Form> JsonSchema for As<ByName<F>> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", F::SCHEMA_NAME).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<As<F>>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// Types whose only form is text are read and written by it everywhere.
macro_rules! text_only {
    ($($name:ident)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                As::<$name>::deserialize(deserializer)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                As::<$name>::serialize(self, serializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                As::<$name>::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                As::<$name>::json_schema(generator)
            }
        }
    )*};
}

text_only!(PodSet ReleaseRange Share);

fn duration_schema() -> Schema {
    json_schema!({
        "title": "duration",
        "description": "A duration as Go writes them: 15s, 1m30s, 500ms, 1.5h.",
        "type": ["string", "integer"],
        "pattern": r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$",
        "minimum": 0,
        "maximum": 0,
        "examples": ["15s", "5m", "1m30s", "500ms"],
    })
}

/// A duration that may be zero, but not negative.
pub(super) struct Duration;

impl Form for Duration {
    type Value = Span;
    const NAME: &'static str = "\0duration";
    const EXPECTED: &'static str = "a duration such as 15s, 1m30s or 500ms";
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "Duration";

    fn read(text: &str) -> Result<Span, Malformed> {
        span(text)
    }
    fn write(value: &Span) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        duration_schema()
    }
}

fn span(text: &str) -> Result<Span, Malformed> {
    match text.parse::<Span>() {
        Ok(span) if span >= Span::ZERO => Ok(span),
        Ok(_) => Err(malformed(format!("expected a duration, found {text}: it is negative"))),
        Err(SpanError::NoUnit) => {
            // The number may end in one that has no unit: 1m30.
            let hint = format!("a unit is missing: did you mean {text}s?");
            Err(malformed(format!("expected a duration, found {text}")).hint(hint))
        }
        Err(error) => {
            let what = format!("expected a duration, found {}: {error}", shorten(text));
            Err(Malformed { what, hint: unit_hint(text) })
        }
    }
}

/// What may have been meant by a unit that Go does not know.
fn unit_hint(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if compact != text && compact.parse::<Span>().is_ok() {
        return Some(format!("write it without a space: did you mean {compact}?"));
    }
    let split = compact.find(|c: char| c.is_alphabetic())?;
    let (number, unit) = compact.split_at(split);
    if let ("d" | "day" | "days", Ok(days)) = (unit, number.parse::<u32>()) {
        return Some(format!("Go has no days: did you mean {}h?", u64::from(days) * 24));
    }
    let unit = match unit.to_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "min" | "mins" | "minute" | "minutes" | "m" => "m",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        "msec" | "millis" | "milliseconds" => "ms",
        _ => return None,
    };
    Some(format!("did you mean {number}{unit}?"))
}

/// A duration that is more than zero.
pub(super) struct PositiveDuration;

impl Form for PositiveDuration {
    type Value = Span;
    const NAME: &'static str = "\0positive duration";
    const EXPECTED: &'static str = Duration::EXPECTED;
    const FALLBACK: &'static str = "1s";
    const SCHEMA_NAME: &'static str = "Duration";

    fn read(text: &str) -> Result<Span, Malformed> {
        match span(text)? {
            Span::ZERO => Err(malformed("expected a duration of more than zero, found 0s")),
            span => Ok(span),
        }
    }
    fn write(value: &Span) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        duration_schema()
    }
}

/// A duration, or `never`.
pub(super) struct DurationOrNever;

impl Form for DurationOrNever {
    type Value = Option<Span>;
    const NAME: &'static str = "\0duration or never";
    const EXPECTED: &'static str = "a duration such as 15s, or never";
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "DurationOrNever";

    fn read(text: &str) -> Result<Option<Span>, Malformed> {
        if text == "never" { Ok(None) } else { span(text).map(Some) }
    }
    fn write(value: &Option<Span>) -> String {
        value.map_or_else(|| "never".to_owned(), |span| span.to_string())
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "duration or never",
            "description": "A duration as Go writes them (10s, 1m30s), or `never`.",
            "type": ["string", "integer"],
            "pattern": r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$|^never$",
            "minimum": 0,
            "maximum": 0,
            "examples": ["10s", "never"],
        })
    }
}

/// An instant, as the duration since the scenario's start.
pub(super) struct Instant;

impl Form for Instant {
    type Value = Time;
    const NAME: &'static str = "\0instant";
    const EXPECTED: &'static str = Duration::EXPECTED;
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "Duration";

    fn read(text: &str) -> Result<Time, Malformed> {
        span(text).map(|span| Time::ZERO + span)
    }
    fn write(value: &Time) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        duration_schema()
    }
}

/// The instant at which a scenario ends.
pub(super) struct End;

impl Form for End {
    type Value = Time;
    const NAME: &'static str = "\0end";
    const EXPECTED: &'static str = Duration::EXPECTED;
    // So late that nothing else is after the end.
    const FALLBACK: &'static str = "2000000h";
    const SCHEMA_NAME: &'static str = "Duration";

    fn read(text: &str) -> Result<Time, Malformed> {
        Instant::read(text)
    }
    fn write(value: &Time) -> String {
        Instant::write(value)
    }
    fn schema() -> Schema {
        duration_schema()
    }
}

/// A Kubernetes quantity.
pub(super) struct AnyQuantity;

impl Form for AnyQuantity {
    type Value = Quantity;
    const NAME: &'static str = "\0quantity";
    const EXPECTED: &'static str = "a quantity such as 500m, 0.5 or 1Gi";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = "QuantityText";

    fn read(text: &str) -> Result<Quantity, Malformed> {
        Quantity::parse(text).map_err(|error| Malformed {
            what: format!("expected a quantity, found {}: {}", shorten(text), short(error)),
            hint: quantity_hint(text),
        })
    }
    fn write(value: &Quantity) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "quantity",
            "description": "A Kubernetes quantity: 500m, 0.5, 2, 128Mi, 1e3.",
            "type": ["string", "number"],
            "pattern":
                r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([eE][+-]?[0-9]+)|[numkMGTPE]|[KMGTPE]i)?$",
            "examples": ["500m", "1", "128Mi"],
        })
    }
}

/// The quantity of a signal that stays the same. A map in its place is a signal that changes.
pub(super) struct SignalText;

impl Form for SignalText {
    type Value = Quantity;
    const NAME: &'static str = "\0signal";
    const EXPECTED: &'static str = "a quantity such as 500m, or a map with steps, points or sine";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = AnyQuantity::SCHEMA_NAME;
    const OR_MAP: bool = true;

    fn read(text: &str) -> Result<Quantity, Malformed> {
        AnyQuantity::read(text)
    }
    fn write(value: &Quantity) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        AnyQuantity::schema()
    }
}

/// A quantity that is not negative.
pub(super) struct Amount;

impl Form for Amount {
    type Value = Quantity;
    const NAME: &'static str = "\0amount";
    const EXPECTED: &'static str = AnyQuantity::EXPECTED;
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = AnyQuantity::SCHEMA_NAME;

    fn read(text: &str) -> Result<Quantity, Malformed> {
        let quantity = AnyQuantity::read(text)?;
        if quantity.sign() < 0 {
            Err(malformed(format!("{text} is negative")))
        } else {
            Ok(quantity)
        }
    }
    fn write(value: &Quantity) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        AnyQuantity::schema()
    }
}

/// A quantity of a manifest. Its text is kept for the API server, and checked later, where it is
/// known what the quantity is of.
pub(super) struct QuantityText;

impl Form for QuantityText {
    type Value = String;
    const NAME: &'static str = "\0quantity as text";
    const EXPECTED: &'static str = AnyQuantity::EXPECTED;
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = AnyQuantity::SCHEMA_NAME;

    fn read(text: &str) -> Result<String, Malformed> {
        Ok(text.to_owned())
    }
    fn write(value: &String) -> String {
        value.clone()
    }
    fn schema() -> Schema {
        AnyQuantity::schema()
    }
}

/// Upstream quotes a regular expression, which helps nobody.
fn short(error: QuantityError) -> String {
    match error {
        QuantityError::FormatWrong => "not a number with a suffix".to_owned(),
        other => other.to_string(),
    }
}

fn quantity_hint(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let split = compact.find(|c: char| c.is_alphabetic() || c == '%').unwrap_or(compact.len());
    let (number, suffix) = compact.split_at(split);
    let suffix = match suffix {
        // With a factor of 1000 by their letters, often meant with one of 1024.
        "KB" | "kB" | "MB" | "GB" => {
            let letter = if suffix == "KB" { "k" } else { &suffix[..1] };
            let binary = letter.to_uppercase();
            return Some(format!("did you mean {number}{letter}, or {number}{binary}i?"));
        }
        "K" => "k",
        "ki" | "KI" | "KiB" => "Ki",
        "mi" | "MI" | "MiB" => "Mi",
        "gi" | "GI" | "GiB" => "Gi",
        "g" => "G",
        "mcpu" | "millicores" | "mcores" => "m",
        "core" | "cores" | "cpu" | "cpus" | "" => "",
        "%" => return Some("an amount is meant, not a share: for instance 500m".to_owned()),
        _ => return Some("for instance 500m, 0.5, 2 or 128Mi".to_owned()),
    };
    let meant = format!("{number}{suffix}");
    Quantity::parse(&meant).ok().map(|_| format!("did you mean {meant}?"))
}

/// Written as cpusets are: `0-4,7`, or `all`.
impl Form for PodSet {
    type Value = PodSet;
    const NAME: &'static str = "\0pod set";
    const EXPECTED: &'static str = "a set of pods such as \"0-4,7\" or all";
    const FALLBACK: &'static str = "all";
    const SCHEMA_NAME: &'static str = "PodSetText";

    fn read(text: &str) -> Result<PodSet, Malformed> {
        text.parse().map_err(|error: PodSetError| {
            let text = text.trim();
            let hint = match (text, &error) {
                (_, PodSetError::Backwards(from, to)) => Some(format!("did you mean {to}-{from}?")),
                ("*" | "any" | "every" | "ALL" | "All", _) => Some("did you mean all?".to_owned()),
                ("none", _) => Some("leave the entry out".to_owned()),
                _ if text.contains("..") => Some(format!(
                    "did you mean \"{}\"?",
                    text.replace("..=", "-").replace("..", "-")
                )),
                _ => None,
            };
            Malformed { what: error.to_string(), hint }
        })
    }
    fn write(value: &PodSet) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "pod set",
            "description": "Pods by ordinal (the order of their creation, from 0), written as \
                            cpusets are: 0-4,7. Or `all`: every pod there is at that time.",
            "type": ["string", "integer"],
            "pattern": r"^(all|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
            "minimum": 0,
            "examples": ["all", "0-4,7", "3"],
        })
    }
}

/// A number of pods, or percent of the size.
impl Form for Share {
    type Value = Share;
    const NAME: &'static str = "\0share";
    const EXPECTED: &'static str = "a number of pods, or percent such as 25%";
    const FALLBACK: &'static str = "1";
    const SCHEMA_NAME: &'static str = "ShareText";

    fn read(text: &str) -> Result<Share, Malformed> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(Share::Percent),
            None => text.parse().map(Share::Pods),
        };
        share.map_err(|_| {
            let what = format!("expected a number of pods, or percent, found {text:?}");
            malformed(what).hint("for instance 1 or 25%")
        })
    }
    fn write(value: &Share) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "number or percent",
            "description": "A number of pods, or percent of the size: 1, 25%.",
            "type": ["string", "integer"],
            "pattern": r"^[0-9]+%?$",
            "minimum": 0,
            "examples": ["25%", 1],
        })
    }
}

/// A range of Kubernetes releases.
impl Form for ReleaseRange {
    type Value = ReleaseRange;
    const NAME: &'static str = "\0releases";
    const EXPECTED: &'static str = "a range of releases such as \">=1.23\"";
    const FALLBACK: &'static str = ">=1.6";
    const SCHEMA_NAME: &'static str = "ReleasesText";

    fn read(text: &str) -> Result<ReleaseRange, Malformed> {
        text.parse().map_err(|RangeError { what, hint }| Malformed { what, hint })
    }
    fn write(value: &ReleaseRange) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "releases",
            "description": "The Kubernetes releases on which the requirement holds, both ends \
                            included: >=1.23, <=1.20, 1.18 - 1.20, 1.37.",
            "type": ["string", "number"],
            "pattern": r"^\s*((>=|<=)?\s*v?1\.[0-9]+|v?1\.[0-9]+\s+-\s+v?1\.[0-9]+)\s*$",
            "examples": [">=1.23", "1.18 - 1.20", "1.37"],
        })
    }
}

/// A number of replicas. A map in its place holds bounds.
pub(super) struct NumberText;

impl Form for NumberText {
    type Value = i32;
    const NAME: &'static str = "\0number";
    const EXPECTED: &'static str = "a number of replicas, or {atLeast: …, atMost: …}";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = "Number";
    const OR_MAP: bool = true;

    fn read(text: &str) -> Result<i32, Malformed> {
        text.parse().ok().filter(|number| *number >= 0).ok_or_else(|| {
            let what = format!("expected a number of replicas, found {text}");
            malformed(what).hint("or bounds: {atLeast: 3, atMost: 10}")
        })
    }
    fn write(value: &i32) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": i32::MAX })
    }
}

/// The status of a condition.
pub(super) struct Status;

impl Form for Status {
    type Value = bool;
    const NAME: &'static str = "\0condition status";
    const EXPECTED: &'static str = "True or False";
    const FALLBACK: &'static str = "True";
    const SCHEMA_NAME: &'static str = "StatusText";

    fn read(text: &str) -> Result<bool, Malformed> {
        match text {
            "True" | "true" => Ok(true),
            "False" | "false" => Ok(false),
            other => Err(malformed(format!("expected status True or False, found {other}"))),
        }
    }
    fn write(value: &bool) -> String {
        if *value { "True".to_owned() } else { "False".to_owned() }
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "condition status",
            "description": "True or False, as in Kubernetes.",
            "enum": ["True", "False", true, false],
        })
    }
}
