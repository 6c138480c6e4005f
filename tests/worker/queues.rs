//! Tests of a worker on several queues: it shares its slots between them as it was told,
//! and a queue whose store is down does not hold up the others.

use std::{
    future::pending,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    NewJob, Queue, QueueName, ReliableQueue, ReliableQueueExt,
    worker::{
        Failure, Handler, JobContext, Queues, RetryPolicy, Worker, WorkerError,
        WorkerQueue,
        observer::{Ended, Observer},
    },
};
use tokio::sync::Notify;

use crate::{
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Fixture, LONG_LEASE, Running, StoreLocation, eventually},
};

/// A duration that is longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

pub(crate) async fn push_many(queue: &dyn Queue, count: usize) {
    let jobs: Vec<_> = (0..count).map(|n| NewJob::new(n.to_string())).collect();
    queue.push_all(&jobs).await.unwrap();
}

pub(crate) fn served(name: &str, queue: Arc<dyn ReliableQueue>) -> WorkerQueue {
    WorkerQueue::new(QueueName::new(name).unwrap(), queue)
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// Creates a worker with the settings of `Fixture::worker`.
pub(crate) fn worker_on_several(queues: Queues) -> Worker {
    let prompt = Duration::from_millis(1);
    Worker::on(queues)
        .lease(LONG_LEASE)
        .reap_every(Duration::from_millis(200))
        .retry(RetryPolicy::exponential(prompt, prompt).unwrap())
}

/// The names of the queues of the jobs that a handler has run, in the order of their
/// starts.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<String>>>);

impl Starts {
    fn handler(&self) -> impl Handler + use<> {
        let starts = self.clone();
        move |job: JobContext| {
            let queue = job.queue().unwrap().as_str().to_owned();
            starts.0.lock().unwrap().push(queue);
            async { Ok::<_, Failure>(()) }
        }
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// How many of the first `starts` jobs were of the queue.
    fn of_first(&self, starts: usize, queue: &str) -> usize {
        let names = self.0.lock().unwrap();
        names[..starts].iter().filter(|name| *name == queue).count()
    }
}

/// Each job of each queue runs once, under the name of its queue, and no queue uses more
/// slots than its own limit and the worker's allow, also when the other queue is empty.
pub(crate) async fn queues_share_slots_within_their_limits(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push_many(60).await;
    push_many(&*second, 90).await;
    let (now, peaks) = (Arc::new([const { AtomicUsize::new(0) }; 3]), Peaks::default());

    let peak = peaks.clone();
    let queues = Queues::weighted([
        (served("first", fixture.queue.clone()), many(2)),
        (served("second", second.clone()).concurrency(many(2)), many(1)),
    ]);
    let worker = worker_on_several(queues).concurrency(many(4));
    let worker = Running::start(worker, move |job: JobContext| {
        let (now, peak) = (Arc::clone(&now), peak.clone());
        async move {
            let queue = usize::from(job.queue().unwrap().as_str() == "second");
            for count in [queue, 2] {
                peak.0[count].fetch_max(now[count].fetch_add(1, SeqCst) + 1, SeqCst);
            }
            // The first handlers wait until all slots are in use.
            eventually(|| peak.0[2].load(SeqCst) == 4).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            for count in [queue, 2] {
                now[count].fetch_sub(1, SeqCst);
            }
            Ok::<_, Failure>(())
        }
    });
    worker.until(|summary| summary.done == 150).await;

    assert_eq!(worker.stop().await.done, 150);
    assert_eq!(fixture.stats().await.finished, 60);
    assert_eq!(second.stats().await.unwrap().finished, 90);
    let [_, of_second, of_all] = &*peaks.0;
    assert!(of_second.load(SeqCst) <= 2, "{of_second:?}");
    assert_eq!(of_all.load(SeqCst), 4);
}

/// The largest number of handlers that ran at once: of each queue, and of both.
#[derive(Clone, Default)]
struct Peaks(Arc<[AtomicUsize; 3]>);

/// R24: a worker that shuts down gives back the jobs of all its queues, and counts no
/// attempt.
pub(crate) async fn shutdown_gives_back_the_jobs_of_all_queues(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("endless").await;
    second.push_one("endless".into()).await.unwrap();

    let queues = Queues::strict([
        served("first", fixture.queue.clone()),
        served("second", second.clone()),
    ]);
    let worker = worker_on_several(queues)
        .grace(Duration::ZERO)
        .environment(PartingClock::stopped().environment());
    let worker =
        Running::start(worker, |_: JobContext| pending::<Result<(), Failure>>());
    worker.until_running(2).await;
    let summary = worker.stop().await;

    assert_eq!((summary.given_back, summary.lost), (2, 0));
    for queue in [&fixture.queue, &second] {
        let again = Fixture::claim_one_of(&**queue).await.unwrap();
        assert_eq!(again.attempt(), 1);
    }
}

/// While all queues have jobs, they get slots in proportion to their weights: within five
/// parts in a hundred, over 10,000 jobs. When the reply of one queue is late, the others get
/// its slots, so the share of a queue may differ by all slots more.
pub(crate) async fn weights_are_kept_over_many_jobs(fixture: Fixture) {
    const SHARES: [(&str, u32); 3] = [("high", 6), ("middle", 3), ("low", 1)];
    const SLOTS: u32 = 64;
    let starts = Starts::default();
    let mut queues = Vec::new();
    for (name, weight) in SHARES {
        let queue = fixture.open_another(name).await;
        push_many(&*queue, weight as usize * 1000 + 300).await;
        queues.push((served(name, queue), many(weight)));
    }

    let worker = worker_on_several(Queues::weighted(queues));
    let worker = Running::start(worker.concurrency(many(SLOTS)), starts.handler());
    eventually(|| starts.len() >= 10_000).await;
    worker.stop().await;

    for (name, weight) in SHARES {
        let (ran, share) = (starts.of_first(10_000, name), weight as usize * 1000);
        let difference = ran.abs_diff(share);
        assert!(
            difference <= share / 20 + SLOTS as usize,
            "{name}: {ran} and not {share}"
        );
    }
}

/// In strict order, no job of a later queue starts while an earlier one has jobs.
pub(crate) async fn strict_order_serves_the_first_queue_first(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    let first = fixture.queue.clone();
    push_many(&*first, 30).await;
    push_many(&*second, 30).await;
    let starts = Starts::default();

    let queues = Queues::strict([served("first", first), served("second", second)]);
    // While the clock runs, a queue loses its slot if its store takes long to reply.
    let worker = worker_on_several(queues)
        .concurrency(many(1))
        .environment(PartingClock::stopped().environment());
    let worker = Running::start(worker, starts.handler());
    worker.until(|summary| summary.done == 60).await;
    worker.stop().await;

    assert_eq!(starts.of_first(30, "first"), 30);
}

/// A store that takes a claim and does not reply keeps no slot from other queues. Its job
/// runs once when the reply arrives. The worker may have run for long before.
pub(crate) async fn store_that_hangs_holds_up_no_other_queue(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("late").await;
    push_many(&*second, 20).await;
    let answer = Arc::new(Notify::new());
    let late = Arc::clone(&answer);
    let starts = Starts::default();

    let slow = Faulty::new(fixture.queue.clone())
        .on_claim(move |call, _| (call == 0).then(|| Fault::Late(Arc::clone(&late))));
    let queues =
        Queues::strict([served("hangs", Arc::new(slow)), served("second", second)]);
    let clock = PartingClock::default();
    clock.advance(LONG);
    let worker = worker_on_several(queues).concurrency(many(1));
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, starts.handler());
    worker.until(|summary| summary.done == 20).await;
    assert_eq!(fixture.stats().await.leased, 1, "the claim has its job");
    answer.notify_one();
    fixture.until(|stats| stats.finished == 1).await;
    let summary = worker.stop().await;

    assert_eq!((summary.done, summary.given_back), (21, 0));
    assert_eq!(starts.of_first(20, "second"), 20);
}

/// While the store of a queue accepts no settlement, the other queues use its slots.
pub(crate) async fn store_that_settles_nothing_holds_up_no_other_queue(
    fixture: Fixture,
) {
    let second = fixture.open_another("second").await;
    fixture.push_many(10).await;
    push_many(&*second, 50).await;
    let starts = Starts::default();

    let broken = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call < 4).then_some(Fault::Unavailable));
    let queues =
        Queues::strict([served("broken", Arc::new(broken)), served("second", second)]);
    let worker = worker_on_several(queues).concurrency(many(2));
    let worker = Running::start(worker, starts.handler());
    worker.until(|summary| summary.done == 60).await;
    let summary = worker.stop().await;

    assert_eq!((summary.done, starts.len()), (60, 60), "each ran once");
    assert!(starts.of_first(50, "second") > 30, "it ran beside the broken queue");
}

/// Two stores of different kinds are served by one worker. While the server of one is
/// down, the jobs of the other run, and its own run when it is back.
pub(crate) async fn server_that_is_down_holds_up_no_other_queue(fixture: Fixture) {
    let on_redis = Fixture::zset().await;
    let Fixture { queue, store: StoreLocation::Server(mut server), .. } = on_redis
    else {
        unreachable!("zset is on a server");
    };
    queue.push_one("before".into()).await.unwrap();
    let queues = Queues::strict([
        served("on redis", queue.clone()),
        served("on sqlite", fixture.queue.clone()),
    ]);
    let worker = worker_on_several(queues).concurrency(many(2));
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.done == 1).await;

    server.kill();
    fixture.push_many(100).await;
    worker.until(|summary| summary.done == 101).await;
    server.restart();
    eventually_pushed(&*queue).await;
    worker.until(|summary| summary.done == 102).await;

    assert_eq!(worker.stop().await.done, 102);
    assert_eq!(queue.stats().await.unwrap().finished, 2);
}

/// Pushes a job as soon as the store accepts it again.
async fn eventually_pushed(queue: &dyn Queue) {
    let pushing = async {
        while queue.push_one("after".into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::fixture::LIMIT, pushing).await.unwrap();
}

/// The worker ends when all its queues are empty at the same time, also when the jobs of
/// each push jobs to the other.
pub(crate) async fn it_ends_when_all_queues_are_empty(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("40").await;
    let (a, b) = (fixture.queue.clone(), second.clone());

    let queues = Queues::strict([
        served("first", fixture.queue.clone()),
        served("second", second.clone()),
    ]);
    let handler = move |job: JobContext| {
        let is_first = job.queue().unwrap().as_str() == "first";
        let other = if is_first { b.clone() } else { a.clone() };
        async move {
            let left: u32 = std::str::from_utf8(job.payload())?.parse()?;
            if left > 0 {
                other.push_one(NewJob::new((left - 1).to_string())).await?;
            }
            Ok::<_, Failure>(())
        }
    };
    let all: Vec<Arc<dyn relq::Operator>> = vec![fixture.queue.clone(), second.clone()];
    let worker = worker_on_several(queues);
    let ended = worker.run_until_all_empty(all, LONG, handler).await;

    assert_eq!(ended.unwrap().done, 41);
}

/// A worker that ends when no work is left would wait for ever for a queue that is paused.
pub(crate) async fn it_ends_when_any_queue_is_paused(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    let both = [fixture.queue.clone(), second];
    for paused in &both {
        paused.pause().await.unwrap();
        let [first, second] = both.clone();
        let queues = Queues::strict([served("first", first), served("second", second)]);
        let all = both.clone().map(|queue| -> Arc<dyn relq::Operator> { queue });
        let handler = async |_: JobContext| Ok::<_, Failure>(());

        let worker = worker_on_several(queues);
        let ended = worker.run_until_all_empty(all.into(), LONG, handler).await;

        assert!(matches!(ended, Err(WorkerError::Paused)), "{ended:?}");
        paused.resume().await.unwrap();
    }
}

/// An error that ends the worker on one queue ends it on all, and names that queue. The
/// handlers of the other queues may finish.
pub(crate) async fn hopeless_queue_ends_the_worker(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    second.push_one("runs".into()).await.unwrap();
    let gate = Arc::new(Notify::new());
    let (open, refused) = (Arc::clone(&gate), Arc::clone(&gate));
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);

    let broken = Faulty::new(fixture.queue.clone()).on_recover(move |_, _| {
        has_begun.load(SeqCst).then(|| {
            refused.notify_one();
            Fault::WrongServer
        })
    });
    let queues =
        Queues::strict([served("broken", Arc::new(broken)), served("second", second)]);
    let worker = Running::start(worker_on_several(queues), move |_: JobContext| {
        begins.store(true, SeqCst);
        let open = Arc::clone(&open);
        async move {
            open.notified().await;
            Ok::<_, Failure>(())
        }
    });
    let progress = worker.progress.clone();
    let ended = worker.end().await;

    let Err(WorkerError::Queue { queue, source }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(queue.as_str(), "broken");
    assert!(matches!(*source, WorkerError::Store(_)), "{source:?}");
    assert_eq!(progress.summary().done, 1);
}

/// When one queue of a worker fails, the other queues stop at once. They do not wait until the
/// handlers of the failed queue have ended.
pub(crate) async fn hopeless_queue_stops_the_others_at_once(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("runs long").await;
    let (gate, released) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (open, releases) = (Arc::clone(&gate), Arc::clone(&released));
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);

    let broken = Faulty::new(fixture.queue.clone())
        .on_recover(move |_, _| has_begun.load(SeqCst).then_some(Fault::WrongServer));
    let healthy = Faulty::new(second).on_release(move |_, _| {
        releases.store(true, SeqCst);
        None
    });
    let queues = Queues::strict([
        served("broken", Arc::new(broken)),
        served("second", Arc::new(healthy)),
    ]);
    let worker = Running::start(worker_on_several(queues), move |_: JobContext| {
        begins.store(true, SeqCst);
        let open = Arc::clone(&open);
        async move {
            open.notified().await;
            Ok::<_, Failure>(())
        }
    });
    eventually(|| released.load(SeqCst)).await;
    assert_eq!(worker.progress.running(), 1, "the job of the broken queue");
    gate.notify_one();
    let progress = worker.progress.clone();

    let ended = worker.end().await;
    assert!(matches!(ended, Err(WorkerError::Queue { .. })), "{ended:?}");
    assert_eq!(progress.summary().done, 1);
}

/// Each queue uses the connections of a worker on that queue alone, and not more.
pub(crate) async fn queues_open_no_further_connections(fixture: Fixture) {
    let of_one = connections(&fixture, &["first"]).await;
    let of_three = connections(&fixture, &["first", "second", "third"]).await;

    assert!(of_one > 0, "a worker on one queue is connected");
    assert!(of_three <= of_one * 3, "{of_three} for three queues, {of_one} for one");
}

/// How many connections a worker on these queues has after it ran a job of each.
async fn connections(fixture: &Fixture, names: &[&str]) -> usize {
    let StoreLocation::Server(server) = &fixture.store else {
        unreachable!("the queue is on a server");
    };
    let clients = || {
        let list = server.command(&[b"CLIENT", b"LIST"]);
        String::from_utf8(list).unwrap().matches("laddr=").count()
    };
    let before = clients();
    let mut queues = Vec::new();
    for name in names {
        let queue = fixture.open_another(name).await;
        queue.push_one("job".into()).await.unwrap();
        queues.push(served(name, queue));
    }
    let worker = worker_on_several(Queues::strict(queues));
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.done == names.len() as u64).await;
    let during = until_settled(clients).await;
    worker.stop().await;
    eventually(|| clients() == before).await;
    during - before
}

/// Waits until the number is the same in many readings, and returns it. The readings go on
/// for longer than a machine stands still between two connections of a worker.
async fn until_settled(number: impl Fn() -> usize) -> usize {
    let (mut last, mut same) = (number(), 0);
    while same < 250 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = number();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

/// The observer of a queue receives the events of that queue only.
pub(crate) async fn observer_of_a_queue_hears_of_that_queue(fixture: Fixture) {
    struct Counts(Arc<AtomicUsize>);
    impl Observer for Counts {
        fn ended(&self, event: &Ended<'_>) {
            assert_eq!(event.job.queue().unwrap().as_str(), "second");
            self.0.fetch_add(1, SeqCst);
        }
    }
    let second = fixture.open_another("second").await;
    fixture.push_many(3).await;
    push_many(&*second, 4).await;
    let told = Arc::new(AtomicUsize::new(0));

    let queues = Queues::strict([
        served("first", fixture.queue.clone()),
        served("second", second).observe(Counts(Arc::clone(&told))),
    ]);
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = Running::start(worker_on_several(queues), handler);
    worker.until(|summary| summary.done == 7).await;
    worker.stop().await;

    assert_eq!(told.load(SeqCst), 4);
}

/// The observer of the worker receives the events of all queues, also those of a queue that
/// has an observer of its own.
pub(crate) async fn observer_of_the_worker_hears_of_all_queues(fixture: Fixture) {
    #[derive(Clone, Default)]
    struct Counts(Arc<AtomicUsize>);
    impl Observer for Counts {
        fn ended(&self, _: &Ended<'_>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let second = fixture.open_another("second").await;
    fixture.push_many(3).await;
    push_many(&*second, 4).await;
    let (of_all, of_second) = (Counts::default(), Counts::default());

    let queues = Queues::strict([
        served("first", fixture.queue.clone()),
        served("second", second).observe(of_second.clone()),
    ]);
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = worker_on_several(queues).observe(of_all.clone());
    let worker = Running::start(worker, handler);
    worker.until(|summary| summary.done == 7).await;
    worker.stop().await;

    assert_eq!((of_all.0.load(SeqCst), of_second.0.load(SeqCst)), (7, 4));
}

#[tokio::test]
async fn list_of_queues_is_checked() {
    let fixture = Fixture::sqlite().await;
    let queue = || served("same", fixture.queue.clone());
    let refusal = async |queues| {
        let worker = worker_on_several(queues);
        let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
        worker.end().await.unwrap_err().to_string()
    };

    let twice = refusal(Queues::strict([queue(), queue()])).await;
    let none = refusal(Queues::strict([])).await;

    assert_eq!(twice, "the list of queues has same twice: give each its own name");
    assert_eq!(none, "the list of queues is empty: give at least one queue");
}
