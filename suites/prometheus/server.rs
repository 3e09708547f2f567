//! A Prometheus on this machine with a week of data, which ends with the suite.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kube_lockstep_sim::engine::EngineError;

use super::certificates::Certificate;

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
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The line of its log once it accepts queries.
const READY: &str = "Server is ready to receive web requests.";

/// The requirements of a server for its clients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    /// Nothing, without TLS.
    None,
    /// A user and a password, over TLS.
    Password,
    /// A certificate, over TLS.
    ClientCertificate,
}

/// A running server.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) port: u16,
    /// The time of the last value, in Unix time.
    pub(super) now: i64,
    authority: Option<Certificate>,
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
    /// Starts a server with data.
    pub(super) fn start(security: Security) -> Result<Server, EngineError> {
        start(security).map_err(|error| EngineError::Broken {
            engine: "Prometheus".into(),
            why: error.to_string(),
            output: String::new(),
        })
    }

    /// The authority of the clients' certificates.
    pub(super) fn authority(&self) -> Result<Certificate, &'static str> {
        self.authority.clone().ok_or("the server requires no certificate")
    }

    /// The path of a file in the folder of the server.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn start(security: Security) -> io::Result<Server> {
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
    let mut authority = None;
    if security != Security::None {
        let secured = web_config(folder.path(), security)?;
        prometheus.arg(format!("--web.config.file={}", secured.config.display()));
        authority = secured.authority;
    }
    let log = File::create(at("log"))?;
    let child = prometheus.stdout(Stdio::null()).stderr(log).stdin(Stdio::null()).spawn()?;
    let scheme = if security == Security::None { "http" } else { "https" };
    let url = format!("{scheme}://localhost:{port}");
    let mut server = Server { url, port, now, authority, child, folder };
    let begin = Instant::now();
    // It listens before it is ready, and refuses queries until then.
    loop {
        let log = fs::read_to_string(server.file("log"))?;
        if log.contains(READY) {
            return Ok(server);
        }
        if server.child.try_wait()?.is_some() || begin.elapsed() > START_TIMEOUT {
            return Err(io::Error::other(format!("it is not ready: {log}")));
        }
        sleep(Duration::from_millis(50));
    }
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

/// The configuration of TLS and authentication.
struct Secured {
    config: PathBuf,
    /// The authority of the clients' certificates.
    authority: Option<Certificate>,
}

fn web_config(folder: &Path, security: Security) -> io::Result<Secured> {
    let names = "DNS:localhost,DNS:prometheus.test,IP:127.0.0.1";
    let Certificate { certificate, key } = Certificate::self_signed(folder, "server", names)?;
    let (certificate, key) = (certificate.display(), key.display());
    let mut tls = format!("cert_file: '{certificate}', key_file: '{key}'");
    let (mut authority, mut users) = (None, String::new());
    if security == Security::ClientCertificate {
        let made = Certificate::authority(folder)?;
        let path = made.certificate.display();
        let _ =
            write!(tls, ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: '{path}'");
        authority = Some(made);
    } else {
        let _ = writeln!(users, "basic_auth_users: {{{USER}: '{HASH}'}}");
    }
    let config = folder.join("web.yml");
    fs::write(&config, format!("tls_server_config: {{{tls}}}\n{users}"))?;
    Ok(Secured { config, authority })
}

/// Runs a program that must succeed.
pub(super) fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
