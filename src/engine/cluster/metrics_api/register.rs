//! Makes the fake metrics API known to an API server, and unknown again.
//!
//! The API server proxies to a Service: which kind of it works is found out with a group of our
//! own, before anything that others use is touched (`route`). All that is made names its owner, so
//! that a later process can remove what a dead one left; of an APIService that was somebody else's,
//! what it was is kept within it, and restored.

use crate::engine::cluster::labels::METRICS_API;
use crate::engine::cluster::labels::OWNER;
use crate::engine::cluster::labels::REPLACED;
use crate::engine::cluster::metrics_api::groups::api_services;
use std::time::Duration;

use axum::http::Request;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::engine::cluster::access::client::{at_once, object};
use crate::engine::cluster::access::ownership::{Owner, age};
use crate::engine::cluster::metrics_api::groups::{NAMESPACE, PROBE, SERVER_HEADER};
use crate::engine::cluster::metrics_api::route;
use crate::engine::cluster::metrics_api::route::ServiceRoute;
use crate::engine::cluster::metrics_api::server::Server;
use crate::engine::cluster::timeouts::STARTING;

/// Of an object that the API server has to ask etcd for.
pub(crate) const PATH: &str = "/api/v1/namespaces/kube-lockstep-metrics";

/// How long it may take until the API server has found it.
const LIMIT: Duration = Duration::from_secs(30);

/// The same of one way of several.
const PROBE_LIMIT: Duration = Duration::from_secs(12);

/// So long it is waited until the namespace is gone. It takes longer where an API that others serve
/// does not answer: then no namespace of that cluster goes.
const GOING: Duration = Duration::from_secs(15);

/// So long the API server may say that it does not reach it: the first time may be too early.
const PATIENCE: Duration = Duration::from_secs(3);

const GLANCE: Duration = Duration::from_millis(20);

/// How often a change is tried that the API server's own changes come in the way of.
const ATTEMPTS: usize = 20;

/// What is to be registered, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// Ways by which the API server may reach the server: the first one that works is taken.
    pub(crate) routes: Vec<ServiceRoute>,
    /// The groups, of those of [`GROUPS`].
    pub(crate) groups: Vec<&'static str>,
    /// Whether a metrics API that is there already may be replaced while this one is served.
    pub(crate) replace: bool,
}

/// Why it was not registered. Nothing of it is left then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RegistrationError {
    /// Somebody else serves it.
    #[error("the cluster has {} already", told(.0))]
    Taken(Vec<ForeignApiService>),
    /// Another kube-lockstep does.
    #[error("{0} is served by another kube-lockstep: {told}", told = .1.describe())]
    OtherInstance(String, Owner),
    /// The API server reaches it by none of the ways.
    #[error("the API server does not reach the metrics API: {0}")]
    Unreachable(String),
    /// The API server refuses something.
    #[error("{0}")]
    Other(String),
}

/// An APIService of somebody else's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForeignApiService {
    /// Its name.
    pub(crate) name: String,
    /// Namespace and name of the Service behind it.
    pub(crate) service: String,
}

fn told(foreign: &[ForeignApiService]) -> String {
    let one = |it: &ForeignApiService| format!("APIService {} (of {})", it.name, it.service);
    foreign.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The fake metrics API as an API server knows it. [`remove_own`] removes it, dropping it does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    /// By which way it is reached.
    pub(crate) route: ServiceRoute,
}

impl Registration {
    /// Removes first what dead processes have left. Then registers the server, and waits until the
    /// API server reaches it.
    ///
    /// # Errors
    /// Why it can't be; nothing is left then. Where it is only dropped on the way, [`remove_own`]
    /// removes what there is of it.
    pub(crate) async fn register(
        client: &Client,
        server: &Server,
        options: &Options,
    ) -> Result<Registration, RegistrationError> {
        remove_leftovers(client).await.map_err(RegistrationError::Other)?;
        let registered = Registering { client, server, options }.register().await;
        if registered.is_err() {
            // What could not be made is the news, not what then can't be removed either.
            let _ = remove_own(client).await;
        }
        Ok(Registration { route: registered? })
    }
}

/// Those of somebody else's, of the groups' APIServices.
///
/// # Errors
/// If another kube-lockstep serves one of them, or the API server refuses.
pub(crate) async fn foreign(
    client: &Client,
    groups: &[&str],
) -> Result<Vec<ForeignApiService>, RegistrationError> {
    let apis: Api<APIService> = Api::all(client.clone());
    let mut found = Vec::new();
    for (name, ..) in api_services(groups) {
        let there = apis.get_opt(&name).await;
        let there = there.map_err(|error| refused(&format!("APIService {name}"), &error))?;
        let Some(api) = there else { continue };
        if let Some(owner) = owner(&api.metadata) {
            return Err(RegistrationError::OtherInstance(format!("APIService {name}"), owner));
        }
        found.push(ForeignApiService { name, service: service(api) });
    }
    Ok(found)
}

/// Namespace and name of the Service behind it.
fn service(api: APIService) -> String {
    api.spec.and_then(|spec| spec.service).map_or_else(
        || "the API server itself".to_owned(),
        |it| format!("{}/{}", it.namespace.unwrap_or_default(), it.name.unwrap_or_default()),
    )
}

/// Which of ours somebody else has removed or changed since they were registered.
pub(crate) async fn registration_lost(client: &Client, groups: &[&str]) -> Option<String> {
    let apis: Api<APIService> = Api::all(client.clone());
    for (name, ..) in api_services(groups) {
        // An API server that does not answer is seen by others.
        let there = apis.get_opt(&name).await.ok()?;
        let Some(api) = there else {
            return Some(format!("APIService {name} was removed during the run"));
        };
        let service = service(api);
        if !service.starts_with(&format!("{NAMESPACE}/")) {
            return Some(format!("APIService {name} was changed to {service} during the run"));
        }
    }
    None
}

fn refused(what: &str, error: &Error) -> RegistrationError {
    RegistrationError::Other(format!("{what}: {error}"))
}

fn owner(metadata: &ObjectMeta) -> Option<Owner> {
    Owner::of_text(metadata.annotations.as_ref()?.get(OWNER)?)
}

fn marks() -> (Value, Value) {
    (json!({ METRICS_API: "true" }), json!({ OWNER: Owner::here().text() }))
}

/// A registration that is being made.
struct Registering<'a> {
    client: &'a Client,
    server: &'a Server,
    options: &'a Options,
}

impl Registering<'_> {
    async fn register(&self) -> Result<ServiceRoute, RegistrationError> {
        let foreign = foreign(self.client, &self.options.groups).await?;
        if !foreign.is_empty() && !self.options.replace {
            return Err(RegistrationError::Taken(foreign));
        }
        self.namespace().await?;
        let (number, route) = self.route(!foreign.is_empty()).await?;
        let service = route::service_name(number);
        let names: Vec<_> = api_services(&self.options.groups).collect();
        for (name, group, version, priority) in &names {
            let api = self.api_service((name, group, version), &service, *priority);
            match foreign.iter().any(|it| it.name == *name) {
                true => self.replace(name, &api).await?,
                false => self.create(name, api).await?,
            }
        }
        let limit = Instant::now() + LIMIT;
        for (name, group, version, _) in &names {
            self.reach(name, group, version, limit).await.map_err(|why| {
                RegistrationError::Unreachable(format!("{name}, by {route}: {why}"))
            })?;
        }
        Ok(route)
    }

    async fn namespace(&self) -> Result<(), RegistrationError> {
        let what = format!("namespace {NAMESPACE}");
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let (labels, annotations) = marks();
        let metadata = json!({ "name": NAMESPACE, "labels": labels, "annotations": annotations });
        let namespace =
            object(json!({ "metadata": metadata })).map_err(RegistrationError::Other)?;
        let limit = Instant::now() + LIMIT;
        loop {
            match namespaces.create(&PostParams::default(), &namespace).await {
                Ok(_) => return Ok(()),
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(refused(&what, &error)),
            }
            let there = namespaces.get_opt(NAMESPACE).await;
            let there = there.map_err(|error| refused(&what, &error))?;
            // One that is going was removed a moment ago.
            if let Some(there) = there.filter(|it| it.metadata.deletion_timestamp.is_none()) {
                return Err(match owner(&there.metadata) {
                    Some(owner) => RegistrationError::OtherInstance(what, owner),
                    None => {
                        RegistrationError::Other(format!("{what} is there, and somebody else's"))
                    }
                });
            }
            if Instant::now() > limit {
                return Err(RegistrationError::Other(format!("{what} is still being deleted")));
            }
            sleep(GLANCE).await;
        }
    }

    /// The first way that works. With only one, and nothing at stake, it is seen with the groups
    /// themselves.
    async fn route(&self, at_stake: bool) -> Result<(usize, ServiceRoute), RegistrationError> {
        let routes = &self.options.routes;
        let mut tried = Vec::new();
        for (number, route) in routes.iter().enumerate() {
            route::create(self.client, route, (number, self.server.address.port()))
                .await
                .map_err(RegistrationError::Other)?;
            if routes.len() == 1 && !at_stake {
                return Ok((number, route.clone()));
            }
            match self.probe(number).await? {
                None => return Ok((number, route.clone())),
                Some(why) => tried.push(format!("by {route}: {why}")),
            }
        }
        Err(RegistrationError::Unreachable(match tried.is_empty() {
            true => "no way is known by which it could".to_owned(),
            false => tried.join("; "),
        }))
    }

    /// Whether a way works; if not, why.
    async fn probe(&self, number: usize) -> Result<Option<String>, RegistrationError> {
        let (group, version) = PROBE;
        let name = format!("{version}.{group}");
        let api = self.api_service((&name, group, version), &route::service_name(number), 1);
        self.create(&name, api).await?;
        let reached = self.reach(&name, group, version, Instant::now() + PROBE_LIMIT).await;
        let apis: Api<APIService> = Api::all(self.client.clone());
        let deleted = apis.delete(&name, &at_once()).await;
        deleted.map_err(|error| refused(&format!("APIService {name}"), &error))?;
        Ok(reached.err())
    }

    fn api_service(
        &self,
        (name, group, version): (&str, &str, &str),
        service: &str,
        priority: usize,
    ) -> Value {
        let (labels, annotations) = marks();
        let bundle = k8s_openapi::ByteString(self.server.authority.as_bytes().to_vec());
        json!({
            "metadata": { "name": name, "labels": labels, "annotations": annotations },
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": priority,
                "caBundle": bundle,
                "service": {
                    "namespace": NAMESPACE,
                    "name": service,
                    "port": self.server.address.port(),
                },
            },
        })
    }

    async fn create(&self, name: &str, api: Value) -> Result<(), RegistrationError> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let api = object(api).map_err(RegistrationError::Other)?;
        let created = apis.create(&PostParams::default(), &api).await;
        created.map(|_| ()).map_err(|error| refused(&format!("APIService {name}"), &error))
    }

    /// Puts ours in the place of an APIService that is somebody else's, and keeps what it was.
    async fn replace(&self, name: &str, ours: &Value) -> Result<(), RegistrationError> {
        let spec = object(ours["spec"].clone()).map_err(RegistrationError::Other)?;
        let done = update(self.client, name, |api| {
            let was = serde_json::to_string(&api.spec).unwrap_or_default();
            let annotations = api.metadata.annotations.get_or_insert_default();
            annotations.insert(REPLACED.to_owned(), was);
            annotations.insert(OWNER.to_owned(), Owner::here().text());
            let labels = api.metadata.labels.get_or_insert_default();
            labels.insert(METRICS_API.to_owned(), "true".to_owned());
            api.spec.clone_from(&spec);
        });
        done.await.map_err(RegistrationError::Other)
    }

    /// Waits until the API server reaches the server by an APIService: until it says so, and hands
    /// on its answers. Of one that was somebody else's, what it says may still be of then.
    async fn reach(
        &self,
        name: &str,
        group: &str,
        version: &str,
        limit: Instant,
    ) -> Result<(), String> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let mut failing: Option<Instant> = None;
        loop {
            let api = apis.get(name).await.map_err(|error| error.to_string())?;
            let conditions = api.status.and_then(|status| status.conditions).unwrap_or_default();
            let available = conditions.into_iter().find(|it| it.type_ == "Available");
            let why = match available {
                Some(it) if it.status == "True" => {
                    if self.answers(group, version).await {
                        return Ok(());
                    }
                    failing = None;
                    "others answer in its place".to_owned()
                }
                Some(it) => {
                    let why = it.message.unwrap_or_default();
                    let since = *failing.get_or_insert_with(Instant::now);
                    let tried = it.reason.as_deref() == Some("FailedDiscoveryCheck");
                    let over = tried && since.elapsed() > PATIENCE;
                    if over
                        || ["unsupported service type", "cannot route"]
                            .iter()
                            .any(|it| why.contains(it))
                    {
                        return Err(why);
                    }
                    why
                }
                None => "nothing is said of why".to_owned(),
            };
            if Instant::now() > limit {
                return Err(why);
            }
            sleep(GLANCE).await;
        }
    }

    /// Whether it is this server that answers.
    async fn answers(&self, group: &str, version: &str) -> bool {
        let request = Request::get(format!("/apis/{group}/{version}")).body(Body::empty());
        let Ok(request) = request else { return false };
        let Ok(answer) = self.client.send(request).await else { return false };
        let said = answer.headers().get(SERVER_HEADER);
        said.is_some_and(|said| said.as_bytes() == self.server.id.as_bytes())
    }
}

/// Changes an APIService; the API server itself writes its status all the while.
async fn update(
    client: &Client,
    name: &str,
    mut change: impl FnMut(&mut APIService),
) -> Result<(), String> {
    let apis: Api<APIService> = Api::all(client.clone());
    let mut attempts = 0;
    loop {
        let there = apis.get_opt(name).await;
        let there = there.map_err(|error| format!("APIService {name}: {error}"))?;
        // Somebody has deleted it: so it stays.
        let Some(mut api) = there else { return Ok(()) };
        change(&mut api);
        match apis.replace(name, &PostParams::default(), &api).await {
            Ok(_) => return Ok(()),
            Err(Error::Api(status)) if status.code == 409 && attempts < ATTEMPTS => attempts += 1,
            Err(error) => return Err(format!("APIService {name}: {error}")),
        }
        sleep(GLANCE).await;
    }
}

/// Makes an APIService again what it was. One that somebody else has changed meanwhile only loses
/// our marks.
fn restore(api: &mut APIService) {
    let annotations = api.metadata.annotations.get_or_insert_default();
    let was = annotations.remove(REPLACED).and_then(|was| serde_json::from_str(&was).ok());
    annotations.remove(OWNER);
    if let Some(labels) = &mut api.metadata.labels {
        labels.remove(METRICS_API);
    }
    let service = api.spec.as_ref().and_then(|spec| spec.service.as_ref());
    if service.is_some_and(|it| it.namespace.as_deref() == Some(NAMESPACE)) && was.is_some() {
        api.spec = was;
    }
}

/// What a process has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leftovers {
    /// The process.
    pub(crate) owner: Owner,
    /// Whether it lives, as far as can be told from here.
    pub(crate) lives: bool,
    /// Names of what it has made.
    pub(crate) what: Vec<String>,
}

/// All that was made and is there, by owner.
///
/// # Errors
/// If the API server refuses.
pub(crate) async fn leftovers(client: &Client) -> Result<Vec<Leftovers>, String> {
    let apis: Api<APIService> = Api::all(client.clone());
    let list = apis.list(&ListParams::default().labels(METRICS_API)).await;
    let list = list.map_err(|error| format!("APIServices: {error}"))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_opt(NAMESPACE).await;
    let namespace = namespace.map_err(|error| format!("namespace {NAMESPACE}: {error}"))?;
    // One that is going already needs nothing done.
    let namespace = namespace.filter(|it| it.metadata.deletion_timestamp.is_none());
    let of_apis = list.into_iter().map(|api| {
        let conditions = api.status.as_ref().and_then(|status| status.conditions.as_ref());
        let mut available = conditions.into_iter().flatten().filter(|it| it.type_ == "Available");
        let serves = available.any(|it| it.status == "True");
        (format!("APIService {}", api.name_any()), api.metadata, serves)
    });
    let of_namespace = namespace.map(|it| (format!("namespace {NAMESPACE}"), it.metadata, false));
    let mut left: Vec<(Leftovers, bool)> = Vec::new();
    for (name, metadata, serves) in of_apis.chain(of_namespace) {
        let Some(owner) = owner(&metadata) else { continue };
        let replaced = metadata.annotations.iter().any(|it| it.contains_key(REPLACED));
        // What was replaced is as old as it was before.
        let created = metadata.creation_timestamp.map(|created| created.0);
        let seems_alive = serves || !replaced && age(created) < STARTING;
        match left.iter_mut().find(|(left, _)| left.owner == owner) {
            Some((left, alive)) => {
                left.what.push(name);
                *alive |= seems_alive;
            }
            None => left.push((Leftovers { owner, lives: false, what: vec![name] }, seems_alive)),
        }
    }
    let told = left.into_iter().map(|(left, seems_alive)| {
        let lives = left.owner.lives().unwrap_or(seems_alive);
        Leftovers { lives, ..left }
    });
    Ok(told.collect())
}

/// Removes what dead processes have left. Says what was done.
///
/// # Errors
/// If the API server refuses.
pub(crate) async fn remove_leftovers(client: &Client) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    for left in leftovers(client).await?.into_iter().filter(|left| !left.lives) {
        done.extend(remove_of(client, &left.owner).await?);
    }
    Ok(done)
}

/// Removes what this process has made, and restores what it has replaced. Says what was done.
///
/// # Errors
/// If the API server refuses.
pub(crate) async fn remove_own(client: &Client) -> Result<Vec<String>, String> {
    remove_of(client, &Owner::here()).await
}

async fn remove_of(client: &Client, of: &Owner) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let apis: Api<APIService> = Api::all(client.clone());
    let list = apis.list(&ListParams::default().labels(METRICS_API)).await;
    let list = list.map_err(|error| format!("APIServices: {error}"))?;
    // The namespace can only go when these have gone: the API server looks for what is in it.
    for api in list.into_iter().filter(|api| owner(&api.metadata).as_ref() == Some(of)) {
        let name = api.name_any();
        if api.annotations().contains_key(REPLACED) {
            update(client, &name, restore).await?;
            done.push(format!("APIService {name} is what it was before"));
            continue;
        }
        match apis.delete(&name, &at_once()).await {
            Ok(_) => done.push(format!("APIService {name} is deleted")),
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(format!("APIService {name}: {error}")),
        }
    }
    done.extend(remove_namespace(client, of).await?);
    Ok(done)
}

async fn remove_namespace(client: &Client, of: &Owner) -> Result<Option<String>, String> {
    let failed = |error: Error| format!("namespace {NAMESPACE}: {error}");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let there = namespaces.get_opt(NAMESPACE).await.map_err(failed)?;
    if there.is_none_or(|there| owner(&there.metadata).as_ref() != Some(of)) {
        return Ok(None);
    }
    match namespaces.delete(NAMESPACE, &at_once()).await {
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => return Err(failed(error)),
        Ok(_) => {}
    }
    let limit = Instant::now() + GOING;
    while let Some(there) = namespaces.get_opt(NAMESPACE).await.map_err(failed)? {
        if Instant::now() > limit {
            let conditions = there.status.and_then(|status| status.conditions).unwrap_or_default();
            let why = conditions.into_iter().find(|it| it.status == "True");
            let why = why.and_then(|it| it.message).map_or(String::new(), |why| format!(": {why}"));
            return Ok(Some(format!("namespace {NAMESPACE} is still being deleted{why}")));
        }
        sleep(GLANCE).await;
    }
    Ok(Some(format!("namespace {NAMESPACE} is deleted")))
}

#[cfg(test)]
mod tests;
