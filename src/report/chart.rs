//! A chart of the replicas over time, in ASCII.

use std::fmt::Write as _;

use crate::model::time::Time;

/// The maximum number of rows.
const ROWS: i64 = 8;
/// The maximum number of columns.
const COLUMNS: usize = 72;

/// Draws the replicas (`#`) over time. `points` are the replicas at t=0 and every change, in order.
/// A column shows the maximum of its interval. Empty if the replicas never change.
#[must_use]
pub fn replicas(points: &[(Time, i32)], end: Time, columns: usize) -> String {
    let largest = points.iter().map(|(_, replicas)| i64::from(*replicas)).max().unwrap_or(0);
    let changes = points.windows(2).any(|pair| pair[0].1 != pair[1].1);
    if !changes || end.0 <= 0 || largest <= 0 {
        return String::new();
    }
    let rows = largest.min(ROWS);
    let axis = largest.to_string().len().max(2);
    let columns = columns.saturating_sub(axis + 2).clamp(20, COLUMNS);
    let heights = heights(points, end, columns);
    let mut out = String::new();
    for row in (1..=rows).rev() {
        let label = largest * row / rows;
        let mark = |height: &i64| if *height >= label { '#' } else { ' ' };
        let line: String = heights.iter().map(mark).collect();
        let _ = writeln!(out, "{label:>axis$} |{}", line.trim_end());
    }
    let (begin, end) = ("t=0s", format!("t={end}"));
    let _ = writeln!(out, "{:axis$} +{}", "", "-".repeat(columns));
    let gap = columns.saturating_sub(begin.len());
    let _ = writeln!(out, "{:axis$}  {begin}{end:>gap$}", "");
    out
}

/// The maximum replicas in each of a number of equal intervals.
fn heights(points: &[(Time, i32)], end: Time, columns: usize) -> Vec<i64> {
    let parts = columns as i128;
    let edge = |column: i128| i128::from(end.0) * column / parts;
    (0..parts)
        .map(|column| {
            let (from, to) = (edge(column), edge(column + 1));
            let before = points.iter().rev().find(|(at, _)| i128::from(at.0) <= from);
            // The last interval includes the end.
            let to = if column + 1 == parts { i128::MAX } else { to };
            let within = points.iter().filter(|(at, _)| (from..to).contains(&at.0.into()));
            let replicas =
                before.into_iter().chain(within).map(|(_, replicas)| i64::from(*replicas));
            replicas.max().unwrap_or(0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_replicas_have_no_chart() {
        assert_eq!(replicas(&[(Time::ZERO, 3)], Time::from_secs(60), 80), "");
    }

    #[test]
    fn replicas_are_drawn_at_their_time() {
        let points = [(Time::ZERO, 1), (Time::from_secs(30), 2)];
        assert_eq!(
            replicas(&points, Time::from_secs(60), 24),
            " 2 |          ##########\n \
             1 |####################\n   \
               +--------------------\n    \
                t=0s            t=1m\n"
        );
    }

    #[test]
    fn the_chart_includes_the_end() {
        let points = [(Time::ZERO, 1), (Time::from_secs(60), 2)];
        let picture = replicas(&points, Time::from_secs(60), 24);
        assert!(picture.starts_with(" 2 |                   #\n 1 |####################\n"));
    }

    #[test]
    fn a_row_is_filled_if_there_are_at_least_as_many_replicas_as_its_label() {
        let points = [(Time::ZERO, 2), (Time::from_secs(30), 12)];
        let picture = replicas(&points, Time::from_secs(60), 24);
        assert!(picture.contains("\n 3 |          ##########\n 1 |####################\n"));
    }

    #[test]
    fn a_short_peak_stays_visible_between_columns() {
        let points = [(Time::ZERO, 1), (Time::from_secs(31), 9), (Time::from_secs(32), 1)];
        assert!(replicas(&points, Time::from_secs(3600), 60).starts_with(" 9 |#"));
    }
}
