//! Labels, annotations and finalizers of the objects that are created in a cluster, and the field
//! manager of the requests.

/// The label of the targets and pods of scenarios.
pub(crate) const SCENARIO_OBJECT: &str = "kube-lockstep.dev/scenario-object";

/// The field manager of replicas that the harness writes; other writes are the controller's.
pub(crate) const WRITER: &str = "kube-lockstep";

/// The finalizer of pods that stay Terminating for some time.
pub(crate) const HOLD: &str = "kube-lockstep.dev/hold";

/// The label of the namespaces of scenarios.
pub(super) const SCENARIO: &str = "kube-lockstep.dev/scenario";

/// The label of APIServices, and of the namespace of the metrics API.
pub(crate) const METRICS_API: &str = "kube-lockstep.dev/metrics-api";

/// The annotation that names the process that created or replaced an object.
pub(crate) const OWNER: &str = "kube-lockstep.dev/owner";

/// The annotation with the original spec of a replaced APIService.
pub(crate) const REPLACED: &str = "kube-lockstep.dev/replaced";
