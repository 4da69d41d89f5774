//! Which time zone database this process goes by: the system's if it is newer than the one in the binary.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use saltern_core::campaigns::{ZoneDatabase, ZoneRelease, use_zones};

/// As the C library has it: the folder of the system's database.
const FOLDER_ENV: &str = "TZDIR";
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"];

/// Where a database says its version, in its first line.
const VERSION_FILES: [&str; 2] = ["tzdata.zi", "+VERSION"];
const FIRST_LINE_BYTES: u64 = 256;

/// Copies of the same zones, with leap seconds and without.
const COPIES: [&str; 2] = ["posix", "right"];
/// What is no zone, but the system's own choice of one.
const CHOICES: [&str; 2] = ["localtime", "posixrules"];
const MAGIC: &[u8] = b"TZif";

/// A database holds some 600 files of at most 4 KiB, at most two folders deep.
const FILES_MAX: usize = 4_096;
const FILE_BYTES_MAX: u64 = 64 * 1_024;
const DEPTH_MAX: usize = 3;

/// Which database was chosen, and why, for people.
pub(crate) struct Choice {
    database: ZoneDatabase,
    why: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, version) = (self.database.source().as_str(), self.database.version());
        write!(f, "{source} database {version} ({})", self.why)
    }
}

impl Choice {
    fn bundled(why: String) -> Self {
        Self { database: ZoneDatabase::bundled(), why }
    }
}

/// Has this process go by the newest database, if it does not go by one yet.
pub(crate) fn use_newest() {
    let choice = newest();
    let line = choice.to_string();
    if use_zones(choice.database) {
        tracing::info!("time zones: {line}");
    }
}

pub(crate) fn newest() -> Choice {
    let named = std::env::var_os(FOLDER_ENV).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = named.or_else(|| FOLDERS.iter().map(PathBuf::from).find(|folder| folder.is_dir()));
    match folder {
        None => Choice::bundled("the system has none".into()),
        Some(folder) => newest_with(&folder),
    }
}

fn newest_with(folder: &Path) -> Choice {
    let shown = folder.display();
    let Some(release) = VERSION_FILES.iter().find_map(|name| release(&folder.join(name))) else {
        let files = VERSION_FILES.join(" nor ");
        return Choice::bundled(format!("the system's in {shown} does not say its version: neither {files} does"));
    };
    if ZoneRelease::bundled().is_some_and(|bundled| bundled >= release) {
        return Choice::bundled(format!("the system's in {shown} is {release}, which is not newer"));
    }
    let mut files = Vec::new();
    collect(folder, "", DEPTH_MAX, &mut files);
    let names = files.iter().map(|(name, data)| (name.as_str(), data.as_slice()));
    match ZoneDatabase::of_files(release.clone(), names) {
        Some(database) => Choice { database, why: format!("in {shown}") },
        None => Choice::bundled(format!("the system's in {shown} is {release}, but has no zone that can be read")),
    }
}

fn release(file: &Path) -> Option<ZoneRelease> {
    ZoneRelease::of_file(&String::from_utf8(read(file, FIRST_LINE_BYTES)?).ok()?)
}

/// The first bytes of a file.
fn read(file: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Zones by their names, as far as they can be read: one that cannot is taken from the binary.
fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, Vec<u8>)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if files.len() >= FILES_MAX {
            return;
        }
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !CHOICES.contains(name)) else { continue };
        let (path, full) = (entry.path(), format!("{prefix}{name}"));
        // Distributions make links of old names.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() {
            let is_copy = COPIES.contains(&name);
            if depth > 1 && !is_copy {
                collect(&path, &format!("{full}/"), depth - 1, files);
            }
        } else if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX {
            let data = read(&path, FILE_BYTES_MAX).filter(|data| data.starts_with(MAGIC));
            files.extend(data.map(|data| (full, data)));
        }
    }
}
