//! A child process that speaks the engine protocol, with a timeout for every answer.
//!
//! The child exits when its standard input closes, so it does not outlive this process even if that
//! is killed. It is also killed and reaped on drop.

use std::fmt::Write as _;
use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::excerpt::Excerpt;
use crate::process_group;
use crate::runtime;
use crate::runtime::Threads;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::trace::wire::Answer;

/// The timeout for an answer.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The number of bytes that messages show of the head, and of the tail, of the error output.
const OUTPUT: usize = 4096;

/// The number of bytes that messages show of the head, and of the tail, of a failure's description,
/// which may quote the engine.
const REASON: usize = 1024;

/// The largest answer, in bytes: an engine must not exhaust the memory of this process.
const MAX_ANSWER: usize = 16 << 20;

/// The size of a read, in bytes.
const CHUNK: usize = 64 * 1024;

/// The number of bytes of queued requests that are written without waiting for an answer.
const BATCH: usize = 4 * 1024;

/// A running engine program.
#[derive(Debug)]
pub(super) struct Process {
    /// The engine's name, for messages.
    name: Arc<str>,
    runtime: Runtime,
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    errors: ErrorOutput,
    limit: Duration,
    /// Pending requests.
    outgoing: Vec<u8>,
    /// Buffered output: complete lines, then an incomplete one.
    incoming: Vec<u8>,
    /// The start of the next line in `incoming`, and the end of the part without a line break.
    taken: usize,
    searched: usize,
}

impl Process {
    /// Starts a program.
    pub(super) fn start(
        name: &Arc<str>,
        program: &Path,
        limit: Duration,
    ) -> Result<Process, EngineError> {
        Process::try_start(name, program, limit).map_err(|error| EngineError::Broken {
            engine: name.clone(),
            why: format!("{} could not be started: {error}", program.display()),
            output: String::new(),
        })
    }

    fn try_start(name: &Arc<str>, program: &Path, limit: Duration) -> io::Result<Process> {
        let runtime = runtime::start(Threads::Caller).map_err(io::Error::other)?;
        let _entered = runtime.enter();
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        process_group::in_own_group(command.as_std_mut());
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its pipes are missing"));
        };
        let errors = ErrorOutput { pipe: child.stderr.take(), excerpt: Excerpt::new(OUTPUT) };
        drop(_entered);
        Ok(Process {
            name: name.clone(),
            runtime,
            child,
            input,
            output,
            errors,
            limit,
            outgoing: Vec::new(),
            incoming: Vec::with_capacity(CHUNK),
            taken: 0,
            searched: 0,
        })
    }

    /// Queues a request. If the queue has grown by a batch, writes as much as fits in the pipe, so
    /// that the program can start. [`receive`](Self::receive) writes the rest.
    pub(super) fn send(&mut self, request: &impl Serialize) -> Result<(), EngineError> {
        let full_batches = self.outgoing.len() / BATCH;
        if let Err(error) = serde_json::to_writer(&mut self.outgoing, request) {
            return Err(self.broken(&format!("a request could not be written: {error}")));
        }
        self.outgoing.push(b'\n');
        if self.outgoing.len() / BATCH > full_batches {
            self.write_without_waiting();
        }
        Ok(())
    }

    /// Writes as much of the queue as fits in the pipe.
    pub(super) fn write_without_waiting(&mut self) {
        let Process { runtime, input, outgoing, .. } = self;
        let written = runtime.block_on(async {
            tokio::select! {
                biased;
                written = input.write(outgoing) => written,
                // Meanwhile, the runtime checks if a pipe that was full has room again.
                () = yield_now() => Ok(0),
            }
        });
        // `receive` reports a program that has exited.
        outgoing.drain(..written.unwrap_or(0));
    }

    /// Waits for the next answer, writing queued requests meanwhile.
    pub(super) fn receive(&mut self) -> Result<Answer, EngineError> {
        self.receive_as(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
    }

    /// Waits for the next answer and parses it.
    pub(super) fn receive_as<T>(
        &mut self,
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<T, EngineError> {
        let deadline = Instant::now() + self.limit;
        loop {
            if let Some(end) = self.line_end() {
                let line = &self.incoming[self.taken..end];
                let answer = read(line).map_err(|error| {
                    let line = String::from_utf8_lossy(line);
                    let line: String = line.chars().take(300).collect();
                    format!("an answer could not be parsed: {error}: {line}")
                });
                self.taken = end + 1;
                self.searched = self.taken;
                return answer.map_err(|why| self.broken(&why));
            }
            if self.incoming.len() - self.taken > MAX_ANSWER {
                let megabytes = MAX_ANSWER >> 20;
                return Err(self.broken(&format!("an answer is longer than {megabytes} MiB")));
            }
            self.exchange(deadline)?;
        }
    }

    fn line_end(&mut self) -> Option<usize> {
        let end = self.incoming[self.searched..].iter().position(|byte| *byte == b'\n');
        let found = end.map(|offset| self.searched + offset);
        self.searched = found.unwrap_or(self.incoming.len());
        found
    }

    /// Writes queued requests and reads available output, so that neither side blocks the other.
    /// Requests are written first: the program processes them while this process reads answers.
    fn exchange(&mut self, deadline: Instant) -> Result<(), EngineError> {
        if self.taken > 0 {
            self.incoming.drain(..self.taken);
            self.searched -= self.taken;
            self.taken = 0;
        }
        let Process { runtime, child, input, output, outgoing, incoming, errors, .. } = self;
        incoming.reserve(CHUNK);
        // A child of the program may hold its output open after the program has exited. The first
        // pause spares engines that answer at once the check; the second one leaves time to read
        // the last output.
        let gone = async {
            sleep(EXIT_GRACE).await;
            exited(child).await;
            sleep(EXIT_GRACE).await;
        };
        let both = async {
            let mut written = 0;
            tokio::pin!(gone);
            let read = loop {
                tokio::select! {
                    biased;
                    sent = input.write(&outgoing[written..]), if written < outgoing.len() => {
                        match sent {
                            Ok(sent) => written += sent,
                            // The program exited: its last output is more useful than the error of
                            // the pipe.
                            Err(_) => written = outgoing.len(),
                        }
                    }
                    read = output.read_buf(incoming) => break read,
                    () = &mut gone => break Ok(0),
                }
            };
            outgoing.drain(..written);
            read
        };
        let both = errors.read_during(both);
        match runtime.block_on(async { timeout_at(deadline, both).await }) {
            Ok(Ok(0)) => Err(self.broken("it exited before it answered")),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.broken(&format!("its output could not be read: {error}"))),
            Err(_) => {
                let seconds = self.limit.as_secs_f64();
                Err(self.broken(&format!("it did not answer within {seconds} s")))
            }
        }
    }

    /// Ends the process and returns the error, with an excerpt of its error output.
    pub(super) fn broken(&mut self, why: &str) -> EngineError {
        let mut why = Excerpt::of(why, REASON);
        if let Some(status) = self.end() {
            let _ = write!(why, " ({status})");
        }
        EngineError::Broken { engine: self.name.clone(), why, output: self.errors.excerpt.text() }
    }

    /// Ends the process, which can't run the scenario, and returns the error. Its answers to later
    /// steps are left in the pipe.
    pub(super) fn unsupported(mut self, why: &str) -> EngineError {
        self.end();
        EngineError::Unsupported { engine: self.name.clone(), why: Excerpt::of(why, REASON) }
    }

    /// Ends the process, and returns its exit status if it exited by itself.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        let Process { runtime, child, errors, .. } = self;
        runtime.block_on(async {
            // A process that has closed its output is about to exit.
            let exited = errors.read_during(timeout(EXIT_GRACE, exited(child))).await.is_ok();
            // Also ends children that the program has left behind.
            kill(child).await;
            // A process that has left the group may hold the error output open.
            let _ = timeout(EXIT_GRACE, errors.read_to_end()).await;
            child.try_wait().ok().flatten().filter(|_| exited)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.runtime.block_on(kill(&mut self.child));
    }
}

/// The standard error of a program, which may have no end. Only an excerpt is kept.
#[derive(Debug)]
struct ErrorOutput {
    /// `None` after its end.
    pipe: Option<ChildStderr>,
    excerpt: Excerpt,
}

impl ErrorOutput {
    /// Reads until a future is ready, so that the program does not wait for a reader.
    async fn read_during<T>(&mut self, future: impl Future<Output = T>) -> T {
        tokio::pin!(future);
        loop {
            tokio::select! {
                biased;
                done = &mut future => return done,
                () = self.read() => {}
            }
        }
    }

    async fn read_to_end(&mut self) {
        while self.pipe.is_some() {
            self.read().await;
        }
    }

    /// Reads the next part. Does not return after the end.
    async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        let mut bytes = [0; 4096];
        match pipe.read(&mut bytes).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(count) => self.excerpt.add(&bytes[..count]),
        }
    }
}

/// The time that a program has to exit by itself.
const EXIT_GRACE: Duration = Duration::from_millis(200);

/// Waits until a program has exited. It is not reaped, so that no other process gets its id.
async fn exited(child: &Child) {
    if let Some(id) = child.id() {
        process_group::exited(id).await;
    }
}

/// Kills the process group of a program. After the program is reaped, its id could belong to
/// another process and is not used.
async fn kill(child: &mut Child) {
    if let Some(id) = child.id() {
        process_group::kill(id);
    }
    // Fails only if the program has already exited.
    let _ = child.kill().await;
}
