//! Recorded runs of the recommender as text: the header of all traces, then one JSON value per
//! line.
//!
//! An object is written as a merge patch of its previous content, which keeps the files small.
//! Upstream's order of requests in one phase of a run is random; they are sorted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::header::{Build, Header, Version};
use super::text::{TextError, body, read_header, verify};
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::content_hash::content_hash;
use kube_autoscaler_models::merge_patch::merge_patch;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    Checkpoint, LogLine, ObjectName, Run, RunAt, Tolerances, VpaStatus, Write,
};

/// The recorded runs of a recommender in a scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecommenderTrace {
    /// The release as the engine reports it.
    pub release: String,
    pub engine: String,
    /// The scenario's id.
    pub scenario: String,
    /// The scenario's content hash.
    pub hash: String,
    /// The runs and the errors, in chronological order.
    pub entries: Vec<Entry>,
}

/// A start of the recommender, or one of its runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// It starts and logs these errors.
    Start(Vec<LogLine>),
    /// It runs.
    Run(RunAt),
}

/// The engine's name in headers.
pub const ENGINE: &str = "recommender";

/// A line after the header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Line {
    Start(Vec<LogLine>),
    Run(RunText),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunText {
    #[serde(with = "as_text")]
    at: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<WriteText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    log: Vec<LogLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum WriteText {
    /// The status of a VPA.
    Status(ObjectName, Value),
    /// An update of a checkpoint.
    Checkpoint(ObjectName, Value),
    /// A new checkpoint.
    Create(ObjectName, Value),
    /// A deleted checkpoint.
    Delete(ObjectName),
}

/// The lines of a log in the order of their texts: upstream's order of samples is random.
fn sorted_log(log: &[LogLine]) -> Vec<LogLine> {
    let mut log = log.to_vec();
    log.sort();
    log
}

/// The last contents of the objects, by kind and name.
#[derive(Default)]
struct Contents(BTreeMap<(bool, ObjectName), Value>);

impl Contents {
    /// Replaces the content of an object. Returns the patch.
    fn patch(&mut self, is_status: bool, name: &ObjectName, new: Value) -> Value {
        let old = self.0.entry((is_status, name.clone())).or_insert(Value::Null);
        let patch = difference(old, &new);
        *old = new;
        patch
    }

    /// Applies a patch to an object, and returns the new content.
    fn patched<T: DeserializeOwned>(
        &mut self,
        is_status: bool,
        name: &ObjectName,
        patch: &Value,
    ) -> Result<T, String> {
        let content = self.0.entry((is_status, name.clone())).or_insert(Value::Null);
        merge_patch(content, patch);
        T::deserialize(&*content).map_err(|error| format!("{name}: {error}"))
    }
}

/// A merge patch that makes `new` of `old`. A member that is null is the same as an absent one.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(same) if same == value => {}
            Some(other) => drop(patch.insert(name.clone(), difference(other, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

/// Writes a trace in its recorded form, for the builds that were recorded with it.
///
/// # Errors
/// If a value can't be written as JSON.
pub fn write(trace: &RecommenderTrace, builds: &[Build]) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    let mut contents = Contents::default();
    for entry in &trace.entries {
        let line = match entry {
            Entry::Start(log) => Line::Start(sorted_log(log)),
            Entry::Run(run) => Line::Run(run_text(run, &mut contents)?),
        };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    let header = Header {
        scenario: trace.scenario.clone(),
        hash: trace.hash.clone(),
        body: content_hash(&text),
        engine: ENGINE.to_owned(),
        builds: builds.to_vec(),
    };
    Ok(format!("{}\n{text}", serde_json::to_string(&header)?))
}

/// The phases of a run, and the objects.
fn sort_key(write: &Write) -> (usize, &ObjectName) {
    match write {
        Write::Status { vpa, .. } => (0, vpa),
        Write::Checkpoint { checkpoint, .. } => (1, &checkpoint.metadata),
        Write::DeleteCheckpoint(name) => (2, name),
    }
}

fn run_text(run: &RunAt, contents: &mut Contents) -> Result<RunText, serde_json::Error> {
    let mut sorted: Vec<&Write> = run.run.writes.iter().collect();
    // Requests that are out of order stay so: only neighbors of one phase are sorted.
    sorted
        .chunk_by_mut(|a, b| sort_key(a).0 == sort_key(b).0)
        .for_each(|chunk| chunk.sort_by_key(|write| sort_key(write)));
    let mut writes = Vec::new();
    for write in sorted {
        writes.push(match write {
            Write::Status { vpa, status } => {
                let patch = contents.patch(true, vpa, serde_json::to_value(status)?);
                WriteText::Status(vpa.clone(), patch)
            }
            Write::Checkpoint { checkpoint, is_new, .. } => {
                let name = checkpoint.metadata.clone();
                let content = serde_json::to_value(checkpoint)?;
                let patch = contents.patch(false, &name, content);
                match is_new {
                    true => WriteText::Create(name, patch),
                    false => WriteText::Checkpoint(name, patch),
                }
            }
            Write::DeleteCheckpoint(name) => WriteText::Delete(name.clone()),
        });
    }
    Ok(RunText { at: run.at, writes, log: sorted_log(&run.run.log) })
}

/// Reads a trace from its recorded form.
///
/// # Errors
/// If the text is not in the form that [`write()`] writes, or was changed after it was written.
pub fn read(text: &str) -> Result<RecommenderTrace, TextError> {
    let header = read_header(text)?;
    verify(&header, body(text))?;
    let release = header.newest().map(Version::tag).unwrap_or_default();
    let Header { scenario, hash, engine, .. } = header;
    let mut contents = Contents::default();
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let read = serde_json::from_str::<Line>(line).map_err(|error| error.to_string());
        let entry = read.and_then(|line| match line {
            Line::Start(log) => Ok(Entry::Start(log)),
            Line::Run(run) => run_of(run, &mut contents).map(Entry::Run),
        });
        entries.push(entry.map_err(|what| TextError { line: index + 1, what })?);
    }
    Ok(RecommenderTrace { release, engine, scenario, hash, entries })
}

fn run_of(run: RunText, contents: &mut Contents) -> Result<RunAt, String> {
    let mut writes = Vec::new();
    for write in run.writes {
        writes.push(match write {
            WriteText::Status(vpa, patch) => {
                let status = contents.patched::<VpaStatus>(true, &vpa, &patch)?;
                Write::Status { vpa, status: status.into() }
            }
            WriteText::Checkpoint(name, patch) => checkpoint(contents, &name, &patch, false)?,
            WriteText::Create(name, patch) => checkpoint(contents, &name, &patch, true)?,
            WriteText::Delete(name) => Write::DeleteCheckpoint(name),
        });
    }
    let run_result = Run { writes, log: run.log, is_undetermined: false };
    Ok(RunAt { at: run.at, run: run_result })
}

fn checkpoint(
    contents: &mut Contents,
    name: &ObjectName,
    patch: &Value,
    is_new: bool,
) -> Result<Write, String> {
    let checkpoint = contents.patched::<Arc<Checkpoint>>(false, name, patch)?;
    Ok(Write::Checkpoint { checkpoint, is_new, tolerances: Tolerances::default() })
}
