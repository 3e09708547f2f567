//! Something for each HPA, by its key.
//!
//! A sorted list in place of a map of the library: a key is mostly the very same text as the one
//! that is asked for, which takes no look at its letters.

use std::sync::Arc;

/// Values by key, in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct ByKey<V>(Vec<(Arc<str>, V)>);

impl<V> Default for ByKey<V> {
    fn default() -> ByKey<V> {
        ByKey(Vec::new())
    }
}

impl<V> ByKey<V> {
    /// Where the key is, or where it would be.
    fn find(&self, key: &str) -> Result<usize, usize> {
        match self.0.iter().position(|(known, _)| std::ptr::eq(&raw const **known, key)) {
            Some(index) => Ok(index),
            None => self.0.binary_search_by(|(known, _)| known.as_ref().cmp(key)),
        }
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.find(key).ok().map(|index| &mut self.0[index].1)
    }

    pub(super) fn get_or_default(&mut self, key: &Arc<str>) -> &mut V
    where
        V: Default,
    {
        let index = self.find(key).unwrap_or_else(|index| {
            self.0.insert(index, (key.clone(), V::default()));
            index
        });
        &mut self.0[index].1
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Ok(index) = self.find(key) {
            self.0.remove(index);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }
}
