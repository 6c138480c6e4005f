//! Runs `conformance report --url` on a server with each kind of access control.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use relq_conformance::server::{Server, free_port};

/// The id of the test case that the report runs. It takes little time.
const CASE: &str = "no_loss::every_byte_arrives";

fn report(url: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conformance"))
        .args(["report", "--backend", "zset", "--only", CASE, "--url", url])
        .args(more)
        .output()
        .unwrap()
}

fn has_passed(report: &Output) -> bool {
    let table = String::from_utf8_lossy(&report.stdout);
    report.status.success() && table.contains("all                   1       1       0")
}

/// Returns the error output of a report that must fail without a panic.
fn refusal(report: &Output) -> String {
    assert_eq!(report.status.code(), Some(1), "{report:?}");
    let words = String::from_utf8_lossy(&report.stderr).into_owned();
    assert!(!words.contains("panicked"), "{words}");
    words
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/given").join(name)
}

#[test]
fn a_socket_with_a_password_and_a_database() {
    let server = Server::start_with(&["--requirepass", "a&b"]);
    let socket = server.socket();

    let right = report(&format!("unix://{}?db=3&pass=a%26b", socket.display()), &[]);
    let wrong = report(&format!("unix://{}?pass=wrong", socket.display()), &[]);

    assert!(has_passed(&right), "{right:?}");
    assert!(refusal(&wrong).contains("WRONGPASS"), "{wrong:?}");
}

/// A report on a server with TLS works. The private key of the server stands in this
/// test's files, so the test proves only that the client checks the certificate.
#[test]
fn a_port_in_tls() {
    let port = free_port();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let _server = Server::start_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        certificate.to_str().unwrap(),
        "--tls-key-file",
        key.to_str().unwrap(),
        "--tls-auth-clients",
        "no",
    ]);
    let url = format!("rediss://localhost:{port}");

    let known = report(&url, &["--cacert", certificate.to_str().unwrap()]);
    let unknown = report(&url, &[]);

    assert!(has_passed(&known), "{known:?}");
    assert!(refusal(&unknown).contains("certificate"), "{unknown:?}");
}
