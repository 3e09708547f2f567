//! A run as Markdown, for pull requests and job summaries: the figures, and each scenario that does
//! not conform.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{CutOff, Report, counted, headline, plain, thousands};
use kube_lockstep_sim::run::{Event, Outcome, Setting, Summary, Verdict};

/// The report as Markdown. It is written at the end of the run.
#[derive(Debug)]
pub struct Markdown<W> {
    out: W,
    setting: Option<Setting>,
    note: Option<String>,
    /// The blocks of the scenarios that do not conform.
    blocks: Vec<String>,
    /// One line for each scenario that was skipped.
    skipped: Vec<String>,
    summary: Summary,
}

/// The width of texts.
const COLUMNS: usize = 100;

/// The maximum size of the blocks, in bytes: GitHub ignores a job summary of more than 1 MiB.
const MOST_BYTES: usize = 900 << 10;

impl<W: Write> Markdown<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W) -> Markdown<W> {
        let (blocks, skipped, summary) = (Vec::new(), Vec::new(), Summary::default());
        Markdown { out, setting: None, note: None, blocks, skipped, summary }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn add(&mut self, outcome: &Outcome) {
        self.summary.add(outcome);
        let release = &outcome.release;
        if let Verdict::Skipped { why } = &outcome.verdict {
            let why = inline(&why.after_release());
            self.skipped.push(format!("- `{}` on {release}: {why}\n", outcome.id));
            return;
        }
        let text = super::outcome::text(outcome, self.setting.as_ref(), COLUMNS);
        if let Some(text) = text.filter(|_| outcome.verdict != Verdict::Conforms) {
            self.blocks.push(block(outcome, &plain(&text)));
        }
    }

    fn write(&mut self, summary: &Summary, cut_off: Option<&str>) -> io::Result<()> {
        let mut text = match &self.setting {
            Some(it) => format!("# Conformance run on {} {}\n\n", it.engine, it.releases()),
            None => "# Conformance run\n\n".to_owned(),
        };
        for note in self.note.iter().map(String::as_str) {
            let _ = writeln!(text, "{}\n", inline(note));
        }
        if let Some(why) = cut_off {
            let _ = writeln!(text, "**The run did not finish:** {}\n", inline(why));
        }
        text.push_str(&figures(summary));
        for entry in &summary.stale_known {
            let _ = writeln!(text, "- No longer disagrees: {}", inline(entry));
        }
        for part in &summary.missing {
            let _ = writeln!(text, "- Missing: {}", inline(part));
        }
        self.add_blocks(&mut text);
        if !self.skipped.is_empty() {
            let count = counted(self.skipped.len(), "scenario");
            let _ = writeln!(text, "\n<details><summary>{count} skipped</summary>\n");
            let lines = self.skipped.iter().take(MOST_SKIPPED).cloned();
            text.push_str(&lines.collect::<String>());
            if self.skipped.len() > MOST_SKIPPED {
                let _ = writeln!(text, "- and {} more", self.skipped.len() - MOST_SKIPPED);
            }
            text.push_str("\n</details>\n");
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn add_blocks(&self, text: &mut String) {
        let mut shown = 0;
        for block in &self.blocks {
            if text.len() + block.len() > MOST_BYTES {
                break;
            }
            text.push_str(block);
            shown += 1;
        }
        let more = self.blocks.len() - shown;
        if more > 0 {
            let _ = writeln!(text, "\n{} not shown here.", counted(more, "more scenario"));
        }
    }
}

/// The maximum number of skipped scenarios that are listed.
const MOST_SKIPPED: usize = 200;

impl<W: Write> Report for Markdown<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(_) => Ok(()),
            Event::Started { setting, note, .. } => {
                (self.setting, self.note) = (Some(setting.clone()), note.clone());
                Ok(())
            }
            Event::Finished(outcome) => {
                self.add(outcome);
                Ok(())
            }
            Event::Ended(summary) => self.write(summary, None),
        }
    }

    fn cut_off(&mut self, cause: CutOff<'_>) -> io::Result<()> {
        let summary = self.summary.clone();
        self.write(&summary, Some(cause.why))
    }
}

/// The figures as a table: one row for each release, and one for all together.
fn figures(summary: &Summary) -> String {
    let mut text = "| | scenarios | conform | diverge | unmet | inconclusive | skipped | ticks |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for (release, figures) in &summary.releases {
        text.push_str(&row(&release.to_string(), figures));
    }
    text.push_str(&row("all", summary));
    text.push('\n');
    text
}

fn row(name: &str, figures: &Summary) -> String {
    let cells = [
        figures.scenarios,
        figures.conforms,
        figures.diverges,
        figures.unmet,
        figures.inconclusive,
        figures.skipped,
        figures.ticks,
    ];
    format!("| {name} | {} |\n", cells.map(thousands).join(" | "))
}

/// A scenario that does not conform: a heading, and its report in a block that can be folded.
fn block(outcome: &Outcome, text: &str) -> String {
    let fence = fence(text);
    format!(
        "\n## {}: `{}` on {}\n\n{}\n\n<details open><summary>{}</summary>\n\n{fence}text\n{}\n\
         {fence}\n\n</details>\n",
        outcome.verdict.name(),
        outcome.id,
        outcome.release,
        inline(&outcome.requirement),
        html(&headline(outcome)),
        text.trim_end()
    )
}

/// A fence that the text does not contain.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// A text within a paragraph: without markup of its own, except for code in backticks.
#[must_use]
pub fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = text.replace(['\n', '\r'], " ");
    let has_code = text.matches('`').count().is_multiple_of(2);
    let mut in_code = false;
    for c in text.chars() {
        if c == '`' && has_code {
            in_code = !in_code;
        } else if !in_code
            && matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_contain_no_markup() {
        assert_eq!(inline("a_b <i> | c\nd"), "a\\_b \\<i\\> \\| c d");
        assert_eq!(inline("`a_b` is_ new"), "`a_b` is\\_ new");
        assert_eq!(inline("a ` b"), "a \\` b");
        assert_eq!(html("<i>&\n"), "&lt;i&gt;&amp; ");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence("no"), "```");
        assert_eq!(fence("```yaml\n````"), "`````");
    }
}
