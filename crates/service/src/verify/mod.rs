//! Everything that is kept, held against the promises, in bounded memory and while others write.

mod run;

use std::sync::Arc;

use saltern_core::key::Key;
use saltern_core::verify::Fault;
use saltern_store::objects::Objects;
use saltern_store::{Scan, Store, StoreError};

use self::run::Run;
use crate::{Patience, WallClock};

/// How much has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    pub conversations: u64,
    /// Messages and voids.
    pub rows: u64,
    pub claims: u64,
    /// Contents that were read from the archive.
    pub archived: u64,
    pub faults: u64,
}

#[derive(Debug)]
pub enum Notice {
    Fault(Fault),
    /// Now and then.
    Progress(Checked),
}

/// Looks at every row of the messages table once, and once more at those that ought to be there.
pub struct Verifier {
    pub store: Arc<dyn Store>,
    pub scan: Arc<dyn Scan>,
    /// Where contents are that are not in rows; `None`: these are not looked at.
    pub objects: Option<Arc<dyn Objects>>,
    /// Claims may be gone after so long; `None` if they are kept for ever.
    pub claims_kept_ms: Option<u64>,
    pub wall_clock: WallClock,
    pub patience: Patience,
}

impl Verifier {
    /// Tells what it finds as it finds it. Ends early only if the store cannot be read at all.
    pub async fn run(&self, tell: impl FnMut(Notice) + Send) -> Result<Checked, StoreError> {
        Ok(self.run_from(None, |_| false, tell).await?.0)
    }

    /// The same behind a key, until it is enough; then it answers where to go on.
    pub async fn run_from(
        &self,
        behind: Option<Key>,
        enough: impl Fn(&Checked) -> bool + Send,
        tell: impl FnMut(Notice) + Send,
    ) -> Result<(Checked, Option<Key>), StoreError> {
        Run::new(self, tell).finish(behind, enough).await
    }
}
