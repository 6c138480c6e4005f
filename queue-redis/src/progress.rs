//! How long an answer is waited for: as long as its connection makes progress.
//!
//! A limit on the whole answer turns a large answer on a slow link into a lost one, and
//! a lost claim into an attempt that nobody ran. So the limit is on silence: it counts
//! from the last moment in which the connection moved bytes.
//!
//! ```text
//!  read      bytes arrived                                   progress
//!  written   the socket was full, and took more              progress
//!  written   the socket had room                             none: the system took the
//!                                                            bytes, the server may be gone
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

/// How long an answer may lie unread. Where handlers kept every thread busy, the time is
/// up before anybody has looked at the connection.
const UNREAD: Duration = Duration::from_millis(100);

/// When a connection last made progress.
#[derive(Debug)]
pub(crate) struct Progress {
    opened: Instant,
    /// Nanoseconds from `opened` to the last progress.
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

    /// What is answered before the connection was silent for `limit`.
    ///
    /// # Errors
    /// [`Elapsed`] when nothing moved on the connection for that long.
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

/// A stream that notes when it makes progress.
pub(crate) struct Watched<S> {
    stream: S,
    progress: Arc<Progress>,
    /// Whether the last write found no room.
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

    /// Reads so many bytes, as long as the stream makes progress.
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

    /// Commands of others go into a connection whose other end is gone until the system
    /// has no room for more: that is no progress.
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
}
