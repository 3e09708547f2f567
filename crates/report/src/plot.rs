//! The charts of a prediction in a terminal: the replicas, the metrics that decide about them, and
//! the recommendations of VPAs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chart::{self, Picture};
use super::metric;
use super::scale::ValueAxis;
use super::style::{DIM, paint};
use super::table::points;
use kube_autoscaler_models::derivation::MetricDerivation;
use kube_autoscaler_models::quantity::human;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ContainerRecommendation, Resource, Snapshot};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::FreeRun;

/// The maximum number of metrics with a chart.
const METRICS: usize = 2;

/// The maximum number of charts of the recommendation of a VPA.
const RECOMMENDATIONS: usize = 4;

/// The approximate number of rows of a chart, and of its labels above 0.
#[derive(Clone, Copy, Debug)]
struct Height {
    rows: usize,
    labels: usize,
}

impl Height {
    /// A chart with a target needs more rows: otherwise, values near the target cover it.
    fn of(target: Option<f64>) -> Height {
        match target {
            Some(_) => Height { rows: 8, labels: 4 },
            None => Height { rows: 4, labels: 2 },
        }
    }
}

/// The charts, each after an empty line. Values that never change have no chart.
pub(crate) fn all(scenario: &Scenario, run: &FreeRun, columns: usize) -> String {
    let replicas = chart::replicas(&points(scenario, run, 0), scenario.until, columns);
    let mut out = titled("replicas", &replicas);
    for metric in metrics(run) {
        let (values, target) = (&metric.values, metric::target(metric.like));
        let picture = picture(values, target, metric.unit(), scenario.until, columns);
        out.push_str(&titled(&metric.title(), &picture));
    }
    out
}

fn titled(title: &str, picture: &str) -> String {
    match picture.is_empty() {
        true => String::new(),
        false => format!("\n{}\n{picture}", paint(DIM, title)),
    }
}

/// Values, in order: each holds until the next one. `None`: there is no value.
type Values = Vec<(Time, Option<f64>)>;

/// A metric of the first HPA over time.
struct Metric<'a> {
    /// Name, unit and target, as seen first.
    like: &'a MetricDerivation,
    values: Values,
}

/// The first metrics of the first HPA.
fn metrics(run: &FreeRun) -> Vec<Metric<'_>> {
    let Some(first) = run.ticks.first() else { return Vec::new() };
    let own = || run.ticks.iter().filter(|tick| tick.observation.hpa == first.observation.hpa);
    let seen = own().map(|tick| tick.derivation.metrics.as_slice());
    let like = seen.max_by_key(|metrics| metrics.len()).unwrap_or_default();
    let values = |like: &MetricDerivation| {
        let of = |metric: &&MetricDerivation| metric::is_same(metric, like);
        let at = |tick: &kube_lockstep_sim::run::FreeTick| {
            let metric = tick.derivation.metrics.iter().find(of);
            (tick.observation.at, metric.and_then(metric::value))
        };
        own().map(at).collect()
    };
    like.iter().take(METRICS).map(|like| Metric { like, values: values(like) }).collect()
}

impl Metric<'_> {
    fn unit(&self) -> Unit {
        match metric::unit(self.like) {
            metric::Unit::Percent => Unit::Percent,
            _ if self.like.is_in_bytes() => Unit::Bytes,
            _ => Unit::Decimal,
        }
    }

    /// `cpu; the dotted line is the target, 50%`.
    fn title(&self) -> String {
        let mut title = self.like.title();
        if let Some(target) = metric::target(self.like) {
            let target = match self.unit() {
                Unit::Percent => Unit::Percent.text(target),
                Unit::Bytes | Unit::Decimal => self.like.amount(target as i64),
            };
            let _ = write!(title, "; the dotted line is the target, {target}");
        }
        title
    }
}

/// The unit of the values of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Percent,
    /// Thousandths of a byte.
    Bytes,
    /// Thousandths of anything else.
    Decimal,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Unit::Percent => format!("{value:.0}%"),
            Unit::Bytes => human::bytes(value),
            Unit::Decimal => human::decimal(value.round() as i64),
        }
    }

    fn axis(self, largest: f64, labels: usize) -> ValueAxis {
        match self {
            Unit::Percent | Unit::Decimal => {
                ValueAxis::up_to(largest, 1.0, labels, self == Unit::Percent)
            }
            // Labels are at round numbers of binary units.
            Unit::Bytes => {
                let power = (largest / 1000.0).log2().max(0.0).div_euclid(10.0);
                let size = 1000.0 * 1024_f64.powf(power);
                ValueAxis::up_to(largest / size, 1.0, labels, false).times(size)
            }
        }
    }
}

/// Draws values, and a dotted line for the target, if any. Empty if the values never change, or if
/// none is above 0.
fn picture(
    values: &[(Time, Option<f64>)],
    target: Option<f64>,
    unit: Unit,
    end: Time,
    columns: usize,
) -> String {
    let largest = values.iter().filter_map(|(_, value)| *value).chain(target).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let label = |value: f64| unit.text(value);
    let Height { rows, labels } = Height::of(target);
    let axis = unit.axis(largest, labels);
    Picture { values, target, end, axis, label: &label, rows, columns }.draw()
}

/// Charts of the targets that a VPA recommends, each after an empty line. Targets that never change
/// have no chart.
pub(crate) fn recommendations(
    snapshots: &[Snapshot],
    vpa: &str,
    end: Time,
    columns: usize,
) -> String {
    let names = snapshots.iter().flat_map(|it| containers(it, vpa)).map(|it| &*it.container_name);
    let names: BTreeSet<&str> = names.collect();
    let charts = names.iter().flat_map(|name| {
        [(Resource::Cpu, "cpu", Unit::Decimal), (Resource::Memory, "memory", Unit::Bytes)].map(
            |(resource, text, unit)| {
                let target = |snapshot: &Snapshot| {
                    let container =
                        containers(snapshot, vpa).iter().find(|it| *it.container_name == **name)?;
                    Some(container.target.amount(resource.name())?.approx_f64() * 1000.0)
                };
                let values: Values = snapshots.iter().map(|it| (it.at, target(it))).collect();
                let title = format!("{text} target of container {name}");
                titled(&title, &picture(&values, None, unit, end, columns))
            },
        )
    });
    charts.filter(|chart| !chart.is_empty()).take(RECOMMENDATIONS).collect()
}

/// The containers with a recommendation.
fn containers<'a>(snapshot: &'a Snapshot, vpa: &str) -> &'a [ContainerRecommendation] {
    let recommendation = snapshot.status(vpa).and_then(|status| status.recommendation.as_ref());
    recommendation.map_or(&[], |it| &it.container_recommendations)
}
