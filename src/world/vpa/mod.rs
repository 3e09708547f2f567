//! The VPA in the world of an HPA: the recommender's view of it ([`RecommenderView`]), and the
//! simulated admission controller and updater, which apply the recommendation ([`AppliedVpa`]).
//!
//! At one time, events come first, then a run of the recommender, then one of the updater. All of
//! them precede a reconcile of the HPA at that time.

mod applied;
mod view;

pub(super) use applied::AppliedVpa;
pub use applied::{PodChange, PodChangeKind};
pub(super) use view::RecommenderView;
