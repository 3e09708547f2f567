//! Actions of the controller.

use jiff::Timestamp;
use serde_json::Value;

/// Something that the controller did, as the protocol writes it.
#[derive(Clone, Debug)]
pub(crate) struct ObservedAction {
    /// When its request came.
    pub(crate) at: Timestamp,
    /// When it was answered.
    pub(crate) done: Timestamp,
    /// What it was, and the protocol's name for it.
    pub(crate) what: &'static str,
    pub(crate) entry: Value,
    /// Who asked, where it is a query.
    pub(crate) by: String,
}

/// Marks the write of a size that went past the scale.
pub(crate) const DIRECT: &str = "direct";

/// Some versions may have been missed: what the entry of this name says to who plays.
pub(crate) const GAP: &str = "gap";
