//! `saltern verify`: everything that is kept, held against the promises.

use std::fmt::Display;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use hyper::StatusCode;
use saltern_service::verify::{Checked, Notice};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::{ConfigArgs, VerifyArgs};
use crate::config::Config;
use crate::http::{self, ServerUrl};
use crate::out;
use crate::printable::Printable;
use crate::service::Service;
use crate::status::StatusLine;
use crate::table::thousands;

#[derive(Serialize, Deserialize)]
struct FaultLine<T> {
    fault: T,
    detail: String,
}

#[derive(Serialize)]
struct Summary {
    conversations: u64,
    rows: u64,
    claims: u64,
    archived: u64,
    faults: u64,
    seconds: f64,
}

pub(crate) async fn verify(args: &VerifyArgs) -> Result<()> {
    let mut report = Report { json: args.json, began: Instant::now(), status: StatusLine::new(), unprinted: None };
    let (checked, place) = match &args.target.url {
        Some(url) => (there(url, args.target.key.as_deref(), &mut report).await?, url.clone()),
        None => here(args, &mut report).await?,
    };
    report.status.clear();
    report.end(checked, &place)?;
    if checked.faults > 0 {
        bail!("{} faults were found", thousands(checked.faults as f64));
    }
    Ok(())
}

/// The data that the configuration names.
async fn here(args: &VerifyArgs, report: &mut Report) -> Result<(Checked, String)> {
    let (config, data) = (args.target.config.clone(), args.target.data.clone());
    let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
    let service = Service::open_present(&config).await?;
    let checked = service.verifier(&config).run(|notice| report.take(&notice)).await;
    let place = service.place(&config);
    service.close().await;
    Ok((checked.context("the store cannot be read")?, place))
}

#[derive(Deserialize)]
struct Part {
    conversations: u64,
    rows: u64,
    claims: u64,
    archived: u64,
    faults: Vec<FaultLine<String>>,
    resume: Option<Value>,
}

/// What a running server has, part by part.
async fn there(url: &str, key: Option<&str>, report: &mut Report) -> Result<Checked> {
    let address = ServerUrl::parse(url)?;
    let (mut checked, mut resume) = (Checked::default(), None::<Value>);
    loop {
        let order = Bytes::from(json!({ "resume": resume }).to_string());
        let stream = address.connect().await?;
        let part = http::over(stream, async |mut sender| {
            let mut request = http::post("/v1/verify".parse()?, order);
            address.address(&mut request, key)?;
            match http::send(&mut sender, request).await? {
                (StatusCode::OK, body) => serde_json::from_slice::<Part>(&body)
                    .context("the answer is not JSON that a Saltern server sends; check --url"),
                (status, body) => bail!("{status}: {}", http::reason(&body)),
            }
        });
        let part = part.await.with_context(|| format!("request to {url} failed"))?;
        checked.conversations += part.conversations;
        checked.rows += part.rows;
        checked.claims += part.claims;
        checked.archived += part.archived;
        checked.faults += part.faults.len() as u64;
        part.faults.iter().for_each(|line| report.fault(line));
        report.progress(checked);
        resume = part.resume;
        if resume.is_none() {
            return Ok(checked);
        }
    }
}

/// Faults on standard output as they are found; how far it is, on standard error.
struct Report {
    json: bool,
    began: Instant,
    status: StatusLine,
    /// Why a fault could not be printed: the check goes on, and fails in the end.
    unprinted: Option<anyhow::Error>,
}

impl Report {
    fn print(&mut self, line: impl Display) {
        if self.unprinted.is_none() {
            self.unprinted = out::line(line).err();
        }
    }

    fn take(&mut self, notice: &Notice) {
        match notice {
            Notice::Fault(fault) => self.fault(&FaultLine { fault: fault.name(), detail: fault.to_string() }),
            Notice::Progress(checked) => self.progress(*checked),
        }
    }

    fn fault<T: AsRef<str> + Serialize>(&mut self, line: &FaultLine<T>) {
        self.status.clear();
        if self.json {
            self.print(serde_json::to_string(line).unwrap_or_default());
        } else {
            self.print(format_args!("{}: {}", line.fault.as_ref(), Printable(&line.detail)));
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

    fn end(&mut self, checked: Checked, place: &str) -> Result<()> {
        if let Some(error) = self.unprinted.take() {
            return Err(error);
        }
        let Checked { conversations, rows, claims, archived, faults } = checked;
        let seconds = self.began.elapsed().as_secs_f64();
        if self.json {
            let summary = Summary { conversations, rows, claims, archived, faults, seconds };
            return out::line(serde_json::to_string(&summary)?);
        }
        let [conversations, rows, claims, archived] =
            [conversations, rows, claims, archived].map(|count| thousands(count as f64));
        let found = match faults {
            0 => "no fault".to_owned(),
            1 => "one fault".to_owned(),
            faults => format!("{} faults", thousands(faults as f64)),
        };
        out::line(format_args!(
            "{place}: {found}; conversations: {conversations}, messages and voids: {rows}, claims: {claims}, \
             archived contents: {archived} ({seconds:.1} s)"
        ))?;
        Ok(())
    }
}
