//! Reads the archives that `pack.rs` writes.

use std::collections::HashMap;
use std::io;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// A file in an archive.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: &'static str,
    /// The position of the compressed content in the archive.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The size of the content, in bytes, before compression.
    pub(crate) size: usize,
}

/// An archive that is part of this program.
pub(crate) struct Archive {
    bytes: &'static [u8],
    entries: &'static [Entry],
    by_path: HashMap<&'static str, &'static Entry>,
}

impl Archive {
    #[allow(dead_code, reason = "programs of development builds have no archive")]
    pub(crate) fn new(bytes: &'static [u8], entries: &'static [Entry]) -> Archive {
        let by_path = entries.iter().map(|entry| (entry.path, entry)).collect();
        Archive { bytes, entries, by_path }
    }

    /// The paths of the files below a folder, in the order of the archive.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let paths = self.entries.iter().map(|entry| entry.path);
        let below = |path: &str| Some(path.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        paths.filter_map(below).collect()
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file.
    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let entry = self.by_path.get(path).ok_or(io::ErrorKind::NotFound)?;
        let content = self.bytes.get(entry.start..entry.end).unwrap_or_default();
        let content = decompress_to_vec_with_limit(content, entry.size);
        content.map_err(|error| io::Error::other(error.to_string()))
    }
}
