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

/// The name in the API server's error for a scale that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingScale {
    /// Scales of Deployments and ReplicaSets have the group `extensions`:
    /// `deployments/scale.extensions`. Scales of ReplicationControllers have the group
    /// `autoscaling`, unless they were requested in `extensions`.
    ByExtensions,
    /// `deployments/scale.apps`; ReplicationControllers as in [`MissingScale::ByExtensions`].
    ByApps,
    /// As in [`MissingScale::ByApps`], and `statefulsets/scale.apps` and
    /// `replicationcontrollers/scale`.
    All,
    /// The name of the resource: `deployments.apps`.
    AsResource,
}

/// The rules by which the controller reads and writes the replicas of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaleRules {
    /// The number of attempts to update the scale if there are conflicts.
    pub update_attempts: u32,
    /// True if the current replicas are `spec.replicas` of the scale instead of `status.replicas`.
    pub uses_spec_replicas: bool,
    /// The meaning of zero replicas.
    pub at_zero: AtZero,
    /// True if scales are read and written in the group `extensions`, by their kind alone.
    pub in_extensions: bool,
    /// The name of a missing scale in the error of a read.
    pub missing_on_read: MissingScale,
    /// The name of a missing scale in the error of a write.
    pub missing_on_write: MissingScale,
    /// True if the error of a write of an outdated scale names Deployments and ReplicaSets in the
    /// group `extensions`.
    pub conflicts_in_extensions: bool,
}

impl ScaleRules {
    pub(crate) const OLDEST: ScaleRules = ScaleRules {
        update_attempts: 1,
        uses_spec_replicas: false,
        at_zero: AtZero::Disabled,
        in_extensions: true,
        missing_on_read: MissingScale::ByExtensions,
        missing_on_write: MissingScale::ByExtensions,
        conflicts_in_extensions: true,
    };
}
