//! Clients that do not give up: what one server does not acknowledge is sent to the next, under the same id.

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::client::Lost;
use crate::support::watched::Watched;
use crate::support::{Client, append_body};

const HOT_WRITERS: usize = 12;
const COLD_WRITERS: usize = 4;
const COLD: usize = 100;
/// A hot message takes this many write units, so that a machine of any size makes the conversation hot.
const HOT_WCU: usize = 8;
const RETRY: Duration = Duration::from_millis(20);

/// Where the servers are now.
pub(crate) type Servers = Arc<RwLock<Vec<SocketAddr>>>;

pub(crate) struct Load {
    pub(crate) servers: Servers,
    /// The hot one, then the cold ones.
    pub(crate) conversations: Arc<[Watched]>,
    enough: CancellationToken,
    running: JoinSet<()>,
}

impl Load {
    pub(crate) fn start(servers: Vec<SocketAddr>) -> Self {
        let names = (0..COLD).map(|i| format!("cold #{i}"));
        let conversations = ["hot/🔥".to_owned()].into_iter().chain(names).map(|name| Watched::new(&name)).collect();
        let mut load = Self {
            servers: Arc::new(RwLock::new(servers)),
            conversations,
            enough: CancellationToken::new(),
            running: JoinSet::new(),
        };
        for index in 0..HOT_WRITERS + COLD_WRITERS {
            let writer = Writer { index, written: 0, client: load.client(index) };
            load.running.spawn(writer.write(Arc::clone(&load.conversations), load.enough.clone()));
        }
        for index in 0..3 {
            load.running.spawn(read(load.client(index), Arc::clone(&load.conversations), load.enough.clone()));
        }
        load
    }

    /// A client that begins with this server.
    pub(crate) fn client(&self, index: usize) -> AnyServer {
        AnyServer { servers: Arc::clone(&self.servers), index, connection: None }
    }

    /// Ends when every message that was sent has been acknowledged.
    pub(crate) async fn stop(&mut self) {
        self.enough.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended.unwrap();
        }
    }

    /// A failed writer or reader fails the test now, not at its end.
    pub(crate) fn check(&mut self) {
        if let Some(ended) = self.running.try_join_next() {
            ended.unwrap();
            panic!("a client ended by itself");
        }
    }
}

/// A client that goes on to the next server when one fails it.
pub(crate) struct AnyServer {
    servers: Servers,
    index: usize,
    connection: Option<Client>,
}

impl AnyServer {
    async fn connection(&mut self) -> Result<&mut Client, Lost> {
        if self.connection.is_none() {
            let addr = {
                let servers = self.servers.read().unwrap();
                servers[self.index % servers.len()]
            };
            self.connection = Some(Client::connect(addr).await?);
        }
        self.connection.as_mut().ok_or(Lost)
    }

    async fn next_server(&mut self) {
        self.connection = None;
        self.index += 1;
        sleep(RETRY).await;
    }

    /// Until it is acknowledged.
    pub(crate) async fn append(&mut self, conversation: &Watched, message: &str, content: &str) {
        let body = append_body(message, content);
        loop {
            if let Ok(client) = self.connection().await
                && let Ok(answer) = client.append(&conversation.name, &body).await
            {
                match answer.status {
                    200 | 201 => return conversation.acknowledge(message, answer.seq()),
                    503 => {}
                    status => panic!("{status}: {}", answer.json),
                }
            }
            self.next_server().await;
        }
    }
}

struct Writer {
    index: usize,
    written: usize,
    client: AnyServer,
}

impl Writer {
    async fn write(mut self, conversations: Arc<[Watched]>, enough: CancellationToken) {
        while !enough.is_cancelled() {
            self.written += 1;
            let message = format!("w{}-{}.", self.index, self.written);
            if self.index < HOT_WRITERS {
                let content = message.repeat((HOT_WCU - 1) * 1_024 / message.len());
                self.client.append(&conversations[0], &message, &content).await;
            } else {
                let conversation = &conversations[1 + (self.written * COLD_WRITERS + self.index) % COLD];
                self.client.append(conversation, &message, &message).await;
            }
        }
    }
}

/// Follows the hot conversation, and looks at the newest page of every conversation in turn.
async fn read(mut client: AnyServer, conversations: Arc<[Watched]>, enough: CancellationToken) {
    let (mut after, mut turn) = (0, client.index);
    while !enough.is_cancelled() {
        turn += 1;
        let newest = &conversations[turn % conversations.len()];
        let done = async {
            let connection = client.connection().await?;
            let reached = conversations[0].read_on(connection, after).await?;
            newest.read_older(connection, None).await?;
            Ok::<_, Lost>(reached.after)
        };
        match done.await {
            Ok(reached) if reached > after => after = reached,
            Ok(_) => sleep(RETRY).await,
            Err(Lost) => client.next_server().await,
        }
    }
}
