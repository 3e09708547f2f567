//! The timeouts and poll intervals of real clusters. The times that decide a verdict are in
//! [`tolerances`](super::tolerances).

use std::time::Duration;

use jiff::SignedDuration;

/// For a connection, or a request to the API server.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two messages of a watch: the API server sends bookmarks once a minute.
pub(crate) const WATCH_TIMEOUT: Duration = Duration::from_secs(60);
/// For the first answer of the Docker engine.
pub(crate) const DOCKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Until a control plane is ready, as processes or in a container.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Until k3s is ready.
pub(crate) const K3S_READY_TIMEOUT: Duration = Duration::from_secs(180);
/// Until the node of a kind cluster is ready, as kind's `--wait`.
pub(crate) const KIND_READY_TIMEOUT: &str = "3m";
/// Until the API server serves a new kind of custom resource.
pub(crate) const CUSTOM_RESOURCE_TIMEOUT: Duration = Duration::from_secs(20);
/// Until the HPA controller has used all metrics APIs after its start. A controller with a long
/// sync period may need longer; its first reconciles are then a little late.
pub(crate) const WARM_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a custom controller, which may first have to be compiled.
pub(crate) const CUSTOM_WARM_UP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest sync period that is measured.
pub(crate) const LONGEST_SYNC_PERIOD: Duration = Duration::from_secs(150);
/// After this time without queries of upstream's controller, a different one may be measured.
pub(crate) const OTHER_CONTROLLER_AFTER: Duration = Duration::from_secs(35);
/// Queries that are closer together belong to one reconcile.
pub(crate) const SAME_RECONCILE: Duration = Duration::from_millis(150);

/// Between two readings of the API server's clock.
pub(crate) const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// From the creation of a scenario's objects to t=0. It is doubled if it is too short.
pub(crate) const LEAD: SignedDuration = SignedDuration::from_secs(2);
/// The longest such time.
pub(crate) const LONGEST_LEAD: SignedDuration = SignedDuration::from_secs(32);
/// Until the cluster matches the simulated world.
pub(crate) const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(20);
/// For a watch to report an action on pods. The action is repeated then.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest delay of a new scenario on a busy cluster.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(4);

/// For a component or a guard to exit after it was asked to.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// For the removal of a container.
pub(crate) const REMOVE_TIMEOUT: Duration = Duration::from_secs(20);
/// For the deletion of an HPA on a cluster that is about to be removed.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// For the deletion of namespaces, which namespace controllers delay.
pub(crate) const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(120);
/// Objects of a process on another machine that are younger may belong to a run that is starting.
pub(crate) const STARTING: SignedDuration = SignedDuration::from_secs(60);

/// Between two reads of a target's selector, which can't be watched for every kind.
pub(crate) const SELECTOR_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Health endpoints, containers and files are polled, because they have no notifications.
pub(crate) const HEALTH_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Between two checks of whether namespaces are gone. The role for existing clusters does not permit
/// to watch them.
pub(crate) const NAMESPACE_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between two checks of whether the controller is running.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
