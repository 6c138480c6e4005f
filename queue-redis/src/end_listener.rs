//! Waiting for the ends of jobs without polling: one connection for all waiting calls of a
//! queue's handle.
//!
//! ```text
//!  wait_result -> listen() -> the listener's task sends XREAD BLOCK on `ended`
//!  a job ends  -> its id is added to `ended` -> XREAD returns -> its calls wake
//! ```
//!
//! The stream is only a hint: a call that wakes reads the result, and waits again if the
//! job has not ended. The task wakes all calls whenever it may have missed an end: when it
//! begins to read, and when it reads as many ends as one reply has.

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
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use crate::{bookkeeping::Bookkeeping, link::Link};

/// How long the server holds a blocking command.
const BLOCK: Duration = Duration::from_secs(5);

/// How much longer the client waits for the reply before it treats the connection as dead.
const GRACE: Duration = Duration::from_secs(5);

/// How long the task pauses after it could not read. The calls look again meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// The most ends of one reply.
const MOST: usize = 1000;

/// The id before that of every entry of a stream.
const BEGINNING: &str = "0-0";

/// A reply of XREAD, for one stream: the id and the fields of each entry.
type Ends = Vec<(String, Vec<(String, Vec<(String, Vec<u8>)>)>)>;

/// Reads the ends of jobs on a connection of its own while calls wait for one, and wakes
/// these calls.
pub(crate) struct EndListener {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    bookkeeping: Bookkeeping,
    calls: Mutex<HashMap<String, Vec<oneshot::Sender<()>>>>,
    /// Wakes the task when a call begins to wait.
    stirred: Notify,
}

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
        let (calls, stirred) = (Mutex::default(), Notify::new());
        Self {
            shared: Arc::new(Shared { bookkeeping, calls, stirred }),
            task: Mutex::new(None),
        }
    }

    /// Begins to wait for the end of a job. The listener's task runs on the runtime of the
    /// caller.
    pub(crate) fn listen(&self, job: &JobId) -> WaitingCall {
        let (wake, woken) = oneshot::channel();
        let mut calls = lock(&self.shared.calls);
        calls.entry(job.as_str().to_owned()).or_default().push(wake);
        drop(calls);
        let mut task = lock(&self.task);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(run(Arc::clone(&self.shared)).boxed()));
        }
        self.shared.stirred.notify_one();
        WaitingCall(woken)
    }
}

impl Drop for EndListener {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl fmt::Debug for EndListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndListener").finish_non_exhaustive()
    }
}

impl Shared {
    /// Whether a call waits. Forgets those that do not wait any more.
    fn has_calls(&self) -> bool {
        let mut calls = lock(&self.calls);
        calls.retain(|_, waiting| {
            waiting.retain(|call| !call.is_closed());
            !waiting.is_empty()
        });
        !calls.is_empty()
    }

    fn wake(&self, job: &str) {
        wake_all(lock(&self.calls).remove(job).into_iter().flatten());
    }

    fn wake_everyone(&self) {
        wake_all(std::mem::take(&mut *lock(&self.calls)).into_values().flatten());
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
        if !shared.has_calls() {
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
            shared.wake_everyone();
            reading.insert(begun)
        }
    };
    let cmd = shared.bookkeeping.waiting_for_ends(last, MOST, BLOCK);
    let reply: Value = link.ask(&cmd, BLOCK + GRACE).await?;
    let streams: Option<Ends> = from_redis_value(reply)?;
    let ends: Vec<_> =
        streams.into_iter().flatten().flat_map(|(_, ends)| ends).collect();
    if ends.len() >= MOST {
        shared.wake_everyone();
    }
    for (id, fields) in ends {
        *last = id;
        match fields.first().map(|(_, job)| String::from_utf8_lossy(job)) {
            Some(job) if !job.is_empty() => shared.wake(&job),
            _ => shared.wake_everyone(),
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
