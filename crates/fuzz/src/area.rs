//! Areas of generated scenarios. Every scenario can include all features; its area makes some of
//! them likely.

use std::fmt;
use std::str::FromStr;

/// The focus of a generated scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// Ratios at or close to the tolerance; sums and averages that require rounding.
    Ratios,
    /// Pods at the boundaries of readiness and initialization.
    Readiness,
    /// Windows and policies, with changes of the load when they end.
    Behavior,
    /// Pods that fail, are deleted, stay in Terminating, or have no metrics.
    Pods,
    /// Errors of the APIs.
    Errors,
    /// Valid and rejected edits of the HPA; deletion, re-creation, restarts, `kubectl scale`.
    Edits,
    /// Unusual quantities: other scales, fractions of a milli-unit, values near overflow.
    Quantities,
    /// Metrics of containers, pods and objects, external metrics; scaling to zero and back.
    Custom,
    /// Several HPAs for one or several workloads.
    Several,
    /// Actions during a reconcile.
    Races,
    /// A day or more.
    Days,
    /// An HPA and a VPA on one workload. Only if it is named: it requires a second engine.
    HpaAndVpa,
}

impl Area {
    /// All areas.
    pub const ALL: [Area; 12] = [
        Area::Ratios,
        Area::Readiness,
        Area::Behavior,
        Area::Pods,
        Area::Errors,
        Area::Edits,
        Area::Quantities,
        Area::Custom,
        Area::Several,
        Area::Races,
        Area::Days,
        Area::HpaAndVpa,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Area::Ratios => "ratios",
            Area::Readiness => "readiness",
            Area::Behavior => "behavior",
            Area::Pods => "pods",
            Area::Errors => "errors",
            Area::Edits => "edits",
            Area::Quantities => "quantities",
            Area::Custom => "custom",
            Area::Several => "several",
            Area::Races => "races",
            Area::Days => "days",
            Area::HpaAndVpa => "hpa-and-vpa",
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses a name.
impl FromStr for Area {
    type Err = String;
    fn from_str(text: &str) -> Result<Area, String> {
        Area::ALL.into_iter().find(|area| area.name() == text).ok_or_else(|| {
            let known = Area::ALL.map(Area::name).join(", ");
            format!("unknown area; the areas are {known}")
        })
    }
}
