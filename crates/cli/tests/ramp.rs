//! `saltern ramp` and `serve --emulate-limits`: what partitions of 1,000 write units do to a conversation.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use rstest::rstest;
use serde_json::Value;
use support::{Client, Server, append_body, run, saltern};
use tempfile::TempDir;

/// A run of the real binary in an empty folder, which is empty again afterwards.
fn ramp(args: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let output = run(folder.path(), &[&["ramp", "--json"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.lines().any(|line| line.contains("busiest partition")), "{stderr}");
    assert!(!stderr.contains('\x1b'), "no terminal, no picture: {stderr}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.lines().count(), 1);
    serde_json::from_str(&stdout).unwrap()
}

fn nothing_lost_or_doubled(report: &Value) {
    assert!(report["acked"].as_u64().unwrap() > 0);
    assert_eq!(
        (report["read_back"].as_u64(), report["lost"].as_u64()),
        (report["acked"].as_u64(), Some(0)),
        "{report}"
    );
    assert_eq!(report["doubled"], 0);
}

#[test]
fn a_small_ramp_fits_one_partition() {
    let report = ramp(&["--peak", "400", "--duration", "8"]);
    nothing_lost_or_doubled(&report);
    let steps = report["steps"].as_array().unwrap();
    let offered: Vec<_> = steps.iter().map(|step| step["offered_wcu_per_s"].as_f64().unwrap()).collect();
    assert_eq!(offered, [20.0, 90.0, 220.0, 400.0]);
    for step in steps {
        for field in ["acked_per_s", "max_partition_wcu_per_s", "p99_ms"] {
            assert!(step[field].as_f64().unwrap() > 0.0, "{field} of {step}");
        }
        assert_eq!((&step["n"], &step["throttled"]), (&1.into(), &0.into()), "{step}");
    }
    // 2 s each.
    assert_eq!(report["acked"].as_u64(), Some(2 * (20 + 90 + 220 + 400)));
}

#[test]
fn without_salting_a_hot_conversation_is_throttled_but_loses_nothing() {
    let report = ramp(&["--fixed-n", "1", "--peak", "4000", "--duration", "12"]);
    nothing_lost_or_doubled(&report);
    let last = &report["steps"][3];
    assert_eq!(last["n"], 1);
    assert!(last["throttled"].as_u64().unwrap() > 0, "{last}");
    // The partition's limit holds, whatever is offered.
    assert!(last["acked_per_s"].as_f64().unwrap() < 1_600.0, "{last}");
}

#[rstest]
#[case(&["--fixed-n", "0"])]
#[case(&["--fixed-n", "257"])]
#[case(&["--peak", "0"])]
#[case(&["--duration", "7"])]
#[case(&["--physical-partitions", "0"])]
#[case(&["--physical-partitions", "1000001"])]
fn wrong_usage_is_status_2(#[case] args: &[&str]) {
    let output = saltern().arg("ramp").args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn a_server_with_emulated_limits_delays_what_does_not_fit_and_tells() {
    let folder = TempDir::new().unwrap();
    let mut command = saltern();
    command.args(["serve", "--emulate-limits", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    command.env("SALTERN_EMULATE_PHYSICAL_PARTITIONS", "1").env("SALTERN_EMULATE_BURST_S", "0");
    let server = Server::spawn(command).unwrap_or_else(|o| panic!("{}", String::from_utf8_lossy(&o.stderr)));
    let mut client = Client::connect(server.addr).await.unwrap();
    // Rows and claims, 2,400 write units, where a second has 1,000 and one is saved.
    for batch in 0..3 {
        let messages: Vec<_> = (0..400).map(|i| append_body(&format!("{batch}-{i}"), "hey")).collect();
        let answer = client.batch("tea", &messages).await.unwrap();
        assert!(answer.json["results"].as_array().unwrap().iter().all(|r| r["seq_no"].is_u64()), "{}", answer.json);
    }
    let hot = client.get("/v1/hot").await.unwrap().json;
    let line = &hot["conversations"][0];
    assert_eq!(line["conversation_id"], "tea", "{hot}");
    assert!(line["throttles"].as_u64().unwrap() > 0, "{hot}");
    let page = client.newer("tea", 0).await.unwrap().unwrap();
    assert_eq!(page.messages.len(), 200);
    server.terminate();
}
