//! Reads a member of a map as a variant of an enum, after the member's name has been read: entries
//! that consist of an action and further members (`{"at": …, "podsDeleted": …}`).
//!
//! Serde's derived form, a flattened enum, buffers all members: it would lose the positions in
//! scenario files, and accept a second action.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};

/// The name of a member. It is copied only if it can't be borrowed from the input.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct MemberName<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl<'a> MemberName<'a> {
    /// Passes the name on to the seed of a key.
    pub fn pass_to<K: DeserializeSeed<'a>, E: Error>(self, seed: K) -> Result<K::Value, E> {
        match self.0 {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(StringDeserializer::new(name)),
        }
    }
}

/// Deserializes the content of a variant of `T`, whose name is already known.
pub struct Tagged<'a, T> {
    name: &'a str,
    of: PhantomData<T>,
}

impl<'a, T> Tagged<'a, T> {
    /// The variant with this name.
    pub fn new(name: &'a str) -> Tagged<'a, T> {
        Tagged { name, of: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Tagged<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, content: D) -> Result<T, D::Error> {
        T::deserialize(Variant { name: self.name, content })
    }
}

/// Passes the variant with this name to the visitor of an enum. `content` is its content.
///
/// # Errors
/// If the enum has no such variant, or if its content is wrong.
pub fn visit_variant<'de, D: Deserializer<'de>, V: Visitor<'de>>(
    name: &str,
    content: D,
    visitor: V,
) -> Result<V::Value, D::Error> {
    visitor.visit_enum(Variant { name, content })
}

/// A variant: its name and the deserializer of its content.
struct Variant<'a, D> {
    name: &'a str,
    content: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Variant<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Variant<'_, D> {
    type Error = D::Error;
    type Variant = Content<D>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Content<D>), D::Error> {
        let name: StrDeserializer<'_, D::Error> = StrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

/// The content of a variant.
struct Content<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Content<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Deserializer as Json;

    use super::*;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "camelCase")]
    enum Action {
        Sleep {},
        Say(String),
        Move { by: u32 },
        Swap(u32, u32),
    }

    fn read(name: &str, content: &str) -> Result<Action, String> {
        let seed = Tagged::new(name);
        seed.deserialize(&mut Json::from_str(content)).map_err(|error| error.to_string())
    }

    #[test]
    fn variants_of_all_forms_are_read() {
        assert_eq!(read("sleep", "{}"), Ok(Action::Sleep {}));
        assert_eq!(read("say", r#""hello""#), Ok(Action::Say("hello".to_owned())));
        assert_eq!(read("move", r#"{"by":3}"#), Ok(Action::Move { by: 3 }));
        assert_eq!(read("swap", "[1,2]"), Ok(Action::Swap(1, 2)));
        let error = read("run", "{}").unwrap_err();
        assert!(error.starts_with("unknown variant `run`"), "{error}");
    }

    #[test]
    fn names_without_escapes_are_borrowed() {
        let name = |text| serde_json::from_str::<MemberName<'_>>(text).expect("a text").0;
        assert!(matches!(name(r#""at""#), Cow::Borrowed("at")));
        assert!(matches!(name(r#""\u0061t""#), Cow::Owned(name) if name == "at"));
    }
}
