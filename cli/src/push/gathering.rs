//! The batch between the thread that reads and the task that pushes.
//!
//! The thread gathers lines until they fill a batch and then waits; the task takes
//! what has been gathered, be it full or not. So a slow input is pushed line by line
//! and a fast one in full batches, and no more than two batches are ever held.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use relq::Bytes;
use tokio::sync::Notify;

use super::lines::ReadError;

/// Payload bytes after which a batch is full, whatever its count.
const BATCH_BYTES: usize = 1 << 20;

pub(super) type Batch = Vec<Bytes>;

/// What was read and not pushed yet.
#[derive(Debug)]
pub(super) struct Gathering {
    most: usize,
    state: Mutex<State>,
    /// There is something to take.
    filled: Notify,
    /// There is room again.
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

    /// Adds a line, waiting while the batch is full.
    pub(super) fn add(&self, line: Bytes) {
        let mut state = self.state();
        while state.batch.len() >= self.most || state.bytes >= BATCH_BYTES {
            self.filled.notify_one();
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += line.len();
        state.batch.push(line);
    }

    /// What was added so far may be taken: there is nothing more to read just now.
    pub(super) fn offer(&self) {
        self.filled.notify_one();
    }

    /// Nothing more will be added.
    pub(super) fn end(&self, end: Result<(), ReadError>) {
        self.state().end = Some(end);
        self.filled.notify_one();
    }

    /// Takes what was gathered, waiting until there is something; what was gathered
    /// before an error comes before it.
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
