//! Copy-on-write values, which make the runs of a search cheap to copy.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that its copies share until one of them changes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// A value that nothing shares yet.
    #[must_use]
    pub fn new(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Changes this copy alone.
impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
