//! Rules of the API server: which fields HPAs have, how they are validated, and how they are
//! stored.

/// The error for `maxReplicas` below 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaxReplicasError {
    /// The value is invalid.
    Invalid,
    /// 0 counts as a missing value.
    Required,
}

/// The form in which the API server prints an invalid quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidQuantities {
    /// Go syntax, as `%#v` prints it.
    GoSyntax,
    /// The quantity as JSON, as newer releases print it.
    Json,
}

/// The rules by which the API server admits and stores HPAs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionRules {
    /// True if HPAs have `behavior`.
    pub has_behavior: bool,
    /// True if `behavior` has a tolerance.
    pub has_tolerance: bool,
    /// True if HPAs have external metrics.
    pub has_external_metrics: bool,
    /// True if metrics have selectors, and metrics of objects have averages.
    pub has_metric_selectors: bool,
    /// True if the apiVersion of references is validated.
    pub api_version_is_checked: bool,
    /// The error for `maxReplicas` below 1.
    pub max_replicas_error: MaxReplicasError,
    /// The form in which an invalid quantity is printed.
    pub invalid_quantities: InvalidQuantities,
    /// True if the error of a `minReplicas` that is too small names the smallest valid value.
    pub least_is_named: bool,
    /// True if checks that are generated from types replace hand-written ones.
    pub generated_validation: bool,
    /// True if, in versions of the API that can't omit it, a zero total beside the average of an
    /// object's metric means that there is no total.
    pub zero_total_is_none: bool,
    /// True if the API server serves autoscaling/v2beta1, and not v2alpha1, which has the same
    /// fields.
    pub serves_v2beta1: bool,
    /// True if the API server serves autoscaling/v2. The controller uses it if it is served.
    pub serves_v2: bool,
    /// True if HPAs are stored as autoscaling/v1.
    pub stored_as_v1: bool,
    /// True if an HPA in v2 is stored without defaults. Readers of the storage see the defaults of
    /// the storage version, which the next write stores.
    pub stores_without_defaults: bool,
    /// True if autoscaling/v1 keeps a percentage of cpu if another metric of cpu precedes it.
    pub all_percentages_are_kept: bool,
}

impl AdmissionRules {
    /// The API version to which the controller converts HPAs.
    #[must_use]
    pub(crate) fn controller_version(&self) -> &'static str {
        match () {
            () if self.serves_v2 => "autoscaling/v2",
            () if self.has_metric_selectors => "autoscaling/v2beta2",
            () if self.serves_v2beta1 => "autoscaling/v2beta1",
            () => "autoscaling/v2alpha1",
        }
    }

    pub(crate) const OLDEST: AdmissionRules = AdmissionRules {
        has_behavior: false,
        has_tolerance: false,
        has_external_metrics: false,
        has_metric_selectors: false,
        api_version_is_checked: false,
        max_replicas_error: MaxReplicasError::Invalid,
        invalid_quantities: InvalidQuantities::GoSyntax,
        least_is_named: false,
        generated_validation: false,
        zero_total_is_none: false,
        serves_v2beta1: false,
        serves_v2: false,
        stored_as_v1: true,
        stores_without_defaults: false,
        all_percentages_are_kept: false,
    };
}
