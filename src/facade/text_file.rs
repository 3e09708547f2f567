//! Reads text files that users name, which may be anything, and tells scenarios from manifests.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// The largest file that a scenario names, in bytes: it may be a long recording.
const MAX_BYTES_OF_RECORDING: u64 = 512 << 20;

/// Why a text file can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextFileError {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A device, a pipe or a socket, which may have no end.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file is too large.
    #[error("it is larger than {} MiB", most >> 20)]
    TooLarge {
        /// The largest size, in bytes.
        most: u64,
    },
    /// The file is not UTF-8.
    #[error("it is not UTF-8 text: line {line}, column {column} has the byte {byte:#04x}")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// The first byte that is not part of a character.
        byte: u8,
    },
}

impl TextFileError {
    /// The error with the file's path, and the position if it is known: `file:1:2: why`.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn in_file(&self, path: &str) -> String {
        match self {
            TextFileError::NotUtf8 { line, column, byte } => {
                format!("{path}:{line}:{column}: not UTF-8 text: the byte {byte:#04x}")
            }
            other => format!("{path}: {other}"),
        }
    }
}

/// Reads a text file.
///
/// # Errors
/// If it is not a regular file, is not UTF-8, or is larger than [`MAX_BYTES`].
pub(crate) fn read(path: &Path) -> Result<String, TextFileError> {
    read_at_most(path, MAX_BYTES)
}

/// Reads a file that a scenario names: a manifest, or a recording.
///
/// # Errors
/// If it is not a regular file, is not UTF-8, or is larger than [`MAX_BYTES_OF_RECORDING`].
pub(crate) fn read_named(path: &Path) -> Result<String, TextFileError> {
    read_at_most(path, MAX_BYTES_OF_RECORDING)
}

fn read_at_most(path: &Path, most: u64) -> Result<String, TextFileError> {
    // Opening a named pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(match path.is_dir() {
            true => io::Error::from(io::ErrorKind::IsADirectory).into(),
            false => TextFileError::NotAFile,
        });
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(TextFileError::TooLarge { most });
    }
    if let Some(text) = utf_16(&bytes) {
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let valid = String::from_utf8_lossy(valid);
        let last = valid.rsplit('\n').next().unwrap_or_default();
        let line = valid.matches('\n').count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        TextFileError::NotUtf8 { line, column: last.chars().count() + 1, byte }
    })
}

/// UTF-16 text, as Excel, Grafana's download for Excel and the PowerShell of Windows write it.
/// None: the file has another encoding.
fn utf_16(bytes: &[u8]) -> Option<String> {
    let unit = |big: bool, pair: &[u8]| match (big, pair) {
        (true, &[high, low]) | (false, &[low, high]) => u16::from_be_bytes([high, low]),
        // The last byte of a text that was cut off.
        _ => char::REPLACEMENT_CHARACTER as u16,
    };
    let (big, rest) = match bytes {
        [0xff, 0xfe, rest @ ..] => (false, rest),
        [0xfe, 0xff, rest @ ..] => (true, rest),
        _ => return None,
    };
    let units: Vec<u16> = rest.chunks(2).map(|pair| unit(big, pair)).collect();
    String::from_utf16(&units).ok()
}

/// The kind of content of a YAML file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// A scenario, or a text that resembles one: a misspelled scenario gives an error instead of
    /// being ignored.
    Scenario,
    /// An object of the Kubernetes API.
    Manifest,
    /// Something else, such as a workflow or the values of a Helm chart.
    Other,
}

impl Content {
    /// The content of a text, which need not be valid YAML.
    pub(crate) fn of(text: &str) -> Content {
        const FIELDS: [&str; 10] = [
            "requirement",
            "hpa",
            "hpas",
            "vpa",
            "vpas",
            "workload",
            "metrics",
            "timeline",
            "expect",
            "until",
        ];
        let entries = || text.lines().filter_map(|line| line.split_once(':'));
        let value = |name: &str| {
            let value =
                entries().find_map(|(key, value)| (key.trim_end() == name).then_some(value));
            value.map(|value| value.trim().trim_matches(['"', '\'']))
        };
        let (kind, version) = (value("kind"), value("apiVersion"));
        if kind == Some("Scenario") || version.is_some_and(|it| it.starts_with("kube-lockstep")) {
            return Content::Scenario;
        }
        let is_object = value("metadata").or_else(|| value("items")).is_some();
        if kind.is_some() && version.is_some() && is_object {
            return Content::Manifest;
        }
        // Text without any field is damaged.
        let is_damaged = !text.trim().is_empty() && !text.contains(':');
        let fields = entries().filter(|(key, _)| FIELDS.contains(key)).count();
        let is_misspelled = kind.is_some_and(|kind| kind.starts_with("Scenario"));
        match is_misspelled || is_damaged || fields >= 2 {
            true => Content::Scenario,
            false => Content::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        fs::write(&path, bytes).expect("a file can be written");
        read(&path).expect_err("it can't be read").in_file("text")
    }

    #[test]
    fn a_file_that_is_not_utf_8_has_a_position() {
        assert_eq!(error_of(b"a: 1\nb\xc3\xa4: \xff\n"), "text:2:5: not UTF-8 text: the byte 0xff");
    }

    #[test]
    fn utf_16_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        for bytes in [&b"\xff\xfea\0\xe4\0\n\0"[..], b"\xfe\xff\0a\0\xe4\0\n"] {
            fs::write(&path, bytes).expect("a file can be written");
            assert_eq!(read(&path).expect("it is text"), "a\u{e4}\n");
        }
    }

    #[test]
    fn large_files_are_refused() {
        assert_eq!(error_of(&vec![b'a'; (16 << 20) + 1]), "text: it is larger than 16 MiB");
    }

    #[test]
    fn devices_and_pipes_are_refused() {
        let error = |path: &Path| read(path).expect_err("it can't be read").to_string();
        assert_eq!(error(Path::new("/dev/zero")), "it is not a regular file");
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        assert_eq!(error(&pipe), "it is not a regular file");
        assert!(matches!(read(folder.path()), Err(TextFileError::Io(_))));
    }

    #[test]
    fn objects_of_the_api_and_files_of_other_tools_are_not_scenarios() {
        let scenario = "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\n";
        assert_eq!(Content::of(scenario), Content::Scenario);
        let manifest = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n";
        let manifests = [
            &format!("{manifest}  kind: Scenario\n"),
            "---\nkind: List\napiVersion: v1\nitems: []\n",
        ];
        for text in manifests {
            assert_eq!(Content::of(text), Content::Manifest, "{text}");
        }
        for text in ["on: push\njobs: {}\n", "replicas: 3\nmetrics: {enabled: true}\n", ""] {
            assert_eq!(Content::of(text), Content::Other, "{text}");
        }
    }

    #[test]
    fn misspelled_scenarios_are_not_ignored() {
        for text in [
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenaro\nmetadata: {name: web}\n",
            "apiVersion: kube-locksteps.dev/v1\nkind: Scenaro\nrequirement: it scales\n",
            "kind: Scenario\nmetadata: {}\n",
            "kind: 'Scenario'\n",
            "kind : Scenario\n",
            "kind: Scenarios\n",
            "requirement: it scales\nuntil: 5m\n",
            "a text without fields",
        ] {
            assert_eq!(Content::of(text), Content::Scenario, "{text}");
        }
    }
}
