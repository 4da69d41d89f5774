//! `saltern verify`: everything that is kept, held against the promises.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use saltern_core::verify::Fault;
use saltern_service::verify::{Checked, Notice};
use serde::Serialize;

use crate::args::{ConfigArgs, VerifyArgs};
use crate::config::Config;
use crate::service::Service;
use crate::status::StatusLine;
use crate::table::thousands;

#[derive(Serialize)]
struct FaultLine<'a> {
    fault: &'a str,
    detail: String,
}

#[derive(Serialize)]
struct Summary {
    conversations: u64,
    rows: u64,
    claims: u64,
    faults: u64,
    seconds: f64,
}

pub(crate) async fn verify(args: &VerifyArgs) -> Result<()> {
    let (config, data) = (args.config.clone(), args.data.clone());
    let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
    let service = Service::open_present(&config).await?;
    let mut report = Report { json: args.json, began: Instant::now(), status: StatusLine::new() };
    let checked = service.verifier(&config).run(|notice| report.take(&notice)).await;
    report.status.clear();
    let place = service.place(&config);
    service.close().await;
    let checked = checked.context("the store cannot be read")?;
    report.end(checked, &place)?;
    if checked.faults > 0 {
        bail!("{} faults were found", thousands(checked.faults as f64));
    }
    Ok(())
}

/// Faults on standard output as they are found; how far it is, on standard error.
struct Report {
    json: bool,
    began: Instant,
    status: StatusLine,
}

impl Report {
    fn take(&mut self, notice: &Notice) {
        match notice {
            Notice::Fault(fault) => self.fault(fault),
            Notice::Progress(checked) => self.progress(*checked),
        }
    }

    fn fault(&mut self, fault: &Fault) {
        self.status.clear();
        if self.json {
            let line = FaultLine { fault: fault.name(), detail: fault.to_string() };
            println!("{}", serde_json::to_string(&line).unwrap_or_default());
        } else {
            println!("{}: {fault}", fault.name());
        }
    }

    fn progress(&mut self, checked: Checked) {
        let seconds = self.began.elapsed().as_secs_f64();
        self.status.show(|| {
            let looked_at = (checked.conversations + checked.rows + checked.claims) as f64;
            let [rows, rate, faults] = [looked_at, looked_at / seconds, checked.faults as f64].map(thousands);
            format!("{rows} rows looked at  {rate}/s  {faults} faults")
        });
    }

    fn end(&self, checked: Checked, place: &str) -> Result<()> {
        let Checked { conversations, rows, claims, faults } = checked;
        let seconds = self.began.elapsed().as_secs_f64();
        if self.json {
            println!("{}", serde_json::to_string(&Summary { conversations, rows, claims, faults, seconds })?);
            return Ok(());
        }
        let [conversations, rows, claims] = [conversations, rows, claims].map(|count| thousands(count as f64));
        let found = if faults == 0 { "no fault".to_owned() } else { format!("{} faults", thousands(faults as f64)) };
        println!(
            "{place}: {conversations} conversations, {rows} messages and voids, {claims} claims: {found} ({seconds:.1} s)"
        );
        Ok(())
    }
}
