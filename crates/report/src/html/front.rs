//! The chart of settings by cost and missing pods, as SVG.

use maud::{Markup, html};

use crate::front::{Dot, FrontChart};
use crate::scale::LinearAxis;

/// The size of the drawing, and the room for labels on the left and below.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const BELOW: f64 = 44.0;
const ABOVE: f64 = 14.0;
const RIGHT: f64 = 24.0;

/// The chart, with a list of the named settings.
pub(super) fn front(chart: &FrontChart) -> Markup {
    let across = LinearAxis::over(chart.dots.iter().map(|dot| dot.across), LEFT, WIDTH - RIGHT);
    let up = LinearAxis::over(chart.dots.iter().map(|dot| dot.up), HEIGHT - BELOW, ABOVE);
    let place = |dot: &Dot| (across.place(dot.across), up.place(dot.up));
    // Those with names are drawn last, above the others.
    let mut dots: Vec<&Dot> = chart.dots.iter().collect();
    dots.sort_by_key(|dot| (dot.name.is_some(), dot.is_on_front, dot.is_kept));
    let mut line: Vec<&Dot> = chart.dots.iter().filter(|dot| dot.is_on_front).collect();
    line.sort_by(|one, other| one.across.total_cmp(&other.across));
    let line = line.into_iter().map(|dot| {
        let (x, y) = place(dot);
        format!("{x:.1},{y:.1}")
    });
    let line: Vec<String> = line.collect();
    let named = chart.dots.iter().filter_map(|dot| Some((place(dot), dot.name.as_deref()?)));
    let labels = labels(named);
    let label = format!("{}: {} against {} of each setting", chart.title, chart.across, chart.up);
    html! {
        div.fig.front {
            h2 { (chart.title) }
            p { (chart.summary) }
            @for command in &chart.commands { pre { (command) } }
            @for note in &chart.notes { p { (note) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
                @for (value, text) in across.labels() {
                    line.grid x1=(across.place(value)) x2=(across.place(value)) y1=(ABOVE)
                        y2=(HEIGHT - BELOW) {}
                    text x=(across.place(value)) y=(HEIGHT - BELOW + 16.0) text-anchor="middle" {
                        (text)
                    }
                }
                @for (value, text) in up.labels() {
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(up.place(value))
                        y2=(up.place(value)) {}
                    text x=(LEFT - 8.0) y=(up.place(value) + 4.0) text-anchor="end" { (text) }
                }
                text.name x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" {
                    (chart.across)
                }
                text.name x=(LEFT - 8.0) y=(ABOVE - 3.0) text-anchor="end" { (chart.up) }
                polyline points=(line.join(" ")) {}
                @for dot in dots {
                    @let (x, y) = place(dot);
                    circle.kept[dot.is_kept].on[dot.is_on_front].named[dot.name.is_some()]
                        cx=(format!("{x:.1}")) cy=(format!("{y:.1}"))
                        r=(if dot.name.is_some() { 5.5 } else { 3.0 }) {
                        title { (title(chart, dot)) }
                    }
                }
                @for (x, y, anchor, name) in labels {
                    text.dot x=(format!("{x:.1}")) y=(format!("{y:.1}")) text-anchor=(anchor) {
                        (name)
                    }
                }
            }
            p.note {
                "Each dot is a setting; filled dots meet the objective. The line connects the \
                 settings for which no other setting is lower in one figure and not higher in the \
                 other."
            }
            dl {
                @for dot in chart.dots.iter().filter(|dot| dot.name.is_some()) {
                    dt { (dot.name.as_deref().unwrap_or_default()) } dd { (dot.about) }
                }
            }
        }
    }
}

/// The places of names beside their dots, so that they do not overlap: coordinates and anchor.
fn labels<'n>(
    named: impl Iterator<Item = ((f64, f64), &'n str)>,
) -> Vec<(f64, f64, &'static str, &'n str)> {
    const AROUND: [(f64, f64, &str); 6] = [
        (8.0, -7.0, "start"),
        (8.0, 16.0, "start"),
        (-8.0, -7.0, "end"),
        (-8.0, 16.0, "end"),
        (8.0, -20.0, "start"),
        (-8.0, 29.0, "end"),
    ];
    let mut labels: Vec<(f64, f64, &str, &str)> = Vec::new();
    let left = |(x, _, anchor, name): &(f64, f64, &str, &str)| {
        let width = 7.5 * name.chars().count() as f64;
        (if *anchor == "end" { x - width } else { *x }, width)
    };
    for ((x, y), name) in named {
        let places = AROUND.map(|(dx, dy, anchor)| (x + dx, y + dy, anchor, name));
        let is_free = |place: &(f64, f64, &str, &str)| {
            let (own_left, own_width) = left(place);
            !labels.iter().any(|other| {
                let (other_left, width) = left(other);
                (place.1 - other.1).abs() < 13.0
                    && own_left < other_left + width
                    && other_left < own_left + own_width
            })
        };
        let free = places.iter().find(|place| is_free(place)).copied();
        labels.push(free.unwrap_or(places[0]));
    }
    labels
}

/// `pod-hours 5.08, missing 1.36: maxReplicas: 10 → 12`.
fn title(chart: &FrontChart, dot: &Dot) -> String {
    let FrontChart { across, up, .. } = chart;
    format!("{across} {:.2}, {up} {:.2}: {}", dot.across, dot.up, dot.about)
}
