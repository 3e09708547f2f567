//! Shards: parts of a run for several machines.
//!
//! Numbers alone decide which scenarios belong to a shard, so shards need not communicate.

use std::fmt;
use std::str::FromStr;

/// The `index`-th of `of` parts of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Shard {
    /// The number of the part, from 1.
    pub index: usize,
    /// The number of shards, at least `index`.
    pub of: usize,
}

impl Shard {
    /// The only shard of a run that is not split.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };

    /// The indices of the scenarios that this shard runs, for each release.
    ///
    /// The sizes of shards differ by at most one. A shard uses as few releases as possible, because
    /// each requires an engine that has to be built. Within a release, its scenarios are spread
    /// out, because neighbors are similar and take similar time.
    #[must_use]
    pub fn split_runs(self, releases: usize, scenarios: usize) -> Vec<Vec<usize>> {
        let total = (releases * scenarios) as u128;
        let edge = |index: usize| {
            let edge = total * index as u128 / self.of.max(1) as u128;
            usize::try_from(edge).unwrap_or(usize::MAX)
        };
        let mine = edge(self.index - 1)..edge(self.index);
        let hands = self.of.clamp(1, scenarios.max(1));
        let dealt: Vec<usize> =
            (0..hands).flat_map(|hand| (hand..scenarios).step_by(hands)).collect();
        let in_release = |release: usize| {
            let numbered = dealt.iter().enumerate();
            let mine = numbered.filter(|(at, _)| mine.contains(&(release * scenarios + at)));
            let mut mine: Vec<usize> = mine.map(|(_, scenario)| *scenario).collect();
            mine.sort_unstable();
            mine
        };
        (0..releases).map(in_release).collect()
    }

    /// The index, among all generated scenarios, of the `number`-th one (from 0) of this shard.
    #[must_use]
    pub fn nth(self, number: usize) -> usize {
        number * self.of + self.index - 1
    }

    /// This shard's share of a number, rounded up.
    #[must_use]
    pub fn share(self, all: usize) -> usize {
        all.div_ceil(self.of.max(1))
    }
}

/// `2/4`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Reads `2/4`.
impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Shard, String> {
        const FORM: &str = "expected I/N, the I-th of N shards, for example 1/4";
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            // `u32` is enough for any number of machines.
            digits.then(|| part.parse::<u32>().ok()).flatten().map(|number| number as usize)
        };
        let (index, of) = text.split_once('/').ok_or(FORM)?;
        let (Some(index), Some(of)) = (number(index), number(of)) else {
            return Err(FORM.to_owned());
        };
        match index {
            0 if of > 0 => Err(format!("shards are numbered from 1: did you mean 1/{of}?")),
            _ if of == 0 || index > of => Err(format!("there is no shard {index} of {of}")),
            _ => Ok(Shard { index, of }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shards_are_read_and_written() {
        assert_eq!("2/4".parse(), Ok(Shard { index: 2, of: 4 }));
        assert_eq!(Shard { index: 2, of: 4 }.to_string(), "2/4");
        let error = |text: &str| text.parse::<Shard>().expect_err(text);
        assert_eq!(error("0/4"), "shards are numbered from 1: did you mean 1/4?");
        assert_eq!(error("5/4"), "there is no shard 5 of 4");
        for text in ["", "1", "1/", "/2", "a/b", "+1/2", "1/2/3", "-1/2", "1/99999999999"] {
            assert!(error(text).starts_with("expected I/N"), "{text}");
        }
        assert_eq!(error("0/0"), "there is no shard 0 of 0");
    }

    #[test]
    fn a_shard_uses_few_releases_and_spread_out_scenarios() {
        let quarter = Shard { index: 2, of: 4 }.split_runs(8, 10);
        let counts: Vec<usize> = quarter.iter().map(Vec::len).collect();
        assert_eq!(counts, [0, 0, 10, 10, 0, 0, 0, 0]);
        assert_eq!(Shard { index: 2, of: 4 }.split_runs(1, 12), [[1, 5, 9]]);
    }

    proptest! {
        #[test]
        fn each_run_is_in_exactly_one_shard_of_equal_size(
            of in 1_usize..40, releases in 1_usize..6, scenarios in 0_usize..60,
        ) {
            let mut times = vec![vec![0; scenarios]; releases];
            let mut sizes = Vec::new();
            for index in 1..=of {
                let part = Shard { index, of }.split_runs(releases, scenarios);
                sizes.push(part.iter().map(Vec::len).sum::<usize>());
                for (release, scenarios) in part.into_iter().enumerate() {
                    prop_assert!(scenarios.is_sorted());
                    for scenario in scenarios {
                        times[release][scenario] += 1;
                    }
                }
            }
            prop_assert!(times.iter().flatten().all(|times| *times == 1), "{times:?}");
            let (least, most) = (sizes.iter().min(), sizes.iter().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        }

        #[test]
        fn each_generated_scenario_is_in_exactly_one_shard(of in 1_usize..20, per in 1_usize..30) {
            let mut all: Vec<usize> = (1..=of)
                .flat_map(|index| (0..per).map(move |number| Shard { index, of }.nth(number)))
                .collect();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..of * per));
        }
    }
}
