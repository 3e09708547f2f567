//! `kube-lockstep releases`.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use super::args::{Source, WithMarkdown as Format};
use super::exit;
use super::fixtures::Fixtures;
use super::output::{columns, show, unless_closed};
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::rules::{
    CHANGES, Change, ChangeRow, MinorVersion, Release, VPA_CHANGES, VpaChange, VpaRelease,
};
use kube_lockstep_engines::recorded::Recording;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_report::style::{DIM, STRONG, paint};
use kube_lockstep_report::{json, wrapped};
use kube_lockstep_sim::trace::recommender;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
}

/// The engines and traces of one release. Its serialized form is a line of the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(with = "as_text")]
    release: Release,
    /// The patch release of the live engine, if there is one.
    live: Option<String>,
    /// The patch release of the control plane, if there is one.
    control_plane: Option<String>,
    /// The number of scenarios with a trace.
    recorded: usize,
    /// The number of recorded traces that differ from the next release.
    kept: usize,
    changes: Vec<&'static Change>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let traces = fixtures.traces();
    let read = fixtures.all().iter().map(|it| traces.read(&it.id).unwrap_or_default());
    // The releases of the VPA have other numbers.
    let is_vpa = |it: &Vec<Recording>| it.iter().any(|it| it.header.engine == recommender::ENGINE);
    let (vpa_recordings, read): (Vec<_>, Vec<_>) = read.partition(is_vpa);
    let vpa_rows: Vec<VpaRow> = VpaRelease::supported()
        .rev()
        .map(|release| VpaRow::new(release, &vpa_recordings))
        .collect();
    let mut rows = Vec::new();
    for release in Release::supported().rev() {
        let runs = read.iter().filter(|recordings| recorded_on(recordings, release).is_some());
        let kept = runs.clone().filter(|recordings| {
            let mut newer = Release::supported().filter(|newer| *newer > release);
            recorded_on(recordings, release)
                != newer.find_map(|newer| recorded_on(recordings, newer))
        });
        rows.push(Row {
            release,
            live: build::version(build::Artifact::Host, release),
            control_plane: build::version(build::Artifact::ControlPlane, release),
            kept: kept.count(),
            recorded: runs.count(),
            changes: CHANGES.iter().filter(|change| change.since == release).collect(),
        });
    }
    match args.format {
        Format::Text => show(&(text(&rows) + &vpa_text(&vpa_rows)))?,
        Format::Markdown => show(&(markdown(&rows) + &vpa_markdown(&vpa_rows)))?,
        Format::Json => {
            for row in &rows {
                unless_closed(json::line(&mut io::stdout(), row))?;
            }
            for row in &vpa_rows {
                unless_closed(json::line(&mut io::stdout(), row))?;
            }
        }
    }
    Ok(exit::CONFORMS)
}

/// The recommender of one release of the VPA. Its serialized form is a line of the JSON output.
#[derive(Serialize)]
struct VpaRow {
    #[serde(with = "as_text")]
    release: VpaRelease,
    live: Option<String>,
    recorded: usize,
    changes: Vec<&'static VpaChange>,
}

impl VpaRow {
    fn new(release: VpaRelease, recordings: &[Vec<Recording>]) -> VpaRow {
        let recorded = recordings.iter().filter(|it| recorded_on(it, release).is_some());
        VpaRow {
            release,
            live: build::version(build::Artifact::Recommender, release),
            recorded: recorded.count(),
            changes: VPA_CHANGES.iter().filter(|change| change.since == release).collect(),
        }
    }
}

fn vpa_text(rows: &[VpaRow]) -> String {
    let mut out = String::new();
    for VpaRow { release, live, recorded, changes } in rows {
        let live = live.as_deref().unwrap_or("none");
        let release = paint(STRONG, &release.to_string());
        let _ = writeln!(out, "{release}  live {live}, {recorded} scenarios recorded");
        for change in changes {
            out.push_str(&wrapped("      - ", change.what, columns()));
            let _ = writeln!(out, "        {}", paint(DIM, change.source));
        }
    }
    out
}

fn vpa_markdown(rows: &[VpaRow]) -> String {
    let mut out = String::new();
    for VpaRow { release, live, recorded, changes } in rows {
        let live = live.as_deref().unwrap_or("no");
        let changes: Vec<String> =
            changes.iter().map(|it| format!("[{}]({})", it.what, it.source)).collect();
        let _ = writeln!(out, "| {release} | {live} | {recorded} | {} |", changes.join("; "));
    }
    out
}

fn recorded_on(recordings: &[Recording], release: impl Into<MinorVersion>) -> Option<&Recording> {
    let release = release.into();
    recordings.iter().find(|recording| recording.header.build_of(release).is_some())
}

fn text(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        let Row { release, recorded, kept, .. } = row;
        let live = match &row.live {
            Some(version) => format!("live {version}"),
            None => "not live".to_owned(),
        };
        let cluster = if row.control_plane.is_some() { ", control plane" } else { "" };
        let recorded = match recorded {
            0 => "model only".to_owned(),
            _ if *release == Release::NEWEST => format!("{recorded} scenarios recorded"),
            _ => format!("{recorded} scenarios recorded, {kept} unlike the next release"),
        };
        let release = paint(STRONG, &release.to_string());
        let _ = writeln!(out, "{release}  {live}{cluster}, {recorded}");
        for change in &row.changes {
            out.push_str(&wrapped("      - ", change.what, columns()));
            for link in change.links() {
                let _ = writeln!(out, "        {}", paint(DIM, link));
            }
        }
    }
    out
}

fn markdown(rows: &[Row]) -> String {
    let mut out = String::from("| release | live | recorded | changes |\n|---|---|---|---|\n");
    for row in rows {
        let live = row.live.as_deref().unwrap_or("no");
        let beside = |change: &Change| {
            let number = |link: &str| link.rsplit('/').next().unwrap_or_default().to_owned();
            let links = change.beside.iter();
            links.map(|link| format!(" ([#{}]({link}))", number(link))).collect::<String>()
        };
        let changes = row.changes.iter();
        let changes = changes.map(|it| format!("[{}]({}){}", it.what, it.link, beside(it)));
        let changes: Vec<String> = changes.collect();
        let _ = writeln!(
            out,
            "| {} | {live} | {} ({}) | {} |",
            row.release,
            row.recorded,
            row.kept,
            changes.join("; ")
        );
    }
    out
}
