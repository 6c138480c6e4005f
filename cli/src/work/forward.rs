//! Forwards the output of a command to the output of relq.
//!
//! Several commands write at once. Their lines are forwarded whole, so that no line
//! holds text of two commands. Only the line that has not ended is kept in memory. A
//! slow reader of relq's output slows the commands down, as in a shell's pipe.

use std::{
    future::{Future, pending},
    io::{self, ErrorKind, Write},
    os::fd::AsFd,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{Mutex, oneshot},
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::whole_lines::WholeLines;

/// How long the output of a command that has ended may be silent before it counts as
/// complete. A process that the command left running may hold the output open for ever.
const SILENCE_AFTER_END: Duration = Duration::from_millis(200);

/// How long such a process may go on writing, without a silence, before the output counts
/// as complete all the same.
const LONGEST_AFTER_END: Duration = Duration::from_secs(1);

/// How many bytes of output one read takes at most.
const CHUNK: usize = 16 << 10;

/// Which output of relq receives the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Output,
    Error,
}

/// Whether the bytes are forwarded unchanged or in whole lines.
#[derive(Debug)]
pub(super) enum Format {
    /// Bytes are forwarded unchanged, because only one command runs at a time.
    Unchanged,
    Lines(WholeLines),
}

/// A copy of an output, or of a part of it.
pub(super) trait KeepsOutput: Send + Sync {
    /// Appends output.
    fn keep(&self, output: &[u8]);
}

/// A task that forwards one output of a running command.
#[derive(Debug)]
pub(super) struct Forwarding {
    command_ended: oneshot::Sender<()>,
    complete: oneshot::Receiver<Printed>,
}

/// Whether relq has written all output that a command wrote to its standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    All,
    /// The reader of relq's output is gone, or its disk is full.
    InPart,
}

impl Forwarding {
    /// Starts a task that forwards the output. `copy` receives it too.
    pub(super) fn start(
        from: impl AsyncRead + AsFd + Send + Unpin + 'static,
        to: Stream,
        format: Format,
        copy: Option<Arc<dyn KeepsOutput>>,
    ) -> Self {
        let (command_ended, ended) = oneshot::channel();
        let (complete_until_now, complete) = oneshot::channel();
        let (chunk, printed) = (vec![0; CHUNK], Printed::All);
        let forwarder = Forwarder { from, to, format, copy, chunk, printed };
        tokio::spawn(forwarder.run(ended, complete_until_now));
        Self { command_ended, complete }
    }

    /// Called when the command has ended: waits until its output is forwarded. The task
    /// continues for processes that the command left running.
    pub(super) async fn complete(self) -> Printed {
        // Ignore this result: `send` fails if the output is closed already.
        let _ = self.command_ended.send(());
        // The task ends without an answer only if it panics.
        self.complete.await.unwrap_or(Printed::InPart)
    }
}

/// Whether more output can arrive. It can while a process holds the pipe open.
#[derive(PartialEq)]
enum Source {
    Open,
    Closed,
}

struct Forwarder<R> {
    from: R,
    to: Stream,
    format: Format,
    copy: Option<Arc<dyn KeepsOutput>>,
    chunk: Vec<u8>,
    /// Whether all that was forwarded until now was printed.
    printed: Printed,
}

impl<R: AsyncRead + AsFd + Unpin> Forwarder<R> {
    /// Forwards output until the command's pipe is closed. The job waits for the answer
    /// through `complete`: whether all output was printed. It is sent when the pipe is
    /// closed, or some time after the command has ended.
    async fn run(
        mut self,
        command_ended: oneshot::Receiver<()>,
        complete: oneshot::Sender<Printed>,
    ) {
        let mut source = self.forward_until(command_ended).await;
        if source == Source::Open {
            source = self.forward_until_silent().await;
        }
        self.finish().await;
        // Ignore a failed send: the job was cut off, and does not need the answer.
        let _ = complete.send(self.printed);
        if source == Source::Open {
            self.forward_until(pending::<()>()).await;
            self.finish().await;
        }
    }

    async fn forward_until(&mut self, stop: impl Future) -> Source {
        let mut stop = pin!(stop);
        loop {
            let read = tokio::select! {
                read = self.from.read(&mut self.chunk) => read,
                _ = &mut stop => return Source::Open,
            };
            if self.forward(read).await == Source::Closed {
                return Source::Closed;
            }
        }
    }

    /// Called when the command has ended. Forwards its output, and that of the processes
    /// that it left running until they are silent for a while or have written for long.
    async fn forward_until_silent(&mut self) -> Source {
        if self.forward_waiting().await == Source::Closed {
            return Source::Closed;
        }
        let end = Instant::now() + LONGEST_AFTER_END;
        while Instant::now() < end {
            let read = tokio::select! {
                biased;
                read = self.from.read(&mut self.chunk) => read,
                () = sleep(SILENCE_AFTER_END) => return Source::Open,
            };
            if self.forward(read).await == Source::Closed {
                return Source::Closed;
            }
        }
        Source::Open
    }

    /// Forwards the bytes that are in the pipe now, however long their reader takes. They
    /// are all that a command which has ended can have written.
    async fn forward_waiting(&mut self) -> Source {
        let mut left = rustix::io::ioctl_fionread(&self.from).unwrap_or(0);
        while left > 0 {
            let read = self.from.read(&mut self.chunk).await;
            let length = read.as_ref().map_or(0, |length| *length as u64);
            left = left.saturating_sub(length);
            if self.forward(read).await == Source::Closed {
                return Source::Closed;
            }
        }
        Source::Open
    }

    async fn forward(&mut self, read: io::Result<usize>) -> Source {
        let length = match read {
            Ok(0) => return Source::Closed,
            Ok(length) => length,
            Err(error) => {
                tracing::warn!("the output of a command cannot be read: {error}");
                return Source::Closed;
            }
        };
        let output = &self.chunk[..length];
        if let Some(copy) = &self.copy {
            copy.keep(output);
        }
        let bytes = match &mut self.format {
            Format::Unchanged => output.to_vec(),
            Format::Lines(lines) => lines.add(output),
        };
        let written = self.write(bytes).await;
        // The result of a job is the whole output of its command. So keep reading while
        // the output is copied for the result, even if relq's own output is closed.
        if self.copy.is_some() { Source::Open } else { written }
    }

    /// Writes the rest of the output: a last line that has no newline.
    async fn finish(&mut self) {
        if let Format::Lines(lines) = &mut self.format {
            let last = lines.finish();
            self.write(last).await;
        }
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Source {
        let are_lines = matches!(self.format, Format::Lines(_));
        let written = write(self.to, bytes, are_lines).await;
        if written == Source::Closed {
            self.printed = Printed::InPart;
        }
        written
    }
}

/// An output of relq.
#[derive(Debug)]
struct Written {
    /// Whether the last write has failed, for example on a full disk. The output may then end
    /// within a line.
    has_failed: bool,
}

impl Written {
    /// Writes whole lines. If the last write has failed, ends its line first, so that no line
    /// holds text of two commands.
    fn write_lines(&mut self, out: &mut impl Write, lines: &[u8]) -> io::Result<()> {
        let end_of_line: &[u8] = if self.has_failed { b"\n" } else { b"" };
        let written = out.write_all(end_of_line).and_then(|()| out.write_all(lines));
        let written = written.and_then(|()| out.flush());
        self.has_failed = written.is_err();
        written
    }
}

/// Writes to an output of relq. If that is closed, closes the command's output too, so
/// that the command fails at its next write, as in a shell's pipe.
async fn write(to: Stream, bytes: Vec<u8>, are_lines: bool) -> Source {
    /// A lock for each output of relq. The task takes it before it uses a thread for
    /// the write, so that waiting tasks need no threads.
    static WRITING: [Mutex<Written>; 2] =
        [const { Mutex::const_new(Written { has_failed: false }) }; 2];

    if bytes.is_empty() {
        return Source::Open;
    }
    let mut written = WRITING[to as usize].lock().await;
    let writing = spawn_blocking(move || match to {
        Stream::Output if are_lines => {
            written.write_lines(&mut io::stdout().lock(), &bytes)
        }
        Stream::Output => {
            let mut out = io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush())
        }
        Stream::Error => {
            // Ignore errors: the command must not fail because relq's standard error is
            // closed.
            let _ = io::stderr().lock().write_all(&bytes);
            Ok(())
        }
    });
    match writing.await.unwrap_or_else(|error| Err(error.into())) {
        Ok(()) => Source::Open,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!("standard output cannot be written to: {error}");
            }
            Source::Closed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full after some bytes.
    struct Small {
        written: Vec<u8>,
        room: usize,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.written.extend(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_follows_a_failed_write_begins_a_line() {
        let mut disk = Small { written: Vec::new(), room: 3 };
        let mut output = Written { has_failed: false };
        output.write_lines(&mut disk, b"of one\n").unwrap_err();
        disk.room = 100;

        output.write_lines(&mut disk, b"of another\n").unwrap();
        output.write_lines(&mut disk, b"next\n").unwrap();

        assert_eq!(disk.written, b"of \nof another\nnext\n");
    }
}
