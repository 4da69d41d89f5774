//! The documents' ramp over three servers: one conversation, three services that know nothing of each other, one Redis,
//! and one DynamoDB Local under the partition limits that DynamoDB has.
//!
//! The services live in this process, so that all three share the limits; what they run on is real.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use saltern_backends::{DynamoLocal, Redis};
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_registry::Registry as _;
use saltern_registry::redis::{RedisOptions, RedisRegistry};
use saltern_service::conversations::{Config, Conversations};
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};
use saltern_store::throttled::{PartitionLimits, PartitionLoad, Throttled};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

const SERVERS: u64 = 3;
/// A message takes this many write units: DynamoDB Local does not get near 4,000 rows a second, 250 are easy.
const WCU: u64 = 16;
/// Up to here n stays as it is: 800, and a little for the meter's jitter.
const WCU_PER_SALT: f64 = 820.0;
const TICK: Duration = Duration::from_millis(20);
const SETTLES_S: u64 = 4;
const STEP_S: u64 = 9;
/// So many that no two of the few salts here meet.
const PHYSICAL_PARTITIONS: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

struct Heat {
    services: Vec<Conversations>,
    conversation: ConversationId,
    limits: Throttled,
    registry: RedisRegistry,
    /// The highest rate that the registry has metered.
    metered_wcu_per_s: f64,
    sent: u64,
    under_way: JoinSet<()>,
    acked: Arc<Mutex<Vec<(u64, u64)>>>,
}

#[derive(Debug)]
struct Step {
    throttled: u64,
    busiest_wcu_per_s: u64,
}

impl Heat {
    async fn on(dynamodb: &DynamoLocal, redis: &Redis) -> Self {
        let options = DynamoOptions {
            endpoint: Some(dynamodb.endpoint()),
            call_timeout: Duration::from_secs(30),
            ..DynamoOptions::default()
        };
        let store = DynamoStore::connect(options).await.unwrap();
        store.create_tables().await.unwrap();
        let limits = Throttled::new(Arc::new(store), PartitionLimits::without_burst(PHYSICAL_PARTITIONS));
        let registry = async || {
            let options = RedisOptions { urls: vec![redis.url()], ..RedisOptions::default() };
            RedisRegistry::connect(options).await.unwrap()
        };
        let mut services = Vec::new();
        for server in 0..SERVERS {
            let registry = registry().await;
            let config = Config::new(Arc::new(now_ms), server);
            services.push(Conversations::new(Arc::new(limits.clone()), Arc::new(registry), config));
        }
        Self {
            services,
            conversation: ConversationId::new("conv_abc123").unwrap(),
            limits,
            registry: registry().await,
            metered_wcu_per_s: 0.0,
            sent: 0,
            under_way: JoinSet::new(),
            acked: Arc::default(),
        }
    }

    /// Offers a steady rate, over all servers in turn; answers what was seen after it had settled.
    async fn offer(&mut self, wcu_per_s: u64) -> Step {
        self.offer_for(wcu_per_s, SETTLES_S).await;
        let before = self.limits.loads();
        let seconds = STEP_S - SETTLES_S;
        self.offer_for(wcu_per_s, seconds).await;
        let after = self.limits.loads();
        let most = |of: fn(&PartitionLoad) -> u64| before.iter().zip(&after).map(move |(b, a)| of(a) - of(b));
        Step {
            throttled: most(|load| load.throttled_writes).sum(),
            busiest_wcu_per_s: most(|load| load.write_units).max().unwrap_or(0) / seconds,
        }
    }

    async fn offer_for(&mut self, wcu_per_s: u64, seconds: u64) {
        let mut ticks = interval(TICK);
        // A machine that falls behind must not make up for it: that would be another rate.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks_of = |seconds: u64| seconds * 1_000 / u64::try_from(TICK.as_millis()).unwrap();
        for tick in 1..=ticks_of(seconds) {
            ticks.tick().await;
            let due = |tick: u64| wcu_per_s * tick / ticks_of(1) / WCU;
            (due(tick - 1)..due(tick)).for_each(|_| self.send());
            let metered = self.registry.rate_wcu_per_s(&self.conversation).await.unwrap();
            self.metered_wcu_per_s = self.metered_wcu_per_s.max(metered);
            while self.under_way.try_join_next().is_some() {}
        }
    }

    fn send(&mut self) {
        self.sent += 1;
        let (message, acked) = (self.sent, Arc::clone(&self.acked));
        let service = self.services[usize::try_from(message % SERVERS).unwrap()].clone();
        let conversation = self.conversation.clone();
        self.under_way.spawn(async move {
            let appended = service.append(&conversation, draft(message)).await.unwrap();
            acked.lock().unwrap().push((message, appended.seq.get()));
        });
    }

    async fn n(&self) -> u16 {
        // Any of them: each must have noticed what another decided.
        let mut ns = Vec::new();
        for service in &self.services {
            ns.push(service.view(&self.conversation).await.unwrap().unwrap().n);
        }
        assert!(ns.iter().all(|n| *n == ns[0]), "servers differ: {ns:?}");
        ns[0]
    }

    /// Every acknowledged message once, at its place, on every server.
    async fn read_back(mut self) -> usize {
        while let Some(ended) = self.under_way.join_next().await {
            ended.unwrap();
        }
        let mut acked = std::mem::take(&mut *self.acked.lock().unwrap());
        acked.sort_unstable_by_key(|(_, seq)| *seq);
        assert_eq!(acked.len() as u64, self.sent, "an append was not acknowledged");
        for service in &self.services {
            let (mut found, mut after) = (Vec::new(), 0);
            loop {
                let page = service.newer(&self.conversation, after, 200).await.unwrap();
                let message = |id: &MessageId| id.as_str().parse::<u64>().unwrap();
                found.extend(page.messages.iter().map(|m| (message(&m.value.message_id), m.seq.get())));
                after = page.next_after;
                if page.at_end {
                    break;
                }
            }
            assert!(found == acked, "a server shows something else");
        }
        acked.len()
    }
}

fn draft(message: u64) -> Draft {
    let body = Body {
        sender_id: ParticipantId::new("alice").unwrap(),
        receiver_id: None,
        content: "x".repeat(usize::try_from(WCU).unwrap() * 1_024 - 512),
        timestamp: None,
    };
    let draft = Draft::new(MessageId::new(&message.to_string()).unwrap(), body).unwrap();
    assert_eq!(draft.wcu(), WCU);
    draft
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_spread_a_conversation_as_one_would() {
    let (dynamodb, redis) = (DynamoLocal::start(), Redis::start());
    let mut heat = Heat::on(&dynamodb, &redis).await;
    for (wcu_per_s, n) in [(200, 1), (900, 2), (2_200, 3), (4_000, 5)] {
        let step = heat.offer(wcu_per_s).await;
        let Step { throttled, busiest_wcu_per_s } = step;
        let (metered, found) = (heat.metered_wcu_per_s, heat.n().await);
        println!(
            "{wcu_per_s} WCU/s: n = {found}, busiest {busiest_wcu_per_s}, {throttled} throttled, {metered} metered"
        );
        // A machine that stalls sends what it has held up at once. Then one more is what that rate takes, and no more than that.
        let most = if metered > f64::from(n) * WCU_PER_SALT { n + 1 } else { n };
        assert!((n..=most).contains(&found), "n = {found} at {wcu_per_s} WCU/s over all servers, {metered} metered");
        assert!(busiest_wcu_per_s <= 1_000, "{wcu_per_s}: {busiest_wcu_per_s}");
    }
    println!("{} acknowledged and read back", heat.read_back().await);
}
