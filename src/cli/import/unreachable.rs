//! Why a connection to Prometheus fails: its proxy, the certificates of TLS, or the address.

use std::error::Error;
use std::io;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::{AlertDescription, CertificateError, Error as TlsError};

use super::AccessArgs;
use crate::cli::failure::Failure;

/// A connection that failed.
pub(super) struct Unreachable<'a> {
    /// The URL, without a password.
    pub(super) url: &'a str,
    pub(super) access: &'a AccessArgs,
    pub error: &'a reqwest::Error,
}

impl Unreachable<'_> {
    /// The problem, and what to do.
    pub(super) fn failure(&self) -> Failure {
        let (url, why) = (self.url, chain(self.error));
        match tls_error(self.error) {
            Some(TlsError::AlertReceived(alert)) if is_about_the_client(*alert) => {
                return self.refused_certificate(*alert);
            }
            Some(TlsError::InvalidCertificate(invalid)) => {
                let what = format!("{url} can't be reached: {why}");
                return Failure::engine(what).hint(hint_on_the_server(invalid));
            }
            _ => {}
        }
        if self.error.is_builder() {
            let what = format!("{url} can't be reached: {why}");
            return Failure::engine(what).hint("the URL begins with http:// or https://");
        }
        match proxy(url) {
            Some(proxy) => {
                let scheme = url.split(':').next().unwrap_or_default().to_uppercase();
                let host = url
                    .parse()
                    .ok()
                    .and_then(|url: reqwest::Url| url.host_str().map(str::to_owned));
                let host = host.unwrap_or_default();
                let what = format!("{url} can't be reached through the proxy {proxy}: {why}");
                Failure::engine(what).hint(format!(
                    "check {scheme}_PROXY and ALL_PROXY; to connect without a proxy: \
                     NO_PROXY={host}"
                ))
            }
            None => Failure::engine(format!("{url} can't be reached: {why}"))
                .hint("check --url; in a cluster: kubectl port-forward service/prometheus 9090"),
        }
    }

    /// The server refuses the client's certificate, or the lack of one.
    fn refused_certificate(&self, alert: AlertDescription) -> Failure {
        let url = self.url;
        match &self.access.cert_file {
            None => {
                let what = format!("{url} requires a client certificate (TLS alert {alert:?})");
                Failure::engine(what).hint("set --cert-file and --key-file")
            }
            Some(path) => {
                let path = path.display();
                let what = format!(
                    "{url} refused the client certificate of --cert-file {path} (TLS alert \
                     {alert:?})"
                );
                Failure::engine(what).hint(
                    "check that the certificate is valid now and issued by a CA that the server \
                     trusts; if there are intermediate certificates, add them to the same file",
                )
            }
        }
    }
}

/// Returns true if the server sends this alert because of the client's certificate.
fn is_about_the_client(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;

    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired
    )
}

/// A hint on a certificate of the server that is not valid.
fn hint_on_the_server(error: &CertificateError) -> &'static str {
    use CertificateError as Invalid;

    match error {
        Invalid::NotValidForName | Invalid::NotValidForNameContext { .. } => {
            "use a host name that the certificate covers in --url"
        }
        Invalid::Expired
        | Invalid::ExpiredContext { .. }
        | Invalid::NotValidYet
        | Invalid::NotValidYetContext { .. } => {
            "the server needs a new certificate; check the clock of this machine as well"
        }
        _ => "set --ca-file to the certificate of the server's CA",
    }
}

/// The proxy for a URL, without its password. None: there is no proxy for it.
fn proxy(url: &str) -> Option<String> {
    let found = Matcher::from_system().intercept(&url.parse().ok()?)?;
    let proxy = found.uri().to_string();
    Some(proxy.trim_end_matches('/').to_owned())
}

/// The error of TLS among the causes of an error.
pub(super) fn tls_error(error: &reqwest::Error) -> Option<&TlsError> {
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        // The source of an I/O error leaves out the error that it contains.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as _).or_else(|| cause.source());
    }
    None
}

/// An error and its causes in one line, without repetitions.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        // Many errors contain the text of their cause.
        parts.retain(|part| !part.contains(&text) && !text.contains(part.as_str()));
        parts.push(text);
        next = cause.source();
    }
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}
