//! What `saltern verify` holds rows against: the promises as they show in what is kept.

use crate::archive::ContentRef;
use crate::control::ControlRecord;
use crate::ids::{ConversationId, MessageId};
use crate::key::Key;
use crate::layout::Salt;
use crate::record::{Claim, Content, MessageRow, Record};
use crate::seq::{SeqNo, SeqRange};

/// Something that no history of appends, crashes and retries can have left behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("row {0:?} cannot be read: {1}")]
    Unreadable(Key, String),
    #[error("row {0:?} has a key that Saltern does not write")]
    StrangeKey(Key),
    #[error("row {0:?} is not what its key says")]
    OtherKind(Key),
    #[error("conversation {0:?} has rows, but no control record")]
    NoControl(ConversationId),
    #[error("conversation {0:?}: every seq_no below {1} is said to have a row, and the horizon is {2}")]
    ResolvedBeyondHorizon(ConversationId, SeqNo, SeqNo),
    #[error("conversation {0:?}: seq_nos {from} to {to} are missing", from = .1.from, to = .1.to)]
    Missing(ConversationId, SeqRange),
    #[error("conversation {0:?}: seq_no {1} is where no reader looks for it ({2:?})")]
    Misplaced(ConversationId, SeqNo, Salt),
    #[error("conversation {0:?}: seq_no {1} lies beyond the horizon")]
    BeyondHorizon(ConversationId, SeqNo),
    #[error("conversation {0:?}: seq_no {1} holds a message, but is recorded as void")]
    HiddenByVoids(ConversationId, SeqNo),
    #[error("conversation {0:?}: the content of seq_no {1} does not match its digest")]
    Altered(ConversationId, SeqNo),
    #[error(
        "conversation {0:?}: the content of seq_no {1} is in the row, though all below {2} are said to be archived"
    )]
    NotArchived(ConversationId, SeqNo, SeqNo),
    #[error("conversation {0:?}: the content of seq_no {1} is missing from the archive ({2})")]
    ContentMissing(ConversationId, SeqNo, ContentRef),
    #[error("conversation {0:?}: the content of seq_no {1} is damaged in the archive ({2})")]
    ContentDamaged(ConversationId, SeqNo, ContentRef),
    #[error("conversation {0:?}: message {2:?} at seq_no {1} has no claim, so a retry would double it")]
    Unclaimed(ConversationId, SeqNo, MessageId),
    #[error("conversation {0:?}: message {2:?} is at seq_no {1}, and its claim says {3}")]
    ClaimedElsewhere(ConversationId, SeqNo, MessageId, SeqNo),
    #[error("conversation {0:?}: message {2:?} at seq_no {1} and its claim have different digests")]
    ClaimDiffers(ConversationId, SeqNo, MessageId),
    #[error("conversation {0:?}: the claim of message {1:?} names seq_no {2}, beyond the horizon")]
    ClaimBeyondHorizon(ConversationId, MessageId, SeqNo),
}

impl Fault {
    /// For programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(..) => "unreadable",
            Self::StrangeKey(_) => "strange-key",
            Self::OtherKind(_) => "other-kind",
            Self::NoControl(_) => "no-control",
            Self::ResolvedBeyondHorizon(..) => "resolved-beyond-horizon",
            Self::Missing(..) => "missing",
            Self::Misplaced(..) => "misplaced",
            Self::BeyondHorizon(..) => "beyond-horizon",
            Self::HiddenByVoids(..) => "hidden-by-voids",
            Self::Altered(..) => "altered",
            Self::NotArchived(..) => "not-archived",
            Self::ContentMissing(..) => "content-missing",
            Self::ContentDamaged(..) => "content-damaged",
            Self::Unclaimed(..) => "unclaimed",
            Self::ClaimedElsewhere(..) => "claimed-elsewhere",
            Self::ClaimDiffers(..) => "claim-differs",
            Self::ClaimBeyondHorizon(..) => "claim-beyond-horizon",
        }
    }
}

#[must_use]
pub fn check_control(conversation: &ConversationId, control: &ControlRecord) -> Option<Fault> {
    let (resolved, horizon) = (control.resolved, control.layout.horizon());
    (resolved > horizon).then(|| Fault::ResolvedBeyondHorizon(conversation.clone(), resolved, horizon))
}

/// A message or a void against the conversation's layout, and a message against itself.
#[must_use]
pub fn check_row(
    conversation: &ConversationId,
    control: &ControlRecord,
    (salt, seq): (Salt, SeqNo),
    record: &Record,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    match control.layout.salt(seq) {
        None => faults.push(Fault::BeyondHorizon(conversation.clone(), seq)),
        Some(expected) if expected != salt => faults.push(Fault::Misplaced(conversation.clone(), seq, salt)),
        Some(_) => {}
    }
    if let Record::Message(row) = record {
        if control.voids.run_at(seq).is_some() {
            faults.push(Fault::HiddenByVoids(conversation.clone(), seq));
        }
        if let Content::Here(text) = &row.content
            && !row.was_sent_with(text)
        {
            faults.push(Fault::Altered(conversation.clone(), seq));
        }
        let through = control.archive.through;
        if matches!(row.content, Content::Here(_)) && seq < through {
            faults.push(Fault::NotArchived(conversation.clone(), seq, through));
        }
    }
    faults
}

/// A message against its claim, which was there before it.
#[must_use]
pub fn check_claim(
    conversation: &ConversationId,
    seq: SeqNo,
    row: &MessageRow,
    claim: Option<&Claim>,
) -> Option<Fault> {
    let (conversation, message) = (conversation.clone(), row.message_id.clone());
    match claim {
        None => Some(Fault::Unclaimed(conversation, seq, message)),
        Some(claim) if claim.seq != seq => Some(Fault::ClaimedElsewhere(conversation, seq, message, claim.seq)),
        Some(claim) if claim.digest != row.digest => Some(Fault::ClaimDiffers(conversation, seq, message)),
        Some(_) => None,
    }
}
