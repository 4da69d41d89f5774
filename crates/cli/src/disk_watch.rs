//! Whether the disk beneath the store answers, checked every few seconds for `/readyz`.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(2);
/// A check that takes longer means that the disk hangs.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) struct DiskWatch(Mutex<Seen>);

struct Seen {
    /// When the running check began.
    checking_since: Option<Instant>,
    /// What the last one found that ended.
    result: Result<(), String>,
}

impl DiskWatch {
    /// Checks until there is nothing left to check, on a thread that may hang with the disk: the end of the process does
    /// not wait for it.
    pub(crate) fn start(check: impl Fn() -> Option<io::Result<()>> + Send + 'static) -> io::Result<Arc<Self>> {
        let watch = Arc::new(Self(Mutex::new(Seen { checking_since: None, result: Ok(()) })));
        let watching = Arc::clone(&watch);
        thread::Builder::new().name("disk-watch".into()).spawn(move || {
            loop {
                watching.seen().checking_since = Some(Instant::now());
                let Some(result) = check() else { break };
                let result = result.map_err(|error| format!("the data folder cannot be written to: {error}"));
                *watching.seen() = Seen { checking_since: None, result };
                thread::sleep(PAUSE);
            }
            watching.seen().checking_since = None;
        })?;
        Ok(watch)
    }

    /// Fails, and says why, if the disk does not answer or refuses what is written.
    pub(crate) fn answers(&self) -> Result<(), String> {
        self.answers_within(PATIENCE)
    }

    fn answers_within(&self, patience: Duration) -> Result<(), String> {
        let seen = self.seen();
        match seen.checking_since.map(|since| since.elapsed()).filter(|taken| *taken > patience) {
            Some(taken) => Err(format!("the disk of the data folder has not answered for {} s", taken.as_secs())),
            None => seen.result.clone(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_disk_that_hangs_is_told() {
        let (began, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let watch = DiskWatch::start(move || {
            began.send(()).unwrap();
            released.recv().ok().map(|()| Ok(()))
        });
        let watch = watch.unwrap();
        has_begun.recv().unwrap();
        assert_eq!(watch.answers_within(Duration::from_secs(3_600)), Ok(()));
        let error = watch.answers_within(Duration::ZERO).unwrap_err();
        assert!(error.contains("has not answered"), "{error}");
        release.send(()).unwrap();
        while watch.answers_within(Duration::ZERO).is_err() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_disk_that_refuses_is_told() {
        let watch = DiskWatch::start(|| Some(Err(io::Error::other("read-only file system")))).unwrap();
        while watch.answers_within(Duration::from_secs(3_600)).is_ok() {
            thread::yield_now();
        }
        let error = watch.answers().unwrap_err();
        assert!(error.contains("read-only"), "{error}");
    }
}
