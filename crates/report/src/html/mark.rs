//! The first tick that differs from another run: the model and an engine diverge, or two releases
//! differ.

use std::borrow::Cow;

use super::lane::{ChartAxis, Marked};
use super::panels::TickKind;
use super::words;
use kube_lockstep_sim::compare::{Divergence, FieldDifference, FieldPath};

/// The two sides of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sides {
    /// The model and an engine.
    ModelAndEngine,
    /// Two releases.
    Releases,
}

/// The first tick that differs.
#[derive(Clone, Debug)]
pub(super) struct Mark<'a> {
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
    pub(super) fn diverges(first: &'a Divergence, engine: &'a str) -> Mark<'a> {
        let names = ["model".into(), engine.into()];
        Mark { first, sides: Sides::ModelAndEngine, names }
    }

    /// A change between two releases.
    pub(super) fn changed(first: &'a Divergence, from: String, to: String) -> Mark<'a> {
        let names = [from.into(), to.into()];
        Mark { first, sides: Sides::Releases, names }
    }

    /// The mark on charts.
    pub(super) fn on(&self, axis: ChartAxis) -> Marked {
        Marked { at: axis.percent(self.first.at), kind: self.word() }
    }

    /// `diverges`, or `changed`.
    pub(super) fn word(&self) -> &'static str {
        match self.sides {
            Sides::ModelAndEngine => "diverges",
            Sides::Releases => "changed",
        }
    }

    /// Both values: `model 7, upstream 6`, or `1.32: 7, 1.33: 6`.
    pub(super) fn values(&self, field: &FieldDifference) -> String {
        let [one, other] = &self.names;
        let short = |value: &str| words::cut(value, VALUE);
        let (of_one, of_other) = (short(&field.model), short(&field.upstream));
        match self.sides {
            Sides::ModelAndEngine => format!("{one} {of_one}, {other} {of_other}"),
            Sides::Releases => format!("{one}: {of_one}, {other}: {of_other}"),
        }
    }

    /// The fields that differ, for the panel: `status.desiredReplicas: model 7, upstream 6`.
    pub(super) fn fields(&self) -> Vec<String> {
        let fields = self.first.fields.iter().take(FIELDS);
        fields.map(|field| format!("{}: {}", field.field, self.values(field))).collect()
    }

    /// The first field that differs, for the summary of a section.
    pub(super) fn gist(&self) -> String {
        let Some(field) = self.desired_replicas().or(self.first.fields.first()) else {
            return String::new();
        };
        let (at, prefix) = (self.first.at, self.first.prefix());
        format!("t={at}, {prefix}{}: {}", field.field, self.values(field))
    }

    /// The desired replicas, if they differ.
    pub(super) fn desired_replicas(&self) -> Option<&FieldDifference> {
        self.first.fields.iter().find(|field| field.field == FieldPath::DesiredReplicas)
    }

    /// The kind of the tick at an index, if the mark decides it. `marked` is the index of the
    /// marked tick.
    pub(super) fn kind(&self, index: usize, marked: usize) -> Option<TickKind> {
        match self.sides {
            Sides::ModelAndEngine if index == marked => Some(TickKind::Divergent),
            Sides::ModelAndEngine if index > marked => Some(TickKind::Later),
            Sides::Releases if index == marked => Some(TickKind::Changed),
            _ => None,
        }
    }
}
