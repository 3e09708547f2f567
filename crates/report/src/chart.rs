//! Charts of values over time, in braille characters.

use std::fmt::Write as _;

use textplots::{Chart, Plot, Shape};

use super::scale::{Label, TimeAxis, ValueAxis};
use super::style::{DIM, MODEL, paint};
use kube_autoscaler_models::time::Time;

/// The maximum number of columns, without the labels.
const COLUMNS: usize = 72;
/// The minimum number of columns, without the labels: `textplots` requires 32 dots.
const LEAST_COLUMNS: usize = 20;
/// The distance of the dots of a target, in dots.
const DOTTED: usize = 4;
/// The dots of one braille character.
const DOTS_ACROSS: usize = 2;
const DOTS_DOWN: usize = 4;

/// A chart of values over time.
pub(crate) struct Picture<'a> {
    /// The values, in order: each holds until the next one. `None`: there is no value.
    pub values: &'a [(Time, Option<f64>)],
    /// A value to mark with a dotted line.
    pub target: Option<f64>,
    /// The end of the axis of time.
    pub end: Time,
    pub(crate) axis: ValueAxis,
    /// The label of a value of the axis.
    pub label: &'a dyn Fn(f64) -> String,
    /// The minimum number of rows above the lowest label.
    pub rows: usize,
    /// The width of the terminal.
    pub columns: usize,
}

impl Picture<'_> {
    /// The chart. Empty if the value never changes.
    pub(crate) fn draw(&self) -> String {
        let changes = self.values.windows(2).any(|pair| pair[0].1 != pair[1].1);
        if !changes || self.end.0 <= 0 {
            return String::new();
        }
        let time = TimeAxis::until(self.end);
        let labels = self.axis.values();
        let text = |value: &f64| (self.label)(*value);
        let margin = labels.iter().map(|it| text(it).chars().count()).max().unwrap_or(1).max(2);
        let columns = self.columns.saturating_sub(margin + 2).clamp(LEAST_COLUMNS, COLUMNS);
        // The labels are the same number of rows apart.
        let rows = self.rows.next_multiple_of(labels.len() - 1) + 1;
        let lines = self.lines(time, columns, rows);

        let last_dot = (rows * DOTS_DOWN - 1) as f64;
        let row_of =
            |value: f64| ((1.0 - value / self.axis.max) * last_dot).round() as usize / DOTS_DOWN;
        let mut out = String::new();
        for (row, line) in lines.iter().enumerate() {
            let (text, mark) = match labels.iter().find(|label| row_of(**label) == row) {
                Some(label) => (text(label), '┤'),
                None => (String::new(), '│'),
            };
            let axis = paint(DIM, &format!("{text:>margin$} {mark}"));
            let _ = writeln!(out, "{}", format!("{axis}{}", paint(MODEL, line)).trim_end());
        }
        for line in time_axis(&time.labels(), columns) {
            let _ = writeln!(out, "{}", paint(DIM, format!("{:margin$} {line}", "").trim_end()));
        }
        out
    }

    /// The rows of the line, without spaces at their ends.
    fn lines(&self, time: TimeAxis, columns: usize, rows: usize) -> Vec<String> {
        let (across, down) = ((columns * DOTS_ACROSS - 1) as u32, (rows * DOTS_DOWN - 1) as u32);
        let x = |at: Time| time.percent(at) as f32;
        // One line for each stretch with values. `Shape::Steps` draws each value up to its point,
        // so the value before a change ends there.
        let mut stretches: Vec<Vec<(f32, f32)>> = Vec::new();
        let mut before: Option<f32> = None;
        for (at, value) in self.values {
            let value = value.map(|value| value as f32);
            match (before, value, stretches.last_mut()) {
                (None, Some(value), _) => stretches.push(vec![(x(*at), value)]),
                (Some(before), _, Some(stretch)) => stretch.push((x(*at), before)),
                _ => {}
            }
            before = value;
        }
        if let (Some(value), Some(stretch)) = (before, stretches.last_mut()) {
            stretch.push((100.0, value));
        }
        let dotted = self.target.map(|target| {
            let places = (0..=across).step_by(DOTTED);
            places.map(|x| (x as f32 / across as f32 * 100.0, target as f32)).collect::<Vec<_>>()
        });
        let steps = stretches.iter().map(|stretch| Shape::Steps(stretch));
        let points = dotted.iter().map(|points| Shape::Points(points));
        let shapes: Vec<Shape<'_>> = steps.chain(points).collect();
        let mut chart =
            Chart::new_with_y_range(across, down, 0.0, 100.0, 0.0, self.axis.max as f32);
        let mut drawn = &mut chart;
        for shape in &shapes {
            drawn = drawn.lineplot(shape);
        }
        drawn.figures();
        let frame = drawn.frame();
        let empty = |dots: char| if dots == '\u{2800}' { ' ' } else { dots };
        let mut lines: Vec<String> = frame
            .lines()
            .map(|line| line.chars().map(empty).collect::<String>().trim_end().to_owned())
            .collect();
        lines.resize(rows, String::new());
        lines
    }
}

/// The axis of time and its labels. A label that does not fit is left out.
fn time_axis(labels: &[Label], columns: usize) -> [String; 2] {
    let mut axis: Vec<char> = vec!['─'; columns];
    let mut texts = String::new();
    for label in labels {
        let column = (label.percent / 100.0 * (columns - 1) as f64).round() as usize;
        axis[column] = '┬';
        // Labels are centered below their marks, within the chart.
        let start = (column + 1).saturating_sub(label.text.len() / 2);
        let start = start.min((columns + 1).saturating_sub(label.text.len()));
        if texts.is_empty() || start > texts.len() {
            let _ = write!(texts, "{:gap$}{}", "", label.text, gap = start - texts.len());
        }
    }
    [format!("└{}", axis.into_iter().collect::<String>()), texts]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(points: &[(Time, i32)], seconds: i64, columns: usize) -> String {
        let values = points.iter().map(|(at, replicas)| (*at, Some(f64::from(*replicas))));
        drawn(&values.collect::<Vec<_>>(), seconds, columns)
    }

    fn drawn(values: &[(Time, Option<f64>)], seconds: i64, columns: usize) -> String {
        let largest = values.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
        let (axis, label) =
            (ValueAxis::up_to(largest, 1.0, 4, true), |value: f64| value.to_string());
        let (end, target, rows) = (Time::from_secs(seconds), None, 8);
        let picture = Picture { values, target, end, axis, label: &label, rows, columns }.draw();
        anstream::adapter::strip_str(&picture).to_string()
    }

    #[test]
    fn constant_replicas_have_no_chart() {
        assert_eq!(plain(&[(Time::ZERO, 3)], 60, 80), "");
    }

    #[test]
    fn replicas_are_drawn_at_their_time() {
        let points = [(Time::ZERO, 1), (Time::from_secs(30), 4)];
        let expected = [
            " 4 ┤               ⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉",
            "   │               ⡇",
            " 3 ┤               ⡇",
            "   │               ⡇",
            " 2 ┤               ⡇",
            "   │               ⡇",
            " 1 ┤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠇",
            "   │",
            " 0 ┤",
            "   └┬────┬────┬────┬───┬────┬────┬",
            "   0s   10s  20s  30s 40s  50s  1m",
        ];
        assert_eq!(plain(&points, 60, 34).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_time_without_a_value_is_a_gap() {
        let at = Time::from_secs;
        let values = [(at(0), Some(3.0)), (at(20), None), (at(40), Some(3.0))];
        let picture = drawn(&values, 60, 34);
        let is_dot = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        let line = picture.lines().find(|line| line.contains(is_dot)).expect("a line");
        let dots: String = line.chars().skip(4).map(|c| if is_dot(c) { '.' } else { c }).collect();
        assert_eq!(dots, "...........        ...........", "{picture}");
    }

    #[test]
    fn a_short_peak_stays_visible_between_columns() {
        let points = [(Time::ZERO, 1), (Time::from_secs(31), 9), (Time::from_secs(32), 1)];
        let picture = plain(&points, 3600, 60);
        assert!(picture.starts_with("10 ┤⢀\n   │⢸\n   │⢸\n"), "{picture}");
    }

    #[test]
    fn a_change_at_the_end_is_drawn() {
        let points = [(Time::ZERO, 1), (Time::from_secs(60), 2)];
        let picture = plain(&points, 60, 34);
        assert!(picture.starts_with(&format!(" 2 ┤{:29}⢸\n", "")), "{picture}");
    }

    #[test]
    fn huge_numbers_fit() {
        let points = [(Time::ZERO, 1), (Time::from_secs(30), i32::MAX)];
        let picture = plain(&points, 60, 20);
        assert!(picture.starts_with("3000000000 ┤"), "{picture}");
    }
}
