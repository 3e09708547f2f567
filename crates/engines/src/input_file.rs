//! Reads the files that users name, which may be huge, binary or endless, in bounded memory and
//! without waiting for the writer of a named pipe.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use kube_lockstep_scenario::{Diagnostic, Hint};

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// The maximum size of a file that may be long, in bytes: a recording of a load, or results.
const MAX_BYTES_OF_LONG: u64 = 512 << 20;

/// The reason why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A device, a pipe or a socket, which may have no end.
    #[error("it is not a regular file; save its content to a file first")]
    NotAFile,
    /// The file is too large.
    #[error("it is larger than {} MiB", most >> 20)]
    TooLarge {
        /// The maximum size, in bytes.
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
        /// The probable content of the file.
        content: NotText,
    },
}

/// The probable content of a file that is not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotText {
    /// Compressed data; the name of the format, and the command that unpacks it.
    Compressed(&'static str, &'static str),
    /// A ZIP archive, or a workbook.
    Zip,
    /// A table in the format Parquet.
    Parquet,
    /// Other binary data.
    Binary,
    /// Text in another encoding.
    OtherEncoding,
}

impl NotText {
    /// The content by its first bytes: most binary formats begin with a signature.
    fn find(bytes: &[u8]) -> NotText {
        const SIGNATURES: [(&[u8], NotText); 6] = [
            (b"\x1f\x8b", NotText::Compressed("gzip", "gunzip")),
            (b"\x28\xb5\x2f\xfd", NotText::Compressed("Zstandard", "unzstd")),
            (b"\xfd7zXZ", NotText::Compressed("xz", "unxz")),
            (b"BZh", NotText::Compressed("bzip2", "bunzip2")),
            (b"PK\x03\x04", NotText::Zip),
            (b"PAR1", NotText::Parquet),
        ];
        let found = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature));
        let has_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
        match found {
            Some((_, content)) => *content,
            None if bytes.iter().any(has_control) => NotText::Binary,
            None => NotText::OtherEncoding,
        }
    }

    /// How to get text from the file.
    fn hint(self) -> String {
        match self {
            NotText::Compressed(format, unpack) => {
                format!("the file is compressed with {format}: unpack it first, with `{unpack}`")
            }
            NotText::Zip => {
                "the file is a ZIP archive or an Excel workbook: unpack it, or save the sheet as \
                 CSV"
            }
            .to_owned(),
            NotText::Parquet => "the file has the format Parquet: convert it to CSV".to_owned(),
            NotText::Binary => "the file is not text: export it as text, such as CSV".to_owned(),
            NotText::OtherEncoding => {
                "the file may be text in another encoding: save it as UTF-8".to_owned()
            }
        }
    }
}

impl InputError {
    /// The solution, if the content of the file is the problem.
    pub fn hint(&self) -> Option<String> {
        match self {
            InputError::NotUtf8 { content, .. } => Some(content.hint()),
            InputError::Io(_) | InputError::NotAFile | InputError::TooLarge { .. } => None,
        }
    }

    /// The error with the file's path, and the position if it is known: `file:1:2: why`.
    pub fn in_file(&self, path: &str) -> String {
        match self {
            InputError::NotUtf8 { line, column, byte, .. } => {
                format!("{path}:{line}:{column}: not UTF-8 text: the byte {byte:#04x}")
            }
            other => format!("{path}: {other}"),
        }
    }
}

impl From<InputError> for Diagnostic {
    fn from(error: InputError) -> Diagnostic {
        Diagnostic::new(error.to_string()).with_hint(error.hint().map(Hint::from))
    }
}

/// Reads a text file.
///
/// # Errors
/// If it is not a regular file, is not text, or is larger than `MAX_BYTES`.
pub fn read(path: &Path) -> Result<String, InputError> {
    text_of(read_bytes(path)?)
}

/// Reads a text file that may be long: a file that a scenario names, results, or a recorded trace.
///
/// # Errors
/// If it is not a regular file, is not text, or is larger than `MAX_BYTES_OF_LONG`.
pub fn read_long(path: &Path) -> Result<String, InputError> {
    text_of(read_at_most(path, MAX_BYTES_OF_LONG)?)
}

/// Reads a file that may be binary.
///
/// # Errors
/// If it is not a regular file, or is larger than `MAX_BYTES`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, InputError> {
    read_at_most(path, MAX_BYTES)
}

/// Reads text from standard input.
///
/// # Errors
/// If it is not text, or is larger than `MAX_BYTES`.
pub fn read_stdin() -> Result<String, InputError> {
    text_of(bytes_of(io::stdin().lock(), MAX_BYTES)?)
}

/// Checks a file that another library reads.
///
/// # Errors
/// If it is not a regular file, or is larger than `MAX_BYTES`.
pub fn check(path: &Path) -> Result<(), InputError> {
    let length = check_kind(path)?;
    if length > MAX_BYTES { Err(InputError::TooLarge { most: MAX_BYTES }) } else { Ok(()) }
}

fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, InputError> {
    // Opening a named pipe would wait for a writer.
    check_kind(path)?;
    bytes_of(File::open(path)?, most)
}

/// Checks that a path is a regular file, or a pipe that this process has inherited, as from
/// `<(command)` in a shell: like standard input, it has a writer. Returns its length.
fn check_kind(path: &Path) -> Result<u64, InputError> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    match metadata.is_file() || is_inherited_pipe(path, &metadata) {
        true => Ok(metadata.len()),
        false => Err(InputError::NotAFile),
    }
}

#[cfg(unix)]
fn is_inherited_pipe(path: &Path, metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    const FOLDERS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];
    let is_inherited = path == Path::new("/dev/stdin")
        || FOLDERS.iter().any(|folder| path.parent() == Some(Path::new(folder)));
    is_inherited && metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_inherited_pipe(_: &Path, _: &Metadata) -> bool {
    false
}

fn bytes_of(input: impl Read, most: u64) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    input.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(InputError::TooLarge { most }),
        false => Ok(bytes),
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, InputError> {
    if let Some(text) = utf_16(&bytes) {
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let valid = String::from_utf8_lossy(valid);
        let last = valid.rsplit('\n').next().unwrap_or_default();
        let line = valid.matches('\n').count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        let content = NotText::find(error.as_bytes());
        InputError::NotUtf8 { line, column: last.chars().count() + 1, byte, content }
    })
}

/// Decodes UTF-16 text, as Excel, Grafana's download for Excel and Windows PowerShell write it.
/// Returns `None` if the file has another encoding.
fn utf_16(bytes: &[u8]) -> Option<String> {
    let unit = |big: bool, pair: &[u8]| match (big, pair) {
        (true, &[high, low]) | (false, &[low, high]) => u16::from_be_bytes([high, low]),
        // The last byte of a truncated text.
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
    fn a_file_that_is_not_text_has_a_hint_on_its_content() {
        for (bytes, expected) in [
            (&b"\x1f\x8b\x08\0"[..], "compressed with gzip: unpack it first, with `gunzip`"),
            (b"\x28\xb5\x2f\xfd\0", "compressed with Zstandard: unpack it first"),
            (b"PK\x03\x04\x14\0\xff", "a ZIP archive or an Excel workbook"),
            (b"PAR1\x15\0\xff", "the file has the format Parquet: convert it to CSV"),
            (b"\x7fELF\x02\x01\xd0", "the file is not text: export it as text"),
            (b"time,K\xf6ln\n0,1\n", "text in another encoding: save it as UTF-8"),
        ] {
            let hint = text_of(bytes.to_vec()).expect_err("it is not UTF-8").hint();
            let hint = hint.expect("a hint");
            assert!(hint.contains(expected), "{hint}");
        }
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
        let expected = "it is not a regular file; save its content to a file first";
        assert_eq!(error(Path::new("/dev/zero")), expected);
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        assert_eq!(error(&pipe), expected);
        assert!(matches!(read(folder.path()), Err(InputError::Io(_))));
    }
}
