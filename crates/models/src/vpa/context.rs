//! The inputs that many operations share.

use super::flags::RecommenderFlags;
use super::time::GoTime;
use crate::rules::VpaRules;

/// The flags, the rules and the time of an operation.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub flags: &'a RecommenderFlags,
    pub rules: &'a VpaRules,
    pub now: GoTime,
}
