//! Writes a JSON value as readable YAML: short maps and lists on one line, others in blocks; quotes
//! only where they are needed.

use serde::Serialize;
use serde_json::{Map, Value};

use super::node::{Scalar, resolve};

/// Longer values, indentation included, are not written on one line.
const WIDTH: usize = 96;

/// The fields of a file, in the order in which they are written.
pub fn fields(file: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(file) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The whole document.
pub fn document(fields: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        member(name, value, 0, &mut out);
    }
    out
}

/// One field of a map in block style.
fn member(name: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(&" ".repeat(indent));
    out.push_str(&scalar(name));
    out.push(':');
    let room = WIDTH.saturating_sub(indent + name.len() + 2);
    // Maps at the top level, such as the HPA, are always in block style.
    let inline = inline(value).filter(|text| {
        let nested = matches!(value, Value::Object(fields) if !fields.is_empty());
        text.chars().count() <= room && !(nested && indent == 0)
    });
    match (inline, value) {
        (Some(text), _) => {
            out.push(' ');
            out.push_str(&text);
            out.push('\n');
        }
        (None, Value::Object(fields)) => {
            out.push('\n');
            for (name, value) in fields {
                member(name, value, indent + 2, out);
            }
        }
        (None, Value::Array(items)) => {
            out.push('\n');
            for value in items {
                item(value, indent + 2, out);
            }
        }
        (None, value) => {
            out.push(' ');
            out.push_str(&flow(value));
            out.push('\n');
        }
    }
}

/// One element of a list in block style.
fn item(value: &Value, indent: usize, out: &mut String) {
    let room = WIDTH.saturating_sub(indent + 2);
    let text = inline(value).filter(|text| text.chars().count() <= room);
    let fields = match (&text, value) {
        (None, Value::Object(fields)) => fields,
        _ => {
            let text = text.unwrap_or_else(|| flow(value));
            out.push_str(&format!("{}- {text}\n", " ".repeat(indent)));
            return;
        }
    };
    let mut block = String::new();
    for (name, value) in fields {
        member(name, value, indent + 2, &mut block);
    }
    // The first field follows the dash.
    out.push_str(&" ".repeat(indent));
    out.push_str("- ");
    out.push_str(block.trim_start());
}

/// The value on one line, if it is readable there: at most three levels deep.
fn inline(value: &Value) -> Option<String> {
    (depth(value) <= 3).then(|| flow(value))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field =
                |(name, value): (&String, &Value)| format!("{}: {}", scalar(name), flow(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Text, in quotes if it would otherwise have another meaning.
fn scalar(text: &str) -> String {
    let plain_char = |c: char| c.is_ascii_alphanumeric() || "_-./=+()%$ :#~".contains(c);
    let safe = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && text.chars().all(plain_char)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([' ', ':'])
        && matches!(resolve(text), Scalar::Text(_))
        // YAML 1.1 parsers read these as true and false.
        && !matches!(text.to_lowercase().as_str(), "yes" | "no" | "on" | "off" | "y" | "n");
    if safe { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_written_only_where_they_are_needed() {
        for (text, written) in [
            ("web", "web"),
            ("500m", "500m"),
            ("0-4", "0-4"),
            ("app=web", "app=web"),
            ("https://example.com/a#b", "https://example.com/a#b"),
            ("1", "\"1\""),
            ("0.5", "\"0.5\""),
            ("1e3", "\"1e3\""),
            ("True", "\"True\""),
            ("no", "\"no\""),
            ("", "\"\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("0-4,7", "\"0-4,7\""),
            ("- a", "\"- a\""),
            ("two\nlines", "\"two\\nlines\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }

    #[test]
    fn short_maps_stay_on_a_line() {
        let value: Value = serde_json::from_str(
            r#"{"a":{"b":1},"list":[{"at":"60s","scale":7},{}],"empty":{},"none":[]}"#,
        )
        .expect("valid JSON");
        let Value::Object(fields) = value else { panic!("a map") };
        assert_eq!(
            document(&fields),
            "a:\n  b: 1\nlist: [{at: 60s, scale: 7}, {}]\nempty: {}\nnone: []\n"
        );
    }
}
