//! Scenarios on real clusters, in real time.
//!
//! An embedded control plane, or any other cluster, is driven from outside: the objects of a
//! scenario are created in a separate namespace, pods get the status that a kubelet would give
//! them, and the metrics APIs are served from here. The requests and writes of the HPA controller
//! are observed. Nothing here knows what the controller should do.
//!
//! | folder | subject |
//! |---|---|
//! | `provision` | starts clusters: control planes in processes and containers, k3s, kind; existing clusters |
//! | [`access`] | clients, RBAC, ownership of namespaces, clock skew |
//! | `metrics_api` | the fake metrics API, its registration with the API server, its query log |
//! | `observe` | the controller's actions (audit log, watches), grouped into reconciles |
//! | [`recommender`] | the VPA's recommender on a control plane, its objects and its requests |
//! | [`session`] | one scenario on a cluster: its namespace, workload and pods |
//! | `load` | how busy a cluster is, and how many scenarios are set up at a time |

pub(crate) mod access;
mod clock;
mod labels;
mod lifecycle;
mod load;
mod manifests;
pub(crate) mod metrics_api;
mod observe;
pub(crate) mod provision;
pub(crate) mod recommender;
mod resources;
pub(crate) mod session;
pub(crate) mod settings;
mod timeouts;
pub(crate) mod tolerances;
pub(crate) mod workload;

pub(crate) use lifecycle::Cluster;
pub(crate) use observe::action::ObservedAction;
pub(crate) use observe::observability::Observability;
pub(crate) use observe::reconcile::{ObservedReconcile, SettledState};
pub(crate) use recommender::{
    ObservedWrite, RecommenderCluster, RecommenderSession, StartedRun,
    unsupported_reason as recommender_unsupported_reason,
};
pub(crate) use session::scenario_session::ScenarioSession;
pub(crate) use session::supported::unsupported_reason;
pub(crate) use workload::CustomKind;
