//! Changes of folders and files that survive a power cut.
//!
//! Every step that a crash can interrupt goes through this module, so that tests can stop at each of them in turn.

use std::fs::File;
use std::io::{self, Write as _};
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

/// Writes a file under a temporary name, then renames it: a crash leaves the old content or the new, never a part.
pub(crate) fn replace_file(path: &Path, temporary: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(temporary)?;
    write(&mut file, content)?;
    step()?;
    file.sync_all()?;
    step()?;
    std::fs::rename(temporary, path)?;
    step()?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    step()
}

/// Writes bytes where the file stands. A simulated crash writes only half of them.
pub(crate) fn write(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if let Err(crash) = step() {
        file.write_all(&bytes[..bytes.len() / 2])?;
        return Err(crash);
    }
    file.write_all(bytes)
}

#[cfg(unix)]
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "fails only in tests that simulate a crash")]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use simulated::step;

/// Crashes of this thread, at a chosen step.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static STEPS_LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Every step after the first `steps` fails, until this is called again with none.
    pub(crate) fn crash_after(steps: Option<usize>) {
        STEPS_LEFT.set(steps);
    }

    /// Of those that were allowed.
    pub(crate) fn steps_left() -> Option<usize> {
        STEPS_LEFT.get()
    }

    pub(crate) fn step() -> io::Result<()> {
        match STEPS_LEFT.get() {
            Some(0) => Err(io::Error::other("simulated crash")),
            Some(left) => {
                STEPS_LEFT.set(Some(left - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }
}
