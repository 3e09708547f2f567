//! A run as text: conforming scenarios are counted, all others are reported in full.
//!
//! On a terminal, a bar shows the progress.

mod notes;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::notes::Notes;
use super::layout::labelled;
use super::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use super::{Report, counted, outcome, thousands};
use kube_lockstep_sim::run::{Event, Outcome, Preparation, Setting, Summary, Verdict};

/// The layout of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The maximum width of lines.
    pub columns: usize,
    /// True if to list conforming scenarios.
    pub verbose: bool,
    /// True if to show the progress on standard error.
    pub progress: bool,
}

/// The report for terminals and pipes. Colors are always written: see [`super::style`].
#[derive(Debug)]
pub struct Terminal<W> {
    out: W,
    layout: Layout,
    bar: Option<Bar>,
    run: Option<Setting>,
    /// True if the run has a single scenario.
    only_one: bool,
    failures: Vec<EngineFailure>,
    /// The notes of a run of several scenarios.
    notes: Notes,
}

/// A failure of the engine, and the number of later scenarios with the same failure.
#[derive(Clone, Debug)]
struct EngineFailure {
    why: String,
    output: String,
    more: usize,
}

impl<W: Write> Terminal<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W, layout: Layout) -> Terminal<W> {
        let bar = layout.progress.then(Bar::default);
        let (failures, notes) = (Vec::new(), Notes::default());
        Terminal { out, layout, bar, run: None, only_one: false, failures, notes }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes text above the progress bar.
    fn write(&mut self, text: &str) -> io::Result<()> {
        let out = &mut self.out;
        let mut write = || out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match self.bar.as_ref().and_then(|bar| bar.bar.as_ref()) {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn finished(&mut self, outcome: &Outcome) -> io::Result<()> {
        let reported = self.was_reported(outcome);
        let columns = self.layout.columns;
        let several = self.run.as_ref().is_some_and(|run| run.release != outcome.release);
        let mut text = String::new();
        if self.only_one {
            text += &outcome::notes(outcome, columns);
        } else {
            // In a run of many scenarios, notes on the interpretation of files are omitted.
            let release = several.then_some(&*outcome.release);
            self.notes.add(outcome, self.layout.verbose, release);
        }
        text += &match outcome::text(outcome, self.run.as_ref(), columns) {
            Some(_) if reported && self.layout.verbose => same_failure(outcome, columns),
            Some(_) if reported => String::new(),
            // Blocks of several lines are separated by an empty line.
            Some(text) if is_block(outcome) => format!("{text}\n"),
            Some(text) => text,
            None if self.layout.verbose => outcome::short(outcome, several, columns),
            None => String::new(),
        };
        if let Some(bar) = &mut self.bar {
            bar.finished(outcome);
        }
        if text.is_empty() { Ok(()) } else { self.write(&text) }
    }
}

impl<W: Write> Terminal<W> {
    /// Returns true if the engine failed in the same way before: a program that can't be started
    /// fails for every scenario.
    fn was_reported(&mut self, outcome: &Outcome) -> bool {
        let Verdict::Inconclusive { why, output } = &outcome.verdict else { return false };
        let same = |failure: &&mut EngineFailure| (&failure.why, &failure.output) == (why, output);
        if let Some(failure) = self.failures.iter_mut().find(same) {
            failure.more += 1;
            return true;
        }
        self.failures.push(EngineFailure { why: why.clone(), output: output.clone(), more: 0 });
        false
    }

    /// The number of repetitions of each failure.
    fn failed_again(&self) -> String {
        let again = self.failures.iter().filter(|failure| failure.more > 0);
        let lines = again.map(|EngineFailure { why, more, .. }| {
            let scenarios = counted(*more, "more scenario");
            let text = format!("{scenarios} for the same reason: {why}");
            labelled("inconclusive  ", WARN, &text, 0, self.layout.columns)
        });
        lines.collect()
    }
}

impl<W: Write> Report for Terminal<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(preparation) => {
                if let Some(bar) = &mut self.bar {
                    bar.preparing(preparation);
                }
                Ok(())
            }
            Event::Started { scenarios, setting, note } => {
                if let Some(bar) = &mut self.bar {
                    bar.started(*scenarios);
                }
                self.only_one = *scenarios == 1;
                let (Setting { engine, shard, .. }, releases) = (setting, setting.releases());
                self.run = Some(setting.clone());
                let version = env!("CARGO_PKG_VERSION");
                let scenarios = counted(*scenarios, "scenario");
                let shard = shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
                let mut text = format!(
                    "{} {scenarios} on {} {releases}{shard}\n",
                    paint(DIM, &format!("kube-lockstep {version}:")),
                    paint(STRONG, engine)
                );
                if let Some(note) = note {
                    text.push_str(&outcome::note_text(note, self.layout.columns));
                }
                self.write(&text)
            }
            Event::Finished(outcome) => self.finished(outcome),
            Event::Ended(summary) => {
                if let Some(bar) = &mut self.bar {
                    bar.clear();
                }
                let mut text = self.notes.text(self.layout.columns);
                text.push_str(&self.failed_again());
                text.push_str(&ending(summary, self.run.as_ref(), self.layout.columns));
                self.write(&text)
            }
        }
    }
}

/// Known disagreements that disappeared, and the figures of the run.
fn ending(summary: &Summary, run: Option<&Setting>, columns: usize) -> String {
    let mut out = String::new();
    for entry in &summary.stale_known {
        let entry = format!("{entry} no longer disagrees; remove it from divergences.yaml");
        out.push_str(&labelled("stale  ", BAD, &entry, 0, columns));
    }
    for part in &summary.missing {
        out.push_str(&labelled("missing  ", BAD, part, 0, columns));
    }
    for (release, release_summary) in &summary.releases {
        let line = figures(release_summary, &paint(STRONG, &format!("{release:>6}")));
        out.push_str(&line);
    }
    let on = run.map(|run| {
        let shard = run.shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
        format!(" on {} {}{shard}", run.engine, run.releases())
    });
    let on = on.unwrap_or_default();
    let scenarios = counted(summary.scenarios, "scenario");
    out.push_str(&figures(summary, &format!("{scenarios}{on}")));
    out
}

/// One line of figures.
fn figures(summary: &Summary, subject: &str) -> String {
    let mut out = String::new();
    let count = |number: usize, what: &str, style| {
        let text = format!("{} {what}", thousands(number));
        if number == 0 { text } else { paint(style, &text) }
    };
    let unknown = summary.inconclusive > 0 || !summary.missing.is_empty();
    let good = if summary.is_bad() || unknown { anstyle::Style::new() } else { GOOD };
    let unmet = match summary.unmet {
        0 => String::new(),
        number => format!(", {}", count(number, "with unmet expectations", BAD)),
    };
    let stale = match summary.stale_known.len() {
        0 => String::new(),
        number => format!(", {}", count(number, "stale", BAD)),
    };
    let missing = match summary.missing.len() {
        0 => String::new(),
        number => format!(", {}", count(number, "missing", BAD)),
    };
    let ambiguous = match summary.ambiguous_ticks {
        0 => String::new(),
        number => format!(" ({} ambiguous)", thousands(number)),
    };
    let retried = match summary.retried {
        0 => String::new(),
        number => format!("; {} retried", counted(number, "scenario")),
    };
    let _ = writeln!(
        out,
        "{subject}: {}, {}{unmet}, {}, {}{stale}{missing}; {}{ambiguous} in {}{retried}",
        count(summary.conforms, if summary.conforms == 1 { "conforms" } else { "conform" }, good),
        count(summary.diverges, if summary.diverges == 1 { "diverges" } else { "diverge" }, BAD),
        count(summary.inconclusive, "inconclusive", WARN),
        count(summary.skipped, "skipped", WARN),
        counted(summary.ticks, "tick"),
        seconds(summary.elapsed)
    );
    out
}

/// `0.8 s`, `75 s`.
fn seconds(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

/// The progress bar: first for the build of the engine, then for the run.
#[derive(Debug, Default)]
struct Bar {
    bar: Option<ProgressBar>,
    /// The engines whose first message is shown above the bar.
    announced: BTreeSet<String>,
    running: bool,
    ticks: usize,
}

impl Bar {
    fn preparing(&mut self, preparation: &Preparation) {
        const SCALE: u64 = 1000;
        let is_new = self.announced.insert(preparation.subject.clone());
        let note = is_new.then(|| format!("{} {preparation}", paint(WARN, "note:")));
        if let Some(bar) = self.bar.as_ref().filter(|_| self.running) {
            // The engine of a later release is built while earlier releases run.
            note.iter().for_each(|note| bar.println(note));
            bar.set_message(preparation.to_string());
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(SCALE), ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        note.iter().for_each(|note| bar.println(note));
        let template = match preparation.fraction {
            Some(_) => "{bar:30.cyan/dim} {percent:>3} %  {elapsed:>4}  {wide_msg}",
            None => "{spinner:.cyan} {elapsed:>4}  {wide_msg}",
        };
        bar.set_style(style(template));
        if let Some(fraction) = preparation.fraction {
            // Between 0 and 1, so the cast neither wraps nor loses visible precision.
            bar.set_position((fraction.clamp(0.0, 1.0) * SCALE as f64) as u64);
        }
        bar.set_message(preparation.to_string());
    }

    fn started(&mut self, scenarios: usize) {
        self.clear();
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(scenarios as u64), target);
        bar.set_style(style("{bar:30.cyan/dim} {pos}/{len} scenarios  {elapsed:>4}  {wide_msg}"));
        self.running = true;
        self.bar = Some(bar);
    }

    fn finished(&mut self, outcome: &Outcome) {
        self.ticks = self.ticks.saturating_add(outcome.ticks);
        let Some(bar) = self.bar.as_ref().filter(|_| self.running) else { return };
        bar.inc(1);
        let elapsed = bar.elapsed().as_secs_f64();
        let mut message = counted(self.ticks, "tick");
        if elapsed > 0.2 {
            // Not negative, and far below 2^52.
            let rate = (self.ticks as f64 / elapsed) as usize;
            let _ = write!(message, " ({} ticks/s)", thousands(rate));
        }
        bar.set_message(message);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A bar that remains after a failure would look like a run in progress.
impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The progress of a search: a number of things out of a largest number. It is drawn on terminals
/// only.
#[derive(Debug)]
pub struct CountBar(ProgressBar);

impl CountBar {
    /// A bar for things with this name, in the plural.
    #[must_use]
    pub fn new(most: usize, noun: &str) -> CountBar {
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(most as u64), target);
        bar.set_style(style("{bar:30.cyan/dim} {human_pos}/{human_len} {wide_msg}"));
        bar.set_message(noun.to_owned());
        CountBar(bar)
    }

    /// Shows another text after the numbers.
    pub fn describe(&self, text: String) {
        self.0.set_message(text);
    }

    /// Shows a number.
    pub fn set(&self, done: usize) {
        self.0.set_position(done as u64);
    }
}

impl Drop for CountBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar that is readable without colors. The templates are literals in this file.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// Returns true if the text of the outcome is a block instead of one line of a list.
fn is_block(outcome: &Outcome) -> bool {
    !matches!(outcome.verdict, Verdict::Skipped { .. })
}

/// One line for a scenario on which the engine failed for the same reason as on an earlier one.
fn same_failure(failed: &Outcome, columns: usize) -> String {
    outcome::line(
        "inconclusive",
        WARN,
        &failed.id,
        "for the same reason as an earlier scenario",
        columns,
    )
}
