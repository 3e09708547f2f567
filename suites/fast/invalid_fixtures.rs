//! Realistic mistakes in scenario files and their messages: `fixtures/invalid/` contains a file
//! `NAME.yaml` and its expected messages, `NAME.txt`.
//!
//! `UPDATE_INVALID=1 cargo test --test fast invalid_fixtures` writes the messages; review the diff.

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    support::repository().join("fixtures/invalid")
}

fn names_with(extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder()).expect("fixtures/invalid can be listed");
    let paths = files.map(|file| file.expect("fixtures/invalid can be listed").path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

/// The files are listed at run time, so that the suite need not be compiled for a new file.
#[test]
fn each_invalid_file_has_its_expected_message() {
    let files = names_with("yaml").into_iter().map(|name| folder().join(name + ".yaml"));
    let wrong: Vec<String> = files.filter_map(|path| check(&path).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(path: &Path) -> Result<(), String> {
    let shown = path.strip_prefix(support::repository()).expect("a path of the repository");
    let message = match support::parse_any(path) {
        Ok(_) => return Err(format!("{} is valid", shown.display())),
        Err(error) => format!("{error}\n"),
    };
    let expected = path.with_extension("txt");
    if std::env::var_os("UPDATE_INVALID").is_some() {
        fs::write(&expected, &message).expect("the message can be written");
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    if message == expected {
        return Ok(());
    }
    Err(format!("{}:\n{message}expected:\n{expected}", shown.display()))
}

#[test]
fn each_file_has_a_message_and_each_message_a_file() {
    let (files, messages) = (names_with("yaml"), names_with("txt"));
    assert!(files.len() >= 25, "only {} files in {}", files.len(), folder().display());
    assert_eq!(files, messages);
}

#[test]
fn each_message_has_a_file_and_a_position() {
    for name in names_with("txt") {
        let message = fs::read_to_string(folder().join(&name).with_extension("txt"));
        let message = message.expect("a message can be read");
        let path = format!("fixtures/invalid/{name}.yaml");
        let text = fs::read_to_string(support::repository().join(Path::new(&path)));
        let lines = text.expect("a fixture can be read").lines().count();
        for line in message.lines().filter(|line| !line.starts_with("  hint: ")) {
            let place = line.strip_prefix(&format!("{path}:")).unwrap_or_else(|| panic!("{line}"));
            let number: usize = place.split(':').next().and_then(|n| n.parse().ok()).expect(line);
            assert!((1..=lines + 1).contains(&number), "{line}");
        }
    }
}
