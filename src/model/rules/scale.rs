//! Rules of the scale subresource.

/// The meaning of zero replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtZero {
    /// Scaling is disabled.
    Disabled,
    /// Scaling is disabled, unless `minReplicas` is 0.
    DisabledUnlessMinIsZero,
    /// Scaling is disabled, unless the condition ScaledToZero is True.
    DisabledUnlessScaledToZero,
}

/// How the API server names a scale that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingScale {
    /// Scales of Deployments and ReplicaSets by the group `extensions`:
    /// `deployments/scale.extensions`. Scales of ReplicationControllers by `autoscaling`, unless
    /// they were requested in `extensions`.
    ByExtensions,
    /// `deployments/scale.apps`; ReplicationControllers as before.
    ByApps,
    /// Also `statefulsets/scale.apps` and `replicationcontrollers/scale`.
    All,
    /// As the resource: `deployments.apps`.
    AsResource,
}

/// How the controller reads and writes the replicas of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaleRules {
    /// The number of attempts to update the scale if there are conflicts.
    pub update_attempts: u32,
    /// Whether the current replicas are `spec.replicas` of the scale, and not `status.replicas`.
    pub uses_spec_replicas: bool,
    /// The meaning of zero replicas.
    pub at_zero: AtZero,
    /// Whether scales are read and written in the group `extensions`, by their kind only.
    pub in_extensions: bool,
    /// How the API server names a missing scale on a read.
    pub missing_on_read: MissingScale,
    /// How the API server names a missing scale on a write.
    pub missing_on_write: MissingScale,
}

impl ScaleRules {
    pub(super) const OLDEST: ScaleRules = ScaleRules {
        update_attempts: 1,
        uses_spec_replicas: false,
        at_zero: AtZero::Disabled,
        in_extensions: true,
        missing_on_read: MissingScale::ByExtensions,
        missing_on_write: MissingScale::ByExtensions,
    };
}
