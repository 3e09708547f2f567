//! Clients of an API server, and what is asked of it in passing.

use std::time::Duration;

use axum::http::Request;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Error};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The rights that playing a scenario takes; `docs/engines/kubeconfig.md` shows them.
const ROLE: &str = include_str!("role.json");

/// A client by the text of a kubeconfig.
pub(crate) async fn of_text(text: &str) -> Result<Client, String> {
    of_config(Kubeconfig::from_yaml(text).map_err(|error| error.to_string())?).await
}

/// A client by a kubeconfig, as its current context says.
pub(crate) async fn of_config(config: Kubeconfig) -> Result<Client, String> {
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| error.to_string())?;
    of(config)
}

/// A client that gives up in time, and that tells of errors instead of trying again for long: a
/// metrics API that is gone is answered with 503.
pub(crate) fn of(mut config: Config) -> Result<Client, String> {
    // The one provider that is compiled in; another call finds it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    config.default_retry = false;
    config.connect_timeout = Some(LIMIT);
    config.write_timeout = Some(LIMIT);
    // A watch hears of its bookmarks within a minute.
    config.read_timeout = Some(2 * LIMIT);
    Client::try_from(config).map_err(|error| error.to_string())
}

/// GET of a path, as text.
pub(crate) async fn get(client: &Client, path: &str) -> Result<String, Error> {
    let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
    client.request_text(request).await
}

/// Lets a user play scenarios, and do what further rules say.
pub(crate) async fn grant(client: &Client, user: &str, rules: Vec<Value>) -> Result<(), String> {
    let mut role: Value = serde_json::from_str(ROLE).map_err(|error| error.to_string())?;
    if let Some(all) = role["rules"].as_array_mut() {
        all.extend(rules);
    }
    let role: ClusterRole = object(role)?;
    let binding: ClusterRoleBinding = object(json!({
        "metadata": { "name": "kube-lockstep" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "kube-lockstep",
        },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    }))?;
    let post = PostParams::default();
    let created = Api::all(client.clone()).create(&post, &role).await;
    created.map_err(|error| error.to_string())?;
    let created = Api::all(client.clone()).create(&post, &binding).await;
    created.map(|_| ()).map_err(|error| error.to_string())
}

/// An object of the API by its JSON.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Deleted at once, without waiting for anything.
pub(crate) fn at_once() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cluster::access::error::told;
    use crate::engine::cluster::load::probe::PULSE;
    use crate::engine::cluster::metrics_api::groups::{GROUPS, PROBE, api_services};

    #[tokio::test]
    async fn connection_errors_state_their_cause() {
        let nobody = "https://127.0.0.1:1".parse().unwrap();
        let client = Client::try_from(Config::new(nobody)).unwrap();
        let asked = client.apiserver_version().await;
        let why = told(&asked.unwrap_err());
        assert!(why.contains("onnection refused"), "{why}");
    }

    #[test]
    fn only_objects_with_our_names_may_be_changed() {
        let role: Value = serde_json::from_str(ROLE).unwrap();
        let rules = role["rules"].as_array().unwrap();
        let named = |resource: &str, verb: &str| {
            let is_it = |rule: &&Value| {
                let verbs = rule["verbs"].as_array().unwrap();
                rule["resources"] == json!([resource]) && verbs.contains(&verb.into())
            };
            rules.iter().filter(is_it).find_map(|rule| rule["resourceNames"].as_array()).unwrap()
        };
        let groups = GROUPS.map(|(group, _)| group);
        let mut all: Vec<String> = api_services(&groups).map(|(name, ..)| name).collect();
        assert_eq!(*named("apiservices", "update"), all);
        all.push(format!("{}.{}", PROBE.1, PROBE.0));
        assert_eq!(*named("apiservices", "delete"), all);
        assert_eq!(*named("deployments", "patch"), [PULSE]);
    }
}
