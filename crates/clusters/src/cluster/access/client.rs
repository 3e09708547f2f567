//! Clients of an API server.

use axum::http::{Method, Request};
use kube::api::DeleteParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::cluster::access::error::{chain, message};
use crate::cluster::timeouts::{
    CUSTOM_RESOURCE_TIMEOUT, HEALTH_POLL_INTERVAL, REQUEST_TIMEOUT, WATCH_TIMEOUT,
};

/// The permissions that scenarios require; `docs/engines/kubeconfig.md` shows them.
pub(crate) const ROLE: &str = include_str!("role.json");

/// Creates a client from the text of a kubeconfig.
pub(crate) async fn from_text(text: &str) -> Result<Client, String> {
    from_config(Kubeconfig::from_yaml(text).map_err(|error| error.to_string())?).await
}

/// Creates a client for the current context of a kubeconfig.
pub(crate) async fn from_config(config: Kubeconfig) -> Result<Client, String> {
    of(config_of(config, None).await?)
}

/// The configuration of a client for a context of a kubeconfig, by default the current context.
pub(crate) async fn config_of(config: Kubeconfig, context: Option<&str>) -> Result<Config, String> {
    let context = context.map(str::to_owned);
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(config, &options).await;
    config.map_err(|error| chain(&error))
}

/// Creates a client with timeouts and without retries: the API server answers 503 for a missing
/// metrics API, which must be reported.
pub(crate) fn of(mut config: Config) -> Result<Client, String> {
    // Fails if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    config.default_retry = false;
    config.connect_timeout = Some(REQUEST_TIMEOUT);
    config.write_timeout = Some(REQUEST_TIMEOUT);
    config.read_timeout = Some(WATCH_TIMEOUT);
    Client::try_from(config).map_err(|error| error.to_string())
}

/// Returns the response to a GET request, as text.
pub(crate) async fn get(client: &Client, path: &str) -> Result<String, Error> {
    let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
    client.request_text(request).await
}

/// Sends a request with a JSON body, and returns the object of the response.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &(impl Serialize + Sync),
) -> Result<Value, Error> {
    let content = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = serde_json::to_vec(body).map_err(Error::SerdeError)?;
    let request = Request::builder().method(method).uri(path).header("Content-Type", content);
    client.request(request.body(bytes).map_err(Error::HttpError)?).await
}

/// Waits until the API server serves a list of custom resources.
///
/// # Errors
/// The last response, if the API server does not serve it in time.
pub(crate) async fn wait_until_served(admin: &Client, path: &str) -> Result<(), String> {
    let deadline = Instant::now() + CUSTOM_RESOURCE_TIMEOUT;
    while let Err(error) = get(admin, path).await {
        if Instant::now() > deadline {
            return Err(format!("{path} is not served: {}", message(&error)));
        }
        sleep(HEALTH_POLL_INTERVAL).await;
    }
    Ok(())
}

/// Parses an API object.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The parameters of a deletion without a grace period.
pub(crate) fn at_once() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::access::error::message;
    use crate::cluster::load::probe::PROBE_OBJECT;
    use crate::cluster::metrics_api::groups;
    use crate::cluster::metrics_api::groups::PROBE;

    #[tokio::test]
    async fn connection_errors_state_their_cause() {
        let server = "https://127.0.0.1:1".parse().unwrap();
        let client = Client::try_from(Config::new(server)).unwrap();
        let asked = client.apiserver_version().await;
        let why = message(&asked.unwrap_err());
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
        let mut all: Vec<String> = groups::versions().map(|it| it.api_service()).collect();
        assert_eq!(*named("apiservices", "update"), all);
        all.push(PROBE.api_service());
        assert_eq!(*named("apiservices", "delete"), all);
        assert_eq!(*named("deployments", "patch"), [PROBE_OBJECT]);
    }
}
