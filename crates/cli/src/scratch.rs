//! The temporary folder of a command that brings its own store: on a real disk, and gone afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::out;

#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Below `parent`; without one, in `./target` or the working folder.
    pub(crate) fn create(parent: Option<&Path>) -> Result<Self> {
        let target = Path::new("target");
        let parent = parent.unwrap_or(if target.is_dir() { target } else { Path::new(".") });
        let folder = parent.join(format!("saltern-scratch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make folder {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        if on_memory(&folder) {
            out::note(format_args!(
                "warning: {} is in memory, not on a disk: nothing durable is measured",
                folder.display()
            ));
        }
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.0) {
            out::note(format_args!("warning: could not remove {}: {e}", self.0.display()));
        }
    }
}

/// Whether the file system that holds the folder keeps its files in memory.
fn on_memory(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let holds = |line: &&str| line.split(' ').nth(1).is_some_and(|mount| folder.starts_with(mount));
    let nearest = mounts.lines().filter(holds).max_by_key(|line| line.split(' ').nth(1).map_or(0, str::len));
    nearest.and_then(|line| line.split(' ').nth(2)).is_some_and(|kind| matches!(kind, "tmpfs" | "ramfs"))
}
