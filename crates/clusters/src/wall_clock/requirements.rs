//! Groups scenarios by the settings that they require of a cluster.

use std::cmp::Reverse;

use super::preparation::PreparedScenario;
use crate::cluster::CustomKind;
use crate::cluster::settings::Settings;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_engines::plan::CustomController;
use kube_lockstep_scenario::Scenario;

/// Scenarios that require the same settings of their cluster.
pub(super) struct Group {
    pub settings: Settings,
    pub scenarios: Vec<PreparedScenario>,
}

/// Groups scenarios by their required settings, in the order in which they run.
pub(super) fn groups(
    prepared: Vec<PreparedScenario>,
    release: Release,
    own: Option<&CustomController>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for scenario in prepared {
        let settings = settings(&scenario.prepared, release, own);
        match groups.iter_mut().find(|group| group.settings.agrees(&settings)) {
            Some(group) => {
                group.settings.custom_kinds.extend(settings.custom_kinds);
                group.scenarios.push(scenario);
            }
            None => groups.push(Group { settings, scenarios: vec![scenario] }),
        }
    }
    sort(&mut groups);
    groups
}

/// Sorts the largest group first, because it has most of the scenarios. The other groups, and the
/// scenarios of each group, are sorted by length, the longest first.
fn sort(groups: &mut Vec<Group>) {
    for group in &mut *groups {
        group.scenarios.sort_by_key(|scenario| Reverse(scenario.length()));
    }
    groups.sort_by_key(|group| Reverse(group.scenarios.first().map(PreparedScenario::length)));
    let count = |number: &usize| groups.get(*number).map(|group| group.scenarios.len());
    let largest = (0..groups.len()).rev().max_by_key(count);
    if let Some(largest) = largest.and_then(|number| groups.get_mut(..=number)) {
        largest.rotate_right(1);
    }
}

/// The settings of the cluster that a scenario requires.
fn settings(scenario: &Scenario, release: Release, own: Option<&CustomController>) -> Settings {
    let rules = Rules::of(release);
    let mut flags = scenario.flags_by(&rules);
    // With one HPA, the number of workers has no effect.
    flags.concurrent_syncs = 1;
    let mut gates = scenario.gate_settings(&rules).into_owned();
    if own.is_none() {
        // Upstream's defaults need no override. A custom controller may have other defaults.
        let mut as_by_default = scenario.gates_by(&rules);
        let changed: Vec<&str> = as_by_default.changed().map(|(gate, _)| gate.name()).collect();
        gates.retain(|name, on| {
            changed.contains(&name.as_str()) || as_by_default.set(name, *on).is_err()
        });
    }
    Settings {
        release,
        gates,
        hpa_controller: own.is_none(),
        custom_kinds: CustomKind::from_workload(&scenario.workload).into_iter().collect(),
        controller: own.map(|own| own.controller.clone()),
        ..Settings::new(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::super::preparation::tests::fixture;
    use super::*;

    #[test]
    fn a_gate_at_its_default_requires_no_other_control_plane() {
        let scenario = fixture("zero/with-the-gate-a-raised-minimum-revives-the-workload");
        let gates = |release| settings(&scenario, release, None).gates;
        assert!(gates(Release::NEWEST).is_empty(), "it is on");
        assert!(
            gates(Release::known("1.35").expect("known")).contains_key("HPAScaleToZero"),
            "it is off"
        );
        // Upstream has the gate, but the model does not.
        let without = fixture("requests/without-the-gate-pod-level-requests-say-nothing");
        assert_eq!(settings(&without, Release::NEWEST, None).gates, without.gate_overrides);
    }

    #[test]
    fn the_largest_group_runs_first_and_then_long_scenarios() {
        let group = |ids: &[&str]| {
            let one = |id: &&str| PreparedScenario { written: fixture(id), prepared: fixture(id) };
            let scenarios: Vec<PreparedScenario> = ids.iter().map(one).collect();
            Group { settings: settings(&scenarios[0].prepared, Release::NEWEST, None), scenarios }
        };
        let (long, short) = (
            "stabilization/kep-853-story-5-ten-minutes-of-recommendations",
            "tolerance/just-above-the-upper-edge-scales-up",
        );
        let one = "tolerance/flag-of-the-controller";
        let mut groups = vec![group(&[one]), group(&[long]), group(&[short, long, one])];
        sort(&mut groups);
        let ids = |group: &Group| {
            group.scenarios.iter().map(|it| it.written.id.clone()).collect::<Vec<_>>()
        };
        let ids: Vec<Vec<String>> = groups.iter().map(ids).collect();
        assert_eq!(ids, [vec![long, short, one], vec![long], vec![one]]);
    }
}
