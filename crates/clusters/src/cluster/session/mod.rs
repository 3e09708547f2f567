//! One scenario on a cluster: its namespace, its objects and its pods.

pub mod context;
pub mod live_pods;
pub(crate) mod pod_cache;
pub mod pods;
pub(crate) mod scenario_session;
pub mod supported;
pub mod warm_up;
