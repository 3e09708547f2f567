//! The load that a pod serves well, in place of the target of a metric.

use std::str::FromStr;

use kube_autoscaler_models::derivation::Target;
use kube_autoscaler_models::quantity::Quantity;

/// The load per pod up to which pods serve well, for one metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// The name of the metric.
    pub metric: String,
    amount: Amount,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Amount {
    /// Percent of the request.
    Percent(i32),
    /// Thousandths.
    Milli(i64),
}

impl Capacity {
    /// The capacity in the unit of a target.
    ///
    /// # Errors
    /// If it has another unit.
    pub(crate) fn in_unit_of(&self, target: Target) -> Result<Target, String> {
        let Capacity { metric, amount } = self;
        match (target, *amount) {
            (Target::Utilization(_), Amount::Percent(percent)) => Ok(Target::Utilization(percent)),
            (Target::AverageValue(_), Amount::Milli(milli)) => Ok(Target::AverageValue(milli)),
            (Target::Value(_), Amount::Milli(milli)) => Ok(Target::Value(milli)),
            (Target::Utilization(_), _) => Err(format!(
                "the capacity of {metric} must be in percent of the request, as its target is: \
                 {metric}=90%"
            )),
            _ => Err(format!(
                "the capacity of {metric} must be a quantity, as its target is: {metric}=AMOUNT"
            )),
        }
    }
}

/// `cpu=90%`, `requests_per_second=120`.
impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Capacity, String> {
        let invalid =
            || format!("{text:?}: expected METRIC=AMOUNT, for example cpu=90% or requests=120");
        let (metric, amount) = text.split_once('=').ok_or_else(invalid)?;
        let (metric, amount) = (metric.trim(), amount.trim());
        let amount = match amount.strip_suffix('%') {
            Some(percent) => Amount::Percent(percent.parse().map_err(|_| invalid())?),
            None => Amount::Milli(amount.parse::<Quantity>().map_err(|_| invalid())?.milli()),
        };
        let is_positive = match amount {
            Amount::Percent(percent) => percent > 0,
            Amount::Milli(milli) => milli > 0,
        };
        if metric.is_empty() || !is_positive {
            return Err(invalid());
        }
        Ok(Capacity { metric: metric.to_owned(), amount })
    }
}
