//! Writes archives. Only the build script and the tests compile this file.

use std::path::Path;
use std::{fs, io};

use miniz_oxide::deflate::compress_to_vec;

use super::archive::Entry;
use super::folder::{FIXTURES, IMAGE, Location, TRACES, UPSTREAM, files};

/// The compression level. Higher levels save less than 1 %.
const LEVEL: u8 = 8;

/// The folders in an archive.
pub(crate) const FOLDERS: [Location; 4] = [FIXTURES, TRACES, UPSTREAM, IMAGE];

/// The parts of an archive.
#[derive(Default)]
pub(crate) struct Packed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
}

impl Packed {
    /// Adds all files of a folder. Their paths in the archive begin with this name.
    ///
    /// # Errors
    /// If a file can't be read.
    pub(crate) fn add(&mut self, name: &str, folder: &Path) -> io::Result<()> {
        for path in files(folder)? {
            let content = fs::read(folder.join(&path))?;
            let start = self.bytes.len();
            self.bytes.extend(compress_to_vec(&content, LEVEL));
            let end = self.bytes.len();
            let path = format!("{name}/{path}").leak();
            self.entries.push(Entry { path, start, end, size: content.len() });
        }
        Ok(())
    }
}
