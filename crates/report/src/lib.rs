//! Reports of runs: events in; text, JSON, pages and the formats of CI systems out.
//!
//! A [`Report`] reads only the events of [`kube_lockstep_sim::run`]; a
//! [`Predicted`](prediction::Predicted) shows a free run of the model, and [`explain`] one tick of
//! it. Between the runs and the charts and tables stands `presentation`, which one module per
//! controller fills. These modules format results; they do not decide verdicts or exit codes, and
//! do not depend on engines.

pub mod bound;
pub mod capacity;
pub mod change;
mod change_lines;
mod chart;
pub mod columns;
pub mod comparison;
mod csv;
mod difference;
pub mod explain;
pub mod figures;
pub mod first_difference;
pub mod front;
pub mod github;
#[cfg(feature = "pages")]
pub mod html;
pub mod json;
pub mod junit;
pub mod layout;
pub mod limits;
pub mod markdown;
mod measurement;
mod metric;
mod missing;
pub mod outcome;
pub mod overview;
pub mod places;
mod plot;
pub mod prediction;
mod prediction_lines;
#[cfg_attr(not(feature = "pages"), expect(dead_code, reason = "only pages show all of it"))]
mod presentation;
pub mod price;
pub mod results;
mod scale;
#[doc(hidden)]
pub mod style;
pub mod table;
#[cfg(feature = "terminal")]
pub mod terminal;
mod text;
mod unmet;
mod writes;

use std::io;

pub use kube_autoscaler_models::counted::counted;
pub use kube_autoscaler_models::counted::thousands;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario as scenario;
use kube_lockstep_sim::run::Verdict;
use kube_lockstep_sim::run::{Event, Outcome, Setting, shell_word};
pub use presentation::event_in_words;

/// A report on a run in progress.
pub trait Report {
    /// Reports one event.
    ///
    /// # Errors
    /// If writing fails, for example because the pipe is closed.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Completes the report of a run that did not reach its end, for example because it was
    /// interrupted. No event follows.
    ///
    /// # Errors
    /// If writing fails.
    fn cut_off(&mut self, _cause: CutOff<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// The reason why a run did not reach its end, or did not begin.
#[derive(Clone, Copy, Debug)]
pub struct CutOff<'a> {
    /// The reason, as text.
    pub why: &'a str,
    /// The errors in scenario files, if they are the reason.
    pub invalid: &'a [scenario::Error],
}

impl<'a> CutOff<'a> {
    /// A reason without places in files.
    #[must_use]
    pub fn because(why: &'a str) -> CutOff<'a> {
        CutOff { why, invalid: &[] }
    }
}

/// The full report of one scenario; `None` if it conforms.
#[must_use]
pub fn outcome(outcome: &Outcome, setting: &Setting, columns: usize) -> Option<String> {
    outcome::text(outcome, Some(setting), columns)
}

/// A label followed by a wrapped text.
#[must_use]
pub fn wrapped(label: &str, text: &str, columns: usize) -> String {
    layout::hanging(label, text, 0, columns)
}

/// The command that replays a scenario.
pub fn replay(id: &str, setting: &Setting) -> String {
    let mut command = format!("kube-lockstep run {} --release {}", shell_word(id), setting.release);
    for word in &setting.replay_args {
        command.push_str(&format!(" {}", shell_word(word)));
    }
    match (&setting.program, &setting.checkout, &*setting.engine) {
        _ if !setting.replay_args.is_empty() => {}
        (Some(program), ..) => {
            command.push_str(&format!(" --program {}", shell_word(&program.to_string_lossy())));
        }
        (None, Some(folder), _) => {
            let folder = shell_word(&folder.to_string_lossy());
            command.push_str(&format!(" --upstream-path {folder}"));
        }
        // Upstream is the default engine.
        (None, None, "upstream") => {}
        (None, None, engine) => command.push_str(&format!(" --engine {engine}")),
    }
    if let Some(limit) = setting.time_limit {
        let limit = Span(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX));
        command.push_str(&format!(" --time-limit {limit}"));
    }
    command
}

/// The problem of an outcome, in one line: the first field that differs, the first unmet
/// expectation, or the reason why there is no verdict.
fn headline(outcome: &Outcome) -> String {
    let unmet = || outcome.unmet.first().map(|unmet| unmet.what.clone()).unwrap_or_default();
    match &outcome.verdict {
        Verdict::Conforms => String::new(),
        Verdict::Unmet => unmet(),
        Verdict::Inconclusive { why, .. } => why.clone(),
        Verdict::Skipped { why } => why.to_string(),
        Verdict::Diverges(divergence) => {
            let position = match divergence.is_api_answer() {
                true => format!("the API server's answer, t={}", divergence.at),
                false => format!("tick {}, t={}", divergence.scenario_tick(), divergence.at),
            };
            let Some(first) = divergence.fields.first() else { return position };
            let more = match divergence.fields.len() - 1 {
                0 => String::new(),
                more => format!(", and {}", counted(more, "more field")),
            };
            let engine = &outcome.engine;
            format!(
                "{position}: {}: model {} | {engine} {}{more}",
                first.field, first.model, first.upstream
            )
        }
    }
}

/// Text without colors.
#[must_use]
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_replay_command_can_be_pasted_into_a_shell() {
        let on = |engine: &str| Setting {
            engine: engine.into(),
            release: "1.37".to_owned(),
            ..Setting::default()
        };
        assert_eq!(
            replay("tolerance/edge", &on("upstream")),
            "kube-lockstep run tolerance/edge --release 1.37"
        );
        assert_eq!(
            replay("my files/it's.yaml", &on("recorded")),
            r"kube-lockstep run 'my files/it'\''s.yaml' --release 1.37 --engine recorded"
        );
        let mine = Setting {
            program: Some("my engines/mine".into()),
            time_limit: Some(Duration::from_millis(90_500)),
            ..on("mine")
        };
        assert_eq!(
            replay("tolerance/edge", &mine),
            "kube-lockstep run tolerance/edge --release 1.37 --program 'my engines/mine' \
             --time-limit 1m30.5s"
        );
        let checkout = Setting { checkout: Some("../kubernetes".into()), ..on("upstream ../x") };
        assert_eq!(
            replay("tolerance/edge", &checkout),
            "kube-lockstep run tolerance/edge --release 1.37 --upstream-path ../kubernetes"
        );
    }
}
