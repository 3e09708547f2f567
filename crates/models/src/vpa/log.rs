//! The errors that the recommender logs.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::api::ObjectName;
use super::pod::ObservedOom;
use crate::rules::VpaTexts;

/// A message that the recommender logs, with the error.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// The text that upstream passes to klog.
    pub message: Cow<'static, str>,
    /// The error; empty if the message contains it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// `message: error`, or only one of them if the other is empty.
impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogLine { message, error } = self;
        let separator = if message.is_empty() || error.is_empty() { "" } else { ": " };
        write!(f, "{message}{separator}{error}")
    }
}

/// The subject of a logged error.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure<'a> {
    /// A checkpoint can't be loaded.
    Checkpoint,
    /// A sample of a history is discarded: pod and container.
    HistorySample(&'a ObjectName, &'a str),
    /// The usage of the containers can't be read.
    Metrics,
    /// A sample is discarded: pod and container.
    Sample(&'a ObjectName, &'a str),
    /// An OOM kill does not count.
    Oom(&'a ObservedOom),
    /// A VPA has had no recommendation for a long time.
    NoRecommendation,
    /// The target of a VPA can't be read.
    Target,
}

impl Failure<'_> {
    /// The logged line. In older releases, the message contains the error.
    pub(super) fn line(self, error: String, texts: &VpaTexts) -> LogLine {
        if texts.log_is_structured {
            return LogLine { message: Cow::Borrowed(self.message()), error };
        }
        LogLine { message: Cow::Owned(self.formatted(&error)), error: String::new() }
    }

    fn message(self) -> &'static str {
        match self {
            Failure::Checkpoint => "Error while loading checkpoint",
            Failure::HistorySample(..) => "Failed to add sample",
            Failure::Metrics => "Cannot get ContainerMetricsSnapshot from MetricsClient",
            Failure::Sample(..) => "Error adding metric sample",
            Failure::Oom(_) => "Failed to record OOM",
            Failure::NoRecommendation => "",
            Failure::Target => "Cannot get target selector from VPA's targetRef",
        }
    }

    fn formatted(self, error: &str) -> String {
        match self {
            Failure::Checkpoint | Failure::Metrics | Failure::Target => {
                format!("{}. Reason: {error}", self.message())
            }
            Failure::HistorySample(pod, container) | Failure::Sample(pod, container) => {
                let ObjectName { namespace, name } = pod;
                format!(
                    "Error adding metric sample for container {{{{{namespace} {name}}} \
                     {container}}}: {error}"
                )
            }
            Failure::Oom(oom) => {
                let ObjectName { namespace, name } = &oom.pod;
                format!(
                    "Failed to record OOM {{Timestamp:{} Memory:{} ContainerID:{{PodID:\
                     {{Namespace:{namespace} PodName:{name}}} ContainerName:{}}}}}. \
                     Reason: {error}",
                    oom.kill.at.go_text(),
                    oom.kill.requested,
                    oom.container,
                )
            }
            Failure::NoRecommendation => error.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_message_or_an_error_has_no_colon() {
        let line = |message: &'static str, error: &str| {
            LogLine { message: message.into(), error: error.to_owned() }.to_string()
        };
        assert_eq!(line("Failed", "too old"), "Failed: too old");
        assert_eq!([line("", "too old"), line("Failed", "")], ["too old", "Failed"]);
    }
}
