//! Byte streams to clients and to the server, on a unix socket or TCP.

use std::{io, net::SocketAddr, path::PathBuf};

use bytes::{Bytes, BytesMut};
#[cfg(feature = "tls")]
use tokio::io::{ReadHalf, WriteHalf};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream, tcp, unix},
};
#[cfg(feature = "tls")]
use tokio_rustls::client::TlsStream;

use super::guarded::Guarded;

/// The size in bytes of the buffer into which short pieces are copied before they are
/// sent. A longer piece is sent without a copy.
const GATHERED: usize = 16 * 1024;

/// Where a Redis server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// The path of a unix socket.
    Unix(PathBuf),
    /// An address and port.
    Tcp(SocketAddr),
    /// A server that requires encryption, a password or a database number.
    Guarded(Guarded),
}

impl Address {
    /// The commands that the proxy sends first on each connection to the server.
    pub(crate) fn greeting(&self) -> &[Vec<String>] {
        match self {
            Self::Unix(_) | Self::Tcp(_) => &[],
            Self::Guarded(guarded) => guarded.greeting(),
        }
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(crate) async fn connect(to: &Address) -> io::Result<Self> {
        match to {
            Address::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
            Address::Tcp(address) => {
                TcpStream::connect(address).await.and_then(Self::tcp)
            }
            Address::Guarded(guarded) => guarded.connect().await,
        }
    }

    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    pub(crate) fn split(self) -> (Reader, Writer) {
        let (reader, half) = match self {
            Self::Unix(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Unix(reader), Half::Unix(writer))
            }
            Self::Tcp(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Tcp(reader), Half::Tcp(writer))
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                let (reader, writer) = tokio::io::split(*stream);
                (Reader::Tls(reader), Half::Tls(writer))
            }
        };
        (reader, Writer { half, gathered: BytesMut::new() })
    }
}

pub(crate) enum Reader {
    Unix(unix::OwnedReadHalf),
    Tcp(tcp::OwnedReadHalf),
    #[cfg(feature = "tls")]
    Tls(ReadHalf<TlsStream<TcpStream>>),
}

impl Reader {
    /// Reads the available bytes. Returns their number, which is 0 at the end of the
    /// stream. Dropping the future loses no bytes.
    pub(crate) async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        // If space was reserved for a large frame, the bytes go there first.
        if into.capacity() == into.len() {
            into.reserve(GATHERED);
        }
        match self {
            Self::Unix(half) => half.read_buf(into).await,
            Self::Tcp(half) => half.read_buf(into).await,
            #[cfg(feature = "tls")]
            Self::Tls(half) => half.read_buf(into).await,
        }
    }
}

pub(crate) struct Writer {
    half: Half,
    gathered: BytesMut,
}

enum Half {
    Unix(unix::OwnedWriteHalf),
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(feature = "tls")]
    Tls(WriteHalf<TlsStream<TcpStream>>),
}

impl Writer {
    /// Sends the pieces, or buffers them until the next [`Writer::flush`].
    pub(crate) async fn send(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            if self.gathered.len() + piece.len() <= GATHERED {
                self.gathered.extend_from_slice(piece);
            } else {
                self.flush().await?;
                self.half.write(piece).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            let gathered = self.gathered.split();
            self.half.write(&gathered).await?;
        }
        Ok(())
    }

    /// Flushes, and tells the peer that no more bytes come.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        match &mut self.half {
            Half::Unix(half) => half.shutdown().await,
            Half::Tcp(half) => half.shutdown().await,
            #[cfg(feature = "tls")]
            Half::Tls(half) => half.shutdown().await,
        }
    }

    /// Makes the connection end with a reset, on TCP. The caller must drop the reader
    /// after this.
    pub(crate) fn reset(self) {
        if let Half::Tcp(half) = self.half
            && half.as_ref().set_zero_linger().is_ok()
        {
            // Dropping this half would close the connection cleanly, without a reset.
            half.forget();
        }
    }
}

impl Half {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(half) => half.write_all(bytes).await,
            Self::Tcp(half) => half.write_all(bytes).await,
            #[cfg(feature = "tls")]
            Self::Tls(half) => {
                half.write_all(bytes).await?;
                half.flush().await
            }
        }
    }
}
