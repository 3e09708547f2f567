//! Registers the fake metrics API with an API server, and removes the registration.
//!
//! The API server proxies to a Service. A group for tests shows which kind of Service works, before
//! any foreign APIService is replaced (`route`). Every object names its owner, so that a later
//! process can remove the objects of a dead process. The original spec of a foreign APIService is
//! kept in an annotation, and restored.

use axum::http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{
    APIService, APIServiceSpec, ServiceReference,
};
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, Error, ResourceExt};
use tokio::time::{Instant, sleep};

use crate::cluster::access::client::at_once;
use crate::cluster::access::ownership::{Owner, age};
use crate::cluster::labels::{METRICS_API, OWNER, REPLACED};
use crate::cluster::metrics_api::groups::{
    GroupVersion, NAMESPACE, PROBE, SERVER_HEADER, versions_of,
};
use crate::cluster::metrics_api::route;
use crate::cluster::metrics_api::route::ServiceRoute;
use crate::cluster::metrics_api::server::Server;
use crate::cluster::timeouts::{
    METRICS_NAMESPACE_TIMEOUT, REGISTRATION_FAILURE_TIMEOUT, REGISTRATION_POLL_INTERVAL,
    REGISTRATION_TIMEOUT, ROUTE_TIMEOUT, STARTING,
};

/// The path of an object that the API server has to read from etcd.
pub(crate) const PATH: &str = "/api/v1/namespaces/kube-lockstep-metrics";

/// The number of retries of a change after conflicts with the API server's own changes.
const RETRIES: usize = 20;

/// The options of a registration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// Routes by which the API server may reach the server. The first route that works is used.
    pub(crate) routes: Vec<ServiceRoute>,
    /// Some of the groups of [`GROUPS`](crate::cluster::metrics_api::groups::GROUPS).
    pub groups: Vec<&'static str>,
    /// True if a metrics API of the cluster may be replaced while this one is served.
    pub replace: bool,
}

/// The reason why the metrics API could not be registered. No objects are left then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RegistrationError {
    /// The cluster has its own metrics API.
    #[error("the cluster already has {}", list(.0))]
    Taken(Vec<ForeignApiService>),
    /// Another kube-lockstep serves it.
    #[error("{0} is served by another kube-lockstep: {owner}", owner = .1.describe())]
    OtherInstance(String, Owner),
    /// The API server can't reach the metrics API by any route.
    #[error("the API server can't reach the metrics API: {0}")]
    Unreachable(String),
    /// Another error, mostly of the API server.
    #[error("{0}")]
    Other(String),
}

/// An APIService that is not ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForeignApiService {
    pub name: String,
    /// The namespace and name of its Service.
    pub service: String,
}

fn list(foreign: &[ForeignApiService]) -> String {
    let one = |it: &ForeignApiService| format!("APIService {} (of {})", it.name, it.service);
    foreign.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A registration. [`remove_own`] removes it; dropping it does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    /// The route by which the API server reaches the server.
    pub route: ServiceRoute,
}

impl Registration {
    /// Removes the leftovers of dead processes, registers the server, and waits until the API
    /// server reaches it.
    ///
    /// # Errors
    /// If it can't be registered; no objects are left then. If the future is dropped before it is
    /// ready, [`remove_own`] removes the objects.
    pub(crate) async fn register(
        client: &Client,
        server: &Server,
        options: &Options,
    ) -> Result<Registration, RegistrationError> {
        remove_leftovers(client).await.map_err(RegistrationError::Other)?;
        let registered = Registering { client, server, options }.register().await;
        if registered.is_err() {
            // The first error counts.
            let _ = remove_own(client).await;
        }
        Ok(Registration { route: registered? })
    }
}

/// The foreign APIServices of the groups.
///
/// # Errors
/// If another kube-lockstep serves one of the groups, or the API server rejects a request.
pub(crate) async fn foreign(
    client: &Client,
    groups: &[&str],
) -> Result<Vec<ForeignApiService>, RegistrationError> {
    let apis: Api<APIService> = Api::all(client.clone());
    let mut found = Vec::new();
    for name in versions_of(groups).iter().map(GroupVersion::api_service) {
        let existing = apis.get_opt(&name).await;
        let existing = existing.map_err(|error| refused(&format!("APIService {name}"), &error))?;
        let Some(api) = existing else { continue };
        if let Some(owner) = owner(&api.metadata) {
            return Err(RegistrationError::OtherInstance(format!("APIService {name}"), owner));
        }
        found.push(ForeignApiService { name, service: service(api) });
    }
    Ok(found)
}

/// The namespace and name of the Service of an APIService.
fn service(api: APIService) -> String {
    api.spec.and_then(|spec| spec.service).map_or_else(
        || "the API server itself".to_owned(),
        |it| format!("{}/{}", it.namespace.unwrap_or_default(), it.name.unwrap_or_default()),
    )
}

/// A description of the removal or change of one of our APIServices by another client, if any.
pub(crate) async fn registration_lost(client: &Client, groups: &[&str]) -> Option<String> {
    let apis: Api<APIService> = Api::all(client.clone());
    for name in versions_of(groups).iter().map(GroupVersion::api_service) {
        // An API server that does not respond is reported elsewhere.
        let existing = apis.get_opt(&name).await.ok()?;
        let Some(api) = existing else {
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
    Owner::parse(metadata.annotations.as_ref()?.get(OWNER)?)
}

/// The metadata of an object that this process creates.
fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(METRICS_API.to_owned(), "true".to_owned())].into()),
        annotations: Some([(OWNER.to_owned(), Owner::here().text())].into()),
        ..ObjectMeta::default()
    }
}

/// A registration in progress.
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
        let versions = versions_of(&self.options.groups);
        for of in &versions {
            let api = self.api_service(*of, &service);
            match foreign.iter().any(|it| it.name == of.api_service()) {
                true => self.replace(api).await?,
                false => self.create(&api).await?,
            }
        }
        let limit = Instant::now() + REGISTRATION_TIMEOUT;
        for of in versions {
            self.reach(of, limit).await.map_err(|why| {
                let name = of.api_service();
                RegistrationError::Unreachable(format!("{name}, via {route}: {why}"))
            })?;
        }
        Ok(route)
    }

    async fn namespace(&self) -> Result<(), RegistrationError> {
        let what = format!("namespace {NAMESPACE}");
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = Namespace { metadata: metadata(NAMESPACE), ..Namespace::default() };
        let limit = Instant::now() + REGISTRATION_TIMEOUT;
        loop {
            match namespaces.create(&PostParams::default(), &namespace).await {
                Ok(_) => return Ok(()),
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(refused(&what, &error)),
            }
            let existing = namespaces.get_opt(NAMESPACE).await;
            let existing = existing.map_err(|error| refused(&what, &error))?;
            // A namespace that is being deleted was removed a moment ago.
            if let Some(existing) = existing.filter(|it| it.metadata.deletion_timestamp.is_none()) {
                return Err(match owner(&existing.metadata) {
                    Some(owner) => RegistrationError::OtherInstance(what, owner),
                    None => RegistrationError::Other(format!(
                        "{what} exists, and kube-lockstep did not create it"
                    )),
                });
            }
            if Instant::now() > limit {
                return Err(RegistrationError::Other(format!("{what} is still being deleted")));
            }
            sleep(REGISTRATION_POLL_INTERVAL).await;
        }
    }

    /// The first route that works, and its number. A single route is tried with the groups
    /// themselves, if no foreign APIService has to be replaced.
    async fn route(&self, at_stake: bool) -> Result<(usize, ServiceRoute), RegistrationError> {
        let routes = &self.options.routes;
        let mut tried = Vec::new();
        for (number, route) in routes.iter().enumerate() {
            route::create(self.client, route, number, self.server.address.port())
                .await
                .map_err(RegistrationError::Other)?;
            if routes.len() == 1 && !at_stake {
                return Ok((number, route.clone()));
            }
            match self.probe(number).await? {
                None => return Ok((number, route.clone())),
                Some(why) => tried.push(format!("via {route}: {why}")),
            }
        }
        Err(RegistrationError::Unreachable(match tried.is_empty() {
            true => "no route to this machine is known".to_owned(),
            false => tried.join("; "),
        }))
    }

    /// Tests a route. Returns the reason if it does not work.
    async fn probe(&self, number: usize) -> Result<Option<String>, RegistrationError> {
        let name = PROBE.api_service();
        self.create(&self.api_service(PROBE, &route::service_name(number))).await?;
        let reached = self.reach(PROBE, Instant::now() + ROUTE_TIMEOUT).await;
        let apis: Api<APIService> = Api::all(self.client.clone());
        let deleted = apis.delete(&name, &at_once()).await;
        deleted.map_err(|error| refused(&format!("APIService {name}"), &error))?;
        Ok(reached.err())
    }

    fn api_service(&self, of: GroupVersion, service: &str) -> APIService {
        let service = ServiceReference {
            namespace: Some(NAMESPACE.to_owned()),
            name: Some(service.to_owned()),
            port: Some(self.server.address.port().into()),
        };
        let spec = APIServiceSpec {
            group: Some(of.group.to_owned()),
            version: Some(of.version.to_owned()),
            group_priority_minimum: 100,
            version_priority: of.priority,
            ca_bundle: Some(ByteString(self.server.authority.as_bytes().to_vec())),
            service: Some(service),
            ..APIServiceSpec::default()
        };
        let metadata = metadata(&of.api_service());
        APIService { metadata, spec: Some(spec), status: None }
    }

    async fn create(&self, api: &APIService) -> Result<(), RegistrationError> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let created = apis.create(&PostParams::default(), api).await;
        let what = || format!("APIService {}", api.name_any());
        created.map(|_| ()).map_err(|error| refused(&what(), &error))
    }

    /// Replaces a foreign APIService by ours, and keeps its spec in an annotation.
    async fn replace(&self, ours: APIService) -> Result<(), RegistrationError> {
        let name = ours.name_any();
        let done = update(self.client, &name, |api| {
            let replaced = serde_json::to_string(&api.spec).unwrap_or_default();
            api.annotations_mut().insert(REPLACED.to_owned(), replaced);
            api.annotations_mut().extend(ours.annotations().clone());
            api.labels_mut().extend(ours.labels().clone());
            api.spec.clone_from(&ours.spec);
        });
        done.await.map_err(RegistrationError::Other)
    }

    /// Waits until the API server reports an APIService as available, and proxies to this server.
    /// The status of a replaced APIService may be outdated.
    async fn reach(&self, of: GroupVersion, limit: Instant) -> Result<(), String> {
        let apis: Api<APIService> = Api::all(self.client.clone());
        let mut failing: Option<Instant> = None;
        loop {
            let api = apis.get(&of.api_service()).await.map_err(|error| error.to_string())?;
            let conditions = api.status.and_then(|status| status.conditions).unwrap_or_default();
            let available = conditions.into_iter().find(|it| it.type_ == "Available");
            let why = match available {
                Some(it) if it.status == "True" => {
                    if self.answers(of).await {
                        return Ok(());
                    }
                    failing = None;
                    "another server responds instead".to_owned()
                }
                Some(it) => {
                    let why = it.message.unwrap_or_default();
                    let since = *failing.get_or_insert_with(Instant::now);
                    let tried = it.reason.as_deref() == Some("FailedDiscoveryCheck");
                    let over = tried && since.elapsed() > REGISTRATION_FAILURE_TIMEOUT;
                    if over
                        || ["unsupported service type", "cannot route"]
                            .iter()
                            .any(|it| why.contains(it))
                    {
                        return Err(why);
                    }
                    why
                }
                None => "the API server reports no reason".to_owned(),
            };
            if Instant::now() > limit {
                return Err(why);
            }
            sleep(REGISTRATION_POLL_INTERVAL).await;
        }
    }

    /// Returns true if the response comes from this server.
    async fn answers(&self, of: GroupVersion) -> bool {
        let request = Request::get(of.path()).body(Body::empty());
        let Ok(request) = request else { return false };
        let Ok(answer) = self.client.send(request).await else { return false };
        let id = answer.headers().get(SERVER_HEADER);
        id.is_some_and(|id| id.as_bytes() == self.server.id.as_bytes())
    }
}

/// Changes an APIService, with retries: the API server itself writes its status at any time.
async fn update(
    client: &Client,
    name: &str,
    mut change: impl FnMut(&mut APIService),
) -> Result<(), String> {
    let apis: Api<APIService> = Api::all(client.clone());
    let mut attempts = 0;
    loop {
        let existing = apis.get_opt(name).await;
        let existing = existing.map_err(|error| format!("APIService {name}: {error}"))?;
        // The APIService was deleted meanwhile.
        let Some(mut api) = existing else { return Ok(()) };
        change(&mut api);
        match apis.replace(name, &PostParams::default(), &api).await {
            Ok(_) => return Ok(()),
            Err(Error::Api(status)) if status.code == 409 && attempts < RETRIES => attempts += 1,
            Err(error) => return Err(format!("APIService {name}: {error}")),
        }
        sleep(REGISTRATION_POLL_INTERVAL).await;
    }
}

/// Restores the spec of an APIService. If another client has changed the spec meanwhile, only our
/// labels and annotations are removed.
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

/// The objects of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leftovers {
    pub owner: Owner,
    /// True if the process is alive, as far as this process can determine.
    pub(crate) is_alive: bool,
    /// The names of the objects.
    pub what: Vec<String>,
}

/// All objects that kube-lockstep processes created, by owner.
///
/// # Errors
/// If the API server rejects a request.
pub(crate) async fn leftovers(client: &Client) -> Result<Vec<Leftovers>, String> {
    let apis: Api<APIService> = Api::all(client.clone());
    let list = apis.list(&ListParams::default().labels(METRICS_API)).await;
    let list = list.map_err(|error| format!("APIServices: {error}"))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_opt(NAMESPACE).await;
    let namespace = namespace.map_err(|error| format!("namespace {NAMESPACE}: {error}"))?;
    // A namespace that is being deleted needs no removal.
    let namespace = namespace.filter(|it| it.metadata.deletion_timestamp.is_none());
    let apis = list.into_iter().map(|api| {
        let conditions = api.status.as_ref().and_then(|status| status.conditions.as_ref());
        let mut available = conditions.into_iter().flatten().filter(|it| it.type_ == "Available");
        let serves = available.any(|it| it.status == "True");
        (format!("APIService {}", api.name_any()), api.metadata, serves)
    });
    let namespace_object =
        namespace.map(|it| (format!("namespace {NAMESPACE}"), it.metadata, false));
    let mut left: Vec<(Leftovers, bool)> = Vec::new();
    for (name, metadata, serves) in apis.chain(namespace_object) {
        let Some(owner) = owner(&metadata) else { continue };
        let replaced = metadata.annotations.iter().any(|it| it.contains_key(REPLACED));
        // The creation time of a replaced APIService is the original one.
        let created = metadata.creation_timestamp.map(|created| created.0);
        let seems_alive = serves || !replaced && age(created) < STARTING;
        match left.iter_mut().find(|(left, _)| left.owner == owner) {
            Some((left, alive)) => {
                left.what.push(name);
                *alive |= seems_alive;
            }
            None => {
                left.push((Leftovers { owner, is_alive: false, what: vec![name] }, seems_alive))
            }
        }
    }
    let leftovers = left.into_iter().map(|(left, seems_alive)| {
        let is_alive = left.owner.is_alive().unwrap_or(seems_alive);
        Leftovers { is_alive, ..left }
    });
    Ok(leftovers.collect())
}

/// Removes the objects of dead processes. Returns a report of each removal.
///
/// # Errors
/// If the API server rejects a request.
pub(crate) async fn remove_leftovers(client: &Client) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    for left in leftovers(client).await?.into_iter().filter(|left| !left.is_alive) {
        done.extend(remove_of(client, &left.owner).await?);
    }
    Ok(done)
}

/// Removes the objects of this process, and restores what it replaced. Returns a report of each
/// removal.
///
/// # Errors
/// If the API server rejects a request.
pub(crate) async fn remove_own(client: &Client) -> Result<Vec<String>, String> {
    remove_of(client, &Owner::here()).await
}

async fn remove_of(client: &Client, of: &Owner) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let apis: Api<APIService> = Api::all(client.clone());
    let list = apis.list(&ListParams::default().labels(METRICS_API)).await;
    let list = list.map_err(|error| format!("APIServices: {error}"))?;
    // The APIServices first: to delete a namespace, the API server lists its objects in every API.
    for api in list.into_iter().filter(|api| owner(&api.metadata).as_ref() == Some(of)) {
        let name = api.name_any();
        if api.annotations().contains_key(REPLACED) {
            update(client, &name, restore).await?;
            done.push(format!("APIService {name} is restored"));
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
    let existing = namespaces.get_opt(NAMESPACE).await.map_err(failed)?;
    if existing.is_none_or(|existing| owner(&existing.metadata).as_ref() != Some(of)) {
        return Ok(None);
    }
    match namespaces.delete(NAMESPACE, &at_once()).await {
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => return Err(failed(error)),
        Ok(_) => {}
    }
    let limit = Instant::now() + METRICS_NAMESPACE_TIMEOUT;
    while let Some(existing) = namespaces.get_opt(NAMESPACE).await.map_err(failed)? {
        if Instant::now() > limit {
            let conditions =
                existing.status.and_then(|status| status.conditions).unwrap_or_default();
            let why = conditions.into_iter().find(|it| it.status == "True");
            let why = why.and_then(|it| it.message).map_or(String::new(), |why| format!(": {why}"));
            return Ok(Some(format!("namespace {NAMESPACE} is still being deleted{why}")));
        }
        sleep(REGISTRATION_POLL_INTERVAL).await;
    }
    Ok(Some(format!("namespace {NAMESPACE} is deleted")))
}

#[cfg(test)]
mod tests;
