//! An existing cluster: its inspection before the run, and the removal of created objects.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::cluster::access::connect::Connection;
use crate::cluster::access::error::chain;
use crate::cluster::access::local_address::own_address;
use crate::cluster::access::ownership::Owner;
use crate::cluster::access::{connect, namespaces};
use crate::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::cluster::metrics_api::groups::GROUPS;
use crate::cluster::metrics_api::register;
use crate::cluster::metrics_api::register::{ForeignApiService, RegistrationError};
use crate::cluster::tolerances::LONGEST_CLOCK_SKEW;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::options::{ClusterInfo, ExistingCluster, HostPort};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The hint for "address already in use".
pub(crate) fn port_hint(why: &str) -> Option<&'static str> {
    let taken = why.contains("can't listen") && why.contains("in use");
    taken.then_some(
        "another process uses the port: --metrics-address HOST without a port uses a free one",
    )
}

/// The names of the contexts.
pub(crate) fn contexts(kubeconfig: Option<&PathBuf>) -> Result<Vec<String>, String> {
    let contexts = connect::read(kubeconfig)?.contexts;
    Ok(contexts.into_iter().map(|context| context.name).collect())
}

/// Connects to an existing cluster.
pub(crate) async fn connect(cluster: &ExistingCluster) -> Result<Connection, String> {
    let config = connect::read(cluster.kubeconfig.as_ref())?;
    Connection::by(config, Some(&cluster.context)).await
}

/// Inspects a cluster, after removing the leftovers of dead runs.
pub(crate) async fn look(connection: &Connection) -> Result<ClusterInfo, RegistrationError> {
    let client = &connection.client;
    // First, because it restores APIServices that a dead run has replaced.
    let cleaned = clean(client).await.map_err(RegistrationError::Other)?;
    let other = |error: kube::Error| RegistrationError::Other(chain(&error));
    let info = client.apiserver_version().await.map_err(other)?;
    let release = release(&info.git_version).map_err(RegistrationError::Other)?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::all(client.clone());
    let hpas = hpas.list_metadata(&ListParams::default()).await.map_err(other)?;
    let theirs = |namespace: Option<&String>| {
        namespace.is_none_or(|name| !name.starts_with("kube-lockstep-"))
    };
    let hpas = hpas.iter().filter(|it| theirs(it.metadata.namespace.as_ref())).count();
    let groups = GROUPS.map(|(group, _)| group);
    let foreign = register::foreign(client, &groups).await?;
    let metrics_apis =
        foreign.into_iter().map(|ForeignApiService { name, service }| (name, service));
    Ok(ClusterInfo {
        server: connection.server(),
        version: info.git_version,
        release,
        metrics_apis: metrics_apis.collect(),
        hpas,
        cleaned,
    })
}

/// The release of an API server's version, for example `v1.33.1-eks-1de2ab1` or `v1.31.4+k3s1`.
fn release(version: &str) -> Result<Release, String> {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let plain = version.get(..end).unwrap_or(version);
    Release::known(plain).map_err(|why| format!("the cluster has version {version}: {why}"))
}

/// The address of this machine for containers, which have their own loopback.
pub(crate) fn host_for_containers() -> Option<HostPort> {
    own_address(None).map(|address| HostPort { host: address.to_string(), port: 0 })
}

/// The addresses at which the API server may reach the metrics APIs.
pub(crate) async fn exposure(
    cluster: &ExistingCluster,
    connection: &Connection,
    groups: &[&'static str],
) -> Result<Exposure, String> {
    let addresses = ListenRoute::all(
        cluster.metrics_address.as_ref(),
        connection.address().await?,
        own_address,
    );
    Ok(Exposure { addresses, groups: groups.to_vec(), replace: cluster.replaces })
}

/// The uncertainty of observed times: the difference between the clocks.
pub(crate) fn clock_uncertainty(skew: SignedDuration) -> Result<Span, String> {
    if skew > LONGEST_CLOCK_SKEW {
        return Err(format!(
            "the clocks of the cluster and this machine differ by {:.1} s, so that observed times \
             can't be compared; synchronize them",
            skew.as_secs_f64()
        ));
    }
    Ok(Span(i64::try_from(skew.as_nanos()).unwrap_or(i64::MAX)))
}

/// The error for a cluster that can't be used, with a hint.
pub(crate) fn explain(
    name: &Arc<str>,
    cluster: &ExistingCluster,
    refusal: RegistrationError,
) -> EngineError {
    let hint = match &refusal {
        RegistrationError::Taken(_) => {
            "--replace-metrics-api replaces it during the run, and restores it at the end"
                .to_owned()
        }
        RegistrationError::OtherInstance(..) => format!(
            "wait until that run has ended; if its machine is lost, `{}` removes its leftovers",
            cluster.cleaning()
        ),
        RegistrationError::Unreachable(_) => {
            "the API server must be able to connect to this machine: set --metrics-address \
             HOST[:PORT], for example to the gateway of a container network, or run the command on \
             a machine that the API server can reach"
                .to_owned()
        }
        RegistrationError::Other(why) => match port_hint(why) {
            Some(hint) => hint.to_owned(),
            None => {
                let (why, output) = (refusal.to_string(), String::new());
                return EngineError::Broken { engine: name.clone(), why, output };
            }
        },
    };
    EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(refusal.to_string()).hint(hint),
    }
}

/// The error for objects that could not be removed.
pub(crate) fn not_removed(cluster: &ExistingCluster, left: &str) -> String {
    format!("some objects could not be removed: {left}; `{}` tries again", cluster.cleaning())
}

/// Removes the leftovers of dead runs. Returns a description of each.
pub(crate) async fn clean(client: &Client) -> Result<Vec<String>, String> {
    // First, because the registrations show which processes are alive.
    let served = register::leftovers(client).await?;
    let serves = |owner: &Owner| served.iter().any(|it| it.is_alive && it.owner == *owner);
    let left = namespaces::left_by_dead_processes(client, serves).await?;
    let mut done = register::remove_leftovers(client).await?;
    namespaces::remove(client, &left).await?;
    done.extend(left.into_iter().map(|name| format!("namespace {name} is deleted")));
    Ok(done)
}

/// Removes all objects of this process. Restores APIServices first, because other clients use them.
pub(crate) async fn clean_up(client: &Client) -> Result<(), String> {
    let restored = register::remove_own(client).await.map(|_| ());
    let removed = match namespaces::created_by_this_process(client).await {
        Ok(own) => namespaces::remove(client, &own).await,
        Err(why) => Err(why),
    };
    restored.and(removed)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn hints_name_the_context_and_the_kubeconfig() {
        let words = ["/bin/kl", "cluster", "clean", "--context", "a b", "--kubeconfig", "it's/x"];
        let cluster = ExistingCluster {
            cleanup_command: words.map(OsString::from).to_vec(),
            ..ExistingCluster::default()
        };
        let command = r"kube-lockstep cluster clean --context 'a b' --kubeconfig 'it'\''s/x'";
        assert_eq!(cluster.cleaning(), command);
        assert!(not_removed(&cluster, "a namespace").contains(command));
        let served = RegistrationError::OtherInstance("APIService x".to_owned(), Owner::here());
        let error = explain(&"kubeconfig".into(), &cluster, served);
        let EngineError::Unavailable { problem, .. } = error else { panic!("{error}") };
        let hint = problem.hint_text().unwrap_or_default();
        assert!(hint.contains(&format!("`{command}`")), "{hint}");
    }

    #[test]
    fn a_port_in_use_has_a_hint() {
        let taken =
            "the metrics API can't listen at 127.0.0.1:1: Address already in use".to_owned();
        let error = explain(
            &"kubeconfig".into(),
            &ExistingCluster::default(),
            RegistrationError::Other(taken),
        );
        let EngineError::Unavailable { problem, .. } = error else { panic!("{error}") };
        let hint = problem.hint_text().unwrap_or_default();
        assert!(hint.contains("--metrics-address HOST"), "{hint}");
    }

    #[test]
    fn a_version_may_have_a_vendors_suffix() {
        for version in ["v1.33.1-eks-1de2ab1", "v1.33.4+k3s1", "v1.33.0", "v1.33.2-gke.1240000"] {
            assert_eq!(release(version), Ok(Release { minor: 33 }), "{version}");
        }
        let error = release("v1.99.0").expect_err("the release is unknown");
        assert!(error.contains("v1.99.0: 1.99 is not supported"), "{error}");
        assert!(release("v0.0.0-master").is_err());
    }
}
