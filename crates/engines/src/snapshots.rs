//! Traces of programs without a model, which an author keeps beside the scenarios: they are
//! recorded, and compared with later runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::recorded::{Traces, path};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::objects::reported;
use kube_lockstep_sim::run::{Outcome, Verdict, snapshot};
use kube_lockstep_sim::trace::{Trace, file};

/// What is done with the trace of each scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Snapshots {
    /// Nothing.
    #[default]
    None,
    /// It is written into this folder.
    Record(PathBuf),
    /// Its writes are compared with those of the trace in this folder.
    Against(PathBuf),
}

impl Snapshots {
    /// Checks that each scenario has a trace file of its own.
    ///
    /// # Errors
    /// Two scenarios whose traces would be one file.
    pub fn check<'s>(&self, scenarios: impl Iterator<Item = &'s str>) -> Result<(), Diagnostic> {
        let (Snapshots::Record(folder) | Snapshots::Against(folder)) = self else { return Ok(()) };
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for scenario in scenarios {
            if let Some(other) = known.insert(name(scenario), scenario) {
                let file = folder.join(path(&name(scenario)));
                let what =
                    format!("{other} and {scenario} have the same trace file, {}", file.display());
                return Err(Diagnostic::new(what).hint("run them separately, with two folders"));
            }
        }
        Ok(())
    }

    /// Records or compares the trace of a scenario that was run. A problem with a file takes the
    /// place of the verdict.
    pub(crate) fn apply(&self, outcome: &mut Outcome) {
        let Some(trace) = outcome.hpa().map(|run| &run.trace) else { return };
        let done = match self {
            Snapshots::None => return,
            Snapshots::Record(folder) => record(folder, trace).map(|()| None),
            Snapshots::Against(folder) => recorded(folder, trace)
                .map(|recorded| snapshot::first_difference(&recorded, trace, outcome.line)),
        };
        match done {
            Ok(None) => {}
            Ok(Some(difference)) => {
                outcome.writes = reported(trace);
                outcome.unmet.insert(0, difference);
                outcome.verdict = Verdict::Unmet;
            }
            Err(why) => outcome.verdict = Verdict::Inconclusive { why, output: String::new() },
        }
    }
}

/// The name of the trace of a scenario below its folder, without the extension: the path of the
/// scenario, without parts that lead out of the folder.
fn name(scenario: &str) -> String {
    let path = Path::new(scenario).with_extension("");
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn record(folder: &Path, trace: &Trace) -> Result<(), String> {
    let path = folder.join(path(&name(&trace.scenario)));
    let failed = |error: &dyn std::fmt::Display| {
        format!("the trace can't be written to {}: {error}", path.display())
    };
    let text = file::of_program(trace).map_err(|error| failed(&error))?;
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(|error| failed(&error))?;
    fs::write(&path, text).map_err(|error| failed(&error))
}

/// The recorded trace of the scenario of a trace.
fn recorded(folder: &Path, trace: &Trace) -> Result<Trace, String> {
    let name = name(&trace.scenario);
    let file = folder.join(path(&name));
    let again =
        "record it with --record in place of --against (in go test: KUBE_LOCKSTEP_RECORD=1)";
    let found = Traces::Folder(folder.to_owned()).read(&name)?;
    let recording = found.into_iter().next();
    let Some(recording) = recording else {
        return Err(format!("there is no trace {}: {again}", file.display()));
    };
    let recorded = recording.trace()?;
    if recorded.hash != trace.hash {
        let what = "the scenario has changed since its trace was recorded";
        return Err(format!("{what} in {}: {again}", file.display()));
    }
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_stay_below_their_folder() {
        for (scenario, expected) in [
            ("tolerance/upper-edge", "tolerance/upper-edge"),
            ("scenarios/ready.yaml", "scenarios/ready"),
            ("./ready.yaml", "ready"),
            ("../../ready.yaml", "ready"),
            ("/tmp/a/ready.yaml", "tmp/a/ready"),
        ] {
            assert_eq!(name(scenario), expected, "{scenario}");
        }
    }

    #[test]
    fn scenarios_with_one_trace_file_are_refused() {
        let record = Snapshots::Record("traces".into());
        assert!(record.check(["a.yaml", "b.yaml", "c/a.yaml"].into_iter()).is_ok());
        let same = record.check(["../a.yaml", "a.yaml"].into_iter()).expect_err("the same file");
        assert!(same.what.contains("../a.yaml and a.yaml have the same trace file"), "{same:?}");
        assert!(Snapshots::None.check(["../a.yaml", "a.yaml"].into_iter()).is_ok());
    }

    #[test]
    fn a_recorded_trace_is_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = Trace {
            scenario: "scenarios/ready.yaml".to_owned(),
            hash: "1".to_owned(),
            engine: "website".to_owned(),
            ..Trace::default()
        };
        assert!(
            recorded(folder.path(), &trace).is_err_and(|why| why.contains("there is no trace"))
        );
        record(folder.path(), &trace).expect("it can be written");
        assert_eq!(
            recorded(folder.path(), &trace).as_ref().map(|it| &it.engine),
            Ok(&trace.engine)
        );
        let changed = Trace { hash: "2".to_owned(), ..trace };
        assert!(recorded(folder.path(), &changed).is_err_and(|why| why.contains("has changed")));
    }
}
