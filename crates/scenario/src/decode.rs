//! Decodes a tree with positions into typed structs, by serde.
//!
//! Each error has the position of the innermost node that caused it. Serde stops at the first
//! error, so a file with a misspelled field has only this one; the problems that `resolve` finds
//! are reported together.
//!
//! The YAML library could decode the text itself, with `Spanned` values. A tree is used because
//! - `resolve` points at any field, also at an absent one or a key, while the typed structs, which
//!   traces, engines and results share, have no positions;
//! - the autoscalers of the scenario determine which fields a map can have;
//! - a placeholder replaces a malformed text, so that all errors are reported together, and renamed
//!   fields are still read.

use std::cell::RefCell;
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};

use super::autoscalers::Autoscalers;
use super::error::suggest;
use super::forms::FormCheck;
use super::hints;
use super::known_fields::{KnownFields, Refused};
use super::node::{Key, Node, NodeKind, Scalar, shorten};
use super::podset::PodSet;
use super::text::Form;
use crate::diagnostic::{Diagnostic, Hint, Kind};
use kube_autoscaler_models::tagged::visit_variant;

/// The type of `metricMissing`, as serde knows it.
const METRIC_OF_PODS: &str = "MetricOfPods";

/// The meaning of `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nulls {
    /// A field without a value is an error, as in scenarios.
    Refused,
    /// null is the same as absent, as in the Kubernetes API and its manifests.
    Absent,
}

/// A decoded value, and the problems in it that did not stop the decoder: malformed texts, which
/// were replaced by valid values, and impossible fields.
pub(super) struct Decoded<T> {
    pub value: T,
    pub malformed: Vec<Diagnostic>,
}

/// Decodes a tree. Fails with the first problem.
pub fn decode<T: DeserializeOwned>(node: &Node, nulls: Nulls) -> Result<T, Diagnostic> {
    let Decoded { value, malformed } = decode_all(node, nulls)?;
    malformed.into_iter().next().map_or(Ok(value), Err)
}

/// Decodes a tree, and continues after malformed texts.
pub(super) fn decode_all<T: DeserializeOwned>(
    node: &Node,
    nulls: Nulls,
) -> Result<Decoded<T>, Diagnostic> {
    decode_with(node, nulls, Autoscalers::Hpas)
}

/// Decodes a scenario or a part of it, and continues after malformed texts and after fields that a
/// scenario with these autoscalers can't have.
pub(super) fn decode_scenario<T: DeserializeOwned>(
    node: &Node,
    autoscalers: Autoscalers,
) -> Result<Decoded<T>, Diagnostic> {
    decode_with(node, Nulls::Refused, autoscalers)
}

fn decode_with<T: DeserializeOwned>(
    node: &Node,
    nulls: Nulls,
    autoscalers: Autoscalers,
) -> Result<Decoded<T>, Diagnostic> {
    let malformed = RefCell::default();
    let decoder = Decoder { node, nulls, autoscalers, malformed: &malformed };
    let value = T::deserialize(decoder).map_err(|problem| problem.or_at_node(node))?;
    Ok(Decoded { value, malformed: malformed.into_inner() })
}

/// An example of a required field.
fn example(field: &str) -> Option<&'static str> {
    Some(match field {
        "apiVersion" => "for example `apiVersion: kube-lockstep.dev/v1alpha1`",
        "kind" => "`kind: Scenario` for a scenario; the kind of the object for a reference",
        "requirement" => "state it in one sentence, for example `requirement: It scales up.`",
        "workload" => "describe the pods, for example `workload: {replicas: 3}`",
        "until" => "set the duration of the scenario, for example `until: 5m`",
        "at" => "set the time since the start, for example `at: 30s`",
        "name" => "for example `name: web`",
        "replicas" => "a number, for example `replicas: 3`",
        "labels" => "for example `labels: {app: web}`",
        "type" => "Pods or Percent for a policy; ScalingActive, for example, for a condition",
        "value" => "for example `value: 4`",
        "periodSeconds" => "for example `periodSeconds: 60`",
        "reason" => "for example `reason: SuccessfulRescale`",
        "after" => "for example `after: getScale`",
        _ => return None,
    })
}

impl serde::de::Error for Diagnostic {
    /// The second line of the message, if any, is the hint.
    fn custom<T: Display>(message: T) -> Diagnostic {
        let message = message.to_string();
        match message.split_once('\n') {
            Some((what, hint)) => Diagnostic::new(what).hint(hint),
            None => Diagnostic::new(message),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Diagnostic {
        Diagnostic::new(format!("expected {}, found {found}", describe(expected).0))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Diagnostic {
        match found {
            Unexpected::Signed(number) => out_of_range(&number.to_string(), expected),
            _ => Diagnostic::invalid_type(found, expected),
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Diagnostic {
        hints::unknown_field(field, hints::on_unknown_field(field, expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Diagnostic {
        let hint = suggest(variant, expected.iter().copied());
        Diagnostic::new(format!("unknown value {}", shorten(variant))).with_hint(hint)
    }

    fn missing_field(field: &'static str) -> Diagnostic {
        Diagnostic::new(format!("missing field `{field}`"))
            .with_hint(example(field).map(Hint::from))
            .kind(Kind::MissingField(field))
    }
}

/// The error for a value of `metricMissing` that has no metric.
fn in_metric_missing(problem: Diagnostic, node: &Node) -> Diagnostic {
    let lacks_metric = match &problem.kind {
        Kind::MissingField(field) => *field == "metric",
        Kind::UnknownField(field) => {
            node.entry(field).is_some() && !matches!(problem.hint, Some(Hint::Similar(_)))
        }
        _ => false,
    };
    if lacks_metric {
        return problem.hint(
            "`metricMissing` is for a metric of `metrics.pods`, {metric: …, pods: …}; to remove \
             pods from metrics.k8s.io, use `metricsMissing`",
        );
    }
    problem
}

fn out_of_range(number: &str, expected: &dyn Expected) -> Diagnostic {
    let range = match expected.to_string().as_str() {
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "usize" | "u64" => "a whole number, not negative".to_owned(),
        other => other.to_owned(),
    };
    Diagnostic::new(format!("{number} is out of range: expected {range}"))
}

/// The value that a type expects, for hints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Bool,
    Number {
        /// True if only whole numbers are expected.
        whole: bool,
    },
    Text,
    List,
    /// A map of any fields.
    Map,
    /// A struct, by the name that serde knows.
    Type(&'static str),
    /// A text of a form, by its name.
    Form(&'static str),
    Other,
}

/// Describes serde's expectation in the terms of the file. Only serde's own texts are read.
fn describe(expected: &dyn Expected) -> (String, Wanted) {
    let text = expected.to_string();
    let (text, wanted) = match text.as_str() {
        "i32" | "i64" | "u16" | "u32" | "u64" | "usize" => {
            ("a whole number", Wanted::Number { whole: true })
        }
        "f64" => ("a number", Wanted::Number { whole: false }),
        "a string" | "string" | "string or map" => ("text", Wanted::Text),
        "a boolean" => ("true or false", Wanted::Bool),
        "a sequence" => ("a list", Wanted::List),
        _ if text.starts_with("variant of enum") => ("one of the known values", Wanted::Other),
        _ => return (text, Wanted::Other),
    };
    (text.to_owned(), wanted)
}

/// The probable meaning of a text where a number is expected. Percentages are whole numbers in the
/// Kubernetes API; fractions are never percentages here.
pub(super) fn number_hint(text: &str, whole: bool) -> Option<Hint> {
    let number = text.trim();
    let Some(percent) = number.strip_suffix('%').map(str::trim_end) else {
        let quoted = number.parse::<f64>().is_ok();
        return quoted.then(|| "write the number without quotes".into());
    };
    let fraction = fraction(percent)?;
    Some(format!("did you mean {}?", if whole { percent } else { &fraction }).into())
}

/// Converts a percentage to an exact fraction, in decimal notation.
pub fn fraction(percent: &str) -> Option<String> {
    let percent: f64 = percent.parse().ok().filter(|percent: &f64| percent.is_finite())?;
    let fraction = format!("{:.6}", percent / 100.0);
    Some(fraction.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// The probable meaning of a value of another shape: a scalar in place of a map that contains it,
/// or one element in place of a list.
pub(super) fn shape_hint(wanted: Wanted, node: &Node) -> Option<Hint> {
    let Some(scalar) = node.scalar() else {
        if wanted == Wanted::Form(PodSet::NAME)
            && let Some((_, metric)) = node.entry("metric")
        {
            return Some(Hint::Similar(match metric.scalar() {
                Some(Scalar::Text(name @ ("cpu" | "memory"))) => {
                    format!("resourceMissing: {{pods: …, resource: {name}}}")
                }
                _ => "metricMissing: {metric: …, pods: …}".to_owned(),
            }));
        }
        let hint = match (&node.kind, wanted) {
            (NodeKind::Map(_), Wanted::Text) if node.entry("message").is_some() => {
                "write only the message, as text"
            }
            (NodeKind::Map(_), Wanted::List) => {
                "write a list with one element as `[{…}]`, or begin the element with `- `"
            }
            (NodeKind::List(_), Wanted::Map | Wanted::Type(_)) => "remove the `- ` or the brackets",
            _ => return None,
        };
        return Some(hint.into());
    };
    let map = match (wanted, scalar) {
        (Wanted::Type("AnyManifest"), Scalar::Text(path)) => format!("{{file: {path}}}"),
        (Wanted::Type(METRIC_OF_PODS), _) => {
            return Some("to remove pods from metrics.k8s.io, use `metricsMissing`".into());
        }
        (Wanted::Type("Workload"), Scalar::Int(replicas)) => format!("{{replicas: {replicas}}}"),
        (Wanted::Type("Container"), Scalar::Text(name)) => format!("{{name: {name}}}"),
        (Wanted::Type("StartupFields"), Scalar::Text(after)) => format!("{{ready: {after}}}"),
        (Wanted::Type("DuringReconcile"), Scalar::Text(request)) => {
            format!("{{after: {request}}}")
        }
        (Wanted::Type("ErrorAnswer"), Scalar::Int(code)) => {
            format!("{{code: {code}, message: \"…\"}}")
        }
        (Wanted::List, Scalar::Text(text)) => format!("[{text}]"),
        _ => return None,
    };
    Some(Hint::Meant(map))
}

#[derive(Clone, Copy)]
struct Decoder<'n> {
    node: &'n Node,
    nulls: Nulls,
    autoscalers: Autoscalers,
    malformed: &'n RefCell<Vec<Diagnostic>>,
}

impl<'n> Decoder<'n> {
    fn mismatch(&self, expected: &dyn Expected, wanted: Wanted) -> Diagnostic {
        let (expected, found) = describe(expected);
        let wanted = if found == Wanted::Other { wanted } else { found };
        let hint = match (self.node.scalar(), wanted) {
            (Some(Scalar::Null), _) => Some("a value is missing after the colon".into()),
            (Some(Scalar::Text(text)), Wanted::Bool) => match text {
                "true" | "false" => Some("remove the quotes".into()),
                "yes" | "on" | "Yes" | "On" => Some(Hint::Similar("true".to_owned())),
                "no" | "off" | "No" | "Off" => Some(Hint::Similar("false".to_owned())),
                _ => None,
            },
            (Some(Scalar::Text(text)), Wanted::Number { whole }) => number_hint(text, whole),
            (Some(_), Wanted::Text) => Some("put the value in quotes".into()),
            _ => shape_hint(wanted, self.node),
        };
        let what = format!("expected {expected}, found {}", self.node.describe());
        Diagnostic::new(what).with_hint(hint).at_node(self.node)
    }

    fn with_position<T>(&self, result: Result<T, Diagnostic>) -> Result<T, Diagnostic> {
        result.map_err(|problem| problem.or_at_node(self.node))
    }

    fn list<V: Visitor<'n>>(self, items: &'n [Node], visitor: V) -> Result<V::Value, Diagnostic> {
        self.with_position(visitor.visit_seq(Items { rest: items.iter(), parent: self }))
    }

    fn map<V: Visitor<'n>>(
        self,
        fields: &'n [(Key, Node)],
        known: Option<(KnownFields, &'static [&'static str])>,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.with_position(visitor.visit_map(Entries {
            rest: fields.iter(),
            value: None,
            known,
            parent: self,
        }))
    }

    /// Decodes a text of a form. A malformed text is reported, and the visitor receives a valid
    /// text in its place.
    fn text<V: Visitor<'n>>(
        self,
        form: &FormCheck,
        text: &str,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        let Err(malformed) = (form.check)(text) else {
            return self.with_position(visitor.visit_str(text));
        };
        self.malformed.borrow_mut().push(malformed.at_node(self.node));
        self.with_position(visitor.visit_str(form.fallback))
    }
}

/// Methods of the trait that accept only numbers.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
            match self.node.scalar() {
                Some(Scalar::Int(number)) => self.with_position(visitor.visit_i64(number)),
                Some(Scalar::Float(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
                    self.with_position(visitor.visit_i64(number as i64))
                }
                // A whole number that is larger than those of serde.
                Some(Scalar::Float(number)) if number.fract() == 0.0 => {
                    let text = match &self.node.kind {
                        NodeKind::Scalar { text, .. } => text.as_str(),
                        NodeKind::List(_) | NodeKind::Map(_) => "the number",
                    };
                    self.with_position(Err(out_of_range(text, &visitor)))
                }
                _ => Err(self.mismatch(&visitor, Wanted::Other)),
            }
        }
    )*};
}

impl<'n> Deserializer<'n> for Decoder<'n> {
    type Error = Diagnostic;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match &self.node.kind {
            NodeKind::List(items) => self.list(items, visitor),
            NodeKind::Map(entries) => self.map(entries, None, visitor),
            NodeKind::Scalar { .. } => self.with_position(match self.node.scalar() {
                Some(Scalar::Bool(value)) => visitor.visit_bool(value),
                Some(Scalar::Int(number)) => visitor.visit_i64(number),
                Some(Scalar::Float(number)) => visitor.visit_f64(number),
                Some(Scalar::Text(text)) => visitor.visit_str(text),
                Some(Scalar::Null) | None => visitor.visit_unit(),
            }),
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match self.node.scalar() {
            Some(Scalar::Bool(value)) => self.with_position(visitor.visit_bool(value)),
            _ => Err(self.mismatch(&visitor, Wanted::Other)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_f64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match self.node.scalar() {
            Some(Scalar::Int(number)) => self.with_position(visitor.visit_f64(number as f64)),
            Some(Scalar::Float(number)) => self.with_position(visitor.visit_f64(number)),
            _ => Err(self.mismatch(&visitor, Wanted::Other)),
        }
    }

    fn deserialize_f32<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match self.node.scalar() {
            Some(Scalar::Text(text)) => self.with_position(visitor.visit_str(text)),
            _ => Err(self.mismatch(&visitor, Wanted::Other)),
        }
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match (self.node.is_null(), self.nulls) {
            (true, Nulls::Absent) => self.with_position(visitor.visit_none()),
            (true, Nulls::Refused) => {
                let hint = "a value is missing after the colon; write `{}` for an empty map";
                let what = "expected a value, found nothing";
                Err(Diagnostic::new(what).hint(hint).at_node(self.node))
            }
            (false, _) => self.with_position(visitor.visit_some(self)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        if let Some(form) = FormCheck::named(name) {
            return match &self.node.kind {
                NodeKind::Scalar { text, .. } if !self.node.is_null() => {
                    self.text(form, text, visitor)
                }
                NodeKind::Map(entries) if form.or_map => self.map(entries, None, visitor),
                _ => Err(self.mismatch(&visitor, Wanted::Form(name))),
            };
        }
        self.with_position(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match &self.node.kind {
            NodeKind::List(items) => self.list(items, visitor),
            NodeKind::Scalar { .. } | NodeKind::Map(_) => {
                Err(self.mismatch(&visitor, Wanted::Other))
            }
        }
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match &self.node.kind {
            NodeKind::Map(entries) => self.map(entries, None, visitor),
            NodeKind::Scalar { .. } | NodeKind::List(_) => {
                Err(self.mismatch(&visitor, Wanted::Map))
            }
        }
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        let NodeKind::Map(entries) = &self.node.kind else {
            return Err(self.mismatch(&visitor, Wanted::Type(name)));
        };
        let known = KnownFields::in_type(name, self.autoscalers).map(|known| (known, fields));
        let result = self.map(entries, known, visitor);
        if name == METRIC_OF_PODS {
            return result.map_err(|problem| in_metric_missing(problem, self.node));
        }
        result
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        if let Some(variant) = self.autoscalers.variant(name, self.node) {
            return self.with_position(visit_variant(variant, self, visitor));
        }
        match self.node.scalar() {
            Some(Scalar::Text(text)) => {
                let variant: StrDeserializer<'_, Diagnostic> = StrDeserializer::new(text);
                self.with_position(visitor.visit_enum(variant))
            }
            _ => Err(self.mismatch(&visitor, Wanted::Other)),
        }
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'n>>
        char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any i128 u128
    }
}

struct Items<'n> {
    rest: std::slice::Iter<'n, Node>,
    parent: Decoder<'n>,
}

impl<'n> SeqAccess<'n> for Items<'n> {
    type Error = Diagnostic;

    fn next_element_seed<T: DeserializeSeed<'n>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Diagnostic> {
        let decoder = self.rest.next().map(|node| Decoder { node, ..self.parent });
        decoder.map(|decoder| decoder.with_position(seed.deserialize(decoder))).transpose()
    }
}

struct Entries<'n> {
    rest: std::slice::Iter<'n, (Key, Node)>,
    value: Option<&'n Node>,
    /// The rules on the fields, and all fields of the type. `None`: the type checks them.
    known: Option<(KnownFields, &'static [&'static str])>,
    parent: Decoder<'n>,
}

impl<'n> MapAccess<'n> for Entries<'n> {
    type Error = Diagnostic;

    fn next_key_seed<K: DeserializeSeed<'n>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Diagnostic> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        match self.known.map_or(Ok(()), |(known, fields)| known.check(&key.text, fields)) {
            Ok(()) => {}
            Err(Refused::Unknown(problem)) => return Err(problem.at(key.line, key.column)),
            Err(Refused::Impossible(problem)) => {
                self.parent.malformed.borrow_mut().push(problem.at(key.line, key.column));
            }
        }
        let text: StrDeserializer<'_, Diagnostic> = StrDeserializer::new(&key.text);
        seed.deserialize(text).map(Some).map_err(|problem| problem.or_at(key.line, key.column))
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Diagnostic> {
        let node = self.value.take().ok_or_else(|| Diagnostic::custom("a value without a key"))?;
        let decoder = Decoder { node, ..self.parent };
        decoder.with_position(seed.deserialize(decoder))
    }
}
