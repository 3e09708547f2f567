//! Rules about settings of autoscalers that have no effect, or another one than intended.
//!
//! A rule is one file in `rules` and one fixture in `fixtures/lint`, which shows the effect on the
//! real controller. A rule asks the model wherever the controller decides something, and reports
//! only what follows from the manifests and the loads, or says what it assumes.
//!
//! Deliberately absent: manifests that an API server rejects, which are errors, and matters of
//! taste.

mod context;
mod rules;
pub mod sarif;

#[cfg(test)]
mod tests;

use std::fmt;

use kube_autoscaler_models::flags::ClusterGates;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_manifests::{Manifests, Object};
use kube_lockstep_scenario::Diagnostic;
use serde::Serialize;

use context::Context;
pub use rules::{AMBIGUOUS_SELECTOR, RULES};

/// The cluster for which manifests are checked.
#[derive(Clone, Debug)]
pub struct Options {
    /// The release of Kubernetes.
    pub release: Release,
    /// The feature gates of its components.
    pub gates: ClusterGates,
    /// The cluster has stored the HPAs already, so it accepts what it would reject in a new one.
    pub hpas_are_stored: bool,
}

impl Options {
    /// A cluster of this release with its default feature gates.
    #[must_use]
    pub fn of(release: Release) -> Options {
        let gates = Rules::of(release).default_gates().into();
        Options { release, gates, hpas_are_stored: false }
    }
}

/// A rule, with the reason for it.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// The id, such as `missing-request`.
    pub id: &'static str,
    /// How serious its findings are.
    pub level: Level,
    /// What the rule finds, in one sentence.
    pub summary: &'static str,
    /// Why it matters.
    pub reason: &'static str,
    /// The documentation or the source of the behavior.
    pub link: &'static str,
    /// Finds the places.
    #[serde(skip)]
    check: fn(&Context<'_>) -> Vec<Found>,
}

impl Rule {
    /// The rule with this id.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// The id of the fixture that shows the effect.
    #[must_use]
    pub fn fixture(&self) -> String {
        format!("lint/{}", self.id)
    }
}

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// A setting has no effect, or one that may be intended.
    Note,
    /// The autoscaler works against the intention of the manifests.
    Warning,
    /// The autoscaler does not work.
    Error,
}

/// How a finding is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// The manifest says so.
    Observed,
    /// It follows from the manifests and the loads, by the rules of the controller.
    Derived,
    /// It also depends on something that the files don't show, which the message names.
    Assumed,
}

/// A place that a rule applies to.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How it is known.
    pub evidence: Evidence,
    /// The message, the place and the solution.
    pub diagnostic: Diagnostic,
    /// The object at the place.
    pub object: ObjectName,
    /// Another object that has the same effect.
    pub other: Option<ObjectName>,
}

/// The name of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ObjectName {
    /// For example `Deployment`.
    pub kind: String,
    /// The namespace. None: the manifest leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// A finding of the rule that is checked.
pub(crate) struct Found {
    evidence: Evidence,
    diagnostic: Diagnostic,
    object: ObjectName,
    other: Option<ObjectName>,
}

impl ObjectName {
    fn of(object: &Object) -> ObjectName {
        ObjectName { kind: object.kind(), namespace: object.namespace(), name: object.name() }
    }
}

impl Found {
    /// A finding at a field of an object: see [`Object::diagnostic`].
    fn at(object: &Object, path: &str, evidence: Evidence, what: impl Into<String>) -> Found {
        let diagnostic = object.diagnostic(path, what);
        Found { evidence, diagnostic, object: ObjectName::of(object), other: None }
    }

    /// Adds another object that has the same effect.
    fn also(self, other: &Object) -> Found {
        Found { other: Some(ObjectName::of(other)), ..self }
    }

    /// Sets the solution.
    fn hint(self, hint: impl Into<String>) -> Found {
        Found { diagnostic: self.diagnostic.hint(hint.into()), ..self }
    }
}

/// Checks manifests, and returns the findings of these rules in the order of their places.
#[must_use]
pub fn check(manifests: &Manifests, options: &Options, rules: &[&'static Rule]) -> Vec<Finding> {
    let context = Context::new(manifests, options);
    let of_rule = |rule: &'static Rule| {
        let found = (rule.check)(&context).into_iter();
        found.map(move |Found { evidence, diagnostic, object, other }| Finding {
            rule,
            evidence,
            diagnostic,
            object,
            other,
        })
    };
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| of_rule(rule)).collect();
    findings.sort_by(|one, other| {
        let key = |it: &Finding| (it.diagnostic.place.clone(), it.rule.id);
        key(one).cmp(&key(other))
    });
    findings
}

/// `error`, `warning`, `note`.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// `observed`, `derived`, `assumed`.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evidence::Observed => "observed",
            Evidence::Derived => "derived",
            Evidence::Assumed => "assumed",
        })
    }
}
