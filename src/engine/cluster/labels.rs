//! Labels, annotations and finalizers of the objects that are created in a cluster, and the field
//! manager of the requests.

/// What pods of scenarios are marked with.
pub(crate) const PLAYED: &str = "kube-lockstep.dev/played";

/// As whom sizes are written: others are the controller's.
pub(crate) const WRITER: &str = "kube-lockstep";

/// What holds a pod that the world says is terminating.
pub(crate) const HOLD: &str = "kube-lockstep.dev/hold";

/// The label of all of them.
pub(crate) const SCENARIO: &str = "kube-lockstep.dev/scenario";

/// The label of all that is made here.
pub(crate) const METRICS_API: &str = "kube-lockstep.dev/metrics-api";

/// The annotation that names the process.
pub(crate) const OWNER: &str = "kube-lockstep.dev/owner";

/// The annotation that keeps what an APIService was before.
pub(crate) const REPLACED: &str = "kube-lockstep.dev/replaced";
