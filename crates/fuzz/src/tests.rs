//! Tests of generating and shrinking, without running scenarios.

use std::sync::Arc;

use serde_json::Value;

use super::*;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Action;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::engine::{Hpa, Vpa};

fn generated(seed: u64, index: u64, areas: &[Area]) -> Scenario {
    scenario(seed, index, Release::NEWEST, areas)
}

fn read(text: &str) -> Result<Scenario, scenario::Error> {
    scenario::parse("generated.yaml", text, &|_| Err("there is no other file".into()))
}

fn read_tree(tree: &Value) -> Option<Scenario> {
    Hpa::read("generated.yaml", tree)
}

/// A written scenario is parsed to the same scenario, except for the fields about its origin.
#[test]
fn generated_scenarios_read_back_unchanged() {
    for index in 0..1500 {
        let made = generated(1, index, &[]);
        let text = scenario::to_yaml(&made, None);
        let read = read(&text).unwrap_or_else(|error| panic!("{index}:\n{error}\n{text}"));
        let plain = |scenario: Scenario| {
            let timeline = scenario.timeline.into_iter();
            let timeline = timeline.map(|it| scenario::resolved::TimelineEvent { line: 0, ..it });
            let hpas = scenario.hpas.into_iter();
            let hpas =
                hpas.map(|hpa| scenario::resolved::Autoscaler { api_version: "any".into(), ..hpa });
            format!(
                "{:#?}",
                Scenario {
                    // A converted manifest is written in its new version.
                    hpas: hpas.collect(),
                    id: String::new(),
                    path: String::new(),
                    hash: String::new(),
                    line: 0,
                    // Unusual values have a note.
                    notes: Vec::new(),
                    timeline: timeline.collect(),
                    ..scenario
                }
            )
        };
        let (made, read) = (plain(made), plain(read));
        let first = made.lines().zip(read.lines()).find(|(one, other)| one != other);
        assert_eq!(first, None, "{index}:\n{text}");
    }
}

#[test]
fn a_seed_and_an_index_determine_the_scenario() {
    let text = |seed, index| scenario::to_yaml(&generated(seed, index, &[]), None);
    assert_eq!(text(5, 17), text(5, 17));
    assert_ne!(text(5, 17), text(5, 18));
    assert_ne!(text(5, 17), text(6, 17));
}

#[test]
fn each_area_generates_its_features() {
    let all = |area| (0..60).map(move |index| generated(9, index, &[area]));
    let ticks = |scenario: &Scenario| scenario.until.since_start().0 / scenario.flags.sync_period.0;
    let day = Time::from_secs(86_000);
    assert!(all(Area::Days).all(|scenario| scenario.until >= day && ticks(&scenario) > 1000));
    assert!(all(Area::Ratios).all(|scenario| ticks(&scenario) <= 120));
    let behaves = |made: &Scenario| made.hpas[0].spec.behavior.is_some();
    assert!(all(Area::Behavior).filter(behaves).count() > 40);
    assert!(all(Area::Errors).all(|scenario| !scenario.timeline.is_empty()));
    assert!(all(Area::HpaAndVpa).all(|scenario| scenario.vpa.is_some()));
    let has_actions =
        |made: &Scenario| made.vpa.as_ref().is_some_and(|vpa| !vpa.recommender.timeline.is_empty());
    assert!(all(Area::HpaAndVpa).filter(has_actions).count() > 20);
    assert_eq!("edits".parse(), Ok(Area::Edits));
    assert!("nothing".parse::<Area>().is_err());
}

/// The failure requires one entry of the timeline and more than 3 replicas. Shrinking removes the
/// other entries.
#[test]
fn shrinking_keeps_the_failure() {
    let big = (0..)
        .map(|index| generated(2, index, &[Area::Edits]))
        .find(|it| it.workload.replicas > 6 && fails(it).is_some())
        .map(Arc::new)
        .expect("a scenario with this failure");
    let mut tried = 0;
    let shrunk =
        shrink(scenario::to_tree(&big), 2000, Priority::Ticks, &read_tree, &mut |scenario| {
            tried += 1;
            fails(scenario)
        });
    let shrunk = shrunk.expect("the parsed scenario also fails");
    assert_eq!(shrunk.tried, tried);
    let small = &shrunk.scenario;
    assert_eq!(small.timeline.len(), 1, "{}", scenario::to_yaml(small, None));
    assert_eq!(small.workload.replicas, 4);
    assert_eq!(small.timeline[0].at, small.until);
    assert!(small.until <= Time::from_secs(1), "{}", small.until);
    assert!(scenario::to_yaml(small, None).lines().count() < 25);
    assert_eq!(small.flags, Default::default());
}

fn fails(scenario: &Scenario) -> Option<FailurePoint> {
    let scaled = scenario
        .timeline
        .iter()
        .find(|it| matches!(it.action, scenario::resolved::Action::Scale(_)));
    scaled
        .filter(|_| scenario.workload.replicas > 3)
        .map(|it| FailurePoint { at: it.at, replicas: Vec::new() })
}

#[test]
fn shrinking_respects_its_budget() {
    let big = Arc::new(generated(2, 3, &[]));
    let mut tried = 0;
    let shrunk =
        shrink(scenario::to_tree(&big), 10, Priority::Ticks, &read_tree, &mut |scenario| {
            tried += 1;
            Some(FailurePoint { at: scenario.until, replicas: Vec::new() })
        });
    assert_eq!(shrunk.map(|shrunk| shrunk.tried), Some(10));
    assert_eq!(tried, 10);
}

/// The generator panics if the parser rejects a file.
#[test]
fn generated_scenarios_of_vpas_are_valid_on_each_release() {
    for release in VpaRelease::supported() {
        for index in 0..60 {
            let scenario = recommender::scenario(3, index, release);
            assert_eq!(scenario.unsupported_on(release), None, "{index}");
        }
    }
}

#[test]
fn a_seed_and_an_index_determine_the_scenario_of_a_vpa() {
    let of = |seed, index| recommender::tree(seed, index, VpaRelease::NEWEST);
    assert_eq!(of(7, 3), of(7, 3));
    assert_ne!(of(7, 3), of(7, 4));
    assert_ne!(of(7, 3), of(8, 3));
}

/// The failure requires one OOM kill. Shrinking removes everything else.
#[test]
fn shrinking_keeps_the_failure_of_a_vpa() {
    let fails = |scenario: &VpaScenario| {
        let mut kills = scenario.timeline.iter();
        let kill = kills.find(|event| matches!(event.action, Action::OomKill(_)))?;
        Some(FailurePoint { at: kill.at, replicas: Vec::new() })
    };
    let trees = (0..).map(|index| recommender::tree(1, index, VpaRelease::NEWEST));
    let read = |tree: &Value| Vpa::read("generated.yaml", tree);
    let mut failing = trees.filter(|tree| read(tree).is_some_and(|it| fails(&it).is_some()));
    let big = failing.next().expect("a scenario with this failure");
    let shrunk = shrink(big, 2000, Priority::Ticks, &read, &mut |scenario| fails(scenario));
    let Shrunk { scenario: small, tree, .. } = shrunk.expect("the scenario fails");
    let text = scenario::tree_to_yaml(&tree);
    assert_eq!(small.timeline.len(), 1, "{text}");
    assert!(small.flags.len() <= 1 && small.history.is_none(), "{text}");
    assert!(text.lines().count() < 25, "{text}");
}
