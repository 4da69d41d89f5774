//! Whether the folder is still there, and its disk still takes what is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Written again at each check, with the same length.
const CHECK: &str = "CHECK";

/// Blocks for as long as the disk does. `marker` is the file that this process has locked at `marker_path`.
pub(super) fn check(folder: &Path, marker: &File, marker_path: &Path) -> io::Result<()> {
    let is_same = |a: &std::fs::Metadata, b: &std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    if !marker_path.try_exists()? {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is gone"));
    }
    if !is_same(&marker.metadata()?, &marker_path.metadata()?) {
        return Err(io::Error::other("another one is in its place"));
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(CHECK))?;
    file.write_all(b"written to see whether the disk answers\n")?;
    file.sync_data()
}
