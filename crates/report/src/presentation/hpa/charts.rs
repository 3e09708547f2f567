//! The charts of an HPA: its replicas, its metrics and its pods.

use super::{Metric, Pods, Replicas, Timeline};
use crate::metric;
use crate::presentation::{
    Chart, Key, Series, Shape, Size, Stretch, Unit, Value, Values, largest, last, words,
};
use kube_autoscaler_models::derivation::PodCounts;

const REPLICAS: Size = Size { height: 132.0, labels: 4 };
const METRIC: Size = Size { height: 84.0, labels: 3 };
const PODS: Size = Size { height: 56.0, labels: 2 };

/// The charts, from the top to the bottom.
pub(super) fn all(timeline: &Timeline<'_>) -> Vec<Chart> {
    let metrics = timeline.metrics().into_iter().map(metric);
    [replicas(timeline)].into_iter().chain(metrics).chain(pods(&timeline.pods())).collect()
}

fn replicas(timeline: &Timeline<'_>) -> Chart {
    let Replicas { spec, status, desired, model, differing, min, max } = timeline.replicas();
    let seen = largest([&spec, &status, &desired, &model]);
    // A limit that is far away would flatten everything below it.
    let is_near = |(_, value): &&Value| value.is_some_and(|limit| limit <= seen * 2.0 + 2.0);
    let near: Vec<Value> = max.iter().filter(is_near).copied().collect();
    let axis = Unit::Count.axis(largest([&near, &min]).max(seen), REPLICAS);
    let mut keys = vec![Key::new("k spec", "spec")];
    keys.extend((!status.is_empty()).then(|| Key::new("k status", "status")));
    keys.extend((!desired.is_empty()).then(|| Key::new("k desired", "desired")));
    keys.extend((!model.is_empty()).then(|| Key::new("k model", "desired by the model")));
    // As in force at the end.
    if let (Some(min), Some(max)) = (last(&min), last(&max)) {
        let hidden = if max <= axis.max { "" } else { " (above the chart)" };
        keys.push(Key::new("k lim", format!("min {min:.0}, max {max:.0}{hidden}")));
    }
    let inside = |value: &f64| *value <= axis.max;
    let max: Vec<Value> = max.iter().map(|(at, value)| (*at, value.filter(inside))).collect();
    let about = format!("Replicas. {}", words::changes(&spec));
    let lines = [("lim", min), ("lim", max), ("desired", desired), ("status", status)];
    let mut series: Vec<Series> =
        lines.into_iter().map(|(role, values)| Series::line(role, values)).collect();
    series.push(Series::line("spec", spec));
    if !model.is_empty() {
        series.push(Series::line("model", model));
        series.push(Series { role: "model", shape: Shape::Dots(differing) });
    }
    // Both values of the first tick that differs, if these are the desired replicas.
    let flag = timeline.mark.as_ref().map(|mark| {
        let desired = mark.desired_replicas();
        desired.map_or_else(|| mark.word().to_owned(), |field| mark.values(field))
    });
    Chart {
        title: "Replicas".to_owned(),
        owner: match timeline.scenario.has_several_hpas() {
            true => format!(" of {}", timeline.hpa),
            false => String::new(),
        },
        keys,
        about,
        unit: Unit::Count,
        size: REPLICAS,
        axis,
        series,
        main: "spec",
        line_title: "replicas".to_owned(),
        flag,
    }
}

fn metric(metric: Metric<'_>) -> Chart {
    let unit = Unit::for_metric(metric.like);
    let axis = unit.axis(top(&metric), METRIC);
    let Metric { like, values, target, lower, upper, failures } = metric;
    let has_values = values.iter().any(|(_, value)| value.is_some());
    let class = if has_values { "k value" } else { "hint" };
    let mut keys = vec![Key::new(class, metric::unit(like).name())];
    if let [Some(target), Some(lower), Some(upper)] = [&target, &lower, &upper].map(|it| last(it)) {
        let [target, lower, upper] = [target, lower, upper].map(|value| unit.text(value));
        keys.push(Key::new("k target", format!("target {target}")));
        keys.push(Key::new("k band", format!("tolerance {lower} to {upper}")));
    }
    if values.iter().any(|(_, value)| value.is_some_and(|value| value > axis.max)) {
        keys.push(Key::hint("▲ above the chart"));
    }
    keys.extend((!failures.is_empty()).then(|| Key::new("k bad", "metric failed")));
    let title = like.title();
    let target_text = last(&target).map(|target| format!("; target {}", unit.text(target)));
    let about = format!(
        "{title}: {}{}",
        words::range(values.iter(), unit),
        target_text.unwrap_or_default()
    );
    let tolerated = Shape::Band { lower: lower.into(), upper: upper.into() };
    let mut series = vec![
        Series { role: "band tolerated", shape: tolerated },
        Series::line("target", target),
        Series { role: "value", shape: Shape::Peaked(values) },
    ];
    if !failures.is_empty() {
        series.push(Series { role: "bad", shape: Shape::Below(failures) });
    }
    Chart {
        line_title: title.clone(),
        title,
        owner: String::new(),
        keys,
        about,
        unit,
        size: METRIC,
        axis,
        series,
        main: "value",
        flag: None,
    }
}

/// The ratio of a peak to the usual values above which the peak is cut off. Otherwise, the usual
/// values would be a flat line at the bottom of the chart.
const CUT: f64 = 10.0;

/// The largest value inside the chart of a metric: that of all values but those above the cut.
fn top(metric: &Metric<'_>) -> f64 {
    let mut values: Vec<f64> = metric.values.iter().filter_map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let most = values.last().copied().unwrap_or(0.0);
    let usual = values.get(values.len() * 9 / 10).copied().unwrap_or(0.0);
    let tolerated = largest([&metric.upper]);
    let near = usual.max(tolerated);
    if near <= 0.0 || most <= near * CUT {
        return most.max(tolerated);
    }
    // A chart without the cut has space above the tolerance as well.
    let inside = values.into_iter().filter(|value| *value <= near * CUT);
    inside.fold(near.max(tolerated * 1.5), f64::max)
}

/// The groups of pods, from the bottom to the top of their chart: the classes of the area and of
/// its entry in the legend, and the name.
const GROUPS: [(&str, &str, &str); 4] = [
    ("a ready", "k a ready", "counted"),
    ("a unready", "k a unready", "unready"),
    ("a missing", "k a missing", "without metrics"),
    ("a gone", "k a gone", "failed or terminating"),
];

/// The number of pods in the first groups.
fn total(counts: PodCounts, groups: usize) -> f64 {
    let numbers = [counts.ready, counts.unready, counts.missing, counts.ignored];
    numbers[..groups].iter().map(|number| f64::from(*number)).sum()
}

/// The pods as the controller counted them; `None` if there are none.
fn pods(pods: &[Pods]) -> Option<Chart> {
    let all = |pods: &Pods| total(pods.counts, GROUPS.len()) + f64::from(pods.not_counted);
    let most = pods.iter().map(all).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    let line = |groups: usize| -> Values {
        let value = |it: &Pods| (it.from, Some(total(it.counts, groups)));
        pods.iter().map(value).collect::<Vec<Value>>().into()
    };
    let (mut keys, mut series, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (role, class, name)) in GROUPS.into_iter().enumerate() {
        let (lower, upper) = (line(index), line(index + 1));
        if lower != upper {
            keys.push(Key::new(class, name));
            series.push(Series { role, shape: Shape::Band { lower, upper } });
            names.push(name);
        }
    }
    let partial = pods.iter().filter(|pods| pods.not_counted > 0);
    let hatched: Vec<Stretch> = partial
        .map(|it| Stretch { from: it.from, to: it.to, value: f64::from(it.not_counted) })
        .collect();
    if !hatched.is_empty() {
        let outline: Vec<Value> = pods.iter().map(|pods| (pods.from, Some(all(pods)))).collect();
        series.push(Series::line("total", outline));
        series.push(Series { role: "hatched", shape: Shape::Hatched(hatched) });
        let hatched = Key::new("k a hatched", "not classified");
        keys.push(Key { about: NOT_CLASSIFIED, ..hatched });
        keys.push(Key::new("k total", "total"));
    }
    let about = format!("Pods by group: {}; at most {most:.0} pods", names.join(", "));
    Some(Chart {
        title: "Pods".to_owned(),
        owner: String::new(),
        keys,
        about,
        unit: Unit::Count,
        size: PODS,
        axis: Unit::Count.axis(most, PODS),
        series,
        main: "",
        line_title: String::new(),
        flag: None,
    })
}

/// The explanation of a hatched area.
const NOT_CLASSIFIED: &str = "In these ticks, the controller did not look at the pods: for \
     example, it could not read the scale or the metrics.";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::presentation::Controller as _;
    use crate::presentation::hpa::Run;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_data::FIXTURES;
    use kube_lockstep_scenario as scenario;
    use kube_lockstep_sim::run::free_run;

    #[test]
    fn a_metric_has_no_value_while_it_fails() {
        let text =
            FIXTURES.text("errors/metrics-api-unavailable-and-back.yaml").expect("a fixture");
        let no_files = |_: &str| Err("".into());
        let scenario = scenario::parse("outage.yaml", &text, &no_files).expect("a scenario");
        let scenario = Arc::new(scenario);
        let run = free_run(&scenario, Release::NEWEST);
        let drawn = Run::from_model(&scenario, &run, None).expect("ticks");
        let charts = drawn.timelines()[0].charts();
        let metric = charts.iter().find(|chart| chart.main == "value").expect("a metric");
        let values: Vec<Option<f64>> = metric.values().iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [Some(50.0), None, None, None, Some(100.0)]);
    }
}
