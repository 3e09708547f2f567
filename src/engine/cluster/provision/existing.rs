//! A cluster that is somebody's: what is known of it before anything is made there, and what is
//! removed afterwards.

use std::ffi::OsString;
use std::iter::once;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::engine::EngineError;
use crate::engine::cluster::access::connect::{Place, Reach, Reached, Way, chain};
use crate::engine::cluster::access::{connect, namespaces};
use crate::engine::cluster::metrics_api::register;
use crate::engine::cluster::metrics_api::register::{Foreign, Refusal};
use crate::engine::cluster::metrics_api::route::own_address;
use crate::engine::cluster::metrics_api::server::GROUPS;
use crate::model::rules::Release;
use crate::model::time::Span;

/// Farther from ours a cluster's clock must not be.
const FARTHEST: SignedDuration = SignedDuration::from_millis(500);

/// A context of a kubeconfig, and what may be done to its cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// The file; else those that `KUBECONFIG` names, or the usual one.
    pub kubeconfig: Option<PathBuf>,
    /// The context's name.
    pub context: String,
    /// Where the API server finds the metrics APIs; else it is guessed.
    pub metrics_address: Option<Place>,
    /// Whether metrics APIs that the cluster has may be replaced meanwhile.
    pub replaces: bool,
    /// A command that removes what dead runs have left there, as `cluster clean` does. It is run
    /// when this process is killed; none: that is left to the next run.
    pub cleans: Vec<OsString>,
}

impl Given {
    /// The command that removes what dead runs have left there, for people.
    #[must_use]
    pub fn cleaning(&self) -> String {
        typed(&self.cleans)
    }
}

/// A command of this program, as people type it.
pub(crate) fn typed(command: &[OsString]) -> String {
    let words = command.iter().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    once("kube-lockstep".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The text as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// What to do about it that nobody can listen where it was wanted.
pub(crate) fn port_hint(why: &str) -> Option<&'static str> {
    let taken = why.contains("can't listen") && why.contains("in use");
    taken.then_some(
        "another process has it: --metrics-address HOST without a port takes one that is free",
    )
}

/// What is known of a cluster before anything is made there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// Where its API server is.
    pub server: String,
    /// What it says that it is, for instance `v1.37.0`.
    pub version: String,
    /// The release whose rules it follows.
    pub release: Release,
    /// APIServices of metrics APIs that it has, each with what is behind it.
    pub metrics_apis: Vec<(String, String)>,
    /// How many HPAs it has.
    pub hpas: usize,
    /// What a run that had died had left there, and was removed now.
    pub cleaned: Vec<String>,
}

/// The contexts that there are, by name.
pub(crate) fn contexts(kubeconfig: Option<&PathBuf>) -> Result<Vec<String>, String> {
    let contexts = connect::read(kubeconfig)?.contexts;
    Ok(contexts.into_iter().map(|context| context.name).collect())
}

/// Makes a client of a context.
pub(crate) async fn reach(given: &Given) -> Result<Reached, String> {
    let config = connect::read(given.kubeconfig.as_ref())?;
    Reached::by(config, Some(&given.context)).await
}

/// Asks a cluster what it is and has, after removing what dead runs have left there.
pub(crate) async fn look(reached: &Reached) -> Result<Look, Refusal> {
    let client = &reached.client;
    // Also of what a dead run has replaced it is then known whose it is.
    let cleaned = clean(client).await.map_err(Refusal::Other)?;
    let other = |error: kube::Error| Refusal::Other(chain(&error));
    let info = client.apiserver_version().await.map_err(other)?;
    let release = release(&info.git_version).map_err(Refusal::Other)?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::all(client.clone());
    let hpas = hpas.list_metadata(&ListParams::default()).await.map_err(other)?;
    let theirs = |namespace: Option<&String>| {
        namespace.is_none_or(|name| !name.starts_with("kube-lockstep-"))
    };
    let hpas = hpas.iter().filter(|it| theirs(it.metadata.namespace.as_ref())).count();
    let groups = GROUPS.map(|(group, _)| group);
    let foreign = register::foreign(client, &groups).await?;
    let metrics_apis = foreign.into_iter().map(|Foreign { name, service }| (name, service));
    Ok(Look {
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
pub(crate) fn beside_containers() -> Option<Place> {
    own_address(None).map(|address| Place { host: address.to_string(), port: 0 })
}

/// How the API server is to find the metrics APIs.
pub(crate) async fn ways(
    given: &Given,
    reached: &Reached,
    groups: &[&'static str],
) -> Result<Reach, String> {
    let ways = Way::all(given.metrics_address.as_ref(), reached.address().await?, own_address);
    Ok(Reach { ways, groups: groups.to_vec(), replace: given.replaces })
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
pub(crate) fn explain(name: &Arc<str>, given: &Given, refusal: Refusal) -> EngineError {
    let hint = match &refusal {
        Refusal::Taken(_) => {
            "--replace-metrics-api puts this one in its place meanwhile, and restores it at the end"
                .to_owned()
        }
        Refusal::Served(..) => format!(
            "wait until that run has ended; if its machine is gone, `{}` removes what it left",
            given.cleaning()
        ),
        Refusal::Unreached(_) => {
            "the API server must be able to connect to this machine: --metrics-address HOST[:PORT] \
             says where, for instance the gateway of the network of a cluster in containers; or \
             run it on a machine that the API server reaches"
                .to_owned()
        }
        Refusal::Other(why) => match port_hint(why) {
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
pub(crate) fn not_removed(given: &Given, left: &str) -> String {
    format!("not all of it could be removed: {left}; `{}` tries it again", given.cleaning())
}

/// Removes what dead runs have left. Says what was done.
pub(crate) async fn clean(client: &Client) -> Result<Vec<String>, String> {
    // Which of them are alive is told by their metrics APIs, too.
    let left = namespaces::left(client).await?;
    let mut done = register::clear(client).await?;
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
    use super::*;
    use crate::engine::cluster::access::ownership::Owner;

    #[test]
    fn hints_name_the_cluster_with_its_kubeconfig() {
        let words = ["/bin/kl", "cluster", "clean", "--context", "a b", "--kubeconfig", "it's/x"];
        let given = Given { cleans: words.map(OsString::from).to_vec(), ..Given::default() };
        let command = r"kube-lockstep cluster clean --context 'a b' --kubeconfig 'it'\''s/x'";
        assert_eq!(given.cleaning(), command);
        assert!(not_removed(&given, "a namespace").contains(command));
        let served = Refusal::Served("APIService x".to_owned(), Owner::here());
        let error = explain(&"kubeconfig".into(), &given, served);
        let EngineError::Unavailable { hint, .. } = error else { panic!("{error}") };
        assert!(hint.contains(&format!("`{command}`")), "{hint}");
    }

    #[test]
    fn a_port_that_others_have_has_a_hint() {
        let taken =
            "the metrics API can't listen at 127.0.0.1:1: Address already in use".to_owned();
        let error = explain(&"kubeconfig".into(), &Given::default(), Refusal::Other(taken));
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
