//! What an API server of our own lets whom do, where that is not as upstream has it.

use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};

/// The rights of everybody. The API server knows no anonymous users, but the controller manager
/// does: it asks that one what they may do, and would tell them of its health.
const EVERYBODYS: &str = "system:public-info-viewer";

/// Those whose events nobody reads: for each pod there is one, and two requests of it.
const TALKATIVE: [&str; 4] = [
    "system:controller:deployment-controller",
    "system:controller:replicaset-controller",
    "system:controller:replication-controller",
    "system:controller:statefulset-controller",
];

/// Takes from users without a name the rights that they have. Those with one have the same by
/// others.
pub(crate) async fn revoke(client: &Client) -> Result<(), kube::Error> {
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.delete(EVERYBODYS, &DeleteParams::default()).await.map(|_| ())
}

/// Takes from the controllers that make pods the right to write events: where scenarios are
/// played, a tenth of all that the API server does would be for those.
pub(crate) async fn silence(client: &Client) -> Result<(), kube::Error> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let silenced = TALKATIVE.iter().map(async |name| {
        let mut role = roles.get(name).await?;
        for rule in role.rules.iter_mut().flatten() {
            rule.resources.iter_mut().for_each(|it| it.retain(|it| it != "events"));
        }
        let speaks = |rule: &PolicyRule| rule.resources.as_ref().is_none_or(|it| !it.is_empty());
        role.rules.iter_mut().for_each(|rules| rules.retain(speaks));
        roles.replace(name, &PostParams::default(), &role).await
    });
    try_join_all(silenced).await.map(|_| ())
}
