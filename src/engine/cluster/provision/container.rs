//! A container that lives as long as this process holds it.
//!
//! Its first process waits until somebody holds it, and ends when that one's connection does:
//! Docker closes the input of what is executed over it, whatever became of the other end, and
//! removes the container. One that was made but not started yet is removed by a guard.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

use crate::engine::EngineError;
use crate::engine::cluster::access::local_address::is_own;
use crate::engine::cluster::provision::docker::{chain, connect, said, split};
use crate::engine::cluster::provision::guard::Guard;

/// The label of containers of this program.
pub(crate) const LABEL: &str = "dev.kube-lockstep";

/// The file by which a container's first process sees that it is held.
pub(crate) const HELD: &str = "/held";

/// How much of what a program writes is kept for messages.
const TAIL: usize = 4096;

/// How much of the audit log may wait for its reader.
const BUFFER: usize = 1 << 20;

/// How long a container may take to be removed.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);

/// Removes the container that it is told, also one that Docker is only making.
const GUARD: &str = r#"
cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  docker rm -f -v "$1" >/dev/null 2>&1
  sleep 0.3
  docker container inspect "$1" >/dev/null 2>&1 || exit 0
done
"#;

/// What a container is to be like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    /// The image with its tag.
    pub(crate) image: String,
    /// In place of the image's own.
    pub(crate) entrypoint: Option<&'static str>,
    pub(crate) args: Vec<String>,
    /// Files that it has from the start, by path.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) environment: Vec<(&'static str, String)>,
    /// What it listens to. Each port is mapped to one of this machine's loopback.
    pub(crate) ports: Vec<u16>,
    /// The command that holds it as long as its input lasts: it writes [`HELD`] first.
    pub(crate) hold: Vec<String>,
}

/// A container that runs. Dropped, it is removed.
pub(crate) struct Container {
    name: Arc<str>,
    docker: Docker,
    inner: Option<ContainerAsync<GenericImage>>,
    /// Removing takes it, wherever this is dropped.
    runtime: Handle,
    hold: Option<Program>,
    /// What it writes.
    output: Arc<Output>,
    tasks: Vec<JoinHandle<()>>,
    ports: HashMap<u16, u16>,
    gateway: Option<IpAddr>,
    guard: Option<Guard>,
}

/// What a program has written, and why it writes no more.
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

/// A program that was started in a container. It ends when this is dropped.
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
    /// Why it has ended, if it has, and what it wrote last.
    pub(crate) fn ended(&self) -> Option<(String, String)> {
        let why = self.output.ended()?;
        Some((format!("{} {why}", self.name), self.output.tail()))
    }

    /// What it wrote last.
    pub(crate) fn tail(&self) -> String {
        self.output.tail()
    }
}

impl Container {
    /// Starts one. Gives what it writes to its standard output, too.
    ///
    /// # Errors
    /// If Docker can't be reached, has no such image, or refuses.
    pub(crate) async fn start(
        name: &Arc<str>,
        spec: &Spec,
    ) -> Result<(Container, DuplexStream), EngineError> {
        let docker = connect(name).await?;
        let called = called();
        let broken = |why: String| broken(name, why, String::new());
        // First the one who removes it. Where there is no `docker`, it does nothing.
        let guard = Guard::new(GUARD, &[&called]);
        let guard = guard.map_err(|error| broken(format!("no guard can be started: {error}")))?;
        let inner = request(spec, &called).start().await;
        let inner = inner.map_err(|error| broken(format!("Docker: {}", said(&error))))?;
        let mut container = Container {
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
        let log = container.take(spec).await?;
        Ok((container, log))
    }

    /// What has to be known of it before it is let begin.
    async fn take(&mut self, spec: &Spec) -> Result<DuplexStream, EngineError> {
        let failed = |what: &str, error: &(dyn std::error::Error + 'static)| {
            let why = format!("{what} of the container: {}", chain(error));
            broken(&self.name, why, self.output.tail())
        };
        let Some(inner) = &self.inner else {
            return Err(broken(&self.name, "gone".into(), "".into()));
        };
        let id = inner.id().to_owned();
        let host = inner.get_host().await.map_err(|error| failed("the address", &error))?;
        // In a container, testcontainers takes the address of Docker's bridge, which may be ours.
        let address = host.to_string().parse::<IpAddr>().ok();
        let is_own = address.is_some_and(is_own);
        if host.to_string() != "localhost" && !is_own {
            return Err(EngineError::Unavailable {
                engine: self.name.clone(),
                why: format!("the Docker engine is not on this machine, but at {host}"),
                hint: "what runs there could not reach the metrics APIs here; run it there".into(),
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
        let (to, log) = duplex(BUFFER);
        let output = self.output.clone();
        self.tasks.push(tokio::spawn(async move { drain(attached.output, to, &output).await }));
        let (docker, output) = (self.docker.clone(), self.output.clone());
        let of = id.clone();
        self.tasks.push(tokio::spawn(async move { output.end(wait(&docker, &of).await) }));
        self.hold = Some(self.execute("the holder", &spec.hold).await?);
        Ok(log)
    }

    /// Starts a program in it.
    ///
    /// # Errors
    /// If Docker refuses.
    pub(crate) async fn execute(
        &self,
        name: &str,
        command: &[String],
    ) -> Result<Program, EngineError> {
        let failed = |error: Error| {
            let why = format!("{name} can't be started in the container: {}", chain(&error));
            broken(&self.name, why, self.output.tail())
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
            return Err(broken(&self.name, format!("{name} is not attached"), String::new()));
        };
        let output = Arc::new(Output::default());
        let (docker, told) = (self.docker.clone(), output.clone());
        let task = tokio::spawn(async move {
            let (to, _) = duplex(1);
            drain(from, to, &told).await;
            let code = docker.inspect_exec(&created).await.ok().and_then(|it| it.exit_code);
            told.end(match code {
                Some(code) => format!("has ended (exit code {code})"),
                None => "is no longer connected".to_owned(),
            });
        });
        Ok(Program { name: name.to_owned(), output, task, _input: input })
    }

    /// The port of loopback that one of its ports is mapped to.
    pub(crate) fn port(&self, port: u16) -> u16 {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// This machine, as it is seen from inside.
    pub(crate) fn gateway(&self) -> Option<IpAddr> {
        self.gateway
    }

    /// The text of a file in it; nothing if there is none.
    pub(crate) async fn read(&self, path: &str) -> Option<String> {
        let text: Vec<u8> = self.inner.as_ref()?.copy_file_from(path, Vec::new()).await.ok()?;
        String::from_utf8(text).ok()
    }

    /// What it wrote last.
    pub(crate) fn tail(&self) -> String {
        self.output.tail()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// If not, with what it wrote last.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match self.output.ended() {
            Some(why) => Err(broken(&self.name, why, self.output.tail())),
            None => Ok(()),
        }
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn stop(mut self) {
        if let Some(inner) = self.inner.take() {
            let id = inner.id().to_owned();
            // Docker removes it itself, too: only that it is gone matters.
            let _ = inner.rm().await;
            let begin = Instant::now();
            while begin.elapsed() < REMOVE_LIMIT
                && self.docker.inspect_container(&id, None::<InspectContainerOptions>).await.is_ok()
            {
                sleep(Duration::from_millis(20)).await;
            }
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss().await;
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        let _entered = self.runtime.enter();
        drop(self.hold.take());
        drop(self.inner.take());
    }
}

/// How a container or a cluster is called: as no other one.
pub(crate) fn called() -> String {
    use std::hash::{BuildHasher, Hasher};
    static MADE: AtomicU32 = AtomicU32::new(0);
    let mut hash = std::collections::hash_map::RandomState::new().build_hasher();
    hash.write_u32(MADE.fetch_add(1, Ordering::Relaxed));
    format!("kube-lockstep-{}-{:08x}", std::process::id(), hash.finish() as u32)
}

fn request(spec: &Spec, called: &str) -> testcontainers::ContainerRequest<GenericImage> {
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
        .with_container_name(called)
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

/// It is removed when it ends, keeps no log, and can be reached by loopback only.
fn private(host: &mut HostConfig, ports: &[u16]) {
    host.auto_remove = Some(true);
    host.log_config = Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None });
    host.publish_all_ports = Some(false);
    let binding = PortBinding {
        host_ip: Some("127.0.0.1".to_owned()),
        // One that is free.
        host_port: Some(String::new()),
    };
    let bindings = ports.iter().map(|port| (format!("{port}/tcp"), Some(vec![binding.clone()])));
    host.port_bindings = Some(bindings.collect());
}

/// Reads what a program writes to its end.
async fn drain(
    mut from: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
    mut to: DuplexStream,
    output: &Output,
) {
    while let Some(Ok(said)) = from.next().await {
        match said {
            // Nobody may be listening.
            LogOutput::StdOut { message } => drop(to.write_all(&message).await),
            LogOutput::StdErr { message } => output.add(&message),
            LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
        }
    }
}

/// Waits until a container has ended. Says how.
async fn wait(docker: &Docker, id: &str) -> String {
    let mut waiting = Box::pin(docker.wait_container(id, None::<WaitContainerOptions>));
    let code = match waiting.next().await {
        Some(Ok(done)) => done.status_code,
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return format!("Docker can no longer be reached: {}", chain(&error)),
        None => return "Docker can no longer be reached".to_owned(),
    };
    format!("the container has ended (exit code {code})")
}

fn broken(name: &Arc<str>, why: String, output: String) -> EngineError {
    EngineError::Broken { engine: name.clone(), why, output }
}
