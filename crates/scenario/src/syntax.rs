//! The syntax in which a user writes loads: the fields of a scenario, or the flags of a command.
//! Hints about a load have the syntax of the load.

use std::collections::BTreeMap;

/// The syntax of loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syntax {
    /// `perPod: {csv: load.csv, unit: 1m}`.
    #[default]
    Scenario,
    /// `--load cpu=csv(load.csv,unit=1m)`.
    Flags,
}

impl Syntax {
    /// The first of two values for fields, the second for flags.
    #[must_use]
    pub fn pick<T>(self, scenario: T, flags: T) -> T {
        match self {
            Syntax::Scenario => scenario,
            Syntax::Flags => flags,
        }
    }

    /// A setting of a recorded load: `` `by: pod` ``, `` `by=pod` ``.
    #[must_use]
    pub fn setting(self, field: &str, value: &str) -> String {
        self.pick(format!("`{field}: {value}`"), format!("`{field}={value}`"))
    }

    /// The advice to add a setting: ``set `decimal` to comma``, ``add `decimal=comma` ``.
    #[must_use]
    pub fn set(self, field: &str, value: &str) -> String {
        self.pick(format!("set `{field}` to {value}"), format!("add `{field}={value}`"))
    }

    /// The advice to add a setting with one of several values, each with its use:
    /// ``set `unit` to 1m for millicores, or to 1 if the values really are cores``.
    #[must_use]
    pub(crate) fn set_one_of(self, field: &str, values: &[(&str, &str)]) -> String {
        let value = |(value, use_): &(&str, &str)| {
            self.pick(format!("to {value} {use_}"), format!("`{field}={value}` {use_}"))
        };
        let values: Vec<String> = values.iter().map(value).collect();
        let (last, others) = values.split_last().map_or(("", &[][..]), |(it, rest)| (it, rest));
        let verb = self.pick(format!("set `{field}`"), "add".to_owned());
        format!("{verb} {}, or {last}", others.join(", "))
    }

    /// A selector of series: `` `series: {pod: web-0}` ``, `` `pod=web-0` ``.
    #[must_use]
    pub fn series(self, labels: &BTreeMap<String, String>) -> String {
        let list = |separator: &str, end: &str| {
            let labels = labels.iter().map(|(name, value)| format!("{name}{separator}{value}"));
            labels.collect::<Vec<_>>().join(end)
        };
        self.pick(format!("`series: {{{}}}`", list(": ", ", ")), format!("`{}`", list("=", ",")))
    }

    /// The field of a total that the pods share: `` `load` ``, `` `total:…` ``.
    #[must_use]
    pub fn total(self) -> &'static str {
        self.pick("`load`", "`total:…`")
    }

    /// The setting that adds up series: `` `sum: true` ``, `` `sum` ``.
    #[must_use]
    pub fn sum(self) -> &'static str {
        self.pick("`sum: true`", "`sum`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_in_the_syntax_of_the_load() {
        let labels = [("pod", "web-0"), ("zone", "a")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let units = [("1m", "for millicores"), ("1%", "for percent"), ("1", "if it is right")];
        let advice = |syntax: Syntax| {
            let unit = syntax.set_one_of("unit", &units);
            [syntax.set("decimal", "comma"), syntax.series(&labels), unit].join("; ")
        };
        assert_eq!(
            advice(Syntax::Scenario),
            "set `decimal` to comma; `series: {pod: web-0, zone: a}`; set `unit` to 1m for \
             millicores, to 1% for percent, or to 1 if it is right"
        );
        assert_eq!(
            advice(Syntax::Flags),
            "add `decimal=comma`; `pod=web-0,zone=a`; add `unit=1m` for millicores, `unit=1%` for \
             percent, or `unit=1` if it is right"
        );
    }
}
