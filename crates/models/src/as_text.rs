//! Values as text in JSON, in their `Display` form: times as `1m15s`, releases as `1.30 - 1.37`.
//! For `#[serde(with = "as_text")]`.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::Serializer;

/// Writes a value as text.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Writes a value, if there is one, as text. For `#[serde(serialize_with = "as_text::optional")]`.
///
/// # Errors
/// If the serializer fails.
pub fn optional<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// Reads a value from text.
///
/// # Errors
/// If the text is not a valid value.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| D::Error::custom(format_args!("{text:?}: {error}")))
}
