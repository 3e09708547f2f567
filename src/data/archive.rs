//! Reads the archive that `pack.rs` writes.

use std::collections::BTreeMap;
use std::io;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// A file in an archive.
struct Entry {
    packed: &'static [u8],
    size: usize,
}

/// An archive that is part of this program.
pub(super) struct Archive {
    /// In the order of the archive.
    paths: Vec<String>,
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Reads the list of files.
    ///
    /// # Errors
    /// If the bytes are not an archive.
    pub(super) fn new(bytes: &'static [u8]) -> io::Result<Archive> {
        let damaged = || io::Error::other("the archive in this program is damaged");
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or_else(damaged)?;
        let list = std::str::from_utf8(&bytes[..end]).map_err(io::Error::other)?;
        let mut rest = &bytes[end + 2..];
        let mut archive = Archive { paths: Vec::new(), entries: BTreeMap::new() };
        for line in list.lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || words.next()?.parse::<usize>().ok();
            let packed = number().ok_or_else(damaged)?;
            let size = number().ok_or_else(damaged)?;
            let path = words.next().ok_or_else(damaged)?;
            let (packed, after) = rest.split_at_checked(packed).ok_or_else(damaged)?;
            rest = after;
            archive.paths.push(path.to_owned());
            archive.entries.insert(path.to_owned(), Entry { packed, size });
        }
        Ok(archive)
    }

    /// The paths of all files.
    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file.
    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let entry = self.entries.get(path).ok_or(io::ErrorKind::NotFound)?;
        let content = decompress_to_vec_with_limit(entry.packed, entry.size);
        content.map_err(|error| io::Error::other(error.to_string()))
    }
}
