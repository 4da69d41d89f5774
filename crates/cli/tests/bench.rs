//! What `saltern bench` counts, in its smallest run: figures that no machine can change.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

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
