//! The VPA's recommender on a real control plane: upstream's own program, which reads the objects
//! of one namespace and the samples of the fake metrics API.
//!
//! | file | subject |
//! |---|---|
//! | `cluster` | a control plane with upstream's CRDs and permissions, for several scenarios |
//! | `session` | one scenario: its namespace, objects and recommender |
//! | `objects` | the objects of a scenario in the form of the API |
//! | `process` | the recommender's process and its arguments |
//! | `requests` | the recommender's writes, from the audit log |
//! | `samples` | the samples that were served |

mod cluster;
mod objects;
mod process;
mod requests;
mod samples;
mod session;

pub(crate) use cluster::RecommenderCluster;
pub(crate) use objects::unsupported_reason;
pub(crate) use requests::ObservedWrite;
pub(crate) use session::{RecommenderSession, StartedRun};
