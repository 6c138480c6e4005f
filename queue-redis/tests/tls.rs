//! Connections over TLS.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use relq_conformance::server::{Server, free_port};
use relq_core::{Error, error::Effect};
use relq_redis::{Conn, RedisConfig};

/// The path of a file in the folder of this test suite's files.
fn file(name: &str) -> String {
    format!(
        "{}/../conformance-tests/tests/given/{name}.pem",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// A server that speaks TLS on a port, and asks for certificates of clients or not.
fn server(port: u16, asks_clients: &str) -> Server {
    let (certificate, key) = (file("certificate"), file("key"));
    Server::start_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        asks_clients,
    ])
}

async fn open(port: u16, options: &str) -> Result<Conn, Error> {
    let url = format!("rediss://localhost:{port}{options}");
    Conn::open("test", RedisConfig::new(&url).unwrap()).await
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
