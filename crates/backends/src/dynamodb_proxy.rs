use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Comes between a client and DynamoDB, which it can make unreachable, and whose replies to puts it can lose: then the
/// row is there, and the client does not know.
pub struct DynamoProxy {
    addr: SocketAddr,
    faults: Arc<Faults>,
    /// Ends the listener and every connection.
    up: CancellationToken,
}

struct Faults {
    server: u16,
    /// Of a thousand puts, this many lose their reply.
    lose: AtomicU32,
    puts: AtomicU64,
    lost: AtomicU64,
}

impl DynamoProxy {
    pub async fn before(server: u16) -> Self {
        let faults =
            Arc::new(Faults { server, lose: AtomicU32::new(0), puts: AtomicU64::new(0), lost: AtomicU64::new(0) });
        let mut proxy = Self { addr: "127.0.0.1:0".parse().unwrap(), faults, up: CancellationToken::new() };
        proxy.rise().await;
        proxy
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Unreachable from now on: connections break, new ones are refused.
    pub fn fall(&self) {
        self.up.cancel();
    }

    /// Reachable again, at the same address.
    pub async fn rise(&mut self) {
        let listener = TcpListener::bind(self.addr).await.unwrap();
        self.addr = listener.local_addr().unwrap();
        self.up = CancellationToken::new();
        let (faults, up) = (Arc::clone(&self.faults), self.up.clone());
        tokio::spawn(self.up.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(up.clone().run_until_cancelled_owned(serve(stream, Arc::clone(&faults))));
            }
        }));
    }

    /// From now on, of a thousand puts this many lose their reply.
    pub fn lose_replies(&self, per_thousand: u32) {
        self.faults.lose.store(per_thousand, Ordering::Relaxed);
    }

    /// Replies lost so far.
    pub fn lost(&self) -> u64 {
        self.faults.lost.load(Ordering::Relaxed)
    }
}

impl Faults {
    /// Spread evenly, by a count and not by chance.
    fn loses(&self, request: &Request<Bytes>) -> bool {
        let is_put =
            request.headers().get("x-amz-target").is_some_and(|target| target.as_bytes().ends_with(b".PutItem"));
        let lose = u64::from(self.lose.load(Ordering::Relaxed));
        if !is_put || lose == 0 {
            return false;
        }
        let put = self.puts.fetch_add(1, Ordering::Relaxed);
        let loses = (put + 1) * lose / 1_000 > put * lose / 1_000;
        self.lost.fetch_add(u64::from(loses), Ordering::Relaxed);
        loses
    }
}

/// One connection of a client, over one of ours.
async fn serve(stream: TcpStream, faults: Arc<Faults>) {
    let Ok(sender) = connect(faults.server).await else { return };
    let sender = Arc::new(Mutex::new(sender));
    let service = service_fn(|request| forward(request, Arc::clone(&sender), Arc::clone(&faults)));
    // How a connection ends is its client's concern.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn connect(server: u16) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(("127.0.0.1", server)).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A failure here closes the connection without a word.
async fn forward(
    request: Request<Incoming>,
    sender: Arc<Mutex<SendRequest<Full<Bytes>>>>,
    faults: Arc<Faults>,
) -> Result<Response<Full<Bytes>>, Failure> {
    let (head, body) = request.into_parts();
    let request = Request::from_parts(head, body.collect().await?.to_bytes());
    let loses = faults.loses(&request);
    let (head, body) = sender.lock().await.send_request(request.map(Full::new)).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    match loses {
        true => Err("the reply is lost".into()),
        false => Ok(Response::from_parts(head, Full::new(body))),
    }
}
