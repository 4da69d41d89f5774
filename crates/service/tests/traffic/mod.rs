//! Traffic on one conversation over a store with partition limits, on a clock of its own.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::{Layout, Salt};
use saltern_core::message::{Body, Draft};
use saltern_core::record::Record;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations};
use saltern_store::faulty::{FaultPlan, Faulty};
use saltern_store::memory::MemoryStore;
use saltern_store::throttled::{PartitionLimits, PartitionLoad, Throttled};
use saltern_store::{Capabilities, Consistency, Store};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

const TICK: Duration = Duration::from_millis(5);

/// One second of traffic, as seen from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Second {
    pub(crate) n: u16,
    pub(crate) throttled: u64,
    /// Of the busiest physical partition.
    pub(crate) busiest_wcu: u64,
}

pub(crate) struct Traffic {
    pub(crate) service: Conversations,
    pub(crate) conversation: ConversationId,
    pub(crate) seconds: Vec<Second>,
    store: MemoryStore,
    throttled: Throttled,
    sent: u64,
    under_way: JoinSet<()>,
    acked: Arc<Mutex<Vec<(u64, u64)>>>,
    refused: Arc<AtomicU64>,
}

/// Calls take up to ten milliseconds, as they would over a network.
const NETWORK: FaultPlan = FaultPlan {
    slow: 1_000,
    slow_max: Duration::from_millis(5),
    writes: saltern_store::faulty::WriteFaults { lost: 0, unknown: 0, late: 0, throttled: 0, unavailable: 0 },
    reads: saltern_store::faulty::ReadFaults { throttled: 0, unavailable: 0, partial_page: 0, stale: 0 },
    late_max: Duration::ZERO,
    stale_max: Duration::ZERO,
};

impl Traffic {
    pub(crate) fn on(physical_partitions: u32, conversation: &str) -> Self {
        let store = MemoryStore::new(Capabilities { atomic_puts: false, exclusive: false });
        let limits = PartitionLimits::without_burst(NonZeroU32::new(physical_partitions).unwrap());
        let throttled = Throttled::new(Arc::new(store.clone()), limits);
        let network = Faulty::new(Arc::new(throttled.clone()), 7, NETWORK);
        let started = Instant::now();
        let clock = move || 1_700_000_000_000 + u64::try_from(started.elapsed().as_millis()).unwrap();
        let service =
            Conversations::new(Arc::new(network), Arc::new(LocalRegistry::new(100)), Config::new(Arc::new(clock), 1));
        Self {
            service,
            conversation: ConversationId::new(conversation).unwrap(),
            seconds: Vec::new(),
            store,
            throttled,
            sent: 0,
            under_way: JoinSet::new(),
            acked: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// A steady rate, whatever becomes of the messages; answers what was seen each second.
    pub(crate) async fn steady(&mut self, wcu_per_s: u64, seconds: u64) -> Vec<Second> {
        let first = self.seconds.len();
        let mut ticks = interval(TICK);
        ticks.tick().await;
        let per_second = 1_000 / u64::try_from(TICK.as_millis()).unwrap();
        for _ in 0..seconds {
            let before = self.throttled.loads();
            for tick in 1..=per_second {
                ticks.tick().await;
                let due = wcu_per_s * tick / per_second - wcu_per_s * (tick - 1) / per_second;
                (0..due).for_each(|_| self.send());
                while self.under_way.try_join_next().is_some() {}
            }
            let now = Second {
                n: self.layout().await.map_or(1, |layout| layout.n()),
                ..seen(&before, &self.throttled.loads())
            };
            self.seconds.push(now);
        }
        self.seconds[first..].to_vec()
    }

    pub(crate) async fn silence(&self, duration: Duration) {
        sleep(duration).await;
    }

    fn send(&mut self) {
        self.sent += 1;
        let (service, conversation, sent) = (self.service.clone(), self.conversation.clone(), self.sent);
        let (acked, refused) = (Arc::clone(&self.acked), Arc::clone(&self.refused));
        self.under_way.spawn(async move {
            match service.append(&conversation, draft(sent)).await {
                Ok(appended) => acked.lock().unwrap().push((sent, appended.seq.get())),
                Err(_) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    pub(crate) async fn layout(&self) -> Option<Layout> {
        let key = Key::control(&self.conversation);
        match self.store.get(&[key], Consistency::Strong).await.unwrap().pop() {
            Some(Some(Record::Control(control))) => Some(control.layout),
            _ => None,
        }
    }

    /// The values of n in their order, each with the number of epochs that it stands for.
    pub(crate) async fn spreads(&self) -> Vec<u16> {
        self.layout().await.unwrap().epochs().iter().map(|epoch| epoch.n).collect()
    }

    /// How many salts of a spread the fullest physical partition holds.
    pub(crate) fn collisions(&self, n: u16) -> usize {
        let place = |salt| self.throttled.physical(&PartitionKey::messages(&self.conversation, Salt::Of(salt)));
        let places: Vec<_> = (0..n).map(place).collect();
        places.iter().map(|place| places.iter().filter(|other| *other == place).count()).max().unwrap_or(0)
    }

    /// Waits for what is under way and reads everything back: each acknowledged message at its place, in order, once.
    /// Answers how many were acknowledged and how many refused.
    pub(crate) async fn settle(&mut self) -> (u64, u64) {
        while self.under_way.join_next().await.is_some() {}
        let mut acked = std::mem::take(&mut *self.acked.lock().unwrap());
        acked.sort_unstable_by_key(|(_, seq)| *seq);
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let page = self.service.newer(&self.conversation, after, 200).await.unwrap();
            found.extend(
                page.messages.iter().map(|m| (m.value.message_id.as_str().parse::<u64>().unwrap(), m.seq.get())),
            );
            if page.at_end {
                break;
            }
            if page.next_after == after {
                sleep(Duration::from_secs(1)).await;
            }
            after = page.next_after;
        }
        let refused = self.refused.load(Ordering::Relaxed);
        let mut names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "doubled");
        assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].1), "out of order");
        let lost = acked.iter().filter(|message| found.binary_search_by_key(&message.1, |f| f.1).is_err()).count();
        assert_eq!(lost, 0, "lost");
        assert_eq!(acked.len() as u64 + refused, self.sent);
        (acked.len() as u64, refused)
    }
}

fn seen(before: &[PartitionLoad], after: &[PartitionLoad]) -> Second {
    let pairs = || before.iter().zip(after);
    Second {
        n: 0,
        throttled: pairs().map(|(b, a)| a.throttled_writes - b.throttled_writes).sum(),
        busiest_wcu: pairs().map(|(b, a)| a.write_units - b.write_units).max().unwrap_or(0),
    }
}

fn draft(name: u64) -> Draft {
    let body = Body {
        sender_id: ParticipantId::new("alice").unwrap(),
        receiver_id: None,
        content: "hey".into(),
        timestamp: None,
    };
    Draft::new(MessageId::new(&name.to_string()).unwrap(), body).unwrap()
}
