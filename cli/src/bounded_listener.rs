//! A listener that keeps a limited number of connections open.
//!
//! Each connection takes one of the files that the process may open, and neither HTTP nor
//! axum ends a connection that is silent. Without a limit, the connections of one client
//! take the files that the commands of a worker and the store need. A limit that makes
//! further connections wait lets the same client lock all others out. So a further
//! connection closes the one on which no byte has moved for longest: one that was never
//! used, or that a browser keeps for its next request. A stream of live counts moves bytes
//! every few seconds, and the browser opens it again if it is closed after all.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Instant,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::yield_now,
};

pub(crate) struct BoundedListener {
    listener: TcpListener,
    most: usize,
    open: Vec<Open>,
}

/// The listener's record of an open connection.
struct Open {
    last_use: LastUse,
    close: oneshot::Sender<()>,
}

impl BoundedListener {
    /// Listens at this address. At most `most` connections are open at once.
    pub(crate) async fn bind(address: SocketAddr, most: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, most, open: Vec::new() })
    }

    /// Closes the connection that has been silent for longest, if there are too many for
    /// another one.
    async fn make_room(&mut self) {
        self.open.retain(|one| !one.close.is_closed());
        if self.open.len() < self.most {
            return;
        }
        let silent =
            self.open.iter().enumerate().min_by_key(|(_, one)| one.last_use.at());
        if let Some(at) = silent.map(|(at, _)| at) {
            // Ignore a failed send: the connection has ended by itself meanwhile.
            let _ = self.open.swap_remove(at).close.send(());
            // Let the task of that connection close it before the next one is accepted, so
            // that the process does not open one file more.
            yield_now().await;
        }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        self.make_room().await;
        let (close, closing) = oneshot::channel();
        let last_use = LastUse::now();
        self.open.push(Open { last_use: last_use.clone(), close });
        let closing = Some(closing);
        (Connection { stream, last_use, closing, is_closed: false }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// When a byte was last read from a connection or written to it.
#[derive(Clone)]
struct LastUse(Arc<Mutex<Instant>>);

impl LastUse {
    fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn at(&self) -> Instant {
        *self.0.lock().expect("no holder of the lock panics")
    }

    fn renew(&self) {
        *self.0.lock().expect("no holder of the lock panics") = Instant::now();
    }
}

/// A connection. When the listener closes it, it ends as if the client had closed it.
pub(crate) struct Connection {
    stream: TcpStream,
    last_use: LastUse,
    /// Completes when the listener closes the connection. `None` once it has completed.
    closing: Option<oneshot::Receiver<()>>,
    is_closed: bool,
}

impl Connection {
    /// Whether the listener has closed the connection. If not, the task is woken when it
    /// does.
    fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(closing) = &mut self.closing
            && let Poll::Ready(closed) = Pin::new(closing).poll(cx)
        {
            // An error means that the listener has ended without closing its connections:
            // they may finish their requests.
            self.is_closed = closed.is_ok();
            self.closing = None;
        }
        self.is_closed
    }

    fn note<T>(&self, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.last_use.renew();
        }
        moved
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_closed(cx) {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.note(read)
    }
}

impl AsyncWrite for Connection {
    /// Fails on a closed connection, because a client that reads nothing would else keep it.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::timeout,
    };

    use super::*;

    async fn listener_for_two() -> BoundedListener {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        BoundedListener::bind(address, 2).await.unwrap()
    }

    /// Both ends of a new connection.
    async fn connect(listener: &mut BoundedListener) -> (TcpStream, Connection) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (connection, _) = listener.accept().await;
        (client, connection)
    }

    async fn read(connection: &mut Connection) -> Option<u8> {
        let mut byte = [0];
        let reading = timeout(Duration::from_secs(60), connection.read(&mut byte));
        let length = reading.await.expect("the reading ends").unwrap();
        (length == 1).then_some(byte[0])
    }

    /// A client that opens connections and is silent must lock no other out. The oldest
    /// connection may be a stream of live counts, which stays.
    #[tokio::test]
    async fn the_connection_that_is_silent_for_longest_makes_room() {
        let mut listener = listener_for_two().await;
        let (mut client, mut used) = connect(&mut listener).await;
        let (_silent_client, mut silent) = connect(&mut listener).await;
        client.write_all(b"ab").await.unwrap();
        assert_eq!(read(&mut used).await, Some(b'a'));

        let (_new_client, _new) = connect(&mut listener).await;

        assert_eq!(read(&mut silent).await, None, "the silent one is closed");
        silent.write_all(b"c").await.unwrap_err();
        assert_eq!(read(&mut used).await, Some(b'b'), "the used one goes on");
    }

    /// The places of connections that have ended are free, or each new client would cost
    /// another one its connection.
    #[tokio::test]
    async fn an_ended_connection_counts_no_more() {
        let mut listener = listener_for_two().await;
        let (mut client, mut kept) = connect(&mut listener).await;
        for _ in 0..3 {
            drop(connect(&mut listener).await);
        }

        client.write_all(b"a").await.unwrap();

        assert_eq!(read(&mut kept).await, Some(b'a'));
    }

    /// A server that ends drops its listener, and then finishes the requests that have
    /// begun.
    #[tokio::test]
    async fn connections_outlive_their_listener() {
        let mut listener = listener_for_two().await;
        let (mut client, mut connection) = connect(&mut listener).await;

        drop(listener);

        client.write_all(b"a").await.unwrap();
        assert_eq!(read(&mut connection).await, Some(b'a'));
    }
}
