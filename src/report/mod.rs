//! What users see of a run: events in, text or JSON out.
//!
//! A [`Report`] reads the events of [`crate::run`] and nothing else; [`table`] and [`explain`] show
//! free runs of the model. Only these modules make text for users, and none of them decides
//! anything: verdicts and exit codes are made elsewhere. Deliberately no engines here.

pub mod chart;
mod difference;
pub mod explain;
pub mod json;
mod layout;
mod outcome;
pub mod style;
pub mod table;
pub mod terminal;

use std::io;

use crate::run::Event;

/// Something that tells of a run while it goes on.
pub trait Report {
    /// Tells of one event.
    ///
    /// # Errors
    /// If it can't be written, for instance because the pipe was closed.
    fn event(&mut self, event: &Event) -> io::Result<()>;
}

/// How a replay of one scenario is called.
fn replay(id: &str, engine: &str, release: &str) -> String {
    // Upstream is what a run takes by itself.
    let engine = match engine {
        "upstream" => String::new(),
        other => format!(" --engine {other}"),
    };
    format!("kube-lockstep run {} --release {release}{engine}", shell_word(id))
}

/// The text as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// `1,234,567`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 tick`, `2 ticks`.
fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn a_replay_command_can_be_pasted_into_a_shell() {
        assert_eq!(
            replay("tolerance/edge", "upstream", "1.37"),
            "kube-lockstep run tolerance/edge --release 1.37"
        );
        assert_eq!(
            replay("my files/it's.yaml", "recorded", "1.37"),
            r"kube-lockstep run 'my files/it'\''s.yaml' --release 1.37 --engine recorded"
        );
    }
}
