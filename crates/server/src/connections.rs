//! All connections, within their bound.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::{Id, JoinSet};
use tracing::{debug, warn};

use crate::activity::{Activity, State};
use crate::connection::{AtOnce, Timeouts, serve};
use crate::interface::Interface;

/// A client that has taken nothing of its answer for so long may lose it to others who are turned away.
const STALL_MIN: Duration = Duration::from_secs(1);
/// Finding the longest idle connections means looking at all of them, so this part of the idle ones is found at once.
const FOUND_AT_ONCE: usize = 16;

pub(crate) struct Connections {
    interface: Arc<Interface>,
    timeouts: Timeouts,
    connections_max: usize,
    epoch: Instant,
    tasks: JoinSet<()>,
    /// A connection is told to end by a sender of its own: one that all shared would be locked whenever one is polled.
    live: HashMap<Id, Live>,
    /// Idle connections and since when, the longest idle last.
    longest_idle: Vec<(u64, Id)>,
    newest: Option<Id>,
}

struct Live {
    ending: oneshot::Sender<AtOnce>,
    activity: Arc<Activity>,
}

impl Connections {
    pub(crate) fn new(interface: Arc<Interface>, timeouts: Timeouts, connections_max: usize) -> Self {
        Self {
            interface,
            timeouts,
            connections_max,
            epoch: Instant::now(),
            tasks: JoinSet::new(),
            live: HashMap::new(),
            longest_idle: Vec::new(),
            newest: None,
        }
    }

    /// Beyond the bound there is one connection at the most: the one that came last.
    pub(crate) fn are_too_many(&self) -> bool {
        self.live.len() > self.connections_max
    }

    pub(crate) fn start(&mut self, stream: TcpStream) {
        let (ending, ended) = oneshot::channel();
        let activity = Arc::new(Activity::new(self.epoch));
        let connection = serve(stream, Arc::clone(&self.interface), self.timeouts, Arc::clone(&activity), ended);
        let id = self.tasks.spawn(connection).id();
        self.live.insert(id, Live { ending, activity });
        self.newest = Some(id);
    }

    /// Resolves when a connection has ended; never if there is none.
    pub(crate) async fn one_ends(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                self.live.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
            None => std::future::pending().await,
        }
    }

    /// Closes the connection that has been idle for longest. The newest one is spared once: its request is on its way.
    pub(crate) fn shed_idle(&mut self) -> bool {
        let newest = self.newest.take();
        loop {
            while let Some((since_ms, id)) = self.longest_idle.pop() {
                let is_idle = |live: &Live| live.activity.since_ms(State::Waiting) == Some(since_ms);
                if self.live.get(&id).is_some_and(is_idle) {
                    debug!(connections = self.live.len(), "an idle connection makes room for another");
                    return self.close(id);
                }
            }
            let others = self.live.iter().filter(|(id, _)| Some(**id) != newest);
            let idle = others.filter_map(|(id, live)| Some((live.activity.since_ms(State::Waiting)?, *id)));
            let mut idle: Vec<_> = idle.collect();
            if idle.is_empty() {
                return false;
            }
            idle.sort_unstable_by_key(|(since_ms, _)| Reverse(*since_ms));
            self.longest_idle = idle.split_off(idle.len() - idle.len().div_ceil(FOUND_AT_ONCE));
        }
    }

    /// Closes the connections whose clients do not take their answers.
    pub(crate) fn shed_stalled(&mut self) {
        let now_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let stall_min_ms = u64::try_from(STALL_MIN.as_millis()).unwrap_or(u64::MAX);
        let is_stalled = |live: &Live| {
            live.activity
                .since_ms(State::Stalled)
                .is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= stall_min_ms)
        };
        let stalled: Vec<_> = self.live.iter().filter(|(_, live)| is_stalled(live)).map(|(id, _)| *id).collect();
        if !stalled.is_empty() {
            warn!(
                connections = stalled.len(),
                "closed: their clients do not take their answers, and others are turned away"
            );
        }
        for id in stalled {
            self.close(id);
        }
    }

    fn close(&mut self, id: Id) -> bool {
        // It may have ended by itself.
        self.live.remove(&id).is_some_and(|live| live.ending.send(AtOnce).is_ok())
    }

    /// Lets requests in flight end, for so long at the most.
    pub(crate) async fn shut_down(mut self, grace: Duration) {
        self.live.clear();
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all_ended).await.is_err() {
            warn!(connections = self.tasks.len(), "requests did not end in time and are cut off");
            self.tasks.shutdown().await;
        }
    }
}
