//! The client's side of HTTP: one keep-alive connection, one request at a time.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// Runs `work` over a connection. Both live in this one task: no hand-over between threads, nothing left behind.
pub(crate) async fn over<T, F, W>(stream: TcpStream, work: F) -> Result<T>
where
    F: FnOnce(Sender) -> W,
    W: Future<Output = Result<T>>,
{
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    match select(std::pin::pin!(work(sender)), std::pin::pin!(connection)).await {
        Either::Left((done, _)) => done,
        Either::Right((closed, work)) => {
            closed.context("connection failed")?;
            work.await
        }
    }
}

/// One request and its whole answer.
pub(crate) async fn send(sender: &mut Sender, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

pub(crate) fn get(path: Uri) -> Request<Full<Bytes>> {
    request(Method::GET, path, Bytes::new())
}

pub(crate) fn post(path: Uri, json: Bytes) -> Request<Full<Bytes>> {
    request(Method::POST, path, json)
}

/// One JSON text per line.
pub(crate) fn post_lines(path: Uri, lines: Bytes) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, path, lines);
    let ndjson = header::HeaderValue::from_static("application/x-ndjson");
    request.headers_mut().insert(header::CONTENT_TYPE, ndjson);
    request
}

/// Why a request was refused, as a problem says it.
pub(crate) fn reason(body: &[u8]) -> String {
    #[derive(Default, serde::Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    problem.detail.or(problem.title).unwrap_or_else(|| "no reason given".into())
}

fn request(method: Method, path: Uri, json: Bytes) -> Request<Full<Bytes>> {
    let has_body = method == Method::POST;
    let mut request = Request::new(Full::new(json));
    *request.method_mut() = method;
    *request.uri_mut() = path;
    let headers = request.headers_mut();
    headers.insert(header::HOST, header::HeaderValue::from_static("localhost"));
    if has_body {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    }
    request
}

/// Where a conversation lives, whatever its id holds: everything but unreserved characters is escaped, and so are
/// dots, which would otherwise read as steps of a path.
pub(crate) fn conversation_path(conversation: &str) -> String {
    let mut path = String::from("/v1/conversations/");
    for byte in conversation.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// The server that a `--url` names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    authority: String,
    host: String,
    port: u16,
}

impl ServerUrl {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("--url must look like http://127.0.0.1:8080, not {url}"))?;
        if uri.scheme_str() != Some("http") || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            bail!("--url must look like http://127.0.0.1:8080, not {url}");
        }
        let Some(authority) = uri.authority() else { bail!("--url must look like http://127.0.0.1:8080, not {url}") };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: authority.port_u16().unwrap_or(80), authority: authority.to_string() })
    }

    /// Says which host the request is for, and adds the API key, if there is one.
    pub(crate) fn address(&self, request: &mut Request<Full<Bytes>>, key: Option<&str>) -> Result<()> {
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.authority.parse().context("--url")?);
        if let Some(key) = key {
            let value = format!("Bearer {key}").parse().context("the API key must be visible ASCII, as a header is")?;
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(())
    }

    pub(crate) async fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        stream.with_context(|| {
            format!("cannot connect to http://{}; start the server there, or correct --url", self.authority)
        })
    }
}

pub(crate) async fn connect(addr: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect(addr).await.with_context(|| format!("cannot connect to {addr}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_is_one_path_segment() {
        assert_eq!(conversation_path("conv_1"), "/v1/conversations/conv_1");
        assert_eq!(conversation_path(".."), "/v1/conversations/%2E%2E");
        assert_eq!(conversation_path("a#1/ü%"), "/v1/conversations/a%231%2F%C3%BC%25");
    }

    #[test]
    fn urls_name_a_server_and_nothing_else() {
        let url = ServerUrl::parse("http://[::1]:8080/").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 8080));
        assert_eq!(ServerUrl::parse("http://localhost").unwrap().port, 80);
        for bad in ["https://127.0.0.1", "127.0.0.1:8080", "http://a/v1", "http://a?x", "http://", ""] {
            assert!(ServerUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
