//! Lines and areas of charts as the path data of SVG, in absolute coordinates of one decimal.

use std::fmt::Write as _;

use crate::scale::WIDTH;

/// A value from a place on, until the next point. `None`: there is no value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// The place, from 0 to [`WIDTH`].
    pub x: f64,
    /// The height, from the top.
    pub y: Option<f64>,
}

/// Points closer than this are drawn as one vertical line from the lowest to the highest.
const CLOSE: f64 = 0.7;

/// The width of each of a number of columns.
fn width(columns: usize) -> f64 {
    WIDTH / columns as f64
}

/// A line of steps: each value holds until the next point, and the last one until the end. With
/// more points than edges of `columns`, each column has the range of its values, at whole
/// coordinates.
pub(super) fn steps(points: &[Point], columns: usize) -> String {
    let is_dense = points.len() > columns + 1;
    let close = if is_dense { width(columns) } else { CLOSE };
    let round = |value: f64| if is_dense { value.round() } else { value };
    let mut pen = Pen::default();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|point| point.x - first.x < close).count();
        let (group, later) = rest.split_at(count.max(1));
        rest = later;
        let mut heights: Vec<Option<f64>> = group.iter().map(|point| point.y).collect();
        if heights.len() > if is_dense { 2 } else { 4 } {
            heights = extremes(&heights);
        }
        for height in heights {
            pen.step(round(first.x), height.map(round));
        }
    }
    pen.end()
}

/// The area from the lowest to the highest of the values of each column, at whole coordinates.
pub(super) fn range(points: &[Point], columns: usize) -> String {
    let width = width(columns);
    let mut bars: Vec<Bar> = Vec::new();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|point| point.x - first.x < width).count();
        let (group, later) = rest.split_at(count.max(1));
        rest = later;
        let heights = || group.iter().filter_map(|point| point.y);
        let (highest, lowest) = (heights().reduce(f64::min), heights().reduce(f64::max));
        let to = rest.first().map_or(WIDTH, |next| next.x).round();
        if let (Some(top), Some(bottom)) = (highest, lowest) {
            // A range of one value has the width of a line.
            let (top, bottom) = (top.round() - 0.5, bottom.round() + 0.5);
            bars.push(Bar { from: first.x.round(), to, top, bottom });
        }
    }
    ribbon(bars, columns)
}

/// The highest, the lowest and the last of several heights.
fn extremes(heights: &[Option<f64>]) -> Vec<Option<f64>> {
    let known = || heights.iter().flatten().copied();
    let highest = known().reduce(f64::min);
    let lowest = known().reduce(f64::max);
    vec![highest, lowest, heights.last().copied().flatten()]
}

/// Draws a line of steps.
#[derive(Default)]
struct Pen {
    path: String,
    /// The place up to which the line is drawn.
    x: String,
    /// The height; `None`: the pen is lifted.
    height: Option<String>,
}

impl Pen {
    /// Continues the line to a place, and there to a height.
    fn step(&mut self, x: f64, height: Option<f64>) {
        let height = height.map(number);
        if height == self.height {
            return;
        }
        let x = number(x);
        match (&self.height, &height) {
            (None, Some(y)) => {
                let _ = write!(self.path, "M{x} {y}");
            }
            (Some(_), to) => {
                if self.x != x {
                    let _ = write!(self.path, "H{x}");
                }
                if let Some(y) = to {
                    let _ = write!(self.path, "V{y}");
                }
            }
            (None, None) => {}
        }
        self.x = x;
        self.height = height;
    }

    /// The path, drawn to the end of the chart.
    fn end(mut self) -> String {
        if self.height.is_some() {
            let _ = write!(self.path, "H{}", number(WIDTH));
        }
        self.path
    }
}

/// A stretch of an area: from a place to another one, between two heights.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bar {
    /// The left edge.
    pub from: f64,
    /// The right edge.
    pub to: f64,
    /// The upper edge.
    pub top: f64,
    /// The lower edge.
    pub bottom: f64,
}

/// The bars, or if they are more, as columns: each from the highest to the lowest edge of its bars.
fn in_columns(bars: Vec<Bar>, columns: usize) -> Vec<Bar> {
    if bars.len() <= columns {
        return bars;
    }
    let width = width(columns);
    let mut joined: Vec<Bar> = Vec::new();
    for bar in bars {
        let bar = Bar { top: bar.top.round(), bottom: bar.bottom.round(), ..bar };
        match joined.last_mut() {
            Some(last) if bar.to - last.from < width && (bar.from - last.to).abs() < width => {
                last.to = bar.to;
                last.top = last.top.min(bar.top);
                last.bottom = last.bottom.max(bar.bottom);
            }
            Some(last) => {
                last.to = last.to.round();
                let from = if (bar.from - last.to).abs() < 1.0 { last.to } else { bar.from };
                joined.push(Bar { from, ..bar });
            }
            None => joined.push(bar),
        }
    }
    joined
}

/// The area between two lines of steps, in at most about `columns`. Neighbors are joined to one
/// outline.
pub(super) fn ribbon(bars: Vec<Bar>, columns: usize) -> String {
    let mut path = String::new();
    let bars = in_columns(bars, columns);
    let mut rest = bars.as_slice();
    while let Some(first) = rest.first() {
        let joined = rest.windows(2).take_while(|pair| pair[0].to == pair[1].from).count() + 1;
        let (group, later) = rest.split_at(joined);
        rest = later;
        let _ = write!(path, "M{} {}", number(first.from), number(first.top));
        edge(&mut path, group.iter().map(|bar| (bar.to, bar.top)));
        let bottom = group.last().map_or(0.0, |bar| bar.bottom);
        let _ = write!(path, "V{}", number(bottom));
        edge(&mut path, group.iter().rev().map(|bar| (bar.from, bar.bottom)));
        path.push('Z');
    }
    path
}

/// Steps to the far ends of stretches, at their heights. Stretches of one height are joined.
fn edge(path: &mut String, ends: impl Iterator<Item = (f64, f64)>) {
    let mut before: Option<(String, String)> = None;
    for (x, y) in ends {
        let (x, y) = (number(x), number(y));
        if let Some((end, height)) = before.take()
            && height != y
        {
            let _ = write!(path, "H{end}V{y}");
        }
        before = Some((x, y));
    }
    if let Some((end, _)) = before {
        let _ = write!(path, "H{end}");
    }
}

/// Dots at places of a chart, to be drawn with round ends of lines. Of neighbors at the same place,
/// only one is drawn; the places of many dots are those of `columns`.
pub(super) fn dots(points: impl IntoIterator<Item = (f64, f64)>, columns: usize) -> String {
    let points: Vec<(f64, f64)> = points.into_iter().collect();
    let is_dense = points.len() > columns / 2;
    let width = width(columns);
    let place = |x: f64| if is_dense { (x / width).round() * width } else { x };
    let dots = points.iter().map(|(x, y)| format!("M{} {}h0", number(place(*x)), number(*y)));
    let mut dots: Vec<String> = dots.collect();
    dots.dedup();
    dots.concat()
}

/// A number with at most one decimal.
fn number(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(f64, Option<f64>)]) -> Vec<Point> {
        values.iter().map(|(x, y)| Point { x: *x, y: *y }).collect()
    }

    #[test]
    fn steps_hold_until_the_next_value() {
        let line = points(&[(0.0, Some(9.0)), (10.0, Some(9.0)), (20.0, Some(5.25))]);
        assert_eq!(steps(&line, 500), "M0 9H20V5.2H1000");
    }

    #[test]
    fn a_line_has_gaps_where_there_is_no_value() {
        let line = points(&[(0.0, Some(9.0)), (10.0, None), (20.0, Some(5.0)), (30.0, None)]);
        assert_eq!(steps(&line, 500), "M0 9H10M20 5H30");
        assert_eq!(steps(&points(&[(0.0, None)]), 500), "");
    }

    #[test]
    fn many_points_at_one_place_become_one_vertical_line() {
        let many = (0..1000).map(|i| (f64::from(i) / 10_000.0, Some(f64::from(i % 10))));
        assert_eq!(steps(&points(&many.collect::<Vec<_>>()), 500), "M0 0V9H1000");
    }

    #[test]
    fn a_dense_line_has_the_range_of_each_column() {
        // Ten points in each unit, between 10 and 50, and one peak.
        let height = |i: i32| if i == 5_005 { 3.0 } else { f64::from(10 + i % 7 * 5) + 0.3 };
        let all: Vec<_> = (0..10_000).map(|i| (f64::from(i) / 10.0, Some(height(i)))).collect();
        let line = steps(&points(&all), 500);
        assert!(line.len() < 500 * 14, "{}", line.len());
        assert!(line.starts_with("M0 10V40V") && line.ends_with("H1000"), "{line}");
        assert!(line.contains("H500V3V40"), "the peak is drawn: {line}");
        let bars = all.windows(2).map(|pair| Bar {
            from: pair[0].0,
            to: pair[1].0,
            top: pair[0].1.unwrap_or_default(),
            bottom: 60.0,
        });
        let area = ribbon(bars.collect(), 500);
        assert!(area.contains("V60"), "{area}");
        assert!(area.starts_with("M0 10H") && area.len() < 200, "{area}");
        let dots = dots(all.iter().map(|(x, _)| (*x, 8.0)), 500);
        assert_eq!(dots.matches('M').count(), 501);
    }

    #[test]
    fn a_ribbon_is_one_outline_up_to_a_gap() {
        let bar = |from, to, top, bottom| Bar { from, to, top, bottom };
        let bars = [bar(0.0, 2.0, 3.0, 9.0), bar(2.0, 4.0, 3.0, 8.0), bar(4.0, 6.0, 2.0, 8.0)];
        assert_eq!(ribbon(bars.to_vec(), 500), "M0 3H4V2H6V8H2V9H0Z");
        let gap = [bar(0.0, 2.0, 3.0, 9.0), bar(5.0, 6.0, 3.0, 9.0)];
        assert_eq!(ribbon(gap.to_vec(), 500), "M0 3H2V9H0ZM5 3H6V9H5Z");
        assert_eq!(ribbon(Vec::new(), 500), "");
        assert_eq!(dots([(1.0, 2.0)], 500), "M1 2h0");
    }
}
