//! The content hash of a scenario. It changes if and only if a run may change.
//!
//! The hash is computed from the normal form, so comments, the order of fields and alternative
//! spellings of values do not affect it. It does not use `std`'s hasher, whose results may change
//! with the compiler.

use serde_json::Value;

use super::resolved::{Recorded, RecordedSample, Scenario};
use super::to_raw;
use kube_autoscaler_models::content_hash::content_hash;

/// Fields that do not affect a run: texts for users, conditions that are checked afterwards, and
/// the choices of a search.
const NOT_HASHED: [&str; 6] = ["requirement", "upstream", "covers", "releases", "expect", "search"];

/// Returns 16 hexadecimal digits.
pub(crate) fn of(scenario: &Scenario) -> String {
    let mut value = to_raw::to_value(scenario);
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !NOT_HASHED.contains(&name.as_str()));
        // Hashes of recorded traces are older than this field's new name.
        if let Some(Value::Object(workload)) = fields.get_mut("workload")
            && let Some(order) = workload.remove("scaleDownOrder")
        {
            workload.insert("victims".to_owned(), order);
        }
        // It includes the content of files.
        if let Some(vpa) = &scenario.vpa {
            fields.insert("recommenderHash".to_owned(), vpa.recommender.hash.as_str().into());
        }
    }
    hash_value(&value, scenario.metrics.recorded())
}

/// The hash of a normal form with its recorded signals.
pub(super) fn hash_value<'a>(
    value: &Value,
    recorded: impl Iterator<Item = &'a Recorded>,
) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    for recorded in recorded {
        for RecordedSample { at, milli } in recorded.samples.iter() {
            text.push_str(&format!("{}:{milli:?};", at.0));
        }
    }
    content_hash(&text)
}

/// JSON with sorted keys and without spaces.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_sorted() {
        let value: Value =
            serde_json::from_str(r#"{"b":[1,{"d":null,"c":"x"}],"a":0.5}"#).expect("valid JSON");
        let mut text = String::new();
        canonical(&value, &mut text);
        assert_eq!(text, r#"{"a":0.5,"b":[1,{"c":"x","d":null}]}"#);
    }
}
