//! `kube-lockstep bisect`: the releases between which the behavior in a scenario changed.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;

use super::args::{
    BuildArgs, Source, WithMarkdown as Format, any_release, hpa_release, vpa_release,
};
use super::diff::{self, Compared, NotCompared, code, exit_codes};
use super::diff_vpa;
use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures};
use super::output::{columns, show, unless_closed};
use super::upstreams::{RunsLive, Upstreams};
use kube_autoscaler_models::rules::{AnyRelease, ChangeRow, Release, VpaRelease};
use kube_lockstep_report::change::{Between, ChangedScenario, Changes};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::vpa::VpaScenario;

const HELP: &str = exit_codes!("");

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The scenario: an id or a file
    #[arg(value_name = "SCENARIO")]
    name: String,
    /// The oldest release; for a VPA scenario, a release such as vpa-1.7 [default: the oldest]
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    from: Option<AnyRelease>,
    /// The newest release [default: the newest]
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    to: Option<AnyRelease>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    build: BuildArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    match fixtures.one(&args.name)?.parse_any()?.with_model()? {
        AnyFixture::Hpa(scenario) => bisect_hpas(args, &fixtures, &scenario),
        AnyFixture::Vpa(scenario) => bisect_vpas(args, &fixtures, &scenario),
    }
}

fn bisect_hpas(args: &Args, fixtures: &Fixtures, scenario: &Arc<Scenario>) -> anyhow::Result<u8> {
    let from = hpa_release(args.from)?.unwrap_or(Release::OLDEST);
    let to = hpa_release(args.to)?.unwrap_or(Release::NEWEST);
    diff::in_order(from, to)?;
    let mut upstreams = Upstreams::new(fixtures.traces(), RunsLive::On(args.build));
    let releases = Release::supported().filter(|release| (from..=to).contains(release));
    let mut found = Bisection::new(&scenario.id, args.format);
    for between in adjacent(releases) {
        let compared = diff::compare(&mut upstreams, scenario, between)?;
        found.add(between, &compared)?;
    }
    found.end(from, to)
}

fn bisect_vpas(
    args: &Args,
    fixtures: &Fixtures,
    scenario: &Arc<VpaScenario>,
) -> anyhow::Result<u8> {
    let oldest = args.from.or(Some(AnyRelease::Vpa(VpaRelease::OLDEST)));
    let (from, to) = (vpa_release(oldest)?, vpa_release(args.to)?);
    diff::in_order(from, to)?;
    let releases = VpaRelease::supported().filter(|release| (from..=to).contains(release));
    let mut found = Bisection::new(&scenario.id, args.format);
    for between in adjacent(releases) {
        let compared = diff_vpa::compare(fixtures, RunsLive::On(args.build), scenario, between);
        found.add(between, &compared)?;
    }
    found.end(from, to)
}

/// The pairs of adjacent releases.
fn adjacent<R: Copy>(releases: impl Iterator<Item = R>) -> Vec<Between<R>> {
    let releases: Vec<R> = releases.collect();
    releases.iter().zip(releases.iter().skip(1)).map(|(&from, &to)| Between { from, to }).collect()
}

/// The result of the comparisons so far.
struct Bisection<'a> {
    id: &'a str,
    format: Format,
    text: String,
    is_unexplained: bool,
    compared: usize,
    not_compared: Option<NotCompared>,
}

impl<'a> Bisection<'a> {
    fn new(id: &'a str, format: Format) -> Bisection<'a> {
        Bisection {
            id,
            format,
            text: String::new(),
            is_unexplained: false,
            compared: 0,
            not_compared: None,
        }
    }

    /// Adds the result of two adjacent releases.
    fn add<C: ChangeRow>(
        &mut self,
        between: Between<C::Release>,
        compared: &Compared<C>,
    ) -> io::Result<()> {
        let Between { from, to } = between;
        let found = match compared {
            Compared::Same => {
                self.compared += 1;
                return Ok(());
            }
            Compared::Not(not) => {
                if self.format != Format::Json {
                    let _ = writeln!(self.text, "{from} -> {to}: not compared: {}", not.why);
                }
                let is_worse = |it: &NotCompared| !it.is_unknown && not.is_unknown;
                if self.not_compared.as_ref().is_none_or(is_worse) {
                    self.not_compared = Some(not.clone());
                }
                return Ok(());
            }
            Compared::Changed(found) => found,
        };
        self.compared += 1;
        self.is_unexplained |= found.rows.is_empty();
        let changed = ChangedScenario { id: self.id, changed: found };
        match self.format {
            Format::Json => unless_closed(changed.write_json(&mut io::stdout(), between))?,
            Format::Text => self.text.push_str(&changed.text(between, columns())),
            Format::Markdown => {
                let changes = Changes { between, changed: vec![changed], same: 0, skipped: &[] };
                self.text.push_str(&changes.markdown());
            }
        }
        Ok(())
    }

    /// Prints the text, and returns the exit code.
    fn end<R: fmt::Display>(mut self, from: R, to: R) -> anyhow::Result<u8> {
        let is_unknown = self.not_compared.as_ref().is_some_and(|not| not.is_unknown);
        if let Some(NotCompared { why, .. }) = self.not_compared.filter(|_| self.compared == 0) {
            let what = format!("{} can't be compared: {why}", self.id);
            let failure = if is_unknown { Failure::engine(what) } else { Failure::nothing(what) };
            return Err(failure.into());
        }
        if self.text.is_empty() && self.format != Format::Json {
            let _ = writeln!(self.text, "{} is the same from {from} to {to}", self.id);
        }
        show(&self.text)?;
        Ok(code(self.is_unexplained, is_unknown, self.compared))
    }
}
