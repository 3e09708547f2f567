//! A Prometheus on this machine with a week of data, which ends with the suite.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kube_lockstep::engine::EngineError;

/// The user of the server with TLS.
pub(super) const USER: &str = "reader";
/// Its password.
pub(super) const PASSWORD: &str = "secret of the tests";
/// The bcrypt hash of the password.
const HASH: &str = "$2b$05$abcdefghijklmnopqrstuuku5b7iLBE7bs1TNBNnQbrdy5Gc0k1iO";
/// The time between two values, in seconds.
const INTERVAL: i64 = 60;
/// The length of the data, in seconds.
const LENGTH: i64 = 7 * 86_400;
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(super) struct Server {
    pub(super) url: String,
    /// The time of the last value, in Unix time.
    pub(super) now: i64,
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if a program can be run.
pub(super) fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns true if Prometheus and its tool are installed.
pub(super) fn is_installed() -> bool {
    runs("prometheus", "--version") && runs("promtool", "--version")
}

impl Server {
    /// Starts a server with data. `secure`: with TLS and basic authentication.
    pub(super) fn start(secure: bool) -> Result<Server, EngineError> {
        start(secure).map_err(|error| EngineError::Broken {
            engine: "Prometheus".into(),
            why: error.to_string(),
            output: String::new(),
        })
    }

    /// The path of a file in the folder of the server.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn start(secure: bool) -> io::Result<Server> {
    let folder = tempfile::tempdir()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let now = i64::try_from(now.as_secs()).map_err(io::Error::other)? / INTERVAL * INTERVAL;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("data.txt"), data(now))?;
    fs::write(at("prometheus.yml"), "scrape_configs: []\n")?;
    let mut promtool = Command::new("promtool");
    promtool.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(at("data.txt"));
    run(promtool.arg(at("data")))?;
    // The port may be taken by another program until the server listens.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut prometheus = Command::new("prometheus");
    prometheus.arg(format!("--config.file={}", at("prometheus.yml").display()));
    prometheus.arg(format!("--storage.tsdb.path={}", at("data").display()));
    prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    if secure {
        prometheus.arg(format!("--web.config.file={}", web_config(folder.path())?.display()));
    }
    let log = File::create(at("log"))?;
    let child = prometheus.stdout(Stdio::null()).stderr(log).stdin(Stdio::null()).spawn()?;
    let scheme = if secure { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{port}");
    let mut server = Server { url, now, child, folder };
    let begin = Instant::now();
    // It listens once its data is loaded.
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let log = || fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
        if server.child.try_wait()?.is_some() || begin.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("it does not listen: {}", log())));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Three pods, for a week until now.
fn data(now: i64) -> String {
    let times = || (0..LENGTH / INTERVAL).rev().map(|index| now - index * INTERVAL);
    let mut text = String::from("# TYPE usage gauge\n");
    for (pod, value) in [("web-0", 0.1), ("web-1", 0.2), ("web-2", 0.3)] {
        for at in times() {
            let _ = writeln!(text, "usage{{pod=\"{pod}\"}} {value} {at}");
        }
    }
    text.push_str("# TYPE memory gauge\n");
    for container in ["app", "mesh"] {
        for at in times().skip(usize::try_from(LENGTH / INTERVAL).unwrap_or(0) - 120) {
            let _ = writeln!(text, "memory{{pod=\"web-0\",container=\"{container}\"}} 5 {at}");
        }
    }
    text.push_str("# TYPE requests counter\n");
    for at in times().skip(usize::try_from(LENGTH / INTERVAL).unwrap_or(0) - 120) {
        let _ = writeln!(text, "requests_total{{pod=\"web-0\"}} {} {at}", at - now + LENGTH);
    }
    text.push_str("# EOF\n");
    text
}

/// The configuration of TLS and basic authentication.
fn web_config(folder: &std::path::Path) -> io::Result<PathBuf> {
    let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    run(openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key))?;
    let (certificate, key) = (certificate.display(), key.display());
    let config = folder.join("web.yml");
    let text = format!(
        "tls_server_config: {{cert_file: '{certificate}', key_file: '{key}'}}\n\
         basic_auth_users: {{{USER}: '{HASH}'}}\n"
    );
    fs::write(&config, text)?;
    Ok(config)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
