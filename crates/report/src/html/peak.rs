//! Peaks of a metric that are so far above all other values that the chart is cut below them.

use maud::{Markup, html};

use super::lane::ChartAxis;
use crate::presentation::Value;
use kube_autoscaler_models::time::Time;

/// The maximum number of arrows. Peaks closer than this, in percent of the width, share one.
const CLOSE: f64 = 2.5;

/// The values of a metric, divided at the upper edge of its chart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Divided {
    /// The values inside the chart.
    pub inside: Vec<Value>,
    /// The line along the upper edge in place of the peaks, from the value before each peak to the
    /// one after it.
    pub edge: Vec<Value>,
    /// The peaks: where each begins, and its highest value.
    pub peaks: Vec<(Time, f64)>,
}

impl Divided {
    /// Divides values at a height.
    pub(super) fn at(values: &[Value], top: f64) -> Divided {
        let mut divided = Divided::default();
        let mut before: Value = (Time::ZERO, None);
        for (at, value) in values.iter().copied() {
            let was_peak = before.1.is_some_and(|before| before > top);
            match value.filter(|value| *value > top) {
                Some(height) => {
                    match divided.peaks.last_mut() {
                        Some((_, most)) if was_peak => *most = most.max(height),
                        _ => {
                            divided.edge.push((at, before.1));
                            divided.peaks.push((at, height));
                        }
                    }
                    divided.edge.push((at, Some(top)));
                    // The line inside the chart has a gap.
                    divided.inside.push((at, None));
                }
                None => {
                    if was_peak {
                        divided.edge.extend([(at, value), (at, None)]);
                    }
                    divided.inside.push((at, value));
                }
            }
            before = (at, value);
        }
        divided
    }

    /// An arrow at each peak, and the value of the highest one as text, unless that is empty.
    pub(super) fn arrows(&self, text: &dyn Fn(f64) -> String, axis: ChartAxis) -> Markup {
        let highest =
            self.peaks.iter().copied().max_by(|(_, one), (_, other)| one.total_cmp(other));
        let Some((at, most)) = highest else { return html! {} };
        let highest = axis.percent(at);
        let mut last = f64::NEG_INFINITY;
        let others = self.peaks.iter().map(|(at, _)| axis.percent(*at)).filter(|place| {
            let is_far = place - last >= CLOSE && (place - highest).abs() >= CLOSE;
            if is_far {
                last = *place;
            }
            is_far
        });
        let others: Vec<f64> = others.collect();
        let value = text(most);
        html! {
            @for place in others { span.peak style=(format!("left:{place:.2}%")) { "▲" } }
            @if value.is_empty() {
                span.peak style=(format!("left:{highest:.2}%")) { "▲" }
            } @else if highest < 60.0 {
                span.peak style=(format!("left:{highest:.2}%")) { "▲ " (value) }
            } @else {
                span.peak.r style=(format!("right:{:.2}%", 100.0 - highest)) { (value) " ▲" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_replaced_by_a_line_along_the_edge() {
        let at = Time::from_secs;
        let values =
            [(at(0), Some(5.0)), (at(1), Some(40.0)), (at(2), Some(90.0)), (at(3), Some(4.0))];
        let divided = Divided::at(&values, 10.0);
        assert_eq!(divided.peaks, [(at(1), 90.0)]);
        let (low, gap) = ([(at(0), Some(5.0)), (at(1), None), (at(2), None)], (at(3), Some(4.0)));
        assert_eq!(divided.inside, [&low[..], &[gap]].concat());
        let edge = [(at(1), 5.0), (at(1), 10.0), (at(2), 10.0), (at(3), 4.0)];
        let mut edge = edge.map(|(at, value)| (at, Some(value))).to_vec();
        edge.push((at(3), None));
        assert_eq!(divided.edge, edge);
        assert_eq!(Divided::at(&values, 90.0).edge, []);
    }
}
