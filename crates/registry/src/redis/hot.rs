//! The hot list over all servers.
//!
//! The keys of a cluster cannot be walked, nor can a script reach beyond its slot. So whoever is the first to meter a
//! conversation in a second puts its rate into a sorted set. A set serves for some seconds and then expires: every
//! conversation that is not idle is in the present one or in that before, and nobody has to clean up. What is in them
//! are candidates; their rates are asked for when the list is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use saltern_core::ids::ConversationId;
use saltern_core::meter::WINDOW_MS;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::connection::{Call, CallError};
use super::keys::{HOT_SHARDS, HotSet, hot_shard};
use super::registry::Shared;
use super::scripts::Reading;
use crate::port::{Hot, cut_to_hottest};

/// How long a set serves. A rate falls to 0 within two windows, so two sets hold all that have one.
const PERIOD_MS: u64 = 4 * WINDOW_MS;
const EXPIRY_MS: u64 = 3 * PERIOD_MS;
const _: () = assert!(PERIOD_MS >= 2 * WINDOW_MS && EXPIRY_MS > 2 * PERIOD_MS);

/// Members of a set; the coolest go first.
const MEMBERS_MAX: usize = 1_000;
/// Candidates for each line asked for: some have cooled down since they were told of, others heated up.
const SPARE: usize = 4;
/// Calls that one list makes at once.
const AT_ONCE_MAX: usize = 128;
/// Reports that wait to be sent. More are dropped: the next second brings others.
const REPORTS_MAX: usize = 4_096;
const BATCH_MAX: usize = 256;

pub(super) struct Report {
    set: HotSet,
    conversation: ConversationId,
    rate_wcu_per_s: f64,
}

impl Report {
    pub(super) fn new(conversation: &ConversationId, load: Reading) -> Self {
        Self {
            set: HotSet { shard: hot_shard(conversation), period: load.now_ms / PERIOD_MS },
            conversation: conversation.clone(),
            rate_wcu_per_s: load.rate_wcu_per_s(),
        }
    }
}

enum Note {
    Report(Report),
    /// Answered when all reports before it are out.
    Flush(oneshot::Sender<()>),
}

/// The way to the task that sends reports, so that no append waits for them. It ends with the last handle.
#[derive(Clone)]
pub(super) struct HotList(mpsc::Sender<Note>);

impl HotList {
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let (notes, inbox) = mpsc::channel(REPORTS_MAX);
        tokio::spawn(send_reports(Arc::clone(shared), inbox));
        Self(notes)
    }

    pub(super) fn tell(&self, report: Report) {
        let _ = self.0.try_send(Note::Report(report));
    }

    /// Waits until what this process has told is in the sets, has failed to get there, or time is up.
    pub(super) async fn flushed(&self, patience: Duration) {
        let (done, flushed) = oneshot::channel();
        let told = async {
            self.0.send(Note::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        let _ = timeout(patience, told).await;
    }
}

async fn send_reports(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Note>) {
    let mut notes = Vec::with_capacity(BATCH_MAX);
    while inbox.recv_many(&mut notes, BATCH_MAX).await > 0 {
        let (mut sets, mut flushes) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
        for note in notes.drain(..) {
            match note {
                Note::Report(report) => sets.entry(report.set).or_default().push(report),
                Note::Flush(done) => flushes.push(done),
            }
        }
        let sends = sets.iter().map(|(set, reports)| send(&shared, *set, reports));
        // The list is advice: what does not get through is told again in a second.
        let _ = futures_util::future::join_all(sends).await;
        for done in flushes {
            let _ = done.send(());
        }
    }
}

async fn send(shared: &Shared, set: HotSet, reports: &[Report]) -> Result<(), CallError> {
    let key = shared.keys.hot(set);
    let mut pipeline = redis::pipe();
    let mut add = redis::cmd("ZADD");
    add.arg(&key);
    for report in reports {
        add.arg(report.rate_wcu_per_s).arg(report.conversation.as_str());
    }
    pipeline.add_command(add).ignore();
    pipeline.cmd("ZREMRANGEBYRANK").arg(&key).arg(0).arg(-1 - isize::try_from(MEMBERS_MAX).unwrap_or(isize::MAX));
    pipeline.ignore().cmd("PEXPIRE").arg(&key).arg(EXPIRY_MS).ignore();
    shared.connection.call(Call::Pipeline(&pipeline)).await
}

pub(super) async fn hottest(shared: &Shared, limit: usize) -> Result<Vec<Hot>, CallError> {
    let candidates = candidates(shared, limit).await?;
    let lines = stream::iter(candidates).map(|candidate| line(shared, candidate)).buffer_unordered(AT_ONCE_MAX);
    let mut hot: Vec<Hot> = lines.try_filter_map(async |line| Ok(line)).try_collect().await?;
    cut_to_hottest(&mut hot, limit);
    Ok(hot)
}

/// Who was hottest when last told of, in the present sets and those before.
async fn candidates(shared: &Shared, limit: usize) -> Result<Vec<ConversationId>, CallError> {
    let (seconds, _): (u64, u64) = shared.connection.call(Call::Command(&redis::cmd("TIME"))).await?;
    let present = seconds * 1_000 / PERIOD_MS;
    let periods = [present.saturating_sub(1), present];
    let sets = (0..HOT_SHARDS).flat_map(|shard| periods.map(|period| HotSet { shard, period }));
    let members = stream::iter(sets).map(|set| members(shared, set)).buffered(AT_ONCE_MAX);
    let members: Vec<Vec<(String, f64)>> = members.try_collect().await?;
    // The sets come in order, so that what was told last counts.
    let told: BTreeMap<String, f64> = members.into_iter().flatten().collect();
    let mut told: Vec<(String, f64)> = told.into_iter().collect();
    told.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
    told.truncate(limit.saturating_mul(SPARE).max(MEMBERS_MAX));
    Ok(told.iter().filter_map(|(member, _)| ConversationId::new(member).ok()).collect())
}

async fn members(shared: &Shared, set: HotSet) -> Result<Vec<(String, f64)>, CallError> {
    let mut range = redis::cmd("ZREVRANGE");
    range.arg(shared.keys.hot(set)).arg(0).arg(-1).arg("WITHSCORES");
    shared.connection.call(Call::Command(&range)).await
}

async fn line(shared: &Shared, conversation: ConversationId) -> Result<Option<Hot>, CallError> {
    let Some(look) = shared.look(&conversation).await? else { return Ok(None) };
    let rate_wcu_per_s = look.load.rate_wcu_per_s();
    Ok((rate_wcu_per_s > 0.0).then_some(Hot { conversation, rate_wcu_per_s, throttles: look.throttles }))
}
