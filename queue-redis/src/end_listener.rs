//! Waiting for the ends of jobs without polling: one connection for all waiting calls of a
//! runtime on a queue's handle.
//!
//! ```text
//!  wait_result -> listen() -> the listener's task sends XREAD BLOCK on `ended`
//!  a job ends  -> its id is added to `ended` -> XREAD returns -> its calls wake
//! ```
//!
//! The stream is only a hint: a call that wakes reads the result, and waits again if the
//! job has not ended. The task wakes all calls whenever it may have missed an end: when it
//! begins to read, and when it reads as many ends as one reply has. Each runtime has a task
//! of its own, so that no call waits for a runtime that is blocked.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use redis::{Value, from_redis_value};
use relq_core::{JobId, error::BoxError};
use tokio::{
    runtime::{self, Handle},
    sync::{Notify, oneshot},
    task::AbortHandle,
};

use crate::{bookkeeping::Bookkeeping, link::Link};

/// How long the server holds a blocking command.
const BLOCK: Duration = Duration::from_secs(5);

/// How much longer the client waits for the reply before it treats the connection as dead.
const GRACE: Duration = Duration::from_secs(5);

/// How long the task pauses after it could not read. The calls look again meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// How many ends one reply has at most.
const MOST: usize = 1000;

/// The id before that of every entry of a stream.
const BEGINNING: &str = "0-0";

/// A reply of XREAD, for one stream: the id and the fields of each entry.
type Ends = Vec<(String, Vec<(String, Vec<(String, Vec<u8>)>)>)>;

/// Reads the ends of jobs, on a connection of its own for each runtime whose calls wait for
/// one, and wakes these calls.
pub(crate) struct EndListener {
    bookkeeping: Bookkeeping,
    by_runtime: Mutex<Vec<Listening>>,
}

/// The task that wakes the calls of one runtime.
struct Listening {
    runtime: runtime::Id,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    bookkeeping: Bookkeeping,
    calls: Calls,
    /// Wakes the task when a call begins to wait.
    stirred: Notify,
}

/// The calls that wait, by the ids of their jobs.
#[derive(Default)]
struct Calls(Mutex<HashMap<String, Vec<oneshot::Sender<()>>>>);

/// A call that waits for the end of a job.
pub(crate) struct WaitingCall(oneshot::Receiver<()>);

impl WaitingCall {
    /// Waits until the job may have ended.
    pub(crate) async fn heard(self) {
        // Without a listener, the caller's own time limit ends the wait.
        if self.0.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl EndListener {
    /// Creates a listener that opens no connection before a call waits.
    pub(crate) fn new(bookkeeping: Bookkeeping) -> Self {
        Self { bookkeeping, by_runtime: Mutex::default() }
    }

    /// Begins to wait for the end of a job.
    pub(crate) fn listen(&self, job: &JobId) -> WaitingCall {
        let shared = self.shared();
        let call = shared.calls.add(job);
        shared.stirred.notify_one();
        call
    }

    /// What the caller's runtime shares with its task, which is started if there is none.
    fn shared(&self) -> Arc<Shared> {
        let runtime = Handle::current();
        let mut by_runtime = lock(&self.by_runtime);
        // A task ends together with its runtime.
        by_runtime.retain(|listening| !listening.task.is_finished());
        let known = by_runtime.iter().find(|known| known.runtime == runtime.id());
        if let Some(known) = known {
            return Arc::clone(&known.shared);
        }
        let shared = Arc::new(Shared::new(self.bookkeeping.clone()));
        let task = runtime.spawn(run(Arc::clone(&shared)).boxed()).abort_handle();
        let (runtime, shared_too) = (runtime.id(), Arc::clone(&shared));
        by_runtime.push(Listening { runtime, shared: shared_too, task });
        shared
    }
}

impl Drop for EndListener {
    fn drop(&mut self) {
        for listening in &*lock(&self.by_runtime) {
            listening.task.abort();
        }
    }
}

impl fmt::Debug for EndListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndListener").finish_non_exhaustive()
    }
}

impl Shared {
    fn new(bookkeeping: Bookkeeping) -> Self {
        Self { bookkeeping, calls: Calls::default(), stirred: Notify::new() }
    }
}

impl Calls {
    fn add(&self, job: &JobId) -> WaitingCall {
        let (wake, woken) = oneshot::channel();
        lock(&self.0).entry(job.as_str().to_owned()).or_default().push(wake);
        WaitingCall(woken)
    }

    /// Whether a call waits. Forgets those that do not wait any more.
    fn are_waiting(&self) -> bool {
        let mut calls = lock(&self.0);
        calls.retain(|_, waiting| {
            waiting.retain(|call| !call.is_closed());
            !waiting.is_empty()
        });
        !calls.is_empty()
    }

    fn wake(&self, job: &str) {
        wake_all(lock(&self.0).remove(job).into_iter().flatten());
    }

    fn wake_everyone(&self) {
        wake_all(std::mem::take(&mut *lock(&self.0)).into_values().flatten());
    }
}

fn wake_all(calls: impl Iterator<Item = oneshot::Sender<()>>) {
    for call in calls {
        // A call that does not wait any more needs no wake-up.
        let _ = call.send(());
    }
}

async fn run(shared: Arc<Shared>) {
    let mut reading = None;
    loop {
        if !shared.calls.are_waiting() {
            reading = None;
            shared.stirred.notified().await;
            continue;
        }
        if let Err(error) = read_ends(&shared, &mut reading).await {
            tracing::debug!(%error, "cannot wait for the ends of jobs");
            reading = None;
            shared.bookkeeping.conn.environment().clock().sleep(PAUSE).await;
        }
    }
}

/// Waits for ends after the last one that was read, and wakes their calls.
async fn read_ends(
    shared: &Shared,
    reading: &mut Option<(Link, String)>,
) -> Result<(), BoxError> {
    let (link, last) = match reading {
        Some(reading) => reading,
        None => {
            let begun = begin(shared).await?;
            shared.calls.wake_everyone();
            reading.insert(begun)
        }
    };
    let cmd = shared.bookkeeping.waiting_for_ends(last, MOST, BLOCK);
    let reply: Value = link.ask(&cmd, BLOCK + GRACE).await?;
    let streams: Option<Ends> = from_redis_value(reply)?;
    let ends: Vec<_> =
        streams.into_iter().flatten().flat_map(|(_, ends)| ends).collect();
    if ends.len() >= MOST {
        shared.calls.wake_everyone();
    }
    for (id, fields) in ends {
        *last = id;
        match fields.first().map(|(_, job)| String::from_utf8_lossy(job)) {
            Some(job) if !job.is_empty() => shared.calls.wake(&job),
            _ => shared.calls.wake_everyone(),
        }
    }
    Ok(())
}

/// Opens a connection, and returns it with the id of the last end that is known now.
async fn begin(shared: &Shared) -> Result<(Link, String), BoxError> {
    let mut link = shared.bookkeeping.conn.open_blocking().await?;
    let reply: Value = link.ask(&shared.bookkeeping.reading_last_end(), GRACE).await?;
    let entries: Vec<(String, Value)> = from_redis_value(reply)?;
    let last = entries.into_iter().next().map(|(id, _)| id);
    Ok((link, last.unwrap_or_else(|| BEGINNING.to_owned())))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connection is read as long as a call waits. A call that was dropped does not.
    #[test]
    fn a_dropped_call_does_not_wait() {
        let calls = Calls::default();
        let job = JobId::new("job").unwrap();
        let (first, second) = (calls.add(&job), calls.add(&job));

        assert!(calls.are_waiting());
        drop(first);
        assert!(calls.are_waiting());
        drop(second);
        assert!(!calls.are_waiting());
        assert!(lock(&calls.0).is_empty());
    }
}
