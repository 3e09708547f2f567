//! Values in text form: durations, quantities, sets of pods and others. This module parses,
//! validates, writes and describes each form in the JSON Schema.
//!
//! The decoder finds a form by its name. It reports a text that does not match the form with its
//! position, and continues with a valid value in its place. All such problems of a file are
//! therefore reported at once, together with the problems that the validation finds later.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::node::shorten;
use crate::diagnostic::{Diagnostic, Hint};
use kube_autoscaler_models::quantity::{Quantity, QuantityError};
use kube_autoscaler_models::time::{Span, SpanError, Time};

/// The problem of a text that does not match its form.
pub(crate) fn malformed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(what)
}

/// The text form of a value.
pub trait Form {
    type Value;
    /// The name by which the decoder finds the form. It starts with a NUL, unlike the names of
    /// types.
    const NAME: &'static str;
    /// The expected form, for messages.
    const EXPECTED: &'static str;
    /// A valid text that replaces a malformed one.
    const FALLBACK: &'static str;
    /// The name of the form's definition in the JSON Schema.
    const SCHEMA_NAME: &'static str;
    /// True if a map is allowed in place of the text.
    const OR_MAP: bool = false;

    /// Parses the text.
    ///
    /// # Errors
    /// If the text does not have the form.
    fn read(text: &str) -> Result<Self::Value, Diagnostic>;
    /// The text of a value, in its usual form.
    fn write(value: &Self::Value) -> String;
    /// The JSON Schema of the text.
    fn schema() -> Schema;
}

/// For fields: `#[serde(with = "As::<Duration>")]`, or `As::<Option<Duration>>`.
pub struct As<F>(PhantomData<F>);

/// A value that is read and written in its form.
pub(super) struct Read<F: Form>(pub(super) F::Value);

impl<F: Form> JsonSchema for Read<F> {
    fn schema_name() -> Cow<'static, str> {
        As::<F>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        As::<F>::json_schema(generator)
    }
}

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
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<F::Value, D::Error> {
        Read::<F>::deserialize(d).map(|read| read.0)
    }

    pub(crate) fn serialize<S: Serializer>(value: &F::Value, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&F::write(value))
    }
}

impl<F: Form> As<Option<F>> {
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<F::Value>, D::Error> {
        Option::<Read<F>>::deserialize(d).map(|read| read.map(|read| read.0))
    }

    pub(crate) fn serialize<S: Serializer>(
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

/// A text of a form, or a map instead of it.
pub(super) enum TextOrMap<F: Form, M> {
    Text(F::Value),
    Map(M),
}

impl<'de, F: Form, M: Deserialize<'de>> Deserialize<'de> for TextOrMap<F, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOrMap<F, M>, D::Error> {
        struct Either<F, M>(PhantomData<(F, M)>);
        impl<'de, F: Form, M: Deserialize<'de>> Visitor<'de> for Either<F, M> {
            type Value = TextOrMap<F, M>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(F::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrMap<F, M>, E> {
                F::read(text).map(TextOrMap::Text).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrMap<F, M>, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(TextOrMap::Map)
            }
        }
        deserializer.deserialize_newtype_struct(F::NAME, Either(PhantomData))
    }
}

/// A map of values by name, for example requests by resource: `As<ByName<Amount>>`.
pub struct ByName<F>(PhantomData<F>);

impl<F: Form> As<ByName<F>> {
    /// Reads the map for serde's `with`.
    ///
    /// # Errors
    /// If a value does not have the form.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<BTreeMap<Arc<str>, F::Value>, D::Error> {
        let values = BTreeMap::<Arc<str>, Read<F>>::deserialize(d)?;
        Ok(values.into_iter().map(|(name, read)| (name, read.0)).collect())
    }

    pub(crate) fn serialize<S: Serializer>(
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

/// Implements serde and the schema for types whose only form is text.
macro_rules! text_only {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$name, D::Error> {
                $crate::text::As::<$name>::deserialize(deserializer)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::text::As::<$name>::serialize(self, serializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $crate::text::As::<$name>::schema_name()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::text::As::<$name>::json_schema(generator)
            }
        }
    };
}

pub(super) use text_only;

/// A form that accepts a subset of another form's texts, with the same schema.
macro_rules! narrower_form {
    ($(#[$doc:meta])* $name:ident: $value:ty = $base:ident, $id:literal,
     expected $expected:expr, or_map $or_map:literal, fallback $fallback:literal, $read:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl Form for $name {
            type Value = $value;
            const NAME: &'static str = $id;
            const EXPECTED: &'static str = $expected;
            const FALLBACK: &'static str = $fallback;
            const SCHEMA_NAME: &'static str = $base::SCHEMA_NAME;
            const OR_MAP: bool = $or_map;

            fn read(text: &str) -> Result<$value, Diagnostic> {
                $read(text)
            }
            fn write(value: &$value) -> String {
                value.to_string()
            }
            fn schema() -> Schema {
                $base::schema()
            }
        }
    };
}

/// A duration that may be zero, but not negative.
pub struct Duration;

impl Form for Duration {
    type Value = Span;
    const NAME: &'static str = "\0duration";
    const EXPECTED: &'static str = "a duration such as 15s, 1m30s or 500ms";
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "Duration";

    fn read(text: &str) -> Result<Span, Diagnostic> {
        span(text, Duration::EXPECTED)
    }
    fn write(value: &Span) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "duration",
            "description": "A duration in Go's format, or with days: 15s, 1m30s, 500ms, 1.5h, 2d, \
                            1d12h.",
            "type": ["string", "integer"],
            "pattern": DURATION,
            "minimum": 0,
            "maximum": 0,
            "examples": ["15s", "5m", "1m30s", "500ms"],
        })
    }
}

/// A duration that may be negative.
pub struct SignedDuration;

impl Form for SignedDuration {
    type Value = Span;
    const NAME: &'static str = "\0signed duration";
    const EXPECTED: &'static str = "a duration such as 15s, 7d or -1h30m";
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "SignedDuration";

    fn read(text: &str) -> Result<Span, Diagnostic> {
        match text.strip_prefix('-') {
            Some(positive) => Ok(Span(-span(positive, SignedDuration::EXPECTED)?.0)),
            None => span(text, SignedDuration::EXPECTED),
        }
    }
    fn write(value: &Span) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        let pattern = DURATION.replacen('^', "^-?", 1);
        json_schema!({
            "title": "signed duration",
            "description": "A duration in Go's format, or with days, that may be negative: 1h, \
                            -30m, 7d.",
            "type": ["string", "integer"],
            "pattern": pattern,
            "minimum": 0,
            "maximum": 0,
            "examples": ["7d", "-1h30m"],
        })
    }
}

/// The pattern of durations in the JSON Schema: days, which Go does not have, precede the rest.
const DURATION: &str =
    r"^([0-9]+d([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))*|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+|0)$";

/// A duration in Go's format, which has no days: `2d` is `48h`.
#[must_use]
pub fn days_as_hours(text: &str) -> Cow<'_, str> {
    let hours = text.split_once('d').and_then(|(days, rest)| {
        let hours = days.parse::<u32>().ok()?.checked_mul(24)?;
        Some(format!("{hours}h{rest}"))
    });
    hours.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Reads a duration. `expected` describes the form.
fn span(text: &str, expected: &str) -> Result<Span, Diagnostic> {
    match days_as_hours(text).parse::<Span>() {
        Ok(span) if span >= Span::ZERO => Ok(span),
        Ok(_) => Err(malformed(format!("expected a duration of 0s or more, found {text}"))),
        Err(SpanError::NoUnit) => {
            // The last number may lack its unit: 1m30.
            let with_unit = format!("{text}s");
            let hint = is_duration(&with_unit)
                .then(|| format!("a unit is missing: did you mean {with_unit}?").into());
            Err(malformed(format!("expected {expected}, found {text}")).with_hint(hint))
        }
        Err(error) => {
            let found = shorten(text);
            let what = match error {
                SpanError::Malformed => format!("expected {expected}, found {found}"),
                error => format!("expected a duration, found {found}: {error}"),
            };
            Err(malformed(what).with_hint(unit_hint(text)))
        }
    }
}

/// Returns true if a text is a duration that is not too long.
fn is_duration(text: &str) -> bool {
    days_as_hours(text).parse::<Span>().is_ok()
}

/// The probable meaning of a unit that a duration can't have.
fn unit_hint(text: &str) -> Option<Hint> {
    if text == "never" {
        let hint = "write a duration that is longer than the scenario, for example 1000h";
        return Some(hint.into());
    }
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if compact != text && is_duration(&compact) {
        return Some(format!("write the duration without a space: did you mean {compact}?").into());
    }
    let split = compact.find(|c: char| c.is_alphabetic())?;
    let (number, unit) = compact.split_at(split);
    if let ("d" | "day" | "days", Ok(days)) = (unit, number.parse::<f64>()) {
        let is_whole = days.fract() == 0.0;
        let meant = if is_whole { format!("{days}d") } else { format!("{}h", days * 24.0) };
        return is_duration(&meant).then_some(Hint::Meant(meant));
    }
    let unit = match unit.to_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "min" | "mins" | "minute" | "minutes" | "m" => "m",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        "msec" | "millis" | "milliseconds" => "ms",
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    is_duration(&meant).then_some(Hint::Meant(meant))
}

narrower_form! {
    /// A duration longer than zero.
    PositiveDuration: Span = Duration, "\0positive duration",
    expected Duration::EXPECTED, or_map false, fallback "1s",
    |text| match Duration::read(text)? {
        Span::ZERO => Err(malformed("expected a duration of more than 0s, found 0s")),
        span => Ok(span),
    }
}

narrower_form! {
    /// A time, as the duration since the scenario's start.
    Instant: Time = Duration, "\0instant",
    expected Duration::EXPECTED, or_map false, fallback "0s",
    |text| Duration::read(text).map(|span| Time::ZERO + span)
}

narrower_form! {
    /// The end time of a scenario. The fallback is later than all other times.
    End: Time = Duration, "\0end",
    expected Duration::EXPECTED, or_map false, fallback "2000000h",
    Instant::read
}

/// A duration, or `never`.
pub(super) struct DurationOrNever;

impl Form for DurationOrNever {
    type Value = Option<Span>;
    const NAME: &'static str = "\0duration or never";
    const EXPECTED: &'static str = "a duration such as 15s, or `never`";
    const FALLBACK: &'static str = "0s";
    const SCHEMA_NAME: &'static str = "DurationOrNever";

    fn read(text: &str) -> Result<Option<Span>, Diagnostic> {
        if text == "never" { Ok(None) } else { span(text, Self::EXPECTED).map(Some) }
    }
    fn write(value: &Option<Span>) -> String {
        value.map_or_else(|| "never".to_owned(), |span| span.to_string())
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "duration or never",
            "description": "A duration in Go's format or with days (10s, 1m30s, 2d), or `never`.",
            "type": ["string", "integer"],
            "pattern": format!("{DURATION}|^never$"),
            "minimum": 0,
            "maximum": 0,
            "examples": ["10s", "never"],
        })
    }
}

/// A Kubernetes quantity.
pub struct AnyQuantity;

impl Form for AnyQuantity {
    type Value = Quantity;
    const NAME: &'static str = "\0quantity";
    const EXPECTED: &'static str = "a quantity such as 500m, 0.5 or 1Gi";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = "QuantityText";

    fn read(text: &str) -> Result<Quantity, Diagnostic> {
        Quantity::parse(text).map_err(|error| {
            let found = shorten(text);
            let what = match error {
                // Upstream's error contains a regular expression, which does not help users.
                QuantityError::FormatWrong => format!("expected {}, found {found}", Self::EXPECTED),
                other => format!("expected a quantity, found {found}: {other}"),
            };
            malformed(what).with_hint(quantity_hint(text))
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

/// The unit of a recorded signal. A percentage of the request is replaced by a quantity, which is
/// followed by [`PERCENT_MARK`] and the number of the percentage.
pub(super) struct UnitText;

/// The separator between the quantity of a unit and its percentage. No valid unit contains it.
pub(super) const PERCENT_MARK: char = '\0';

impl Form for UnitText {
    type Value = (Quantity, Option<f64>);
    const NAME: &'static str = "\0unit";
    const EXPECTED: &'static str = AnyQuantity::EXPECTED;
    const FALLBACK: &'static str = "1";
    const SCHEMA_NAME: &'static str = "UnitText";

    fn read(text: &str) -> Result<(Quantity, Option<f64>), Diagnostic> {
        let (unit, percent) = text.split_once(PERCENT_MARK).unwrap_or((text, ""));
        Ok((AnyQuantity::read(unit)?, percent.parse().ok()))
    }
    fn write(value: &Self::Value) -> String {
        AnyQuantity::write(&value.0)
    }
    fn schema() -> Schema {
        QuantityOrPercent::schema()
    }
}

/// Examples of units, for messages.
pub const UNIT_EXAMPLES: &str =
    "for example 1m for millicores, 1Mi for MiB, or 1% for percent of the request";

/// The schema of a value of a signal: a quantity; for usage, also a percentage of the request,
/// which is replaced by a quantity before it is decoded.
pub(super) struct QuantityOrPercent;

impl Form for QuantityOrPercent {
    type Value = Quantity;
    const NAME: &'static str = "\0quantity or percentage";
    const EXPECTED: &'static str = AnyQuantity::EXPECTED;
    const FALLBACK: &'static str = AnyQuantity::FALLBACK;
    const SCHEMA_NAME: &'static str = "SignalValue";

    fn read(text: &str) -> Result<Quantity, Diagnostic> {
        AnyQuantity::read(text)
    }
    fn write(value: &Quantity) -> String {
        AnyQuantity::write(value)
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "quantity or percentage",
            "description": "A Kubernetes quantity: 500m, 0.5, 2, 128Mi, 1e3. For usage of cpu and \
                            memory, also a percentage of the request: 50%.",
            "type": ["string", "number"],
            "pattern": concat!(
                r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([eE][+-]?[0-9]+)|[numkMGTPE]|[KMGTPE]i)?$",
                r"|^[0-9]+(\.[0-9]+)?%$"
            ),
            "examples": ["500m", "1", "128Mi", "50%"],
        })
    }
}

narrower_form! {
    /// The quantity of a constant signal. A map in its place is a signal that changes.
    SignalText: Quantity = AnyQuantity, "\0signal",
    expected "a quantity such as 500m, or a map with steps, points, sine, add, backlog, noise, \
              factor, shift, repeat, csv, prometheus or openMetrics",
    or_map true,
    fallback "0",
    AnyQuantity::read
}

narrower_form! {
    /// An expected quantity. A map in its place holds bounds.
    QuantityBounds: Quantity = AnyQuantity, "\0quantity or bounds",
    expected "a quantity such as 500m, or {atLeast: …, atMost: …}",
    or_map true,
    fallback "0",
    AnyQuantity::read
}

narrower_form! {
    /// A quantity that is not negative.
    Amount: Quantity = AnyQuantity, "\0amount",
    expected AnyQuantity::EXPECTED, or_map false, fallback "0",
    |text| match AnyQuantity::read(text)? {
        quantity if quantity.sign() < 0 => {
            Err(malformed(format!("expected a quantity of 0 or more, found {text}")))
        }
        quantity => Ok(quantity),
    }
}

narrower_form! {
    /// A quantity in a manifest. The text is kept for the API server, and checked later, when the
    /// metric is known.
    QuantityText: String = AnyQuantity, "\0quantity as text",
    expected AnyQuantity::EXPECTED, or_map false, fallback "0",
    |text: &str| Ok(text.to_owned())
}

fn quantity_hint(text: &str) -> Option<Hint> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let split = compact.find(|c: char| c.is_alphabetic() || c == '%').unwrap_or(compact.len());
    let (number, suffix) = compact.split_at(split);
    // A unit alone: `millicores`.
    let number = if number.is_empty() && !suffix.is_empty() { "1" } else { number };
    let suffix = match suffix {
        // These suffixes are factors of 1000, but many people mean 1024.
        "KB" | "kB" | "MB" | "GB" => {
            let letter = if suffix == "KB" { "k" } else { &suffix[..1] };
            let binary = letter.to_uppercase();
            return Some(Hint::Meant(format!("{number}{letter}, or {number}{binary}i")));
        }
        "K" => "k",
        "ki" | "KI" | "KiB" => "Ki",
        "mi" | "MI" | "MiB" => "Mi",
        "gi" | "GI" | "GiB" => "Gi",
        "g" => "G",
        "mcpu" | "millicores" | "mcores" => "m",
        "core" | "cores" | "cpu" | "cpus" | "" => "",
        "%" => return Some("write an amount instead of a percentage".into()),
        _ => return None,
    };
    let meant = format!("{number}{suffix}");
    Quantity::parse(&meant).ok().map(|_| Hint::Meant(meant))
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

    fn read(text: &str) -> Result<i32, Diagnostic> {
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

/// A percentage, with or without its sign.
pub struct PercentText;

impl Form for PercentText {
    type Value = i32;
    const NAME: &'static str = "\0percentage";
    const EXPECTED: &'static str = "a percentage such as 10%";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = "PercentText";

    fn read(text: &str) -> Result<i32, Diagnostic> {
        match text.strip_suffix('%').unwrap_or(text).parse() {
            Ok(number) if number >= 0 => Ok(number),
            Ok(_) => Err(malformed(format!("expected a percentage of 0% or more, found {text}"))),
            Err(_) => Err(malformed(format!("expected a percentage, found {}", shorten(text)))
                .hint("write a whole number, with or without `%`, for example 50%")),
        }
    }
    fn write(value: &i32) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "pattern": "^[0-9]+%?$",
            "minimum": 0,
            "maximum": i32::MAX,
        })
    }
}

narrower_form! {
    /// An expected percentage. A map in its place holds bounds.
    PercentBoundsText: i32 = PercentText, "\0percentage or bounds",
    expected "a percentage such as 101, or {atLeast: …, atMost: …}", or_map true, fallback "0",
    PercentText::read
}

/// The status of a condition.
pub struct Status;

impl Form for Status {
    type Value = bool;
    const NAME: &'static str = "\0condition status";
    const EXPECTED: &'static str = "True or False";
    const FALLBACK: &'static str = "True";
    const SCHEMA_NAME: &'static str = "StatusText";

    fn read(text: &str) -> Result<bool, Diagnostic> {
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
