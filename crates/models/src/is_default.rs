//! A condition for serde's `skip_serializing_if`.

/// Returns true if a value is the default of its type.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
