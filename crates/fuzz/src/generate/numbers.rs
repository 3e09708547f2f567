//! Amounts close to a target, in different notations.

use super::edge::Edge;
use super::{Aim, CUSTOM, Draft, Tolerances};
use crate::area::Area;
use kube_autoscaler_models::quantity::{Format, Quantity};

/// Unusual quantities: fractions of a milli-unit, other scales, values close to overflow.
const ODD: [&str; 22] = [
    "0",
    "1n",
    "1u",
    "999u",
    "1001u",
    "0.0005",
    "1e-4",
    "123456789n",
    "1m",
    "0.1",
    "1.1",
    "1e3",
    "100k",
    "3Ki",
    "1.5Gi",
    "1G",
    "9P",
    "9223372036854775",
    "9223372036854775807",
    "8E",
    "7Ei",
    "1e15",
];

/// The usage of one pod, usually at a boundary of the decision.
pub(super) fn usage(draft: &mut Draft, aim: Aim) -> i64 {
    let target = aim.milli.max(1);
    let Tolerances { down, up } = aim.tolerances;
    let share = |thousandths: i64| (i128::from(target) * i128::from(thousandths) / 1000) as i64;
    if let Edge::Percent { up, .. } = draft.edge
        && draft.dice.percent(60)
    {
        // Far enough that the policy is the limit.
        let far = if up { draft.dice.between(3000, 9000) } else { draft.dice.between(0, 200) };
        return share(far);
    }
    let base = match draft.dice.below(14) {
        0 => target,
        1 | 2 => share(1000 + up),
        3 | 4 => share(1000 - down),
        5 => 0,
        6 => share(500),
        7 => share(2000),
        // The product with the number of pods is a whole number.
        8 | 9 => {
            let pods = i64::from(draft.replicas.max(1));
            let desired = draft.dice.between(0, pods * 3);
            (i128::from(target) * i128::from(desired) / i128::from(pods)) as i64
        }
        10 => share(draft.dice.between(0, 12_000)),
        _ => share(draft.dice.between(0, 2500)),
    };
    let unit = if aim.resource == 1 { 1000 } else { 1 };
    let beside = if aim.requests > 0 {
        // The utilization is truncated to whole percents of the request.
        let percent = (aim.requests / 100).max(1);
        draft.dice.weighted(&[(5, 0), (3, unit), (3, -unit), (1, percent), (1, -percent)])
    } else {
        draft.dice.weighted(&[(5, 0), (3, unit), (3, -unit)])
    };
    let usage = base.saturating_add(beside);
    // The API of custom metrics allows negative values.
    if aim.resource == CUSTOM && draft.dice.percent(3) {
        return usage.saturating_neg();
    }
    usage.max(0)
}

/// A quantity in milli-units, in one of several notations; sometimes an unusual quantity.
pub(super) fn quantity(draft: &mut Draft, milli: i64) -> Quantity {
    let odd = if draft.area == Area::Quantities { 12 } else { 1 };
    if draft.dice.percent(odd) {
        let text = draft.dice.pick(&ODD);
        return parsed(text);
    }
    parsed(&spelt(draft, milli))
}

/// Like [`quantity`], but more than zero.
pub(super) fn positive(draft: &mut Draft, milli: i64) -> Quantity {
    let quantity = quantity(draft, milli.max(1));
    if quantity.sign() > 0 { quantity } else { parsed("1") }
}

fn spelt(draft: &mut Draft, milli: i64) -> String {
    let many = if draft.area == Area::Quantities { 8 } else { 3 };
    if milli < 0 {
        return format!("-{}", spelt(draft, milli.saturating_neg()));
    }
    let whole = milli / 1000;
    match draft.dice.below(many) {
        3 => format!("{milli}000u"),
        // A slightly larger value, which is rounded up.
        4 if (0..9_000_000_000).contains(&milli) => format!("{milli}000001n"),
        5 => format!("{}.{:03}", whole, milli % 1000),
        6 => format!("{milli}e-3"),
        7 if milli % 1_000_000 == 0 => format!("{}k", milli / 1_000_000),
        0 | 1 if milli % 1000 != 0 => format!("{milli}m"),
        0 if whole > 0 && whole % 1024 == 0 => format!("{}Ki", whole / 1024),
        2 => format!("{milli}m"),
        _ if milli % 1000 == 0 => whole.to_string(),
        _ => format!("{milli}m"),
    }
}

/// Zero for text that is not a quantity, which does not occur.
pub(super) fn parsed(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|_| Quantity::from_milli(0, Format::DecimalSI))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_unusual_quantities_are_valid() {
        for text in ODD {
            assert!(Quantity::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn all_notations_of_a_number_are_equal() {
        let mut draft = Draft { area: Area::Quantities, ..Draft::default() };
        for milli in [0, 1, 999, 1000, 1_048_576_000, 2_000_000, 12_345] {
            for _ in 0..50 {
                let text = spelt(&mut draft, milli);
                let read = parsed(&text).milli();
                // A slightly larger value is rounded up.
                let more = i64::from(text.ends_with('n'));
                assert_eq!(read, milli + more, "{text}");
            }
        }
    }
}
