//! Messages: append, page, look up.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use saltern_core::limits::{BODY_BYTES_MAX, BULK_BODY_BYTES_MAX};
use saltern_core::message::Draft;
use saltern_core::page::Placed;
use saltern_core::record::MessageRow;
use saltern_core::seq::SeqNo;
use saltern_service::conversations::Lookup;

use super::{json, written};
use crate::answers::ANSWER_BYTES_MAX;
use crate::app::App;
use crate::body;
use crate::gate::Answer;
use crate::problem::{Kind, Problem};
use crate::query::{Cursor, PageQuery};
use crate::wire::{
    Appended, ArchivedParam, Batch, BatchAnswer, BatchResult, Erased, ErasedAll, Message, NewMessage, Newer, Older,
    Page, Shelf,
};
use crate::{path, query};

/// JSON around the fields of a message, or of an answer without messages.
const MESSAGE_BYTES: usize = 160;
const ENVELOPE_BYTES: usize = 160;

pub(crate) const APPEND_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::MessageIdConflict,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::RegistryUnavailable,
    Kind::OutcomeUnknown,
    Kind::ConversationFull,
];

/// Append a message
///
/// Safe to repeat with the same message_id, on any server: the answer is the first seq_no.
#[utoipa::path(
    post,
    path = "/v1/conversations/{conversation_id}/messages",
    tag = "messages",
    params(("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    request_body(content = NewMessage, description = "At most 256 KiB"),
    responses(
        (status = 201, description = "Appended", body = Appended),
        (status = 200, description = "Had been appended before (`replayed` is true)", body = Appended),
    )
)]
pub(crate) async fn append(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    query::none(request.uri())?;
    let mut body = app.read(request, BODY_BYTES_MAX).await?;
    let draft = body::parse_usual(&body.bytes, NewMessage::plain)?.draft().map_err(Problem::invalid)?;
    body.was_read();
    let message_id = draft.message_id.clone();
    let appended = app.conversations.append(&conversation, draft).await?;
    let status = if appended.replayed { StatusCode::OK } else { StatusCode::CREATED };
    let answer = Appended {
        conversation_id: conversation.as_str(),
        message_id: message_id.as_str(),
        seq_no: appended.seq.get(),
        replayed: appended.replayed,
    };
    written(status, ENVELOPE_BYTES, |json| answer.write(json))
}

pub(crate) const BATCH_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::RequestTimeout, Kind::PayloadTooLarge, Kind::UnsupportedMediaType, Kind::Internal];

/// Append up to 500 messages
///
/// A request that breaks a limit changes nothing. Otherwise each message has its own result, in order, and those that
/// failed may be sent again with the same message_id. A message_id twice in one batch is one message.
#[utoipa::path(
    post,
    path = "/v1/conversations/{conversation_id}/messages/batch",
    tag = "messages",
    params(("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    request_body(content = Batch, description = "At most 4 MiB"),
    responses((status = 200, description = "A result for each message", body = BatchAnswer))
)]
pub(crate) async fn append_batch(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    query::none(request.uri())?;
    let mut body = app.read(request, BULK_BODY_BYTES_MAX).await?;
    let drafts = drafts(body::parse(&body.bytes)?)?;
    body.was_read();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.message_id.clone()).collect();
    let outcomes = app.conversations.append_batch(&conversation, drafts).await;
    let results = ids.iter().zip(outcomes).map(|(id, outcome)| match outcome {
        Ok(done) => BatchResult::Appended { message_id: id.as_str(), seq_no: done.seq.get(), replayed: done.replayed },
        Err(error) => BatchResult::Failed { message_id: id.as_str(), error: error.into() },
    });
    json(StatusCode::OK, &BatchAnswer { results: results.collect() }, ids.len() * MESSAGE_BYTES)
}

fn drafts(batch: Batch<'_>) -> Result<Vec<Draft>, Problem> {
    let named = |(index, message): (usize, NewMessage<'_>)| {
        message.draft().map_err(|e| Problem::invalid(format!("messages[{index}]: {e}")))
    };
    batch.messages.into_iter().enumerate().map(named).collect()
}

pub(crate) const PAGE_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable];

/// A page of messages
///
/// With `after_seq` oldest first, else newest first. A conversation that was never written to is an empty page.
/// Missing seq_nos are reported as gaps, never skipped silently. An answer holds 4 MiB at the most: a page of long messages
/// is cut short, and its cursor leads on.
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation_id}/messages",
    tag = "messages",
    params(
        ("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded"),
        ("before_seq" = Option<u64>, Query, minimum = 1, maximum = 9007199254740991i64,
            description = "Messages below it, newest first; absent: from the newest on"),
        ("after_seq" = Option<u64>, Query, minimum = 0, maximum = 9007199254740991i64,
            description = "Messages above it, oldest first; not together with before_seq"),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent"),
        ("archived" = Option<ArchivedParam>, Query,
            description = "`refs`: leave archived contents where they are, should they not be had"),
    ),
    responses((status = 200, description = "`Newer` with after_seq, else `Older`", body = Page))
)]
pub(crate) async fn page(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    let PageQuery { cursor, limit, contents } = query::page(request.uri())?;
    let shelf = Shelf::new(app.conversations.archive(), &conversation);
    let permit = app.answers.admit(&app.conversations).await?;
    match cursor {
        Cursor::Before(before) => {
            let mut page = app.conversations.older_with(&permit, &conversation, before, limit, contents).await?;
            if let Some(fitting) = cut(&page.messages, &shelf) {
                Arc::make_mut(&mut page).shorten(fitting);
            }
            let answer = Page::Older(Older::new(&page, &shelf));
            app.answers.write(permit, answer.bytes_max(), |json| answer.write(json))
        }
        Cursor::After(after) => {
            let mut page = app.conversations.newer_with(&permit, &conversation, after, limit, contents).await?;
            if let Some(fitting) = cut(&page.messages, &shelf) {
                Arc::make_mut(&mut page).shorten(fitting);
            }
            let answer = Page::Newer(Newer::new(&page, &shelf));
            app.answers.write(permit, answer.bytes_max(), |json| answer.write(json))
        }
    }
}

/// How many messages fit into an answer, if not all of them do: one at least, so that every page leads on.
fn cut(messages: &[Placed<Arc<MessageRow>>], shelf: &Shelf) -> Option<usize> {
    let mut bytes = 0;
    let too_many = messages.iter().position(|message| {
        bytes += Message::new(message.seq, &message.value, shelf).bytes_max();
        bytes > ANSWER_BYTES_MAX
    });
    too_many.map(|too_many| too_many.max(1))
}

pub(crate) const MESSAGE_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::Void,
    Kind::Pending,
    Kind::BeyondHead,
    Kind::DataLoss,
    Kind::Internal,
    Kind::StoreUnavailable,
];

/// One message
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation_id}/messages/{seq_no}",
    tag = "messages",
    params(
        ("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded"),
        ("seq_no" = u64, Path, minimum = 1, maximum = 9007199254740991i64),
        ("archived" = Option<ArchivedParam>, Query, description = "`refs`: leave archived content where it is"),
    ),
    responses((status = 200, description = "The message", body = Message))
)]
pub(crate) async fn message(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    let seq = path::seq_no(request.uri())?;
    let contents = query::archived_only(request.uri())?;
    let permit = app.answers.admit(&app.conversations).await?;
    let row = present(seq, app.conversations.lookup_with(&permit, &conversation, seq, contents).await?)?;
    let shelf = Shelf::new(app.conversations.archive(), &conversation);
    let message = Message::new(seq, &row, &shelf);
    app.answers.write(permit, message.bytes_max(), |json| message.write(json))
}

fn present(seq: SeqNo, found: Lookup) -> Result<Arc<MessageRow>, Problem> {
    let absent = |kind, what| Err(Problem::new(kind, format!("seq_no {seq} {what}")));
    match found {
        Lookup::Message(row) => Ok(row),
        Lookup::Void => absent(Kind::Void, "was given up by its writer"),
        Lookup::Pending => absent(Kind::Pending, "is below the head, but not written yet"),
        Lookup::BeyondHead => absent(Kind::BeyondHead, "is above all messages of this conversation"),
    }
}

pub(crate) const ERASE_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::Void,
    Kind::Pending,
    Kind::BeyondHead,
    Kind::DataLoss,
    Kind::Internal,
    Kind::StoreUnavailable,
    Kind::ErasureUnfinished,
];

/// Erase the content of a message
///
/// Gone from the row, from memory and from the archive; the seq_no stays, with everything but the content. Safe to repeat.
/// Other servers may show the content from memory for another minute.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{conversation_id}/messages/{seq_no}",
    tag = "messages",
    params(
        ("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded"),
        ("seq_no" = u64, Path, minimum = 1, maximum = 9007199254740991i64),
    ),
    responses((status = 200, description = "The content is erased", body = Erased))
)]
pub(crate) async fn erase(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    let seq = path::seq_no(request.uri())?;
    query::none(request.uri())?;
    present(seq, app.conversations.erase(&conversation, seq).await?)?;
    let answer = Erased { conversation_id: conversation.as_str(), seq_no: seq.get(), erased: true };
    json(StatusCode::OK, &answer, ENVELOPE_BYTES)
}

pub(crate) const ERASE_ALL_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable, Kind::ErasureUnfinished];

/// Erase the contents of all messages that a conversation has
///
/// Of each as if it were erased alone; what is appended meanwhile stays. Safe to repeat, and to be repeated if it does not
/// end in time.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{conversation_id}/messages",
    tag = "messages",
    params(("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    responses((status = 200, description = "How many contents were erased by this", body = ErasedAll))
)]
pub(crate) async fn erase_all(app: Arc<App>, request: Request) -> Answer {
    let conversation = path::conversation_id(request.uri())?;
    query::none(request.uri())?;
    let messages = app.conversations.erase_all(&conversation).await?;
    json(StatusCode::OK, &ErasedAll { conversation_id: conversation.as_str(), messages }, ENVELOPE_BYTES)
}
