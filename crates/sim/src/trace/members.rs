//! Rejects unknown members of actions. Serde's `deny_unknown_fields` does not support the
//! flattened members of answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use schemars::schema_for;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use kube_autoscaler_models::observation::ControllerAction;
use kube_autoscaler_models::tagged::MemberName;

/// The names of the members of each action, by the name of the action.
static MEMBERS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let schema = schema_for!(ControllerAction).to_value();
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let properties = variants.filter_map(|variant| variant["properties"].as_object());
    let actions = properties.flatten();
    actions.map(|(action, content)| (action.clone(), members(content, &schema))).collect()
});

/// The names of all members that an object may have.
fn members(object: &Value, root: &Value) -> BTreeSet<String> {
    let own = object["properties"].as_object().into_iter().flat_map(|it| it.keys().cloned());
    let reference = object["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
    let parts = ["allOf", "anyOf", "oneOf"].into_iter();
    let parts = parts.filter_map(|name| object[name].as_array()).flatten();
    own.chain(parts.chain(reference).flat_map(|part| members(part, root))).collect()
}

/// Deserializes the content of an action. Rejects unknown members.
pub(super) struct KnownMembers<'a, S> {
    /// The name of the action.
    pub action: &'a str,
    pub seed: S,
    /// The members that are given are removed from this list.
    pub missing: &'a mut Vec<&'static str>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for KnownMembers<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let KnownMembers { action, seed, missing } = self;
        match MEMBERS.get(action) {
            Some(known) => deserializer.deserialize_map(Members { action, known, seed, missing }),
            // The seed rejects an unknown action.
            None => seed.deserialize(deserializer),
        }
    }
}

/// The content of a known action.
struct Members<'a, S> {
    action: &'a str,
    known: &'static BTreeSet<String>,
    seed: S,
    missing: &'a mut Vec<&'static str>,
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Members<'_, S> {
    type Value = S::Value;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "the members of `{}`", self.action)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S::Value, A::Error> {
        let Members { action, known, seed, missing } = self;
        let map = CheckedMap { map, action, known, missing };
        seed.deserialize(MapAccessDeserializer::new(map))
    }
}

/// A map whose keys are checked.
struct CheckedMap<'a, A> {
    map: A,
    action: &'a str,
    known: &'static BTreeSet<String>,
    missing: &'a mut Vec<&'static str>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CheckedMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.map.next_key::<MemberName<'de>>()? else { return Ok(None) };
        if !self.known.contains(&*name.0) {
            let (member, action) = (name.0, self.action);
            return Err(A::Error::custom(format!("unknown member `{member}` in `{action}`")));
        }
        self.missing.retain(|missing| *missing != &*name.0);
        name.pass_to(seed).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_actions_have_members() {
        for (action, members) in &*MEMBERS {
            assert!(!members.is_empty(), "{action}");
        }
        let of = |action: &str| MEMBERS[action].iter().map(String::as_str).collect::<Vec<_>>();
        let expected = ["error", "name", "replicas", "resource", "statusReplicas"];
        assert!(expected.iter().all(|name| of("getScale").contains(name)), "{:?}", of("getScale"));
        assert!(of("updateScale").contains(&"statusReplicas"), "{:?}", of("updateScale"));
    }
}
