//! `kube-lockstep prune`: frees space in the cache folder and removes Docker images.

use std::fmt::Write as _;

use super::exit;
use super::failure::Failure;
use super::output::show;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Entry;
use kube_lockstep_report::counted;
use kube_lockstep_report::style::{DIM, STRONG, WARN, paint};

const HELP: &str = "\
Exit codes:
  0    all removable files are removed; files in use are kept
  2    an invalid command line
  3    there is no cache folder, Docker does not respond, or an item can't be removed";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Also remove engines that this program would use again; they are rebuilt when needed
    #[arg(long)]
    all: bool,
    /// Also remove the Docker images that `run --engine image` built
    #[arg(long)]
    images: bool,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let mut text = String::new();
    let (mut removed, mut kept) = (Vec::new(), 0);
    let found = build::contents().map_err(Failure::from)?;
    for entry in found.iter().filter(|entry| args.all || entry.stale.is_some()) {
        if !args.dry_run && !build::remove(entry).map_err(|error| failed(entry, &error))? {
            kept += 1;
            let _ = writeln!(text, "{}  {}", paint(WARN, "in use"), entry.path.display());
            continue;
        }
        removed.push(entry);
        let why = entry.stale.unwrap_or("usable");
        let (bytes, path) = (size(entry.bytes), entry.path.display());
        let _ = writeln!(text, "{bytes:>7}  {path}  {}", paint(DIM, why));
    }
    let clusters = super::cluster::sweep(args.dry_run)?;
    for folder in &clusters {
        let why = paint(DIM, "from a control plane whose owner was killed");
        let _ = writeln!(text, "         {}  {why}", folder.display());
    }
    let (mut items, mut bytes) =
        (removed.len() + clusters.len(), removed.iter().map(|entry| entry.bytes).sum::<u64>());
    let images = if args.images { images()? } else { Vec::new() };
    for (image, image_bytes) in images {
        if !args.dry_run && !remove(&image)? {
            kept += 1;
            let _ = writeln!(text, "{}  {image}", paint(WARN, "in use"));
            continue;
        }
        (items, bytes) = (items + 1, bytes + image_bytes);
        let _ = writeln!(text, "{:>7}  {image}  {}", size(image_bytes), paint(DIM, "an image"));
    }
    let items = counted(items, "item");
    let would = if args.dry_run { "would remove" } else { "removed" };
    let _ = write!(text, "{would} {}", paint(STRONG, &format!("{items}, {}", size(bytes))));
    if kept > 0 {
        let _ = write!(text, "; {kept} in use kept");
    }
    text.push('\n');
    show(&text)?;
    Ok(exit::CONFORMS)
}

/// Docker's images of control planes, with their sizes in bytes.
fn images() -> Result<Vec<(String, u64)>, Failure> {
    #[cfg(feature = "clusters")]
    return Ok(kube_lockstep_clusters::containers::images()?);
    #[cfg(not(feature = "clusters"))]
    return Err(Failure::without_clusters("`kube-lockstep prune --images`"));
}

/// Removes an image, unless a container uses it.
fn remove(image: &str) -> Result<bool, Failure> {
    #[cfg(feature = "clusters")]
    return Ok(kube_lockstep_clusters::containers::remove(image)?);
    #[cfg(not(feature = "clusters"))]
    return Err(Failure::without_clusters(&format!("`kube-lockstep prune` of the image {image}")));
}

fn failed(entry: &Entry, error: &std::io::Error) -> Failure {
    Failure::engine(format!("{} can't be removed: {error}", entry.path.display()))
}

/// Formats a size in decimal units: `312 MB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let bytes = bytes as f64;
    let (unit, scale) = UNITS.into_iter().find(|(_, scale)| bytes >= *scale).unwrap_or(("B", 1.0));
    let digits = usize::from(bytes / scale < 10.0 && scale > 1.0);
    format!("{:.digits$} {unit}", bytes / scale)
}
