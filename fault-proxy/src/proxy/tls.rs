//! TLS connections from the proxy to the server.

use std::{io, path::Path, sync::Arc};

use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use super::stream::Stream;

/// The host name of a server, and the certificate authorities that are trusted for it.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl Tls {
    /// Trusts the authority in that PEM file, or without a file the publicly trusted
    /// ones.
    pub(crate) fn new(host: &str, ca: Option<&Path>) -> io::Result<Self> {
        let host = host.trim_matches(['[', ']']).to_owned();
        let host = ServerName::try_from(host).map_err(io::Error::other)?;
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions();
        let config = config.map_err(io::Error::other)?;
        let config = config.with_root_certificates(roots(ca)?).with_no_client_auth();
        Ok(Self { connector: Arc::new(config).into(), host })
    }

    pub(crate) async fn over(&self, stream: Stream) -> io::Result<Stream> {
        let Stream::Tcp(stream) = stream else {
            return Err(io::Error::other("TLS is spoken over TCP"));
        };
        let stream = self.connector.connect(self.host.clone(), stream).await?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

fn roots(ca: Option<&Path>) -> io::Result<RootCertStore> {
    let Some(ca) = ca else {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        return Ok(roots.collect());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(io::Error::other)? {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(roots)
}
