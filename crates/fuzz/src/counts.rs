//! Counts of what a run of the fuzzer reached, in named groups of items.

use std::collections::BTreeMap;

/// A group of items: its name, and the items that are always listed, so that a report can name
/// those that were never reached.
pub(crate) type Group = (&'static str, &'static [&'static str]);

/// One group of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoverageGroup {
    /// The name of the group.
    pub group: String,
    /// The reached items with their counts.
    pub reached: Vec<(String, u64)>,
    /// The known items that were not reached.
    pub never: Vec<String>,
}

/// The counts of known items, and of all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    groups: &'static [Group],
    known: Vec<Vec<u64>>,
    other: BTreeMap<(usize, String), u64>,
}

impl Counts {
    /// Counts nothing yet.
    pub(crate) fn new(groups: &'static [Group]) -> Counts {
        let known = groups.iter().map(|(_, names)| vec![0; names.len()]);
        Counts { groups, known: known.collect(), other: BTreeMap::new() }
    }

    /// Counts an item of a group, by the index of the group.
    pub(crate) fn count(&mut self, group: usize, name: &str) {
        let (_, names) = self.groups[group];
        match names.iter().position(|known| *known == name) {
            Some(index) => self.known[group][index] += 1,
            None => *self.other.entry((group, name.to_owned())).or_default() += 1,
        }
    }

    /// Counts an item that depends on the release, if it was reached. Otherwise, the item is listed
    /// as never reached.
    pub(super) fn count_possible(&mut self, group: usize, name: String, is_reached: bool) {
        *self.other.entry((group, name)).or_default() += u64::from(is_reached);
    }

    /// Adds other counts of the same groups.
    pub(crate) fn merge(&mut self, other: &Counts) {
        for (sums, counts) in self.known.iter_mut().zip(&other.known) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        for (key, count) in &other.other {
            *self.other.entry(key.clone()).or_default() += count;
        }
    }

    /// The groups, for a report.
    pub(crate) fn groups(&self) -> Vec<CoverageGroup> {
        let of = |(index, (group, names)): (usize, &Group)| {
            let all = || names.iter().zip(&self.known[index]);
            let others = || self.other.iter().filter(|((group, _), _)| *group == index);
            let known = all().filter(|(_, count)| **count > 0);
            let known = known.map(|(name, count)| ((*name).to_owned(), *count));
            let met = others().filter(|(_, count)| **count > 0);
            let met = met.map(|((_, name), count)| (name.clone(), *count));
            let never = all().filter(|(_, count)| **count == 0).map(|(name, _)| (*name).to_owned());
            let not_met = others().filter(|(_, count)| **count == 0);
            let not_met = not_met.map(|((_, name), _)| name.clone());
            CoverageGroup {
                group: (*group).to_owned(),
                reached: known.chain(met).collect(),
                never: never.chain(not_met).collect(),
            }
        };
        self.groups.iter().enumerate().map(of).collect()
    }
}
