//! `saltern inspect`: a conversation as an operator wants to see it.

mod ask;
mod report;

use anyhow::{Result, bail};
use saltern_core::ids::ConversationId;

use crate::args::InspectArgs;
use crate::out;

pub(crate) async fn inspect(args: &InspectArgs) -> Result<()> {
    let conversation = match ConversationId::new(&args.conversation) {
        Ok(conversation) => conversation,
        Err(e) => bail!("CONVERSATION {e}"),
    };
    let view = match &args.target.url {
        Some(url) => ask::server(url, args.target.key.as_deref(), &conversation).await?,
        None => ask::folder(args, &conversation).await?,
    };
    let Some(view) = view else {
        bail!(
            "no conversation {:?}: nothing has been appended to it; check the id (upper and lower case differ)",
            args.conversation
        )
    };
    let report = report::Report::new(&conversation, &view)?;
    if args.json {
        out::line(serde_json::to_string(&report)?)?;
    } else {
        out::print(&report)?;
    }
    Ok(())
}
