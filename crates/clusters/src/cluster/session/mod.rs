//! One scenario on a cluster: its namespace, its objects and its pods.

pub(crate) mod context;
pub(crate) mod live_pods;
pub(crate) mod pod_cache;
pub(crate) mod pods;
pub(crate) mod scenario_session;
pub(crate) mod supported;
pub(crate) mod warm_up;
