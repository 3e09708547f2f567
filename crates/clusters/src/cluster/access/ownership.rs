//! The owner of an object in a cluster: a process. A later process can determine whether it is
//! alive.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, test_kill_process};
use rustix::system::uname;
use serde::{Deserialize, Serialize};

/// The file with the ID of the current boot of this machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The link to the PID namespace of this process.
const PIDS: &str = "/proc/self/ns/pid";

/// A process on a machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The host name, which is not unique: containers and other machines may have the same name.
    pub host: String,
    /// The boot ID. Like `pids`, it is empty if the kernel has none, and in annotations of older
    /// versions.
    #[serde(default)]
    pub(crate) boot: String,
    /// The PID namespace, which is different for each container.
    #[serde(default)]
    pub(crate) pids: String,
    /// The process ID.
    pub pid: u32,
    /// The start time, because process IDs are reused. Empty if the kernel does not provide it.
    pub started: String,
}

impl Owner {
    /// This process.
    pub(crate) fn here() -> Owner {
        let host = uname().nodename().to_string_lossy().into_owned();
        let pid = std::process::id();
        let boot = fs::read_to_string(BOOT).map(|it| it.trim().to_owned()).unwrap_or_default();
        let pids = fs::read_link(PIDS).map(|it| it.to_string_lossy().into_owned());
        let started = process(pid).map(|it| it.started).unwrap_or_default();
        Owner { host, boot, pids: pids.unwrap_or_default(), pid, started }
    }

    /// The text form, for an annotation.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the text form.
    pub(crate) fn parse(text: &str) -> Option<Owner> {
        serde_json::from_str(text).ok()
    }

    /// Returns true if the process is alive; `None` if unknown, as in another PID namespace.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        let here = Owner::here();
        if *self == here {
            return Some(true);
        }
        let place = |it: &Owner| (it.host.clone(), it.boot.clone(), it.pids.clone());
        if place(self) != place(&here) {
            return None;
        }
        if Path::new("/proc/self/stat").exists() {
            if here.boot.is_empty() || here.pids.is_empty() {
                return None;
            }
            return Some(process(self.pid).is_some_and(|it| it.started == self.started));
        }
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        Some(pid.is_some_and(|pid| test_kill_process(pid).is_ok()))
    }

    /// A description for messages.
    pub(crate) fn describe(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

struct Process {
    started: String,
}

/// Reads the state of a process. `None`: the process has exited, or is a zombie.
fn process(pid: u32) -> Option<Process> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads fields 3 (state) and 22 (start time) of proc(5). Field 2, the program's name, may contain
/// any character, but ends with the last parenthesis.
fn parse_stat(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.to_owned();
    (!matches!(state, "Z" | "X")).then_some(Process { started })
}

/// The time since the creation of an object.
pub(crate) fn age(created: Option<Timestamp>) -> SignedDuration {
    created.map_or(SignedDuration::MAX, |created| Timestamp::now().duration_since(created))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_ended_owners_are_distinguished() {
        let here = Owner::here();
        assert_eq!(Owner::parse(&here.text()), Some(here.clone()));
        assert_eq!(here.is_alive(), Some(true));
        let elsewhere = Owner { host: format!("{}-not", here.host), ..here.clone() };
        assert_eq!(elsewhere.is_alive(), None);
        let started_again = Owner { boot: "before".to_owned(), ..here.clone() };
        assert_eq!(
            started_again.is_alive(),
            None,
            "another machine with that name, or an earlier boot"
        );
        let contained = Owner { pids: "pid:[1]".to_owned(), pid: 1, ..here.clone() };
        assert_eq!(contained.is_alive(), None, "a container with that name");
        if !here.started.is_empty() {
            let before = Owner { started: "1".to_owned(), ..here };
            assert_eq!(before.is_alive(), Some(false), "another process with the same id");
        }
    }

    #[test]
    fn an_owner_without_a_host_is_unknown() {
        let Owner { host, boot, .. } = Owner::here();
        let text = format!(r#"{{"host":"{host}","pid":1,"started":"1"}}"#);
        let older = Owner::parse(&text).expect("the text is valid");
        if !boot.is_empty() {
            assert_eq!(older.is_alive(), None);
        }
    }

    #[test]
    fn the_name_of_a_program_may_contain_any_character() {
        let stat = |name: &str, state: &str| {
            let rest: Vec<String> = (4..30).map(|field| field.to_string()).collect();
            format!("17 ({name}) {state} {}\n", rest.join(" "))
        };
        let started = |stat: &str| parse_stat(stat).map(|it| it.started);
        assert_eq!(started(&stat("a) (b", "S")).as_deref(), Some("22"));
        assert_eq!(started(&stat("it", "Z")), None);
        assert_eq!(started("17 (it) S 1 2"), None);
    }
}
