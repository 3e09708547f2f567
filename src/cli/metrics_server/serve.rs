//! Serves the metrics of scenarios until a signal, and reports queries and changes.

use jiff::{Timestamp, Unit};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Args;
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::fixtures::Fixtures;
use crate::cli::output::show;
use crate::cli::{existing, exit, interrupt};
use kube_autoscaler_models::time::Span;
use kube_lockstep_clusters::metrics_server;
use kube_lockstep_clusters::metrics_server::{
    ClusterSelection, Query, ServedScenario, ServerConfig, ServerError, ServerEvent,
};
use kube_lockstep_report::style::{BAD, DIM, GOOD, STRONG, WARN, paint};

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<u8> {
    let selection =
        ClusterSelection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let mut log = EventLog { format: args.format, since: None, failed: None };
    let done = if args.remove {
        metrics_server::remove(&selection, &mut |event| log.log(&event))
    } else {
        let config = ServerConfig {
            selection,
            scenarios: scenarios(args)?,
            speed: args.speed,
            listen: args.metrics_address.clone(),
            may_replace: args.replace_metrics_api,
            register: !args.no_register,
            cleanup_command: existing::cluster_command(
                ["metrics-server", "--remove"],
                args.context.as_deref(),
                args.kubeconfig.as_deref(),
            ),
        };
        let stop = CancellationToken::new();
        interrupt::stop_on_signal(&stop)?;
        metrics_server::serve(&config, &stop, &mut |event| log.log(&event))
    };
    done.map_err(Failure::from)?;
    log.failed.map_or(Ok(exit::CONFORMS), |error| Err(error.into()))
}

/// The scenarios, each with its namespace.
fn scenarios(args: &Args) -> Result<Vec<ServedScenario>, Failure> {
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let mut scenarios: Vec<ServedScenario> = Vec::new();
    for given in &args.scenario {
        let (name, namespace) = match given.rsplit_once('=') {
            Some((name, namespace)) => (name, Some(namespace.to_owned())),
            None => (given.as_str(), None),
        };
        if namespace.as_ref().is_some_and(|it| !is_namespace(it)) {
            let what = format!("{given:?} does not end with a valid namespace");
            return Err(Failure::usage(what).hint("expected FILE=NAMESPACE"));
        }
        let scenario = fixtures.one(name)?.parse()?;
        let metrics = &scenario.metrics;
        let silent = metrics.resources.is_empty() && metrics.pods.is_empty();
        if silent && metrics.objects.is_empty() && metrics.externals.is_empty() {
            return Err(Failure::usage(format!("{name} has no metrics")));
        }
        let namespace = namespace.unwrap_or_else(|| scenario.namespace.to_string());
        if let Some(other) = scenarios.iter().find(|served| served.namespace == namespace) {
            let what = format!("{} and {name} are both for {namespace}", other.scenario.id);
            return Err(
                Failure::usage(what).hint("a namespace can only have the metrics of one scenario")
            );
        }
        scenarios.push(ServedScenario { scenario, namespace });
    }
    Ok(scenarios)
}

/// Returns true for a valid name of a namespace (RFC 1123).
fn is_namespace(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-')
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Failure {
        let code = if error.is_usage { exit::USAGE } else { exit::ENGINE };
        Failure { code, ..Failure::usage(error.problem) }
    }
}

/// Reports events line by line.
struct EventLog {
    format: Format,
    /// The time of t=0.
    since: Option<Timestamp>,
    /// The first output error. The server continues after it.
    failed: Option<std::io::Error>,
}

impl EventLog {
    fn log(&mut self, event: &ServerEvent) {
        if let ServerEvent::Serving { since, .. } = event {
            self.since = Some(*since);
        }
        let text = match self.format {
            Format::Text => text(event, self.since),
            Format::Json => format!("{}\n", json!(event)),
        };
        if let Err(error) = show(&text) {
            self.failed.get_or_insert(error);
        }
    }
}

/// A line: a label and a text.
fn line(style: anstyle::Style, label: &str, rest: &str) -> String {
    format!("{} {rest}\n", paint(style, &format!("{label:<9}")))
}

fn lines(style: anstyle::Style, label: &str, all: &[String]) -> String {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(all).map(|(label, rest)| line(style, label, rest)).collect()
}

fn text(event: &ServerEvent, since: Option<Timestamp>) -> String {
    match event {
        ServerEvent::Cluster { server, version } => {
            line(STRONG, "cluster", &format!("{server}, Kubernetes {version}"))
        }
        ServerEvent::Cleaned { what } => lines(WARN, "left over", what),
        ServerEvent::Creates { what } => {
            lines(GOOD, "creates", what) + &line(DIM, "", "all of this is removed at the end")
        }
        ServerEvent::Replaces { what } => {
            lines(WARN, "replaces", what) + &line(DIM, "", "all of this is restored at the end")
        }
        ServerEvent::Note { note } => line(DIM, "note", note),
        ServerEvent::Serving { groups, address, route, since } => {
            let route = match route {
                Some(route) => format!("reached via {route}"),
                None => "not registered".to_owned(),
            };
            let at = since.round(Unit::Second).unwrap_or(*since);
            let groups = groups.join(", ");
            let rest = format!("{groups} at https://{address}, {route}; t=0 is {at}");
            line(GOOD, "serves", &rest)
        }
        ServerEvent::Query(query) => query_line(query, since),
        ServerEvent::Removed { what } if what.is_empty() => line(DIM, "removed", "no leftovers"),
        ServerEvent::Removed { what } => lines(DIM, "removed", what),
    }
}

/// A query: time, client, request and answer.
fn query_line(query: &Query, since: Option<Timestamp>) -> String {
    let milli = since.map_or(0, |since| query.at.as_millisecond() - since.as_millisecond());
    let at = format!("t={}", Span::from_millis(milli));
    // The rest describes the platform.
    let agent = query.user_agent.as_deref().and_then(|it| it.split_whitespace().next());
    let client = agent.or(query.user.as_deref()).unwrap_or("unknown client");
    let mut what = query.what.clone();
    if let Some(namespace) = &query.namespace {
        what = format!("{namespace} {what}");
    }
    for (name, value) in &query.parameters {
        what.push_str(&format!(" {name}={value}"));
    }
    let answer = match query.code {
        200 => query.answer.clone(),
        code => paint(BAD, &format!("{code} {}", query.answer)),
    };
    line(DIM, &at, &format!("{client}: {} {what} → {answer}", query.group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> Query {
        Query {
            at: "2026-01-01T00:00:15.25Z".parse().expect("a time"),
            user_agent: Some("kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd".to_owned()),
            user: Some("admin".to_owned()),
            group: "metrics.k8s.io".to_owned(),
            namespace: Some("shop".to_owned()),
            what: "pods".to_owned(),
            parameters: vec![("labelSelector".to_owned(), "app=web".to_owned())],
            code: 200,
            answer: "2 pods, cpu 1".to_owned(),
        }
    }

    #[test]
    fn each_query_is_logged_in_one_line() {
        let since = "2026-01-01T00:00:00Z".parse().ok();
        let plain =
            |query: &Query| anstream::adapter::strip_str(&query_line(query, since)).to_string();
        assert_eq!(
            plain(&query()),
            "t=15.25s  kubectl/v1.32.4: metrics.k8s.io shop pods labelSelector=app=web → 2 pods, \
             cpu 1\n"
        );
        let failed = Query {
            user_agent: None,
            namespace: None,
            parameters: Vec::new(),
            code: 503,
            answer: "down".to_owned(),
            ..query()
        };
        assert_eq!(plain(&failed), "t=15.25s  admin: metrics.k8s.io pods → 503 down\n");
        let value = json!(ServerEvent::Query(query()));
        assert_eq!(value["event"], "query");
        assert_eq!(value["at"], "2026-01-01T00:00:15.25Z");
        assert_eq!(value["namespace"], "shop");
    }

    #[test]
    fn namespaces_have_valid_names() {
        for (name, is) in [("shop", true), ("a-1", true), ("", false), ("a/b", false), ("A", false)]
        {
            assert_eq!(is_namespace(name), is, "{name}");
        }
    }
}
