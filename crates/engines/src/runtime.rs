//! The tokio runtimes of engines.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use kube_lockstep_sim::engine::EngineError;

/// The threads that run the tasks of a runtime.
#[derive(Clone, Copy, Debug)]
pub enum Threads {
    /// Only the thread that blocks on the runtime.
    Caller,
    /// This many threads in the background.
    Background(usize),
    /// A thread in the background for each core.
    AllCores,
}

/// Starts a runtime.
///
/// # Errors
/// If a thread can't be started.
pub fn start(threads: Threads) -> Result<Runtime, String> {
    let mut builder = match threads {
        Threads::Caller => Builder::new_current_thread(),
        Threads::Background(_) | Threads::AllCores => Builder::new_multi_thread(),
    };
    if let Threads::Background(number) = threads {
        builder.worker_threads(number);
    }
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| format!("no thread can be started: {error}"))
}

/// Starts the runtime of an engine.
///
/// # Errors
/// If a thread can't be started.
pub fn for_engine(name: &Arc<str>, threads: Threads) -> Result<Runtime, EngineError> {
    start(threads).map_err(|why| EngineError::Broken {
        engine: name.clone(),
        why,
        output: String::new(),
    })
}
