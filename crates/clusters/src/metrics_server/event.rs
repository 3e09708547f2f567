//! Events and errors of the metrics server.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::metrics_api::query::Query;
use crate::cluster::metrics_api::register::RegistrationError;
use crate::cluster::provision::existing::port_hint;
use kube_lockstep_scenario::{Diagnostic, Hint};

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum ServerEvent {
    Cluster {
        /// The address of the API server.
        server: String,
        /// The version of the cluster.
        version: String,
    },
    /// Leftovers of a dead process were removed.
    Cleaned {
        /// The objects.
        what: Vec<String>,
    },
    /// Objects that will be created.
    Creates {
        /// The objects.
        what: Vec<String>,
    },
    /// Objects that will be replaced, and restored at the end.
    Replaces {
        /// The objects.
        what: Vec<String>,
    },
    Note {
        /// The text.
        note: String,
    },
    /// The server has started.
    Serving {
        groups: Vec<&'static str>,
        /// The address of the listener.
        address: String,
        /// The route of the API server, if it is registered.
        route: Option<String>,
        /// The instant of t=0.
        since: Timestamp,
    },
    Query(Query),
    /// Objects that were removed at the end.
    Removed {
        /// The objects.
        what: Vec<String>,
    },
}

/// The error if the server can't run, or some objects could not be removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    pub problem: Diagnostic,
    /// True if the command line is wrong.
    pub is_usage: bool,
}

impl ServerError {
    /// An error without a hint, which does not concern the command line.
    pub(crate) fn new(problem: impl Into<Diagnostic>) -> ServerError {
        ServerError { problem: problem.into(), is_usage: false }
    }

    /// The error of the HTTP server, with a hint if its port is in use.
    pub(crate) fn with_port_hint(what: String) -> ServerError {
        let hint = port_hint(&what).map(Hint::from);
        ServerError::new(Diagnostic::new(what).with_hint(hint))
    }

    pub(crate) fn usage(what: impl Into<String>, hint: impl Into<Hint>) -> ServerError {
        ServerError { problem: Diagnostic::new(what).hint(hint), is_usage: true }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ServerError {}

impl From<RegistrationError> for ServerError {
    fn from(refusal: RegistrationError) -> ServerError {
        let what = refusal.to_string();
        match refusal {
            RegistrationError::Taken(_) => ServerError::usage(
                what,
                "--replace-metrics-api replaces it while the server runs, and restores it at the \
                 end",
            ),
            RegistrationError::OtherInstance(..) => {
                ServerError::usage(what, "stop the other server")
            }
            RegistrationError::Unreachable(_) => ServerError::new(Diagnostic::new(what).hint(
                "set --metrics-address HOST[:PORT] to the address of this machine as seen from \
                 the API server, for example the gateway of a container network",
            )),
            RegistrationError::Other(_) => ServerError::with_port_hint(what),
        }
    }
}
