//! TLS: the trusted authorities, the client's own certificate, and the cryptography
//! provider.
//!
//! The files are read for each connection, so that a renewed certificate needs no
//! restart.

use std::{fmt, io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::TlsConnector;

use crate::url_option::TlsFiles;

/// A TLS connector that trusts the authorities of the file that the URL names. If it
/// names none, the connector trusts those that the system trusts, or those of the PEM
/// file that the environment variable `SSL_CERT_FILE` names. The connector shows the
/// client's certificate if the URL names one.
///
/// # Errors
/// When one of the files cannot be read.
pub(crate) fn connector(files: &TlsFiles) -> io::Result<TlsConnector> {
    let roots = match &files.authority {
        Some(file) => authorities_of(file)?,
        None => trusted_by_the_system()?,
    };
    let builder = ClientConfig::builder_with_provider(cryptography())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match &files.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates_of(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key);
            let secret = secret.map_err(|error| unusable(key, &error))?;
            let config = builder.with_client_auth_cert(chain, secret);
            config.map_err(|error| unusable(certificate, &error))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn trusted_by_the_system() -> io::Result<RootCertStore> {
    let mut found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.pop() {
        return Err(invalid(&error));
    }
    let mut roots = RootCertStore::empty();
    for certificate in found.certs {
        roots.add(certificate).map_err(|error| invalid(&error))?;
    }
    Ok(roots)
}

fn authorities_of(file: &Path) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of(file)? {
        roots.add(certificate).map_err(|error| unusable(file, &error))?;
    }
    Ok(roots)
}

/// The certificates of a PEM file, at least one.
fn certificates_of(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unusable(file, &error))?;
    if certificates.is_empty() {
        return Err(unusable(file, &"it has no certificate"));
    }
    Ok(certificates)
}

/// The error when a file that the URL names cannot be used.
fn unusable(file: &Path, why: &dyn fmt::Display) -> io::Error {
    let text = format!("the file {} of the URL cannot be used: {why}", file.display());
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The error when the certificates of the trusted authorities cannot be used.
fn invalid(error: &dyn std::error::Error) -> io::Error {
    let from = match std::env::var_os("SSL_CERT_FILE") {
        Some(file) => format!("the file {} (SSL_CERT_FILE)", file.display()),
        None => "the system".to_owned(),
    };
    let text = format!("the trusted certificates of {from} cannot be read: {error}");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The cryptography provider that the program installed, or else ring. rustls does not
/// choose a provider itself if two are compiled in.
fn cryptography() -> Arc<CryptoProvider> {
    CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}
