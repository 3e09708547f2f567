//! The charts of a prediction in a terminal, each of one line.

use std::fmt::Write as _;

use super::chart::Picture;
use super::presentation::{Chart, Size, Unit, last};
use super::style::{DIM, paint};
use kube_autoscaler_models::time::Time;

/// The maximum number of charts of a controller.
const CHARTS: usize = 4;

/// The charts of a controller, each after an empty line. Values that never change have no chart.
pub(crate) fn all(charts: &[Chart], end: Time, columns: usize) -> String {
    let drawn = charts.iter().filter_map(|chart| drawn(chart, end, columns));
    drawn.take(CHARTS).collect()
}

/// The line of a chart, and a dotted line for its target; `None` if the values never change, or if
/// none is above 0.
fn drawn(chart: &Chart, end: Time, columns: usize) -> Option<String> {
    let mut title = chart.line_title.clone();
    let values = chart.values();
    let target = last(chart.targets());
    let largest = values.iter().filter_map(|(_, value)| *value).chain(target).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    // Values near a target would cover it in fewer rows.
    let is_high = target.is_some() || chart.unit == Unit::Count;
    let (rows, labels) = if is_high { (8, 4) } else { (4, 2) };
    let axis = chart.unit.axis(largest, Size { height: 1.0, labels });
    let label = |value: f64| chart.unit.label(value);
    let picture = Picture { values, target, end, axis, label: &label, rows, columns }.draw();
    if let Some(target) = target {
        let _ = write!(title, "; the dotted line is the target, {}", chart.unit.text(target));
    }
    (!picture.is_empty()).then(|| format!("\n{}\n{picture}", paint(DIM, &title)))
}
