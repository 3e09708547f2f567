//! `kube-lockstep init`.

use std::io;
use std::path::{Path, PathBuf};

use super::exit;
use super::failure::Failure;
use super::manifests::{self, AutoscalerArgs, ManifestArgs};
use super::output::{show, tell};
use super::whole_file::{Existing, folder, write_whole};
use kube_lockstep_manifests::Draft;
use kube_lockstep_report::style::{WARN, paint};

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
    args.output.as_deref().map_or(Ok(()), check_folder)?;
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
    let folder = args.output.as_deref().map_or(Path::new("."), folder);
    let draft = args.manifests.example_in(folder, args.autoscalers.select())?;
    Ok(comments(&draft) + &draft.to_yaml())
}

/// Notes on standard error that a scenario with relative paths belongs in the current folder.
fn note_paths(manifests: &ManifestArgs) {
    let Some(path) = manifests.relative_path() else { return };
    let text = format!(
        "{} {path} is relative to the current folder: save the scenario in it, or write it to \
         another folder with --output, which adjusts the path\n",
        paint(WARN, "note:")
    );
    tell(&text);
}

/// The assumptions of a draft, and its examples, as comments.
fn comments(draft: &Draft) -> String {
    let mut text = String::new();
    for note in draft.manifest_notes.iter().chain(&draft.notes_on_recommender).chain(&draft.notes) {
        text.push_str(&format!("# Note: {note}\n"));
    }
    for missing in &draft.missing {
        text.push_str(&format!("# Replace the example: {}\n", missing.what));
    }
    text
}

/// Checks that the folder of the output exists, to which the paths in the scenario are relative.
fn check_folder(path: &Path) -> Result<(), Failure> {
    if folder(path).is_dir() {
        return Ok(());
    }
    let what = format!("{}: there is no folder {}", path.display(), folder(path).display());
    Err(Failure::engine(what).hint("make the folder, or choose another one"))
}

/// Writes a file that must not exist: under another name, and renames it at the end.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: &io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists, and is not overwritten", path.display());
            Failure::usage(what).hint("choose another name, or remove the file")
        }
        _ => Failure::engine(format!("{}: {error}", path.display())),
    };
    if path.exists() {
        return Err(failed(&io::ErrorKind::AlreadyExists.into()));
    }
    write_whole(path, text, Existing::Keep).map_err(|error| failed(&error))
}
