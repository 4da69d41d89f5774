//! How far a load has come, beside its file, so that an interrupted one goes on where it was. Events may be loaded twice,
//! so being a little behind does no harm.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Counts;

use crate::out;

/// Which file was being loaded, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Job {
    target: String,
    file_bytes: u64,
    file_modified_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    job: Job,
    lines: u64,
    counts: Counts,
}

pub(super) struct Checkpoint {
    path: PathBuf,
    job: Job,
    /// Lines that are done.
    pub(super) lines: u64,
    pub(super) counts: Counts,
    warned: bool,
}

impl Checkpoint {
    pub(super) fn of(file: &Path, target: &str) -> Result<Self> {
        let metadata = std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let job = Job {
            target: target.to_owned(),
            file_bytes: metadata.len(),
            file_modified_ms: u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
        };
        let mut name = file.as_os_str().to_owned();
        name.push(".progress");
        Ok(Self { path: name.into(), job, lines: 0, counts: Counts::default(), warned: false })
    }

    /// Takes up what an earlier load of the same file to the same target has left; `false` if there is no such thing.
    pub(super) fn resume(&mut self) -> Result<bool> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.path.display())),
        };
        // One that is not understood, or of another file, is as good as none.
        let Some(saved) = serde_json::from_slice::<Saved>(&text).ok().filter(|saved| saved.job == self.job) else {
            return Ok(false);
        };
        (self.lines, self.counts) = (saved.lines, saved.counts);
        Ok(self.lines > 0)
    }

    /// Where this cannot be written, the load goes on all the same.
    pub(super) fn save(&mut self) {
        if let Err(error) = self.try_save()
            && !std::mem::replace(&mut self.warned, true)
        {
            out::note(format_args!(
                "cannot keep progress in {}: {error}; an interrupted load starts over",
                self.path.display()
            ));
        }
    }

    fn try_save(&self) -> Result<()> {
        let saved = Saved { job: self.job.clone(), lines: self.lines, counts: self.counts };
        let mut next = self.path.clone().into_os_string();
        next.push(".new");
        std::fs::write(&next, serde_json::to_vec(&saved)?)?;
        std::fs::rename(&next, &self.path)?;
        Ok(())
    }

    pub(super) fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            out::note(format_args!("cannot remove {}: {error}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_goes_on_only_for_the_same_file_and_target() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("events.ndjson");
        std::fs::write(&file, "x").unwrap();
        let mut first = Checkpoint::of(&file, "http://a").unwrap();
        assert!(!first.resume().unwrap());
        first.lines = 7;
        first.counts.stale = 3;
        first.save();
        let mut again = Checkpoint::of(&file, "http://a").unwrap();
        assert!(again.resume().unwrap());
        assert_eq!((again.lines, again.counts.stale), (7, 3));
        assert!(!Checkpoint::of(&file, "http://b").unwrap().resume().unwrap());
        std::fs::write(&file, "xy").unwrap();
        assert!(!Checkpoint::of(&file, "http://a").unwrap().resume().unwrap());
        std::fs::write(folder.path().join("events.ndjson.progress"), "{").unwrap();
        assert!(!Checkpoint::of(&file, "http://a").unwrap().resume().unwrap());
        first.remove();
        first.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
