//! Passwords, certificates and proxies between the program and a real Prometheus.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use libtest_mimic::Failed;

use super::certificates::Certificate;
use super::proxy::{Protocol, Proxy};
use super::server::{self, Security, Server};
use super::{import, import_with};

fn path(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn certificate_and_password() -> Result<(), Failed> {
    let server = Server::start(Security::Password)?;
    let authority = server.file("server.crt");
    let (password, wrong) = (server.file("password"), server.file("wrong"));
    fs::write(&password, format!("{}\n", server::PASSWORD))?;
    fs::write(&wrong, "wrong\n")?;
    let (authority, password, wrong) = (path(&authority), path(&password), path(&wrong));
    let user = ["--user", server::USER];
    let args = [&user[..], &["--ca-file", &authority, "--password-file", &password]].concat();
    assert_eq!(import(&server.url, "sum(usage)", &args)?.series()?.len(), 1);
    let args = [&user[..], &["--insecure-skip-tls-verify", "--password-file", &password]].concat();
    assert_eq!(import(&server.url, "sum(usage)", &args)?.series()?.len(), 1);
    let args = [&user[..], &["--password-file", &password]].concat();
    import(&server.url, "sum(usage)", &args)?.fails(3, &["certificate", "--ca-file"]);
    let args = [&user[..], &["--ca-file", &authority, "--password-file", &wrong]].concat();
    import(&server.url, "sum(usage)", &args)?.fails(3, &["401 Unauthorized", "--user"]);
    let args = ["--ca-file", &password];
    import(&server.url, "sum(usage)", &args)?.fails(2, &["--ca-file", "expected PEM"]);
    import(&server.url, "sum(usage)", &user)?.fails(2, &["PROMETHEUS_PASSWORD"]);
    Ok(())
}

pub(super) fn client_certificate() -> Result<(), Failed> {
    let server = Server::start(Security::ClientCertificate)?;
    let folder = tempfile::tempdir()?;
    let client = Certificate::signed_by(&server.authority()?, folder.path(), 3)?;
    let stranger = Certificate::self_signed(folder.path(), "stranger", "DNS:stranger")?;
    let run = |args: &[&str]| {
        let trusted = path(&server.file("server.crt"));
        import(&server.url, "sum(usage)", &[&["--ca-file", &trusted], args].concat())
    };
    let (certificate, key) = (path(&client.certificate), path(&client.key));
    let accepted = run(&["--cert-file", &certificate, "--key-file", &key])?;
    assert_eq!(accepted.series()?.len(), 1);
    // Both can be in the same file.
    let both = folder.path().join("both.pem");
    let pem = fs::read_to_string(&client.key)? + &fs::read_to_string(&client.certificate)?;
    fs::write(&both, pem)?;
    let both = path(&both);
    assert_eq!(run(&["--cert-file", &both, "--key-file", &both])?.series()?.len(), 1);

    let requires = ["requires a client certificate", "set --cert-file and --key-file"];
    run(&[])?.fails(3, &requires);
    let other = [path(&stranger.certificate), path(&stranger.key)];
    let refused = [
        "refused the client certificate of --cert-file",
        "stranger.crt",
        "issued by a CA that the server trusts",
    ];
    run(&["--cert-file", &other[0], "--key-file", &other[1]])?.fails(3, &refused);
    let mixed = ["stranger.key is not the key of --cert-file", "client.crt"];
    run(&["--cert-file", &certificate, "--key-file", &other[1]])?.fails(2, &mixed);
    let no_key = ["--key-file", "client.crt: the file contains no private key", "PRIVATE KEY"];
    run(&["--cert-file", &certificate, "--key-file", &certificate])?.fails(2, &no_key);
    let no_certificate = ["--cert-file", "client.key: the file contains no certificate"];
    run(&["--cert-file", &key, "--key-file", &key])?.fails(2, &no_certificate);
    let old = Certificate::signed_by(&server.authority()?, folder.path(), 1)?;
    let (old, old_key) = (path(&old.certificate), path(&old.key));
    let version = ["version-1.crt can't be used", "use an X.509 version 3 certificate"];
    run(&["--cert-file", &old, "--key-file", &old_key])?.fails(2, &version);
    let missing = path(&folder.path().join("missing.key"));
    let args = ["--cert-file", &certificate, "--key-file", &missing];
    run(&args)?.fails(2, &["--key-file", "missing.key", "No such file"]);
    run(&["--cert-file", &certificate])?.fails(2, &["--key-file"]);
    Ok(())
}

/// A host that only the proxy knows.
const HOST: &str = "prometheus.test";

pub(super) fn http_proxy(server: &Server) -> Result<(), Failed> {
    let url = server.url.replace("localhost", HOST);
    let proxy = Proxy::start(Protocol::Http, server.port)?;
    let env = [("HTTP_PROXY", format!("http://{}", proxy.address))];
    assert_eq!(import_with(&url, "sum(usage)", &[], &env)?.series()?.len(), 1);
    assert!(proxy.seen().concat().contains(&format!("GET {url}/api/v1/query_range?")));
    // The variable of the other scheme does not apply, and NO_PROXY takes precedence.
    let other = [("HTTPS_PROXY", format!("http://{}", proxy.address))];
    import_with(&url, "sum(usage)", &[], &other)?.fails(3, &["can't be reached: ", "dns"]);
    let env = [&env[..], &[("NO_PROXY", "localhost,.test".to_owned())]].concat();
    import_with(&url, "sum(usage)", &[], &env)?.fails(3, &["can't be reached: ", "dns"]);
    assert_eq!(import_with(&server.url, "sum(usage)", &[], &env)?.series()?.len(), 1);
    assert_eq!(proxy.seen(), [""; 0]);

    let proxy = Proxy::start(Protocol::HttpWithPassword, server.port)?;
    let env = [("HTTP_PROXY", format!("http://user:secret@{}", proxy.address))];
    assert_eq!(import_with(&url, "sum(usage)", &[], &env)?.series()?.len(), 1);
    let env = [("HTTP_PROXY", format!("http://user:wrong@{}", proxy.address))];
    let refused = import_with(&url, "sum(usage)", &[], &env)?;
    refused.fails(3, &["407 Proxy Authentication Required", "http://USER:PASSWORD@HOST:PORT"]);
    let unreachable = [("HTTP_PROXY", format!("http://user:secret@{}", closed()?))];
    let import = import_with(&url, "sum(usage)", &[], &unreachable)?;
    let through =
        format!("can't be reached through the proxy http://{}", closed_shown(&unreachable));
    import.fails(3, &[&through, "refused", "check HTTP_PROXY", "NO_PROXY=prometheus.test"]);
    assert!(!import.stderr.contains("secret"), "{}", import.stderr);
    Ok(())
}

pub(super) fn https_proxy() -> Result<(), Failed> {
    let server = Server::start(Security::ClientCertificate)?;
    let folder = tempfile::tempdir()?;
    let client = Certificate::signed_by(&server.authority()?, folder.path(), 3)?;
    let url = server.url.replace("localhost", HOST);
    let trusted = path(&server.file("server.crt"));
    let (certificate, key) = (path(&client.certificate), path(&client.key));
    let args = ["--ca-file", &trusted, "--cert-file", &certificate, "--key-file", &key];
    let run = |url: &str, env: &[(&str, String)]| import_with(url, "sum(usage)", &args, env);
    // The proxy sees nothing but the name: the certificates are those of the two ends.
    let proxy = Proxy::start(Protocol::Http, server.port)?;
    let env = [("HTTPS_PROXY", format!("http://{}", proxy.address))];
    assert_eq!(run(&url, &env)?.series()?.len(), 1);
    let seen = proxy.seen().concat();
    assert!(seen.starts_with(&format!("CONNECT {HOST}:{}", server.port)), "{seen}");
    let refused = import_with(&url, "sum(usage)", &["--ca-file", &trusted], &env)?;
    refused.fails(3, &["requires a client certificate"]);
    let other = server.url.replace("localhost", "other.test");
    run(&other, &env)?.fails(
        3,
        &["not valid for name \"other.test\"", "a host name that the certificate covers in --url"],
    );

    let unreachable = ("HTTPS_PROXY", format!("http://{}", closed()?));
    let import = run(&url, std::slice::from_ref(&unreachable))?;
    import.fails(3, &["through the proxy http://localhost:", "refused", "check HTTPS_PROXY"]);
    let bypassed = [unreachable, ("NO_PROXY", "localhost".to_owned())];
    assert_eq!(run(&server.url, &bypassed)?.series()?.len(), 1);

    let proxy = Proxy::start(Protocol::HttpWithPassword, server.port)?;
    let env = [("HTTPS_PROXY", format!("http://user:wrong@{}", proxy.address))];
    run(&url, &env)?.fails(3, &["through the proxy", "proxy authorization required"]);
    Ok(())
}

pub(super) fn socks_proxy(server: &Server) -> Result<(), Failed> {
    let url = server.url.replace("localhost", HOST);
    let proxy = Proxy::start(Protocol::Socks, server.port)?;
    let env = [("ALL_PROXY", format!("socks5h://{}", proxy.address))];
    assert_eq!(import_with(&url, "sum(usage)", &[], &env)?.series()?.len(), 1);
    assert_eq!(proxy.seen(), [HOST]);
    Ok(())
}

/// The address of a port on which nothing listens.
fn closed() -> Result<String, Failed> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    Ok(format!("localhost:{port}"))
}

/// The address of the first proxy of an environment.
fn closed_shown(env: &[(&str, String)]) -> String {
    env[0].1.rsplit('@').next().unwrap_or_default().to_owned()
}
