//! The result for one changed autoscaler.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use kube_lockstep_manifests::ChangedField;
use kube_lockstep_report::figures::Figures;

/// The result for an autoscaler, or for several of the same target.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateResult {
    /// `HPA`, `VPA`.
    pub autoscaler: String,
    /// The name, with the namespace if the manifest sets one; several names if the autoscalers have
    /// the same target.
    pub name: String,
    /// What changes.
    pub change: Kind,
    /// The file of the autoscaler: in the newer version, or in the older one if it is removed.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The fields that differ.
    pub fields: Vec<Field>,
    /// The figures before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Figures>,
    /// The figures after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Figures>,
    /// The bounds of the budget that are not kept, each with figure and limit; why the API server
    /// rejects the autoscaler, or why an HPA no longer scales.
    pub broken: Vec<String>,
    /// The bounds that can't be checked, with the reason.
    pub not_checked: Vec<String>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    /// The former targets, such as `Deployment web`, that still exist but that no autoscaler of
    /// this kind scales any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets_without_autoscaler: Vec<String>,
    /// The metrics whose targets before and after the change can't be compared.
    #[serde(skip)]
    pub unlike_metrics: BTreeSet<Arc<str>>,
    /// True if there are none because the outcome depends on chance.
    #[serde(skip)]
    pub is_random: bool,
}

/// What a change does with an autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// It is added.
    Added,
    /// It is removed.
    Removed,
    /// It has another target, whose load is another one.
    Moved,
    /// It is changed, or its target is.
    Changed,
    /// Neither differs, but the change of another object stops it.
    Unchanged,
}

/// A field that differs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// The object: `HPA web`, `Deployment web`.
    pub object: String,
    /// The path.
    pub path: String,
    /// The value before the change, or the default; null if it is not set.
    pub base: Option<Value>,
    /// The value after the change, or the default; null if it is not set.
    pub head: Option<Value>,
    /// The file in the newer version. Absent: the object is only in the older one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// `spec.maxReplicas: 10 → 20`.
    #[serde(skip)]
    pub text: String,
}

impl From<&ChangedField> for Field {
    fn from(field: &ChangedField) -> Field {
        Field {
            object: field.object.clone(),
            path: field.path.clone(),
            base: field.base.clone(),
            head: field.head.clone(),
            file: field.place.as_ref().and_then(|place| place.file.clone()),
            line: field.place.as_ref().map(|place| place.line),
            text: field.to_string(),
        }
    }
}

/// The verdict on a changed autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It keeps the budget.
    Kept,
    /// It does not.
    Broken,
    /// A bound can't be checked, and no other one is broken.
    NotChecked,
    /// It has no figures.
    NotMeasured,
    /// It is removed.
    Removed,
}

impl GateResult {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            _ if !self.broken.is_empty() => Verdict::Broken,
            _ if self.not_measured.is_some() => Verdict::NotMeasured,
            _ if self.change == Kind::Removed => Verdict::Removed,
            _ if !self.not_checked.is_empty() => Verdict::NotChecked,
            _ => Verdict::Kept,
        }
    }
}
