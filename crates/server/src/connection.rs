//! One connection, from its first request to its end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tracing::debug;

use crate::activity::{Activity, State};
use crate::interface::Interface;
use crate::socket::Socket;

/// What a connection may hold of a request's head, and of a body that nobody has read yet.
const HEAD_BYTES_MAX: usize = 128 * 1024;
/// What is left of a short body is read before its request is refused, so that the connection can go on.
const SHORT_REST_BYTES: u64 = 64 * 1024;
/// How long that may take. The rest of a short body has usually come with its head.
const SHORT_REST_TIMEOUT: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until the next request has arrived with its whole head.
    pub(crate) idle: Duration,
    /// Until a client takes more of its answer.
    pub(crate) write: Duration,
    /// Until a client that was answered early stops sending.
    pub(crate) linger: Duration,
}

/// Sent to a connection so that it ends at once, unless a request is being served. Without it, when the sender is
/// dropped, the connection ends after the present request.
#[derive(Debug)]
pub(crate) struct AtOnce;

pub(crate) async fn serve(
    stream: TcpStream,
    interface: Arc<Interface>,
    timeouts: Timeouts,
    activity: Arc<Activity>,
    ending: oneshot::Receiver<AtOnce>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "connection lost before its first request");
        return;
    }
    let Timeouts { idle, write, linger } = timeouts;
    let socket = Socket::new(stream, Arc::clone(&activity), Arc::clone(&interface), write, linger);
    let service = service_fn(|request| {
        let (interface, activity) = (Arc::clone(&interface), Arc::clone(&activity));
        async move { Ok::<_, Infallible>(answer(&interface, &activity, request).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .max_buf_size(HEAD_BYTES_MAX)
            // A client may close its side once it has sent its request, and still wait for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(socket), service)
    );
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Ok(ended),
        ending = ending => Err(ending),
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(Ok(AtOnce)) if activity.state() != State::Serving => return,
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection ended early");
    }
}

async fn answer(interface: &Interface, activity: &Arc<Activity>, request: Request<Incoming>) -> Response {
    activity.enter(State::Serving);
    let awaits_go_ahead = request.headers().contains_key(header::EXPECT);
    let mut response = interface.answer(request.map(|body| tracked(body, activity))).await;
    if let Some(rest) = activity.take_unread()
        && (awaits_go_ahead || !read_short_rest(rest).await)
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        activity.linger();
    }
    activity.enter(State::Answering);
    response
}

/// Whether there is no more to come.
async fn read_short_rest(mut body: Incoming) -> bool {
    if body.size_hint().upper().is_none_or(|bytes| bytes > SHORT_REST_BYTES) {
        return false;
    }
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    tokio::time::timeout(SHORT_REST_TIMEOUT, rest).await.is_ok() && body.is_end_stream()
}

fn tracked(body: Incoming, activity: &Arc<Activity>) -> Body {
    if body.is_end_stream() {
        return Body::empty();
    }
    Body::new(Tracked { body: Some(body), activity: Arc::clone(activity) })
}

/// A request's body. What its handler leaves of it is left with the connection.
struct Tracked {
    /// Until it has ended.
    body: Option<Incoming>,
    activity: Arc<Activity>,
}

impl hyper::body::Body for Tracked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            this.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            self.activity.leave_unread(body);
        }
    }
}
