//! Connections over TLS.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, time::Duration};

use relq_conformance::server::{Node, Server, free_port};
use relq_core::{
    Error, QueueName,
    error::{Effect, Operation},
};
use relq_redis::{Conn, Owner, RedisConfig, command, marked_queues};
use tokio::time::timeout;

/// How long a test waits for a condition.
const LIMIT: Duration = Duration::from_secs(60);

/// The path of a file in the folder of this test suite's files.
fn file(name: &str) -> String {
    format!(
        "{}/../conformance-tests/tests/given/{name}.pem",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// The configuration of a server that speaks TLS on a port. It asks for certificates of
/// clients or not, and trusts the authority of this name.
fn listening(
    port: u16,
    asks_clients: &str,
    authority: &str,
) -> [(&'static str, String); 5] {
    [
        ("tls-port", port.to_string()),
        ("tls-cert-file", file("certificate")),
        ("tls-key-file", file("key")),
        ("tls-ca-cert-file", file(authority)),
        ("tls-auth-clients", asks_clients.to_owned()),
    ]
}

fn server_that_trusts(authority: &str, port: u16, asks_clients: &str) -> Server {
    let settings = listening(port, asks_clients, authority);
    let options: Vec<_> = settings
        .into_iter()
        .flat_map(|(name, value)| [format!("--{name}"), value])
        .collect();
    Server::start_with(&options.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A server that speaks TLS on a port, and asks for certificates of clients or not.
fn server(port: u16, asks_clients: &str) -> Server {
    server_that_trusts("certificate", port, asks_clients)
}

/// A node that speaks TLS on a port.
fn node(port: u16, lines: &str, arguments: &[&str]) -> Node {
    let settings = listening(port, "no", "certificate");
    let tls: String =
        settings.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    Node::start(&(tls + lines), arguments)
}

async fn open(port: u16, options: &str) -> Result<Conn, Error> {
    open_url(&format!("rediss://localhost:{port}{options}")).await
}

async fn open_url(url: &str) -> Result<Conn, Error> {
    Conn::open("test", RedisConfig::new(url).unwrap()).await
}

/// R21: a certificate of an unknown authority leads to an error that says so.
#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let port = free_port();
    let _server = server(port, "no");

    let error = open(port, "").await.unwrap_err();

    assert_eq!(error.effect(), Effect::No);
    assert!(matches!(error, Error::Unavailable { .. }), "{}", error.full_message());
    assert!(error.full_message().contains("certificate"), "{}", error.full_message());
}

/// The URL names the authority that issued the server's certificate, and the client's
/// own certificate for a server that asks for one.
#[tokio::test]
async fn the_url_names_the_authority_and_the_certificate_of_the_client() {
    let (port, asking) = (free_port(), free_port());
    let (_server, _strict) = (server(port, "no"), server(asking, "yes"));
    let (certificate, key) = (file("certificate"), file("key"));
    let trusting = format!("?cacert={certificate}");
    let client = format!("{trusting}&cert={certificate}&key={key}");

    open(port, &trusting).await.unwrap();
    open(asking, &client).await.unwrap();

    let unknown = open(asking, &trusting).await.unwrap_err();
    assert_eq!(unknown.effect(), Effect::No, "{}", unknown.full_message());
}

/// If a file that the URL names cannot be read, the error names the file.
#[tokio::test]
async fn a_missing_file_is_named() {
    let port = free_port();
    let _server = server(port, "no");

    for options in ["?cacert=/no/ca.pem", "?cert=/no/c.pem&key=/no/k.pem"] {
        let error = open(port, options).await.unwrap_err();

        assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
        assert!(error.full_message().contains("/no/"), "{}", error.full_message());
    }
}

/// All authorities of a file are trusted, as a change of the authority needs it.
#[tokio::test]
async fn each_authority_of_a_file_is_trusted() {
    let port = free_port();
    let _server = server(port, "no");
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both.pem");
    let [first, second] = ["authority", "certificate"]
        .map(|name| fs::read_to_string(file(name)).unwrap());
    fs::write(&both, first + &second).unwrap();

    open(port, &format!("?cacert={}", both.display())).await.unwrap();
}

/// A client shows the whole chain of its certificate, since the server knows only the
/// authority at its end.
#[tokio::test]
async fn a_client_shows_its_chain() {
    let port = free_port();
    let _server = server_that_trusts("authority", port, "yes");
    let (chain, key) = (file("client_chain"), file("client_key"));
    let trusting = format!("?cacert={}", file("certificate"));

    open(port, &format!("{trusting}&cert={chain}&key={key}")).await.unwrap();
}

/// The nodes of a cluster are reached over TLS, also for calls to one node alone.
#[tokio::test]
async fn a_cluster_is_reached_over_tls() {
    let (port, bus) = (free_port(), free_port());
    let lines = format!("cluster-enabled yes\ntls-cluster yes\ncluster-port {bus}\n");
    let node = node(port, &lines, &[]);
    assert_eq!(node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "+OK\r\n");
    let serves = async {
        while !node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, serves).await.expect("the cluster serves");
    // The port for plain connections would answer them.
    let url =
        format!("rediss-cluster://127.0.0.1:{port}?cacert={}", file("certificate"));

    let config = || RedisConfig::new(&url).unwrap();
    let queue = QueueName::new("emails").unwrap();
    let opened = Conn::open_queue(Owner::new("test", queue), config(), []).await;

    opened.unwrap().call(Operation::Stats, &command("PING")).await.unwrap();
    let page = marked_queues(config(), None).await.unwrap();
    assert!(page.queues.is_empty() && page.next.is_none(), "{page:?}");
}

/// Sentinels and the master that they name are reached over TLS.
#[tokio::test]
async fn sentinels_are_reached_over_tls() {
    let (port, watching) = (free_port(), free_port());
    let _master = node(port, "", &[]);
    let lines =
        format!("tls-replication yes\nsentinel monitor main 127.0.0.1 {port} 1\n");
    let _sentinel = node(watching, &lines, &["--sentinel"]);
    let authority = file("certificate");
    let url = format!("rediss-sentinel://127.0.0.1:{watching}/main?cacert={authority}");

    let conn = open_url(&url).await.unwrap();

    conn.call(Operation::Stats, &command("PING")).await.unwrap();
}
