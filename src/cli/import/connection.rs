//! The connection to Prometheus: authentication, TLS, and what its errors mean.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_http_query::{Client, Error, RangeQueryBuilder};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity, Response, StatusCode, Url, redirect};
use rustls::Error as TlsError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::answer::Answer;
use super::times::TimeRange;
use super::unreachable::{Unreachable, chain, tls_error};
use super::{AccessArgs, PrometheusArgs};
use crate::cli::failure::Failure;
use kube_lockstep_engines::input_file;

/// The variable with the password of --user.
const PASSWORD: &str = "PROMETHEUS_PASSWORD";
/// The largest answer, in bytes; `predict` reads no larger file.
const MAX_BYTES: usize = 512 << 20;
/// Longer queries are sent in the body of a request.
const LONG_QUERY: usize = 1500;
/// The most redirects of a request.
const MOST_REDIRECTS: usize = 5;
/// The length of an answer in an error message.
const EXCERPT: usize = 200;

/// A connection to Prometheus.
pub(super) struct Connection<'a> {
    client: Client,
    args: &'a PrometheusArgs,
    redirected: Redirected,
}

/// The target of the last redirect, if there was one.
#[derive(Clone, Debug, Default)]
struct Redirected(Arc<Mutex<Option<Url>>>);

impl Redirected {
    /// Follows redirects, and remembers their targets.
    fn policy(&self) -> redirect::Policy {
        let (redirected, limited) = (self.clone(), redirect::Policy::limited(MOST_REDIRECTS));
        redirect::Policy::custom(move |attempt| {
            *redirected.0.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(attempt.url().clone());
            limited.redirect(attempt)
        })
    }

    /// The target without a password, a query and a fragment, which may be secret.
    fn target(&self) -> Option<String> {
        let mut url = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        // This fails only for URLs that can't have a password.
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        Some(url.to_string())
    }
}

impl<'a> Connection<'a> {
    /// Prepares a connection, without sending anything.
    pub(super) fn new(args: &'a PrometheusArgs) -> Result<Connection<'a>, Failure> {
        // Another provider can't be installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirected = Redirected::default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("kube-lockstep/", env!("CARGO_PKG_VERSION")))
            .timeout(args.timeout)
            .redirect(redirected.policy())
            .default_headers(headers(&args.access)?);
        let client = with_certificates(client, &args.access)?.build();
        let client = client.map_err(|error| not_prepared(&error, &args.access))?;
        let client = Client::from(client, &args.url).map_err(|error| {
            let what = format!("--url {}: {error}", args.url);
            Failure::usage(what).hint("for example http://localhost:9090")
        })?;
        Ok(Connection { client, args, redirected })
    }

    /// Queries a range.
    pub(super) async fn query(&self, range: TimeRange) -> Result<Answer, Failure> {
        let PrometheusArgs { query, step, .. } = self.args;
        let request = self.client.query_range(query, range.from, range.to, step.as_secs_f64());
        let sent = send(request, query.len() > LONG_QUERY).await;
        let response = sent.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|content| {
            content.to_str().is_ok_and(|content| content.starts_with("application/json"))
        });
        let body = self.body(response).await?;
        // A proxy may drop the type of the content.
        let is_json = is_json || body.trim_ascii_start().starts_with(b"{");
        let answer = is_json.then(|| serde_json::from_slice::<Answer>(&body));
        match answer {
            Some(Ok(answer)) => match answer.refusal() {
                None if status.is_success() => Ok(answer),
                None => Err(self.refused(status, "")),
                Some((kind, error)) => Err(self.refused(status, &format!("{kind}: {error}"))),
            },
            Some(Err(error)) if status.is_success() => {
                let what =
                    format!("{} returned a response that can't be read: {error}", self.url());
                Err(Failure::engine(what).hint("is this the URL of Prometheus?"))
            }
            None if status.is_success() => {
                let what = format!("{} returned no JSON, but {}", self.url(), excerpt(&body));
                let hint = "is this the URL of Prometheus? It may be a page that asks for a login";
                Err(Failure::engine(what).hint(hint))
            }
            _ => Err(self.refused(status, &excerpt(&body))),
        }
    }

    /// The whole body of a response.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await.map_err(|error| {
                let what =
                    format!("the response of {} was interrupted: {}", self.url(), chain(&error));
                Failure::engine(what).hint("try again, with a shorter range or a larger --step")
            })?;
            let Some(chunk) = chunk else { return Ok(body) };
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BYTES {
                let what = format!("the response is larger than {} MiB", MAX_BYTES >> 20);
                let hint = "query fewer series, a shorter range, or a larger --step";
                return Err(Failure::usage(what).hint(hint));
            }
        }
    }

    /// The URL without a password.
    fn url(&self) -> String {
        let mut url = self.client.base_url().clone();
        // This fails only for URLs that can't have a password.
        let _ = url.set_password(None);
        url.to_string()
    }

    fn unreachable(&self, error: &Error) -> Failure {
        let url = self.url();
        let source = match error {
            Error::Client(client) => client.inner(),
            _ => None,
        };
        if source.is_some_and(reqwest::Error::is_timeout) {
            let limit = self.args.timeout.as_secs_f64();
            let what = format!("{url} did not answer within {limit}s");
            return Failure::engine(what).hint("increase --timeout, or query a shorter range");
        }
        if let Some(target) = self.redirected.target() {
            let why = source.map_or_else(|| error.to_string(), chain);
            let what = format!("{url} redirects to {target}, which can't be reached: {why}");
            let hint = "a login page may be in between: use a URL that needs no login in a \
                        browser, or set --bearer-token-file or --header";
            return Failure::engine(what).hint(hint);
        }
        match source {
            Some(error) => Unreachable { url: &url, access: &self.args.access, error }.failure(),
            None => Failure::engine(format!("{url} can't be reached: {error}")),
        }
    }

    fn refused(&self, status: StatusCode, why: &str) -> Failure {
        let url = self.url();
        let colon = if why.is_empty() { "" } else { ": " };
        let answered = format!("{url} answered {status}{colon}{why}");
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let hint = "set --bearer-token-file, or --user and --password-file";
                Failure::engine(answered).hint(hint)
            }
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                let hint = "set the user and the password of the proxy: \
                            HTTP_PROXY=http://USER:PASSWORD@HOST:PORT";
                Failure::engine(answered).hint(hint)
            }
            StatusCode::NOT_FOUND => {
                Failure::engine(answered).hint("the URL is that of Prometheus, without /api/v1")
            }
            StatusCode::BAD_REQUEST => Failure::usage(answered).hint("check --query"),
            StatusCode::UNPROCESSABLE_ENTITY => {
                Failure::usage(answered).hint("query fewer series or a larger --step")
            }
            _ => Failure::engine(answered).hint("try again later, or see the log of the server"),
        }
    }
}

fn not_prepared(error: &reqwest::Error, access: &AccessArgs) -> Failure {
    match (tls_error(error), &access.cert_file, &access.key_file) {
        (Some(TlsError::InconsistentKeys(_)), Some(certificate), Some(key)) => {
            let (certificate, key) = (certificate.display(), key.display());
            let what = format!("--key-file {key} is not the key of --cert-file {certificate}");
            Failure::usage(what)
        }
        (Some(TlsError::InvalidCertificate(_)), Some(certificate), _) => {
            let certificate = certificate.display();
            let what = format!("--cert-file {certificate} can't be used: {}", chain(error));
            Failure::usage(what).hint("use an X.509 version 3 certificate")
        }
        _ => Failure::usage(format!("the connection can't be prepared: {}", chain(error))),
    }
}

async fn send(request: RangeQueryBuilder, is_long: bool) -> Result<Response, Error> {
    if is_long { request.post_raw().await } else { request.get_raw().await }
}

/// The headers of each request.
fn headers(access: &AccessArgs) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for text in &access.header {
        let header = text.split_once('=').and_then(|(name, value)| {
            let name: HeaderName = name.trim().parse().ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        let Some((name, value)) = header else {
            let what = format!("--header {text}: expected NAME=VALUE");
            return Err(Failure::usage(what).hint("for example X-Scope-OrgID=team-a"));
        };
        headers.append(name, value);
    }
    if let Some(authorization) = authorization(access)? {
        let mut value = HeaderValue::from_str(&authorization).map_err(|_| {
            Failure::usage("the token or the password contains characters that HTTP can't send")
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn authorization(access: &AccessArgs) -> Result<Option<String>, Failure> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    if let Some(path) = &access.bearer_token_file {
        let token = secret("--bearer-token-file", path)?;
        return Ok(Some(format!("Bearer {token}")));
    }
    let Some(user) = &access.user else { return Ok(None) };
    let password = match (&access.password_file, std::env::var(PASSWORD)) {
        (Some(path), _) => secret("--password-file", path)?,
        (None, Ok(password)) => password,
        (None, Err(_)) => {
            let what = "--user requires a password";
            let hint = format!("set --password-file, or the variable {PASSWORD}");
            return Err(Failure::usage(what).hint(hint));
        }
    };
    Ok(Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))))
}

/// The text of a file with a secret, without the line break at its end.
fn secret(flag: &str, path: &Path) -> Result<String, Failure> {
    let bytes = file(flag, path)?;
    let text = String::from_utf8(bytes).ok().map(|text| text.trim().to_owned());
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| Failure::usage(format!("{flag} {}: the file is empty", path.display())))
}

fn file(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    input_file::read_bytes(path)
        .map_err(|error| Failure::usage(format!("{flag} {}: {error}", path.display())))
}

/// Adds the certificates of authorities and the client's own.
fn with_certificates(
    mut client: ClientBuilder,
    access: &AccessArgs,
) -> Result<ClientBuilder, Failure> {
    let invalid = |flag: &str, path: &Path, why: &str| {
        let what = format!("{flag} {}: {why}", path.display());
        Failure::usage(what).hint("expected PEM: -----BEGIN CERTIFICATE-----")
    };
    if let Some(path) = &access.ca_file {
        let pem = file("--ca-file", path)?;
        let certificates = Certificate::from_pem_bundle(&pem)
            .map_err(|error| invalid("--ca-file", path, &chain(&error)))?;
        if certificates.is_empty() {
            return Err(invalid("--ca-file", path, "the file contains no certificate"));
        }
        client = client.tls_certs_merge(certificates);
    }
    if let (Some(certificate), Some(key)) = (&access.cert_file, &access.key_file) {
        client = client.identity(identity(certificate, key)?);
    }
    Ok(client.tls_danger_accept_invalid_certs(access.insecure_skip_tls_verify))
}

/// The client's own certificate and its key.
fn identity(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    let mut pem = file("--cert-file", certificate)?;
    let key_pem = file("--key-file", key)?;
    if CertificateDer::from_pem_slice(&pem).is_err() {
        let what =
            format!("--cert-file {}: the file contains no certificate", certificate.display());
        return Err(Failure::usage(what).hint("expected PEM: -----BEGIN CERTIFICATE-----"));
    }
    if PrivateKeyDer::from_pem_slice(&key_pem).is_err() {
        let what = format!("--key-file {}: the file contains no private key", key.display());
        let hint = "expected PEM without a passphrase: -----BEGIN PRIVATE KEY-----";
        return Err(Failure::usage(what).hint(hint));
    }
    // A file can contain both.
    if certificate != key {
        pem.push(b'\n');
        pem.extend(key_pem);
    }
    Identity::from_pem(&pem).map_err(|error| {
        Failure::usage(format!("--cert-file {}: {}", certificate.display(), chain(&error)))
    })
}

/// The beginning of an answer that is not JSON.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None if text.is_empty() => "an empty answer".to_owned(),
        None => format!("{text:?}"),
    }
}
