//! Writes of any object of the API: by a controller, by a scenario, or by the cluster itself.

use std::fmt::{self, Display};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A write of an object, and its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectWrite {
    /// The kind of request.
    pub verb: ObjectVerb,
    /// The controller that sent the request. Absent: the scenario, or the cluster itself, for
    /// example the garbage collector.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub controller: Arc<str>,
    /// `example.com/v1`: the version in which the object is stored.
    pub api_version: Arc<str>,
    /// `Widget`.
    pub kind: Arc<str>,
    /// `widgets.example.com`.
    pub resource: Arc<str>,
    /// The namespace. Absent: the object has none.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// `status` or `scale`. Absent: the object itself was written.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub subresource: Arc<str>,
    /// True if the write changed or deleted what was stored.
    pub changed: bool,
    /// The object as it is stored after the write, without `metadata.managedFields`. Absent: it
    /// does not exist, or the request was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub object: Option<Value>,
    /// The API server's message, if it rejected the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

/// The kind of a request that writes an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObjectVerb {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH, including server-side apply.
    Patch,
    /// DELETE of one object, or of this object among others.
    Delete,
}

impl ObjectVerb {
    /// The name in the JSON of the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ObjectVerb::Create => "create",
            ObjectVerb::Update => "update",
            ObjectVerb::Patch => "patch",
            ObjectVerb::Delete => "delete",
        }
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl ObjectWrite {
    /// Returns true if a controller sent the request.
    #[must_use]
    pub fn is_of_controller(&self) -> bool {
        !self.controller.is_empty()
    }

    /// The group of the API: empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns true if both writes are of the same object.
    #[must_use]
    pub fn is_of_same_object(&self, other: &ObjectWrite) -> bool {
        (&self.resource, &self.namespace, &self.name)
            == (&other.resource, &other.namespace, &other.name)
    }
}

/// In one line, without the object: `update Widget default/a status`.
impl Display for ObjectWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.verb.name(), self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " {}", self.subresource)?;
        }
        match &self.error {
            Some(error) => write!(f, ": rejected: {error}"),
            None if !self.changed => f.write_str(": no change"),
            None => Ok(()),
        }
    }
}
