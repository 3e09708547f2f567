//! The user's options for clusters, and the data of a cluster before a run. These types do not
//! depend on features, so that the command line is the same in every build.

use std::ffi::OsString;
use std::fmt;
use std::iter::once;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_sim::engine::shell::shell_word;

/// An address of this machine, as an API server reaches it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPort {
    /// A host name or an IP address.
    pub host: String,
    /// The port; 0 means any free port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port {
            0 => f.write_str(&self.host),
            port => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPort, String> {
        let wrong = || "expected HOST or HOST:PORT, for example 192.168.1.20:4443".to_owned();
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without a port.
            _ if text.parse::<Ipv6Addr>().is_ok() => (text, 0),
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let host = host.trim_matches(['[', ']']);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong());
        }
        if host.parse::<IpAddr>().is_ok_and(|it| it.is_unspecified() || it.is_multicast()) {
            return Err(format!("{host} is not a host name or an IP address"));
        }
        Ok(HostPort { host: host.to_owned(), port })
    }
}

/// An existing cluster, named by the context of a kubeconfig, and the permitted changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExistingCluster {
    /// The kubeconfig. Default: the files that `KUBECONFIG` names, else `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The name of the context.
    pub context: String,
    /// The address at which the API server reaches the metrics APIs. Default: the first that works.
    pub metrics_address: Option<HostPort>,
    /// True if existing metrics APIs may be replaced during the run.
    pub replaces: bool,
    /// The command that removes leftovers of dead runs, like `cluster clean`. It runs when this
    /// process is killed. If it is empty, the next run removes the leftovers.
    pub cleanup_command: Vec<OsString>,
}

impl ExistingCluster {
    /// The command that removes leftovers of dead runs, as a user types it.
    #[must_use]
    pub fn cleaning(&self) -> String {
        command_line(&self.cleanup_command)
    }
}

/// The state of an existing cluster before a run creates any objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterInfo {
    /// The URL of its API server.
    pub server: String,
    /// Its version, for example `v1.37.0`.
    pub version: String,
    /// Its Kubernetes release.
    pub release: Release,
    /// Its APIServices of metrics APIs, each with its Service.
    pub metrics_apis: Vec<(String, String)>,
    /// The number of its HPAs.
    pub hpas: usize,
    /// The leftovers of dead runs that were removed by the inspection.
    pub cleaned: Vec<String>,
}

/// A command of this program, as a user types it.
#[must_use]
pub fn command_line(command: &[OsString]) -> String {
    let words = command.iter().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    once("kube-lockstep".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_an_optional_port() {
        let of = |host: &str, port| Ok(HostPort { host: host.to_owned(), port });
        assert_eq!("10.0.0.7".parse(), of("10.0.0.7", 0));
        assert_eq!("10.0.0.7:4443".parse(), of("10.0.0.7", 4443));
        assert_eq!("[fd00::7]:4443".parse(), of("fd00::7", 4443));
        assert_eq!("fd00::7".parse(), of("fd00::7", 0));
        for text in ["10.0.0.7", "10.0.0.7:4443", "[fd00::7]:4443", "fd00::7"] {
            assert_eq!(text.parse::<HostPort>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("host.docker.internal:1".parse(), of("host.docker.internal", 1));
        for wrong in ["", ":1", "0.0.0.0", "a:x", "10.0.0.7:99999", "a b", "https://a"] {
            assert!(wrong.parse::<HostPort>().is_err(), "{wrong}");
        }
    }
}
