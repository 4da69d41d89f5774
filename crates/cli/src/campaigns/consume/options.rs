//! The settings of the Kafka client: ours, then those of a file, then those of the command line.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use crate::args::ConsumeArgs;

/// Sensible, and anyone may know better.
const DEFAULTS: &[(&str, &str)] = &[
    // A group that is new begins with all that there is: events are put in order here.
    ("auto.offset.reset", "earliest"),
    ("auto.commit.interval.ms", "1000"),
    ("partition.assignment.strategy", "cooperative-sticky"),
    // Reading far ahead costs memory, and is for nothing when a partition is paused.
    ("queued.min.messages", "2000"),
    ("queued.max.messages.kbytes", "8192"),
    // How long it then waits before it reads on; its own second would leave us idle.
    ("fetch.queue.backoff.ms", "20"),
    ("statistics.interval.ms", "5000"),
    ("client.id", "saltern"),
];
/// What the promise rests on: the client commits what it was told to, and nothing else.
const OURS: &[(&str, &str)] = &[("enable.auto.commit", "true"), ("enable.auto.offset.store", "false")];
/// Have flags of their own.
const FLAGS: &[(&str, &str)] =
    &[("bootstrap.servers", "--brokers"), ("metadata.broker.list", "--brokers"), ("group.id", "--group")];

pub(super) fn client_config(args: &ConsumeArgs) -> Result<ClientConfig> {
    let mut config = ClientConfig::new();
    config.set_log_level(RDKafkaLogLevel::Info);
    for (name, value) in DEFAULTS {
        config.set(*name, *value);
    }
    if let Some(file) = &args.kafka_config {
        for (name, value) in read(file)? {
            set(&mut config, &name, &value).with_context(|| format!("{}", file.display()))?;
        }
    }
    for option in &args.kafka_options {
        let (name, value) = option.split_once('=').with_context(|| format!("--kafka-option {option}: no = in it"))?;
        set(&mut config, name.trim(), value.trim()).context("--kafka-option")?;
    }
    // The newer protocol has no strategies on the client's side.
    if config.get("group.protocol") == Some("consumer") {
        config.remove("partition.assignment.strategy");
    }
    for (name, value) in OURS {
        config.set(*name, *value);
    }
    config.set("bootstrap.servers", &args.brokers).set("group.id", &args.group);
    config.create_native_config().context("Kafka client settings")?;
    Ok(config)
}

fn set(config: &mut ClientConfig, name: &str, value: &str) -> Result<()> {
    if OURS.iter().any(|(ours, _)| *ours == name) {
        bail!("{name} cannot be changed: offsets are kept behind what has been written");
    }
    if let Some((_, flag)) = FLAGS.iter().find(|(flagged, _)| *flagged == name) {
        bail!("{name}: use {flag}");
    }
    ensure!(!name.is_empty(), "a setting without a name");
    config.set(name, value);
    Ok(())
}

/// `name=value` lines; `#` begins a comment.
fn read(file: &Path) -> Result<Vec<(String, String)>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(line, number)| {
            let (name, value) = line.split_once('=').with_context(|| format!("{shown}:{number}: no = in it"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::TargetArgs;

    fn with(options: &[&str], file: Option<&Path>) -> Result<ClientConfig> {
        client_config(&ConsumeArgs {
            brokers: "127.0.0.1:9092".into(),
            topics: vec!["events".into()],
            group: "saltern".into(),
            kafka_options: options.iter().map(|option| (*option).to_owned()).collect(),
            kafka_config: file.map(Path::to_owned),
            metrics: None,
            log_format: None,
            target: TargetArgs::default(),
        })
    }

    #[test]
    fn later_settings_win_but_for_what_the_promise_rests_on() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("kafka.properties");
        std::fs::write(&file, "# secret\n\nclient.id = a\nauto.offset.reset=latest\n").unwrap();
        let config = with(&["client.id=b=c"], Some(&file)).unwrap();
        let value = |name| config.get(name).unwrap();
        assert_eq!((value("client.id"), value("auto.offset.reset")), ("b=c", "latest"));
        assert_eq!((value("enable.auto.offset.store"), value("group.id")), ("false", "saltern"));
        for (option, told) in [
            ("enable.auto.commit=false", "cannot be changed"),
            ("enable.auto.offset.store=true", "cannot be changed"),
            ("group.id=x", "--group"),
            ("no.such.thing=1", "no.such.thing"),
            ("fetch.wait.max.ms=soon", "fetch.wait.max.ms"),
            ("=x", "without a name"),
            ("client.id", "no ="),
        ] {
            let error = format!("{:#}", with(&[option], None).unwrap_err());
            assert!(error.contains(told), "{option}: {error}");
        }
        std::fs::write(&file, "client.id\n").unwrap();
        assert!(format!("{:#}", with(&[], Some(&file)).unwrap_err()).contains(":1: no ="));
    }
}
