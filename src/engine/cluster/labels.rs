//! Labels, annotations, finalizers and the field manager of the objects that the harness writes.

/// The label of the namespaces of scenarios.
pub(crate) const SCENARIO_LABEL: &str = "kube-lockstep.dev/scenario";

/// The label of the objects that register the metrics API.
pub(crate) const METRICS_API_LABEL: &str = "kube-lockstep.dev/metrics-api";

/// The annotation that names the process which owns an object.
pub(crate) const OWNER_ANNOTATION: &str = "kube-lockstep.dev/owner";

/// The label of the pods and targets of scenarios.
pub(crate) const PLAYED_LABEL: &str = "kube-lockstep.dev/played";

/// The finalizer that keeps a pod which terminates in the scenario.
pub(crate) const HOLD_FINALIZER: &str = "kube-lockstep.dev/hold";

/// The field manager of the harness: writes by other managers are those of the controller.
pub(crate) const FIELD_MANAGER: &str = "kube-lockstep";
