//! A container that runs until this process exits.
//!
//! Its first process waits for a command that this process executes in the container, and exits
//! with it: when the connection ends, for whatever reason, Docker closes the input of that command.
//! Docker then removes the container. A guard removes a container that was created but not started.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::{Stream, StreamExt};
use testcontainers::bollard::Docker;
use testcontainers::bollard::container::LogOutput;
use testcontainers::bollard::errors::Error;
use testcontainers::bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use testcontainers::bollard::models::{HostConfig, HostConfigLogConfig, PortBinding};
use testcontainers::bollard::query_parameters::{
    AttachContainerOptionsBuilder, InspectContainerOptions, WaitContainerOptions,
};
use testcontainers::core::IntoContainerPort;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tokio::io::{AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::cluster::access::local_address::is_own;
use crate::cluster::provision::bootstrap::broken;
use crate::cluster::provision::docker::{chain, connect, docker_message, split};
use crate::cluster::timeouts::{HEALTH_POLL_INTERVAL, REMOVE_TIMEOUT};
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The label of the containers.
pub(crate) const LABEL: &str = "dev.kube-lockstep";

/// The file that shows the first process of a container that this process holds it.
pub(crate) const HELD: &str = "/held";

/// The number of bytes of a log that error messages show.
const TAIL: usize = 4096;

/// The size of the buffer of the audit log, in bytes.
const AUDIT_LOG_BUFFER: usize = 1 << 20;

/// The configuration of a container.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    /// The image with its tag.
    pub image: String,
    /// Replaces the image's entrypoint.
    pub(crate) entrypoint: Option<&'static str>,
    pub args: Vec<String>,
    /// Files to create before the start: paths and contents.
    pub files: Vec<(String, String)>,
    pub environment: Vec<(&'static str, String)>,
    /// The ports to publish on the loopback address.
    pub ports: Vec<u16>,
    /// The command that holds the container until its input ends. It creates [`HELD`] first.
    pub hold: Vec<String>,
}

/// A running container, which is removed when this is dropped.
pub(crate) struct RunningContainer {
    name: Arc<str>,
    docker: Docker,
    inner: Option<ContainerAsync<GenericImage>>,
    /// The runtime that removes the container when it is dropped.
    runtime: Handle,
    hold: Option<Program>,
    output: Arc<Output>,
    tasks: Vec<JoinHandle<()>>,
    ports: HashMap<u16, u16>,
    gateway: Option<IpAddr>,
    guard: Option<Guard>,
}

/// The output of a program, and the reason for its end.
#[derive(Debug, Default)]
struct Output {
    tail: Mutex<Vec<u8>>,
    ended: Mutex<Option<String>>,
}

impl Output {
    fn add(&self, bytes: &[u8]) {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }

    fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }

    fn end(&self, why: String) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    fn ended(&self) -> Option<String> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A program that was started in a container. It is stopped when this is dropped.
pub(crate) struct Program {
    name: String,
    output: Arc<Output>,
    task: JoinHandle<()>,
    _input: Pin<Box<dyn AsyncWrite + Send>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Program {
    /// The reason for its end and its last output, if it has exited.
    pub(crate) fn ended(&self) -> Option<(String, String)> {
        let why = self.output.ended()?;
        Some((format!("{} {why}", self.name), self.output.tail()))
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self) -> String {
        self.output.tail()
    }
}

impl RunningContainer {
    /// Starts a container. Also returns its standard output.
    ///
    /// # Errors
    /// If Docker can't be reached, lacks the image, or rejects the request.
    pub(crate) async fn start(
        name: &Arc<str>,
        spec: &Spec,
    ) -> Result<(RunningContainer, DuplexStream), EngineError> {
        let docker = connect(name).await?;
        let unique_name = unique_name();
        let broken = |why: String| broken(name, &why, "");
        // The guard first, so that the container is removed in any case.
        let guard = Guard::for_container(&unique_name);
        let guard = guard.map_err(|error| broken(format!("no guard can be started: {error}")))?;
        let inner = request(spec, &unique_name).start().await;
        let inner = inner.map_err(|error| broken(format!("Docker: {}", docker_message(&error))))?;
        let mut container = RunningContainer {
            name: name.clone(),
            docker,
            inner: Some(inner),
            runtime: Handle::current(),
            hold: None,
            output: Arc::default(),
            tasks: Vec::new(),
            ports: HashMap::new(),
            gateway: None,
            guard: Some(guard),
        };
        let log = container.connect(spec).await?;
        Ok((container, log))
    }

    /// Inspects the container, connects to its output, and lets its first process begin.
    async fn connect(&mut self, spec: &Spec) -> Result<DuplexStream, EngineError> {
        let failed = |what: &str, error: &(dyn std::error::Error + 'static)| {
            let why = format!("{what} of the container: {}", chain(error));
            broken(&self.name, &why, &self.output.tail())
        };
        let Some(inner) = &self.inner else {
            return Err(broken(&self.name, "the container was removed", ""));
        };
        let id = inner.id().to_owned();
        let host = inner.get_host().await.map_err(|error| failed("the address", &error))?;
        // In a container, testcontainers uses the address of Docker's bridge, which may be local.
        let address = host.to_string().parse::<IpAddr>().ok();
        let is_own = address.is_some_and(is_own);
        if host.to_string() != "localhost" && !is_own {
            return Err(EngineError::Unavailable {
                engine: self.name.clone(),
                problem: Diagnostic::new(format!(
                    "the Docker engine is not on this machine, but at {host}"
                ))
                .hint("run this command on that host: its containers can't reach this machine"),
            });
        }
        for port in &spec.ports {
            let mapped = inner.get_host_port_ipv4(port.tcp()).await;
            let mapped = mapped.map_err(|error| failed("the ports", &error))?;
            self.ports.insert(*port, mapped);
        }
        let found = self.docker.inspect_container(&id, None::<InspectContainerOptions>).await;
        let networks = found.map_err(|error| failed("the network", &error))?.network_settings;
        let mut networks = networks.and_then(|it| it.networks).unwrap_or_default().into_values();
        self.gateway = networks.find_map(|it| it.gateway?.parse().ok());
        let attach =
            AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        let attached = self.docker.attach_container(&id, Some(attach)).await;
        let attached = attached.map_err(|error| failed("the output", &error))?;
        let (to, log) = duplex(AUDIT_LOG_BUFFER);
        let output = self.output.clone();
        self.tasks.push(tokio::spawn(async move { drain(attached.output, to, &output).await }));
        let (docker, output) = (self.docker.clone(), self.output.clone());
        self.tasks.push(tokio::spawn(async move { output.end(wait(&docker, &id).await) }));
        self.hold = Some(self.execute("the holder", &spec.hold).await?);
        Ok(log)
    }

    /// Starts a program in the container.
    ///
    /// # Errors
    /// If Docker rejects the request.
    pub(crate) async fn execute(
        &self,
        name: &str,
        command: &[String],
    ) -> Result<Program, EngineError> {
        let failed = |error: Error| {
            let why = format!("{name} can't be started in the container: {}", chain(&error));
            broken(&self.name, &why, &self.output.tail())
        };
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command.to_vec()),
            ..Default::default()
        };
        let id = self.inner.as_ref().map_or("", |inner| inner.id());
        let created = self.docker.create_exec(id, options).await.map_err(failed)?.id;
        let started = self.docker.start_exec(&created, None::<StartExecOptions>).await;
        let StartExecResults::Attached { output: from, input } = started.map_err(failed)? else {
            return Err(broken(&self.name, &format!("{name} is not attached"), ""));
        };
        let output = Arc::new(Output::default());
        let (docker, log) = (self.docker.clone(), output.clone());
        let task = tokio::spawn(async move {
            let (to, _) = duplex(1);
            drain(from, to, &log).await;
            let code = docker.inspect_exec(&created).await.ok().and_then(|it| it.exit_code);
            log.end(match code {
                Some(code) => format!("has exited (exit code {code})"),
                None => "is no longer connected".to_owned(),
            });
        });
        Ok(Program { name: name.to_owned(), output, task, _input: input })
    }

    /// The loopback port that a port is published on.
    pub(crate) fn port(&self, port: u16) -> u16 {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// The address of this machine as seen from the container.
    pub(crate) fn gateway(&self) -> Option<IpAddr> {
        self.gateway
    }

    /// The content of a file in the container.
    pub(crate) async fn read(&self, path: &str) -> Option<String> {
        let text: Vec<u8> = self.inner.as_ref()?.copy_file_from(path, Vec::new()).await.ok()?;
        String::from_utf8(text).ok()
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self) -> String {
        self.output.tail()
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// If it has exited, with the last lines of its log.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match self.output.ended() {
            Some(why) => Err(broken(&self.name, &why, &self.output.tail())),
            None => Ok(()),
        }
    }

    /// Stops it, and waits until it is removed.
    pub(crate) async fn stop(mut self) {
        if let Some(inner) = self.inner.take() {
            let id = inner.id().to_owned();
            // An error does not matter, because Docker also removes it when it exits.
            let _ = inner.rm().await;
            let begin = Instant::now();
            while begin.elapsed() < REMOVE_TIMEOUT
                && self.docker.inspect_container(&id, None::<InspectContainerOptions>).await.is_ok()
            {
                sleep(HEALTH_POLL_INTERVAL).await;
            }
        }
        if let Some(guard) = self.guard.take() {
            guard.disarm().await;
        }
    }
}

impl Drop for RunningContainer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        let _entered = self.runtime.enter();
        drop(self.hold.take());
        drop(self.inner.take());
    }
}

/// A unique name for a container or a cluster.
pub(crate) fn unique_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut hash = std::collections::hash_map::RandomState::new().build_hasher();
    hash.write_u32(COUNT.fetch_add(1, Ordering::Relaxed));
    format!("kube-lockstep-{}-{:08x}", std::process::id(), hash.finish() as u32)
}

fn request(spec: &Spec, name: &str) -> testcontainers::ContainerRequest<GenericImage> {
    let (repository, tag) = split(&spec.image);
    let mut image = GenericImage::new(repository, tag);
    if let Some(entrypoint) = spec.entrypoint {
        image = image.with_entrypoint(entrypoint);
    }
    let ports = spec.ports.clone();
    for port in &ports {
        image = image.with_exposed_port(port.tcp());
    }
    let mut request = image
        .with_cmd(spec.args.iter().cloned())
        .with_container_name(name)
        .with_label(LABEL, std::process::id().to_string())
        .with_host_config_modifier(move |host| private(host, &ports));
    for (name, value) in &spec.environment {
        request = request.with_env_var(*name, value);
    }
    for (path, text) in &spec.files {
        request = request.with_copy_to(path.as_str(), text.clone().into_bytes());
    }
    request
}

/// Lets Docker remove the container on exit, keep no log, and publish ports on loopback only.
fn private(host: &mut HostConfig, ports: &[u16]) {
    host.auto_remove = Some(true);
    host.log_config = Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None });
    host.publish_all_ports = Some(false);
    let binding = PortBinding {
        host_ip: Some("127.0.0.1".to_owned()),
        // Any free port.
        host_port: Some(String::new()),
    };
    let bindings = ports.iter().map(|port| (format!("{port}/tcp"), Some(vec![binding.clone()])));
    host.port_bindings = Some(bindings.collect());
}

/// Reads the output of a program until it ends.
async fn drain(
    mut from: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
    mut to: DuplexStream,
    log: &Output,
) {
    while let Some(Ok(output)) = from.next().await {
        match output {
            // The reader may have been dropped.
            LogOutput::StdOut { message } => drop(to.write_all(&message).await),
            LogOutput::StdErr { message } => log.add(&message),
            LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
        }
    }
}

/// Waits until a container has exited. Returns the reason.
async fn wait(docker: &Docker, id: &str) -> String {
    let mut waiting = Box::pin(docker.wait_container(id, None::<WaitContainerOptions>));
    let code = match waiting.next().await {
        Some(Ok(done)) => done.status_code,
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return format!("Docker can no longer be reached: {}", chain(&error)),
        None => return "Docker can no longer be reached".to_owned(),
    };
    format!("the container has exited (exit code {code})")
}
