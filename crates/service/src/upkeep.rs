//! Work on all that is kept, in parts that a request can wait for.

use std::sync::Arc;
use std::time::Duration;

use saltern_core::key::Key;
use saltern_core::verify::Fault;
use saltern_store::{Due, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::conversations::{ArchiveError, Conversations, PassOptions, PassReport, Progress, Swept};
use crate::verify::{Checked, Notice, Verifier};

/// How long one part takes at the most, about.
const PART: Duration = Duration::from_secs(3);
/// Faults that one part tells: where there are more, the part is shorter.
const FAULTS_MAX: u64 = 1_000;

pub struct Upkeep {
    pub conversations: Conversations,
    pub due: Arc<dyn Due>,
    pub verifier: Verifier,
    /// What was taken in longer ago goes to the archive.
    pub older_than: Duration,
    /// Objects that nothing refers to go after so long.
    pub orphans_after: Duration,
}

/// A part of a pass.
#[derive(Debug)]
pub struct PassPart {
    pub report: PassReport,
    /// Conversations that were due when it began, if they can be counted.
    pub due: Option<u64>,
    /// What went wrong with which conversation.
    pub failed: Vec<String>,
    /// Nothing due is left, but for what failed or is others' work.
    pub done: bool,
}

/// A part of a look at everything.
#[derive(Debug)]
pub struct VerifyPart {
    pub checked: Checked,
    pub faults: Vec<Fault>,
    /// Go on behind this.
    pub resume: Option<Key>,
}

impl Upkeep {
    /// Archives what is due, for a while. A dry run, which changes nothing, cannot go on where it was: it takes its time.
    pub async fn archive_part(&self, options: &PassOptions) -> Result<PassPart, ArchiveError> {
        let stop = CancellationToken::new();
        let until = Instant::now() + PART;
        let (mut due, mut failed) = (None, Vec::new());
        let pass = self.conversations.archive().pass(&*self.due, options, &stop, |progress| match progress {
            Progress::Due(count) => due = count,
            Progress::Failed(conversation, error) => failed.push(format!("{conversation:?}: {}", chain(error))),
            Progress::Moved(..) if !options.dry_run && Instant::now() >= until => stop.cancel(),
            Progress::Moved(..) => {}
        });
        let report = pass.await?;
        Ok(PassPart { report, due, failed, done: !report.stopped })
    }

    /// Removes objects that nothing refers to.
    pub async fn sweep(&self, all: bool) -> Result<Swept, ArchiveError> {
        self.conversations.archive().sweep(self.orphans_after, all, &CancellationToken::new()).await
    }

    /// Lets the store let go of what is gone.
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.verifier.scan.compact().await
    }

    /// Checks what is kept, for a while, behind a key.
    pub async fn verify_part(&self, behind: Option<Key>) -> Result<VerifyPart, StoreError> {
        let until = Instant::now() + PART;
        let mut faults = Vec::new();
        let enough = |checked: &Checked| Instant::now() >= until || checked.faults >= FAULTS_MAX;
        let run = self.verifier.run_from(behind, enough, |notice| {
            if let Notice::Fault(fault) = notice {
                faults.push(fault);
            }
        });
        let (checked, resume) = run.await?;
        Ok(VerifyPart { checked, faults, resume })
    }
}

/// A failure with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
