//! TLS: the trusted authorities, and the cryptography provider.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use tokio_rustls::TlsConnector;

/// Trusts the authorities that the system trusts, or those of the PEM file that the
/// environment variable `SSL_CERT_FILE` names.
///
/// # Errors
/// When the certificates cannot be read.
pub(crate) fn connector() -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let mut found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.pop() {
        return Err(invalid(&error));
    }
    for certificate in found.certs {
        roots.add(certificate).map_err(|error| invalid(&error))?;
    }
    let config = ClientConfig::builder_with_provider(cryptography())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates of the trusted authorities cannot be used.
fn invalid(error: &dyn std::error::Error) -> io::Error {
    let from = match std::env::var_os("SSL_CERT_FILE") {
        Some(file) => format!("the file {} (SSL_CERT_FILE)", file.display()),
        None => "the system".to_owned(),
    };
    let text = format!("the trusted certificates of {from} cannot be read: {error}");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The provider that the program installed, or else ring. If two providers are compiled
/// in, rustls does not choose one by itself.
fn cryptography() -> Arc<CryptoProvider> {
    CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}
