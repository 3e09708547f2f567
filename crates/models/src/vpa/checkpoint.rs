//! The content of a checkpoint, in the JSON form of the API.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::histogram::{BucketWeight, HistogramCheckpoint};
use super::time::GoTime;

/// The version of checkpoints that the recommender reads and writes.
pub(super) const VERSION: &str = "v3";

/// The aggregated samples of a container of a VPA.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckpointStatus {
    /// The time of the write.
    #[serde(with = "api_time")]
    pub last_update_time: GoTime,
    /// The version of the format.
    pub version: Cow<'static, str>,
    /// The CPU histogram.
    #[serde(rename = "cpuHistogram")]
    pub cpu: HistogramCheckpoint,
    /// The histogram of memory peaks, which most writes do not change.
    #[serde(rename = "memoryHistogram")]
    pub memory: Arc<HistogramCheckpoint>,
    /// The time of the first CPU sample.
    #[serde(with = "api_time")]
    pub first_sample_start: GoTime,
    /// The time of the last CPU sample.
    #[serde(with = "api_time")]
    pub last_sample_start: GoTime,
    /// The number of CPU samples.
    pub total_samples_count: i64,
}

/// Times in whole seconds; the zero time is `null`.
pub(super) mod api_time {
    use jiff::Timestamp;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    use super::GoTime;

    /// Writes a time.
    ///
    /// # Errors
    /// If the serializer fails.
    pub(crate) fn serialize<S: Serializer>(
        time: &GoTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time.is_zero() {
            true => serializer.serialize_none(),
            false => serializer.collect_str(time),
        }
    }

    /// Reads a time.
    ///
    /// # Errors
    /// If the text is not a timestamp.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<GoTime, D::Error> {
        let timestamp = Option::<Timestamp>::deserialize(deserializer)?;
        Ok(timestamp.map_or(GoTime::ZERO, GoTime::from_timestamp))
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    #[serde(with = "api_time")]
    reference_timestamp: GoTime,
    bucket_weights: BTreeMap<String, u32>,
    total_weight: f64,
}

impl Serialize for HistogramCheckpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let weights = self.weights.iter().map(|it| (it.bucket.to_string(), it.weight));
        let written = Written {
            reference_timestamp: self.reference,
            bucket_weights: weights.collect(),
            total_weight: self.total,
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HistogramCheckpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let weights = written.bucket_weights.into_iter().map(|(bucket, weight)| {
            let bucket = bucket.parse().map_err(D::Error::custom)?;
            Ok(BucketWeight { bucket, weight })
        });
        let mut weights: Vec<BucketWeight> = weights.collect::<Result<_, D::Error>>()?;
        weights.sort_unstable_by_key(|weight| weight.bucket);
        let (reference, total) = (written.reference_timestamp, written.total_weight);
        Ok(HistogramCheckpoint { reference, weights, total })
    }
}
