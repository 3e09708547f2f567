//! Whether a cluster keeps pace: how long its parts take for an answer, again and again.
//!
//! A reconcile that does not come may be the controller's decision, or nobody could have made it in
//! time. What was asked here meanwhile, and how late this process itself was to ask, tells which.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::client;

/// How often each part is asked.
const BEAT: Duration = Duration::from_millis(100);

/// Shorter ones are not kept.
const SHORTEST: Duration = Duration::from_millis(50);

/// A time in which a part gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    /// Who gave none.
    pub(crate) of: &'static str,
    begin: Timestamp,
    /// Nothing while it lasts.
    end: Option<Timestamp>,
}

impl Stall {
    /// How long it lasted, or lasts by now.
    pub(crate) fn length(&self, now: Timestamp) -> Duration {
        let length = self.end.unwrap_or(now).duration_since(self.begin);
        Duration::try_from(length).unwrap_or_default()
    }
}

/// The stalls of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    stalls: Mutex<Vec<Stall>>,
}

impl Pulse {
    fn lock(&self) -> MutexGuard<'_, Vec<Stall>> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a part for a path, again and again. Ends with the set.
    pub(crate) fn watch(
        self: &Arc<Pulse>,
        (of, client, path): (&'static str, Client, &'static str),
        tasks: &mut JoinSet<()>,
    ) {
        let pulse = self.clone();
        tasks.spawn(async move {
            loop {
                let asleep = Instant::now();
                sleep(BEAT).await;
                // The time in which nobody here came to ask counts, too.
                let late = asleep.elapsed().saturating_sub(BEAT);
                pulse.begin(of, Timestamp::now() - late);
                // A refusal is an answer; what it means is for others.
                while matches!(client::get(&client, path).await, Err(error) if !is_answer(&error)) {
                    sleep(BEAT).await;
                }
                pulse.end(of, Timestamp::now());
            }
        });
    }

    fn begin(&self, of: &'static str, at: Timestamp) {
        self.lock().push(Stall { of, begin: at, end: None });
    }

    fn end(&self, of: &'static str, at: Timestamp) {
        let mut stalls = self.lock();
        let open = stalls.iter().rposition(|stall| stall.of == of && stall.end.is_none());
        let Some(stall) = open.and_then(|index| stalls.get_mut(index)) else { return };
        stall.end = Some(at);
        if stall.length(at) < SHORTEST {
            open.map(|index| stalls.remove(index));
        }
    }

    /// The longest of those that were, or are, since an instant.
    pub(crate) fn longest(&self, since: Timestamp, now: Timestamp) -> Option<Stall> {
        let stalls = self.lock();
        let recent = stalls.iter().filter(|stall| stall.end.is_none_or(|end| end >= since));
        recent.max_by_key(|stall| stall.length(now)).cloned()
    }
}

/// Whether it was said by the one who was asked: what is not there says nothing.
fn is_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_counts_until_now_and_what_was_short_does_not() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let pulse = Pulse::default();
        pulse.begin("kube-apiserver", at(0));
        pulse.end("kube-apiserver", at(20));
        assert_eq!(pulse.longest(at(0), at(30)), None);
        pulse.begin("kube-apiserver", at(100));
        pulse.begin("kube-controller-manager", at(110));
        pulse.end("kube-controller-manager", at(310));
        let longest = |since, now| {
            let stall = pulse.longest(at(since), at(now))?;
            Some((stall.of, stall.length(at(now)).as_millis()))
        };
        assert_eq!(longest(0, 200), Some(("kube-controller-manager", 200)));
        assert_eq!(longest(0, 400), Some(("kube-apiserver", 300)));
        // One that was over before plays no part; one that lasts does.
        assert_eq!(longest(350, 400), Some(("kube-apiserver", 300)));
        pulse.end("kube-apiserver", at(500));
        assert_eq!(longest(501, 600), None);
    }
}
