//! S4 where it is decided: what is told of calls that fail.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rstest::rstest;
use saltern_store::dynamodb::TableError;
use saltern_store::{Condition, Consistency, Put, PutOutcome, Store, StoreError};

use crate::fixtures::{put_row, row_key};
use crate::local;

const PATIENT: Duration = Duration::from_secs(20);
const HASTY: Duration = Duration::from_millis(300);

fn is_unavailable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable(_)))
}

/// Nobody listens, so nobody can have written anything.
#[tokio::test]
async fn an_address_that_nobody_listens_on_is_unavailable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = local::store_at(format!("http://127.0.0.1:{port}"), PATIENT).await;
    let put = store.put(&put_row(1, "hey")).await;
    assert!(is_unavailable(&put), "{put:?}");
    let got = store.get(&[row_key(1)], Consistency::Strong).await;
    assert!(is_unavailable(&got), "{got:?}");
    assert!(matches!(store.check().await, Err(TableError::Failed { .. })));
}

#[tokio::test]
async fn a_table_that_is_not_there_is_unavailable() {
    let store = local::store_without_table("nowhere").await;
    let put = store.put(&put_row(1, "hey")).await;
    assert!(is_unavailable(&put), "{put:?}");
}

/// A server that reads each request and then does this. Its thread ends with the tests.
pub(crate) fn server(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            answer(&mut stream);
        }
    });
    endpoint
}

/// To the end of its body: a connection closed over unread bytes would take the answer with it.
fn read_request(stream: &mut TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines() {
        let line = line.unwrap().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

pub(crate) fn http(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Some\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

pub(crate) fn refusal(code: &str) -> String {
    format!("{{\"__type\":\"com.amazonaws.dynamodb.v20120810#{code}\",\"message\":\"for a test\"}}")
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Done,
    Throttled,
    Unavailable,
    Unknown,
    Damaged,
}

fn told<T>(answer: Result<T, StoreError>) -> Told {
    match answer {
        Ok(_) => Told::Done,
        Err(StoreError::Throttled) => Told::Throttled,
        Err(StoreError::Unavailable(_)) => Told::Unavailable,
        Err(StoreError::Unknown(_)) => Told::Unknown,
        Err(StoreError::Damaged(_)) => Told::Damaged,
    }
}

#[rstest]
#[case::throughput(400, &refusal("ProvisionedThroughputExceededException"), Told::Throttled, Told::Throttled)]
#[case::throttling(400, &refusal("ThrottlingException"), Told::Throttled, Told::Throttled)]
#[case::limit(400, &refusal("RequestLimitExceeded"), Told::Throttled, Told::Throttled)]
#[case::validation(400, &refusal("ValidationException"), Told::Unavailable, Told::Unavailable)]
#[case::access(400, &refusal("AccessDeniedException"), Told::Unavailable, Told::Unavailable)]
#[case::conflict(400, &refusal("TransactionConflictException"), Told::Unavailable, Told::Unavailable)]
#[case::internal(500, &refusal("InternalServerError"), Told::Unknown, Told::Unavailable)]
#[case::gateway(502, "<html>bad gateway</html>", Told::Unknown, Told::Unavailable)]
#[case::stranger(404, "<html>not here</html>", Told::Unknown, Told::Unavailable)]
#[case::half_an_answer(200, "{\"Item\":", Told::Unknown, Told::Unavailable)]
#[case::an_empty_answer(200, "{}", Told::Done, Told::Done)]
#[case::a_strange_row(200, "{\"Item\":{\"pk\":{\"S\":\"c\"}}}", Told::Done, Told::Damaged)]
#[tokio::test]
async fn answers_are_told_for_what_they_are(
    #[case] status: u16,
    #[case] body: &str,
    #[case] put: Told,
    #[case] get: Told,
) {
    let answer = http(status, body);
    let endpoint = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
    let store = local::store_at(endpoint, PATIENT).await;
    let throttles = u64::from(put == Told::Throttled) + u64::from(get == Told::Throttled);
    assert_eq!(told(store.put(&put_row(1, "hey")).await), put);
    assert_eq!(told(store.get(&[row_key(1)], Consistency::Strong).await), get);
    assert_eq!(store.metrics().throttles(), throttles);
}

/// The request is out and no answer came: the row may be there.
#[tokio::test]
async fn silence_is_unknown_to_a_writer() {
    let hangs_up = local::store_at(server(|_| ()), PATIENT).await;
    let silent = local::store_at(server(|stream| drop(stream.read(&mut [0; 1]))), HASTY).await;
    for store in [hangs_up, silent] {
        assert_eq!(told(store.put(&put_row(1, "hey")).await), Told::Unknown);
        assert_eq!(told(store.get(&[row_key(1)], Consistency::Strong).await), Told::Unavailable);
    }
}

/// S3: whose condition failed must be told the row, so a server that keeps it back has not answered.
#[tokio::test]
async fn a_refusal_without_its_row_is_no_answer() {
    let answer = http(400, &refusal("ConditionalCheckFailedException"));
    let endpoint = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
    let store = local::store_at(endpoint, PATIENT).await;
    assert_eq!(told(store.put(&put_row(1, "hey")).await), Told::Unavailable);
    let guarded = Put { condition: Condition::Version(1), ..put_row(1, "hey") };
    assert_eq!(store.put(&guarded).await.unwrap(), PutOutcome::Refused(None));
}

/// Keys that a busy table keeps leaving out are throttled, not absent (I6).
#[tokio::test]
async fn keys_that_stay_unprocessed_are_not_absent() {
    let body = r#"{"Responses":{"saltern-messages":[]},"UnprocessedKeys":{"saltern-messages":{"Keys":[
        {"pk":{"S":"c"},"sk":{"N":"2"}}]}}}"#;
    let answer = http(200, body);
    let endpoint = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
    let store = local::store_at(endpoint, PATIENT).await;
    assert_eq!(told(store.get(&[row_key(1), row_key(2)], Consistency::Strong).await), Told::Throttled);
    assert_eq!((store.metrics().calls("BatchGetItem"), store.metrics().throttles()), (5, 1));
}
