//! The flags of the recommender, under their upstream names.
//!
//! Upstream: `pkg/recommender/config/config.go`, `common/flags.go`

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::quantity::Quantity;
use crate::time::Span;

/// Flags of the recommender that have an effect on recommendations, conditions or checkpoints.
/// `Default` gives upstream's defaults. Each field has the flag's name in snake case.
#[derive(Clone, PartialEq, Debug)]
pub struct RecommenderFlags {
    /// The name of the recommender.
    pub recommender_name: String,
    /// The time between two runs.
    pub recommender_interval: Span,
    /// The time between two deletions of checkpoints without a VPA.
    pub checkpoints_gc_interval: Span,
    /// Where the history is stored: `prometheus`, or in checkpoints.
    pub storage: String,
    /// Track only pods of VPAs.
    pub memory_saver: bool,
    /// The fraction of the usage that is added.
    pub recommendation_margin_fraction: f64,
    /// The smallest CPU recommendation for a pod, in millicores.
    pub pod_recommendation_min_cpu_millicores: f64,
    /// The smallest memory recommendation for a pod, in MiB.
    pub pod_recommendation_min_memory_mb: f64,
    /// The percentile of the CPU target.
    pub target_cpu_percentile: f64,
    /// The percentile of the CPU lower bound.
    pub recommendation_lower_bound_cpu_percentile: f64,
    /// The percentile of the CPU upper bound.
    pub recommendation_upper_bound_cpu_percentile: f64,
    /// The length of history with a CPU confidence of 1.
    pub confidence_interval_cpu: Span,
    /// The percentile of the memory target.
    pub target_memory_percentile: f64,
    /// The percentile of the memory lower bound.
    pub recommendation_lower_bound_memory_percentile: f64,
    /// The percentile of the memory upper bound.
    pub recommendation_upper_bound_memory_percentile: f64,
    /// The length of history with a memory confidence of 1.
    pub confidence_interval_memory: Span,
    /// Round memory to two decimals of its largest unit.
    pub humanize_memory: bool,
    /// Round CPU up to a multiple of this, in millicores.
    pub round_cpu_millicores: i64,
    /// Round memory up to a multiple of this, in bytes.
    pub round_memory_bytes: i64,
    /// The interval with one memory peak per container.
    pub memory_aggregation_interval: Span,
    /// The number of intervals after which samples expire.
    pub memory_aggregation_interval_count: i64,
    /// The half-life of memory samples.
    pub memory_histogram_decay_half_life: Span,
    /// The half-life of CPU samples.
    pub cpu_histogram_decay_half_life: Span,
    /// The factor of memory after an OOM kill.
    pub oom_bump_up_ratio: f64,
    /// The smallest increase of memory after an OOM kill, in bytes.
    pub oom_min_bump_up_bytes: f64,
    /// Round CPU up to whole cores for containers that an annotation of the VPA selects.
    pub cpu_integer_post_processor_enabled: bool,
    /// The largest CPU recommendation for a container without its own limit.
    pub container_recommendation_max_allowed_cpu: Option<Quantity>,
    /// The largest memory recommendation for a container without its own limit.
    pub container_recommendation_max_allowed_memory: Option<Quantity>,
    /// The only namespace, if set.
    pub vpa_object_namespace: String,
    /// Namespaces that are ignored, separated by commas.
    pub ignored_vpa_object_namespaces: String,
    /// The feature gate `PerVPAConfig`.
    pub per_vpa_config: bool,
}

impl Default for RecommenderFlags {
    fn default() -> RecommenderFlags {
        let day = Span::from_mins(24 * 60);
        RecommenderFlags {
            recommender_name: "default".to_owned(),
            recommender_interval: Span::from_mins(1),
            checkpoints_gc_interval: Span::from_mins(10),
            storage: String::new(),
            memory_saver: false,
            recommendation_margin_fraction: 0.15,
            pod_recommendation_min_cpu_millicores: 25.0,
            pod_recommendation_min_memory_mb: 250.0,
            target_cpu_percentile: 0.9,
            recommendation_lower_bound_cpu_percentile: 0.5,
            recommendation_upper_bound_cpu_percentile: 0.95,
            confidence_interval_cpu: day,
            target_memory_percentile: 0.9,
            recommendation_lower_bound_memory_percentile: 0.5,
            recommendation_upper_bound_memory_percentile: 0.95,
            confidence_interval_memory: day,
            humanize_memory: false,
            round_cpu_millicores: 1,
            round_memory_bytes: 1,
            memory_aggregation_interval: day,
            memory_aggregation_interval_count: 8,
            memory_histogram_decay_half_life: day,
            cpu_histogram_decay_half_life: day,
            oom_bump_up_ratio: 1.2,
            oom_min_bump_up_bytes: 100.0 * 1024.0 * 1024.0,
            cpu_integer_post_processor_enabled: false,
            container_recommendation_max_allowed_cpu: None,
            container_recommendation_max_allowed_memory: None,
            vpa_object_namespace: String::new(),
            ignored_vpa_object_namespaces: String::new(),
            per_vpa_config: false,
        }
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
    /// The names of all supported flags.
    pub const NAMES: [&str; 31] = [
        "checkpoints-gc-interval",
        "confidence-interval-cpu",
        "confidence-interval-memory",
        "container-recommendation-max-allowed-cpu",
        "container-recommendation-max-allowed-memory",
        "cpu-histogram-decay-half-life",
        "cpu-integer-post-processor-enabled",
        "feature-gates",
        "humanize-memory",
        "ignored-vpa-object-namespaces",
        "memory-aggregation-interval",
        "memory-aggregation-interval-count",
        "memory-histogram-decay-half-life",
        "memory-saver",
        "oom-bump-up-ratio",
        "oom-min-bump-up-bytes",
        "pod-recommendation-min-cpu-millicores",
        "pod-recommendation-min-memory-mb",
        "recommendation-lower-bound-cpu-percentile",
        "recommendation-lower-bound-memory-percentile",
        "recommendation-margin-fraction",
        "recommendation-upper-bound-cpu-percentile",
        "recommendation-upper-bound-memory-percentile",
        "recommender-interval",
        "recommender-name",
        "round-cpu-millicores",
        "round-memory-bytes",
        "storage",
        "target-cpu-percentile",
        "target-memory-percentile",
        "vpa-object-namespace",
    ];

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
            let set = flags.set_general(name, value);
            let set = set.or_else(|| flags.set_estimation(name, value));
            set.or_else(|| flags.set_aggregation(name, value))
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

    fn set_general(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let text = |field: &mut String| {
            value.clone_into(field);
            Ok(())
        };
        Some(match name {
            "recommender-name" => text(&mut self.recommender_name),
            "recommender-interval" => positive(value, &mut self.recommender_interval),
            "checkpoints-gc-interval" => parse(value, &mut self.checkpoints_gc_interval),
            "storage" => text(&mut self.storage),
            "memory-saver" => parse(value, &mut self.memory_saver),
            "vpa-object-namespace" => text(&mut self.vpa_object_namespace),
            "ignored-vpa-object-namespaces" => text(&mut self.ignored_vpa_object_namespaces),
            "feature-gates" => match value {
                "PerVPAConfig=true" | "PerVPAConfig=false" => {
                    self.per_vpa_config = value.ends_with("true");
                    Ok(())
                }
                _ => Err("expected `PerVPAConfig=true` or `PerVPAConfig=false`".to_owned()),
            },
            _ => return None,
        })
    }

    fn set_estimation(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let float = |field: &mut f64| parse(value, field);
        Some(match name {
            "recommendation-margin-fraction" => float(&mut self.recommendation_margin_fraction),
            "pod-recommendation-min-cpu-millicores" => {
                float(&mut self.pod_recommendation_min_cpu_millicores)
            }
            "pod-recommendation-min-memory-mb" => float(&mut self.pod_recommendation_min_memory_mb),
            "target-cpu-percentile" => float(&mut self.target_cpu_percentile),
            "recommendation-lower-bound-cpu-percentile" => {
                float(&mut self.recommendation_lower_bound_cpu_percentile)
            }
            "recommendation-upper-bound-cpu-percentile" => {
                float(&mut self.recommendation_upper_bound_cpu_percentile)
            }
            "confidence-interval-cpu" => positive(value, &mut self.confidence_interval_cpu),
            "target-memory-percentile" => float(&mut self.target_memory_percentile),
            "recommendation-lower-bound-memory-percentile" => {
                float(&mut self.recommendation_lower_bound_memory_percentile)
            }
            "recommendation-upper-bound-memory-percentile" => {
                float(&mut self.recommendation_upper_bound_memory_percentile)
            }
            "confidence-interval-memory" => positive(value, &mut self.confidence_interval_memory),
            "humanize-memory" => parse(value, &mut self.humanize_memory),
            "round-cpu-millicores" => parse(value, &mut self.round_cpu_millicores),
            "round-memory-bytes" => parse(value, &mut self.round_memory_bytes),
            _ => return None,
        })
    }

    fn set_aggregation(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let quantity = |field: &mut Option<Quantity>| {
            let quantity = Quantity::parse_stored(value).map_err(|error| error.to_string())?;
            *field = Some(quantity).filter(|quantity| quantity.sign() != 0);
            Ok(())
        };
        Some(match name {
            "memory-aggregation-interval" => positive(value, &mut self.memory_aggregation_interval),
            "memory-aggregation-interval-count" => {
                parse(value, &mut self.memory_aggregation_interval_count)
            }
            "memory-histogram-decay-half-life" => {
                positive(value, &mut self.memory_histogram_decay_half_life)
            }
            "cpu-histogram-decay-half-life" => {
                positive(value, &mut self.cpu_histogram_decay_half_life)
            }
            "oom-bump-up-ratio" => parse(value, &mut self.oom_bump_up_ratio),
            "oom-min-bump-up-bytes" => parse(value, &mut self.oom_min_bump_up_bytes),
            "cpu-integer-post-processor-enabled" => {
                parse(value, &mut self.cpu_integer_post_processor_enabled)
            }
            "container-recommendation-max-allowed-cpu" => {
                quantity(&mut self.container_recommendation_max_allowed_cpu)
            }
            "container-recommendation-max-allowed-memory" => {
                quantity(&mut self.container_recommendation_max_allowed_memory)
            }
            _ => return None,
        })
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
