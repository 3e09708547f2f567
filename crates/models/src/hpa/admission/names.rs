//! Validation of references to objects and of names of resources.

use super::field_error::{FieldError, invalid, quoted, required};
use crate::api::CrossVersionObjectReference;
use crate::hpa::apimachinery::parse_group_version;
use crate::selector::is_label_key;

/// The prefix of a request in a quota.
const QUOTA_REQUESTS_PREFIX: &str = "requests.";

/// Validates a reference. Its apiVersion is validated only if `allow_empty_group` is present.
///
/// Upstream: validation.go, ValidateCrossVersionObjectReference and ValidateAPIVersion
pub(super) fn validate_cross_version_object_reference(
    target: &CrossVersionObjectReference,
    path: &str,
    allow_empty_group: Option<bool>,
    errors: &mut Vec<FieldError>,
) {
    for (name, value) in [("kind", &*target.kind), ("name", &*target.name)] {
        let field = format!("{path}.{name}");
        if value.is_empty() {
            errors.push(required(field, ""));
            continue;
        }
        for text in is_path_segment_name(value) {
            errors.push(invalid(field.as_str(), quoted(value), &text));
        }
    }
    let Some(allow_empty_group) = allow_empty_group else { return };
    let api_version = target.api_version.as_deref().unwrap_or("");
    let wrong = match parse_group_version(api_version) {
        Err(error) => error,
        Ok(("", _)) if !allow_empty_group => "apiVersion must specify API group".to_owned(),
        Ok(_) => return,
    };
    errors.push(invalid(format!("{path}.apiVersion"), quoted(api_version), &wrong));
}

/// Upstream: apimachinery, content/path.go, IsPathSegmentName
pub(super) fn is_path_segment_name(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let wrong = ["/", "%"].into_iter().filter(|illegal| name.contains(illegal));
    wrong.map(|illegal| format!("may not contain '{illegal}'")).collect()
}

/// Upstream: pkg/apis/core/validation/validation.go, ValidateContainerResourceName
pub fn validate_container_resource_name(name: &str) -> Vec<String> {
    let mut errors = is_label_key(name);
    let is_plain = !name.contains('/');
    if errors.is_empty() && is_plain && !is_standard_resource_name(name) {
        errors.push("must be a standard resource type or fully qualified".to_owned());
    }
    let is_standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if is_plain && !is_standard {
        errors.push("must be a standard resource for containers".to_owned());
    }
    let is_native = is_plain || name.contains("kubernetes.io/");
    let in_quotas = format!("{QUOTA_REQUESTS_PREFIX}{name}");
    let is_extended = !is_native
        && !name.starts_with(QUOTA_REQUESTS_PREFIX)
        && is_label_key(&in_quotas).is_empty();
    if !is_native && !is_extended {
        errors.push("doesn't follow extended resource name standard".to_owned());
    }
    errors
}

/// Resources of containers, and resources that only quotas use.
///
/// Upstream: pkg/apis/core/helper/helpers.go, IsStandardResourceName
fn is_standard_resource_name(name: &str) -> bool {
    const COUNTED: [&str; 10] = [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
        "storage",
    ];
    let measured = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let requested = name.strip_prefix("requests.");
    measured(name)
        || COUNTED.contains(&name)
        || name.starts_with("hugepages-")
        || name.strip_prefix("limits.").is_some_and(measured)
        || requested.is_some_and(|it| measured(it) || it == "storage")
        || requested.is_some_and(|it| it.starts_with("hugepages-"))
}
