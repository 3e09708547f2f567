//! For `#[serde(skip_serializing_if = "is_default")]`.

/// Returns true for the default of a type.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
