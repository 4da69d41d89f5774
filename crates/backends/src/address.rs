use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use std::sync::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// An address that leads to one server, and later to another. Connections that are open stay where they are until they
/// are cut.
pub struct Address {
    port: u16,
    target: Arc<AtomicU16>,
    connections: Arc<Mutex<Vec<CancellationToken>>>,
}

impl Address {
    pub async fn of(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = Self { port, target: Arc::new(AtomicU16::new(target)), connections: Arc::default() };
        let (target, connections) = (Arc::clone(&address.target), Arc::clone(&address.connections));
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (port, cut) = (target.load(Ordering::Relaxed), CancellationToken::new());
                connections.lock().unwrap().push(cut.clone());
                tokio::spawn(cut.run_until_cancelled_owned(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
                    copy_bidirectional(&mut client, &mut server).await
                }));
            }
        });
        address
    }

    pub fn move_to(&self, target: u16) {
        self.target.store(target, Ordering::Relaxed);
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        self.connections.lock().unwrap().drain(..).for_each(|connection| connection.cancel());
    }

    /// Cuts every other connection.
    pub fn cut_half(&self) {
        let mut stay = false;
        self.connections.lock().unwrap().retain(|connection| {
            stay = !stay;
            if !stay {
                connection.cancel();
            }
            stay
        });
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}
