//! Merges the results of the parts of a run, as if it had run at once.
//!
//! Results that do not belong together are an error. If a part is missing, there is no verdict on
//! the whole.

use std::collections::{BTreeMap, BTreeSet};

use super::{Event, Outcome, Setting, Shard, Summary, Verdict};
use kube_autoscaler_models::rules::{AnyRelease, Releases};
use kube_lockstep_scenario::Diagnostic;

/// The contents of one file of results.
#[derive(Clone, Debug)]
pub struct ResultFile {
    /// The file, for messages.
    pub file: String,
    /// The outcomes, in the order of the file.
    pub outcomes: Vec<Outcome>,
    /// The end of the run; `None` if it is missing because the run was cut off.
    pub end: Option<End>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct End {
    /// The version of this program.
    pub version: String,
    /// The setting of the run.
    pub setting: Setting,
    /// The figures of the run.
    pub summary: Summary,
}

/// The hint for a result that is given twice.
const ONCE: &str = "merge each result only once";

fn refused(what: String, hint: &str) -> Diagnostic {
    Diagnostic::new(what).hint(hint)
}

/// Merges parts, and returns the events of a single run with the same results. An expected release
/// without results counts as missing.
///
/// # Errors
/// If the parts come from another version of this program, from different engine programs, or have
/// a scenario in common.
pub fn merge(
    parts: Vec<ResultFile>,
    expected: Option<&Releases>,
    version: &str,
) -> Result<(Vec<Event>, Summary), Diagnostic> {
    for (part, end) in ended(&parts) {
        check_version(&part.file, &end.version, version)?;
    }
    same_programs(&parts)?;
    let parts = without_replaced(parts);
    no_shard_twice(&parts)?;
    let mut missing = cut_off(&parts);
    missing.extend(missing_shards(&parts)?);
    no_scenario_twice(&parts)?;
    let seen: BTreeSet<&str> =
        parts.iter().flat_map(|part| &part.outcomes).map(|it| it.release.as_str()).collect();
    missing.extend(without_results(expected, &seen));
    let setting = setting(&parts);
    let mut summary = Summary { missing, ..Summary::default() };
    let ends = || parts.iter().filter_map(|part| part.end.as_ref());
    for end in ends() {
        summary.stale_known.extend_from_slice(&end.summary.stale_known);
        // The parts ran in parallel.
        summary.elapsed = summary.elapsed.max(end.summary.elapsed);
    }
    let several = ends().any(|end| !end.summary.releases.is_empty());
    let mut outcomes: Vec<Outcome> = parts.into_iter().flat_map(|part| part.outcomes).collect();
    let release = |outcome: &Outcome| outcome.release.parse::<AnyRelease>().ok();
    // In the order of a single run: by release, and within a release by id.
    outcomes.sort_by(|one, other| {
        (release(one), &one.engine, &one.id).cmp(&(release(other), &other.engine, &other.id))
    });
    let mut releases: BTreeMap<AnyRelease, Summary> = BTreeMap::new();
    for outcome in &outcomes {
        summary.add(outcome);
        if let Some(release) = release(outcome) {
            releases.entry(release).or_default().add(outcome);
        }
    }
    if several || releases.len() > 1 {
        summary.releases = releases.into_iter().collect();
    }
    let mut events = vec![Event::Started { scenarios: outcomes.len(), setting, note: None }];
    events.extend(outcomes.into_iter().map(|outcome| Event::Finished(Box::new(outcome))));
    events.push(Event::Ended(summary.clone()));
    Ok((events, summary))
}

/// The parts that were not cut off, with their ends.
fn ended(parts: &[ResultFile]) -> impl Iterator<Item = (&ResultFile, &End)> {
    parts.iter().filter_map(|part| part.end.as_ref().map(|end| (part, end)))
}

/// A message for each expected release without results.
pub fn without_results<'a>(
    expected: Option<&'a Releases>,
    seen: &'a BTreeSet<&str>,
) -> impl Iterator<Item = String> + 'a {
    let expected = expected.into_iter().flat_map(Releases::iter);
    let missing = expected.filter(|release| !seen.contains(release.to_string().as_str()));
    missing.map(|release| format!("release {release}: there are no results"))
}

/// Checks the version of a file: results of another version may mean something else.
///
/// # Errors
/// If another version wrote the file.
pub fn check_version(file: &str, theirs: &str, ours: &str) -> Result<(), Diagnostic> {
    if theirs == ours {
        return Ok(());
    }
    let what =
        format!("{file} was written by kube-lockstep {theirs}, but this is kube-lockstep {ours}");
    Err(refused(what, "merge results with the version that wrote them"))
}

/// Checks that all parts come from the same programs, so that one command can replay them.
fn same_programs(parts: &[ResultFile]) -> Result<(), Diagnostic> {
    let Some((first, end)) = ended(parts).next() else { return Ok(()) };
    for (part, other) in ended(parts).skip(1) {
        let (one, two) = (&first.file, &part.file);
        let programs = |setting: &Setting| {
            let Setting { program, checkout, time_limit, replay_args, .. } = setting;
            (program.clone(), checkout.clone(), *time_limit, replay_args.clone())
        };
        if programs(&end.setting) != programs(&other.setting) {
            let what = format!("{one} and {two} come from runs of different programs");
            let hint =
                "use the same --program, --upstream-path, --controller and --time-limit everywhere";
            return Err(refused(what, hint));
        }
    }
    Ok(())
}

/// Removes parts that were cut off and run again: complete parts have all of their verdicts.
fn without_replaced(parts: Vec<ResultFile>) -> Vec<ResultFile> {
    fn runs(part: &ResultFile) -> impl Iterator<Item = String> + '_ {
        let kind = |verdict: &Verdict| std::mem::discriminant(verdict);
        part.outcomes.iter().map(move |it| {
            format!("{} {} {} {:?}", it.engine, it.release, it.id, kind(&it.verdict))
        })
    }
    let whole: BTreeSet<String> = ended(&parts).flat_map(|(part, _)| runs(part)).collect();
    let is_replaced = |part: &ResultFile| {
        // A part without outcomes can belong to any run.
        part.end.is_none() && !part.outcomes.is_empty() && runs(part).all(|it| whole.contains(&it))
    };
    parts.into_iter().filter(|part| !is_replaced(part)).collect()
}

/// Checks that no shard is given twice.
fn no_shard_twice(parts: &[ResultFile]) -> Result<(), Diagnostic> {
    let mut shards: BTreeMap<(&str, Shard), &str> = BTreeMap::new();
    for (part, end) in ended(parts) {
        let Some(shard) = end.setting.shard else { continue };
        if let Some(other) = shards.insert((&end.setting.plan, shard), &part.file) {
            let what = format!("{other} and {} are both shard {shard} of the same run", part.file);
            return Err(refused(what, ONCE));
        }
    }
    Ok(())
}

/// Checks that no scenario has two outcomes on one release of one engine.
fn no_scenario_twice(parts: &[ResultFile]) -> Result<(), Diagnostic> {
    let mut seen: BTreeMap<(&str, &str, &str), &str> = BTreeMap::new();
    for part in parts {
        for outcome in &part.outcomes {
            let run = (&*outcome.engine, &*outcome.release, &*outcome.id);
            if let Some(other) = seen.insert(run, &part.file) {
                let (engine, release, id) = run;
                let both = match other == part.file {
                    true => format!("twice in {other}"),
                    false => format!("in {other} and in {}", part.file),
                };
                return Err(refused(format!("{id} on {engine} {release} is {both}"), ONCE));
            }
        }
    }
    Ok(())
}

/// A message for each part that is incomplete.
fn cut_off(parts: &[ResultFile]) -> Vec<String> {
    let gap = |part: &ResultFile| match &part.end {
        None => Some(format!("{}: the run is incomplete", part.file)),
        Some(end) if end.summary.scenarios != part.outcomes.len() => Some(format!(
            "{}: of {} scenarios that were run, {} are in the file",
            part.file,
            end.summary.scenarios,
            part.outcomes.len()
        )),
        Some(_) => None,
    };
    parts.iter().filter_map(gap).collect()
}

/// A message for each missing shard.
fn missing_shards(parts: &[ResultFile]) -> Result<Vec<String>, Diagnostic> {
    let mut runs: BTreeMap<&str, Vec<(&ResultFile, &Setting, Shard)>> = BTreeMap::new();
    for (part, end) in ended(parts) {
        if let Some(shard) = end.setting.shard {
            runs.entry(&end.setting.plan).or_default().push((part, &end.setting, shard));
        }
    }
    let mut missing = Vec::new();
    for shards in runs.values() {
        let Some(((first, setting, shard), others)) = shards.split_first() else { continue };
        for (part, other, number) in others {
            let (one, two) = (&first.file, &part.file);
            if shard.of != number.of {
                let what = format!("{one} is shard {shard}, and {two} shard {number}");
                return Err(refused(what, "all shards of a run must have the same N in I/N"));
            }
            if setting.engine != other.engine {
                let (on, other) = (&setting.engine, &other.engine);
                let what = format!("{one} and {two} are from one run, but on {on} and {other}");
                return Err(refused(what, "name the engine of all shards with --engine"));
            }
        }
        let present: BTreeSet<usize> = shards.iter().map(|(_, _, shard)| shard.index).collect();
        let absent = (1..=shard.of).filter(|index| !present.contains(index));
        let (engine, release) = (&setting.engine, &setting.release);
        missing.extend(absent.map(|index| {
            let shard = Shard { index, ..*shard };
            format!("shard {shard} of the run on {engine} {release}")
        }));
    }
    // The same engine, releases and number of shards, but different scenarios: with a shard
    // missing, they were probably meant to be one run.
    let mut splits: BTreeMap<(&str, &str, usize), (&str, &str)> = BTreeMap::new();
    for (plan, shards) in &runs {
        let Some((part, setting, shard)) = shards.first() else { continue };
        let split = (&*setting.engine, &*setting.release, shard.of);
        let Some((other, file)) = splits.insert(split, (plan, &part.file)) else { continue };
        if other != *plan && !missing.is_empty() {
            let what = format!("{file} and {} are shards of different runs", part.file);
            return Err(refused(what, "their scenarios differ"));
        }
    }
    Ok(missing)
}

/// The common setting of all parts.
fn setting(parts: &[ResultFile]) -> Setting {
    let settings: Vec<&Setting> = ended(parts).map(|(_, end)| &end.setting).collect();
    let engines: BTreeSet<&str> = settings.iter().map(|setting| &*setting.engine).collect();
    let plans: BTreeSet<&str> = settings.iter().map(|setting| &*setting.plan).collect();
    let names: Vec<&str> = settings.iter().map(|setting| &*setting.release).collect();
    let releases = names.join(",").parse::<Releases>().map(|releases| releases.to_string());
    let whole = settings.iter().all(|setting| setting.shard.is_some()) && plans.len() == 1;
    Setting {
        engine: engines.into_iter().collect::<Vec<_>>().join(", ").into(),
        release: releases.unwrap_or_else(|_| names.join(", ")),
        shard: None,
        plan: if whole { plans.into_iter().collect() } else { String::new() },
        ..settings.first().copied().cloned().unwrap_or_default()
    }
}
