//! Folders, and what is in them, that survive a power cut.

use std::io;
use std::path::Path;

/// Creates what is missing of the path, so that it survives a power cut.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    std::fs::create_dir_all(path)?;
    for dir in missing {
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_dir(parent)?;
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}
