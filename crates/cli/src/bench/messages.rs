//! Made-up messages, cheap to make: a template with a fresh message_id written into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Uri};
use saltern_core::rng::SplitMix64;

use crate::http;

/// As long as a UUID without its hyphens.
pub(super) const ID_DIGITS: usize = 32;

/// Makes messages whose ids never repeat within this process.
#[derive(Debug, Clone)]
pub(super) struct Messages {
    /// The JSON behind the message_id.
    tail: Arc<str>,
    issued: Arc<AtomicU64>,
}

impl Messages {
    pub(super) fn new(content_bytes: u32) -> Self {
        let content = "x".repeat(content_bytes as usize);
        let tail = format!(
            r#"","sender_id":"alice","receiver_id":"bob","content":"{content}","timestamp":"2026-11-15T04:20:00Z"}}"#
        );
        Self { tail: tail.into(), issued: Arc::new(AtomicU64::new(1)) }
    }

    pub(super) fn next_id(&self) -> String {
        format!("{:0ID_DIGITS$x}", self.issued.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn one(&self) -> Bytes {
        let mut json = String::with_capacity(self.tail.len() + 64);
        self.write(&mut json);
        json.into()
    }

    pub(super) fn batch(&self, count: u64) -> Bytes {
        let mut json = String::from(r#"{"messages":["#);
        for i in 0..count {
            if i > 0 {
                json.push(',');
            }
            self.write(&mut json);
        }
        json.push_str("]}");
        json.into()
    }

    fn write(&self, json: &mut String) {
        json.push_str(r#"{"message_id":""#);
        json.push_str(&self.next_id());
        json.push_str(&self.tail);
    }
}

/// The paths of many conversations, parsed once.
#[derive(Debug, Clone)]
pub(super) struct Paths(Arc<[Uri]>);

impl Paths {
    pub(super) fn new(conversations: u32, suffix: &str) -> anyhow::Result<Self> {
        let path = |i| format!("{}/messages{suffix}", http::conversation_path(&format!("bench-{i}"))).parse();
        Ok(Self((0..conversations).map(path).collect::<Result<_, _>>()?))
    }

    pub(super) fn nth(&self, i: u64) -> Uri {
        let count = self.0.len() as u64;
        self.0[usize::try_from(i % count).unwrap_or(0)].clone()
    }

    pub(super) fn any(&self, rng: &mut SplitMix64) -> Uri {
        self.nth(rng.next_u64())
    }
}

/// An endless supply of single appends, spread over the conversations.
pub(super) fn appends(paths: &Paths, messages: &Messages, seed: u64) -> impl FnMut() -> Request<Full<Bytes>> + use<> {
    let (paths, messages, mut rng) = (paths.clone(), messages.clone(), SplitMix64::new(seed));
    move || http::post(paths.any(&mut rng), messages.one())
}
