//! A server that uses TLS.

use crate::relq::Store;

/// The path of a certificate file of the suite.
fn file(name: &str) -> String {
    let folder =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance-tests/tests/given");
    format!("{folder}/{name}.pem")
}

/// A certificate authority of the user is trusted only if it is named.
#[test]
fn a_certificate_is_trusted_whose_authority_is_named() {
    let certificate = file("certificate");
    let store = Store::redis_in_tls(&certificate, &file("key"));

    store.relq("push hello").env("SSL_CERT_FILE", &certificate).ok();
    let unnamed = store.relq("push hello").no_env("SSL_CERT_FILE");
    let complaint = unnamed.no_env("SSL_CERT_DIR").fails(1);

    assert!(complaint.contains("certificate"), "{complaint}");
}
