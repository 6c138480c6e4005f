//! The connection in TLS.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use relq_conformance::server::{Server, free_port};
use relq_core::{Error, error::Effect};
use relq_redis::{Conn, RedisConfig};

/// The path of a file that belongs to this test suite.
fn file(name: &str) -> String {
    format!(
        "{}/../conformance-tests/tests/given/{name}.pem",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// R21: a certificate of an unknown authority is an error that says so, not a panic.
#[tokio::test]
async fn a_certificate_of_nobodys_is_refused() {
    let port = free_port();
    let (certificate, key) = (file("certificate"), file("key"));
    let _server = Server::start_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "no",
    ]);
    let config = RedisConfig::new(&format!("rediss://localhost:{port}")).unwrap();

    let error = Conn::open("test", config).await.unwrap_err();

    assert_eq!(error.effect(), Effect::No);
    assert!(matches!(error, Error::Unavailable { .. }), "{}", error.full_message());
    assert!(error.full_message().contains("certificate"), "{}", error.full_message());
}
