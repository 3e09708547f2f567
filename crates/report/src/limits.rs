//! The limits of an HPA that apply at different load factors.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::comparison::{FiguresTable, Line, SettingName, ticks};
use kube_autoscaler_models::derivation::Limit;
use kube_lockstep_scenario::load_factor::LoadFactor;
use kube_lockstep_sim::run::FreeRun;

/// The names of the limits, in the order of the columns.
const NAMES: [&str; 5] = ["minimum", "maximum", "scale-up rate", "scale-down rate", "window"];
/// Their names in JSON.
const JSON_NAMES: [&str; NAMES.len()] =
    ["minimum", "maximum", "scaleUpRate", "scaleDownRate", "window"];

/// The limits that apply in at least one reconcile of a prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AppliedLimits([bool; NAMES.len()]);

impl AppliedLimits {
    /// The limits of the HPAs of the first target.
    #[must_use]
    pub fn new(run: &FreeRun) -> AppliedLimits {
        let mut applied = AppliedLimits::default();
        for limit in ticks(run).flat_map(|tick| tick.derivation.applied_limits()) {
            let index = match limit {
                Limit::Min => 0,
                Limit::Max => 1,
                Limit::ScaleUpPolicy | Limit::ScaleUpLimit => 2,
                Limit::ScaleDownPolicy => 3,
                Limit::Stabilization | Limit::ForbiddenWindow => 4,
                _ => continue,
            };
            applied.0[index] = true;
        }
        applied
    }
}

/// The load factors at which each limit of a setting applies.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsByLoad {
    /// The name of the setting.
    #[serde(flatten)]
    pub setting: SettingName,
    /// The release of Kubernetes.
    pub release: String,
    /// The ranges of factors at which each limit applies.
    #[serde(rename = "limitsApply", serialize_with = "by_name")]
    ranges: [Vec<Range>; NAMES.len()],
}

/// Writes the ranges as a map by the names of the limits.
fn by_name<S: Serializer>(
    ranges: &[Vec<Range>; NAMES.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(JSON_NAMES.iter().zip(ranges))
}

/// A range of load factors, both included. None: the range starts or ends outside the given
/// factors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
struct Range {
    from: Option<LoadFactor>,
    to: Option<LoadFactor>,
}

impl LimitsByLoad {
    /// Finds the factors at which limits start and stop applying, with a precision of about 1%.
    /// `known`: the limits at the given factors, at least two. `applied_at` predicts the limits at
    /// another factor; None: the prediction has no result. Between two neighbouring factors, at
    /// most one change of a limit is found.
    pub fn new(
        setting: SettingName,
        release: String,
        known: impl IntoIterator<Item = (LoadFactor, AppliedLimits)>,
        mut applied_at: impl FnMut(LoadFactor) -> Option<AppliedLimits>,
    ) -> LimitsByLoad {
        let mut known: BTreeMap<LoadFactor, AppliedLimits> = known.into_iter().collect();
        let given: Vec<LoadFactor> = known.keys().copied().collect();
        for index in 0..NAMES.len() {
            for pair in given.windows(2) {
                let (mut low, mut high) = (pair[0], pair[1]);
                if known[&low].0[index] == known[&high].0[index] {
                    continue;
                }
                let before = known[&low].0[index];
                while high.milli() - low.milli() > (low.milli() / 100).max(1) {
                    let middle = LoadFactor::from_milli(low.milli().midpoint(high.milli()));
                    let applied = known.get(&middle).copied().or_else(|| applied_at(middle));
                    let Some(applied) = applied else { break };
                    known.insert(middle, applied);
                    match applied.0[index] == before {
                        true => low = middle,
                        false => high = middle,
                    }
                }
            }
        }
        let ranges = std::array::from_fn(|limit| ranges(&known, limit));
        LimitsByLoad { setting, release, ranges }
    }
}

/// The ranges of factors at which a limit applies.
fn ranges(known: &BTreeMap<LoadFactor, AppliedLimits>, limit: usize) -> Vec<Range> {
    let points: Vec<(LoadFactor, bool)> =
        known.iter().map(|(factor, applied)| (*factor, applied.0[limit])).collect();
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let runs = points.chunk_by(|one, other| one.1 == other.1).filter(|run| run[0].1);
    let range = |run: &[(LoadFactor, bool)]| Range {
        from: Some(run[0].0).filter(|from| *from != first),
        to: Some(run[run.len() - 1].0).filter(|to| *to != last),
    };
    runs.map(range).collect()
}

/// `from ×1.62`, `up to ×0.4`, `always`.
fn text(ranges: &[Range]) -> String {
    let range = |range: &Range| match (range.from, range.to) {
        (None, None) => "always".to_owned(),
        (Some(from), None) => format!("from ×{from}"),
        (None, Some(to)) => format!("up to ×{to}"),
        (Some(from), Some(to)) if from == to => format!("×{from}"),
        (Some(from), Some(to)) => format!("×{from} to ×{to}"),
    };
    match ranges {
        [] => "never".to_owned(),
        ranges => ranges.iter().map(range).collect::<Vec<_>>().join(", "),
    }
}

/// The table of the limits. None: there are no load factors.
pub(super) fn limits_table(limits: &[LimitsByLoad]) -> Option<FiguresTable> {
    let first = limits.first()?;
    let several_releases = limits.iter().any(|it| it.release != first.release);
    let release = several_releases.then_some("release");
    let head = ["limits apply at load"].into_iter().chain(release).chain(NAMES).collect();
    let line = |it: &LimitsByLoad| {
        let release = several_releases.then(|| it.release.clone());
        let cells = it.ranges.iter().map(|ranges| text(ranges));
        let cells = [it.setting.to_string()].into_iter().chain(release).chain(cells).collect();
        Line { cells, is_detail: false }
    };
    Some(FiguresTable { head, lines: limits.iter().map(line).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of a setting whose maximum applies from one factor on, and whose minimum applies
    /// up to another one.
    fn limits(maximum: i64, minimum: i64) -> (LimitsByLoad, Vec<LoadFactor>) {
        let applied = |factor: LoadFactor| {
            let milli = factor.milli();
            AppliedLimits([milli <= minimum, milli >= maximum, true, false, milli / 500 == 3])
        };
        let given = [500, 1000, 1500, 2000, 4000].map(LoadFactor::from_milli);
        let mut predicted = Vec::new();
        let known = given.map(|factor| (factor, applied(factor)));
        let limits =
            LimitsByLoad::new(SettingName::default(), "1.37".to_owned(), known, |factor| {
                predicted.push(factor);
                Some(applied(factor))
            });
        (limits, predicted)
    }

    #[test]
    fn the_factors_of_limits_are_exact_to_one_percent() {
        for maximum in [501, 777, 1000, 1618, 2001, 3999] {
            let (limits, predicted) = limits(maximum, 640);
            let [only] = limits.ranges[1][..] else { panic!("{limits:?}") };
            let from = only.from.expect("it starts within the factors").milli();
            assert!((maximum..=maximum + maximum / 99).contains(&from), "{maximum}: {from}");
            let to = limits.ranges[0][0].to.expect("it ends within the factors").milli();
            assert!((640 - 7..=640).contains(&to), "{to}");
            // Four changes, each within 2000 thousandths or less.
            assert!(predicted.len() <= 4 * 8, "{}", predicted.len());
        }
    }

    #[test]
    fn ranges_are_shown_as_text() {
        let (limits, _) = limits(1500, 499);
        let texts = limits.ranges.map(|ranges| text(&ranges));
        let [minimum, maximum, up, down, window] = &texts;
        assert_eq!([minimum, up, down], ["never", "always", "never"], "{texts:?}");
        assert!(maximum.starts_with("from ×1.5"), "{maximum}");
        assert!(window.starts_with("×1.5 to ×1.9"), "{window}");
    }
}
