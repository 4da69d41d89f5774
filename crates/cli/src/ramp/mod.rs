//! `saltern ramp`: the story in one command. One conversation goes from 200 to 4,000 writes per second over partitions that
//! take 1,000 each, and is read back in the end.

mod gauge;
mod load;
mod plan;
mod report;
mod stage;
mod verify;
mod view;

use anyhow::{Result, bail};

use self::plan::Plan;
use self::report::Report;
use self::stage::Stage;
use self::verify::verify;
use self::view::View;
use crate::args::RampArgs;
use crate::scratch::Scratch;
use crate::stop::droppable;

pub(crate) async fn ramp(args: &RampArgs) -> Result<()> {
    droppable(run(args)).await
}

async fn run(args: &RampArgs) -> Result<()> {
    let scratch = Scratch::create(args.data.as_deref())?;
    let plan = Plan::new(args);
    let mut stage = Stage::open(&scratch, args)?;
    let mut view = View::new(&plan);
    let mut steps = Vec::new();
    for index in 0..plan.steps.len() {
        steps.push(stage.play(&plan, index, &mut view).await);
    }
    view.end("waiting for what is under way, then reading everything back");
    let outcome = stage.settle().await;
    let verified = verify(&outcome).await?;
    let report = Report::new(args, steps, &outcome, verified);
    report.print(args.json)?;
    if verified.lost + verified.doubled > 0 {
        bail!("{} acknowledged messages were lost and {} doubled", verified.lost, verified.doubled);
    }
    Ok(())
}
