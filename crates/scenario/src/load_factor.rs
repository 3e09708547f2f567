//! A scenario with a multiple of its load.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::resolved::{Modified, Modifier, Scenario, Signal};
use kube_autoscaler_models::quantity::{Format, Quantity};

/// A positive factor of a load, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoadFactor(i64);

impl LoadFactor {
    /// The factor that leaves the load unchanged.
    pub const ONE: LoadFactor = LoadFactor(1000);

    /// A factor from thousandths, at least 0.001.
    #[must_use]
    pub fn from_milli(milli: i64) -> LoadFactor {
        LoadFactor(milli.max(1))
    }

    /// The factor in thousandths.
    #[must_use]
    pub fn milli(self) -> i64 {
        self.0
    }

    fn as_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// The largest factor.
const LARGEST: f64 = 1_000_000.0;

impl FromStr for LoadFactor {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadFactor, String> {
        let number: Option<f64> = text.parse().ok().filter(|it| (0.001..=LARGEST).contains(it));
        let milli = number.map(|number| (number * 1000.0).round());
        let exact =
            milli.filter(|milli| number.is_some_and(|it| (it * 1000.0 - milli).abs() < 1e-6));
        exact.map(|milli| LoadFactor(milli as i64)).ok_or_else(|| {
            format!(
                "{text}: expected a factor from 0.001 to {LARGEST} with at most three decimal \
                 places, such as 1.5"
            )
        })
    }
}

impl fmt::Display for LoadFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// As a number.
impl Serialize for LoadFactor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

/// The factors by which loads are multiplied, of all metrics or of one: `1,2,4`, `cpu=0.5..4:0.5`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadFactors {
    /// The metric whose load is multiplied. None: all metrics.
    pub metric: Option<String>,
    /// The factors, in order.
    pub factors: Vec<LoadFactor>,
}

/// The largest number of factors.
const MOST: i64 = 100;

impl FromStr for LoadFactors {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadFactors, String> {
        let (metric, list) = match text.rsplit_once('=') {
            Some((metric, list)) => (Some(metric.to_owned()), list),
            None => (None, text),
        };
        let mut factors = match list.split_once("..") {
            Some((from, rest)) => range(from, rest)?,
            None => list.split(',').map(|it| it.trim().parse()).collect::<Result<_, _>>()?,
        };
        factors.sort_unstable();
        factors.dedup();
        match factors.len() as i64 {
            2..=MOST => Ok(LoadFactors { metric, factors }),
            1 => Err(format!("{text}: expected several factors, for example 1,2,4 or 0.5..4:0.5")),
            many => Err(format!("{text}: expected at most {MOST} factors, found {many}")),
        }
    }
}

/// Reads `A..B:STEP`. `rest`: the part after the dots.
fn range(from: &str, rest: &str) -> Result<Vec<LoadFactor>, String> {
    let (to, step) = rest.split_once(':').ok_or_else(|| {
        format!("{from}..{rest}: the step is missing, for example {from}..{rest}:0.5")
    })?;
    let (from, to): (LoadFactor, LoadFactor) = (from.trim().parse()?, to.trim().parse()?);
    let step: LoadFactor = step.trim().parse()?;
    if from >= to {
        return Err(format!("{from}..{to}: the second factor is not larger than the first one"));
    }
    // One more than the limit, which the caller reports.
    let count = ((to.0 - from.0) / step.0).min(MOST);
    Ok((0..=count).map(|n| LoadFactor(from.0 + n * step.0)).collect())
}

/// The scenario with its load multiplied by a factor: of all metrics, or of those with a name. The
/// factor 1 changes nothing. None: the scenario has no such metric.
#[must_use]
pub fn with_load_factor(
    scenario: &Scenario,
    factor: LoadFactor,
    metric: Option<&str>,
) -> Option<Scenario> {
    let mut varied = scenario.clone();
    let quantity = Quantity::from_milli(factor.0, Format::DecimalSI);
    let mut has_metric = false;
    for (name, signal) in varied.metrics.named_signals_mut() {
        if metric.is_some_and(|metric| *metric != *name) {
            continue;
        }
        has_metric = true;
        // A backlog can't be part of another signal: the factor multiplies the arriving work.
        let signal = match signal {
            Signal::Backlog(backlog) => &mut *backlog.arrivals,
            other => other,
        };
        if factor != LoadFactor::ONE {
            let of = Box::new(std::mem::replace(signal, Signal::zero()));
            let by = Modifier::Factor(Box::new(Signal::Constant(quantity.clone())));
            *signal = Signal::Modified(Modified { by, of });
        }
    }
    has_metric.then_some(varied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{WEB, scenario};

    #[test]
    fn factors_are_lists_or_ranges() {
        let read = |text: &str| {
            let factors = text.parse::<LoadFactors>()?;
            let list: Vec<String> = factors.factors.iter().map(ToString::to_string).collect();
            Ok::<_, String>((factors.metric, list.join(" ")))
        };
        assert_eq!(read("1,4,2, 2"), Ok((None, "1 2 4".to_owned())));
        assert_eq!(read("cpu=0.5..2:0.5"), Ok((Some("cpu".to_owned()), "0.5 1 1.5 2".to_owned())));
        assert_eq!(read("a=b=1,2"), Ok((Some("a=b".to_owned()), "1 2".to_owned())));
        for (text, expected) in [
            ("2", "expected several factors"),
            ("1,x", "x: expected a factor from 0.001"),
            ("1,0", "0: expected a factor from 0.001"),
            ("1,-2", "-2: expected a factor"),
            ("1,0.0001", "expected a factor from 0.001"),
            ("1,1.0001", "at most three decimal places"),
            ("1,NaN", "expected a factor"),
            ("1..4", "the step is missing, for example 1..4:0.5"),
            ("4..1:1", "4..1: the second factor is not larger"),
            ("1..2:0", "0: expected a factor"),
            ("1..1000:0.001", "at most 100 factors, found 101"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_factor_multiplies_the_arriving_work_of_a_backlog() {
        let text = WEB.replace("perPod: 500m", "load: {backlog: \"3\", initial: \"2\"}, limit: 1");
        let varied = with_load_factor(&scenario(&text), LoadFactor::from_milli(2000), None);
        let metrics = serde_json::to_value(&varied.expect("a metric").metrics).expect("JSON");
        let expected = serde_json::json!({"backlog": {"factor": "2", "of": "3"}, "initial": "2"});
        assert_eq!(metrics["resource"][0]["load"], expected);
    }

    #[test]
    fn a_factor_multiplies_the_signals_of_a_metric() {
        let before = scenario(WEB);
        let twice = LoadFactor::from_milli(2000);
        let constant = |scenario: &Scenario| {
            let metrics = serde_json::to_value(&scenario.metrics).expect("JSON");
            metrics["resource"][0]["perPod"].clone()
        };
        for metric in [None, Some("cpu")] {
            let varied = with_load_factor(&before, twice, metric).expect("a metric");
            assert_eq!(constant(&varied), serde_json::json!({"factor": "2", "of": "500m"}));
        }
        assert!(with_load_factor(&before, twice, Some("memory")).is_none());
        let same = with_load_factor(&before, LoadFactor::ONE, None).expect("a metric");
        assert_eq!(constant(&same), serde_json::json!("500m"));
    }
}
