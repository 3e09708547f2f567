//! A verdict on a change of manifests: what each changed autoscaler does on the same load before
//! and after it, and whether that keeps a budget. On the model alone, without I/O.

mod ambiguous;
mod measure;
mod result;
mod stopped;
mod text;

pub use ambiguous::{AmbiguousHpas, Reason};
pub use measure::{Gate, Scenarios};
pub use result::{Field, GateResult, Kind, Verdict};
pub use text::{Report, Subject};
