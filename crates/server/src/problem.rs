//! Failures as `application/problem+json` (RFC 9457), and the one place that maps service errors to them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use saltern_core::ids::TenantId;
use saltern_core::seq::SeqNo;
use saltern_service::campaigns::{CampaignError, LookupError};
use saltern_service::conversations::{AppendError, ArchiveError, ContentProblem, EraseError, ReadError};
use saltern_service::conversations::{RegistryError, StoreError};
use serde::{Serialize, Serializer};

/// What went wrong, as a stable name. Part of the contract: kinds are added, never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    Void,
    Pending,
    BeyondHead,
    UnknownTenant,
    MethodNotAllowed,
    RequestTimeout,
    MessageIdConflict,
    PayloadTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    HeadTooLarge,
    DataLoss,
    Internal,
    Overloaded,
    RegistryUnavailable,
    StoreUnavailable,
    OutcomeUnknown,
    NotReady,
    ConversationFull,
    ErasureUnfinished,
    ArchiveBusy,
    NoArchive,
}

impl Kind {
    pub(crate) const fn urn(self) -> &'static str {
        match self {
            Self::InvalidRequest => "urn:saltern:problem:invalid-request",
            Self::Unauthorized => "urn:saltern:problem:unauthorized",
            Self::Forbidden => "urn:saltern:problem:forbidden",
            Self::NotFound => "urn:saltern:problem:not-found",
            Self::Void => "urn:saltern:problem:void",
            Self::Pending => "urn:saltern:problem:pending",
            Self::BeyondHead => "urn:saltern:problem:beyond-head",
            Self::UnknownTenant => "urn:saltern:problem:unknown-tenant",
            Self::MethodNotAllowed => "urn:saltern:problem:method-not-allowed",
            Self::RequestTimeout => "urn:saltern:problem:request-timeout",
            Self::MessageIdConflict => "urn:saltern:problem:message-id-conflict",
            Self::PayloadTooLarge => "urn:saltern:problem:payload-too-large",
            Self::UriTooLong => "urn:saltern:problem:uri-too-long",
            Self::HeadTooLarge => "urn:saltern:problem:head-too-large",
            Self::UnsupportedMediaType => "urn:saltern:problem:unsupported-media-type",
            Self::DataLoss => "urn:saltern:problem:data-loss",
            Self::Internal => "urn:saltern:problem:internal",
            Self::Overloaded => "urn:saltern:problem:overloaded",
            Self::RegistryUnavailable => "urn:saltern:problem:registry-unavailable",
            Self::StoreUnavailable => "urn:saltern:problem:store-unavailable",
            Self::OutcomeUnknown => "urn:saltern:problem:outcome-unknown",
            Self::NotReady => "urn:saltern:problem:not-ready",
            Self::ConversationFull => "urn:saltern:problem:conversation-full",
            Self::ErasureUnfinished => "urn:saltern:problem:erasure-unfinished",
            Self::ArchiveBusy => "urn:saltern:problem:archive-busy",
            Self::NoArchive => "urn:saltern:problem:no-archive",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is not valid",
            Self::Unauthorized => "An API key is needed",
            Self::Forbidden => "The API key does not allow this",
            Self::NotFound => "No such path",
            Self::Void => "The seq_no will never hold a message",
            Self::Pending => "The seq_no holds no message yet",
            Self::BeyondHead => "The seq_no is beyond the newest message",
            Self::UnknownTenant => "The tenant is unknown",
            Self::MethodNotAllowed => "The method is not allowed on this path",
            Self::RequestTimeout => "The body took too long to arrive",
            Self::MessageIdConflict => "The message_id belongs to another message",
            Self::PayloadTooLarge => "The body is too large",
            Self::UriTooLong => "The path and query are too long",
            Self::HeadTooLarge => "The head of the request is too large",
            Self::UnsupportedMediaType => "The content type is not supported here",
            Self::DataLoss => "Stored data is missing or damaged",
            Self::Internal => "The server failed",
            Self::Overloaded => "The server is overloaded",
            Self::RegistryUnavailable => "The registry cannot be reached",
            Self::StoreUnavailable => "The store did not answer in time",
            Self::OutcomeUnknown => "The outcome is unknown",
            Self::NotReady => "The server is not ready",
            Self::ConversationFull => "The conversation has no seq_no left",
            Self::ErasureUnfinished => "The erasure is not finished",
            Self::ArchiveBusy => "Another archive pass is running",
            Self::NoArchive => "No archive is configured",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound | Self::Void | Self::Pending | Self::BeyondHead | Self::UnknownTenant => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::MessageIdConflict => StatusCode::CONFLICT,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::DataLoss | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Overloaded
            | Self::RegistryUnavailable
            | Self::StoreUnavailable
            | Self::OutcomeUnknown
            | Self::NotReady
            | Self::ErasureUnfinished
            | Self::ArchiveBusy => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoArchive => StatusCode::NOT_IMPLEMENTED,
            // Not 409, which in this contract means one thing only; and 507 is not retried by habit as 503 is.
            Self::ConversationFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// One failure. `cause` goes to the log, everything else to the client.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    detail: Cow<'static, str>,
    seq_no: Option<u64>,
    pub(crate) cause: Option<String>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into(), seq_no: None, cause: None }
    }

    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::InvalidRequest, detail)
    }

    fn caused_by(mut self, error: &dyn Error) -> Self {
        let mut chain = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            // Writing to a string cannot fail.
            let _ = write!(chain, ": {error}");
            source = error.source();
        }
        self.cause = Some(chain);
        self
    }

    pub(crate) fn wire(&self) -> ProblemBody<'_> {
        ProblemBody {
            urn: self.kind.urn(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: &self.detail,
            seq_no: self.seq_no,
        }
    }

    pub(crate) fn into_response(self) -> Response {
        const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
        let body = serde_json::to_vec(&self.wire()).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        match self.kind.status() {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<AppendError> for Problem {
    fn from(error: AppendError) -> Self {
        let problem = match &error {
            AppendError::Conflict(seq) => {
                let detail = format!(
                    "message_id was already used with another body, at seq_no {seq}; nothing was changed. Send a new message under \
                     a new message_id"
                );
                return Self { seq_no: Some(seq.get()), ..Self::new(Kind::MessageIdConflict, detail) };
            }
            AppendError::Overloaded => return overloaded(),
            AppendError::Registry(_) => Self::new(
                Kind::RegistryUnavailable,
                "the registry did not answer, so no seq_no could be issued; retry with the same message_id",
            ),
            AppendError::Unsettled(_) => Self::new(
                Kind::OutcomeUnknown,
                "the message may or may not have been stored; retry with the same message_id",
            ),
            AppendError::Full => {
                Self::new(Kind::ConversationFull, "the conversation has used all of its seq_nos; start another one")
            }
            AppendError::Damaged(_) => damaged(),
        };
        problem.caused_by(&error)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let problem = match &error {
            ReadError::Overloaded => return overloaded(),
            ReadError::Unavailable(_) => Self::new(
                Kind::StoreUnavailable,
                "the store did not answer in time; nothing is known to be missing. Retry",
            ),
            ReadError::Lost { seq, .. } => {
                let detail = format!("seq_no {seq} must exist, but the store does not have it; tell the operator");
                Self { seq_no: Some(seq.get()), ..Self::new(Kind::DataLoss, detail) }
            }
            ReadError::Damaged(_) => damaged(),
            ReadError::Content { seq, problem, .. } => unread(*seq, problem),
        };
        problem.caused_by(&error)
    }
}

/// Of work on the store itself.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        ReadError::from(error).into()
    }
}

/// Of content that is in the archive.
fn unread(seq: SeqNo, problem: &ContentProblem) -> Problem {
    let kind = match problem {
        ContentProblem::Missing | ContentProblem::Damaged(_) => Kind::DataLoss,
        ContentProblem::Unavailable(_) => Kind::StoreUnavailable,
    };
    let detail =
        format!("content of seq_no {seq}: {problem}; archived=refs returns the page without archived contents");
    Problem { seq_no: Some(seq.get()), ..Problem::new(kind, detail) }
}

impl From<EraseError> for Problem {
    fn from(error: EraseError) -> Self {
        let problem = match &error {
            EraseError::Overloaded => return overloaded(),
            EraseError::Read(error) => return error.clone().into(),
            EraseError::Archive(ArchiveError::Content { seq, source }) => unread(*seq, source),
            EraseError::Archive(_) => Self::new(
                Kind::ErasureUnfinished,
                "readers may no longer see the content, but it is not yet removed everywhere; retry",
            ),
        };
        problem.caused_by(&error)
    }
}

impl From<ArchiveError> for Problem {
    fn from(error: ArchiveError) -> Self {
        let problem = match &error {
            ArchiveError::Busy => {
                Self::new(Kind::ArchiveBusy, "this server is already running an archive pass; retry when it has ended")
            }
            ArchiveError::Content { seq, source } => unread(*seq, source),
            ArchiveError::Store(_)
            | ArchiveError::Objects(_)
            | ArchiveError::NotAsWritten(_)
            | ArchiveError::NotReplaced { .. } => Self::new(
                Kind::StoreUnavailable,
                "the archive pass stopped before its end; what it archived stays archived, and the next pass resumes there",
            ),
        };
        problem.caused_by(&error)
    }
}

/// Of a change to campaigns: it may be sent again, however much of it has happened.
pub(crate) fn unsettled(error: &CampaignError, detail: impl Into<Cow<'static, str>>) -> Problem {
    let problem = match error {
        CampaignError::Unavailable(_) => Problem::new(Kind::OutcomeUnknown, detail),
        CampaignError::Damaged(_) => damaged(),
    };
    problem.caused_by(error)
}

/// Of a read of campaigns.
impl From<CampaignError> for Problem {
    fn from(error: CampaignError) -> Self {
        let problem = match &error {
            CampaignError::Unavailable(_) => Self::new(
                Kind::StoreUnavailable,
                "the store did not answer in time; nothing is known to be missing. Retry",
            ),
            CampaignError::Damaged(_) => damaged(),
        };
        problem.caused_by(&error)
    }
}

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::UnknownTenant(tenant) => unknown_tenant(&tenant),
            LookupError::Question(question) => Self::invalid(question.to_string()),
            LookupError::Overloaded => overloaded(),
            LookupError::Store(error) => error.into(),
        }
    }
}

pub(crate) fn unknown_tenant(tenant: &TenantId) -> Problem {
    Problem::new(
        Kind::UnknownTenant,
        format!("tenant {tenant:?} is unknown; create it with PUT /v1/tenants/{{tenant}}"),
    )
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        Self::new(Kind::RegistryUnavailable, "the registry did not answer, so the current rates are unknown; retry")
            .caused_by(&error)
    }
}

pub(crate) fn overloaded() -> Problem {
    Problem::new(
        Kind::Overloaded,
        "the server has as many requests in flight as it allows; nothing was changed. Retry later",
    )
}

fn damaged() -> Problem {
    Problem::new(
        Kind::DataLoss,
        "stored data is corrupt; nothing was changed. Tell the operator: the server's log names the cause",
    )
}

/// A failure (RFC 9457).
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// What went wrong, as a stable name.
    #[serde(rename = "type")]
    #[schema(pattern = "^urn:saltern:problem:[a-z-]+$")]
    urn: &'static str,
    /// The same for people; constant for a type.
    title: &'static str,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What it was this time.
    detail: &'a str,
    /// The seq_no concerned: of the message that has the message_id, or of the row that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    seq_no: Option<u64>,
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.wire().serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
