//! The buffer between the thread that reads lines and the task that pushes them.
//!
//! The thread gathers lines until they fill one push call, and then waits. The task
//! takes the gathered lines, whether the buffer is full or not. So a slow input is
//! pushed line by line and a fast one in full calls, and the memory holds the lines of
//! at most two calls.

use std::{
    io,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use relq::Bytes;
use tokio::sync::Notify;

/// The number of payload bytes at which the buffer is full, however few lines it has.
const BATCH_BYTES: usize = 1 << 20;

pub(super) type Batch = Vec<Bytes>;

/// Why reading the input stopped before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("the input cannot be read: {0}")]
    Input(#[from] io::Error),
    #[error("line {line} is longer than the {limit} bytes that a payload may have")]
    TooLong { line: usize, limit: usize },
}

/// The buffer of lines that are read and not yet pushed.
#[derive(Debug)]
pub(super) struct Gathering {
    most: usize,
    state: Mutex<State>,
    /// Notified when the buffer has lines. The task that pushes them waits for this.
    filled: Notify,
    /// Notified when the buffer has room again. The thread that reads the input waits
    /// for this.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    bytes: usize,
    end: Option<Result<(), ReadError>>,
}

impl Gathering {
    pub(super) fn new(most: usize) -> Self {
        let (filled, emptied) = (Notify::new(), Condvar::new());
        Self { most, state: Mutex::default(), filled, emptied }
    }

    /// Adds a line. Blocks the reading thread while the buffer is full.
    pub(super) fn add(&self, line: Bytes) {
        let mut state = self.state();
        while state.batch.len() >= self.most || state.bytes >= BATCH_BYTES {
            self.filled.notify_one();
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += line.len();
        state.batch.push(line);
    }

    /// Wakes the task that pushes, even if the buffer is not full. The reading thread
    /// calls this before it waits for more input.
    pub(super) fn offer(&self) {
        self.filled.notify_one();
    }

    /// Marks the end of the input. No line is added after this call.
    pub(super) fn end(&self, end: Result<(), ReadError>) {
        self.state().end = Some(end);
        self.filled.notify_one();
    }

    /// Takes the gathered lines, and waits until there are some. Returns `None` at the
    /// end of the input. An error of the input is returned after the lines before it.
    pub(super) async fn take(&self) -> Option<Result<Batch, ReadError>> {
        loop {
            if let Poll::Ready(next) = self.take_now() {
                return next;
            }
            self.filled.notified().await;
        }
    }

    fn take_now(&self) -> Poll<Option<Result<Batch, ReadError>>> {
        let mut state = self.state();
        if !state.batch.is_empty() {
            state.bytes = 0;
            self.emptied.notify_one();
            return Poll::Ready(Some(Ok(std::mem::take(&mut state.batch))));
        }
        match &mut state.end {
            None => Poll::Pending,
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    /// Two calls with long lines need no more memory than two with short ones.
    #[tokio::test]
    async fn long_lines_fill_the_buffer_by_their_bytes() {
        let gathering = Arc::new(Gathering::new(1000));
        let to = Arc::clone(&gathering);
        let reading = thread::spawn(move || {
            for _ in 0..9 {
                to.add(vec![b'x'; BATCH_BYTES / 2].into());
            }
            to.end(Ok(()));
        });

        let mut batches = Vec::new();
        let mut has_ended = false;
        while !has_ended {
            // The thread offers nothing, so this ends when the buffer is full or complete.
            gathering.filled.notified().await;
            while let Poll::Ready(next) = gathering.take_now() {
                match next {
                    Some(batch) => batches.push(batch.expect("no error").len()),
                    None => {
                        has_ended = true;
                        break;
                    }
                }
            }
        }

        reading.join().expect("the thread adds all lines");
        assert_eq!(batches.iter().sum::<usize>(), 9, "each line is pushed once");
        let most = batches.iter().max();
        assert!(most <= Some(&2), "half a megabyte each, in the calls: {batches:?}");
    }
}
