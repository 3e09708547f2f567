//! A decision that is overwritten: what it says again is not made again.
//!
//! From tick to tick a controller asks the same questions of the same metrics. Their entries keep
//! their names, which are shared texts, and get new numbers: counting references up and down is
//! what a tick would mostly do otherwise.

use std::sync::Arc;

use super::Decision;
use super::calculate::Tolerances;
use super::reconcile::Reconcile;
use crate::model::derivation::{Derivation, MetricDerivation, Path, PodCounts, Source, Target};
use crate::model::observation::{Observation, Read};

/// How many entries of the decision are of this reconcile; the others are of the last one.
#[derive(Default)]
pub(super) struct Written {
    reads: usize,
    metrics: usize,
}

impl Reconcile<'_> {
    /// The read that was last at the place of the next one. Whoever turns it into that calls
    /// [`Reconcile::keep_read`].
    #[inline]
    pub(super) fn last_read(&mut self) -> Option<&mut Read> {
        self.observation.reads.get_mut(self.written.reads)
    }

    /// The last read at this place is the present one, too.
    #[inline]
    pub(super) fn keep_read(&mut self) {
        self.written.reads += 1;
    }

    /// Records a read.
    pub(super) fn record(&mut self, read: Read) {
        match self.last_read() {
            Some(last) => *last = read,
            None => self.observation.reads.push(read),
        }
        self.keep_read();
    }

    /// Begins the derivation of a metric.
    pub(super) fn derive_metric(
        &mut self,
        name: &Arc<str>,
        source: Source,
        tolerances: Tolerances,
    ) {
        let within = tolerances.within;
        let tolerances = (tolerances.scale_down, tolerances.scale_up);
        let metrics = &mut self.derivation.metrics;
        match metrics.get_mut(self.written.metrics) {
            Some(last) if Arc::ptr_eq(&last.name, name) && last.source == source => {
                last.target = Target::None;
                last.pods = PodCounts::default();
                last.usage = None;
                last.path = Path::Failed;
                last.tolerances = tolerances;
                last.within = within;
                last.proposal = None;
                last.error = None;
            }
            _ => {
                metrics.truncate(self.written.metrics);
                metrics.push(MetricDerivation {
                    name: name.clone(),
                    source,
                    target: Target::None,
                    pods: PodCounts::default(),
                    usage: None,
                    path: Path::Failed,
                    tolerances,
                    within,
                    proposal: None,
                    error: None,
                });
            }
        }
        self.written.metrics += 1;
    }

    /// The metric that is being derived.
    pub(super) fn metric(&mut self) -> Option<&mut MetricDerivation> {
        self.derivation.metrics.get_mut(self.written.metrics.checked_sub(1)?)
    }

    /// Drops what is of the last reconcile.
    pub(super) fn forget_the_rest(&mut self) {
        self.observation.reads.truncate(self.written.reads);
        self.derivation.metrics.truncate(self.written.metrics);
    }
}

impl Decision {
    /// Forgets all but reads and metrics, which are overwritten.
    pub(super) fn clear(&mut self) {
        let Observation { scale_writes, events, errors, status_write, .. } = &mut self.observation;
        scale_writes.clear();
        events.clear();
        errors.clear();
        *status_write = None;
        let metrics = std::mem::take(&mut self.derivation.metrics);
        self.derivation = Derivation { metrics, ..Derivation::default() };
    }
}
