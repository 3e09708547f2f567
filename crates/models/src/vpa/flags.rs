//! The flags of the recommender, under their upstream names.
//!
//! Upstream: `pkg/recommender/config/config.go`, `common/flags.go`

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::quantity::Quantity;
use crate::time::Span;

/// Defines the supported flags of a component of the VPA: for each flag its name, its field with
/// type and default, and the function that parses its value.
macro_rules! component_flags {
    (
        $(#[$about:meta])*
        pub struct $flags:ident {
            $($(#[$doc:meta])* $name:literal $field:ident: $type:ty = $default:expr, $parse:path;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $flags {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl Default for $flags {
            fn default() -> $flags {
                $flags { $($field: $default,)+ }
            }
        }

        impl $flags {
            /// The names of the supported flags, without the leading dashes.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// Sets a flag to the value of a text. Returns `None` if there is no such flag.
            fn set_by_name(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
                Some(match name {
                    $($name => $parse(value, &mut self.$field),)+
                    _ => return None,
                })
            }
        }
    };
}
pub(super) use component_flags;

const DAY: Span = Span::from_mins(24 * 60);

component_flags! {
    /// Flags of the recommender that have an effect on recommendations, conditions or checkpoints.
    /// `Default` gives upstream's defaults.
    pub struct RecommenderFlags {
        /// The time between two deletions of checkpoints without a VPA.
        "checkpoints-gc-interval" checkpoints_gc_interval: Span = Span::from_mins(10), parse;
        /// The length of history with a CPU confidence of 1.
        "confidence-interval-cpu" confidence_interval_cpu: Span = DAY, positive;
        /// The length of history with a memory confidence of 1.
        "confidence-interval-memory" confidence_interval_memory: Span = DAY, positive;
        /// The largest CPU recommendation for a container without its own limit.
        "container-recommendation-max-allowed-cpu"
        container_recommendation_max_allowed_cpu: Option<Quantity> = None, limit;
        /// The largest memory recommendation for a container without its own limit.
        "container-recommendation-max-allowed-memory"
        container_recommendation_max_allowed_memory: Option<Quantity> = None, limit;
        /// The half-life of CPU samples.
        "cpu-histogram-decay-half-life" cpu_histogram_decay_half_life: Span = DAY, positive;
        /// Round CPU up to whole cores for containers that an annotation of the VPA selects.
        "cpu-integer-post-processor-enabled"
        cpu_integer_post_processor_enabled: bool = false, parse;
        /// The feature gate `PerVPAConfig`.
        "feature-gates" per_vpa_config: bool = false, per_vpa_config;
        /// Round memory to two decimals of its largest unit.
        "humanize-memory" humanize_memory: bool = false, parse;
        /// Namespaces that are ignored, separated by commas.
        "ignored-vpa-object-namespaces" ignored_vpa_object_namespaces: String = String::new(), text;
        /// The interval with one memory peak per container.
        "memory-aggregation-interval" memory_aggregation_interval: Span = DAY, positive;
        /// The number of intervals after which samples expire.
        "memory-aggregation-interval-count" memory_aggregation_interval_count: i64 = 8, parse;
        /// The half-life of memory samples.
        "memory-histogram-decay-half-life" memory_histogram_decay_half_life: Span = DAY, positive;
        /// Track only pods of VPAs.
        "memory-saver" memory_saver: bool = false, parse;
        /// The factor of memory after an OOM kill.
        "oom-bump-up-ratio" oom_bump_up_ratio: f64 = 1.2, parse;
        /// The smallest increase of memory after an OOM kill, in bytes.
        "oom-min-bump-up-bytes" oom_min_bump_up_bytes: f64 = 100.0 * 1024.0 * 1024.0, parse;
        /// The smallest CPU recommendation for a pod, in millicores.
        "pod-recommendation-min-cpu-millicores"
        pod_recommendation_min_cpu_millicores: f64 = 25.0, parse;
        /// The smallest memory recommendation for a pod, in MiB.
        "pod-recommendation-min-memory-mb" pod_recommendation_min_memory_mb: f64 = 250.0, parse;
        /// The percentile of the CPU lower bound.
        "recommendation-lower-bound-cpu-percentile"
        recommendation_lower_bound_cpu_percentile: f64 = 0.5, parse;
        /// The percentile of the memory lower bound.
        "recommendation-lower-bound-memory-percentile"
        recommendation_lower_bound_memory_percentile: f64 = 0.5, parse;
        /// The fraction of the usage that is added.
        "recommendation-margin-fraction" recommendation_margin_fraction: f64 = 0.15, parse;
        /// The percentile of the CPU upper bound.
        "recommendation-upper-bound-cpu-percentile"
        recommendation_upper_bound_cpu_percentile: f64 = 0.95, parse;
        /// The percentile of the memory upper bound.
        "recommendation-upper-bound-memory-percentile"
        recommendation_upper_bound_memory_percentile: f64 = 0.95, parse;
        /// The time between two runs.
        "recommender-interval" recommender_interval: Span = Span::from_mins(1), positive;
        /// The name of the recommender.
        "recommender-name" recommender_name: String = "default".to_owned(), text;
        /// Round CPU up to a multiple of this, in millicores.
        "round-cpu-millicores" round_cpu_millicores: i64 = 1, parse;
        /// Round memory up to a multiple of this, in bytes.
        "round-memory-bytes" round_memory_bytes: i64 = 1, parse;
        /// Where the history is stored: `prometheus`, or in checkpoints.
        "storage" storage: String = String::new(), text;
        /// The percentile of the CPU target.
        "target-cpu-percentile" target_cpu_percentile: f64 = 0.9, parse;
        /// The percentile of the memory target.
        "target-memory-percentile" target_memory_percentile: f64 = 0.9, parse;
        /// The only namespace, if set.
        "vpa-object-namespace" vpa_object_namespace: String = String::new(), text;
    }
}

/// A flag that does not exist, or has an invalid value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecommenderFlagError {
    /// The name of the flag.
    pub flag: String,
    /// The problem.
    pub why: String,
}

impl fmt::Display for RecommenderFlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.flag, self.why)
    }
}

impl std::error::Error for RecommenderFlagError {}

/// Flags that every component of the VPA has: how it runs and connects to the cluster.
pub(super) const CONNECTION_FLAGS: &[&str] = &[
    "address",
    "kube-api-burst",
    "kube-api-qps",
    "kubeconfig",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "profiling",
];

/// Flags that every component of the VPA has: logging.
pub(super) const LOG_FLAGS: &[&str] = &[
    "add-dir-header",
    "alsologtostderr",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "logtostderr",
    "one-output",
    "skip-headers",
    "skip-log-headers",
    "stderrthreshold",
    "v",
    "vmodule",
];

/// Upstream flags that the harness does not support: the reason, and the flags.
const UNSUPPORTED: [(&str, &[&str]); 6] = [
    (
        "it concerns the Prometheus server of the history, which `history` replaces",
        &[
            "container-name-label",
            "container-namespace-label",
            "container-pod-name-label",
            "history-cpu-metric",
            "history-length",
            "history-memory-metric",
            "history-resolution",
            "metric-for-pod-labels",
            "password",
            "pod-label-prefix",
            "pod-name-label",
            "pod-namespace-label",
            "prometheus-address",
            "prometheus-bearer-token",
            "prometheus-bearer-token-file",
            "prometheus-cadvisor-job-name",
            "prometheus-insecure",
            "prometheus-query-timeout",
            "username",
        ],
    ),
    (
        "the recommender reads the usage from metrics.k8s.io only",
        &["external-metrics-cpu-metric", "external-metrics-memory-metric", "use-external-metrics"],
    ),
    (
        "no time passes during a run, so each run writes all checkpoints",
        &["checkpoints-timeout", "min-checkpoints"],
    ),
    ("it changes only how many VPAs a run handles at the same time", &["update-worker-count"]),
    (
        "the harness sets how the recommender runs and how it connects to the cluster",
        CONNECTION_FLAGS,
    ),
    ("the harness sets what the recommender logs", LOG_FLAGS),
];

impl RecommenderFlags {
    /// Why the harness does not support a flag that upstream has.
    #[must_use]
    pub fn unsupported(name: &str) -> Option<&'static str> {
        UNSUPPORTED.iter().find(|(_, flags)| flags.contains(&name)).map(|(why, _)| *why)
    }

    /// Returns true if checkpoints are read and written.
    #[must_use]
    pub fn uses_checkpoints(&self) -> bool {
        self.storage != "prometheus"
    }

    /// Returns true if flags limit the recommendations of all containers.
    pub(super) fn limits_containers(&self) -> bool {
        self.container_recommendation_max_allowed_cpu.is_some()
            || self.container_recommendation_max_allowed_memory.is_some()
    }

    /// Parses flags by their upstream names, without the leading dashes.
    ///
    /// # Errors
    /// If a flag is unknown or not supported, its value can't be parsed, or upstream's behavior
    /// with the value is undefined.
    pub fn parse(values: &BTreeMap<String, String>) -> Result<Self, RecommenderFlagError> {
        let mut flags = RecommenderFlags::default();
        for (name, value) in values {
            flags
                .set_by_name(name, value)
                .unwrap_or_else(|| Err(not_set(name)))
                .map_err(|why| RecommenderFlagError { flag: name.clone(), why })?;
        }
        // Upstream: common/flags.go, ValidateCommonConfig
        if !flags.vpa_object_namespace.is_empty() && !flags.ignored_vpa_object_namespaces.is_empty()
        {
            let why =
                "the recommender does not start if `ignored-vpa-object-namespaces` is set as well";
            let flag = "vpa-object-namespace".to_owned();
            return Err(RecommenderFlagError { flag, why: why.to_owned() });
        }
        Ok(flags)
    }
}

/// Why a flag can't be set.
fn not_set(name: &str) -> String {
    match RecommenderFlags::unsupported(name) {
        Some(why) => format!("not supported: {why}"),
        None => "the recommender has no such flag".to_owned(),
    }
}

/// The type of a flag.
pub(super) trait FlagValue: FromStr {
    /// The expected form, for messages.
    const FORM: &'static str;

    /// Returns true if the type of the flag upstream has such a value.
    fn is_in_range(&self, _text: &str) -> bool {
        true
    }
}

impl FlagValue for bool {
    const FORM: &'static str = "true or false";
}

impl FlagValue for f64 {
    const FORM: &'static str = "a number";

    /// Upstream's parser rejects numbers that are too large, but not `Inf`.
    fn is_in_range(&self, text: &str) -> bool {
        self.is_finite() || !text.contains(|character: char| character.is_ascii_digit())
    }
}

impl FlagValue for i32 {
    const FORM: &'static str = "a whole number";
}

impl FlagValue for i64 {
    const FORM: &'static str = i32::FORM;
}

impl FlagValue for Span {
    const FORM: &'static str = "a duration such as 15s, 1m30s or 500ms";
}

pub(super) fn parse<T: FlagValue>(value: &str, field: &mut T) -> Result<(), String> {
    let parsed = value.parse().ok().filter(|parsed: &T| parsed.is_in_range(value));
    *field = parsed.ok_or_else(|| format!("expected {}, found {value:?}", T::FORM))?;
    Ok(())
}

fn text(value: &str, field: &mut String) -> Result<(), String> {
    value.clone_into(field);
    Ok(())
}

/// Parses a quantity that limits recommendations; 0 is no limit.
fn limit(value: &str, field: &mut Option<Quantity>) -> Result<(), String> {
    let quantity = Quantity::parse_stored(value).map_err(|error| error.to_string())?;
    *field = Some(quantity).filter(|quantity| quantity.sign() != 0);
    Ok(())
}

/// Parses the only feature gate of the recommender that matters.
fn per_vpa_config(value: &str, field: &mut bool) -> Result<(), String> {
    *field = match value {
        "PerVPAConfig=true" => true,
        "PerVPAConfig=false" => false,
        _ => return Err("expected `PerVPAConfig=true` or `PerVPAConfig=false`".to_owned()),
    };
    Ok(())
}

/// Parses a span with which upstream divides.
pub(super) fn positive(value: &str, field: &mut Span) -> Result<(), String> {
    parse(value, field)?;
    match field.0 {
        1.. => Ok(()),
        _ => Err(format!("expected a duration of more than 0s, found {value:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_named_flag_is_parsed() {
        for name in RecommenderFlags::NAMES {
            let values = ["1", "1m", "true", "PerVPAConfig=true"];
            let parses = |value: &&str| {
                let flags = BTreeMap::from([(name.to_owned(), (*value).to_owned())]);
                RecommenderFlags::parse(&flags).is_ok()
            };
            assert!(values.iter().any(parses), "{name}");
        }
        let unknown = BTreeMap::from([("storag".to_owned(), "x".to_owned())]);
        assert!(RecommenderFlags::parse(&unknown).is_err());
    }

    #[test]
    fn each_flag_is_supported_or_has_one_reason() {
        let names: Vec<&str> = UNSUPPORTED.iter().flat_map(|(_, flags)| *flags).copied().collect();
        let all = names.iter().chain(&RecommenderFlags::NAMES);
        let distinct: BTreeSet<&&str> = all.clone().collect();
        assert_eq!(distinct.len(), all.count());
        let flags = BTreeMap::from([("min-checkpoints".to_owned(), "1".to_owned())]);
        let error = RecommenderFlags::parse(&flags).expect_err("an unsupported flag").to_string();
        assert!(error.starts_with("min-checkpoints: not supported: no time passes"), "{error}");
    }
}
