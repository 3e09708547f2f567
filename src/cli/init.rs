//! `kube-lockstep init`.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::exit;
use super::failure::Failure;
use super::manifests::{self, AutoscalerArgs, ManifestArgs};
use super::output::show;
use crate::report::style::{WARN, paint};
use crate::scenario::draft::Draft;

const HELP: &str = "\
Exit codes:
  0    the scenario is written
  2    an invalid command line, an invalid manifest, or the output file exists
  3    the output file can't be written";

/// A scenario with comments, to start from.
pub(super) const TEMPLATE: &str = include_str!("init/template.yaml");

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
pub(super) struct Args {
    /// The output file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    autoscalers: AutoscalerArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let text = match args.manifests.filename.as_slice() {
        [] => TEMPLATE.to_owned(),
        _ => from_manifests(args)?,
    };
    match &args.output {
        Some(path) => write_new(path, &text)?,
        None => {
            show(&text)?;
            note_paths(&args.manifests);
        }
    }
    Ok(exit::CONFORMS)
}

fn from_manifests(args: &Args) -> Result<String, Failure> {
    let mut manifests = args.manifests.clone();
    let folder = args.output.as_deref().and_then(Path::parent);
    if folder.is_some_and(|folder| !folder.as_os_str().is_empty()) {
        manifests.make_paths_absolute();
    }
    let drafts = manifests.drafts(args.autoscalers.select(), true)?;
    let [draft] = drafts.as_slice() else {
        let names = drafts.iter().map(|draft| format!("{} {}", draft.kind, draft.name));
        return Err(manifests::several(names.collect()));
    };
    // An invalid draft would leave the user with a file that can't be run.
    manifests::parse(draft)?;
    Ok(comments(draft) + &draft.to_yaml())
}

/// Notes on standard error that a scenario with relative paths belongs in the current folder.
fn note_paths(manifests: &ManifestArgs) {
    let Some(path) = manifests.relative_path() else { return };
    let text = format!(
        "{} {path} is relative to the current folder: save the scenario in it, or write it to \
         another folder with --output, which adjusts the path\n",
        paint(WARN, "note:")
    );
    // A note that can't be written is ignored.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// The assumptions of a draft, and its examples, as comments.
fn comments(draft: &Draft) -> String {
    let mut text = String::new();
    let of_manifests = draft.manifest_notes.iter().map(|note| &note.what);
    for note in of_manifests.chain(&draft.notes) {
        text.push_str(&format!("# Note: {note}\n"));
    }
    for missing in &draft.missing {
        text.push_str(&format!("# Replace the example: {}\n", missing.what));
    }
    text
}

/// Writes a file that must not exist.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists, and is not overwritten", path.display());
            Failure::usage(what).hint("choose another name, or remove the file")
        }
        _ => Failure::engine(format!("{}: {error}", path.display())),
    };
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
