//! Permissions of users and controllers.

use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::access::client::object;

/// Lets anonymous users read health endpoints. The API server rejects anonymous requests, but the
/// kube-controller-manager asks it for their permissions.
const ANONYMOUS_BINDING: &str = "system:public-info-viewer";

/// Controllers that write events for each pod.
const NOISY_CONTROLLERS: [&str; 4] = [
    "system:controller:deployment-controller",
    "system:controller:replicaset-controller",
    "system:controller:replication-controller",
    "system:controller:statefulset-controller",
];

/// Creates a ClusterRole, with additional rules, and binds a user to it.
pub(crate) async fn grant(
    client: &Client,
    role: &str,
    rules: Vec<Value>,
    user: &str,
) -> Result<(), String> {
    let mut role: ClusterRole = serde_json::from_str(role).map_err(|error| error.to_string())?;
    let rules: Result<Vec<PolicyRule>, _> = rules.into_iter().map(object).collect();
    role.rules.get_or_insert_default().extend(rules?);
    let group = "rbac.authorization.k8s.io";
    let binding: ClusterRoleBinding = object(json!({
        "metadata": { "name": user },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role.metadata.name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    }))?;
    let post = PostParams::default();
    let rejected =
        |error: kube::Error| format!("the permissions of {user} can't be granted: {error}");
    Api::all(client.clone()).create(&post, &role).await.map_err(rejected)?;
    Api::all(client.clone()).create(&post, &binding).await.map(|_| ()).map_err(rejected)
}

/// Revokes the permissions of anonymous users. Other users have the same permissions through other
/// bindings.
pub(crate) async fn revoke_anonymous(client: &Client) -> Result<(), kube::Error> {
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.delete(ANONYMOUS_BINDING, &DeleteParams::default()).await.map(|_| ())
}

/// Prevents the controllers of workloads from writing events, which would take a tenth of the API
/// server's time.
pub(crate) async fn deny_event_writes(client: &Client) -> Result<(), kube::Error> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let changed = NOISY_CONTROLLERS.iter().map(async |name| {
        let mut role = roles.get(name).await?;
        for rule in role.rules.iter_mut().flatten() {
            rule.resources.iter_mut().for_each(|it| it.retain(|it| it != "events"));
        }
        let has_resources =
            |rule: &PolicyRule| rule.resources.as_ref().is_none_or(|it| !it.is_empty());
        role.rules.iter_mut().for_each(|rules| rules.retain(has_resources));
        roles.replace(name, &PostParams::default(), &role).await
    });
    try_join_all(changed).await.map(|_| ())
}
