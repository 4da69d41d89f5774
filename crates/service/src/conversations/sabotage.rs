//! Deliberate defects, so that the simulation can prove that it would find them. Without the feature `sabotage`
//! the questions below are constant, and the compiler removes what they guard.

/// One way to break the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Answers the client while the row is still on its way.
    AcknowledgeBeforeRow,
    /// Salts by message_id, as the source documents do, instead of by seq_no.
    SaltByMessageId,
    /// Seals a hole even if a row has turned up in it.
    SealerOverwrites,
    /// Opens an epoch where tickets may have been issued already.
    EpochBelowHorizon,
    /// Puts rows without claiming the message_id.
    ClaimsSkipped,
    /// Lets a read join another that has started before it.
    JoinStartedReads,
}

impl super::Config {
    #[cfg(feature = "sabotage")]
    pub(super) fn sabotaged(&self, by: Sabotage) -> bool {
        self.sabotage == Some(by)
    }

    #[cfg(not(feature = "sabotage"))]
    #[expect(clippy::unused_self)]
    pub(super) const fn sabotaged(&self, _by: Sabotage) -> bool {
        false
    }
}
