//! The times at which processes are killed: different in each run, from a reported seed.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Gives the seed of another run, so that the moments are the same again.
const SEED: &str = "KUBE_LOCKSTEP_KILLS_SEED";

/// Moments of a test.
pub struct Moments(ChaCha8Rng);

impl Moments {
    /// The times of the given seed, or of a new one.
    pub fn of(test: &str) -> Moments {
        let given = std::env::var(SEED).ok().map(|it| it.parse().expect("the seed is a number"));
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos())
        });
        // The output is closed: nothing to do.
        drop(writeln!(std::io::stderr(), "{test}: the same moments again: {SEED}={seed}"));
        Moments(ChaCha8Rng::seed_from_u64(seed))
    }

    /// One before the limit, each as likely.
    pub fn before(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.share())
    }

    /// One before the limit, the more likely the earlier: most is done at the beginning.
    pub fn early(&mut self, limit: Duration) -> Duration {
        let share = self.share();
        limit.mul_f64(share * share)
    }

    fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Kills a process that has not ended by itself before.
pub fn kill(child: &mut Child) -> Result<(), String> {
    child.kill().map_err(|error| error.to_string())?;
    match child.wait() {
        Ok(status) if status.signal() == Some(9) => Ok(()),
        Ok(status) => Err(format!("it had ended before it was killed: {status}")),
        Err(error) => Err(error.to_string()),
    }
}
