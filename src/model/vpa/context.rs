//! The inputs that many operations share.

use super::flags::RecommenderFlags;
use super::time::GoTime;
use crate::model::rules::VpaRules;

/// The flags, the rules and the time of an operation.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) flags: &'a RecommenderFlags,
    pub(super) rules: &'a VpaRules,
    pub(super) now: GoTime,
}
