//! The socket to the server: a TCP connection, TLS over TCP, or a Unix socket.
//!
//! The client library can open these too, but does not show when bytes move on them.

use std::{io, pin::Pin};

use redis::ConnectionAddr;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use crate::{topology::Address, url_option::TlsFiles};

/// An open connection to the server, before anything was sent on it.
pub(crate) type Socket = Pin<Box<dyn Stream>>;

/// A byte stream that a connection reads from and writes to.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// Connects to the server at `address`, which [`RedisConfig`](crate::RedisConfig) has
/// checked.
///
/// # Errors
/// When no server listens at the address, or its certificate is not issued by a trusted
/// authority.
pub(crate) async fn connect(
    address: &ConnectionAddr,
    files: &TlsFiles,
) -> io::Result<Socket> {
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::pin(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls { host, port, .. } => tls(host, *port, files).await,
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            Ok(Box::pin(tokio::net::UnixStream::connect(path).await?))
        }
        _ => Err(unsupported("this kind of connection is not supported here")),
    }
}

/// Connects to another server in the same way as to `example`: over TLS or not.
///
/// # Errors
/// The errors of [`connect`].
pub(crate) async fn connect_like(
    example: &ConnectionAddr,
    Address { host, port }: &Address,
    files: &TlsFiles,
) -> io::Result<Socket> {
    match example {
        ConnectionAddr::TcpTls { .. } => tls(host, *port, files).await,
        _ => Ok(Box::pin(tcp(host, *port).await?)),
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // The client writes each command as a whole, so waiting for more bytes (Nagle's
    // algorithm) would only add delay.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(feature = "tls")]
async fn tls(host: &str, port: u16, files: &TlsFiles) -> io::Result<Socket> {
    let connector = crate::tls::connector(files)?;
    let name = host.to_owned().try_into().map_err(io::Error::other)?;
    Ok(Box::pin(connector.connect(name, tcp(host, port).await?).await?))
}

#[cfg(not(feature = "tls"))]
async fn tls(_host: &str, _port: u16, _files: &TlsFiles) -> io::Result<Socket> {
    Err(unsupported("TLS is not compiled in: enable the feature `tls`"))
}

fn unsupported(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
}
