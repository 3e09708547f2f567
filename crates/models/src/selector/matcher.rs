//! A selector that is matched against many objects.

use std::collections::BTreeMap;

use super::Selector;
use crate::api::Labels;

/// Matches a selector against many objects in a row. Most objects share their labels with one of
/// the two previous objects: pods and their metrics alternate. Without this cache, 10,000 pods with
/// different metrics reach 0.63 of the ticks/s.
pub struct Matcher<'a> {
    selector: &'a Selector,
    last: Option<&'a BTreeMap<String, String>>,
    matches: bool,
    before: Option<(&'a BTreeMap<String, String>, bool)>,
}

impl<'a> Matcher<'a> {
    /// A matcher for this selector.
    pub fn new(selector: &'a Selector) -> Matcher<'a> {
        Matcher { selector, last: None, matches: false, before: None }
    }

    #[inline]
    pub(crate) fn matches(&mut self, labels: &'a Labels) -> bool {
        if !is_same(self.last, &**labels) {
            self.match_others(labels);
        }
        self.matches
    }

    #[cold]
    fn match_others(&mut self, labels: &'a Labels) {
        let before = self.last.replace(labels).map(|last| (last, self.matches));
        self.matches = match std::mem::replace(&mut self.before, before) {
            Some((known, matches)) if std::ptr::eq(known, &**labels) => matches,
            _ => self.selector.matches(labels),
        };
    }
}

/// Returns true if both references point to the same object.
#[inline]
pub fn is_same<T: ?Sized>(known: Option<&T>, it: &T) -> bool {
    known.is_some_and(|known| std::ptr::eq(known, it))
}
