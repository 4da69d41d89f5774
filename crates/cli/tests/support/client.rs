//! One keep-alive connection, and the wire formats as the judge wants them.

use std::sync::Arc;

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use saltern_core::ids::{MessageId, ParticipantId};
use saltern_core::message::Body;
use saltern_core::page::{Gap, GapState, NewerPage, OlderPage, Placed};
use saltern_core::record::MessageRow;
use saltern_core::seq::{SeqNo, SeqRange};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// The connection is gone: whatever was asked last may or may not have happened.
#[derive(Debug)]
pub struct Lost;

pub struct Client {
    sender: SendRequest<Full<Bytes>>,
}

pub struct Answer {
    pub status: u16,
    pub json: Value,
}

pub fn append_body(message_id: &str, content: &str) -> Value {
    json!({"message_id": message_id, "sender_id": "alice", "receiver_id": "bob", "content": content})
}

/// Everything but letters and digits is escaped.
pub fn path(conversation: &str) -> String {
    let escape = |b: u8| {
        if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
    };
    format!("/v1/conversations/{}", conversation.bytes().map(escape).collect::<String>())
}

impl Client {
    pub async fn connect(addr: SocketAddr) -> Result<Self, Lost> {
        let stream = TcpStream::connect(addr).await.map_err(|_| Lost)?;
        stream.set_nodelay(true).map_err(|_| Lost)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Lost)?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    async fn exchange(&mut self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Bytes), Lost> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        self.sender.ready().await.map_err(|_| Lost)?;
        let response = self.sender.send_request(request.body(Full::new(body)).unwrap()).await.map_err(|_| Lost)?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await.map_err(|_| Lost)?.to_bytes()))
    }

    async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Lost> {
        let (status, bytes) = self.exchange(method, path, body).await?;
        Ok(Answer { status, json: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }

    pub async fn text(&mut self, path: &str) -> Result<String, Lost> {
        let (_, bytes) = self.exchange(Method::GET, path, None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub async fn get(&mut self, path: &str) -> Result<Answer, Lost> {
        self.send(Method::GET, path, None).await
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> Result<Answer, Lost> {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Lost> {
        self.send(Method::POST, path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Result<Answer, Lost> {
        self.send(Method::DELETE, path, None).await
    }

    pub async fn append(&mut self, conversation: &str, body: &Value) -> Result<Answer, Lost> {
        self.send(Method::POST, &format!("{}/messages", path(conversation)), Some(body)).await
    }

    pub async fn batch(&mut self, conversation: &str, messages: &[Value]) -> Result<Answer, Lost> {
        let body = json!({ "messages": messages });
        self.send(Method::POST, &format!("{}/messages/batch", path(conversation)), Some(&body)).await
    }

    /// `None` if the server could not answer now.
    pub async fn older(&mut self, conversation: &str, before: Option<SeqNo>) -> Result<Option<OlderPage>, Lost> {
        let cursor = before.map_or_else(String::new, |before| format!("&before_seq={before}"));
        let answer = self.get(&format!("{}/messages?limit=200{cursor}", path(conversation))).await?;
        Ok(answer.page().map(|page| OlderPage {
            messages: messages(page),
            next_before: page["next_before_seq"].as_u64().map(SeqNo::clamped),
            gaps: gaps(page),
            stable_through: page["stable_through"].as_u64().unwrap(),
        }))
    }

    /// `None` if the server could not answer now.
    pub async fn newer(&mut self, conversation: &str, after: u64) -> Result<Option<NewerPage>, Lost> {
        let answer = self.get(&format!("{}/messages?limit=200&after_seq={after}", path(conversation))).await?;
        Ok(answer.page().map(|page| NewerPage {
            messages: messages(page),
            next_after: page["next_after_seq"].as_u64().unwrap(),
            at_end: page["at_end"].as_bool().unwrap(),
            gaps: gaps(page),
            stable_through: page["stable_through"].as_u64().unwrap(),
        }))
    }
}

impl Answer {
    pub fn seq(&self) -> SeqNo {
        SeqNo::new(self.json["seq_no"].as_u64().unwrap_or(0)).unwrap_or_else(|| panic!("no seq_no in {}", self.json))
    }

    fn page(&self) -> Option<&Value> {
        match self.status {
            200 => Some(&self.json),
            503 => None,
            status => panic!("{status}: {}", self.json),
        }
    }
}

fn messages(page: &Value) -> Vec<Placed<Arc<MessageRow>>> {
    page["messages"].as_array().unwrap().iter().map(message).collect()
}

fn message(json: &Value) -> Placed<Arc<MessageRow>> {
    let text = |field: &str| json[field].as_str().map(str::to_owned);
    let body = Body {
        sender_id: ParticipantId::new(&text("sender_id").unwrap()).unwrap(),
        receiver_id: text("receiver_id").map(|id| ParticipantId::new(&id).unwrap()),
        content: text("content").unwrap(),
        timestamp: text("timestamp"),
    };
    let message_id = MessageId::new(&text("message_id").unwrap()).unwrap();
    let digest = body.digest();
    let seq = SeqNo::new(json["seq_no"].as_u64().unwrap()).unwrap();
    Placed { seq, value: Arc::new(MessageRow::with_digest(message_id, body, digest, 0)) }
}

fn gaps(page: &Value) -> Vec<Gap> {
    let seq = |gap: &Value, field: &str| SeqNo::new(gap[field].as_u64().unwrap()).unwrap();
    let gap = |gap: &Value| Gap {
        range: SeqRange::new(seq(gap, "from_seq"), seq(gap, "to_seq")).unwrap(),
        state: if gap["state"] == "void" { GapState::Void } else { GapState::Pending },
    };
    page["gaps"].as_array().unwrap().iter().map(gap).collect()
}
