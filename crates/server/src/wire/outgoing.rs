//! What clients get. Fields are in the order of the contract.

use std::sync::Arc;

use saltern_core::ids::{ConversationId, ParticipantId};
use saltern_core::layout::Epoch;
use saltern_core::page::{Gap, GapState, NewerPage, OlderPage, Placed};
use saltern_core::record::{Content, MessageRow};
use saltern_core::seq::SeqNo;
use saltern_service::conversations::{Archive, HotConversation, View};
use serde::Serialize;
use utoipa::ToSchema;

use super::json::{Json, text_len};
use crate::problem::{Problem, ProblemBody};

/// An appended message's place.
#[derive(ToSchema)]
pub(crate) struct Appended<'a> {
    pub(crate) conversation_id: &'a str,
    pub(crate) message_id: &'a str,
    #[schema(minimum = 1)]
    pub(crate) seq_no: u64,
    /// The message had been appended before.
    pub(crate) replayed: bool,
}

impl Appended<'_> {
    pub(crate) fn write(&self, json: &mut Json) -> serde_json::Result<()> {
        json.raw(r#"{"conversation_id":"#).text(self.conversation_id)?;
        json.raw(r#","message_id":"#).text(self.message_id)?;
        json.raw(r#","seq_no":"#).value(self.seq_no)?;
        json.raw(if self.replayed { r#","replayed":true}"# } else { r#","replayed":false}"# });
        Ok(())
    }
}

/// One result for each message, in order.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchAnswer<'a> {
    pub(crate) results: Vec<BatchResult<'a>>,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchResult<'a> {
    Appended {
        message_id: &'a str,
        #[schema(minimum = 1)]
        seq_no: u64,
        replayed: bool,
    },
    Failed {
        message_id: &'a str,
        #[schema(value_type = ProblemBody)]
        error: Problem,
    },
}

/// JSON around the texts of a message: names, a seq_no, nulls.
const MESSAGE_BYTES: usize = 192;

#[derive(ToSchema)]
pub(crate) struct Message<'a> {
    #[schema(minimum = 1)]
    seq_no: u64,
    message_id: &'a str,
    sender_id: &'a str,
    #[schema(required)]
    receiver_id: Option<&'a str>,
    /// Null if it was erased, or is archived and was not asked for.
    #[schema(required)]
    content: Option<&'a str>,
    /// The client's clock, as it came.
    #[schema(required)]
    timestamp: Option<&'a str>,
    /// Where the content is archived; null until it is.
    #[schema(required)]
    s3_ref: Option<String>,
    /// The content was erased, and is nowhere any more.
    #[schema(required = false)]
    erased: bool,
}

/// Where the archived contents of a conversation are.
pub(crate) struct Shelf(String);

impl Shelf {
    pub(crate) fn new(archive: &Archive, conversation: &ConversationId) -> Self {
        Self(archive.place_of(conversation))
    }
}

impl<'a> Message<'a> {
    pub(crate) fn new(seq: SeqNo, row: &'a MessageRow, shelf: &Shelf) -> Self {
        Self {
            seq_no: seq.get(),
            message_id: row.message_id.as_str(),
            sender_id: row.sender_id.as_str(),
            receiver_id: row.receiver_id.as_ref().map(ParticipantId::as_str),
            content: row.text(),
            timestamp: row.timestamp.as_deref(),
            s3_ref: row.archived_at().map(|at| format!("{}/{at}", shelf.0)),
            erased: row.content == Content::Erased,
        }
    }

    pub(crate) fn write(&self, json: &mut Json) -> serde_json::Result<()> {
        json.raw(r#"{"seq_no":"#).value(self.seq_no)?;
        json.raw(r#","message_id":"#).text(self.message_id)?;
        json.raw(r#","sender_id":"#).text(self.sender_id)?;
        json.raw(r#","receiver_id":"#).text_or_null(self.receiver_id)?;
        json.raw(r#","content":"#).text_or_null(self.content)?;
        json.raw(r#","timestamp":"#).text_or_null(self.timestamp)?;
        json.raw(r#","s3_ref":"#).text_or_null(self.s3_ref.as_deref())?;
        json.raw(if self.erased { r#","erased":true}"# } else { "}" });
        Ok(())
    }

    /// The bytes that `write` writes at the most.
    pub(crate) fn bytes_max(&self) -> usize {
        let texts = [self.receiver_id, self.content, self.timestamp, self.s3_ref.as_deref()];
        let texts = texts.into_iter().flatten().chain([self.message_id, self.sender_id]);
        MESSAGE_BYTES + texts.map(text_len).sum::<usize>()
    }

    fn list(rows: &'a [Placed<Arc<MessageRow>>], shelf: &Shelf) -> Vec<Self> {
        rows.iter().map(|row| Self::new(row.seq, &row.value, shelf)).collect()
    }
}

/// Consecutive seq_nos without a message.
#[derive(Serialize, ToSchema)]
#[schema(as = Gap)]
pub(crate) struct GapBody {
    #[schema(minimum = 1)]
    from_seq: u64,
    #[schema(minimum = 1)]
    to_seq: u64,
    state: GapStateBody,
}

#[derive(Serialize, ToSchema)]
#[schema(as = GapState)]
#[serde(rename_all = "lowercase")]
enum GapStateBody {
    /// Nothing will ever appear here.
    Void,
    /// A writer is late, or gone.
    Pending,
}

impl GapBody {
    fn list(gaps: &[Gap]) -> Vec<Self> {
        gaps.iter()
            .map(|gap| Self {
                from_seq: gap.range.from.get(),
                to_seq: gap.range.to.get(),
                state: match gap.state {
                    GapState::Void => GapStateBody::Void,
                    GapState::Pending => GapStateBody::Pending,
                },
            })
            .collect()
    }
}

#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum Page<'a> {
    Older(Older<'a>),
    Newer(Newer<'a>),
}

/// JSON around the messages and gaps of a page.
const PAGE_BYTES: usize = 160;
const GAP_BYTES: usize = 96;

impl Page<'_> {
    /// The bytes that `write` writes at the most.
    pub(crate) fn bytes_max(&self) -> usize {
        let (messages, gaps) = match self {
            Self::Older(page) => (&page.messages, &page.gaps),
            Self::Newer(page) => (&page.messages, &page.gaps),
        };
        // Each with a comma.
        let messages = messages.iter().map(|message| message.bytes_max() + 1).sum::<usize>();
        PAGE_BYTES + messages + gaps.len() * GAP_BYTES
    }

    pub(crate) fn write(&self, json: &mut Json) -> serde_json::Result<()> {
        json.raw(r#"{"messages":"#);
        let (gaps, stable_through) = match self {
            Self::Older(page) => {
                json.list(&page.messages, Message::write)?;
                json.raw(r#","next_before_seq":"#).value(page.next_before_seq)?;
                (&page.gaps, page.stable_through)
            }
            Self::Newer(page) => {
                json.list(&page.messages, Message::write)?;
                json.raw(r#","next_after_seq":"#).value(page.next_after_seq)?;
                json.raw(r#","at_end":"#).value(page.at_end)?;
                (&page.gaps, page.stable_through)
            }
        };
        json.raw(r#","gaps":"#).value(gaps)?;
        json.raw(r#","stable_through":"#).value(stable_through)?;
        json.raw("}");
        Ok(())
    }
}

/// Newest first.
#[derive(ToSchema)]
pub(crate) struct Older<'a> {
    messages: Vec<Message<'a>>,
    /// The lowest seq_no looked at; null when nothing is older.
    #[schema(required, minimum = 1)]
    next_before_seq: Option<u64>,
    gaps: Vec<GapBody>,
    /// Up to here nothing will ever appear or vanish.
    stable_through: u64,
}

impl<'a> Older<'a> {
    pub(crate) fn new(page: &'a OlderPage, shelf: &Shelf) -> Self {
        Self {
            messages: Message::list(&page.messages, shelf),
            next_before_seq: page.next_before.map(SeqNo::get),
            gaps: GapBody::list(&page.gaps),
            stable_through: page.stable_through,
        }
    }
}

/// Oldest first.
#[derive(ToSchema)]
pub(crate) struct Newer<'a> {
    messages: Vec<Message<'a>>,
    /// Where to go on.
    next_after_seq: u64,
    /// There is nothing above `next_after_seq` now.
    at_end: bool,
    gaps: Vec<GapBody>,
    /// Up to here nothing will ever appear or vanish.
    stable_through: u64,
}

impl<'a> Newer<'a> {
    pub(crate) fn new(page: &'a NewerPage, shelf: &Shelf) -> Self {
        Self {
            messages: Message::list(&page.messages, shelf),
            next_after_seq: page.next_after,
            at_end: page.at_end,
            gaps: GapBody::list(&page.gaps),
            stable_through: page.stable_through,
        }
    }
}

/// The operator's view.
#[derive(Serialize, ToSchema)]
pub(crate) struct Conversation<'a> {
    conversation_id: &'a str,
    /// The highest row; 0 if there is none.
    head_seq: u64,
    stable_through: u64,
    /// Salts that new messages spread over.
    #[schema(minimum = 1, maximum = 256)]
    n: u16,
    #[schema(minimum = 1, maximum = 256)]
    max_n: u16,
    /// Null while the registry is out of reach.
    #[schema(required)]
    rate_wcu_per_s: Option<f64>,
    /// Nothing is issued at or above it.
    #[schema(minimum = 1)]
    horizon: u64,
    /// Empty for a conversation that was never written to.
    epochs: Vec<EpochBody>,
}

/// From this seq_no on, N is n.
#[derive(Serialize, ToSchema)]
#[schema(as = Epoch)]
pub(crate) struct EpochBody {
    #[schema(minimum = 1)]
    from_seq: u64,
    #[schema(minimum = 1, maximum = 256)]
    n: u16,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(conversation_id: &'a str, view: &View) -> Self {
        let epoch = |e: &Epoch| EpochBody { from_seq: e.from.get(), n: e.n };
        Self {
            conversation_id,
            head_seq: view.head_seq,
            stable_through: view.stable_through,
            n: view.n,
            max_n: view.max_n,
            rate_wcu_per_s: view.rate_wcu_per_s,
            horizon: view.horizon.get(),
            epochs: view.epochs.iter().map(epoch).collect(),
        }
    }

    /// One that was never written to.
    pub(crate) fn unwritten(conversation_id: &'a str) -> Self {
        Self {
            conversation_id,
            head_seq: 0,
            stable_through: 0,
            n: 1,
            max_n: 1,
            rate_wcu_per_s: Some(0.0),
            horizon: SeqNo::FIRST.get(),
            epochs: Vec::new(),
        }
    }
}

/// Hottest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct HotList<'a> {
    conversations: Vec<HotLine<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HotConversation)]
pub(crate) struct HotLine<'a> {
    conversation_id: &'a str,
    rate_wcu_per_s: f64,
    #[schema(minimum = 1, maximum = 256)]
    n: u16,
    #[schema(minimum = 1, maximum = 256)]
    max_n: u16,
    /// Throttles that the store reported since the last look at the heat.
    throttles: u64,
}

impl<'a> HotList<'a> {
    pub(crate) fn new(hot: &'a [HotConversation]) -> Self {
        let line = |hot: &'a HotConversation| HotLine {
            conversation_id: hot.conversation.as_str(),
            rate_wcu_per_s: hot.rate_wcu_per_s,
            n: hot.n,
            max_n: hot.max_n,
            throttles: hot.throttles,
        };
        Self { conversations: hot.iter().map(line).collect() }
    }
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    pub(crate) status: &'static str,
}

/// What `archived` can be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "for the document alone")]
pub(crate) enum ArchivedParam {
    Refs,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Erased<'a> {
    pub(crate) conversation_id: &'a str,
    #[schema(minimum = 1)]
    pub(crate) seq_no: u64,
    pub(crate) erased: bool,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ErasedAll<'a> {
    pub(crate) conversation_id: &'a str,
    /// Contents that were erased by this; those that had been before do not count.
    pub(crate) messages: u64,
}
