//! The lines that a worker logs, and how often.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fmt,
    future::Future,
    io,
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, QueueName, Receipt,
    ReliableQueue, Settlement, WorkerId,
    capabilities::Capabilities,
    environment::{Clock, Environment, OsRandomness, SystemClock, Timestamp},
    error::{ErrorContext, Operation},
    operator::{REPORT_INTERVAL, WorkerReport},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};
use relq_memory::{MemoryQueue, MemoryStore};
use relq_worker::{
    CancellationToken, Failure, Handler, JobContext, KIND_HEADER, MAX_KIND_BYTES,
    Queues, Summary, Worker, WorkerQueue,
    observer::{CallFailed, LeaseLost, Observer},
};

/// The time after which a test fails.
const LIMIT: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3600);

/// The lines that all threads of the process have logged since the start of a test.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `test`, and returns the lines that were logged meanwhile. The heartbeats log on a
/// thread of their own, so only one test runs at a time.
fn logged(test: impl Future<Output = ()>) -> Vec<String> {
    static TURN: Mutex<()> = Mutex::new(());
    static INSTALLED: Once = Once::new();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    INSTALLED.call_once(|| {
        let lines = tracing_subscriber::fmt().with_ansi(false).without_time();
        let lines = lines.with_target(false).with_writer(|| Log).finish();
        tracing::subscriber::set_global_default(lines).unwrap();
    });
    LOG.lock().unwrap().clear();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test);
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    let mut lines: Vec<_> = log.lines().map(|line| line.trim().to_owned()).collect();
    lines.sort();
    lines
}

/// A clock that stands still until a test moves it. So no lease expires, and the machine
/// never seems to have been suspended.
#[derive(Debug, Clone, Default)]
struct MovedClock(Arc<Mutex<Duration>>);

impl MovedClock {
    fn environment(&self) -> Environment {
        Environment::new(Arc::new(self.clone()), Arc::new(OsRandomness))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(0).plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let clock = self.clone();
        let end = clock.elapsed().saturating_add(duration);
        Box::pin(async move {
            while clock.elapsed() < end {
                SystemClock.sleep(Duration::from_millis(2)).await;
            }
        })
    }
}

/// The fault of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It denies the reports of workers.
    NoReports,
    /// It applies settlements, and too few replicas confirm them.
    NoReplicas,
}

/// A queue in a store with a trouble. Counts the reports of workers.
#[derive(Debug, Clone)]
struct Troubled {
    queue: MemoryQueue,
    trouble: Trouble,
    reports: Arc<AtomicUsize>,
}

impl fmt::Display for Troubled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("troubled")
    }
}

#[async_trait]
impl ReliableQueue for Troubled {
    fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.queue.push(jobs, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.queue.claim(ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let settled = self.queue.settle(done).await?;
        if self.trouble != Trouble::NoReplicas {
            return Ok(settled);
        }
        let at = ErrorContext { backend: "test", operation: Operation::Settle };
        Err(Error::NotReplicated { at, source: "0 of 1".into() })
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.queue.extend(worker, held, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.queue.release_worker(worker).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        self.reports.fetch_add(1, SeqCst);
        if self.trouble != Trouble::NoReports {
            return self.queue.report_worker(report).await;
        }
        let at = ErrorContext { backend: "test", operation: Operation::ReportWorker };
        Err(Error::Denied { at, source: "as the test wants it".into() })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.queue.recover(page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        Ok(Arc::new(self.clone()))
    }
}

fn in_memory() -> MemoryQueue {
    let name = QueueName::new("q").unwrap();
    MemoryStore::default().open(name, Environment::default())
}

/// A worker whose leases do not end on a machine that stands still.
fn worker_on(queue: impl ReliableQueue + 'static, clock: &MovedClock) -> Worker {
    Worker::new(Arc::new(queue)).lease(HOUR).environment(clock.environment())
}

async fn push(queue: &MemoryQueue, ids: &[&'static str]) {
    let job = |id: &&'static str| NewJob::new(*id).id(JobId::new(*id).unwrap());
    let jobs: Vec<_> = ids.iter().map(job).collect();
    queue.push(&jobs, None).await.unwrap();
}

async fn eventually(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "it does not come true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs the worker until `is_so` returns true for the counts of its jobs.
async fn run_until(worker: Worker, handler: impl Handler, is_so: fn(&Summary) -> bool) {
    let stop = CancellationToken::new();
    let worker = worker.stop_on(stop.clone().cancelled_owned());
    let progress = worker.progress();
    let running = tokio::spawn(worker.run(handler));
    eventually(|| is_so(&progress.summary())).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// An observer that ignores all events.
struct Ignoring;

impl Observer for Ignoring {}

/// A worker that has nothing to report writes no line, however long it runs.
#[test]
fn a_worker_without_trouble_logs_nothing() {
    let lines = logged(async {
        let (queue, clock) = (in_memory(), MovedClock::default());
        push(&queue, &["1", "2", "3"]).await;
        let worker = worker_on(queue, &clock).observe(Ignoring);
        let handler = async |_: JobContext| Ok::<_, Failure>(());

        run_until(worker, handler, |summary| summary.done == 3).await;
    });

    assert_eq!(lines, [""; 0]);
}

/// The message of a postponed or discarded job is kept nowhere else.
#[test]
fn each_failed_attempt_is_logged_with_its_reason() {
    let lines = logged(async {
        let (queue, clock) = (in_memory(), MovedClock::default());
        push(&queue, &["retried", "discarded", "postponed", "fine"]).await;
        let worker = worker_on(queue, &clock);
        let handler = async |job: JobContext| match job.id().as_str() {
            "retried" => Err(Failure::retry_after(HOUR, "no connection")),
            "discarded" => Err(Failure::discard("outdated")),
            "postponed" => Err(Failure::postpone(HOUR, "closed")),
            _ => Ok(()),
        };

        run_until(worker, handler, |all| {
            (all.retried, all.discarded, all.postponed, all.done) == (1, 1, 1, 1)
        })
        .await;
    });

    let expected = [
        ["INFO a job is postponed", "id=postponed", "after=3600s", "\"closed\""],
        ["INFO an attempt failed", "id=discarded", "attempt=1", "\"outdated\""],
        ["INFO an attempt failed", "id=retried", "attempt=1", "\"no connection\""],
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, words) in lines.iter().zip(expected) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    }
}

/// Another client can push a kind of any length, and each line that a handler logs repeats
/// the kind.
#[test]
fn a_line_of_a_handler_has_the_beginning_of_a_long_kind() {
    let lines = logged(async {
        let (queue, clock) = (in_memory(), MovedClock::default());
        let kind = format!("{}é", "x".repeat(MAX_KIND_BYTES - 1));
        let job = NewJob::new("job").header(KIND_HEADER, kind);
        queue.push(&[job], None).await.unwrap();
        let handler = async |_: JobContext| {
            tracing::info!("sent");
            Ok::<_, Failure>(())
        };

        run_until(worker_on(queue, &clock), handler, |all| all.done == 1).await;
    });

    assert_eq!(lines.len(), 1, "{lines:#?}");
    let beginning = format!("kind=\"{}\"", "x".repeat(MAX_KIND_BYTES - 1));
    assert!(lines[0].contains(&beginning), "{lines:#?}");
}

/// A worker on several queues says in each line which of them it is about.
#[test]
fn a_line_has_the_name_of_its_queue() {
    let lines = logged(async {
        let (mail, clock) = (in_memory(), MovedClock::default());
        push(&mail, &["old"]).await;
        let named = |name: &str, queue: MemoryQueue| {
            WorkerQueue::new(QueueName::new(name).unwrap(), Arc::new(queue))
        };
        let queues = Queues::strict([named("idle", in_memory()), named("mail", mail)]);
        let worker = Worker::on(queues).lease(HOUR).environment(clock.environment());
        let handler = async |_: JobContext| Err::<(), _>(Failure::discard("outdated"));

        run_until(worker, handler, |summary| summary.discarded == 1).await;
    });

    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("name=mail"), "the name of the queue: {lines:#?}");
}

/// R33: a worker whose reports are denied says so once, and not every 20 seconds.
#[test]
fn denied_reports_are_logged_once() {
    let lines = logged(async {
        let (reports, clock) = (Arc::<AtomicUsize>::default(), MovedClock::default());
        let (queue, trouble) = (in_memory(), Trouble::NoReports);
        let queue = Troubled { queue, trouble, reports: Arc::clone(&reports) };
        let stop = CancellationToken::new();
        let worker = worker_on(queue, &clock);
        let worker = worker.stop_on(stop.clone().cancelled_owned());
        let handler = async |_: JobContext| Ok::<_, Failure>(());
        let running = tokio::spawn(worker.run(handler));

        for count in 1..=2 {
            eventually(|| reports.load(SeqCst) == count).await;
            clock.advance(REPORT_INTERVAL);
        }
        eventually(|| reports.load(SeqCst) == 3).await;

        stop.cancel();
        running.await.unwrap().unwrap();
    });

    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("WARN the worker is not listed"), "{lines:#?}");
}

/// Counts the calls that failed, and the leases that were lost.
#[derive(Clone, Default)]
struct Troubles {
    calls: Arc<AtomicUsize>,
    leases: Arc<AtomicUsize>,
}

impl Observer for Troubles {
    fn call_failed(&self, _: &CallFailed<'_>) {
        self.calls.fetch_add(1, SeqCst);
    }

    fn lease_lost(&self, _: &LeaseLost<'_>) {
        self.leases.fetch_add(1, SeqCst);
    }
}

/// R21: a settlement that too few replicas have is done. The heartbeat then finds that the
/// job has no lease. This is neither a lost reply nor a lost lease, after which the job would
/// run twice.
#[test]
fn a_settlement_without_replicas_is_no_lost_reply_and_no_lost_lease() {
    // Less than the shortest pause after a failed settlement.
    const BRIEF: Duration = Duration::from_millis(10);
    let troubles = Troubles::default();
    let lines = logged(async {
        let (queue, clock) = (in_memory(), MovedClock::default());
        push(&queue, &["paid"]).await;
        let (trouble, reports) = (Trouble::NoReplicas, Arc::default());
        let queue = Troubled { queue, trouble, reports };
        let stop = CancellationToken::new();
        let worker = worker_on(queue, &clock)
            .concurrency(NonZeroU32::MIN)
            .observe(troubles.clone())
            .stop_on(stop.clone().cancelled_owned());
        let progress = worker.progress();
        let (started, may_end) =
            (Arc::<Mutex<Option<JobContext>>>::default(), CancellationToken::new());
        let (starts, ends) = (Arc::clone(&started), may_end.clone());
        let running = tokio::spawn(worker.run(move |job: JobContext| {
            *starts.lock().unwrap() = Some(job);
            let ends = ends.clone();
            async move {
                ends.cancelled().await;
                Ok::<_, Failure>(())
            }
        }));
        eventually(|| started.lock().unwrap().is_some()).await;
        let job = started.lock().unwrap().take().unwrap();

        // The heartbeat is due after the settlement has failed, and before its repetition.
        clock.advance(HOUR / 3 - BRIEF);
        may_end.cancel();
        eventually(|| troubles.calls.load(SeqCst) == 1).await;
        clock.advance(BRIEF);
        eventually(|| job.cancellation().is_some()).await;
        clock.advance(Duration::from_secs(1));
        eventually(|| progress.summary().uncertain == 1).await;

        stop.cancel();
        running.await.unwrap().unwrap();
    });

    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("WARN settling fails"), "{lines:#?}");
    let expected = "WARN the job is perhaps settled, by a call that was not confirmed";
    assert!(lines[1].starts_with(expected), "{lines:#?}");
    assert_eq!(troubles.leases.load(SeqCst), 0, "lost leases");
}
