//! The files of a request: those that a scenario names, and manifests to start from.

use std::collections::BTreeMap;

use kube_lockstep_manifests::{DraftError, DraftOptions, Load, ManifestFile, draft as write};
use kube_lockstep_scenario::Diagnostic;
use serde_json::{Value, json};

use crate::Refused;

/// The name of pasted manifests.
pub(crate) const MANIFESTS: &str = "the manifests";

/// The files beside a scenario.
pub(crate) struct Files<'a> {
    /// The folder of the scenario, with a slash at its end unless it is empty.
    folder: &'a str,
    all: &'a BTreeMap<String, String>,
}

impl<'a> Files<'a> {
    /// The files that the scenario at a path can name.
    pub(crate) fn beside(path: &'a str, all: &'a BTreeMap<String, String>) -> Files<'a> {
        let folder = path.rfind('/').map_or("", |end| &path[..=end]);
        Files { folder, all }
    }

    /// Reads a file by its path relative to the folder of the scenario.
    pub(crate) fn read(&self, name: &str) -> Result<String, Diagnostic> {
        let mut parts: Vec<&str> = Vec::new();
        for part in self.folder.split('/').chain(name.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let found = self.all.get(&parts.join("/")).cloned();
        found.ok_or_else(|| "there is no such file in the playground".into())
    }
}

/// Loads in the short form of the command line.
pub(crate) fn loads(texts: &[String]) -> Result<Vec<Load>, Refused> {
    texts.iter().map(|load| load.parse().map_err(|why: String| Refused::new(why))).collect()
}

/// Manifests as a file.
pub(crate) fn file(manifests: &str) -> ManifestFile {
    ManifestFile { name: MANIFESTS.to_owned(), text: manifests.to_owned(), lenient: false }
}

impl From<DraftError> for Refused {
    fn from(error: DraftError) -> Refused {
        match error {
            DraftError::Invalid(error) => Refused::from(error),
            DraftError::Options(problem) => Refused::new(problem.in_one_line("; ")),
        }
    }
}

/// A scenario from manifests, with examples in place of values that they leave open.
pub(crate) fn draft(manifests: &str, load: &[String]) -> Result<Value, Refused> {
    let options = DraftOptions { loads: loads(load)?, examples: true, ..DraftOptions::default() };
    let no_files = |_: &str| Err("recorded loads are added as files of the playground".into());
    let drafts = write(&[file(manifests)], &options, &no_files)?;
    let Some(first) = drafts.list.first() else {
        return Err(Refused::new("the manifests contain no autoscaler"));
    };
    let others = drafts.list.iter().skip(1).map(|draft| format!("{} {}", draft.kind, draft.name));
    let others: Vec<String> = others.collect();
    let missing: Vec<&str> = first.missing.iter().map(|missing| missing.what.as_str()).collect();
    let notes = first.notes_on_recommender.iter().chain(&first.notes);
    let notes: Vec<&str> = notes.map(|note| note.what.as_str()).collect();
    Ok(json!({
        "text": first.to_yaml(),
        "notes": notes,
        "examples": missing,
        "ignored": drafts.ignored,
        "others": others,
    }))
}
