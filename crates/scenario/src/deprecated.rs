//! Old names of fields of the scenario format. They are still accepted, with a note that gives the
//! new name.

use super::autoscalers::Autoscalers;
use super::node::{Node, NodeKind};
use crate::diagnostic::Diagnostic;

/// A field that was renamed.
struct RenamedField {
    /// The top-level field of the scenario that contains it.
    parent: &'static str,
    old: &'static str,
    new: &'static str,
}

const RENAMED_FIELDS: [RenamedField; 1] =
    [RenamedField { parent: "workload", old: "victims", new: "scaleDownOrder" }];

/// The new name of a field with this old name.
pub(super) fn new_name(old: &str) -> Option<&'static str> {
    RENAMED_FIELDS.iter().find(|field| field.old == old).map(|field| field.new)
}

/// Renames old fields to their new names, and returns a note for each of them. All of them require
/// an HPA.
///
/// # Errors
/// If a file contains both the old and the new name of a field.
pub(super) fn rename_fields(
    root: &mut Node,
    autoscalers: Autoscalers,
) -> Result<Vec<Diagnostic>, Diagnostic> {
    let mut notes = Vec::new();
    if autoscalers == Autoscalers::Vpas {
        return Ok(notes);
    }
    for RenamedField { parent, old, new } in RENAMED_FIELDS {
        let Some(NodeKind::Map(fields)) = root.entry_mut(parent).map(|node| &mut node.kind) else {
            continue;
        };
        let has_new = fields.iter().any(|(key, _)| key.text == new);
        let Some((key, _)) = fields.iter_mut().find(|(key, _)| key.text == old) else { continue };
        if has_new {
            let what = format!("`{old}` is the old name of `{new}`, which is set as well");
            let problem = Diagnostic::new(what).at(key.line, key.column);
            return Err(problem.hint(format!("remove `{old}`")));
        }
        let what = format!("`{old}` is deprecated; use `{new}`");
        notes.push(Diagnostic::new(what).at(key.line, key.column));
        new.clone_into(&mut key.text);
    }
    Ok(notes)
}
