//! The speed of the command on recorded loads: `predict` with a day of 100 pods at 15 s in each
//! format, and `compare` with four settings and a week of load.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use criterion::{Criterion, criterion_group, criterion_main};

const PODS: usize = 100;
/// The time between two values, in seconds.
const INTERVAL: usize = 15;
const DAY: usize = 86_400;
/// The time of the first value, in Unix time.
const START: usize = 1_746_489_600;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/php-apache");

/// The usage of a pod in cores: a wave of a day, different for each pod.
fn usage(pod: usize, second: usize) -> f64 {
    let angle = (second + pod * 60) as f64 / DAY as f64 * std::f64::consts::TAU;
    0.1 + 0.04 * angle.sin()
}

fn seconds(length: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(INTERVAL)
}

/// Writes a file for each format, and returns the loads.
fn write_day(folder: &Path) -> [(&'static str, String); 4] {
    let mut long = String::from("time,pod,cores\n");
    let mut wide = String::from("\"Time\"");
    let mut json = String::from(r#"{"status":"success","data":{"resultType":"matrix","result":["#);
    let mut text = String::from("# TYPE usage gauge\n");
    for pod in 0..PODS {
        let _ = write!(wide, ",\"{{pod=\"\"web-{pod}\"\"}}\"");
        let comma = if pod == 0 { "" } else { "," };
        let _ = write!(json, r#"{comma}{{"metric":{{"pod":"web-{pod}"}},"values":["#);
        for second in seconds(DAY) {
            let (time, value) = (START + second, usage(pod, second));
            let comma = if second == 0 { "" } else { "," };
            let _ = write!(json, "{comma}[{time},\"{value:.6}\"]");
            let _ =
                writeln!(text, "usage{{namespace=\"shop\",pod=\"web-{pod}\"}} {value:.6} {time}");
        }
        json.push_str("]}");
    }
    json.push_str("]}}");
    for second in seconds(DAY) {
        let time = START + second;
        let at =
            jiff::Timestamp::from_second(i64::try_from(time).expect("a time")).expect("a time");
        let _ = write!(wide, "\n{time}000");
        for pod in 0..PODS {
            let value = usage(pod, second);
            let _ = writeln!(long, "{at},web-{pod},{value:.6}");
            let _ = write!(wide, ",{value:.6}");
        }
    }
    let load = |name: &str, text: &str, form: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file can be written");
        form.replace("FILE", &path.display().to_string())
    };
    [
        ("csv", load("long.csv", &long, "cpu=csv(FILE,value=cores,by=pod)")),
        ("csv with a column for each pod", load("wide.csv", &wide, "cpu=csv(FILE,value=*,by=pod)")),
        ("prometheus", load("answer.json", &json, "cpu=prometheus(FILE,by=pod)")),
        ("openMetrics", load("usage.txt", &text, "cpu=openMetrics(FILE,by=pod)")),
    ]
}

/// Runs the command, which must succeed.
fn run(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep")).args(arguments).output();
    let output = output.expect("the command can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn recordings(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("recordings");
    group.sample_size(10);
    for (format, load) in write_day(folder.path()) {
        group.bench_function(format!("predict a day of {PODS} pods from {format}"), |bencher| {
            let replicas = PODS.to_string();
            let arguments = ["predict", "-f", MANIFESTS, "--replicas", &replicas, "--load", &load];
            bencher.iter(|| run(&arguments));
        });
    }
    let mut week = String::from("time,cores\n");
    for second in seconds(7 * DAY) {
        let _ = writeln!(week, "{},{:.6}", START + second, 10.0 * usage(0, second));
    }
    let path = folder.path().join("week.csv");
    fs::write(&path, week).expect("a file can be written");
    let load = format!("cpu=total:csv({})", path.display());
    group.bench_function("compare four settings over a week", |bencher| {
        let mut arguments = vec!["compare", "-f", MANIFESTS, "--load", &load];
        for set in [
            "spec.behavior.scaleDown.stabilizationWindowSeconds=60",
            "spec.metrics.0.resource.target.averageUtilization=75",
            "spec.maxReplicas=20",
        ] {
            arguments.extend(["--set", set]);
        }
        bencher.iter(|| run(&arguments));
    });
    group.finish();
}

criterion_group!(benches, recordings);
criterion_main!(benches);
