//! Calls of the program on a server that uses TLS.

use crate::relq::Store;

/// The path of a certificate file in the folder of the conformance suite.
fn file(name: &str) -> String {
    let folder =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance-tests/tests/given");
    format!("{folder}/{name}.pem")
}

/// The program trusts a private certificate authority only if the URL names its file.
#[test]
fn a_certificate_is_trusted_whose_authority_is_named() {
    let certificate = file("certificate");
    let store = Store::redis_in_tls(&certificate, &file("key"));

    store.relq("push hello").env("SSL_CERT_FILE", &certificate).ok();
    let unnamed = store.relq("push hello").no_env("SSL_CERT_FILE");
    let complaint = unnamed.no_env("SSL_CERT_DIR").fails(1);

    assert!(complaint.contains("certificate"), "{complaint}");
}

/// If the file of authorities cannot be read, the error names the file, and does not
/// look like an outage of the server.
#[test]
fn a_missing_file_of_authorities_is_named() {
    let store = Store::redis_in_tls(&file("certificate"), &file("key"));
    let missing = "/no/such/authority.pem";

    let ended = store.relq("push hello").env("SSL_CERT_FILE", missing).run();

    assert_ne!(ended.code, Some(0));
    assert!(ended.err.contains(missing), "{}", ended.err);
    assert!(!ended.err.contains("unavailable"), "{}", ended.err);
}

/// A command of a worker finds the file from any folder, although the URL names it from
/// the folder of the worker.
#[test]
fn a_command_finds_the_authority_that_a_relative_path_names() {
    let mut store = Store::redis_in_tls(&file("certificate"), &file("key"));
    std::fs::copy(file("certificate"), store.file("the ca.pem")).unwrap();
    store.url.push_str("?cacert=the%20ca.pem");
    store.push("job --max-attempts 1");
    let script = "cd / && \"$RELQ\" push --delay 1h nested";

    let work =
        store.relq_with(&["work", "--until-empty", "--exec", "sh", "-c", script]);
    let ended = work.env("RELQ", env!("CARGO_BIN_EXE_relq")).run();

    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert_eq!(store.count("default", "scheduled"), 1, "{}", ended.err);
}
