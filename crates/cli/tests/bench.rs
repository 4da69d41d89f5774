//! What `saltern bench` counts, in its smallest run: figures that no machine can change.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// The line of a design at an n, for one kind of page.
fn line<'a>(report: &'a Value, design: &str, n: u16, page: &str) -> &'a Value {
    let lines = report["reads"]["counts"].as_array().unwrap();
    let is_it = |line: &&Value| line["design"] == design && line["n"] == n && line["page"] == page;
    lines.iter().find(is_it).unwrap_or_else(|| panic!("no line for {design}, {n}, {page}: {report}"))
}

#[test]
fn pages_ask_for_what_they_return_and_the_classic_design_for_a_page_of_every_partition() {
    let folder = TempDir::new().unwrap();
    let args =
        ["bench", "partitions", "--only", "reads", "--pages", "50", "--messages", "400", "--runs", "1", "--json"];
    let output = support::run(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["writes"].is_null() && report["hot"].is_null());

    for n in [1, 4, 10, 40] {
        let older = line(&report, "saltern", n, "older");
        assert!(older["partitions"]["max"].as_u64().unwrap() <= 2, "{older}");
        assert_eq!((&older["rows"]["max"], &older["rows"]["mean"]), (&20.into(), &20.0.into()), "{older}");
    }
    for (n, rows) in [(1, 20), (4, 80), (10, 200)] {
        let newest = line(&report, "classic", n, "newest");
        assert_eq!((&newest["partitions"]["max"], &newest["rows"]["max"]), (&n.into(), &rows.into()), "{newest}");
    }
    for n in [4, 10, 40] {
        let cool = line(&report, "saltern", n, "newest_after_cool_down");
        assert_eq!((&cool["partitions"]["max"], &cool["rows"]["max"]), (&1.into(), &21.into()), "{cool}");
        assert_eq!(line(&report, "classic", n, "newest_after_cool_down")["partitions"]["max"], n);
    }
    assert_eq!(report["reads"]["latency"].as_array().unwrap().len(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary folder is still there");
}

/// Whoever stops a measurement finds neither its folder nor its server again.
#[rstest]
#[case("INT", "interrupted")]
#[case("TERM", "terminated")]
fn a_measurement_that_is_told_to_end_leaves_nothing(#[case] signal: &str, #[case] told: &str) {
    let folder = TempDir::new().unwrap();
    let mut command = support::saltern();
    command.args(["bench", "volume", "--data"]).arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut bench = command.spawn().unwrap();
    let is_served = || {
        let mut scratches = std::fs::read_dir(folder.path()).unwrap();
        scratches.any(|scratch| scratch.unwrap().path().join("data/log/1.log").exists())
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_served() {
        assert!(Instant::now() < patience && bench.try_wait().unwrap().is_none(), "never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill").args([format!("-{signal}"), bench.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(bench.wait().unwrap().code(), Some(1));
    // Ends only when the server, which has it too, has ended.
    let mut stderr = String::new();
    bench.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains(told), "{stderr}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary folder is still there");
}

/// 300 partners of which 75 serve each of 60 districts, and 4 more everywhere.
#[test]
fn searches_ask_for_whom_they_name_and_earlier_designs_for_everybody() {
    let folder = TempDir::new().unwrap();
    let size = ["--partners", "300", "--districts", "60", "--wide", "4"];
    let args = [&["bench", "boosts", "--runs", "1", "--seconds", "1", "--clients", "2", "--json"][..], &size].concat();
    let output = support::run(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let embedded = &report["stores"][0];
    assert_eq!((&report["stores"].as_array().unwrap().len(), &embedded["store"]), (&1, &"embedded".into()));

    let count = |design: &str, figure: &str| {
        let counts = embedded["counts"].as_array().unwrap();
        let line = counts.iter().find(|line| line["design"] == design).unwrap();
        line[figure].as_f64().unwrap_or_else(|| panic!("no {figure} of {design}: {line}"))
    };
    let read = |design| ["operations", "items", "partners"].map(|figure| count(design, figure));
    // One document for all day and one for the present slot, each with half of the partners.
    assert_eq!(read("v1"), [4.0, 2.0, 300.0]);
    assert_eq!(read("expansion"), [1.0, 75.0, 75.0]);
    let [operations, items, partners] = read("expansion_with_wide");
    assert!(operations == 1.0 && items == partners && (78.0..=79.0).contains(&items), "{items}");
    assert_eq!(read("saltern"), [1.0, 50.0, 50.0]);

    let written = |design| ["writes_all_day", "writes_in_slots", "writes_wide"].map(|figure| count(design, figure));
    assert_eq!(written("v1"), [7.0, 28.0, 7.0]);
    assert_eq!(written("expansion"), [15.0, 15.0, 60.0]);
    assert_eq!(written("expansion_with_wide"), [15.0, 15.0, 60.0]);
    assert_eq!(written("saltern"), [1.0, 1.0, 1.0]);
    assert!(count("v1", "bytes") > 5.0 * count("saltern", "bytes"));

    // Every answer was checked: whatever is not 50 boosts is an error.
    let lines = embedded["latency"][0]["lines"].as_array().unwrap();
    let http = report["http"].as_array().unwrap();
    let peers = usize::from(report["redis"] == true);
    assert_eq!((lines.len(), http.len()), (5 + peers, 1 + peers), "{report}");
    assert!(lines.iter().all(|line| line["errors"] == 0 && line["per_s"].as_f64().unwrap() > 0.0), "{report}");
    assert!(http.iter().all(|pair| pair["saltern"]["errors"] == 0 && pair["peer"]["errors"] == 0), "{report}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary folder is still there");
}

/// Contents are all there, on both sides of each comparison.
#[test]
fn a_pass_is_measured_beside_a_copy_and_archived_pages_beside_rows() {
    let folder = TempDir::new().unwrap();
    let args =
        ["bench", "archive", "--conversations", "2", "--messages", "600", "--runs", "1", "--seconds", "1", "--json"];
    let output = support::run(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    for comparison in comparisons {
        assert!(comparison["ratio"]["median"].as_f64().unwrap() > 0.0, "{report}");
        assert!(comparison["saltern"]["per_s"].as_f64().unwrap() > 0.0, "{report}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary folder is still there");
}

#[rstest]
#[case(&["bench", "append", "--connections", "0"])]
#[case(&["bench", "append", "--connections", "64,0"])]
#[case(&["bench", "history", "--connections", "0"])]
fn a_measurement_without_connections_is_wrong_usage(#[case] args: &[&str]) {
    let folder = TempDir::new().unwrap();
    let output = support::run(folder.path(), args);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1..=4096"), "{output:?}");
}
