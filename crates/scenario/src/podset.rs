//! Sets of pods in text form, in the format of cpusets: `0-4,7`, or `all`.

use std::fmt;
use std::str::FromStr;

use schemars::{Schema, json_schema};

use super::text::{Form, text_only};
use crate::diagnostic::{Diagnostic, Hint};

/// A set of pods by ordinal: the order of their creation, from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PodSet {
    /// All pods that exist when the action begins.
    All,
    /// These ordinals: inclusive ranges, sorted.
    Ordinals(Vec<(u32, u32)>),
}

impl PodSet {
    /// Returns true if the set contains this pod.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        match self {
            PodSet::All => true,
            PodSet::Ordinals(ranges) => {
                let after = ranges.partition_point(|(first, _)| *first <= ordinal);
                after > 0 && ordinal <= ranges[after - 1].1
            }
        }
    }

    /// Returns true if the set names a single pod.
    #[must_use]
    pub fn is_single(&self) -> bool {
        let PodSet::Ordinals(ranges) = self else { return false };
        matches!(ranges[..], [(first, last)] if first == last)
    }
}

/// Written as cpusets are: `0-4,7`, or `all`.
impl Form for PodSet {
    type Value = PodSet;
    const NAME: &'static str = "\0pod set";
    const EXPECTED: &'static str = "a set of pods such as \"0-4,7\" or all";
    const FALLBACK: &'static str = "all";
    const SCHEMA_NAME: &'static str = "PodSetText";

    fn read(text: &str) -> Result<PodSet, Diagnostic> {
        text.parse().map_err(|error: PodSetError| {
            let text = text.trim();
            let hint = match (text, &error) {
                (_, PodSetError::Backwards(from, to)) => Some(Hint::Meant(format!("{to}-{from}"))),
                ("*" | "any" | "every" | "ALL" | "All", _) => Some(Hint::Similar("all".to_owned())),
                ("none", _) => Some("remove the entry".into()),
                _ if text.contains("..") => {
                    let range = text.replace("..=", "-").replace("..", "-");
                    Some(Hint::Meant(format!("\"{range}\"")))
                }
                _ => None,
            };
            Diagnostic::new(error.to_string()).with_hint(hint)
        })
    }
    fn write(value: &PodSet) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "pod set",
            "description": "Pods by ordinal (the order of their creation, from 0), in the format \
                            of cpusets: 0-4,7. Or `all`: every pod that exists at that time.",
            "type": ["string", "integer"],
            "pattern": r"^(all|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
            "minimum": 0,
            "examples": ["all", "0-4,7", "3"],
        })
    }
}

text_only!(PodSet);

/// A text that is not a set of pods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PodSetError {
    /// The text is empty.
    Empty,
    /// A part that is neither a number nor a range.
    Malformed(String),
    /// A range whose end is before its start.
    Backwards(u32, u32),
}

impl fmt::Display for PodSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PodSetError::Empty => f.write_str("the set of pods is empty"),
            PodSetError::Malformed(part) => {
                write!(f, "{part:?} is not a set of pods such as \"0-4,7\" or all")
            }
            PodSetError::Backwards(from, to) => {
                write!(f, "the range of pods {from}-{to} is empty")
            }
        }
    }
}

impl std::error::Error for PodSetError {}

impl FromStr for PodSet {
    type Err = PodSetError;

    fn from_str(text: &str) -> Result<PodSet, PodSetError> {
        match text.trim() {
            "" => return Err(PodSetError::Empty),
            "all" => return Ok(PodSet::All),
            _ => {}
        }
        let mut ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Ok(PodSet::Ordinals(merged))
    }
}

fn range(part: &str) -> Result<(u32, u32), PodSetError> {
    let malformed = || PodSetError::Malformed(part.trim().to_owned());
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse().map_err(|_| malformed()) } else { Err(malformed()) }
    };
    match part.split_once('-') {
        None => number(part).map(|ordinal| (ordinal, ordinal)),
        Some((from, to)) => match (number(from)?, number(to)?) {
            (from, to) if to < from => Err(PodSetError::Backwards(from, to)),
            range => Ok(range),
        },
    }
}

/// The form in scenario files.
impl fmt::Display for PodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PodSet::Ordinals(ranges) = self else { return f.write_str("all") };
        for (index, (from, to)) in ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if from == to { write!(f, "{from}")? } else { write!(f, "{from}-{to}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_merged() {
        for (text, ranges, shown) in [
            ("3", vec![(3, 3)], "3"),
            ("0-4,7", vec![(0, 4), (7, 7)], "0-4,7"),
            ("7, 0-4", vec![(0, 4), (7, 7)], "0-4,7"),
            ("0-4,2-9", vec![(0, 9)], "0-9"),
            ("0,1,2", vec![(0, 2)], "0-2"),
            ("4294967295,0-1", vec![(0, 1), (u32::MAX, u32::MAX)], "0-1,4294967295"),
        ] {
            let set: PodSet = text.parse().expect(text);
            assert_eq!(set, PodSet::Ordinals(ranges), "{text}");
            assert_eq!(set.to_string(), shown);
        }
        assert_eq!("all".parse(), Ok(PodSet::All));
        assert_eq!(PodSet::All.to_string(), "all");
    }

    #[test]
    fn invalid_pod_sets_are_rejected() {
        assert_eq!("".parse::<PodSet>(), Err(PodSetError::Empty));
        assert_eq!("4-2".parse::<PodSet>(), Err(PodSetError::Backwards(4, 2)));
        for text in ["1-", "-1", "a", "1,,2", "1-2-3", "0..4", "ALL", "99999999999"] {
            assert!(matches!(text.parse::<PodSet>(), Err(PodSetError::Malformed(_))), "{text}");
        }
    }
}
