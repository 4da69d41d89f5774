//! One conversation of a certain n, written to and read from.

use std::sync::Arc;

use anyhow::{Result, ensure};
use saltern_core::ids::ConversationId;
use saltern_core::limits::PAGE_LIMIT_DEFAULT as LIMIT;
use saltern_core::message::Draft;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_service::conversations::Conversations;
use saltern_store::dynamodb::DynamoStore;

use super::report::{Line, Operation};
use super::tally::Tally;
use crate::args::RequestsArgs;
use crate::bench::partitions::{drafts::Drafts, setup};
use crate::service::now_ms;

/// Appended before anything is counted: by then n is what it is to be.
const FILL: u32 = 100;
pub(super) const BATCH: u32 = 10;
/// Servers that read a conversation for the first time.
const STRANGERS: u32 = 10;

pub(super) struct Subject<'a> {
    store: &'a DynamoStore,
    n: u16,
    args: &'a RequestsArgs,
    conversation: ConversationId,
    drafts: Drafts,
}

impl<'a> Subject<'a> {
    /// A new conversation, whatever earlier runs have left in the table.
    pub(super) async fn create(store: &'a DynamoStore, n: u16, args: &'a RequestsArgs) -> Result<Self> {
        let conversation = setup::conversation(&format!("bench-{n}-{:x}", now_ms()))?;
        let subject = Self { store, n, args, conversation, drafts: Drafts::new()? };
        let server = subject.server();
        for _ in 0..FILL {
            server.append(&subject.conversation, subject.drafts.next()?).await?;
        }
        let reached = server.view(&subject.conversation).await?.map(|view| view.n);
        ensure!(reached == Some(n), "the conversation is spread over {reached:?} partitions, not over {n}");
        server.shut_down().await;
        Ok(subject)
    }

    /// A server that knows nothing yet and keeps no rows in memory. Its tickets cost DynamoDB nothing, wherever they
    /// come from, so they come from its own process.
    fn server(&self) -> Conversations {
        setup::uncached_service(Arc::new(self.store.clone()), setup::fixed(self.n))
    }

    pub(super) async fn measure(&self, lines: &mut Vec<Line>) -> Result<()> {
        lines.push(self.append().await?);
        lines.push(self.append_batches().await?);
        lines.push(self.first_newest().await?);
        let reader = self.server();
        self.newest_page(&reader).await?;
        lines.push(self.newest(&reader).await?);
        lines.push(self.older(&reader).await?);
        reader.shut_down().await;
        Ok(())
    }

    fn tally(&self) -> Tally {
        Tally::of(self.store.metrics())
    }

    /// One message after the other, by a server that has to make the conversation known to its registry first.
    async fn append(&self) -> Result<Line> {
        self.appending(Operation::Append, self.args.messages, async |server| {
            server.append(&self.conversation, self.drafts.next()?).await?;
            Ok(())
        })
        .await
    }

    async fn append_batches(&self) -> Result<Line> {
        self.appending(Operation::AppendBatch, self.args.messages / BATCH, async |server| {
            let drafts = (0..BATCH).map(|_| self.drafts.next()).collect::<Result<Vec<Draft>>>()?;
            for appended in server.append_batch(&self.conversation, drafts).await {
                appended?;
            }
            Ok(())
        })
        .await
    }

    /// The whole life of a server, so that what it does in the background is counted to its end.
    async fn appending(
        &self,
        operation: Operation,
        operations: u32,
        append: impl AsyncFn(&Conversations) -> Result<()>,
    ) -> Result<Line> {
        let (before, server) = (self.tally(), self.server());
        for _ in 0..operations {
            append(&server).await?;
        }
        server.shut_down().await;
        let leases = server.metrics().extensions.get();
        Ok(Line { operation, n: self.n, operations, leases, asked: self.tally().since(before) })
    }

    async fn first_newest(&self) -> Result<Line> {
        let mut servers = (0..STRANGERS).map(|_| self.server());
        self.reading(Operation::FirstNewestPage, STRANGERS, async || match servers.next() {
            Some(server) => self.newest_page(&server).await,
            None => Ok(()),
        })
        .await
    }

    async fn newest(&self, reader: &Conversations) -> Result<Line> {
        self.reading(Operation::NewestPage, self.args.pages, async || self.newest_page(reader).await).await
    }

    /// Anywhere above the filling that leaves a full page.
    async fn older(&self, reader: &Conversations) -> Result<Line> {
        let mut rng = SplitMix64::new(1);
        let lowest = u64::from(FILL) + LIMIT as u64;
        self.reading(Operation::OlderPage, self.args.pages, async || {
            let before = lowest + rng.below(u64::from(self.args.messages));
            let page = reader.older(&self.conversation, SeqNo::new(before), LIMIT).await?;
            full(page.messages.len())
        })
        .await
    }

    async fn newest_page(&self, reader: &Conversations) -> Result<()> {
        full(reader.older(&self.conversation, None, LIMIT).await?.messages.len())
    }

    async fn reading(
        &self,
        operation: Operation,
        operations: u32,
        mut read: impl AsyncFnMut() -> Result<()>,
    ) -> Result<Line> {
        let before = self.tally();
        for _ in 0..operations {
            read().await?;
        }
        Ok(Line { operation, n: self.n, operations, leases: 0, asked: self.tally().since(before) })
    }
}

/// A page that is not full would look cheap.
fn full(messages: usize) -> Result<()> {
    ensure!(messages == LIMIT, "a page of {messages} messages, not of {LIMIT}");
    Ok(())
}
