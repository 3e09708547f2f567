//! The autoscalers of a scenario, and the forms of values that depend on them.

use crate::action::Action;
use crate::expectation::AnyExpectation;
use crate::node::Node;

/// The autoscalers of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Autoscalers {
    /// One or several HPAs.
    Hpas,
    /// One or several VPAs.
    Vpas,
    /// One or several HPAs, and a VPA with the same target.
    HpasAndVpa,
}

impl Autoscalers {
    /// The autoscalers of a file. A file without autoscalers is read as the scenario of an HPA.
    pub(crate) fn in_file(root: &Node) -> Autoscalers {
        let has = |name: &str| root.entry(name).is_some();
        match (has("hpa") || has("hpas"), has("vpa") || has("vpas")) {
            (true, true) => Autoscalers::HpasAndVpa,
            (false, true) => Autoscalers::Vpas,
            _ => Autoscalers::Hpas,
        }
    }

    /// Returns true if an action is one of the recommender's timeline. With an HPA, these are the
    /// actions that only a scenario with a VPA can have.
    pub(crate) fn recommender_sees(self, action: &Action) -> bool {
        self == Autoscalers::Vpas || action.requires_vpa()
    }

    /// The variant of an enum whose form depends on the autoscalers, by the name that serde knows.
    pub(crate) fn variant(self, enum_name: &str, node: &Node) -> Option<&'static str> {
        let (with_hpa, without_hpa) = match enum_name {
            "QueryError" => ("Response", "Text"),
            "AnyExpectation" => ("Hpa", "Vpa"),
            "ScenarioReleases" => ("Kubernetes", "Vpa"),
            "InitContainers" => ("Detailed", "Names"),
            _ => return None,
        };
        let is_on_a_vpa = match self {
            Autoscalers::Hpas => false,
            Autoscalers::Vpas => true,
            Autoscalers::HpasAndVpa => {
                enum_name == "AnyExpectation" && AnyExpectation::is_on_a_vpa(node)
            }
        };
        Some(if is_on_a_vpa { without_hpa } else { with_hpa })
    }
}

/// Writes an enum whose variant the autoscalers determine: only its content.
macro_rules! write_content {
    ($type:ident, $with_hpa:ident, $without_hpa:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $type::$with_hpa(content) => content.serialize(serializer),
                    $type::$without_hpa(content) => content.serialize(serializer),
                }
            }
        }
    };
}
pub(crate) use write_content;
