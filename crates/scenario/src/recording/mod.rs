//! Recorded series of values: reads the files of [`Recorded`] signals, selects and combines series,
//! and shifts their times.

mod clock;
mod csv;
mod number;
mod open_metrics;
mod prometheus;
mod slots;
mod timestamp;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::clock::{Clock, Used};
pub use self::csv::matches;
pub use self::timestamp::Timestamp;
use super::error::similar;
use super::recorded::{Recorded, RecordedSample, RecordedSource};
use super::syntax::Syntax;
use crate::diagnostic::{Diagnostic, Kind};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};

/// The most samples of a file.
const MOST_SAMPLES: usize = 20_000_000;

/// The fewest rises by which values seem to be those of a counter: a gauge falls earlier.
const RISES_OF_A_COUNTER: usize = 30;

/// The most series or columns that a message lists.
const MOST_LISTED: usize = 5;

/// The error that there are several series. The hint follows an introduction. `name` distinguishes
/// them, and `by` names their pods.
fn several_series(
    what: String,
    introduction: &str,
    name: &str,
    by: &str,
    syntax: Syntax,
) -> Diagnostic {
    let label = BTreeMap::from([(name.to_owned(), "VALUE".to_owned())]);
    let select = format!("{introduction}select one with {}", syntax.series(&label));
    let (by, total, sum) = (syntax.setting("by", by), syntax.total(), syntax.sum());
    let hint = format!(
        "{select}; if they are pods, use {by} for the usage of each, or {total} and {sum} for the \
         total of all"
    );
    let hint_without_pods = format!("{select}, or add them up with {sum}").into();
    Diagnostic::new(what).hint(hint).kind(Kind::SeveralSeries { hint_without_pods })
}

/// The contents of a saved Prometheus response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerOverview {
    /// The number of series.
    pub series: usize,
    /// The number of values of all series.
    pub samples: usize,
    /// The time of the first value, in RFC 3339.
    pub first: String,
    /// The time of the last value.
    pub last: String,
}

/// Checks that the text of a saved Prometheus response is usable as a signal: as one, or, with
/// `by`, as one for each value of this label.
///
/// # Errors
/// Why it is not usable; `path` names the file in the message.
pub fn check_answer(
    path: &str,
    text: &str,
    by: Option<&str>,
) -> Result<AnswerOverview, Diagnostic> {
    let source = RecordedSource::Prometheus(path.to_owned());
    let by = by.map(str::to_owned);
    let recorded = Recorded { sum: by.is_none(), by, ..Recorded::new(source) };
    let recording = Recording::read(&recorded, text)?;
    recording.require_values().map_err(|error| {
        error.hint("check the query: for example, a division by zero gives NaN")
    })?;
    let Recording { first, last, .. } = recording;
    let all = prometheus::read(text)?;
    let samples = all.iter().map(|series| series.samples.len()).sum();
    let (first, last) = (first.to_string(), last.to_string());
    Ok(AnswerOverview { series: all.len(), samples, first, last })
}

/// A series as it was recorded.
#[derive(Clone, Debug, Default)]
struct Series {
    labels: BTreeMap<String, String>,
    /// The file declares a counter of this name.
    is_counter: bool,
    /// Sorted by time.
    samples: Vec<Raw>,
    /// How long a value holds if no other follows. None: the series has a single sample.
    hold: Option<Span>,
}

impl Series {
    fn hold(&self) -> Span {
        self.hold.unwrap_or(HOLD_OF_A_SINGLE_SAMPLE)
    }
}

/// A sample as it was recorded. NaN stands for no value.
#[derive(Clone, Copy, Debug)]
struct Raw {
    at: Timestamp,
    value: f64,
}

/// The selected series of a file.
#[derive(Clone, Debug)]
pub struct Recording {
    /// One signal, or one of each pod: see `by`.
    series: Vec<Series>,
    /// The first timestamp of the file.
    first: Timestamp,
    last: Timestamp,
    path: String,
    /// The number of series by pod, which may be more than the pods: pods are replaced.
    by_pod: Option<usize>,
    /// True if series with and without the label `container` are added up.
    mixes_containers: bool,
    /// The gaps within the series, if there are several series.
    partial_gap: Option<PartialGap>,
    /// True if the values rise like those of a counter.
    rises_like_a_counter: bool,
    /// The first time, if it has no time zone.
    without_zone: Option<String>,
}

/// Gaps of individual series: a series has no sample for longer than a value is valid.
#[derive(Clone, Copy, Debug)]
struct PartialGap {
    /// The number of series with gaps between their first and last sample.
    with_gaps: usize,
    /// The number of all series.
    series: usize,
    /// The beginning of the first gap.
    from: Timestamp,
    to: Timestamp,
}

impl PartialGap {
    fn find(all: &[Series]) -> Option<PartialGap> {
        if all.len() < 2 {
            return None;
        }
        let gaps = all.iter().filter_map(|series| {
            let values = series.samples.iter().filter(|raw| raw.value.is_finite());
            let times: Vec<Timestamp> = values.map(|raw| raw.at).collect();
            let gap = times.windows(2).find(|pair| pair[1].since(pair[0]) > series.hold().0)?;
            Some((gap[0], gap[1]))
        });
        let gaps: Vec<(Timestamp, Timestamp)> = gaps.collect();
        let (from, to) = gaps.iter().copied().min()?;
        Some(PartialGap { with_gaps: gaps.len(), series: all.len(), from, to })
    }

    /// `load.json: 1 of 3 series has a gap from 10m to 30m; during a gap, the sum does not include
    /// the series`.
    fn note(self, path: &str, is_sum: bool, start: Timestamp) -> String {
        let PartialGap { with_gaps, series, from, to } = self;
        let [from, to] = [from, to].map(|at| Time(at.since(start)));
        let gap = match with_gaps {
            1 => format!("1 of {series} series has a gap from {from} to {to}"),
            _ => format!(
                "{with_gaps} of {series} series have gaps, the first one from {from} to {to}"
            ),
        };
        let effect = match is_sum {
            true => "during a gap, the sum does not include the series",
            false => "during the gap of its series, a pod has no sample",
        };
        format!("{path}: {gap}; {effect}")
    }
}

/// The signals of a recording.
pub struct Signals {
    /// The signal; of several pods, their mean.
    pub common: Arc<[RecordedSample]>,
    /// The signals of the pods, in their order. Empty unless the recording is by pod.
    pub pods: Vec<Arc<[RecordedSample]>>,
    /// Notes on times without samples, and on replaced pods.
    pub notes: Vec<String>,
    /// A note on values that rise like those of a counter. Memory can rise like this as well.
    pub counter: Option<String>,
}

impl Recording {
    /// Reads the text of a file.
    pub(crate) fn read(recorded: &Recorded, text: &str) -> Result<Recording, Diagnostic> {
        let path = recorded.source.path().to_owned();
        let within =
            |error: Diagnostic| Diagnostic { what: format!("{path}{}", error.what), ..error };
        check_format(&recorded.source, text).map_err(within)?;
        let all = match recorded.source {
            RecordedSource::Csv(_) => csv::read(recorded, text),
            RecordedSource::Prometheus(_) => prometheus::read(text),
            RecordedSource::OpenMetrics(_) => open_metrics::read(text),
        };
        let mut all = all.map_err(within)?;
        if all.iter().map(|series| series.samples.len()).sum::<usize>() > MOST_SAMPLES {
            return Err(within(Diagnostic::new(format!(": more than {MOST_SAMPLES} samples"))));
        }
        for series in &mut all {
            series.samples.sort_by_key(|sample| sample.at);
        }
        let firsts = all.iter().filter_map(|series| series.samples.first().map(|raw| raw.at));
        let lasts = all.iter().filter_map(|series| series.samples.last().map(|raw| raw.at));
        let (Some(first), Some(last)) = (firsts.min(), lasts.max()) else {
            let hint = "check the query, its range, and the column of the values";
            return Err(within(Diagnostic::new(" contains no samples").hint(hint)));
        };
        if first.is_date() != last.is_date() {
            let what = format!(" has times with and without a date: from {first} to {last}");
            let hint = "write all times in the same form: as dates, or as seconds from the start";
            return Err(within(Diagnostic::new(what).hint(hint)));
        }
        let mut found = select(recorded, all).map_err(within)?;
        set_holds(&mut found, recorded.hold);
        let mixes_containers = recorded.sum && Recording::mixes_containers(&found);
        let without_zone = match recorded.source {
            RecordedSource::Csv(_) => csv::time_without_zone(recorded, text),
            RecordedSource::Prometheus(_) | RecordedSource::OpenMetrics(_) => None,
        };
        let rises_like_a_counter = rise_like_counters(&found);
        let partial_gap = PartialGap::find(&found);
        let mut series = divide(recorded, found).map_err(within)?;
        let usual = usual_hold(&series);
        series.iter_mut().for_each(|it| it.hold = it.hold.or(usual));
        let by_pod = recorded.by.as_ref().map(|_| series.len());
        if by_pod.is_some() {
            series = slots::assign(series);
        }
        Ok(Recording {
            series,
            first,
            last,
            path,
            by_pod,
            mixes_containers,
            partial_gap,
            rises_like_a_counter,
            without_zone,
        })
    }

    /// The time from t=0 to the last sample.
    pub fn length(&self, start: Timestamp) -> Span {
        Span(self.last.since(start).max(0))
    }

    /// The signals from t=0 to the last time that is shown.
    pub fn signals(
        mut self,
        recorded: &Recorded,
        clock: &Clock,
        shown: Shown,
    ) -> Result<Signals, Diagnostic> {
        let until = shown.until;
        let syntax = recorded.syntax;
        let used = Used { recorded, recording: &self };
        let start = clock.start(used)?;
        let mut notes = Vec::from_iter(clock.note(used, start));
        let counter = self.note_on_counter();
        notes.extend(self.note_on_zone());
        notes.extend(self.note_on_pods());
        notes.extend(self.note_on_short_series());
        notes.extend(self.mixes_containers.then(|| {
            format!(
                "{}: the sum adds series with and without the label container; if those without \
                 are the usage of whole pods, it counts twice: add container!=\"\" to the query",
                self.path
            )
        }));
        let is_sum = recorded.by.is_none() || recorded.sum;
        notes.extend(self.partial_gap.map(|gap| gap.note(&self.path, is_sum, start)));
        self.require_values()?;
        let window = Window {
            start,
            until,
            // The values are converted to milli-units.
            factor: recorded.unit.as_ref().map_or(1000.0, milli),
        };
        let pods: Vec<Arc<[RecordedSample]>> = match &recorded.by {
            None => Vec::new(),
            Some(_) => self.series.iter().map(|series| window.samples(series)).collect(),
        };
        let combined = match self.series.len() {
            1 => self.series.remove(0),
            _ => combine(&self.series, |sum, count| sum / f64::from(count)),
        };
        let common = window.samples(&combined);
        if !common.iter().any(|sample| sample.milli.is_some()) {
            let what = format!(
                "{} has no sample between t=0s and t={until}: its samples are from {} to {}",
                self.path, self.first, self.last
            );
            let hint = match recorded.start {
                Some(_) => {
                    let setting = syntax.pick("`start`", "`start=TIME`");
                    format!(
                        "t=0s is the time {start}, as {setting} says: change `start` to a time \
                         before the last sample, or remove it"
                    )
                }
                None => {
                    let set = syntax.pick("set `start` to", "add `start=TIME`,");
                    format!("t=0s is the time {start}: {set} the time that t=0s stands for")
                }
            };
            return Err(Diagnostic::new(what).hint(hint));
        }
        let explicit = explicit_gaps(&combined, start);
        notes.extend(note_on_gaps(&common, &explicit, shown, recorded));
        Ok(Signals { common, pods, notes, counter })
    }

    /// Fails if the recording has no value at all.
    fn require_values(&self) -> Result<(), Diagnostic> {
        let mut all = self.series.iter().flat_map(|series| &series.samples);
        if all.any(|raw| raw.value.is_finite()) {
            return Ok(());
        }
        let Recording { path, first, last, .. } = self;
        let what =
            format!("{path} contains only gaps: no sample from {first} to {last} is a number");
        Err(Diagnostic::new(what).hint("check the query, or the column of the values"))
    }

    /// A note on times without a time zone.
    fn note_on_zone(&self) -> Option<String> {
        let (path, time) = (&self.path, self.without_zone.as_ref()?);
        Some(format!(
            "{path}: the times, such as {time}, have no time zone and are read as UTC; a time with \
             an offset is 2025-05-06T09:00:00+02:00"
        ))
    }

    /// A note on values that rise like those of a counter.
    fn note_on_counter(&self) -> Option<String> {
        let path = &self.path;
        self.rises_like_a_counter.then(|| {
            format!(
                "{path}: the values only rise, or fall to zero and rise again, as those of a \
                 counter do; if it is a counter, record its rate in place of its values: \
                 rate(NAME[2m])"
            )
        })
    }

    /// A note on the series of pods, and on the pods without one.
    fn note_on_pods(&self) -> Option<String> {
        let (series, pods) = (self.by_pod?, self.series.len());
        let path = &self.path;
        let of = |count: usize, noun: &str, plural: &str| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {plural}"),
        };
        let assigned = if series == pods {
            format!("{path}: {} of pods", of(series, "series", "series"))
        } else {
            format!(
                "{path}: {series} series belong to {}, because a series that begins when another \
                 one ends continues it",
                of(pods, "pod", "pods")
            )
        };
        Some(format!("{assigned}; further pods, from ordinal {pods} on, have the mean"))
    }

    /// A note on pods that begin late or end early, as in a recording of an HPA that scaled them:
    /// in a prediction, the pods exist all the time.
    fn note_on_short_series(&self) -> Option<String> {
        self.by_pod?;
        let is_short = |series: &&Series| {
            let values = || series.samples.iter().filter(|raw| raw.value.is_finite());
            let (first, last) = (values().next(), values().next_back());
            first.zip(last).is_some_and(|(first, last)| {
                let hold = series.hold().0;
                first.at.since(self.first) > hold || self.last.since(last.at) > hold
            })
        };
        let short = self.series.iter().filter(is_short).count();
        let (path, pods) = (&self.path, self.series.len());
        (short > 0).then(|| {
            format!(
                "{path}: {short} of {pods} pods have samples only part of the time; the rest of \
                 the time, they have no metrics. If the pods share their load, use its total: the \
                 sum of the series in place of `by`"
            )
        })
    }

    /// Returns true if only some series belong to containers, as in a query of cAdvisor that also
    /// returns whole pods: their sum counts the usage twice.
    fn mixes_containers(all: &[Series]) -> bool {
        let has_container =
            |series: &Series| series.labels.get("container").is_some_and(|name| !name.is_empty());
        all.iter().any(has_container) && !all.iter().all(has_container)
    }
}

/// The part of a recording that a scenario shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The last time, in the time of the recording.
    pub until: Time,
    /// True if the scenario shifts or repeats the recording.
    pub is_moved: bool,
}

/// The part of a recording that a scenario uses, and its unit.
struct Window {
    start: Timestamp,
    until: Time,
    factor: f64,
}

impl Window {
    fn samples(&self, series: &Series) -> Arc<[RecordedSample]> {
        let mut samples: Vec<RecordedSample> = Vec::with_capacity(series.samples.len() + 1);
        let mut push = |at: Time, milli: Option<i64>| {
            if at > self.until {
                return;
            }
            // Only the last sample before the start matters.
            if at <= Time::ZERO {
                samples.clear();
            }
            samples.push(RecordedSample { at, milli });
        };
        for (index, raw) in series.samples.iter().enumerate() {
            let at = Time(raw.at.since(self.start));
            let milli = (raw.value * self.factor).round();
            // The conversion saturates.
            let has_value = raw.value.is_finite();
            push(at, has_value.then_some(milli as i64));
            let next = series.samples.get(index + 1).map(|next| Time(next.at.since(self.start)));
            if has_value && next.is_none_or(|next| next - at > series.hold()) {
                push(at + series.hold(), None);
            }
        }
        samples.into()
    }
}

/// Refuses web pages, and JSON in place of text. A Prometheus response has messages of its own.
fn check_format(source: &RecordedSource, text: &str) -> Result<(), Diagnostic> {
    let name = match source {
        RecordedSource::Csv(_) => "CSV",
        RecordedSource::Prometheus(_) => return Ok(()),
        RecordedSource::OpenMetrics(_) => "OpenMetrics text",
    };
    let head: String = text.trim_start().chars().take(20).collect();
    let head = head.to_lowercase();
    if ["<!doctype", "<html", "<?xml"].iter().any(|begin| head.starts_with(begin)) {
        let hint = "it may be that of a login or of an error: save the file again";
        return Err(Diagnostic::new(format!(": this is a web page, not {name}")).hint(hint));
    }
    if matches!(source, RecordedSource::OpenMetrics(_)) && is_json(text) {
        let hint = "if it is a Prometheus response, use `prometheus` in place of `openMetrics`";
        return Err(Diagnostic::new(format!(": this looks like JSON, not {name}")).hint(hint));
    }
    Ok(())
}

/// Returns true if a text begins like an object of JSON: `{"status":`. Labels of OpenMetrics text
/// can begin with a name in quotes as well: `{"a.b",pod="web-0"}`.
fn is_json(text: &str) -> bool {
    let object = text.trim_start().strip_prefix('{').map(str::trim_start);
    let key = object.and_then(|rest| rest.strip_prefix('"')?.split_once('"'));
    key.is_some_and(|(_, rest)| rest.trim_start().starts_with(':'))
}

/// A unit in milli-units; it may be a fraction of one.
fn milli(unit: &Quantity) -> f64 {
    let whole = unit.milli();
    let is_exact = Quantity::from_milli(whole, Format::DecimalSI).compare(unit) == Ordering::Equal;
    if is_exact { whole as f64 } else { unit.approx_f64() * 1000.0 }
}

/// How long a single sample holds, as in Prometheus.
const HOLD_OF_A_SINGLE_SAMPLE: Span = Span::from_mins(5);

/// The fewest intervals whose median is the interval of a series: with fewer, it may be a gap.
const INTERVALS_OF_A_SERIES: usize = 4;

/// Sets how long the values of each series hold: as the user says, or by the interval of the
/// series; the interval of all series is that of a series with few samples.
fn set_holds(series: &mut [Series], hold: Option<Span>) {
    let usual = hold.or_else(|| usual_hold(series));
    for one in series {
        let has_interval = hold.is_none() && one.samples.len() > INTERVALS_OF_A_SERIES;
        let own = if has_interval { usual_hold(std::slice::from_ref(one)) } else { None };
        one.hold = own.or(usual);
    }
}

/// One and a half times the median interval between two samples of a series. None: no series has
/// two samples.
fn usual_hold(series: &[Series]) -> Option<Span> {
    let intervals = series.iter().flat_map(|series| series.samples.windows(2));
    let mut intervals: Vec<i64> = intervals
        .map(|pair| pair[1].at.since(pair[0].at))
        .filter(|interval| *interval > 0)
        .collect();
    if intervals.is_empty() {
        return None;
    }
    let middle = intervals.len() / 2;
    let (_, median, _) = intervals.select_nth_unstable(middle);
    Some(Span(median.saturating_add(*median / 2)))
}

/// Selects the series with the labels of the signal.
fn select(recorded: &Recorded, all: Vec<Series>) -> Result<Vec<Series>, Diagnostic> {
    let labels: Vec<BTreeMap<String, String>> =
        all.iter().take(MOST_LISTED + 1).map(|series| series.labels.clone()).collect();
    let matches = |it: &Series| {
        recorded.series.iter().all(|(name, value)| it.labels.get(name) == Some(value))
    };
    let found: Vec<Series> = all.into_iter().filter(matches).collect();
    if found.is_empty() {
        return Err(no_series(recorded, &labels));
    }
    refuse_counters(&found)?;
    Ok(found)
}

/// The error that no series has the labels of a signal. `known` are those of the series.
fn no_series(recorded: &Recorded, known: &[BTreeMap<String, String>]) -> Diagnostic {
    let Recorded { series: selector, syntax, .. } = recorded;
    let what = format!(" has no series with the labels {}", shown(selector));
    let hint = match known {
        [only] if only.is_empty() => {
            format!("its only series has no labels: leave out {}", syntax.series(selector))
        }
        known => {
            let names: Vec<String> = known.iter().take(MOST_LISTED).map(shown).collect();
            let more = if known.len() > MOST_LISTED { ", …" } else { "" };
            format!("the series are {}{more}", names.join(", "))
        }
    };
    Diagnostic::new(what).hint(hint).kind(Kind::InvalidField("series"))
}

/// The series of the signal: one, or one of each pod.
fn divide(recorded: &Recorded, found: Vec<Series>) -> Result<Vec<Series>, Diagnostic> {
    match &recorded.by {
        Some(by) => series_by_pod(recorded, by, found),
        None => one(recorded, found).map(|only| vec![only]),
    }
}

/// Refuses counters, whose values only increase: an HPA scales on their rate.
fn refuse_counters(series: &[Series]) -> Result<(), Diagnostic> {
    let names = series.iter().filter_map(|series| Some((series.labels.get("__name__")?, series)));
    let is_counter =
        |(name, series): &(&String, &Series)| series.is_counter || name.ends_with("_total");
    match names.into_iter().find(is_counter).map(|(name, _)| name) {
        None => Ok(()),
        Some(name) => {
            let what = format!(": {name} is a counter, whose values only increase");
            Err(Diagnostic::new(what).hint(format!("query its rate: rate({name}[2m])")))
        }
    }
}

/// Returns true if the series, without the short ones, rise like counters.
fn rise_like_counters(series: &[Series]) -> bool {
    let is_long = |it: &&Series| it.samples.len() > RISES_OF_A_COUNTER;
    let mut long = series.iter().filter(is_long).peekable();
    long.peek().is_some() && long.all(rises_like_a_counter)
}

/// Returns true if the values only rise, or fall to almost zero and rise again, as those of a
/// counter whose process restarts. A counter of rare events has the same value most of the time.
fn rises_like_a_counter(series: &Series) -> bool {
    let finite = series.samples.iter().map(|raw| raw.value).filter(|value| value.is_finite());
    let values: Vec<f64> = finite.collect();
    let steps = || values.windows(2);
    let rises = steps().filter(|pair| pair[1] > pair[0]).count();
    let falls: Vec<&[f64]> = steps().filter(|pair| pair[1] < pair[0]).collect();
    let is_restart = |pair: &&[f64]| pair[1] >= 0.0 && pair[1] < pair[0] / 10.0;
    rises >= RISES_OF_A_COUNTER
        && rises >= values.len() / 3
        && falls.len() <= rises / 10
        && falls.iter().all(is_restart)
}

/// One series, or the sum of several.
fn one(recorded: &Recorded, mut found: Vec<Series>) -> Result<Series, Diagnostic> {
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    if recorded.sum {
        return Ok(combine(&found, |sum, _| sum));
    }
    let known: Vec<String> = found.iter().take(MOST_LISTED).map(|it| shown(&it.labels)).collect();
    let more = if found.len() > MOST_LISTED { ", …" } else { "" };
    let what = format!(" has {} series: {}{more}", found.len(), known.join(", "));
    if let Some(by) = &recorded.by {
        let hint = format!("one series for each pod is required, as from `sum by ({by}) (…)`");
        return Err(Diagnostic::new(what).hint(hint));
    }
    // A column without labels is the pod of its name.
    let is_of_pod = |label: &str| ["pod", csv::COLUMN].contains(&label);
    let all = found.iter().all(|it| it.labels.keys().any(|label| is_of_pod(label)));
    let by = if all { "pod" } else { "LABEL" };
    Err(several_series(what, "", "LABEL", by, recorded.syntax))
}

/// The series of each pod, in the order in which they begin, then by name.
fn series_by_pod(
    recorded: &Recorded,
    by: &str,
    found: Vec<Series>,
) -> Result<Vec<Series>, Diagnostic> {
    let mut pods: BTreeMap<String, Vec<Series>> = BTreeMap::new();
    for series in found {
        let Some(pod) = series.labels.get(by) else {
            let what = format!(" has a series without the label `{by}`: {}", shown(&series.labels));
            let names = || series.labels.keys().map(String::as_str);
            let hint = similar(by, names()).or_else(|| {
                let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                let names = names.join(", ");
                let hint =
                    format!("set `by` to the label that names the pods; the labels are {names}");
                (!series.labels.is_empty()).then_some(hint.into())
            });
            return Err(Diagnostic::new(what).with_hint(hint).kind(Kind::InvalidField("by")));
        };
        pods.entry(pod.clone()).or_default().push(series);
    }
    let mut pods: Vec<(Option<Timestamp>, String, Series)> = pods
        .into_iter()
        .map(|(pod, series)| {
            let series = one(recorded, series)?;
            Ok((series.samples.first().map(|raw| raw.at), natural(&pod), series))
        })
        .collect::<Result<_, Diagnostic>>()?;
    pods.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    Ok(pods.into_iter().map(|(_, _, series)| series).collect())
}

/// A name whose numbers sort by value: `web-2` before `web-10`.
fn natural(name: &str) -> String {
    let mut sortable = String::new();
    let mut digits = String::new();
    for c in name.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            sortable.push_str(&format!("{digits:0>20}"));
            digits.clear();
        }
        sortable.push(c);
    }
    sortable
}

/// Combines series: at each timestamp, of the values that the series have then. Between its
/// samples, a series has its last value, for at most its `hold`.
fn combine(series: &[Series], value: impl Fn(f64, u32) -> f64) -> Series {
    let hold = series.iter().filter_map(|series| series.hold).max();
    let parts_of_series = |(index, series): (usize, &Series)| {
        // The sum holds as long as the slowest series: the others end before.
        let samples = match series.hold < hold {
            true => with_ends_of_hold(series),
            false => series.samples.clone(),
        };
        let last = samples.len().saturating_sub(1);
        let part = move |(at, raw)| Part { series: index, raw, is_last: at == last };
        samples.into_iter().enumerate().map(part)
    };
    let mut all: Vec<Part> = series.iter().enumerate().flat_map(parts_of_series).collect();
    all.sort_by_key(|part| part.raw.at);
    let mut current: Vec<Option<Part>> = vec![None; series.len()];
    let same_time = |one: &Part, other: &Part| one.raw.at == other.raw.at;
    let combined = all.chunk_by(same_time).map(|group| {
        let at = group[0].raw.at;
        // Several rows of one series with the same time count separately.
        let mut values = Values::default();
        for part in group {
            values.add(part.raw.value);
            current[part.series] = Some(*part);
        }
        for part in current.iter_mut().filter(|part| part.is_some_and(|it| it.raw.at < at)) {
            match part {
                Some(held)
                    if !held.is_last && at.since(held.raw.at) <= series[held.series].hold().0 =>
                {
                    values.add(held.raw.value);
                }
                // It has ended, or has a gap.
                _ => *part = None,
            }
        }
        let Values { sum, count } = values;
        Raw { at, value: if count == 0 { f64::NAN } else { value(sum, count) } }
    });
    Series { samples: combined.collect(), hold, ..Series::default() }
}

/// The samples of a series, with one without a value at the beginning of each gap.
fn with_ends_of_hold(series: &Series) -> Vec<Raw> {
    let hold = series.hold();
    let mut samples = Vec::with_capacity(series.samples.len());
    for (index, raw) in series.samples.iter().enumerate() {
        samples.push(*raw);
        let next = series.samples.get(index + 1);
        if next.is_some_and(|next| next.at.since(raw.at) > hold.0) {
            samples.push(Raw { at: raw.at.plus(hold), value: f64::NAN });
        }
    }
    samples
}

/// A sample of one of several series.
#[derive(Clone, Copy)]
struct Part {
    series: usize,
    raw: Raw,
    is_last: bool,
}

/// The values of several series at one time.
#[derive(Default)]
struct Values {
    sum: f64,
    count: u32,
}

impl Values {
    fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.sum += value;
            self.count += 1;
        }
    }
}

/// `{pod: web-0, container: app}`.
fn shown(labels: &BTreeMap<String, String>) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{{{}}}", labels.join(", "))
}

/// The times of samples without a value, as of empty fields.
fn explicit_gaps(series: &Series, start: Timestamp) -> BTreeSet<Time> {
    let without_value = series.samples.iter().filter(|raw| !raw.value.is_finite());
    without_value.map(|raw| Time(raw.at.since(start))).collect()
}

/// A note on the intervals without a value. Those that begin at an explicit gap, and that before
/// the first sample, would not be shorter if values held longer.
fn note_on_gaps(
    samples: &[RecordedSample],
    explicit: &BTreeSet<Time>,
    Shown { until, is_moved }: Shown,
    recorded: &Recorded,
) -> Option<String> {
    let mut gaps: Vec<(Time, Time)> = Vec::new();
    let mut ends_of_hold = false;
    if let Some(first) = samples.first().filter(|first| first.at > Time::ZERO) {
        gaps.push((Time::ZERO, first.at));
    }
    for (index, sample) in samples.iter().enumerate() {
        let end = samples.get(index + 1).map_or(until, |next| next.at);
        if sample.milli.is_some() || end <= Time::ZERO.max(sample.at) {
            continue;
        }
        let from = sample.at.max(Time::ZERO);
        match gaps.last_mut().filter(|(_, to)| *to == from) {
            Some((_, to)) => *to = end,
            None => {
                ends_of_hold |= !explicit.contains(&sample.at);
                gaps.push((from, end));
            }
        }
    }
    let (from, to) = gaps.first()?;
    let more = match gaps.len() {
        1 => String::new(),
        2 => ", and in one more interval".to_owned(),
        several => format!(", and in {} more intervals", several - 1),
    };
    let setting = recorded.syntax.pick("`hold`", "`hold=5m`");
    let hold = format!("; {setting} sets how long a value holds");
    let hold = if ends_of_hold { &hold } else { "" };
    let path = recorded.source.path();
    let whose = if is_moved {
        " in the times of the recording, without its shift or repetition"
    } else {
        ""
    };
    Some(format!("{path}: no sample from {from} to {to}{more}{whose}{hold}"))
}

#[cfg(test)]
mod tests;
