//! Flags of the kube-controller-manager for drafts: named, described and checked as in the field
//! `controller.flags` of a scenario file.

use schemars::schema_for;
use serde_json::{Map, Value};

use kube_autoscaler_models::flags::Flag;
use kube_lockstep_scenario::raw::{Controller, Flags};
use kube_lockstep_scenario::resolve::controller_flag;
use kube_lockstep_scenario::write;

/// Values of flags of the kube-controller-manager. All others have upstream's defaults.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ControllerFlags(Map<String, Value>);

impl ControllerFlags {
    /// Reads the value of a flag.
    ///
    /// # Errors
    /// The message that the same value has in a scenario file.
    pub fn parse(flag: Flag, value: &str) -> Result<ControllerFlags, String> {
        let flags = controller_flag(flag, value).map_err(|problem| problem.in_one_line("; "))?;
        Ok(ControllerFlags(write::fields(&flags)))
    }

    /// Adds the values of other flags.
    pub fn extend(&mut self, others: ControllerFlags) {
        self.0.extend(others.0);
    }

    /// The name of the first flag that has a value, without the leading dashes.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        Flag::ALL.into_iter().map(Flag::name).find(|name| self.0.contains_key(*name))
    }

    /// The field of a scenario, if there are values.
    pub(super) fn field(&self) -> Option<Controller> {
        let flags = serde_json::from_value(Value::Object(self.0.clone())).ok();
        let flags = flags.filter(|flags| *flags != Flags::default());
        flags.map(|flags| Controller { flags: Some(flags), ..Controller::default() })
    }
}

/// The fields of `controller.flags`, as the JSON Schema describes them.
#[derive(Debug)]
pub struct FlagFields(Value);

impl Default for FlagFields {
    fn default() -> FlagFields {
        FlagFields(schema_for!(Flags).to_value())
    }
}

impl FlagFields {
    /// The meaning of a flag, and its default.
    #[must_use]
    pub fn description(&self, flag: Flag) -> String {
        self.of(flag)["description"].as_str().unwrap_or_default().replace('\n', " ")
    }

    /// Whether the value of a flag is a number. Otherwise, it is a duration.
    #[must_use]
    pub fn is_number(&self, flag: Flag) -> bool {
        !self.of(flag)["minimum"].is_null()
    }

    fn of(&self, flag: Flag) -> &Value {
        &self.0["properties"][flag.name()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_a_field() {
        let fields = FlagFields::default();
        for flag in Flag::ALL {
            assert_ne!(fields.description(flag), "", "{flag:?}");
            let value = if fields.is_number(flag) { "2" } else { "2m" };
            let mut flags = ControllerFlags::default();
            assert_eq!((flags.first(), flags.field()), (None, None));
            flags.extend(ControllerFlags::parse(flag, value).expect("a value"));
            assert_eq!(flags.first(), Some(flag.name()));
            assert!(flags.field().is_some(), "{flag:?}");
        }
    }
}
