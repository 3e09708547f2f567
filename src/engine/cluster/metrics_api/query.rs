//! Queries of the metrics APIs: parsed from their addresses, and as records for people to read.

use std::borrow::Cow;

use axum::http::Uri;
use jiff::Timestamp;
use serde::Serialize;

use crate::engine::cluster::metrics_api::groups::GROUPS;

/// A query of a metric.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// When it came.
    pub at: Timestamp,
    /// The program that asked, by what it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The user that asked, if an API server has handed it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The group: `metrics.k8s.io`.
    pub group: String,
    /// The namespace; none: all of them, or nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was asked for, below the namespace: `pods`, `pods/*/jobs`, `queue_length`.
    pub what: String,
    /// Selectors and other parameters, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The HTTP status.
    pub code: u16,
    /// The answer, in short.
    pub answer: String,
}

tokio::task_local! {
    /// Who asks what is being answered.
    pub(crate) static ASKING: String;
}

/// The user that asks, as the API server has handed it on.
pub(crate) fn asking() -> String {
    ASKING.try_with(Clone::clone).unwrap_or_default()
}

/// A query by its address.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) group: String,
    pub(crate) namespace: Option<String>,
    pub(crate) what: String,
    pub(crate) parameters: Vec<(String, String)>,
}

impl Asked {
    /// The kind that is asked to be watched, if one is: metrics can only be listed. Clients that
    /// would rather have a watch's first events than a list, as the kube-controller-manager of 1.32
    /// would, then ask for the list; that alone counts.
    ///
    /// Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, ListResource
    pub(crate) fn watched(&self) -> Option<String> {
        let watches = |(name, value): &(String, String)| {
            name == "watch" && !matches!(&**value, "0" | "false")
        };
        // A single one is read, whatever else is said.
        let is_list = self.group != GROUPS[0].0 || !self.what.contains('/');
        let kind = self.what.split('/').next().unwrap_or_default();
        (is_list && self.parameters.iter().any(watches)).then(|| format!("{kind}.{}", self.group))
    }

    /// Nothing if no metric is asked for.
    pub(crate) fn of(uri: &Uri) -> Option<Asked> {
        let rest = uri.path().strip_prefix("/apis/")?;
        let (group, rest) = rest.split_once('/')?;
        let (_, rest) = rest.split_once('/')?;
        if rest.is_empty() || !GROUPS.iter().any(|(name, _)| *name == group) {
            return None;
        }
        let (namespace, what) = match rest.strip_prefix("namespaces/") {
            Some(rest) => {
                let (namespace, what) = rest.split_once('/')?;
                (Some(plain(namespace).into_owned()), what)
            }
            None => (None, rest),
        };
        let parameters = uri.query().unwrap_or_default().split('&');
        let parameters = parameters.filter_map(|it| it.split_once('='));
        let parameters = parameters.filter(|(name, value)| {
            // What clients say beside: how much they want at once.
            !value.is_empty() && !matches!(*name, "limit" | "resourceVersion" | "timeout")
        });
        Some(Asked {
            group: group.to_owned(),
            namespace,
            what: plain(what).into_owned(),
            parameters: parameters
                .map(|(name, value)| (plain(name).into_owned(), plain(value).into_owned()))
                .collect(),
        })
    }
}

/// A part of an address as it was before it was put there.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        rest = match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                &after[2..]
            }
            (b'+', _) => {
                bytes.push(b' ');
                after
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str) -> Option<Asked> {
        Asked::of(&uri.parse().expect("an address"))
    }

    #[test]
    fn queries_are_parsed_from_the_path() {
        let uri = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/%2A/jobs\
                   ?labelSelector=app%3Dweb%2Ctier+in+%28a%29&limit=500";
        let jobs = Asked {
            group: "custom.metrics.k8s.io".to_owned(),
            namespace: Some("shop".to_owned()),
            what: "pods/*/jobs".to_owned(),
            parameters: vec![("labelSelector".to_owned(), "app=web,tier in (a)".to_owned())],
        };
        assert_eq!(asked(uri), Some(jobs));
        let nodes = Asked {
            group: "metrics.k8s.io".to_owned(),
            namespace: None,
            what: "nodes".to_owned(),
            parameters: Vec::new(),
        };
        assert_eq!(asked("/apis/metrics.k8s.io/v1beta1/nodes"), Some(nodes));
        for other in ["/apis/metrics.k8s.io/v1beta1", "/apis/metrics.k8s.io/v1beta1/", "/readyz"] {
            assert_eq!(asked(other), None, "{other}");
        }
    }

    #[test]
    fn only_lists_can_be_watched() {
        let watched = |rest: &str| asked(&format!("/apis/{rest}")).and_then(|it| it.watched());
        let pods = "metrics.k8s.io/v1beta1/namespaces/shop/pods";
        let kind = Some("pods.metrics.k8s.io".to_owned());
        assert_eq!(watched(&format!("{pods}?labelSelector=app%3Dweb&watch=true")), kind);
        assert_eq!(watched(&format!("{pods}?watch=1")), kind);
        for other in ["", "?watch=false", "?watch=0", "/web-1?watch=true"] {
            assert_eq!(watched(&format!("{pods}{other}")), None, "{other}");
        }
        let queue = "external.metrics.k8s.io/v1beta1/namespaces/shop/queue?watch=true";
        assert_eq!(watched(queue).as_deref(), Some("queue.external.metrics.k8s.io"));
    }

    #[test]
    fn invalid_paths_are_rejected() {
        assert_eq!(plain("100%"), "100%");
        assert_eq!(plain("%zz%4"), "%zz%4");
        assert_eq!(plain("%C3%A9"), "é");
    }
}
