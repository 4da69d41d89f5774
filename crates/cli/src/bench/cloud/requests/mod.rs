//! `bench requests`: calls and units of appends and pages, at one partition and at five.

mod report;
mod subject;
mod tally;

use std::time::Duration;

use anyhow::{Context as _, Result};
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

use self::report::Report;
use self::subject::Subject;
use super::backends::Backend;
use crate::args::RequestsArgs;
use crate::bench::progress;

const SPREADS: [u16; 2] = [1, 5];
/// A call that is cut short is made again, and would count twice.
const CALL_MAX: Duration = Duration::from_secs(30);

pub(in crate::bench) async fn requests(args: &RequestsArgs) -> Result<()> {
    let (server, endpoint) = match &args.endpoint {
        Some(endpoint) => (None, endpoint.clone()),
        None => {
            let server = Backend::dynamodb_local().await?;
            let endpoint = server.url("http");
            (Some(server), endpoint)
        }
    };
    let options = DynamoOptions {
        messages_table: args.table.clone(),
        endpoint: Some(endpoint),
        call_timeout: CALL_MAX,
        ..DynamoOptions::default()
    };
    let store = DynamoStore::connect(options).await.context("--endpoint")?;
    store.create_tables().await?;
    let mut lines = Vec::new();
    for n in SPREADS {
        progress(&format!("requests at N = {n}"));
        Subject::create(&store, n, args).await?.measure(&mut lines).await?;
    }
    progress("");
    drop(server);
    Report::new(args, lines).print(args.json)
}
