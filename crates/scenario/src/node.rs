//! A YAML document as a tree with positions.

use serde_json::Value;

/// A value and the position at which it begins.
#[derive(Clone, Debug)]
pub struct Node {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The value.
    pub kind: NodeKind,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Text; plain (unquoted) text may stand for a number, a boolean or null.
    Scalar {
        /// The text as written, without quotes.
        text: String,
        /// True if the text is unquoted.
        plain: bool,
    },
    List(Vec<Node>),
    /// A map, in the order of the file, without duplicates.
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key as written, without quotes.
    pub text: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// A scalar as YAML's core schema reads it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar<'a> {
    /// A null, or a key without a value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(&'a str),
}

impl Node {
    /// A map with one field, whose value is this text, without quotes unless it means null.
    pub(super) fn field(name: &str, text: &str) -> Node {
        let at = |kind| Node { line: 1, column: 1, kind };
        let key = Key { text: name.to_owned(), line: 1, column: 1 };
        let plain = resolve(text) != Scalar::Null;
        let value = at(NodeKind::Scalar { text: text.to_owned(), plain });
        at(NodeKind::Map(vec![(key, value)]))
    }

    /// The value of a scalar; None for lists and maps.
    pub(super) fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.kind {
            NodeKind::Scalar { text, plain: true } => Some(resolve(text)),
            NodeKind::Scalar { text, plain: false } => Some(Scalar::Text(text)),
            NodeKind::List(_) | NodeKind::Map(_) => None,
        }
    }

    /// Returns true for `null`, `~`, or an absent value.
    pub fn is_null(&self) -> bool {
        self.scalar() == Some(Scalar::Null)
    }

    /// The member of a map, with its key.
    pub fn entry(&self, name: &str) -> Option<(&Key, &Node)> {
        match &self.kind {
            NodeKind::Map(entries) => {
                entries.iter().find(|(key, _)| key.text == name).map(|(key, node)| (key, node))
            }
            NodeKind::Scalar { .. } | NodeKind::List(_) => None,
        }
    }

    /// The value of a field of a map, mutable.
    pub fn entry_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.kind {
            NodeKind::Map(entries) => {
                entries.iter_mut().find(|(key, _)| key.text == name).map(|(_, node)| node)
            }
            NodeKind::Scalar { .. } | NodeKind::List(_) => None,
        }
    }

    /// The member of a list.
    pub fn item(&self, index: usize) -> Option<&Node> {
        match &self.kind {
            NodeKind::List(items) => items.get(index),
            NodeKind::Scalar { .. } | NodeKind::Map(_) => None,
        }
    }

    /// The tree as JSON.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::List(items) => items.iter().map(Node::to_json).collect(),
            NodeKind::Map(entries) => {
                Value::Object(entries.iter().map(|(k, v)| (k.text.clone(), v.to_json())).collect())
            }
            NodeKind::Scalar { .. } => match self.scalar() {
                Some(Scalar::Bool(value)) => value.into(),
                Some(Scalar::Int(value)) => value.into(),
                // 9.0 becomes 9, as with kubectl.
                Some(Scalar::Float(value)) if value.fract() == 0.0 && value.abs() < 1e15 => {
                    (value as i64).into()
                }
                Some(Scalar::Float(value)) => value.into(),
                Some(Scalar::Text(text)) => text.into(),
                Some(Scalar::Null) | None => Value::Null,
            },
        }
    }

    /// A description for messages.
    pub fn describe(&self) -> String {
        match self.scalar() {
            Some(Scalar::Null) => "nothing".to_owned(),
            Some(Scalar::Bool(value)) => format!("{value}"),
            Some(Scalar::Int(_) | Scalar::Float(_)) => match &self.kind {
                NodeKind::Scalar { text, .. } => format!("the number {text}"),
                NodeKind::List(_) | NodeKind::Map(_) => "a number".to_owned(),
            },
            Some(Scalar::Text(text)) => format!("the string {}", shorten(text)),
            None if matches!(self.kind, NodeKind::List(_)) => "a list".to_owned(),
            None => "a map".to_owned(),
        }
    }
}

/// Quotes a text, and shortens it for a message.
pub fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// The value of a plain scalar in YAML 1.2's core schema.
pub fn resolve(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Scalar::Text(text);
    }
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        let unsigned = digits.bytes().all(|b| b.is_ascii_alphanumeric());
        unsigned.then(|| i64::from_str_radix(digits, radix).ok()).flatten()
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Scalar::Int(number);
    }
    if digits.bytes().all(|b| b.is_ascii_digit())
        && let Ok(number) = text.parse()
    {
        return Scalar::Int(number);
    }
    let floats =
        digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse::<f64>() {
        Ok(number) if floats && number.is_finite() => Scalar::Float(number),
        _ => Scalar::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_resolved_as_in_yaml_1_2() {
        for (text, meaning) in [
            ("", Scalar::Null),
            ("true", Scalar::Bool(true)),
            ("yes", Scalar::Text("yes")),
            ("12", Scalar::Int(12)),
            ("-3", Scalar::Int(-3)),
            ("0x10", Scalar::Int(16)),
            ("0.5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            (".5", Scalar::Float(0.5)),
            ("1e999", Scalar::Text("1e999")),
            ("15s", Scalar::Text("15s")),
            ("0-4", Scalar::Text("0-4")),
            ("1.2.3", Scalar::Text("1.2.3")),
            ("-", Scalar::Text("-")),
            (".", Scalar::Text(".")),
            ("nan", Scalar::Text("nan")),
        ] {
            assert_eq!(resolve(text), meaning, "{text}");
        }
    }
}
