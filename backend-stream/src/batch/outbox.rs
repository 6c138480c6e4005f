//! Pushes completion jobs to other queues.
//!
//! A completion job for another queue is stored in the outbox in the step that
//! completes the batch. It is removed after the push. Its id is fixed, so however often
//! workers push it, the queue stores it once (B5). That holds as long as the other
//! queue remembers the id: until five minutes after the job's end.
//!
//! A call that may complete a batch pushes a few jobs, because its caller waits. If
//! it leaves others, a task of the client pushes these. All calls and tasks take jobs at
//! random from the outbox, so clients that forward at the same time seldom push the same
//! jobs.
//!
//! A queue that refuses its jobs or cannot be reached delays no other call: after a
//! failure only `recover` tries it again, and does not fail if that queue fails again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use relq_core::{Error, JobId, NewJob, QueueName, error::Operation};
use relq_redis::entry::Entry;
use tokio::runtime::Handle;
use tracing::Instrument as _;

use crate::{
    Streams,
    lease::{Lease, Token},
    scripts::{Letter, Store},
};

/// How many completion jobs a call that may complete a batch pushes to other queues at
/// most, because its caller waits. A task that pushes what such calls leave takes as many
/// at a time.
const FORWARDED_PER_CALL: u32 = 10;

/// How many completion jobs one recovery pushes to other queues at most.
const PAGE: u32 = 100;

/// How long the release of a worker may push completion jobs. It is shorter than the time
/// for which a worker that stops waits for its release, so that a queue that cannot be
/// reached does not make the release fail.
const REST_LIMIT: Duration = Duration::from_secs(3);

/// After a failure to push to a queue, how long only `recover` tries that queue, and how
/// long further failures are not logged as warnings.
const PAUSE: Duration = Duration::from_secs(60);

/// The queues to which the last push of a completion job has failed. This is only a
/// hint, so it need not outlive the process.
#[derive(Debug, Default)]
pub(crate) struct FailedQueues(Mutex<HashMap<QueueName, Failure>>);

/// Times of a queue's failures, by the client's clock.
#[derive(Debug, Clone, Copy)]
struct Failure {
    last: Duration,
    /// When a failure was last logged as a warning.
    logged: Duration,
}

impl FailedQueues {
    /// Whether a push to this queue has just failed, so that only `recover` forwards
    /// completions to it.
    fn is_paused(&self, queue: &QueueName, now: Duration) -> bool {
        self.lock().get(queue).is_some_and(|failure| now < failure.last + PAUSE)
    }

    /// Notes a failure, and logs that the jobs for this queue stay in the outbox.
    fn note(&self, queue: &QueueName, error: &Error, now: Duration) {
        const MESSAGE: &str = "completions cannot be forwarded: a recovery tries again";
        let mut failures = self.lock();
        let logged = failures.get(queue).map(|failure| failure.logged);
        let logged = logged.filter(|logged| now < *logged + PAUSE);
        let failure = Failure { last: now, logged: logged.unwrap_or(now) };
        failures.insert(queue.clone(), failure);
        drop(failures);
        let error = error.full_message();
        if logged.is_none() {
            tracing::warn!(%queue, error, "{MESSAGE}");
        } else {
            tracing::debug!(%queue, error, "{MESSAGE}");
        }
    }

    fn forget(&self, queue: &QueueName) {
        self.lock().remove(queue);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The completion jobs for one queue, and the batches whose completions they are.
#[derive(Debug, Default)]
struct Completions {
    batches: Vec<Bytes>,
    ids: Vec<JobId>,
    jobs: Vec<NewJob>,
}

/// Pushes a few completion jobs of the outbox to their queues, except to queues that have
/// just failed. A task pushes the others. The next recovery pushes those that fail now.
pub(crate) async fn forward(streams: &Streams, operation: Operation) {
    if forward_few(streams, operation).await {
        go_on(streams, operation);
    }
}

/// Starts a task that pushes completion jobs until none is left that can be pushed now,
/// unless this runtime has such a task.
fn go_on(streams: &Streams, operation: Operation) {
    let runtime = Handle::current();
    let Some(mut turn) = streams.forwarders.begin(runtime.id()) else { return };
    let streams = streams.clone();
    let forwarding = async move {
        loop {
            while forward_few(&streams, operation).await {}
            if !turn.is_extended() {
                break;
            }
        }
    };
    runtime.spawn(forwarding.in_current_span());
}

/// Pushes completion jobs until none is left that can be pushed now, if a task of this
/// client has not done so yet, but for at most [`REST_LIMIT`]. The client's process may end
/// after this call, and the task with it.
pub(crate) async fn forward_the_rest(streams: &Streams, operation: Operation) {
    if !streams.forwarders.are_running() {
        return;
    }
    let forwarding = async { while forward_few(streams, operation).await {} };
    let clock = streams.store.conn.environment().clock();
    tokio::select! {
        biased;
        () = forwarding => {}
        () = clock.sleep(REST_LIMIT) => {
            tracing::debug!("completions are left to the next recovery");
        }
    }
}

/// Pushes a few completion jobs. Returns whether more are left that can be pushed now.
async fn forward_few(streams: &Streams, operation: Operation) -> bool {
    let forwarded = forward_some(streams, operation, FORWARDED_PER_CALL).await;
    forwarded.unwrap_or_else(|error| {
        tracing::debug!(%error, "completions are left to the next recovery");
        false
    })
}

/// Pushes one page of completion jobs to their queues. Returns whether more are left
/// that can be pushed now.
pub(crate) async fn forward_page(streams: &Streams, page: u32) -> Result<bool, Error> {
    forward_some(streams, Operation::Recover, page.min(PAGE)).await
}

/// Pushes up to `most` completion jobs to their queues. Returns whether more are left
/// that can be pushed now. The jobs of a queue that refuses them or cannot be reached
/// stay in the outbox, and the jobs of other queues are still pushed.
///
/// # Errors
/// When the outbox cannot be read.
async fn forward_some(
    streams: &Streams,
    operation: Operation,
    most: u32,
) -> Result<bool, Error> {
    let Streams { store, failed_queues, .. } = streams;
    let clock = store.conn.environment().clock();
    let (letters, count) = store.read_outbox(operation, most).await?;
    let (read, mut forwarded) = (letters.len() as u64, 0);
    let mut by_queue = by_queue(letters, operation);
    if operation != Operation::Recover {
        let now = clock.elapsed();
        by_queue.retain(|queue, _| !failed_queues.is_paused(queue, now));
    }
    let calls = by_queue.into_iter().map(|(queue, completions)| async move {
        let outcome = forward_to(store, operation, &queue, completions).await;
        (queue, outcome)
    });
    for (queue, outcome) in join_all(calls).await {
        match outcome {
            Ok(pushed) => {
                forwarded += pushed;
                failed_queues.forget(&queue);
            }
            Err(error) => failed_queues.note(&queue, &error, clock.elapsed()),
        }
    }
    Ok(forwarded > 0 && count > read)
}

/// Groups completion jobs by their queues. Leaves out damaged ones.
fn by_queue(
    letters: Vec<Letter>,
    operation: Operation,
) -> BTreeMap<QueueName, Completions> {
    let mut by_queue = BTreeMap::<_, Completions>::new();
    for letter in letters {
        if let Some((queue, id, job)) = read(&letter) {
            let completions = by_queue.entry(queue).or_default();
            completions.batches.push(letter.batch);
            completions.ids.push(id);
            completions.jobs.push(job);
        } else if operation == Operation::Recover {
            let batch = String::from_utf8_lossy(&letter.batch);
            tracing::warn!(%batch, "the completion of a batch is damaged");
        }
    }
    by_queue
}

/// Pushes completion jobs to one queue, and removes them from the outbox. Returns how
/// many they are.
async fn forward_to(
    store: &Store,
    operation: Operation,
    queue: &QueueName,
    completions: Completions,
) -> Result<usize, Error> {
    let Completions { batches, ids, jobs } = completions;
    let conn = store.conn.for_queue(operation, queue.clone()).await?;
    let there = Store::new(conn, queue.clone());
    there.bookkeeping.push(&jobs, ids.clone(), None).await?;
    store.leave_outbox(operation, batches.iter().zip(&ids)).await?;
    Ok(jobs.len())
}

fn read(letter: &Letter) -> Option<(QueueName, JobId, NewJob)> {
    let queue = QueueName::new(&letter.queue).ok()?;
    let entry = Entry::decode(&letter.entry).ok()?;
    let mut job = NewJob::new(entry.payload)
        .id(entry.id.clone())
        .priority(entry.priority)
        .max_attempts(entry.max_attempts)
        .delay(Duration::from_millis(letter.delay_ms));
    job.headers = entry.headers;
    job.lease = entry.lease;
    job.keep_result = entry.keep_result;
    if letter.expires_ms > 0 {
        job.expires_in = Some(Duration::from_millis(letter.expires_ms));
    }
    Some((queue, entry.id, job))
}

/// Whether a lease, or the token of a receipt, belongs to a piece of a batch. The piece can
/// be the last of its batch, so a call that ends it may complete the batch.
pub(crate) fn is_piece(lease: &[u8]) -> bool {
    let of_lease = || Lease::parse(&Bytes::copy_from_slice(lease)).map(|it| it.token);
    Token::parse(lease).or_else(of_lease).is_some_and(|token| token.is_piece())
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use relq_core::error::ErrorContext;

    use super::*;

    /// The warnings that were logged on the thread of the test.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn warnings(&self) -> usize {
            let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            log.matches("completions cannot be forwarded").count()
        }
    }

    impl io::Write for Log {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An operator sees the first failure of a queue at once, and no log is flooded by the
    /// next ones.
    #[test]
    fn a_queue_that_goes_on_failing_is_warned_of_once_a_pause() {
        let log = Log::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
        let lines = lines.with_writer(move || writer.clone()).finish();
        let _guard = tracing::subscriber::set_default(lines);
        let failures = FailedQueues::default();
        let queue = QueueName::new("there").unwrap();
        let at = ErrorContext { backend: "stream", operation: Operation::Push };
        let error = Error::Invalid { at, reason: "no".to_owned() };
        let moment = Duration::from_millis(1);

        for (now, warnings) in [
            (Duration::ZERO, 1),
            (moment, 1),
            (PAUSE - moment, 1),
            (PAUSE, 2),
            (PAUSE + moment, 2),
        ] {
            failures.note(&queue, &error, now);

            assert_eq!(log.warnings(), warnings, "at {now:?}");
        }
    }
}
