//! Queries of the metrics APIs, and their records in the query log.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::metrics_api::groups::{Endpoint, QueryPath};
use crate::cluster::metrics_api::response::error;
use kube_autoscaler_models::api::ApiError;
use kube_autoscaler_models::selector::Selector;

/// The record of a query.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The time when the query arrived.
    pub at: Timestamp,
    /// The `User-Agent` of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The user, if the API server provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The API group, for example `metrics.k8s.io`.
    pub group: String,
    /// The namespace. `None`: all namespaces, or nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The path below the namespace, for example `pods`, `pods/*/jobs` or `queue_length`.
    pub what: String,
    /// Selectors and other parameters, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The HTTP status.
    pub code: u16,
    /// A summary of the answer.
    pub answer: String,
}

/// A query that is being answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub received: Timestamp,
    pub query: QueryPath,
    pub group: String,
    pub version: String,
    /// The segments of the path, by their names in [`QueryPath::path`].
    pub segments: BTreeMap<String, String>,
    pub parameters: Vec<(String, String)>,
    pub user_agent: Option<String>,
    pub user: Option<String>,
    /// True if the client prefers a table, as `kubectl get` does.
    pub(crate) wants_table: bool,
}

impl Request {
    /// Creates a query that arrives now.
    pub(crate) fn new(
        query: QueryPath,
        version: &str,
        segments: BTreeMap<String, String>,
        parameters: Vec<(String, String)>,
        headers: &HeaderMap,
    ) -> Request {
        let header = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        Request {
            received: Timestamp::now(),
            query,
            group: query.group.to_owned(),
            version: version.to_owned(),
            segments,
            parameters,
            user_agent: header("user-agent").map(str::to_owned),
            user: header("x-remote-user").map(str::to_owned),
            wants_table: header("accept").is_some_and(|it| it.contains("as=Table")),
        }
    }

    /// A segment of the path by its name; empty if the path has no such segment.
    pub(crate) fn segment(&self, name: &str) -> &str {
        self.segments.get(name).map_or("", String::as_str)
    }

    /// A parameter; empty if it is absent.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().rfind(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn selector(&self, parameter: &str) -> Result<Selector, ApiError> {
        Selector::parse(self.parameter(parameter))
            .map_err(|why| error(400, "BadRequest", &format!("unable to parse requirement: {why}")))
    }

    /// The path with its segments, below the version.
    fn path(&self) -> String {
        if self.query.endpoint == Endpoint::Unknown {
            return self.segment("path").to_owned();
        }
        self.segments.iter().fold(self.query.path.to_owned(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), value)
        })
    }

    /// The namespace, and the path below it.
    fn place(&self) -> (Option<String>, String) {
        let path = self.path();
        let below = path.strip_prefix("namespaces/").and_then(|rest| rest.split_once('/'));
        match below {
            Some((namespace, rest)) => (Some(namespace.to_owned()), rest.to_owned()),
            None => (None, path),
        }
    }

    pub(crate) fn namespace(&self) -> Option<String> {
        self.place().0
    }

    /// The resource that the client tries to watch, if any: metrics can only be listed. A client
    /// that prefers a watch over a list, such as the kube-controller-manager of 1.32, then requests
    /// the list.
    ///
    /// Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, ListResource
    pub(crate) fn watched_resource(&self) -> Option<String> {
        let is_watch = |(name, value): &(String, String)| {
            name == "watch" && !matches!(value.as_str(), "" | "0" | "false")
        };
        // A GET of a single object ignores the parameter.
        let is_list = self.query.endpoint != Endpoint::Pod;
        let resource = self.place().1.split('/').next().unwrap_or_default().to_owned();
        (is_list && self.parameters.iter().any(is_watch))
            .then(|| format!("{resource}.{}", self.group))
    }

    pub(crate) fn record(self, code: u16, answer: String) -> Query {
        let (namespace, what) = self.place();
        let Request { received: at, user_agent, user, group, mut parameters, .. } = self;
        // These parameters are not shown: they do not select objects.
        let fetching = ["limit", "resourceVersion", "timeout"];
        parameters.retain(|(name, value)| !value.is_empty() && !fetching.contains(&name.as_str()));
        Query { at, user_agent, user, group, namespace, what, parameters, code, answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::metrics_api::groups::QUERIES;

    fn request(endpoint: Endpoint, segments: &[(&str, &str)], parameters: &str) -> Request {
        let query = QUERIES.into_iter().find(|it| it.endpoint == endpoint).expect("a query");
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let segments = segments.iter().copied().map(own).collect();
        let parameters = parameters.split_terminator('&').filter_map(|it| it.split_once('='));
        let parameters = parameters.map(own).collect();
        Request::new(query, "v1beta1", segments, parameters, &HeaderMap::new())
    }

    #[test]
    fn a_record_has_the_path_below_the_namespace() {
        let segments =
            [("namespace", "shop"), ("resource", "pods"), ("name", "*"), ("metric", "jobs")];
        let parameters = "labelSelector=app&limit=500&metricLabelSelector=";
        let jobs =
            request(Endpoint::ObjectMetric, &segments, parameters).record(200, String::new());
        assert_eq!((jobs.namespace.as_deref(), &*jobs.what), (Some("shop"), "pods/*/jobs"));
        assert_eq!(jobs.parameters, [("labelSelector".to_owned(), "app".to_owned())]);
        let nodes = request(Endpoint::Nodes, &[], "").record(404, String::new());
        assert_eq!((nodes.namespace, &*nodes.what), (None, "nodes"));
    }

    #[test]
    fn a_list_can_be_watched_and_a_single_object_can_not() {
        let namespace = ("namespace", "shop");
        let watched =
            |parameters: &str| request(Endpoint::Pods, &[namespace], parameters).watched_resource();
        let pods = Some("pods.metrics.k8s.io".to_owned());
        assert_eq!(watched("labelSelector=app%3Dweb&watch=true"), pods);
        assert_eq!(watched("watch=1"), pods);
        for other in ["", "watch=false", "watch=0"] {
            assert_eq!(watched(other), None, "{other}");
        }
        let pod = request(Endpoint::Pod, &[namespace, ("name", "web-1")], "watch=true");
        assert_eq!(pod.watched_resource(), None);
        let queue = request(Endpoint::ExternalMetric, &[namespace, ("metric", "queue")], "watch=1");
        assert_eq!(queue.watched_resource().as_deref(), Some("queue.external.metrics.k8s.io"));
    }
}
