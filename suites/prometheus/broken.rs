//! Servers that give one answer, in place of a Prometheus.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;

use libtest_mimic::Failed;

use crate::import;

/// An answer with one value.
const ONE_VALUE: &str = r#"{"status":"success","warnings":["one store did not answer"],
    "data":{"resultType":"matrix","result":[{"metric":{},"values":[[1746522000,"1"]]}]}}"#;

/// A server that gives this answer to the first request, and its URL. The channel receives the
/// head of the request.
fn server(answer: String) -> Result<(String, Receiver<String>), Failed> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let url = format!("http://{}", listener.local_addr()?);
    let (sender, receiver) = channel();
    spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut head = String::new();
        let mut lines = BufReader::new(&stream);
        while lines.read_line(&mut head).is_ok_and(|length| length > 2) {}
        // The test may have ended.
        let _ = stream.write_all(answer.as_bytes());
        let _ = sender.send(head);
    });
    Ok((url, receiver))
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn json(body: &str) -> String {
    answer("200 OK", "application/json", body)
}

pub(super) fn headers() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let token = folder.path().join("token");
    fs::write(&token, "the-token\n")?;
    let token = token.display().to_string();
    let (url, head) = server(json(ONE_VALUE))?;
    let args = ["--bearer-token-file", &token, "--header", "X-Scope-OrgID=team-a"];
    let import = import(&format!("{url}/prefix"), "up", &args)?;
    assert_eq!(import.code, Some(0), "{}", import.stderr);
    let head = head.recv()?.to_lowercase();
    assert!(head.starts_with("get /prefix/api/v1/query_range?query=up&start="), "{head}");
    assert!(head.contains("authorization: bearer the-token\r\n"), "{head}");
    assert!(head.contains("x-scope-orgid: team-a\r\n"), "{head}");
    Ok(())
}

pub(super) fn refusal() -> Result<(), Failed> {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (url, _) = server(answer(status, "text/plain", "who are you?"))?;
        import(&url, "up", &[])?.fails(3, &[status, "who are you?", "--bearer-token-file"]);
    }
    Ok(())
}

pub(super) fn proxy_error() -> Result<(), Failed> {
    let body = "<html>\n  <h1>502 Bad Gateway</h1>\n</html>";
    let (url, _) = server(answer("502 Bad Gateway", "text/html", body))?;
    import(&url, "up", &[])?.fails(3, &["answered 502 Bad Gateway: \"<html> <h1>502"]);
    let body = r#"{"status":"error","errorType":"unavailable","error":"not ready"}"#;
    let (url, _) = server(answer("503 Service Unavailable", "application/json", body))?;
    import(&url, "up", &[])?.fails(3, &["503 Service Unavailable: unavailable: not ready"]);
    let (url, _) = server(answer("404 Not Found", "text/plain", "no such page"))?;
    import(&url, "up", &[])?.fails(3, &["404 Not Found", "without /api/v1"]);
    Ok(())
}

pub(super) fn login_page() -> Result<(), Failed> {
    let (url, _) = server(answer("200 OK", "text/html", "<html>Sign in</html>"))?;
    import(&url, "up", &[])?.fails(3, &["no JSON", "Sign in", "asks for a login"]);
    // A proxy may drop the type of the content.
    for kind in ["text/plain", "application/octet-stream"] {
        let (url, _) = server(answer("200 OK", kind, ONE_VALUE))?;
        let import = import(&url, "up", &[])?;
        assert_eq!(import.code, Some(0), "{}", import.stderr);
    }
    let (url, _) = server(json("{\"status\": \"success\", \"data\": 7}"))?;
    import(&url, "up", &[])?.fails(3, &["can't be read"]);
    Ok(())
}

pub(super) fn broken_off() -> Result<(), Failed> {
    let half = &ONE_VALUE[..40];
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n";
    let (url, _) = server(format!("{head}{half}"))?;
    import(&url, "up", &[])?.fails(3, &["was interrupted", "try again"]);
    Ok(())
}

pub(super) fn silence() -> Result<(), Failed> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let url = format!("http://{}", listener.local_addr()?);
    let import = import(&url, "up", &["--timeout", "300ms"])?;
    import.fails(3, &["did not answer within 0.3s", "--timeout"]);
    Ok(())
}

pub(super) fn closed_port() -> Result<(), Failed> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let url = format!("http://user:password@127.0.0.1:{port}");
    let closed = import(&url, "up", &[])?;
    closed.fails(3, &["can't be reached", "refused", "check --url"]);
    assert!(!closed.stderr.contains("password"), "{}", closed.stderr);
    import("localhost:9090", "up", &[])?.fails(3, &["http:// or https://"]);
    import("not a url", "up", &[])?.fails(2, &["--url not a url"]);
    Ok(())
}

pub(super) fn redirect() -> Result<(), Failed> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let target = format!("http://127.0.0.1:{port}/login");
    let location = format!("Location: {target}?state=secret");
    let head = format!("HTTP/1.1 302 Found\r\n{location}\r\nContent-Length: 0\r\n\r\n");
    let (url, _) = server(head)?;
    let import = import(&url, "up", &[])?;
    let redirects = format!("redirects to {target}, which can't be reached: ");
    import.fails(3, &[&redirects, "a login page may be in between"]);
    assert!(!import.stderr.contains("secret"), "{}", import.stderr);
    Ok(())
}

pub(super) fn only_gaps() -> Result<(), Failed> {
    let (url, _) = server(json(&ONE_VALUE.replace("\"1\"", "\"NaN\"")))?;
    import(&url, "up", &[])?.fails(2, &["contains only gaps", "a division by zero"]);
    Ok(())
}

pub(super) fn several_series() -> Result<(), Failed> {
    let series = r#"{"metric":{},"values":[[1746522000,"1"]]}"#;
    let other = series.replace("{}", r#"{"pod":"a"}"#);
    let (url, _) = server(json(&ONE_VALUE.replace(series, &format!("{series},{other}"))))?;
    let import = import(&url, "up", &[])?;
    assert!(import.stdout.contains(": 2 series, 2 values, from "), "{}", import.stdout);
    Ok(())
}

pub(super) fn warnings() -> Result<(), Failed> {
    let (url, _) = server(json(ONE_VALUE))?;
    let import = import(&url, "up", &[])?;
    assert_eq!(import.code, Some(0), "{}", import.stderr);
    assert!(import.stderr.contains("Prometheus warns: one store did not"), "{}", import.stderr);
    Ok(())
}

pub(super) fn usage_twice() -> Result<(), Failed> {
    for (matchers, is_noted) in [("pod=\"a\"", true), ("pod=\"a\",container!=\"\"", false)] {
        let (url, _) = server(json(ONE_VALUE))?;
        let query = format!("sum(rate(container_cpu_usage_seconds_total{{{matchers}}}[2m]))");
        let import = import(&url, &query, &[])?;
        assert_eq!(import.code, Some(0), "{}", import.stderr);
        let noted = import.stderr.contains("Add container!=\"\" to the matchers");
        assert_eq!(noted, is_noted, "{query}: {}", import.stderr);
    }
    Ok(())
}

pub(super) fn existing_file() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("answer.json");
    fs::write(&path, "precious")?;
    let run = |url: &str, force: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.args(["import", "prometheus", "--query", "up", "--from", "1h ago", "--url", url]);
        command.arg("--output").arg(&path);
        if force {
            command.arg("--force");
        }
        Ok::<_, Failed>((command.output()?, fs::read_to_string(&path)?))
    };
    let (output, text) = run("http://localhost:1", false)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("add --force"), "{stderr}");
    assert_eq!(text, "precious");
    // A failed import keeps the file, even with --force.
    let (url, _) = server(answer("500 Internal Server Error", "text/plain", ""))?;
    let (output, text) = run(&url, true)?;
    assert_eq!((output.status.code(), &*text), (Some(3), "precious"));
    let (url, _) = server(json(ONE_VALUE))?;
    let (output, text) = run(&url, true)?;
    assert!(output.status.success() && text.contains("1746522000"), "{text}");
    Ok(())
}
