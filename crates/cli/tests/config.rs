//! The configuration as people meet it: through `saltern config check`.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::Path;
use std::process::Output;

use rstest::rstest;
use support::{plain_failure, saltern};
use tempfile::TempDir;

/// `printf %s secret | sha256sum`
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

fn folder(file: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("saltern.toml"), file).unwrap();
    folder
}

fn check(folder: &Path, env: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = saltern();
    command.args(["config", "check"]).args(args).envs(env.iter().copied()).current_dir(folder).output().unwrap()
}

fn effective(folder: &Path, env: &[(&str, &str)], args: &[&str]) -> String {
    let output = check(folder, env, args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The value and the source of a key, as printed.
fn line(toml: &str, key: &str) -> String {
    let line = toml.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn without_anything_the_defaults_hold() {
    let folder = TempDir::new().unwrap();
    let toml = effective(folder.path(), &[], &[]);
    assert_eq!(line(&toml, "listen"), r#"listen = "127.0.0.1:8080" # default"#);
    assert_eq!(line(&toml, "data"), r#"data = "./saltern-data" # default"#);
    assert_eq!(line(&toml, "appends_max"), "appends_max = 4096 # default");
    assert_eq!(line(&toml, "cache_mib"), "cache_mib = 128 # default");
    let again = self::folder(&toml);
    assert_eq!(line(&effective(again.path(), &[], &[]), "append_ms"), "append_ms = 10000 # saltern.toml:18");
}

#[test]
fn a_binary_without_cloud_mode_says_so() {
    let folder = TempDir::new().unwrap();
    let error = plain_failure(&check(folder.path(), &[("SALTERN_MODE", "cloud")], &[]));
    assert_eq!(
        error,
        "error: SALTERN_MODE: this binary was built without the cloud mode; build it with --features cloud"
    );
}

#[test]
fn passwords_are_not_shown() {
    let folder = folder("[redis]\nurl = 'redis://app:secret@10.0.0.1:6379'\n");
    let toml = effective(folder.path(), &[], &[]);
    let redis = &toml[toml.find("[redis]").unwrap()..];
    assert_eq!(line(redis, "url"), r#"url = "redis://…@10.0.0.1:6379" # saltern.toml:2"#);
}

#[test]
fn file_is_overridden_by_variables_and_those_by_flags() {
    let folder = folder("listen = '127.0.0.1:1'\ndata = 'file'\n[limits]\nreads_max = 1_1\nappends_max = 11\n");
    let env = [("SALTERN_LISTEN", "127.0.0.1:2"), ("SALTERN_DATA", "env"), ("SALTERN_LIMITS_READS_MAX", "22")];
    let toml = effective(folder.path(), &env, &["--data", "flag"]);
    assert_eq!(line(&toml, "appends_max"), "appends_max = 11 # saltern.toml:5");
    assert_eq!(line(&toml, "reads_max"), "reads_max = 22 # SALTERN_LIMITS_READS_MAX");
    assert_eq!(line(&toml, "listen"), r#"listen = "127.0.0.1:2" # SALTERN_LISTEN"#);
    assert_eq!(line(&toml, "data"), r#"data = "flag" # --data"#);
}

#[test]
fn the_variables_of_other_things_are_no_settings() {
    let folder = TempDir::new().unwrap();
    effective(folder.path(), &[("SALTERN_LOG", "debug"), ("SALTERN_KEY", "k")], &[]);
}

#[test]
fn api_keys_open_the_door_and_their_hashes_are_not_shown() {
    let key = format!("[[api_keys]]\nname = 'ops'\nsha256 = '{HASH}'\nscopes = ['admin', 'messages:read']\n");
    let folder = folder(&key);
    let toml = effective(folder.path(), &[], &["--listen", "0.0.0.0:8080"]);
    assert!(toml.contains("sha256 = \"2bb80d53…\""), "{toml}");
    assert!(toml.contains(r#"scopes = ["admin", "messages:read"]"#), "{toml}");
    assert!(!toml.contains(&HASH[..16]), "{toml}");
}

#[rstest]
#[case::unknown_key("listen = '127.0.0.1:1'\nlisten_on = 'x'", &["saltern.toml:2", "unknown key", "listen_on"])]
#[case::unknown_in_section("[limits]\n\nwrites_max = 1", &["saltern.toml:3", "unknown key", "limits.writes_max"])]
#[case::unknown_section("[limit]\nappends_max = 1", &["saltern.toml:1", "unknown key", "limit"])]
#[case::section_as_value("limits = 3", &["saltern.toml:1", "limits"])]
#[case::value_as_section("[listen]\nx = 1", &["saltern.toml:1", "listen"])]
#[case::not_toml("listen = \n", &["saltern.toml:1"])]
#[case::twice("data = 'a'\ndata = 'b'", &["saltern.toml:2", "data"])]
#[case::zero("[limits]\nappends_max = 0", &["saltern.toml:2", "limits.appends_max", "from 1"])]
#[case::negative("[timeouts]\nread_ms = -5", &["saltern.toml:2", "timeouts.read_ms", "-5"])]
#[case::fraction("[timeouts]\nread_ms = 1.5", &["saltern.toml:2", "timeouts.read_ms"])]
#[case::address("listen = 'localhost'", &["saltern.toml:1", "127.0.0.1:8080", "localhost"])]
#[case::format("log_format = 'xml'", &["saltern.toml:1", "`json`", "xml"])]
#[case::open_door("listen = '0.0.0.0:80'", &["saltern.toml:1", "0.0.0.0:80", "api_keys"])]
#[case::open_door_v6("listen = '[::]:80'", &["saltern.toml:1", "[::]:80", "api_keys"])]
#[case::short_hash("[[api_keys]]\nname='a'\nsha256='abc'\nscopes=['admin']", &["saltern.toml:1", "`a`", "64 hex"])]
#[case::unknown_in_key("[[api_keys]]\nname='a'\nkey='abc'", &["saltern.toml:3", "unknown key", "key"])]
#[case::no_hash("[[api_keys]]\nname='a'\nscopes=['admin']", &["saltern.toml:1", "sha256"])]
fn a_bad_file_is_one_plain_line(#[case] file: &str, #[case] told: &[&str]) {
    let folder = folder(file);
    let error = plain_failure(&check(folder.path(), &[], &[]));
    for told in told {
        assert!(error.contains(told), "{told:?} is not in {error:?}");
    }
}

#[rstest]
#[case::hash_digits("sha256", &"g".repeat(64), "64 hex")]
#[case::hash_sign("sha256", &"+1".repeat(32), "64 hex")]
#[case::scope("scopes", "everything", "unknown scope")]
#[case::name("name", "", "name must not be empty")]
fn a_bad_key_is_one_plain_line(#[case] field: &str, #[case] value: &str, #[case] told: &str) {
    let or = |name: &str, good: &str| if name == field { value.to_owned() } else { good.to_owned() };
    let (name, hash, scope) = (or("name", "a"), or("sha256", HASH), or("scopes", "admin"));
    let folder = folder(&format!("[[api_keys]]\nname = '{name}'\nsha256 = '{hash}'\nscopes = ['{scope}']\n"));
    let error = plain_failure(&check(folder.path(), &[], &[]));
    assert!(error.contains(told) && error.contains("saltern.toml:1"), "{error}");
}

#[rstest]
#[case("SALTERN_LISTN", "x", "unknown variable SALTERN_LISTN")]
#[case("SALTERN_LIMITS_APPENDS_MAX", "many", "SALTERN_LIMITS_APPENDS_MAX: limits.appends_max must be a whole number")]
#[case("SALTERN_DATA", "", "SALTERN_DATA: data must name a folder")]
fn a_bad_variable_is_one_plain_line(#[case] name: &str, #[case] value: &str, #[case] told: &str) {
    let folder = TempDir::new().unwrap();
    let error = plain_failure(&check(folder.path(), &[(name, value)], &[]));
    assert!(error.contains(told), "{error}");
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let folder = TempDir::new().unwrap();
    let error = plain_failure(&check(folder.path(), &[], &["--config", "other.toml"]));
    assert!(error.contains("other.toml"), "{error}");
}

#[test]
fn wrong_usage_is_status_2() {
    let folder = TempDir::new().unwrap();
    for args in [&["--listen", "nowhere"][..], &["--log-format", "xml"], &["--data"], &["--frobnicate"]] {
        assert_eq!(check(folder.path(), &[], args).status.code(), Some(2), "{args:?}");
    }
}
