//! Passes and checks on the wire.

use std::time::Duration;

use saltern_core::key::{Key, PartitionKey};
use saltern_core::limits::SEQ_NO_END;
use saltern_service::conversations::{PassOptions, Swept};
use saltern_service::upkeep::{PassPart, VerifyPart};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to archive, and how.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ArchiveOrder {
    /// What was taken in longer ago is due; as configured if absent.
    #[schema(maximum = 4294967295i64)]
    older_than_s: Option<u32>,
    /// At most so many messages per second.
    #[schema(minimum = 1, maximum = 4294967295i64)]
    messages_per_s: Option<u32>,
    /// Only tell what would be done.
    dry_run: bool,
    /// When nothing is left to do, look for objects that nothing refers to among all of them, not only the new ones.
    sweep_all: bool,
    /// When nothing is left to do, make the store let go of what was archived and erased.
    compact: bool,
}

impl ArchiveOrder {
    pub(crate) fn options(&self, older_than: Duration) -> Result<PassOptions, &'static str> {
        if self.messages_per_s == Some(0) {
            return Err("messages_per_s must be at least 1");
        }
        Ok(PassOptions {
            older_than: self.older_than_s.map_or(older_than, |s| Duration::from_secs(s.into())),
            messages_per_s: self.messages_per_s.map(f64::from),
            dry_run: self.dry_run,
        })
    }

    /// What is to be done at the end: a sweep, and of everything; a compaction.
    pub(crate) fn finish(&self) -> Option<(bool, bool)> {
        (!self.dry_run).then_some((self.sweep_all, self.compact))
    }
}

/// What a part of a pass has done, or would do.
#[derive(Serialize, ToSchema)]
pub(crate) struct ArchiveAnswer {
    /// Nothing is left to do; else ask again.
    done: bool,
    /// Conversations that were due when this part began; null if they are too many to count.
    #[schema(required)]
    due: Option<u64>,
    conversations: u64,
    messages: u64,
    content_bytes: u64,
    objects: u64,
    object_bytes: u64,
    /// Conversations that others are at work on.
    busy: u64,
    /// What went wrong, one line for each conversation.
    failed: Vec<String>,
    /// Objects that nothing referred to, and that are gone now.
    orphans_removed: u64,
    /// At AWS's list prices: what it costs once, and what it saves every month.
    dollars_once: f64,
    dollars_saved_per_month: f64,
}

impl ArchiveAnswer {
    pub(crate) fn new(part: PassPart, swept: Swept) -> Self {
        let (report, estimate) = (part.report, part.report.estimate());
        Self {
            done: part.done,
            due: part.due,
            conversations: report.conversations,
            messages: report.messages,
            content_bytes: report.content_bytes,
            objects: report.objects,
            object_bytes: report.object_bytes,
            busy: report.busy,
            failed: part.failed,
            orphans_removed: swept.removed,
            dollars_once: estimate.dollars_once,
            dollars_saved_per_month: estimate.dollars_per_month,
        }
    }
}

/// Where to go on.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VerifyOrder {
    /// As the last answer gave it; from the beginning if absent.
    resume: Option<Place>,
}

impl VerifyOrder {
    pub(crate) fn behind(self) -> Result<Option<Key>, &'static str> {
        if self.resume.as_ref().is_some_and(|place| place.sort >= SEQ_NO_END) {
            return Err("resume.sort is beyond every row; send resume as the last answer gave it");
        }
        Ok(self.resume.map(|place| Key { partition: PartitionKey::stored(place.partition), sort: place.sort }))
    }
}

/// A place in the table.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    partition: String,
    sort: u64,
}

/// What a part of a look at everything has found.
#[derive(Serialize, ToSchema)]
pub(crate) struct VerifyAnswer {
    conversations: u64,
    rows: u64,
    claims: u64,
    archived: u64,
    faults: Vec<FaultBody>,
    /// Where to go on; null at the end.
    #[schema(required)]
    resume: Option<Place>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Fault)]
pub(crate) struct FaultBody {
    fault: &'static str,
    detail: String,
}

impl VerifyAnswer {
    pub(crate) fn new(part: VerifyPart) -> Self {
        let fault = |fault: &saltern_core::verify::Fault| FaultBody { fault: fault.name(), detail: fault.to_string() };
        Self {
            conversations: part.checked.conversations,
            rows: part.checked.rows,
            claims: part.checked.claims,
            archived: part.checked.archived,
            faults: part.faults.iter().map(fault).collect(),
            resume: part.resume.map(|key| Place { partition: key.partition.as_str().to_owned(), sort: key.sort }),
        }
    }
}
