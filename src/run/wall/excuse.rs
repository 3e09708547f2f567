//! Why what does not agree is no verdict.

use crate::engine::EngineError;
use crate::engine::cluster::Scene;
use crate::model::time::Span;
use crate::run::wall::Wall;

impl Wall<'_> {
    /// Why a divergence says nothing of the controller: it, or what it asks, was held up for longer
    /// than a reconcile may be late, or it once asked while the cluster was changing.
    pub(super) fn excuse(&self, scene: &Scene, before: &[String]) -> Option<EngineError> {
        // What the API server answers is a matter of no clock.
        if !self.timed {
            return None;
        }
        // Where much is done at a time, all that waits adds up, and nothing stands still for long.
        let chance = self.chance.filter(|it| it.counts(self.own.is_some()));
        let longest = if chance.is_some() { Span::ZERO } else { self.due.slack };
        // One that made the reconcile before this one late can have moved this one, too.
        let stall = scene.stall(self.since[0]).filter(|(_, length)| *length > longest);
        let stall = stall.map(|(of, length)| {
            format!("{of} gave no answer for {length}, when a reconcile was due")
        });
        let once = chance.and_then(|chance| chance.once(self.since[1], before));
        let doubt = self.doubts.why(before);
        stall.or(once).or(doubt).map(|why| scene.broken(why))
    }
}
