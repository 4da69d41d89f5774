//! Which time zone database counts: the one in the binary, or the system's where it is newer.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::Path;

use serde_json::json;
use support::{Client, Server, saltern};
use tempfile::TempDir;

/// TZif data of a zone that is always so many hours ahead.
fn fixed(hours: i32) -> Vec<u8> {
    let block = || {
        let mut block = b"TZif2".to_vec();
        block.extend_from_slice(&[0; 15]);
        block.extend([0_u32, 0, 0, 0, 1, 4].iter().flat_map(|count| count.to_be_bytes()));
        block.extend_from_slice(&(hours * 3_600).to_be_bytes());
        block.extend_from_slice(b"\0\0LMT\0");
        block
    };
    [block(), block(), format!("\n<+{hours:02}>-{hours}\n").into_bytes()].concat()
}

/// A database in which Havana is seven hours ahead instead of five behind, Tokyo is damaged, and all else is absent.
fn database(version_file: &str, version: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join("America")).unwrap();
    std::fs::create_dir_all(folder.path().join("right/America")).unwrap();
    std::fs::write(folder.path().join("America/Havana"), fixed(7)).unwrap();
    std::fs::write(folder.path().join("right/America/Havana"), fixed(8)).unwrap();
    std::fs::write(folder.path().join("Tokyo"), b"TZif damaged").unwrap();
    std::fs::write(folder.path().join("leapseconds"), b"# no zone").unwrap();
    std::fs::write(folder.path().join(version_file), version).unwrap();
    folder
}

fn checked(zones: &Path) -> String {
    let folder = TempDir::new().unwrap();
    let output = saltern().args(["config", "check"]).env("TZDIR", zones).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("# Time zones: ")).unwrap();
    line.replace(zones.to_str().unwrap(), "TZDIR")
}

#[test]
fn config_check_says_which_database_is_in_use() {
    for (file, version) in [("tzdata.zi", "# version 2099b\n# more\nR x\n"), ("+VERSION", "2099b\n")] {
        let newer = database(file, version);
        assert_eq!(checked(newer.path()), "system database 2099b (in TZDIR)", "{file}");
    }
    let older = checked(database("tzdata.zi", "# version 2001a\n").path());
    assert!(older.starts_with("bundled database 20"), "{older}");
    assert!(older.ends_with("(the system's in TZDIR is 2001a, which is not newer)"), "{older}");
    let unknown = checked(database("tzdata.zi", "# version unknown\n").path());
    assert!(unknown.contains("bundled") && unknown.contains("does not say its version"), "{unknown}");
    let none = checked(Path::new("/no/such/folder"));
    assert!(none.contains("bundled") && none.contains("does not say its version"), "{none}");
    let empty = database("tzdata.zi", "# version 2099b\n");
    std::fs::remove_dir_all(empty.path().join("America")).unwrap();
    let empty = checked(empty.path());
    assert!(empty.contains("bundled") && empty.contains("no zone that can be read"), "{empty}");
}

/// A lunch in Havana, asked about when it is noon there by either database; and one in Tokyo, which only the binary has.
async fn boosted_at(zones: &Path) -> (String, [usize; 3]) {
    let folder = TempDir::new().unwrap();
    let mut command = saltern();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data")).env("TZDIR", zones);
    let server = Server::spawn(command).unwrap();
    let mut client = Client::connect(server.addr).await.unwrap();
    for (tenant, zone) in [("cu", "America/Havana"), ("jp", "Asia/Tokyo")] {
        let market = json!({"model": "wildcard", "time_zone": zone, "time_slots": {"lunch": ["12:00", "13:00"]}});
        assert_eq!(client.put(&format!("/v1/tenants/{tenant}"), &market).await.unwrap().status, 200);
        let event = json!({"tenant": tenant, "partner_id": "p", "delivery_areas": ["*"], "boost_score": 1.5,
            "time_slots": ["lunch"], "last_updated": 1_763_200_000_000_i64});
        let applied = client.post("/v1/campaign-events", &event).await.unwrap();
        assert_eq!(applied.json["applied"], 1, "{}", applied.json);
    }
    let mut boosted = [0; 3];
    let cases = [("cu", "2026-01-15T17:30:00Z"), ("cu", "2026-01-15T05:30:00Z"), ("jp", "2026-01-15T03:30:00Z")];
    for ((tenant, at), boosted) in cases.iter().zip(&mut boosted) {
        let question = json!({"tenant": tenant, "partner_ids": ["p"], "at": at});
        let answer = client.post("/v1/boosts/query", &question).await.unwrap();
        *boosted = answer.json["boosts"].as_array().unwrap().len();
    }
    let metrics = client.text("/metrics").await.unwrap();
    let info = metrics.lines().find(|line| line.starts_with("saltern_time_zone_database_info{")).unwrap();
    let info = info.to_owned();
    server.terminate();
    (info, boosted)
}

#[tokio::test]
async fn the_newer_database_decides_what_time_it_is() {
    let (info, boosted) = boosted_at(database("tzdata.zi", "# version 2099b\n").path()).await;
    assert_eq!(info, r#"saltern_time_zone_database_info{source="system",version="2099b"} 1"#);
    assert_eq!(boosted, [0, 1, 1]);
    let (info, boosted) = boosted_at(database("tzdata.zi", "# version 2001a\n").path()).await;
    assert!(info.starts_with(r#"saltern_time_zone_database_info{source="bundled",version="20"#), "{info}");
    assert_eq!(boosted, [1, 0, 1]);
}
