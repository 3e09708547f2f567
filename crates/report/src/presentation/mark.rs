//! The first tick that differs from another run: the model and an engine diverge, or two releases
//! differ.

use std::borrow::Cow;

use super::ticks::{Tick, TickKind};
use super::words;
use kube_lockstep_sim::compare::{Divergence, FieldDifference, FieldPath};

/// The two sides of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sides {
    ModelAndEngine,
    /// Two releases.
    Releases,
}

/// The first tick that differs.
#[derive(Clone, Debug)]
pub(crate) struct Mark<'a> {
    pub first: &'a Divergence,
    sides: Sides,
    /// The names of the sides, in the order of the values.
    names: [Cow<'a, str>; 2],
}

/// The maximum number of fields in the panel. The table above the charts has all of them.
const FIELDS: usize = 4;

/// The maximum number of characters of a value in the panel.
const VALUE: usize = 100;

impl<'a> Mark<'a> {
    /// A divergence of an engine.
    pub(crate) fn diverges(first: &'a Divergence, engine: &'a str) -> Mark<'a> {
        let names = ["model".into(), engine.into()];
        Mark { first, sides: Sides::ModelAndEngine, names }
    }

    /// A change between two releases.
    pub(crate) fn changed(first: &'a Divergence, from: String, to: String) -> Mark<'a> {
        let names = [from.into(), to.into()];
        Mark { first, sides: Sides::Releases, names }
    }

    /// `diverges`, or `changed`.
    pub(crate) fn word(&self) -> &'static str {
        match self.sides {
            Sides::ModelAndEngine => "diverges",
            Sides::Releases => "changed",
        }
    }

    /// Both values: `model 7, upstream 6`, or `1.32: 7, 1.33: 6`.
    pub(crate) fn values(&self, field: &FieldDifference) -> String {
        let [one, other] = &self.names;
        let short = |value: &str| words::cut(value, VALUE);
        let (one_value, other_value) = (short(&field.model), short(&field.upstream));
        match self.sides {
            Sides::ModelAndEngine => format!("{one} {one_value}, {other} {other_value}"),
            Sides::Releases => format!("{one}: {one_value}, {other}: {other_value}"),
        }
    }

    /// The fields that differ, for the panel: `status.desiredReplicas: model 7, upstream 6`.
    fn fields(&self) -> Vec<String> {
        let fields = self.first.fields.iter().take(FIELDS);
        let text =
            |it: &FieldDifference| format!("{}: {}", it.field.without_run(), self.values(it));
        fields.map(text).collect()
    }

    /// The first field that differs, for the summary of a section.
    pub(crate) fn gist(&self) -> String {
        let Some(field) = self.desired_replicas().or(self.first.fields.first()) else {
            return String::new();
        };
        format!("t={}, {}: {}", self.first.at, field.field, self.values(field))
    }

    /// The desired replicas, if they differ.
    pub(crate) fn desired_replicas(&self) -> Option<&FieldDifference> {
        self.first.fields.iter().find(|field| field.field == FieldPath::DesiredReplicas)
    }

    /// The tick at an index with the kind that the mark gives it, and with the fields that differ
    /// if it is the marked one. `marked` is the index of that one.
    pub(super) fn applied(&self, tick: Tick, index: usize, marked: usize) -> Tick {
        let kind = match self.sides {
            Sides::ModelAndEngine if index == marked => TickKind::Divergent,
            Sides::ModelAndEngine if index > marked => TickKind::Later,
            Sides::Releases if index == marked => TickKind::Changed,
            _ => return tick,
        };
        let fields = if index == marked { self.fields() } else { Vec::new() };
        Tick { kind, writes: [fields, tick.writes].concat(), ..tick }
    }
}
