//! Texts of kubeconfigs.

use serde_json::{Value, json};

use crate::cluster::access::pki::Identity;

/// The kubeconfig of a user, in JSON, which is a subset of YAML. It contains the certificates, so
/// that the file can be moved.
pub(crate) fn kubeconfig(name: &str, server: &str, authority: &str, user: &Identity) -> String {
    let data = |pem: &str| Value::from(base64(pem.as_bytes()));
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name,
            "cluster": { "server": server, "certificate-authority-data": data(authority) },
        }],
        "users": [{
            "name": name,
            "user": {
                "client-certificate-data": data(&user.certificate),
                "client-key-data": data(&user.key),
            },
        }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "current-context": name,
    });
    format!("{config:#}\n")
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
