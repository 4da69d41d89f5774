//! DynamoDB Local: one process for all tests of this binary, one table for each.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

const FOLDER: &str = "SALTERN_DYNAMODB_LOCAL";
const START_MAX: Duration = Duration::from_secs(60);

/// Ends the server, by its id, when the other end of its standard input is gone: however the tests end, by a panic or
/// a kill too, no server stays behind.
const ENDS_WITH_US: &str = r#"
    "$@" </dev/null &
    server=$!
    trap 'kill $server 2>/dev/null' EXIT
    read -r _
"#;

struct DynamoLocal {
    endpoint: String,
    _process: Child,
    _lifeline: ChildStdin,
}

impl DynamoLocal {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<DynamoLocal> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
            panic!("{FOLDER} is not set; run scripts/test, which fetches DynamoDB Local");
        };
        let port = free_port();
        let mut process = Command::new("sh")
            .args(["-c", ENDS_WITH_US, "sh", "java"])
            .arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()))
            .args(["-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb", "-disableTelemetry", "-port"])
            .arg(port.to_string())
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let lifeline = process.stdin.take().expect("its standard input is ours");
        let give_up = Instant::now() + START_MAX;
        while !answers(port) {
            assert!(Instant::now() < give_up, "DynamoDB Local in {} did not start", folder.display());
            sleep(Duration::from_millis(50));
        }
        Self { endpoint: format!("http://127.0.0.1:{port}"), _process: process, _lifeline: lifeline }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let mut head = [0; 5];
    asked.and_then(|()| stream.read_exact(&mut head)).is_ok() && head == *b"HTTP/"
}

/// A store on a table that is not there yet.
pub(crate) async fn store_without_table(table: &str) -> DynamoStore {
    let options = DynamoOptions {
        messages_table: table.into(),
        endpoint: Some(DynamoLocal::shared().endpoint.clone()),
        // A cold engine on a busy machine is slow, and none of these tests is about time.
        call_timeout: Duration::from_secs(30),
        ..DynamoOptions::default()
    };
    DynamoStore::connect(options).await.expect("an address is all it takes")
}

/// A store on a new table of this name.
pub(crate) async fn store(table: &str) -> DynamoStore {
    let store = store_without_table(table).await;
    store.create_tables().await.expect("the table is created");
    store
}

/// A store on an address of this test's own.
pub(crate) async fn store_at(endpoint: String, call_timeout: Duration) -> DynamoStore {
    let options = DynamoOptions { endpoint: Some(endpoint), call_timeout, ..DynamoOptions::default() };
    DynamoStore::connect(options).await.expect("an address is all it takes")
}

/// A client that goes past the store.
pub(crate) fn client() -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(&DynamoLocal::shared().endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
