//! `kube-lockstep import prometheus` with a real Prometheus, whose data `promtool` makes, and with
//! servers that give broken answers.

mod access;
mod broken;
mod certificates;
mod proxy;
mod server;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use libtest_mimic::Failed;
use serde_json::Value;
use server::{Security, Server, is_installed};
use support::trials::{self, Order, Suite};

type WithServer = fn(&Server) -> Result<(), Failed>;
type Test = fn() -> Result<(), Failed>;

const WITH_PROMETHEUS: [(&str, WithServer); 10] = [
    ("a_total_is_imported_and_predicted", total),
    ("each_pod_is_imported_and_predicted", by_pod),
    ("a_week_is_queried_in_parts", week),
    ("times_are_read_in_the_named_time_zone", time_zones),
    ("an_empty_result_writes_nothing", empty),
    ("a_malformed_query_is_reported_in_the_words_of_prometheus", malformed),
    ("a_counter_is_refused", counter),
    ("series_that_share_a_pod_are_refused", shared_pod),
    ("a_proxy_is_used_unless_no_proxy_names_the_host", access::http_proxy),
    ("a_socks_proxy_is_used", access::socks_proxy),
];

/// Tests that start a server of their own.
const WITH_TLS: [(&str, Test); 3] = [
    ("a_certificate_and_a_password_are_required_and_accepted", access::certificate_and_password),
    ("a_client_certificate_is_required_and_accepted", access::client_certificate),
    ("a_client_certificate_passes_through_a_proxy", access::https_proxy),
];

/// The variables that set proxies; those of this machine must not affect the tests.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

const BROKEN: [(&str, Test); 13] = [
    ("a_bearer_token_and_headers_are_sent", broken::headers),
    ("a_refusal_names_the_options_of_authentication", broken::refusal),
    ("an_error_of_a_proxy_is_shown", broken::proxy_error),
    ("a_login_page_is_no_answer", broken::login_page),
    ("an_answer_that_breaks_off_writes_nothing", broken::broken_off),
    ("no_answer_ends_with_the_timeout", broken::silence),
    ("a_closed_port_is_reported", broken::closed_port),
    ("a_redirect_to_a_host_that_cannot_be_reached_is_named", broken::redirect),
    ("an_answer_with_only_gaps_writes_nothing", broken::only_gaps),
    ("several_series_are_counted", broken::several_series),
    ("warnings_are_shown", broken::warnings),
    ("usage_that_counts_twice_is_noted", broken::usage_twice),
    ("an_existing_file_is_not_overwritten", broken::existing_file),
];

fn main() -> ExitCode {
    trials::run(&[("prometheus", Order::Together, add_tests)])
}

fn add_tests(suite: &mut Suite) {
    let programs = suite.require_that("prometheus and promtool", is_installed);
    let openssl = suite.require_that("openssl", || server::runs("openssl", "version"));
    let server = programs.and_then(|()| match Server::start(Security::None) {
        Ok(server) => Ok(Arc::new(server)),
        Err(error) => Err(error.to_string()),
    });
    for (name, test) in WITH_PROMETHEUS {
        suite.test_with(&server, name, move |server| test(&server));
    }
    let tls = programs.and(&openssl);
    for (name, test) in WITH_TLS {
        suite.test_with(&tls, name, move |_| test());
    }
    for (name, test) in BROKEN {
        suite.test(name, test);
    }
}

/// The result of an import.
struct Import {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// The file, if it was written.
    file: Option<String>,
    folder: tempfile::TempDir,
}

/// Imports a range of the last hour, unless the arguments give another one.
fn import(url: &str, query: &str, args: &[&str]) -> Result<Import, Failed> {
    import_with(url, query, args, &[])
}

/// The same, with these variables.
fn import_with(
    url: &str,
    query: &str,
    args: &[&str],
    env: &[(&str, String)],
) -> Result<Import, Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    command.args(["import", "prometheus", "--url", url, "--query", query]);
    command.args(["--output", "answer.json"]).args(args).current_dir(folder.path());
    if !args.contains(&"--from") {
        command.args(["--from", "1h ago"]);
    }
    for name in PROXIES {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    let output = command.envs(env.iter().map(|(name, value)| (name, value))).output()?;
    let file = fs::read_to_string(folder.path().join("answer.json")).ok();
    let left: Vec<_> = fs::read_dir(folder.path())?.collect::<Result<_, _>>()?;
    assert_eq!(left.len(), usize::from(file.is_some()), "nothing half-written: {left:?}");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Ok(Import { code: output.status.code(), stdout, stderr, file, folder })
}

impl Import {
    /// Requires success, and returns the series of the file.
    fn series(&self) -> Result<Vec<Value>, Failed> {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        let file: Value = serde_json::from_str(self.file.as_deref().ok_or("no file")?)?;
        Ok(file["data"]["result"].as_array().ok_or("no result")?.clone())
    }

    /// Requires a failure with these texts on standard error, and no file.
    fn fails(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert_eq!(self.file, None);
        for text in texts {
            assert!(self.stderr.contains(text), "{text:?} is missing in\n{}", self.stderr);
        }
    }

    /// Predicts an example with a load from the file.
    fn predict(&self, load: &str) -> Result<String, Failed> {
        let example = support::repository().join("examples/php-apache");
        let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
            .args(["predict", "--filename"])
            .arg(example)
            .args(["--load", load])
            .current_dir(self.folder.path())
            .output()?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
        Ok(stdout)
    }
}

/// The values of a series.
fn values(series: &Value) -> Vec<f64> {
    let values = series["values"].as_array().into_iter().flatten();
    values.filter_map(|value| value[1].as_str()?.parse().ok()).collect()
}

fn total(server: &Server) -> Result<(), Failed> {
    let import = import(&server.url, "sum(usage)", &["--step", "60s"])?;
    let series = import.series()?;
    // Three pods with 0.1, 0.2 and 0.3 CPUs.
    assert_eq!(series.len(), 1);
    assert!(values(&series[0]).len() >= 55, "{series:?}");
    assert!(values(&series[0]).iter().all(|value| (value - 0.6).abs() < 1e-9), "{series:?}");
    assert!(import.stdout.contains("1 series") && import.stdout.contains("NAME=total:prom"));
    // 0.6 CPUs, of which each of 6 pods uses half of its request of 0.2.
    let predicted = import.predict("cpu=total:prometheus(answer.json)")?;
    assert!(predicted.contains("replicas: 6 at the end"), "{predicted}");
    Ok(())
}

fn by_pod(server: &Server) -> Result<(), Failed> {
    let query = "sum by (pod) (usage)";
    let import = import(&server.url, query, &["--step", "60s", "--by", "pod"])?;
    let series = import.series()?;
    let pods: Vec<&str> =
        series.iter().filter_map(|series| series["metric"]["pod"].as_str()).collect();
    assert_eq!(pods, ["web-0", "web-1", "web-2"]);
    assert!(import.stdout.contains("NAME=prometheus(answer.json,by=pod)"), "{}", import.stdout);
    let predicted = import.predict("cpu=prometheus(answer.json,by=pod)")?;
    // The first pod uses 0.1 of a request of 0.2 CPUs.
    assert!(predicted.contains("50%/50%"), "{predicted}");
    Ok(())
}

fn week(server: &Server) -> Result<(), Failed> {
    let args = ["--from", "6 days ago", "--to", "1h ago", "--step", "30s"];
    let import = import(&server.url, "usage{pod=\"web-1\"}", &args)?;
    let series = import.series()?;
    assert_eq!(series.len(), 1, "the parts are joined");
    let times: Vec<i64> = series[0]["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| value[0].as_i64())
        .collect();
    assert!(times.len() > 11_000, "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 30), "no value twice or left out");
    Ok(())
}

fn time_zones(server: &Server) -> Result<(), Failed> {
    let now = server.now;
    let at = |seconds: i64, offset: i64| {
        let time = jiff::Timestamp::from_second(now - seconds + offset)?;
        Ok::<_, Failed>(time.strftime("%Y-%m-%dT%H:%M:%S").to_string())
    };
    let (from, to) = (at(7200, 0)? + "Z", at(3600, 0)? + "Z");
    let utc = import(&server.url, "sum(usage)", &["--from", &from, "--to", &to])?;
    // Bangkok is seven hours ahead, all year.
    let hours = 7 * 3600;
    let (from, to) = (at(7200, hours)?, at(3600, hours)?);
    let (zoned_from, zoned_to) = (format!("{from}[Asia/Bangkok]"), format!("{to}+07:00"));
    let zone = ["--from", &from, "--to", &to, "--time-zone", "Asia/Bangkok"];
    for args in [&zone[..], &["--from", &zoned_from, "--to", &zoned_to]] {
        let local = import(&server.url, "sum(usage)", args)?;
        assert_eq!(local.series()?, utc.series()?, "{args:?}");
    }
    let unknown = ["--from", &from, "--time-zone", "Europe/Atlantis"];
    import(&server.url, "sum(usage)", &unknown)?.fails(2, &["Atlantis", "Europe/Berlin"]);
    Ok(())
}

fn empty(server: &Server) -> Result<(), Failed> {
    let import = import(&server.url, "sum(usaeg)", &[])?;
    import.fails(2, &["no result between 20", "check the names and labels"]);
    Ok(())
}

fn malformed(server: &Server) -> Result<(), Failed> {
    let import = import(&server.url, "sum(usage", &[])?;
    import.fails(2, &["400 Bad Request", "bad_data", "parse error", "check --query"]);
    Ok(())
}

fn counter(server: &Server) -> Result<(), Failed> {
    let import = import(&server.url, "requests_total", &[])?;
    import.fails(2, &["requests_total is a counter", "rate(requests_total[2m])"]);
    Ok(())
}

fn shared_pod(server: &Server) -> Result<(), Failed> {
    let import = import(&server.url, "memory", &["--by", "pod"])?;
    import.fails(2, &["has 2 series", "sum by (pod) (…)"]);
    let import = self::import(&server.url, "memory", &["--by", "instance"])?;
    import.fails(2, &["without the label `instance`"]);
    Ok(())
}
