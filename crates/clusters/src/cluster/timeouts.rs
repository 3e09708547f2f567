//! The timeouts and poll intervals of real clusters. The times that decide a verdict are in
//! [`tolerances`](super::tolerances).

use std::time::Duration;

use jiff::SignedDuration;

/// The timeout for a connection, or a request to the API server.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout between two messages of a watch: the API server sends bookmarks once a minute.
pub(crate) const WATCH_TIMEOUT: Duration = Duration::from_secs(60);
/// The time before a failed watch is restarted. It has to be short: kube's default backoff (0.8 s
/// to 30 s) is longer than the time after which a missing status write counts as a divergence.
pub(crate) const WATCH_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The timeout for the first response of the Docker engine.
pub(crate) const DOCKER_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout until a control plane is ready, in processes or in a container.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout until k3s is ready.
pub(crate) const K3S_READY_TIMEOUT: Duration = Duration::from_secs(180);
/// The timeout until the node of a kind cluster is ready, for kind's `--wait`.
pub(crate) const KIND_READY_TIMEOUT: &str = "3m";
/// The timeout until the API server serves a new kind of custom resource.
pub(crate) const CUSTOM_RESOURCE_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout until the HPA controller has used all metrics APIs after its start. A controller
/// with a long sync period may need longer; its first reconciles are then slightly late.
pub(crate) const WARM_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// The warm-up timeout for a custom controller, which may have to be compiled first.
pub(crate) const CUSTOM_WARM_UP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest sync period that is measured.
pub(crate) const LONGEST_SYNC_PERIOD: Duration = Duration::from_secs(150);
/// After this time without queries of upstream's controller, another controller is measured.
pub(crate) const OTHER_CONTROLLER_AFTER: Duration = Duration::from_secs(35);

/// The timeout until the API server reaches the metrics server.
pub(crate) const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of a test of a route from the API server to the metrics server.
pub(crate) const ROUTE_TIMEOUT: Duration = Duration::from_secs(12);
/// The time for which the API server may report that it can't reach the metrics server: its first
/// attempt may have been too early.
pub(crate) const REGISTRATION_FAILURE_TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout for the deletion of the namespace of the metrics server. While any aggregated API of
/// a cluster does not respond, the cluster deletes no namespace.
pub(crate) const METRICS_NAMESPACE_TIMEOUT: Duration = Duration::from_secs(15);
/// The interval between two reads of an APIService or the namespace: the role for existing clusters
/// does not permit watching them.
pub(crate) const REGISTRATION_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interval between two requests that probe the latency of a component.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// The interval between two edits of the probed Deployment, each of which costs the controller two
/// requests.
pub(crate) const PROBE_EDIT_INTERVAL: Duration = Duration::from_millis(300);
/// The interval between two checks of whether an edit of the probed Deployment was observed.
pub(crate) const PROBE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interval between two readings of the API server's clock.
pub(crate) const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time from the creation of a scenario's objects to t=0. It is doubled if it is too short.
pub(crate) const LEAD: SignedDuration = SignedDuration::from_secs(2);
/// The maximum of this time.
pub(crate) const LONGEST_LEAD: SignedDuration = SignedDuration::from_secs(32);
/// The timeout until the cluster matches the simulated world.
pub(crate) const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for a watch to report an action on pods. After it, the action is repeated.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest delay of a new scenario on a busy cluster.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(4);

/// The timeout for a component to exit after it was stopped.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for the removal of a container.
pub(crate) const REMOVE_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for the deletion of an HPA on a cluster that is about to be removed.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for the deletion of namespaces, which namespace controllers delay.
pub(crate) const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(120);
/// The age up to which an object of a process on another machine may belong to a run that is
/// starting.
pub(crate) const STARTING: SignedDuration = SignedDuration::from_secs(60);

/// The interval between two reads of a target's selector, which can't be watched for every kind.
pub(crate) const SELECTOR_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The poll interval of health endpoints, containers and files, which have no notifications.
pub(crate) const HEALTH_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The interval between two checks of whether namespaces are gone: the role for existing clusters
/// does not permit watching them.
pub(crate) const NAMESPACE_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval between two checks of whether the controller is running.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
