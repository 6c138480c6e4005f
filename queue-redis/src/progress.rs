//! How long a call waits for a reply: as long as the connection makes progress.
//!
//! With a limit on the time of a whole reply, a large reply on a slow link would be
//! lost, and the jobs of a lost claim lose an attempt that no worker ran. So the limit
//! is on silence: it counts from the last moment in which the connection moved bytes.
//!
//! ```text
//! bytes were read                                 progress
//! bytes were written, after the socket was full   progress: the peer has read some
//! bytes were written, and the socket had room     none: the system stores the bytes,
//!                                                 and the peer may be gone
//! ```

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, error::Elapsed, timeout, timeout_at},
};

/// How much longer a call waits for a reply that may already have arrived. If handlers
/// keep every thread busy, the time limit can pass before any task has read from the
/// connection.
const UNREAD: Duration = Duration::from_millis(100);

/// The time when a connection last made progress.
#[derive(Debug)]
pub(crate) struct Progress {
    opened: Instant,
    /// Nanoseconds from `opened` to the last progress of the connection.
    last: AtomicU64,
}

impl Progress {
    fn new() -> Self {
        Self { opened: Instant::now(), last: AtomicU64::new(0) }
    }

    fn note(&self) {
        let since = u64::try_from(self.opened.elapsed().as_nanos());
        self.last.store(since.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.opened + Duration::from_nanos(self.last.load(Ordering::Relaxed))
    }

    /// Returns the result of `answer`, unless the connection is silent for `limit`
    /// first.
    ///
    /// # Errors
    /// [`Elapsed`] when the connection has made no progress for `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let mut answer = pin!(answer);
        let mut deadline = Instant::now() + limit;
        loop {
            if let Ok(answer) = timeout_at(deadline, &mut answer).await {
                return Ok(answer);
            }
            let silence = match timeout(UNREAD, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(silence) => silence,
            };
            let next = self.last() + limit;
            if next <= Instant::now() {
                return Err(silence);
            }
            deadline = next;
        }
    }
}

/// A stream that records the time of its last progress.
pub(crate) struct Watched<S> {
    stream: S,
    progress: Arc<Progress>,
    /// Whether the last write found the socket full.
    is_full: bool,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S) -> (Self, Arc<Progress>) {
        let progress = Arc::new(Progress::new());
        (Self { stream, progress: Arc::clone(&progress), is_full: false }, progress)
    }

    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let was_full = std::mem::replace(&mut self.is_full, written.is_pending());
        let written = ready!(written)?;
        if was_full && written > 0 {
            self.progress.note();
        }
        Poll::Ready(Ok(written))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.progress.note();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    /// Reads `bytes` bytes. Returns false if the stream makes no progress.
    async fn read(mut stream: Watched<impl AsyncRead + Unpin>, bytes: usize) -> bool {
        let progress = Arc::clone(&stream.progress);
        let mut buffer = vec![0; bytes];
        let reading = stream.read_exact(&mut buffer);
        progress.within(LIMIT, reading).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_waited_for() {
        let (ours, mut theirs) = duplex(64);
        let slowly = async {
            for _ in 0..20 {
                tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
                theirs.write_all(b"!").await.unwrap();
            }
        };

        let (was_read, ()) = tokio::join!(read(Watched::new(ours).0, 20), slowly);

        assert!(was_read);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_after_its_limit() {
        let (ours, mut theirs) = duplex(64);
        theirs.write_all(b"half").await.unwrap();
        let start = Instant::now();

        assert!(!read(Watched::new(ours).0, 8).await);

        assert!(start.elapsed() >= LIMIT && start.elapsed() < LIMIT + 2 * UNREAD);
    }

    /// A write to a connection whose peer is gone succeeds until the system's buffer is
    /// full, so such a write does not count as progress.
    #[tokio::test(start_paused = true)]
    async fn only_a_write_that_had_to_wait_is_progress() {
        let (ours, mut theirs) = duplex(8);
        let (mut stream, progress) = Watched::new(ours);
        let opened = progress.last();
        tokio::time::advance(LIMIT).await;

        stream.write_all(b"12345678").await.unwrap();
        assert_eq!(progress.last(), opened);

        let mut taken = [0; 8];
        let (written, read) =
            tokio::join!(stream.write_all(b"9"), theirs.read_exact(&mut taken));
        written.and(read.map(drop)).unwrap();
        assert_eq!(progress.last(), Instant::now());
    }

    /// The client library usually writes several slices in one call.
    #[tokio::test(start_paused = true)]
    async fn a_vectored_write_that_had_to_wait_is_progress() {
        let (ours, mut theirs) = duplex(8);
        let (mut stream, progress) = Watched::new(ours);
        let opened = progress.last();
        stream.write_all(b"12345678").await.unwrap();
        tokio::time::advance(LIMIT).await;
        let slices = [io::IoSlice::new(b"9"), io::IoSlice::new(b"0")];

        let mut taken = [0; 8];
        let (written, read) =
            tokio::join!(stream.write_vectored(&slices), theirs.read_exact(&mut taken));

        assert!(written.unwrap() > 0 && read.is_ok());
        assert_ne!(progress.last(), opened);
        assert_eq!(progress.last(), Instant::now());
    }
}
