//! The object adapter on S3: against Moto, and against servers that refuse, or say nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rstest::rstest;
use saltern_backends::{Moto, free_port};
use saltern_store::objects::{
    ConnectError, LIST_MAX, ObjectError, ObjectRoot, Objects, S3Error, S3Options, conformance,
};

const PATIENT: Duration = Duration::from_secs(30);
const HASTY: Duration = Duration::from_millis(700);

fn options(endpoint: String, bucket: &str) -> S3Options {
    S3Options { bucket: bucket.into(), prefix: None, endpoint: Some(endpoint), region: None, timeout: PATIENT }
}

async fn bucket(name: &str) -> ObjectRoot {
    Moto::shared().create_bucket(name);
    ObjectRoot::s3(options(Moto::shared().endpoint(), name)).await.unwrap()
}

fn is_unavailable<T>(answer: &Result<T, ObjectError>) -> bool {
    matches!(answer, Err(ObjectError::Unavailable(_)))
}

/// A server that answers every request alike, and tells what it was asked.
fn server(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (heads, asked) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let _ = heads.send(head.join("\n"));
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (endpoint, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_keeps_the_contract() {
    let objects = bucket("contract").await;
    assert_eq!(objects.root(), "s3://contract");
    objects.check().await.unwrap();
    conformance::all(Arc::new(objects)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_keeps_the_contract() {
    let whole = bucket("prefixed").await;
    let prefix = Some("/saltern/archive=1/".to_owned());
    let objects = ObjectRoot::s3(S3Options { prefix, ..options(Moto::shared().endpoint(), "prefixed") }).await.unwrap();
    assert_eq!(objects.root(), "s3://prefixed/saltern/archive=1");
    whole.put("saltern/archive=10/x", Bytes::from_static(b"another's")).await.unwrap();
    objects.check().await.unwrap();
    conformance::all(Arc::new(objects.clone())).await;

    objects.put("a/x", Bytes::from_static(b"ours")).await.unwrap();
    assert_eq!(whole.get("saltern/archive=1/a/x", None).await.unwrap(), "ours");
    let page = objects.list("", None, LIST_MAX).await.unwrap();
    assert_eq!(page.objects.into_iter().map(|info| info.name).collect::<Vec<_>>(), ["a/x"]);
}

#[tokio::test]
async fn what_marks_a_folder_is_no_object_in_it() {
    let objects = bucket("marked").await;
    Moto::shared().create_folder("marked", "a");
    objects.put("a/x", Bytes::new()).await.unwrap();
    let page = objects.list("a", None, LIST_MAX).await.unwrap();
    assert_eq!(page.objects.into_iter().map(|info| info.name).collect::<Vec<_>>(), ["a/x"]);
}

/// Nothing is told of objects by a bucket that is not there.
#[tokio::test]
async fn a_bucket_that_is_not_there_is_found_out() {
    let objects = ObjectRoot::s3(options(Moto::shared().endpoint(), "nowhere")).await.unwrap();
    let error = objects.check().await.unwrap_err();
    assert!(matches!(&error, S3Error::NoBucket(root) if root == "s3://nowhere"), "{error:?}");
    assert!(error.to_string().contains("s3://nowhere does not exist; create it"));
    assert!(is_unavailable(&objects.put("a", Bytes::new()).await));
    assert!(is_unavailable(&objects.get("a", None).await));
    assert!(is_unavailable(&objects.get("a", Some(0..1)).await));
    assert!(is_unavailable(&objects.delete("a").await));
    assert!(is_unavailable(&objects.list("", None, 1).await));
}

#[tokio::test]
async fn a_server_that_goes_and_comes_back_is_unavailable_meanwhile() {
    let mut moto = Moto::start();
    moto.create_bucket("coming");
    let objects = ObjectRoot::s3(options(moto.endpoint(), "coming")).await.unwrap();
    objects.put("a", Bytes::from_static(b"before")).await.unwrap();
    moto.kill();
    assert!(is_unavailable(&objects.get("a", None).await));
    moto.restart();
    moto.create_bucket("coming");
    assert!(matches!(objects.get("a", None).await, Err(ObjectError::Missing)));
    objects.put("a", Bytes::from_static(b"after")).await.unwrap();
    assert_eq!(objects.get("a", None).await.unwrap(), "after");
}

#[rstest]
#[case::nobody(false)]
#[case::somebody_silent(true)]
#[tokio::test]
async fn without_an_answer_every_call_ends_in_time(#[case] listens: bool, #[values("http", "https")] scheme: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = if listens { listener.local_addr().unwrap().port() } else { free_port() };
    let endpoint = format!("{scheme}://127.0.0.1:{port}");
    let objects = ObjectRoot::s3(S3Options { timeout: HASTY, ..options(endpoint, "silent") }).await.unwrap();
    let began = Instant::now();
    assert!(is_unavailable(&objects.put("a", Bytes::from_static(b"x")).await));
    assert!(is_unavailable(&objects.get("a", None).await));
    assert!(is_unavailable(&objects.get("a", Some(0..1)).await));
    assert!(is_unavailable(&objects.delete("a").await));
    assert!(is_unavailable(&objects.list("", None, 1).await));
    let error = objects.check().await.unwrap_err();
    assert!(matches!(error, S3Error::Failed { .. }), "{error:?}");
    assert!(began.elapsed() < 6 * HASTY + HASTY, "{:?}", began.elapsed());
}

#[tokio::test]
async fn denied_access_says_what_is_needed() {
    let denied = "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\nConnection: close\r\n\r\n\
                  <Error><Code>AccessDenied</Code></Error>";
    let (endpoint, _asked) = server(denied);
    let objects = ObjectRoot::s3(options(endpoint, "secret")).await.unwrap();
    let error = objects.check().await.unwrap_err();
    assert!(matches!(error, S3Error::Denied { .. }), "{error:?}");
    assert!(error.to_string().starts_with("access to s3://secret is denied; its credentials need s3:ListBucket"));
    assert!(is_unavailable(&objects.get("a", None).await));
}

/// The certificate is nobody's: the connection is refused for that, and for nothing before it.
#[tokio::test]
async fn a_certificate_that_nobody_signed_is_refused() {
    let moto = Moto::start_with_tls();
    let objects = ObjectRoot::s3(options(moto.endpoint(), "tls")).await.unwrap();
    let error = objects.check().await.unwrap_err();
    let mut chain = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
    assert!(chain.any(|error| error.to_string().contains("invalid peer certificate")), "{error:?}");
}

#[rstest]
#[case("s3://archive", None)]
#[case("Archive/x", None)]
#[case("", None)]
#[case("archive", Some("a//b"))]
#[case("archive", Some("a/../b"))]
#[case("archive", Some("ä"))]
#[tokio::test]
async fn wrong_names_are_refused_at_once(#[case] bucket: &str, #[case] prefix: Option<&str>) {
    let prefix = prefix.map(str::to_owned);
    let named = prefix.is_some();
    let options = S3Options { prefix, ..options("http://127.0.0.1:1".into(), bucket) };
    match ObjectRoot::s3(options).await.unwrap_err() {
        S3Error::Bucket(_) => assert!(!named),
        S3Error::Prefix(_) => assert!(named),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_wrong_place_is_refused_at_once() {
    let error = ObjectRoot::s3(options("127.0.0.1:9000".into(), "b")).await.unwrap_err();
    assert!(matches!(error, S3Error::Connect(ConnectError::Endpoint(_))), "{error:?}");
    let region = Some("eu central".to_owned());
    let error = ObjectRoot::s3(S3Options { region, ..options("http://127.0.0.1:1".into(), "b") }).await.unwrap_err();
    assert!(matches!(error, S3Error::Connect(ConnectError::Region(_))), "{error:?}");
}

/// Set for the second run of this very test, which alone has the profile in its environment.
const ENDPOINT: &str = "SALTERN_TEST_ENDPOINT";

/// Key, token and region of a request are those of the profile.
#[tokio::test]
async fn a_profile_is_used() {
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        let objects = ObjectRoot::s3(options(endpoint, "profiled")).await.unwrap();
        assert!(matches!(objects.get("a", None).await, Err(ObjectError::Missing)));
        return;
    }
    let (endpoint, asked) = server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let folder = tempfile::tempdir().unwrap();
    let (config, credentials) = (folder.path().join("config"), folder.path().join("credentials"));
    std::fs::write(&config, "[profile archive]\nregion = eu-west-3\n").unwrap();
    let keys = "[archive]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = s\naws_session_token = passing\n";
    std::fs::write(&credentials, keys).unwrap();

    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_profile_is_used"]).env(ENDPOINT, endpoint);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        again.env_remove(name);
    }
    again.env("AWS_PROFILE", "archive").env("AWS_CONFIG_FILE", config).env("AWS_SHARED_CREDENTIALS_FILE", credentials);
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));

    let head = asked.try_recv().unwrap();
    assert!(head.starts_with("GET /profiled/a HTTP/1.1"), "{head}");
    assert!(head.contains("Credential=AKIAPROFILE/") && head.contains("/eu-west-3/s3/aws4_request"), "{head}");
    assert!(head.contains("x-amz-security-token: passing"), "{head}");
}
