//! Validation of the metadata of objects, with the API server's errors.
//!
//! Upstream: apimachinery, pkg/api/validation/objectmeta.go

use super::node::{Node, NodeKind};
use kube_autoscaler_models::hpa::{FieldError, FieldErrorType};
use kube_autoscaler_models::selector::{is_dns1123_subdomain, is_label_key, is_label_value};

/// Receives an error and its position.
type Report<'r> = &'r mut dyn FnMut(&Node, FieldError);

/// Validates the name of an object.
pub fn validate_name(object: &Node, report: Report<'_>) {
    let metadata = object.entry("metadata").map(|(_, metadata)| metadata);
    let given = |name| metadata.and_then(|it| it.entry(name)).map(|(_, value)| value);
    if given("generateName").is_some_and(|it| !it.is_null()) {
        return;
    }
    match given("name").map(|at| (at, &at.kind)) {
        Some((at, NodeKind::Scalar { text, .. })) if !at.is_null() && !text.is_empty() => {
            for wrong in is_dns1123_subdomain(text, "characters") {
                let value = format!("{text:?}");
                report(at, FieldError::new(NAME, FieldErrorType::Invalid, value, &wrong));
            }
        }
        _ => {
            let at = metadata.unwrap_or(object);
            let detail = "name or generateName is required";
            report(at, FieldError::new(NAME, FieldErrorType::Required, "", detail));
        }
    }
}

const NAME: &str = "metadata.name";

/// Validates the labels and annotations in metadata. `path` is that of the errors.
pub fn validate(metadata: &Node, path: &str, report: Report<'_>) {
    for field in ["labels", "annotations"] {
        let Some(NodeKind::Map(entries)) = metadata.entry(field).map(|(_, map)| &map.kind) else {
            continue;
        };
        let path = format!("{path}.{field}");
        let mut invalid = |at: &Node, value: &str, wrong: Vec<String>| {
            for wrong in wrong {
                let value = format!("{value:?}");
                report(at, FieldError::new(&*path, FieldErrorType::Invalid, value, &wrong));
            }
        };
        for (key, at) in entries {
            // Annotations may have upper case letters, even in the prefix.
            let lower = key.text.to_lowercase();
            let name = if field == "labels" { &key.text } else { &lower };
            invalid(at, &key.text, is_label_key(name));
            if let (NodeKind::Scalar { text, .. }, "labels") = (&at.kind, field) {
                invalid(at, text, is_label_value(text));
            }
        }
    }
}
