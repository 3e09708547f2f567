//! Who made an object of a cluster: a process, so that a later one can tell whether it still lives.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use rustix::process::{Pid, test_kill_process};
use rustix::system::uname;
use serde::{Deserialize, Serialize};

/// A process of some machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The machine's name.
    pub(crate) host: String,
    /// The process.
    pub(crate) pid: u32,
    /// When it was started, in the kernel's terms: process ids come again. Empty where the kernel
    /// does not tell.
    pub(crate) started: String,
}

impl Owner {
    /// This process.
    pub(crate) fn here() -> Owner {
        let host = uname().nodename().to_string_lossy().into_owned();
        let pid = std::process::id();
        Owner { host, pid, started: process(pid).map(|it| it.started).unwrap_or_default() }
    }

    /// The text form, for an annotation.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the text form.
    pub(crate) fn of_text(text: &str) -> Option<Owner> {
        serde_json::from_str(text).ok()
    }

    /// Whether it lives; nothing if that can't be told from here.
    pub(crate) fn lives(&self) -> Option<bool> {
        if self.host != Owner::here().host {
            return None;
        }
        if Path::new("/proc/self/stat").exists() {
            return Some(process(self.pid).is_some_and(|it| it.started == self.started));
        }
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        Some(pid.is_some_and(|pid| test_kill_process(pid).is_ok()))
    }

    /// In words.
    pub(crate) fn told(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

struct Process {
    started: String,
}

/// What the kernel says of a process; one that has ended and is only still listed is none.
fn process(pid: u32) -> Option<Process> {
    of_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 3 (state) and 22 (start time) of proc(5). The second one, the program's name, may hold
/// anything but ends with the last parenthesis.
fn of_stat(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.to_owned();
    (!matches!(state, "Z" | "X")).then_some(Process { started })
}

/// When something was made, in seconds before now.
pub(crate) fn age(created: Option<Timestamp>) -> i64 {
    created.map_or(i64::MAX, |created| Timestamp::now().as_second() - created.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_one_that_is_no_more() {
        let here = Owner::here();
        assert_eq!(Owner::of_text(&here.text()), Some(here.clone()));
        assert_eq!(here.lives(), Some(true));
        let elsewhere = Owner { host: format!("{}-not", here.host), ..here.clone() };
        assert_eq!(elsewhere.lives(), None);
        if !here.started.is_empty() {
            let before = Owner { started: "1".to_owned(), ..here };
            assert_eq!(before.lives(), Some(false), "the same id, another process");
        }
    }

    #[test]
    fn a_program_may_have_any_name() {
        let stat = |name: &str, state: &str| {
            let rest: Vec<String> = (4..30).map(|field| field.to_string()).collect();
            format!("17 ({name}) {state} {}\n", rest.join(" "))
        };
        let started = |stat: &str| of_stat(stat).map(|it| it.started);
        assert_eq!(started(&stat("a) (b", "S")).as_deref(), Some("22"));
        assert_eq!(started(&stat("it", "Z")), None);
        assert_eq!(started("17 (it) S 1 2"), None);
    }
}
