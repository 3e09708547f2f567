//! Schedules the groups of scenarios of a release on clusters.
//!
//! Each worker has a cluster, and reconfigures it for the next group if that is cheap. The workers
//! share one task, because the future that starts a container is not `Send`; each scenario has its
//! own task.

use std::cell::{OnceCell, RefCell};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use futures::future::join_all;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::group::{GroupRun, ReleaseRun};
use super::requirements::Group;
use super::template::ClusterTemplate;
use crate::cluster::Cluster;
use crate::cluster::settings::Settings;
use kube_lockstep_engines::record::Record;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The number of control planes to start at the beginning. While control planes start, the machine
/// is too busy for timely reconciles.
const AT_FIRST: usize = 4;

/// The groups of a release, and the workers that run them.
pub(super) struct Schedule<'a, 'r> {
    run: Arc<ReleaseRun>,
    groups: &'a [Group],
    template: &'a ClusterTemplate,
    /// The number of clusters that run at a time.
    clusters: usize,
    /// The number of groups that start at the beginning.
    first: usize,
    /// When this number of scenarios have started, the remaining ones are short, and the machine
    /// has time for more clusters.
    enough: usize,
    /// The indices of the groups that no worker has taken.
    waiting: RefCell<Vec<usize>>,
    /// Limits the clusters that start at a time to half the cores: the other half runs scenarios.
    starting: Semaphore,
    has_cluster: watch::Sender<bool>,
    /// Cancelled when the run was stopped or has failed.
    end: CancellationToken,
    failure: OnceCell<EngineError>,
    record: RefCell<&'a mut Record<'r>>,
}

impl<'a, 'r> Schedule<'a, 'r> {
    pub(super) fn new(
        run: ReleaseRun,
        groups: &'a [Group],
        template: &'a ClusterTemplate,
        record: &'a mut Record<'r>,
    ) -> Schedule<'a, 'r> {
        let clusters = template.at_once(&run.plan).min(groups.len()).min(run.plan.jobs.max(1));
        let first = clusters.min(AT_FIRST);
        let in_first: usize = groups.iter().take(first).map(|it| it.scenarios.len()).sum();
        let cores = available_parallelism().map_or(1, NonZero::get);
        Schedule {
            groups,
            template,
            clusters,
            first,
            enough: in_first * 3 / 4,
            waiting: RefCell::new((0..groups.len()).collect()),
            starting: Semaphore::new((cores / 2).max(1)),
            has_cluster: watch::Sender::new(false),
            end: run.plan.stop.child_token(),
            failure: OnceCell::new(),
            record: RefCell::new(record),
            run: Arc::new(run),
        }
    }

    /// Runs all groups, each on a cluster, several at a time.
    ///
    /// # Errors
    /// If no cluster can be started.
    pub(super) async fn run(self) -> Result<(), EngineError> {
        join_all((0..self.clusters).map(|_| self.work())).await;
        self.failure.into_inner().map_or(Ok(()), Err)
    }

    async fn work(&self) {
        let mut kept = None;
        if let Err(error) = self.run_groups(&mut kept).await {
            // Only the first failure is reported.
            let _ = self.failure.set(error);
            self.end.cancel();
        }
        if let Some(cluster) = kept {
            cluster.stop().await;
        }
    }

    /// Runs one group after another. The caller stops the cluster that is left in `kept`.
    async fn run_groups(&self, kept: &mut Option<Cluster>) -> Result<(), EngineError> {
        loop {
            // Running clusters take the next groups first.
            if kept.is_none() && self.are_first_taken() {
                self.enough_started().await;
            }
            let number = self.next(kept.as_ref()).filter(|_| !self.end.is_cancelled());
            let group = number.and_then(|number| Some((number, self.groups.get(number)?)));
            let fits = |kept: &Cluster| group.is_some_and(|(_, it)| kept.can_become(&it.settings));
            if let Some(cluster) = kept.take_if(|kept| !fits(kept)) {
                cluster.stop().await;
            }
            let Some((number, group)) = group else { return Ok(()) };
            // The first group takes longest, so its cluster starts first.
            if number > 0 {
                self.wait(&self.has_cluster, |has_cluster| *has_cluster).await;
            }
            if number >= self.first && kept.is_none() {
                self.enough_started().await;
            }
            if self.end.is_cancelled() {
                return Ok(());
            }
            let what = format!("control plane {} of {}", number + 1, self.groups.len());
            self.record.borrow_mut().preparing(Preparation::new(what));
            let settings = Settings { small: number > 0, ..group.settings.clone() };
            let cluster = self.cluster(kept.take(), &settings).await;
            self.has_cluster.send_replace(true);
            match cluster {
                Ok(cluster) => *kept = self.run_on(cluster, group).await,
                // The flags or feature gates may be the cause, and other clusters may start.
                Err(error @ EngineError::Broken { .. }) if number > 0 => {
                    for outcome in self.run.fail(&group.scenarios, &error) {
                        self.record.borrow_mut().finished(outcome);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs a group. Returns the cluster if it is still usable.
    async fn run_on(&self, cluster: Cluster, group: &Group) -> Option<Cluster> {
        let mut run = GroupRun::new(self.run.clone(), group.scenarios.clone(), cluster);
        if !self.end.is_cancelled() {
            run.run(&mut |outcome| self.record.borrow_mut().finished(outcome)).await;
        }
        let cluster = run.end().await?;
        if cluster.check().is_ok() {
            return Some(cluster);
        }
        cluster.stop().await;
        None
    }

    /// The kept cluster with new settings, or a new cluster.
    async fn cluster(
        &self,
        kept: Option<Cluster>,
        settings: &Settings,
    ) -> Result<Cluster, EngineError> {
        let name = &self.run.name;
        let Some(mut kept) = kept else {
            // The semaphore is never closed.
            let _permit = self.starting.acquire().await;
            return self.template.start(name, settings).await;
        };
        if kept.change(settings).await.is_ok() {
            return Ok(kept);
        }
        kept.stop().await;
        self.template.start(name, settings).await
    }

    /// Takes the next group: preferably a group for which the kept cluster can be reconfigured,
    /// otherwise a group that requires a new cluster in any case.
    fn next(&self, kept: Option<&Cluster>) -> Option<usize> {
        let settings = |number: usize| self.groups.get(number).map(|group| &group.settings);
        let fits = |number: &usize| {
            settings(*number).is_some_and(|it| kept.is_some_and(|kept| kept.can_become(it)))
        };
        let is_apart = |number: &usize| {
            let both = settings(0).zip(settings(*number));
            *number < self.first
                || both.is_some_and(|(default_image, own)| !default_image.can_become(own))
        };
        let mut waiting = self.waiting.borrow_mut();
        let place = waiting.iter().position(fits).or_else(|| waiting.iter().position(is_apart));
        (!waiting.is_empty()).then(|| waiting.remove(place.unwrap_or(0)))
    }

    fn are_first_taken(&self) -> bool {
        self.waiting.borrow().first().is_none_or(|number| *number >= self.first)
    }

    /// Waits until enough scenarios have started that the machine has time for more clusters.
    async fn enough_started(&self) {
        self.wait(&self.run.started, |started| *started >= self.enough).await;
    }

    /// Waits for a value, or for the end of the run.
    async fn wait<T>(&self, sender: &watch::Sender<T>, is_reached: impl FnMut(&T) -> bool) {
        let mut value = sender.subscribe();
        // Waiting can't fail: the sender outlives it.
        let _ = self.end.run_until_cancelled(value.wait_for(is_reached)).await;
    }
}
