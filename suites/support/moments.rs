//! The times at which processes are killed: different in each run, from a reported seed.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The environment variable that sets the seed, to repeat the times of another run.
const SEED: &str = "KUBE_LOCKSTEP_KILLS_SEED";

/// The random kill times of a test.
pub struct KillTimes(ChaCha8Rng);

impl KillTimes {
    /// Uses the seed of the environment, or a new one.
    pub fn new(test: &str) -> KillTimes {
        let given = std::env::var(SEED).ok().map(|it| it.parse().expect("the seed is a number"));
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos())
        });
        // A closed output is ignored.
        drop(writeln!(std::io::stderr(), "{test}: to repeat the kill times, set {SEED}={seed}"));
        KillTimes(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A time before the limit, uniformly distributed.
    pub fn before(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.share())
    }

    /// A time before the limit. Early times are more likely, because most work happens early.
    pub fn early(&mut self, limit: Duration) -> Duration {
        let share = self.share();
        limit.mul_f64(share * share)
    }

    fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Kills a process. Fails if the process ended before.
pub fn kill(child: &mut Child) -> Result<(), String> {
    child.kill().map_err(|error| error.to_string())?;
    match child.wait() {
        Ok(status) if status.signal() == Some(9) => Ok(()),
        Ok(status) => Err(format!("the process ended before it was killed: {status}")),
        Err(error) => Err(error.to_string()),
    }
}
