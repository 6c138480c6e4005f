//! Tests of `run_until_empty`, which ends the worker when no work is left.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    Error, JobId, NewJob, Operator, Queue, ReliableQueueExt, Stats,
    environment::Environment,
    error::{ErrorContext, Operation},
    outcome::Recovered,
    partitions::PartitionedQueue,
    worker::{Failure, JobContext, Queues, WorkerError},
};
use relq_conformance::overrides::{OverriddenQueue, Override, Right};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    fixture::{Fixture, LIMIT, worker_on},
    queues::{served, worker_on_several},
};

/// A duration that is longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// Every job is run, and a failed one is retried before the worker ends.
pub(crate) async fn it_ends_when_all_jobs_are_done(fixture: Fixture) {
    fixture.push_many(20).await;
    let handler = async |job: JobContext| match job.attempt() {
        1 => Err(Failure::from("the first attempt fails")),
        _ => Ok(()),
    };
    let queue = fixture.queue.clone();
    let ended = fixture.worker().run_until_empty(queue, Duration::MAX, handler).await;

    assert_eq!(ended.unwrap().done, 20);
    assert_eq!(fixture.stats().await.unfinished(), 0);
}

/// The worker does not wait for a job that is due later than `max_wait`. It ends and
/// leaves that job in the queue.
pub(crate) async fn it_leaves_what_falls_due_later(fixture: Fixture) {
    fixture.push("now").await;
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let queue = fixture.queue.clone();
    let ended = fixture.worker().run_until_empty(queue, LONG / 2, handler).await;

    assert_eq!(ended.unwrap().done, 1);
    assert_eq!(fixture.stats().await.scheduled, 1);
}

/// The worker ends with an error when the queue is paused.
pub(crate) async fn it_ends_when_the_queue_is_paused(fixture: Fixture) {
    fixture.push("job").await;
    fixture.queue.pause().await.unwrap();
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = fixture.worker();
    let progress = worker.progress();
    let ended = worker.run_until_empty(fixture.queue.clone(), LONG, handler).await;

    assert!(matches!(ended, Err(WorkerError::Paused)), "{ended:?}");
    assert_eq!((progress.summary().done, fixture.stats().await.ready), (0, 1));
}

/// A request to stop ends a worker that waits for a scheduled job.
pub(crate) async fn it_stops_when_asked(fixture: Fixture) {
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = fixture.worker().stop_on(async {});
    let ended = worker.run_until_empty(fixture.queue.clone(), LONG * 2, handler).await;

    assert_eq!(ended.unwrap().done, 0);
    assert_eq!(fixture.stats().await.scheduled, 1);
}

/// How long a slow recovery takes to begin. A worker that did not wait for it would have
/// ended by then.
const SLOW: Duration = Duration::from_millis(500);

/// A queue whose recoveries begin late.
struct RecoversLate;

#[async_trait::async_trait]
impl Override for RecoversLate {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        tokio::time::sleep(SLOW).await;
        right.recover(page).await
    }
}

/// A queue whose recoveries push a job to another queue, as those of Redis Streams push the
/// completion jobs of batches.
struct PushesLate {
    other: Arc<dyn Queue>,
}

#[async_trait::async_trait]
impl Override for PushesLate {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        tokio::time::sleep(SLOW).await;
        let job = NewJob::new("joined").id(JobId::new("completion").unwrap());
        self.other.push_one(job).await?;
        right.recover(page).await
    }
}

/// A queue whose recoveries fail.
#[derive(Default)]
struct FailsToRecover {
    recoveries: AtomicUsize,
}

#[async_trait::async_trait]
impl Override for FailsToRecover {
    async fn recover(&self, _: &Right, _: NonZeroU32) -> Result<Recovered, Error> {
        self.recoveries.fetch_add(1, SeqCst);
        let at = ErrorContext { backend: "unrecovered", operation: Operation::Recover };
        Err(Error::Unavailable { at, source: "as the test wants it".into() })
    }
}

fn overridden(queue: &Arc<dyn Queue>, fault: Arc<dyn Override>) -> Arc<dyn Queue> {
    let right = Right { queue: Arc::clone(queue), environment: Environment::default() };
    Arc::new(OverriddenQueue::new(right, fault))
}

/// R30: the last followers of a cancelled job are cancelled by recoveries. The worker does
/// not end before that, and none is left that can never run.
pub(crate) async fn it_leaves_no_follower_of_a_cancelled_job(fixture: Fixture) {
    const JOBS: u64 = 250;
    let id = |number: u64| JobId::new(format!("chain-{number}")).unwrap();
    let link = |number: u64| match number {
        0 => NewJob::new("0").id(id(0)),
        _ => NewJob::new(number.to_string()).id(id(number)).after(id(number - 1)),
    };
    let chain: Vec<_> = (0..JOBS).map(link).collect();
    fixture.queue.push_all(&chain).await.unwrap();
    fixture.queue.cancel(&id(0)).await.unwrap();
    assert!(fixture.stats().await.scheduled > 0);
    let queue = overridden(&fixture.queue, Arc::new(RecoversLate));

    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let running = worker_on(queue.clone()).run_until_empty(queue, LONG, handler);
    let ended = timeout(LIMIT, running).await.expect("the worker ends");

    assert_eq!(ended.unwrap().done, 0);
    let stats = fixture.stats().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, JOBS));
}

/// B5: a recovery of one queue may push a job to another. The worker runs that job before
/// it ends.
pub(crate) async fn it_runs_what_a_recovery_pushes(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    let late = PushesLate { other: second.clone() };
    let first = overridden(&fixture.queue, Arc::new(late));
    let queues = Queues::strict([
        served("first", first.clone()),
        served("second", second.clone()),
    ]);
    let all: Vec<Arc<dyn Operator>> = vec![first, second];

    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let running = worker_on_several(queues).run_until_all_empty(all, LONG, handler);
    let ended = timeout(LIMIT, running).await.expect("the worker ends");

    assert_eq!(ended.unwrap().done, 1);
}

/// A recovery that fails is repeated a few times. Then the worker ends as if nothing were
/// left to recover, without an error.
pub(crate) async fn it_ends_although_no_recovery_works(fixture: Fixture) {
    fixture.push("job").await;
    let fault = Arc::new(FailsToRecover::default());
    let queue = overridden(&fixture.queue, fault.clone());

    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = worker_on(queue.clone()).reap_every(LONG);
    let running = worker.run_until_empty(queue, LONG, handler);
    let ended = timeout(LIMIT, running).await.expect("the worker ends");

    assert_eq!(ended.unwrap().done, 1);
    assert!(fault.recoveries.load(SeqCst) > 1);
}

/// How a job ends.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Done,
    Discarded,
    Dead,
    Cancelled,
}

/// How many jobs of a queue have ended, however they ended.
fn ended(stats: &Stats) -> u64 {
    stats.finished + stats.discarded + stats.dead + stats.cancelled
}

/// A queue that runs one job, if it has any, while its statistics are read.
struct RunsOneWhenRead(Arc<Semaphore>);

#[async_trait::async_trait]
impl Override for RunsOneWhenRead {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let before = right.stats().await?;
        if before.unfinished() == 0 {
            return Ok(before);
        }
        self.0.add_permits(1);
        loop {
            let stats = right.stats().await?;
            if ended(&stats) > ended(&before) {
                return Ok(stats);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The statistics of several queues are not read at the same time. A job can push another
/// one to the queue that was just read, and end before its own queue is read: each read then
/// finds an empty queue. The worker sees by the numbers of jobs that have ended, however
/// they ended, that it must look again.
pub(crate) async fn it_sees_jobs_that_move_between_the_reads(fixture: Fixture) {
    jobs_that_move_are_run(&fixture, "queue", |queues| queues).await;
}

/// The statistics of the parts of one queue are not read at the same time either.
pub(crate) async fn it_sees_jobs_that_move_between_the_parts(fixture: Fixture) {
    jobs_that_move_are_run(&fixture, "part", |parts| {
        let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
        vec![Arc::new(queue)]
    })
    .await;
}

/// Jobs move between two queues while the worker reads the statistics of what `read` makes of
/// these queues.
async fn jobs_that_move_are_run(
    fixture: &Fixture,
    name: &str,
    read: impl Fn(Vec<Arc<dyn Queue>>) -> Vec<Arc<dyn Queue>>,
) {
    const JOBS: usize = 7;
    for ending in [Ending::Done, Ending::Discarded, Ending::Dead, Ending::Cancelled] {
        let names = ["first", "second"].map(|it| format!("{it}-{name}-{ending:?}"));
        let mut queues = Vec::new();
        for name in &names {
            queues.push(fixture.open_another(name).await);
        }
        let permits = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let watched = queues.iter().zip(&permits).map(|(queue, permits)| {
            let environment = Environment::default();
            let right = Right { queue: Arc::clone(queue), environment };
            let runs_one = Arc::new(RunsOneWhenRead(Arc::clone(permits)));
            Arc::new(OverriddenQueue::new(right, runs_one)) as Arc<dyn Queue>
        });
        let watched = read(watched.collect()).into_iter();
        let watched = watched.map(|queue| queue as Arc<dyn Operator>).collect();
        queues[1].push_one(NewJob::new((JOBS - 1).to_string())).await.unwrap();
        let [first, second] = [0, 1].map(|at| served(&names[at], queues[at].clone()));
        let worker = worker_on_several(Queues::strict([first, second]));
        // A worker that stops too early does not wait for the permit of its last job.
        let worker = worker.grace(Duration::ZERO);
        let (first, both) = (names[0].clone(), queues.clone());
        let handler = move |job: JobContext| {
            let at = usize::from(job.queue().unwrap().as_str() != first);
            let (own, other) = (both[at].clone(), both[1 - at].clone());
            let permits = Arc::clone(&permits[at]);
            async move {
                permits.acquire().await?.forget();
                let left: usize = std::str::from_utf8(job.payload())?.parse()?;
                if left > 0 {
                    other.push_one(NewJob::new((left - 1).to_string())).await?;
                }
                match ending {
                    Ending::Done => Ok(()),
                    Ending::Discarded => Err(Failure::discard("no")),
                    Ending::Dead => Err(Failure::dead("no")),
                    Ending::Cancelled => Ok(own.cancel(job.id()).await.map(drop)?),
                }
            }
        };

        let running = worker.run_until_all_empty(watched, LONG, handler);
        timeout(LIMIT, running).await.expect("the worker ends").unwrap();

        let mut count = 0;
        for queue in &queues {
            let stats = queue.stats().await.unwrap();
            assert_eq!(stats.unfinished(), 0, "{ending:?}: jobs that are left");
            count += ended(&stats);
        }
        assert_eq!(count, JOBS as u64, "{ending:?}");
    }
}
