//! Corrupted fixtures, and files that are huge or expand without bound.

use std::fs;

use libtest_mimic::Failed;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Round, failure, run, support};
use crate::support::damage::{change, changed};
use crate::support::place::Workspace;

/// The address space of the command, in KiB.
const MEMORY: u64 = 1 << 20;

/// The name of the file.
const NAME: &str = "file.yaml";

/// The commands for a file. `FILE` is its path, `OUT` a path for output.
const COMMANDS: &[&[&str]] = &[
    &["run", "--engine", "model", "FILE"],
    &["predict", "FILE"],
    &["predict", "--format", "json", "FILE"],
    &["predict", "--html", "OUT", "FILE"],
    &["compare", "FILE", "--set", "fast:spec.maxReplicas=5"],
    &["explain", "FILE", "--at", "30s"],
    &["list", "FILE"],
    &["predict", "-f", "FILE"],
];

/// A fixture after some changes gives a result, or an error with its position.
pub(super) fn corrupted(round: Round) -> Result<(), Failed> {
    let changes = prop::collection::vec(change(), 1..6);
    let drawn = (any::<Index>(), changes, any::<Index>());
    let (fixture, changes, command) = round.draw(&drawn)?;
    let fixtures = support::all_fixtures();
    let fixture = fixture.get(&fixtures);
    let text = changed(&fs::read_to_string(fixture)?, &changes);
    check(&text, command.get::<&[&str]>(COMMANDS), &(fixture, &changes))
}

/// A way to make a file huge, or its value.
#[derive(Clone, Debug)]
enum Bomb {
    /// Levels of sequences, each of which repeats the one above.
    Aliases { text: usize, levels: usize, width: usize },
    /// Nested collections, each opened by this text.
    Nested { open: &'static str, depth: usize },
    /// Fields that no one knows, at the top level, or below the first line that ends with this.
    Fields { below: &'static str, count: usize },
    /// Digits in place of the first value of a field.
    Digits { field: &'static str, length: usize },
    /// Documents in one file.
    Documents(usize),
    /// A text without an end in sight.
    Word { quote: &'static str, length: usize },
    /// A requirement with a word of this length, and expectations that are not met, whose reports
    /// show the requirement.
    Requirement(usize),
    /// Merge keys, each of which merges the one above.
    Merges { levels: usize, width: usize },
}

fn bomb() -> impl Strategy<Value = Bomb> {
    let aliases = (1..20_000_usize, 1..9_usize, 1..40_usize);
    let opens = prop::sample::select(vec!["[", "{a: ", "- ", "? ", "{? ", "[&a ", "!!seq ["]);
    let belows = prop::sample::select(vec!["", "spec:", "metadata:"]);
    let quantities = prop::sample::select(vec!["perPod: ", "averageValue: ", "value: ", "cpu: "]);
    let quotes = prop::sample::select(vec!["", "\"", "'", "|\n  ", "# "]);
    prop_oneof![
        3 => aliases.prop_map(|(text, levels, width)| Bomb::Aliases { text, levels, width }),
        2 => (opens, 1..200_000_usize).prop_map(|(open, depth)| Bomb::Nested { open, depth }),
        2 => (belows, 1..60_000_usize).prop_map(|(below, count)| Bomb::Fields { below, count }),
        1 => (quantities, 1..10_000_000_usize)
            .prop_map(|(field, length)| Bomb::Digits { field, length }),
        1 => (1..20_000_usize).prop_map(Bomb::Documents),
        1 => (quotes, 1..15_000_000_usize).prop_map(|(quote, length)| Bomb::Word { quote, length }),
        1 => (1..15_000_000_usize).prop_map(Bomb::Requirement),
        2 => (1..30_usize, 1..30_usize).prop_map(|(levels, width)| Bomb::Merges { levels, width }),
    ]
}

impl Bomb {
    /// The files that it makes of a fixture.
    fn files(&self, fixture: &str) -> Vec<String> {
        match *self {
            Bomb::Requirement(length) => return vec![with_word(fixture, length)],
            Bomb::Digits { field, length } => return vec![with_digits(fixture, field, length)],
            Bomb::Fields { below, count } if !below.is_empty() => {
                return [fixture, MANIFESTS].map(|it| with_fields(it, below, count)).to_vec();
            }
            _ => {}
        }
        let text = self.text();
        vec![format!("{text}{fixture}"), format!("{fixture}\n{text}")]
    }

    fn text(&self) -> String {
        match *self {
            Bomb::Aliases { text, levels, width } => {
                let first = format!("a0: &a0 \"{}\"\n", "x".repeat(text));
                let level = |level: usize| {
                    let above = format!("*a{},", level - 1).repeat(width);
                    format!("a{level}: &a{level} [{above}]\n")
                };
                first + &(1..=levels).map(level).collect::<String>()
            }
            Bomb::Nested { open, depth } => format!("a: {}", open.repeat(depth)),
            Bomb::Fields { count, .. } => unknown_fields("", count),
            Bomb::Digits { field, length } => with_digits(field, field, length),
            Bomb::Documents(count) => "---\nkind: Scenario\n".repeat(count),
            Bomb::Word { quote, length } => format!("a: {quote}{}\n", "x".repeat(length)),
            Bomb::Requirement(length) => with_word("requirement: \n", length),
            Bomb::Merges { levels, width } => {
                let first = "a0: &a0 {k: v}\n".to_owned();
                let level = |level: usize| {
                    let above = format!("*a{},", level - 1).repeat(width);
                    format!("a{level}: &a{level} {{<<: [{above}], k{level}: [{above}]}}\n")
                };
                first + &(1..=levels).map(level).collect::<String>()
            }
        }
    }
}

/// A huge file is refused at a position.
pub(super) fn huge(round: Round) -> Result<(), Failed> {
    let (bomb, command, fixture) = round.draw(&(bomb(), any::<Index>(), any::<Index>()))?;
    let fixtures = support::all_fixtures();
    let text = fs::read_to_string(fixture.get(&fixtures))?;
    let command = command.get::<&[&str]>(COMMANDS);
    bomb.files(&text).iter().try_for_each(|file| check(file, command, &bomb))
}

/// Manifests, which some of the commands read.
const MANIFESTS: &str = concat!(
    include_str!("../../../examples/php-apache/deployment.yaml"),
    "---\n",
    include_str!("../../../examples/php-apache/hpa.yaml"),
);

/// Fields that no one knows, with this indentation.
fn unknown_fields(indent: &str, count: usize) -> String {
    (0..count).map(|field| format!("{indent}field{field}: 1\n")).collect()
}

/// The text with unknown fields below the first line that ends with `below`.
fn with_fields(text: &str, below: &str, count: usize) -> String {
    let Some((before, after)) = text.split_once(&format!("{below}\n")) else {
        return unknown_fields("", count) + text;
    };
    let indent = &after[..after.len() - after.trim_start_matches(' ').len()];
    format!("{before}{below}\n{}{after}", unknown_fields(indent, count))
}

/// The text with digits in place of the first value of a field.
fn with_digits(text: &str, field: &str, length: usize) -> String {
    let digits = "9".repeat(length);
    let Some((before, after)) = text.split_once(field) else {
        return format!("{field}{digits}\n{text}");
    };
    let end = after.find([',', '}', '\n']).unwrap_or(after.len());
    format!("{before}{field}\"{digits}\"{}", &after[end..])
}

/// The fixture with a word of this length in its requirement, and other expected replicas.
fn with_word(fixture: &str, length: usize) -> String {
    let word = "x".repeat(length);
    let text = match fixture.contains("requirement: >-\n") {
        true => fixture.replacen("requirement: >-\n", &format!("requirement: >-\n  {word}\n"), 1),
        false => fixture.replacen("requirement: ", &format!("requirement: {word} "), 1),
    };
    match text.split_once("\nexpect:\n") {
        Some((before, expected)) => {
            format!("{before}\nexpect:\n{}", expected.replace("replicas: ", "replicas: 3"))
        }
        None => text,
    }
}

/// The command gives a result, or an error with a position in the file.
fn check(text: &str, command: &[&str], drawn: &impl std::fmt::Debug) -> Result<(), Failed> {
    let (workspace, folder) = (Workspace::new()?, tempfile::tempdir()?);
    let (file, out) = (folder.path().join(NAME), folder.path().join("out.html"));
    fs::write(&file, text)?;
    let args: Vec<String> = command
        .iter()
        .map(|argument| match *argument {
            "FILE" => file.display().to_string(),
            "OUT" => out.display().to_string(),
            other => other.to_owned(),
        })
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = run(&workspace, MEMORY, &args)?;
    let error = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        // 1: an expectation is not met.
        Some(0 | 1) if output.stdout.is_empty() && !out.exists() => {
            Err(failure("it wrote nothing", &(command, drawn), &output))
        }
        Some(0 | 1) => Ok(()),
        Some(2) if is_explained(&error) && !out.exists() => Ok(()),
        _ => Err(failure("no position", &(command, drawn), &output)),
    }?;
    workspace.wait_until_empty().map_err(Failed::from)
}

/// The errors about a file as a whole: its size, or what a command asks of a valid file.
const WITHOUT_POSITION: [&str; 3] =
    ["it is larger than 16 MiB", "there is no tick", "is a VPA scenario"];

/// Returns true if an error names a position in the file, or is about the file as a whole.
fn is_explained(error: &str) -> bool {
    let after = error.split(NAME).skip(1);
    let mut places = after.filter_map(|rest| rest.strip_prefix(':'));
    places.any(|rest| {
        let mut parts = rest.splitn(3, ':');
        let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        is_number(parts.next()) && is_number(parts.next())
    }) || WITHOUT_POSITION.iter().any(|what| error.contains(what))
}
