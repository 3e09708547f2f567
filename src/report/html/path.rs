//! Lines and areas of charts as the path data of SVG, in absolute coordinates of one decimal.

use std::fmt::Write as _;

use crate::report::scale::WIDTH;

/// A value from a place on, until the next point. `None`: there is no value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// The place, from 0 to [`WIDTH`].
    pub(super) x: f64,
    /// The height, from the top.
    pub(super) y: Option<f64>,
}

/// Points closer than this are drawn as one vertical line from the lowest to the highest.
const CLOSE: f64 = 0.7;

/// A line of steps: each value holds until the next point, and the last one until the end.
pub(super) fn steps(points: &[Point]) -> String {
    let mut path = String::new();
    let mut at: Option<f64> = None;
    let mut rest = points;
    while let Some(first) = rest.first() {
        let close = rest.iter().take_while(|point| point.x - first.x < CLOSE).count();
        let (group, later) = rest.split_at(close.max(1));
        rest = later;
        let mut heights: Vec<Option<f64>> = group.iter().map(|point| point.y).collect();
        if heights.len() > 4 {
            heights = extremes(&heights);
        }
        for height in heights {
            at = step(&mut path, at, first.x, height);
        }
    }
    if at.is_some() {
        let _ = write!(path, "H{}", number(WIDTH));
    }
    path
}

/// The lowest, the highest and the last of several heights.
fn extremes(heights: &[Option<f64>]) -> Vec<Option<f64>> {
    let known = || heights.iter().flatten().copied();
    let highest = known().reduce(f64::min);
    let lowest = known().reduce(f64::max);
    let last = heights.last().copied().flatten();
    match last {
        Some(_) => vec![highest, lowest, last],
        None => vec![highest, lowest, None],
    }
}

/// Continues a path of which the pen is at a height, or lifted.
fn step(path: &mut String, at: Option<f64>, x: f64, height: Option<f64>) -> Option<f64> {
    match (at, height) {
        (None, Some(y)) => {
            let _ = write!(path, "M{} {}", number(x), number(y));
        }
        (Some(before), Some(y)) if number(before) != number(y) => {
            let _ = write!(path, "H{}V{}", number(x), number(y));
        }
        (Some(_), None) => {
            let _ = write!(path, "H{}", number(x));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    height
}

/// A stretch of an area: from a place to another one, between two heights.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bar {
    /// The left edge.
    pub(super) from: f64,
    /// The right edge.
    pub(super) to: f64,
    /// The upper edge.
    pub(super) top: f64,
    /// The lower edge.
    pub(super) bottom: f64,
}

/// An area of bars. Neighbors with the same edges are joined.
pub(super) fn area(bars: impl IntoIterator<Item = Bar>) -> String {
    let mut joined: Vec<Bar> = Vec::new();
    for bar in bars.into_iter().filter(|bar| bar.bottom - bar.top > 0.01) {
        match joined.last_mut() {
            Some(last)
                if last.to == bar.from && (last.top, last.bottom) == (bar.top, bar.bottom) =>
            {
                last.to = bar.to;
            }
            _ => joined.push(bar),
        }
    }
    let mut path = String::new();
    for Bar { from, to, top, bottom } in joined {
        let (left, right) = (number(from), number(to));
        let _ = write!(path, "M{left} {}H{right}V{}H{left}Z", number(top), number(bottom));
    }
    path
}

/// The area between two lines of steps. Neighbors are joined to one outline.
pub(super) fn ribbon(bars: &[Bar]) -> String {
    let mut path = String::new();
    let mut rest = bars;
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

/// Dots at places of a chart, to be drawn with round ends of lines.
pub(super) fn dots(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let dots = points.into_iter().map(|(x, y)| format!("M{} {}h0", number(x), number(y)));
    dots.collect()
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
        assert_eq!(steps(&line), "M0 9H20V5.2H1000");
    }

    #[test]
    fn a_line_has_gaps_where_there_is_no_value() {
        let line = points(&[(0.0, Some(9.0)), (10.0, None), (20.0, Some(5.0)), (30.0, None)]);
        assert_eq!(steps(&line), "M0 9H10M20 5H30");
        assert_eq!(steps(&points(&[(0.0, None)])), "");
    }

    #[test]
    fn many_points_at_one_place_become_one_vertical_line() {
        let many = (0..1000).map(|i| (f64::from(i) / 10_000.0, Some(f64::from(i % 10))));
        assert_eq!(steps(&points(&many.collect::<Vec<_>>())), "M0 0H0V9H1000");
    }

    #[test]
    fn bars_of_the_same_height_are_joined() {
        let bar = |from, to, top| Bar { from, to, top, bottom: 9.0 };
        let bars = [bar(0.0, 5.0, 3.0), bar(5.0, 7.0, 3.0), bar(7.0, 9.0, 9.0)];
        assert_eq!(area(bars), "M0 3H7V9H0Z");
        assert_eq!(dots([(1.0, 2.0)]), "M1 2h0");
    }

    #[test]
    fn a_ribbon_is_one_outline_up_to_a_gap() {
        let bar = |from, to, top, bottom| Bar { from, to, top, bottom };
        let bars = [bar(0.0, 2.0, 3.0, 9.0), bar(2.0, 4.0, 3.0, 8.0), bar(4.0, 6.0, 2.0, 8.0)];
        assert_eq!(ribbon(&bars), "M0 3H4V2H6V8H2V9H0Z");
        let gap = [bar(0.0, 2.0, 3.0, 9.0), bar(5.0, 6.0, 3.0, 9.0)];
        assert_eq!(ribbon(&gap), "M0 3H2V9H0ZM5 3H6V9H5Z");
        assert_eq!(ribbon(&[]), "");
    }
}
