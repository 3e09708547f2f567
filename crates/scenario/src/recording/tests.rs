//! Recordings in each format, and their errors.

use super::*;
use crate::diagnostic::Diagnostic;

fn csv(text: &str) -> Recorded {
    let [time, value] = ["time", "value"].map(|name| Some(name.to_owned()));
    let named = text.starts_with("time,value");
    let empty = Recorded::new(RecordedSource::Csv("load.csv".to_owned()));
    if named { Recorded { time, value, ..empty } } else { empty }
}

fn prometheus() -> Recorded {
    Recorded::new(RecordedSource::Prometheus("load.json".to_owned()))
}

fn open_metrics() -> Recorded {
    Recorded::new(RecordedSource::OpenMetrics("load.txt".to_owned()))
}

fn read(recorded: &Recorded, text: &str) -> Result<Signals, Diagnostic> {
    let recording = Recording::read(recorded, text)?;
    let clock = Clock::new([Used { recorded, recording: &recording }]);
    recording.signals(recorded, &clock, Shown { until: Time::from_secs(3600), is_moved: false })
}

fn signals(recorded: &Recorded, text: &str) -> Signals {
    read(recorded, text).unwrap_or_else(|error| panic!("{error:?}"))
}

/// `0s:1000 30s:- …`: the times and values in milli-units.
fn shown_samples(samples: &[RecordedSample]) -> String {
    let sample = |sample: &RecordedSample| {
        let value = sample.milli.map_or_else(|| "-".to_owned(), |milli| milli.to_string());
        format!("{}:{value}", sample.at)
    };
    samples.iter().map(sample).collect::<Vec<_>>().join(" ")
}

fn common(recorded: &Recorded, text: &str) -> String {
    shown_samples(&signals(recorded, text).common)
}

fn error(recorded: &Recorded, text: &str) -> String {
    let read = read(recorded, text).map(drop);
    let error = read.expect_err("the recording is invalid");
    format!("{error}; {}", error.hint_text().unwrap_or_default())
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn times_are_shifted_so_that_the_first_is_zero() {
    for text in [
        "time,value\n2025-05-06T09:00:00Z,1\n2025-05-06T09:00:30Z,2\n",
        "time,value\n2025-05-06T11:00:00+02:00,1\n2025-05-06T11:00:30+02:00,2\n",
        "time,value\n2025-05-06 09:00:00,1\n2025-05-06 09:00:30,2\n",
        "time,value\n1746522000,1000m\n1746522030,2\n",
        "time,value\n1746522000000,1\n1746522030000,2\n",
        "time;value\n30;2\n0;1\n",
        "\u{feff}time,value\r\n\"0\",\"1\"\r\n30, 2\r\n",
    ] {
        assert_eq!(common(&csv(text), text), "0s:1000 30s:2000 1m15s:-", "{text}");
    }
}

#[test]
fn times_without_a_time_zone_have_a_note() {
    for (time, has_note) in [
        ("2025-05-06 09:00:00", true),
        ("2025-05-06T09:00", true),
        ("06.05.2025 09:00", true),
        ("2025-05-06T09:00:00Z", false),
        ("2025-05-06 09:00:00+02:00", false),
        ("1746522000", false),
        ("0", false),
    ] {
        let text = format!("time,value\n{time},1\n");
        let notes = signals(&csv(&text), &text).notes.join("\n");
        let expected = format!(
            "load.csv: the times, such as \"{time}\", have no time zone and are read as UTC; a \
             time with an offset is 2025-05-06T09:00:00+02:00"
        );
        assert_eq!(notes.contains(&expected), has_note, "{time}: {notes}");
    }
}

#[test]
fn a_start_selects_a_part() {
    let text =
        "time,value\n2025-05-06T09:00:00Z,1\n2025-05-06T09:00:30Z,2\n2025-05-06T09:01:00Z,3\n";
    let start = Some("2025-05-06T09:00:45Z".to_owned());
    let part = Recorded { start, ..csv(text) };
    assert_eq!(common(&part, text), "-15s:2000 15s:3000 1m:-");
    let start = Some("2025-05-07".to_owned());
    let later = error(&Recorded { start, ..csv(text) }, text);
    assert!(later.starts_with("load.csv has no sample between t=0s and t=1h: its samples are"));
    assert!(later.contains("from 2025-05-06T09:00:00Z to 2025-05-06T09:01:00Z"), "{later}");
    let wrong = error(&Recorded { start: Some("noon".to_owned()), ..csv(text) }, text);
    assert!(wrong.starts_with("expected a time as `start`, found \"noon\""), "{wrong}");
}

#[test]
fn empty_fields_and_missing_rows_are_gaps() {
    let text = "time,value\n0,1\n15,\n30,3\n45,4\n120,5\n135,6\n";
    let all = "0s:1000 15s:- 30s:3000 45s:4000 1m7.5s:- 2m:5000 2m15s:6000 2m37.5s:-";
    assert_eq!(common(&csv(text), text), all);
    let notes = signals(&csv(text), text).notes;
    let [note] = notes.as_slice() else { panic!("one note: {notes:?}") };
    assert!(note.starts_with("load.csv: no sample from 15s to 30s, and in 2 more intervals"));
    let held = Recorded { hold: Some(Span::from_mins(2)), ..csv(text) };
    let all = "0s:1000 15s:- 30s:3000 45s:4000 2m:5000 2m15s:6000 4m15s:-";
    assert_eq!(common(&held, text), all);
}

#[test]
fn rows_are_selected_and_divided_by_columns() {
    let text = "time,pod,zone,cores\n0,web-2,a,2\n0,web-10,a,4\n15,web-2,a,2\n15,web-10,a,5\n\
                15,web-1,a,3\n0,web-2,b,9\n";
    let zone =
        Recorded { value: Some("cores".to_owned()), series: labels(&[("zone", "a")]), ..csv("") };
    let by = Recorded { by: Some("pod".to_owned()), ..zone.clone() };
    let Signals { common: mean, pods, .. } = signals(&by, text);
    let pods: Vec<String> = pods.iter().map(|samples| shown_samples(samples)).collect();
    // In the order in which they begin, then by number.
    assert_eq!(pods, ["0s:2000 15s:2000 37.5s:-", "0s:4000 15s:5000 37.5s:-", "15s:3000 37.5s:-",]);
    assert_eq!(shown_samples(&mean), "0s:3000 15s:3333 37.5s:-");
    let sum = Recorded { sum: true, ..zone.clone() };
    assert_eq!(common(&sum, text), "0s:6000 15s:10000 37.5s:-");
    assert!(error(&zone, text).contains(":3: two rows with the time 0s: see line 2; if"));
}

#[test]
fn values_have_a_unit() {
    let text = "time,value\n0,250\n";
    let unit = kube_autoscaler_models::quantity::Quantity::parse("1m").ok();
    assert_eq!(common(&Recorded { unit, ..csv(text) }, text), "0s:250 5m:-");
}

#[test]
fn invalid_csv_has_a_message() {
    for (text, expected) in [
        ("", "load.csv: expected at least two columns, found 0; the first line names"),
        ("time\n0\n", "load.csv: expected at least two columns, found 1; "),
        ("t,a,b\n0,1,2\n", "load.csv has several columns, and `value` names none of them; set"),
        ("time,value\n", "load.csv contains no samples; "),
        ("time,value\nnoon,1\n", "load.csv:2: expected a time, found \"noon\"; for example 2025"),
        (
            "time,value\n0,1\n15,fast\n",
            "load.csv:3: column value: expected a number or a quantity, ",
        ),
        ("time,value\n0,1,2\n", "load.csv:2: expected 2 fields as in the header, found 3; "),
        ("time,value\n0,\n15,NaN\n", "load.csv contains only gaps: no sample from 0s to 15s is"),
    ] {
        let shown = error(&csv(text), text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
    let pods: String = (0..100).map(|pod| format!(",web-{pod}")).collect();
    let text = format!("time{pods}\n");
    let shown = error(&csv(&text), &text);
    assert!(shown.contains("; if each column is the series of a pod, set `value`"), "{shown}");
    assert!(shown.ends_with("web-0, web-1, web-2, web-3, web-4 and 95 more"), "{shown}");
    let other = Recorded { value: Some("total".to_owned()), ..csv(&text) };
    let shown = error(&other, &text);
    assert!(shown.ends_with("expected one of time, web-0, web-1, web-2, web-3 and 96 more"));
    let shown = error(&csv(MATRIX), MATRIX);
    let expected = "load.csv: this looks like JSON, not CSV; if it is a Prometheus response, use";
    assert!(shown.starts_with(expected), "{shown}");
    let text = "time,value\n0,1\n";
    let column = Recorded { value: Some("valeu".to_owned()), ..csv(text) };
    assert_eq!(error(&column, text), "load.csv has no column `valeu`; did you mean `value`?");
    let series = Recorded { series: labels(&[("value", "7")]), time: None, ..csv(text) };
    let expected = "load.csv: `value` is the column of the values; ";
    assert!(error(&series, text).starts_with(expected), "{}", error(&series, text));
}

const MATRIX: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[
    {"metric":{"pod":"web-0"},"values":[[1746522000,"0.25"],[1746522015,"NaN"]]},
    {"metric":{"pod":"web-1"},"values":[[1746522000.5,"0.5"],[1746522015.5,"1"]]}]}}"#;

#[test]
fn answers_of_prometheus_are_read() {
    let one = Recorded { series: labels(&[("pod", "web-1")]), ..prometheus() };
    assert_eq!(common(&one, MATRIX), "500ms:500 15.5s:1000 38s:-");
    let by = Recorded { by: Some("pod".to_owned()), ..prometheus() };
    assert_eq!(signals(&by, MATRIX).pods.len(), 2);
    let array = r#"[{"metric":{},"values":[[0,"2"]]}]"#;
    assert_eq!(common(&prometheus(), array), "0s:2000 5m:-");
}

#[test]
fn wrong_answers_of_prometheus_have_a_message() {
    let matrix = |result: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#)
    };
    for (text, expected) in [
        ("cpu 1".to_owned(), "load.json:1:1: not a Prometheus response: "),
        (
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
            "load.json: Prometheus did not answer the query: bad_data: parse error; correct",
        ),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned(),
            "load.json: expected the result of a range query, found a vector; save the response",
        ),
        (r#"{"status":"success"}"#.to_owned(), "load.json: not a Prometheus response: it has"),
        (matrix("[]"), "load.json contains no samples; "),
        (matrix(r#"[{"metric":{},"values":[[0,"x"]]}]"#), "load.json: expected [TIME, \"VALUE\"]"),
        (matrix(r#"[{"metric":{},"histograms":[]}]"#), "load.json: a native histogram has no"),
        (
            matrix(r#"[{"metric":{"__name__":"http_requests_total"},"values":[[0,"1"]]}]"#),
            "load.json: http_requests_total is a counter, whose values only increase; query its",
        ),
    ] {
        let shown = error(&prometheus(), &text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
    let several = error(&prometheus(), MATRIX);
    let expected = "load.json has 2 series: {pod: web-0}, {pod: web-1}; select one with `series:";
    assert!(several.starts_with(expected), "{several}");
    let none = Recorded { series: labels(&[("pod", "web-7")]), ..prometheus() };
    assert_eq!(
        error(&none, MATRIX),
        "load.json has no series with the labels {pod: web-7}; the series are {pod: web-0}, \
         {pod: web-1}"
    );
    let by = Recorded { by: Some("pods".to_owned()), ..prometheus() };
    let expected = "load.json has a series without the label `pods`: {pod: web-0}; did you mean";
    assert!(error(&by, MATRIX).starts_with(expected), "{}", error(&by, MATRIX));
}

#[test]
fn open_metrics_text_is_read() {
    let text = "# TYPE queue gauge\n# HELP queue Messages\nqueue{name=\"a}b\\\"c\"} 3 1746522000\n\
                queue{name=\"a}b\\\"c\"} 5 1746522060 # {trace=\"x\"} 1\n\
                queue{name=\"other\"} 7 1746522000\n# EOF\n";
    let one = Recorded { series: labels(&[("name", "a}b\"c")]), ..open_metrics() };
    assert_eq!(common(&one, text), "0s:3000 1m:5000 2m30s:-");
    let sum = Recorded { sum: true, ..open_metrics() };
    assert_eq!(common(&sum, text), "0s:10000 1m:5000 2m30s:-");
    // Prometheus' text format has milliseconds.
    assert_eq!(common(&open_metrics(), "up 1 1746522000000\n"), "0s:1000 5m:-");
}

#[test]
fn declared_counters_are_refused() {
    let text = "# TYPE requests counter\nrequests 1 1746522000\nrequests 9 1746522060\n";
    let expected = "load.txt: requests is a counter, whose values only increase; query its rate";
    assert!(error(&open_metrics(), text).starts_with(expected), "{}", error(&open_metrics(), text));
}

/// The sum of a counter has no name.
#[test]
fn values_that_only_rise_have_a_note() {
    let note = |text: &str| signals(&csv(text), text).counter;
    let recorded = |values: &mut dyn Iterator<Item = f64>| -> String {
        let row = |(index, value): (i32, f64)| format!("{},{value}\n", index * 15);
        "time,value\n".to_owned() + &(0..).zip(values).map(row).collect::<String>()
    };
    let rising = recorded(&mut (0..100).map(|it| f64::from(it * it)));
    let with_pauses = recorded(&mut (0..100).map(|it| f64::from(it / 4 * 4 + it % 4 / 2)));
    let restarted = recorded(&mut (0..100).map(|it| f64::from((it + 10) % 40)));
    for text in [&rising, &with_pauses, &restarted] {
        let note = note(text).expect("a note");
        let expected = "load.csv: the values only rise, or fall to zero and rise again, as those";
        assert!(note.starts_with(expected), "{note}");
    }
    let short = recorded(&mut (0..30).map(f64::from));
    let wave = recorded(&mut (0..200).map(|it| 2.0 + (f64::from(it) / 30.0).sin()));
    let falls_once = recorded(&mut (0..100).map(|it| f64::from(if it < 60 { it } else { it - 5 })));
    let constant = recorded(&mut (0..100).map(|it| f64::from(it / 5)));
    let saw = recorded(&mut (0..100).map(|it| f64::from(it % 5)));
    for text in [&short, &wave, &falls_once, &constant, &saw] {
        assert_eq!(note(text), None, "{text}");
    }
}

#[test]
fn gaps_in_one_of_several_series_are_noted() {
    let sample = |pod: &str, minute: i64| {
        format!("use{{pod=\"{pod}\"}} 1 {}\n", 1_746_522_000 + minute * 60)
    };
    let steady = (0..10).map(|minute| sample("a", minute));
    let with_gap = (0..10).filter(|minute| !(3..7).contains(minute)).map(|it| sample("b", it));
    let text: String = steady.chain(with_gap).collect();
    let notes = |recorded: &Recorded| signals(recorded, &text).notes.join("\n");
    let sum = notes(&Recorded { sum: true, ..open_metrics() });
    let expected = "1 of 2 series has a gap from 2m to 7m; during a gap, the sum does not";
    assert!(sum.contains(expected), "{sum}");
    let by_pod = notes(&Recorded { by: Some("pod".to_owned()), ..open_metrics() });
    assert!(
        by_pod.contains("2m to 7m; during the gap of its series, a pod has no sample"),
        "{by_pod}"
    );
    let one = notes(&Recorded { series: labels(&[("pod", "a")]), ..open_metrics() });
    assert!(!one.contains("a gap from"), "{one}");
}

/// One series has a step of 15 s, and the other one of 60 s, as those of two scrape jobs.
#[test]
fn each_series_holds_for_its_own_interval() {
    let sample = |pod: &str, value: i64, second: i64| {
        format!("use{{pod=\"{pod}\"}} {value} {}\n", 1_746_522_000 + second)
    };
    let fast = |range: std::ops::Range<i64>| range.map(|it| sample("a", 1, it * 15));
    let slow = || (0..11).map(|it| sample("b", 10, it * 60));
    let sum = Recorded { sum: true, ..open_metrics() };
    let text: String = fast(0..41).chain(slow()).collect();
    let Signals { common, notes, .. } = signals(&sum, &text);
    let values: Vec<Option<i64>> = common.iter().map(|it| it.milli).collect();
    assert_eq!(values[..41], [Some(11_000); 41], "{common:?}");
    assert_eq!(
        notes,
        ["load.txt: no sample from 11m30s to 1h; `hold` sets how long a value holds"]
    );
    let by_pod = Recorded { by: Some("pod".to_owned()), ..open_metrics() };
    let Signals { pods, .. } = signals(&by_pod, &text);
    let gaps = |samples: &[RecordedSample]| samples.iter().filter(|it| it.milli.is_none()).count();
    // Each ends once.
    assert_eq!(pods.iter().map(|it| gaps(it)).collect::<Vec<_>>(), [1, 1]);
    // The fast one has a gap, which does not begin with the next sample of the slow one.
    let with_gap: String = fast(0..10).chain(fast(30..41)).chain(slow()).collect();
    let Signals { common, notes, .. } = signals(&sum, &with_gap);
    let shown = shown_samples(&common);
    let expected = "2m:11000 2m15s:11000 2m37.5s:10000 3m:10000 4m:10000 5m:10000 6m:10000 \
                    7m:10000 7m30s:11000 7m45s:11000";
    assert!(shown.contains(expected), "{shown}");
    assert!(notes[0].contains("1 of 2 series has a gap from 2m15s to 7m30s"), "{notes:?}");
}

/// With few samples, the interval between them may be a gap.
#[test]
fn a_short_series_holds_for_the_interval_of_all() {
    let sample = |pod: &str, minute: i64| {
        format!("use{{pod=\"{pod}\"}} 1 {}\n", 1_746_522_000 + minute * 60)
    };
    let steady = (0..20).map(|minute| sample("a", minute));
    let text: String = steady.chain([0, 10].map(|minute| sample("b", minute))).collect();
    let notes = signals(&Recorded { sum: true, ..open_metrics() }, &text).notes;
    assert!(notes[0].contains("1 of 2 series has a gap from 0s to 10m"), "{notes:?}");
}

#[test]
fn series_that_do_not_fit_together_are_noted() {
    let sample =
        |labels: &str, minute: i64| format!("use{{{labels}}} 1 {}\n", 1_746_522_000 + minute * 60);
    let steady = (0..30).map(|minute| sample("pod=\"a\"", minute));
    let late = (20..30).map(|minute| sample("pod=\"b\"", minute));
    let text: String = steady.chain(late).collect();
    let by_pod = Recorded { by: Some("pod".to_owned()), ..open_metrics() };
    let notes = signals(&by_pod, &text).notes.join("\n");
    assert!(notes.contains("1 of 2 pods have samples only part of the time"), "{notes}");
    let pod_samples = (0..5).map(|minute| sample("pod=\"a\"", minute));
    let container_samples = (0..5).map(|it| sample("pod=\"a\",container=\"app\"", it));
    let text: String = pod_samples.chain(container_samples).collect();
    let notes = signals(&Recorded { sum: true, ..open_metrics() }, &text).notes.join("\n");
    assert!(notes.contains("adds series with and without the label container"), "{notes}");
}

#[test]
fn names_of_open_metrics_can_be_quoted() {
    let text = "{\"my.usage\",pod=\"a\"} 0.1 1746522000\n\
                {\"my.usage\", \"the.zone\"=\"b c\", pod=\"b\",} 0.2 1746522000\n\
                {\"my.usage\",pod=\"a\"} 0.3 1746522060\nother {pod = \"a\"} 7 1746522000\n";
    let of = |selector: &[(&str, &str)]| {
        common(&Recorded { series: labels(selector), ..open_metrics() }, text)
    };
    let both = of(&[("__name__", "my.usage"), ("pod", "a")]);
    assert_eq!(both, "0s:100 1m:300 2m30s:-");
    assert!(of(&[("the.zone", "b c")]).starts_with("0s:200 "), "{}", of(&[("the.zone", "b c")]));
    assert!(of(&[("__name__", "other")]).starts_with("0s:7000 "));
}

/// The order of the labels does not matter, and neither does a repeated sample.
#[test]
fn a_series_of_open_metrics_has_one_value_at_each_time() {
    let text = "q{a=\"1\",b=\"2\"} 3 1746522000\nq{b=\"2\",a=\"1\"} 4 1746522060\n\
                q{a=\"1\",b=\"2\"} 3 1746522000\n";
    assert_eq!(common(&open_metrics(), text), "0s:3000 1m:4000 2m30s:-");
    let shown = error(&open_metrics(), &format!("{text}\nq{{b=\"2\",a=\"1\"}} 5 1746522000\n"));
    let expected = "load.txt:5: a second value of {__name__: q, a: 1, b: 2} at \
                    2025-05-06T09:00:00Z: 5, and before 3; ";
    assert!(shown.starts_with(expected), "{shown}");
}

#[test]
fn invalid_open_metrics_text_has_a_message() {
    for (text, expected) in [
        ("{\"a\",\"b\"} 1 0\n", "load.txt:1: a second name of the metric; "),
        ("a{\"b\"} 1 0\n", "load.txt:1: a second name of the metric; "),
        ("a{b=\"1\",b=\"2\"} 1 0\n", "load.txt:1: a label is given twice; "),
        ("{\"a} 1 0\n", "load.txt:1: a `}` is missing; "),
        ("queue 3\n", "load.txt:1: a sample of a recording requires a timestamp; "),
        ("# x\nqueue{a=\"b\" 3 0\n", "load.txt:2: a `}` is missing; "),
        ("queue x 0\n", "load.txt:1: the value is not a number; "),
        ("queue 1 noon\n", "load.txt:1: the timestamp is not a Unix time; "),
        ("queue{a=b} 1 0\n", "load.txt:1: expected LABEL=\"VALUE\"; "),
        ("queue 1 0 0\n", "load.txt:1: expected NAME VALUE TIME; "),
        ("# EOF\n", "load.txt contains no samples; "),
    ] {
        let shown = error(&open_metrics(), text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
}

const BY_POD: &str = "time,pod,cores\n\
    0,web-a,1\n0,web-b,2\n600,web-a,1\n600,web-b,2\n1200,web-a,1\n1200,web-b,2\n\
    1260,web-a,1\n1200,web-c,3\n1800,web-c,3\n2400,web-c,3\n1260,web-d,4\n1800,web-d,4\n\
    2400,web-d,4\n1800,web-e,5\n2400,web-e,5\n";

#[test]
fn a_pod_that_replaces_another_one_continues_its_series() {
    let by = Recorded {
        by: Some("pod".to_owned()),
        value: Some("cores".to_owned()),
        hold: Some(Span::from_mins(15)),
        ..csv("")
    };
    let Signals { pods, notes, .. } = signals(&by, BY_POD);
    let pods: Vec<String> = pods.iter().map(|samples| shown_samples(samples)).collect();
    let expected = [
        // web-b ends before web-a, so web-c replaces it. web-a and web-d overlap for a moment.
        "0s:1000 10m:1000 20m:1000 21m:4000 30m:4000 40m:4000 55m:-",
        "0s:2000 10m:2000 20m:3000 30m:3000 40m:3000 55m:-",
        "30m:5000 40m:5000 55m:-",
    ];
    assert_eq!(pods, expected);
    assert_eq!(
        notes[0],
        "load.csv: 5 series belong to 3 pods, because a series that begins when another one ends \
         continues it; further pods, from ordinal 3 on, have the mean"
    );
}

/// The first times of signals at t=0, or the error of the last one.
fn starts(signals: &[(&Recorded, &str)]) -> Vec<Result<String, String>> {
    let recordings: Vec<Recording> = signals
        .iter()
        .map(|(recorded, text)| Recording::read(recorded, text).expect("a recording"))
        .collect();
    let used: Vec<Used<'_>> = signals
        .iter()
        .zip(&recordings)
        .map(|((recorded, _), recording)| Used { recorded, recording })
        .collect();
    let clock = Clock::new(used.iter().copied());
    let start = |used: &Used<'_>| match clock.start(*used) {
        Ok(start) => Ok(format!("{start} {}", clock.note(*used, start).unwrap_or_default())),
        Err(error) => Err(error.in_one_line("; ")),
    };
    used.iter().map(start).collect()
}

#[test]
fn recordings_share_their_start() {
    let of = |path: &str| Recorded::new(RecordedSource::Csv(path.to_owned()));
    let (cpu, requests) = (of("cpu.csv"), of("requests.csv"));
    let late = "time,value\n2025-05-06T00:30:00Z,1\n2025-05-06T02:00:00Z,1\n";
    let early = "time,value\n2025-05-06T00:00:00Z,9\n2025-05-06T01:00:00Z,9\n";
    let zero = "2025-05-06T00:00:00Z ";
    assert_eq!(
        starts(&[(&cpu, late), (&requests, early)]),
        [
            Ok(format!(
                "{zero}cpu.csv begins at 30m: t=0s is 2025-05-06T00:00:00Z, the first time of \
                 requests.csv"
            )),
            Ok(zero.to_owned()),
        ]
    );
    // Numbers that are not dates keep their own t=0.
    let numbers = "time,value\n60,1\n120,1\n";
    let own = Ok("1m ".to_owned());
    assert_eq!(starts(&[(&cpu, numbers), (&requests, early)]), [own, Ok(zero.to_owned())]);
    let start = Some("2025-05-06T00:45:00Z".to_owned());
    let explicit = Recorded { start, ..cpu.clone() };
    let note = "2025-05-06T00:45:00Z cpu.csv: t=0s is 2025-05-06T00:45:00Z (`start`), but in \
                requests.csv it is 2025-05-06T00:00:00Z";
    assert_eq!(starts(&[(&explicit, late), (&requests, early)])[0], Ok(note.to_owned()));
}

#[test]
fn recordings_of_different_days_are_refused() {
    let of = |path: &str| Recorded::new(RecordedSource::Csv(path.to_owned()));
    let (monday, tuesday) = (of("monday.csv"), of("tuesday.csv"));
    let one = "time,value\n2025-05-05T09:00:00Z,1\n2025-05-05T10:00:00Z,1\n";
    let other = "time,value\n2025-05-06T09:00:00Z,1\n2025-05-06T10:00:00Z,1\n";
    let found = starts(&[(&monday, one), (&tuesday, other)]);
    assert_eq!(
        found[1],
        Err("the times of tuesday.csv and monday.csv do not overlap: tuesday.csv begins at \
             2025-05-06T09:00:00Z, after the last sample of monday.csv, at 2025-05-05T10:00:00Z; \
             to align them deliberately, set `start` on each"
            .to_owned())
    );
    let start = |text: &str| Some(text.to_owned());
    let (monday, tuesday) = (
        Recorded { start: start("2025-05-05T09:00:00Z"), ..monday },
        Recorded { start: start("2025-05-06T09:00:00Z"), ..tuesday },
    );
    assert!(starts(&[(&monday, one), (&tuesday, other)]).iter().all(Result::is_ok));
}

fn columns(by: Option<&str>) -> Recorded {
    let (value, by) = (Some("*".to_owned()), by.map(str::to_owned));
    Recorded { value, by, ..csv("") }
}

const WIDE: &str = "\"Time\",\"{pod=\"\"web-0\"\"}\",\"{pod=\"\"web-1\"\"}\"\r\n\
                    0,1,\r\n60,2,5\r\n120,,7\r\n180,4,\r\n";

#[test]
fn each_column_can_be_a_series() {
    let Signals { pods, .. } = signals(&columns(Some("pod")), WIDE);
    let pods: Vec<String> = pods.iter().map(|pod| shown_samples(pod)).collect();
    // An empty field is no sample.
    assert_eq!(pods, ["0s:1000 1m:2000 2m30s:- 3m:4000 4m30s:-", "1m:5000 2m:7000 3m30s:-"]);
    let total = Recorded { sum: true, ..columns(None) };
    assert_eq!(common(&total, WIDE), "0s:1000 1m:7000 2m:9000 3m:4000 4m30s:-");
    let one = Recorded { series: labels(&[("pod", "web-1")]), ..columns(None) };
    assert_eq!(common(&one, WIDE), "1m:5000 2m:7000 3m30s:-");
}

#[test]
fn the_name_of_a_column_is_a_pod_or_has_labels() {
    let text = "Time;web-1;web-0;Total\n0;1;2;3\n60;4;5;9\n";
    let web = Recorded { value: Some("web-*".to_owned()), ..columns(Some("pod")) };
    let Signals { pods, .. } = signals(&web, text);
    let pods: Vec<String> = pods.iter().map(|pod| shown_samples(pod)).collect();
    assert_eq!(pods, ["0s:2000 1m:5000 2m30s:-", "0s:1000 1m:4000 2m30s:-"]);
    let several = error(&columns(None), text);
    assert!(several.contains("3 series: {column: web-1}, {column: web-0}"), "{several}");
    let other = error(&columns(Some("instance")), WIDE);
    assert!(other.contains("without the label `instance`: {pod: web-0}"), "{other}");
    let column = error(&columns(Some("pod")), "time,pod,a,b\n0,x,1,2\n");
    assert!(column.contains("has a column `pod`, so `value` must name one"), "{column}");
}

#[test]
fn series_with_other_times_are_added_up() {
    // The pods are scraped at different times.
    let long = "time,pod,value\n0,a,1\n5,b,10\n15,a,2\n20,b,20\n30,a,3\n35,b,30\n";
    let total = Recorded { sum: true, ..csv("time,value") };
    let wide = "t,a,b\n0,1,\n5,,10\n15,2,\n20,,20\n30,3,\n35,,30\n";
    let expected = "0s:1000 5s:11000 15s:12000 20s:22000 30s:23000 35s:30000";
    let sum = Recorded { sum: true, ..columns(None) };
    for (recorded, text) in [(&sum, wide), (&total, long)] {
        let shown = common(recorded, text);
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[test]
fn adjacent_empty_fields_are_one_gap_that_no_hold_fills() {
    let text = "time,value\n0,1\n15,\n30,\n45,\n60,\n75,2\n90,2\n3600,2\n";
    let held = Recorded { hold: Some(Span::from_mins(120)), ..csv(text) };
    let notes = signals(&held, text).notes;
    assert_eq!(notes, ["load.csv: no sample from 15s to 1m15s"]);
}

#[test]
fn errors_in_csv_files_name_the_column() {
    let text = "time,pod,cores\n0,web-0,1\n15,web-0,fast\n";
    let value = Some("cores".to_owned());
    let wrong = error(&Recorded { value: value.clone(), ..csv(text) }, text);
    assert!(wrong.contains("column cores: expected a number"), "{wrong}");
    let series = BTreeMap::from([("pod".to_owned(), "web-7".to_owned())]);
    let wrong = Recorded { value, series, syntax: Syntax::Flags, ..csv(text) };
    let error = Recording::read(&wrong, text).expect_err("an error");
    assert!(error.what.ends_with("has no series with the labels {pod: web-7}"), "{error}");
    assert_eq!(error.hint, Some("the series are {pod: web-0}".into()));
}

#[test]
fn labels_that_the_only_series_lacks_are_named_for_the_command_line() {
    let text = r#"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{},"values":[[0,"1"]]}]}}"#;
    let series = BTreeMap::from([("container".to_owned(), "web".to_owned())]);
    let wrong = Recorded { series, syntax: Syntax::Flags, ..prometheus() };
    let error = Recording::read(&wrong, text).expect_err("an error");
    let hint = "its only series has no labels: leave out `container=web`";
    assert_eq!(error.hint, Some(hint.into()));
}
