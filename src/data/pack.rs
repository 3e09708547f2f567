//! Writes archives: a list of files, then their compressed contents. Only the build script and the
//! tests compile this file.

use miniz_oxide::deflate::compress_to_vec;

/// The level of compression. Higher levels gain less than 1 %.
const LEVEL: u8 = 8;

/// Writes an archive. Each file has a path in the archive and a content.
pub(super) fn pack(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut list = String::new();
    let mut contents = Vec::new();
    for (path, content) in files {
        let packed = compress_to_vec(content, LEVEL);
        list += &format!("{} {} {path}\n", packed.len(), content.len());
        contents.extend(packed);
    }
    list.push('\n');
    [list.into_bytes(), contents].concat()
}
