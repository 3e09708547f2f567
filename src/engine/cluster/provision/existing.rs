//! A cluster that is somebody's: what is known of it before anything is made there, and what is
//! removed afterwards.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::engine::EngineError;
use crate::engine::cluster::access::connect::Reached;
use crate::engine::cluster::access::error::chain;
use crate::engine::cluster::access::local_address::own_address;
use crate::engine::cluster::access::ownership::Owner;
use crate::engine::cluster::access::{connect, namespaces};
use crate::engine::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::engine::cluster::metrics_api::groups::GROUPS;
use crate::engine::cluster::metrics_api::register;
use crate::engine::cluster::metrics_api::register::{ForeignApiService, RegistrationError};
use crate::engine::options::{ClusterInfo, ExistingCluster, HostPort};
use crate::model::rules::Release;
use crate::model::time::Span;

/// Farther from ours a cluster's clock must not be.
const FARTHEST: SignedDuration = SignedDuration::from_millis(500);

/// What to do about it that nobody can listen where it was wanted.
pub(crate) fn port_hint(why: &str) -> Option<&'static str> {
    let taken = why.contains("can't listen") && why.contains("in use");
    taken.then_some(
        "another process has it: --metrics-address HOST without a port takes one that is free",
    )
}

/// The contexts that there are, by name.
pub(crate) fn contexts(kubeconfig: Option<&PathBuf>) -> Result<Vec<String>, String> {
    let contexts = connect::read(kubeconfig)?.contexts;
    Ok(contexts.into_iter().map(|context| context.name).collect())
}

/// Makes a client of a context.
pub(crate) async fn reach(given: &ExistingCluster) -> Result<Reached, String> {
    let config = connect::read(given.kubeconfig.as_ref())?;
    Reached::by(config, Some(&given.context)).await
}

/// Asks a cluster what it is and has, after removing what dead runs have left there.
pub(crate) async fn look(reached: &Reached) -> Result<ClusterInfo, RegistrationError> {
    let client = &reached.client;
    // Also of what a dead run has replaced it is then known whose it is.
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
        server: reached.server(),
        version: info.git_version,
        release,
        metrics_apis: metrics_apis.collect(),
        hpas,
        cleaned,
    })
}

/// The release of what an API server says that it is: `v1.33.1-eks-1de2ab1`, `v1.31.4+k3s1`.
fn release(version: &str) -> Result<Release, String> {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let plain = version.get(..end).unwrap_or(version);
    Release::known(plain).map_err(|why| format!("the cluster says that it is {version}: {why}"))
}

/// This machine as containers on it see it, whose loopback is another one.
pub(crate) fn beside_containers() -> Option<HostPort> {
    own_address(None).map(|address| HostPort { host: address.to_string(), port: 0 })
}

/// How the API server is to find the metrics APIs.
pub(crate) async fn ways(
    given: &ExistingCluster,
    reached: &Reached,
    groups: &[&'static str],
) -> Result<Exposure, String> {
    let ways =
        ListenRoute::all(given.metrics_address.as_ref(), reached.address().await?, own_address);
    Ok(Exposure { ways, groups: groups.to_vec(), replace: given.replaces })
}

/// How much later than here something may seem to be there: as far as the clocks are apart.
pub(crate) fn late(apart: SignedDuration) -> Result<Span, String> {
    if apart > FARTHEST {
        return Err(format!(
            "the cluster's clock and this machine's are {:.1} s apart: what is seen there at a \
             time can't be told; set them right",
            apart.as_secs_f64()
        ));
    }
    Ok(Span(i64::try_from(apart.as_nanos()).unwrap_or(i64::MAX)))
}

/// Why a cluster can't be used, and what to do about it.
pub(crate) fn explain(
    name: &Arc<str>,
    given: &ExistingCluster,
    refusal: RegistrationError,
) -> EngineError {
    let hint = match &refusal {
        RegistrationError::Taken(_) => {
            "--replace-metrics-api puts this one in its place meanwhile, and restores it at the end"
                .to_owned()
        }
        RegistrationError::OtherInstance(..) => format!(
            "wait until that run has ended; if its machine is gone, `{}` removes what it left",
            given.cleaning()
        ),
        RegistrationError::Unreachable(_) => {
            "the API server must be able to connect to this machine: --metrics-address HOST[:PORT] \
             says where, for instance the gateway of the network of a cluster in containers; or \
             run it on a machine that the API server reaches"
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
    EngineError::Unavailable { engine: name.clone(), why: refusal.to_string(), hint }
}

/// What is still there, and what to do about it.
pub(crate) fn not_removed(given: &ExistingCluster, left: &str) -> String {
    format!("not all of it could be removed: {left}; `{}` tries again", given.cleaning())
}

/// Removes the leftovers of dead runs. Says what was done.
pub(crate) async fn clean(client: &Client) -> Result<Vec<String>, String> {
    // Before the registrations are removed: they show which processes are alive.
    let served = register::leftovers(client).await?;
    let serves = |owner: &Owner| served.iter().any(|it| it.lives && it.owner == *owner);
    let left = namespaces::left(client, serves).await?;
    let mut done = register::remove_leftovers(client).await?;
    namespaces::remove(client, &left).await?;
    done.extend(left.into_iter().map(|name| format!("namespace {name} is deleted")));
    Ok(done)
}

/// Removes all that this process has made: first what others may miss.
pub(crate) async fn leave(client: &Client) -> Result<(), String> {
    let restored = register::remove_own(client).await.map(|_| ());
    let removed = match namespaces::own(client).await {
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
    fn hints_name_the_cluster_with_its_kubeconfig() {
        let words = ["/bin/kl", "cluster", "clean", "--context", "a b", "--kubeconfig", "it's/x"];
        let given = ExistingCluster {
            cleans: words.map(OsString::from).to_vec(),
            ..ExistingCluster::default()
        };
        let command = r"kube-lockstep cluster clean --context 'a b' --kubeconfig 'it'\''s/x'";
        assert_eq!(given.cleaning(), command);
        assert!(not_removed(&given, "a namespace").contains(command));
        let served = RegistrationError::OtherInstance("APIService x".to_owned(), Owner::here());
        let error = explain(&"kubeconfig".into(), &given, served);
        let EngineError::Unavailable { hint, .. } = error else { panic!("{error}") };
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
        let EngineError::Unavailable { hint, .. } = error else { panic!("{error}") };
        assert!(hint.contains("--metrics-address HOST"), "{hint}");
    }

    #[test]
    fn a_release_may_have_a_vendors_suffix() {
        for version in ["v1.33.1-eks-1de2ab1", "v1.33.4+k3s1", "v1.33.0", "v1.33.2-gke.1240000"] {
            assert_eq!(release(version), Ok(Release { minor: 33 }), "{version}");
        }
        let error = release("v1.99.0").expect_err("nobody knows it");
        assert!(error.contains("v1.99.0: the model does not know 1.99"), "{error}");
        assert!(release("v0.0.0-master").is_err());
    }
}
