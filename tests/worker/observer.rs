//! Tests of observers: each event of a worker is told once, with what has happened.

use std::{
    num::NonZeroU16,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    ClaimRequest, Error, NewJob, Stats, WorkerId,
    environment::Environment,
    error::{ErrorContext, Operation},
    operator::{JobState, PeekRequest},
    outcome::{Recovered, Released},
    worker::{
        Failure, JobContext, Summary,
        observer::{
            Buried, CallFailed, Claimed, Ended, JobOutcome, LeaseLost, Observer,
            Started,
        },
    },
};
use relq_conformance::overrides::{OverriddenQueue, Override, Right};
use tokio::sync::Notify;

use crate::{
    blocked_runtime::BlockingHandlers,
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Fixture, LIMIT, Running, SHORT_LEASE, eventually, worker_on},
    leases::BeatenTime,
};

/// An event, with the payload and the attempt of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Claimed(usize),
    Started(String, u32),
    /// The name of the outcome, and whether the attempt was started.
    Ended(String, u32, &'static str, bool),
    Buried(String, String),
    LeaseLost(String, u32),
    Recovered {
        requeued: u32,
        buried: u32,
    },
    Released(u64),
    CallFailed(Operation),
}

impl Event {
    /// The payload of the event's job. `None` for an event that has no single job.
    fn payload(&self) -> Option<&str> {
        match self {
            Self::Started(payload, _)
            | Self::Ended(payload, ..)
            | Self::Buried(payload, _)
            | Self::LeaseLost(payload, _) => Some(payload),
            _ => None,
        }
    }
}

/// An observer that records all events. Clones share the record.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Event>>>);

impl Recorder {
    fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// The events of one job.
    fn of(&self, payload: &str) -> Vec<Event> {
        let events = self.events().into_iter();
        events.filter(|event| event.payload() == Some(payload)).collect()
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| is_it(event)).count()
    }

    /// How many jobs ended with the outcome of this name.
    fn ended(&self, name: &str) -> usize {
        self.count(
            |event| matches!(event, Event::Ended(_, _, ended, _) if *ended == name),
        )
    }

    fn claimed(&self) -> usize {
        let events = self.events().into_iter();
        events
            .map(|event| if let Event::Claimed(jobs) = event { jobs } else { 0 })
            .sum()
    }

    fn failed(&self, operation: Operation) -> usize {
        self.count(|event| *event == Event::CallFailed(operation))
    }

    fn push(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

fn payload(job: &JobContext) -> String {
    String::from_utf8(job.payload().to_vec()).unwrap()
}

impl Observer for Recorder {
    fn claimed(&self, event: &Claimed) {
        self.push(Event::Claimed(event.jobs));
    }

    fn started(&self, event: &Started<'_>) {
        self.push(Event::Started(payload(event.job), event.job.attempt()));
    }

    fn ended(&self, event: &Ended<'_>) {
        let Ended { job, outcome, ran, .. } = event;
        let (payload, attempt) = (payload(job), job.attempt());
        self.push(Event::Ended(payload, attempt, outcome.name(), ran.is_some()));
    }

    fn buried(&self, event: &Buried<'_>) {
        self.push(Event::Buried(payload(event.job), event.error.to_owned()));
    }

    fn lease_lost(&self, event: &LeaseLost<'_>) {
        self.push(Event::LeaseLost(payload(event.job), event.job.attempt()));
    }

    fn recovered(&self, event: &Recovered) {
        let Recovered { requeued, buried, .. } = *event;
        self.push(Event::Recovered { requeued, buried });
    }

    fn released(&self, event: &Released) {
        self.push(Event::Released(event.jobs));
    }

    fn call_failed(&self, event: &CallFailed<'_>) {
        self.push(Event::CallFailed(event.operation));
    }
}

async fn succeeds(_: JobContext) -> Result<(), Failure> {
    Ok(())
}

async fn never_ends(_: JobContext) -> Result<(), Failure> {
    std::future::pending().await
}

fn attempts(payload: &'static str, attempts: u16) -> NewJob {
    NewJob::new(payload).max_attempts(NonZeroU16::new(attempts).unwrap())
}

fn started(payload: &str, attempt: u32) -> Event {
    Event::Started(payload.to_owned(), attempt)
}

/// The end of an attempt that was started.
fn ended(payload: &str, attempt: u32, outcome: &'static str) -> Event {
    Event::Ended(payload.to_owned(), attempt, outcome, true)
}

/// Each attempt is claimed, started and ended once. A job that fails for good is told as
/// buried too. The release of the worker is told after all jobs.
pub(crate) async fn life_of_a_job_is_told_in_order(fixture: Fixture) {
    fixture.push("fine").await;
    fixture.push(attempts("broken", 2)).await;
    let seen = Recorder::default();

    let worker = fixture.worker().observe(seen.clone());
    let worker = Running::start(worker, async |job: JobContext| {
        if job.payload() == "fine" { Ok(()) } else { Err("broken") }
    });
    worker.until(|summary| (summary.done, summary.dead) == (1, 1)).await;
    worker.stop().await;

    assert_eq!(seen.of("fine"), [started("fine", 1), ended("fine", 1, "done")]);
    let of_the_broken = [
        started("broken", 1),
        ended("broken", 1, "retried"),
        started("broken", 2),
        ended("broken", 2, "buried"),
        Event::Buried("broken".into(), "broken".into()),
    ];
    assert_eq!(seen.of("broken"), of_the_broken);
    let events = seen.events();
    assert!(matches!(events[0], Event::Claimed(_)), "{events:?}");
    assert_eq!(seen.claimed(), 3, "{events:?}");
    assert_eq!(events.last(), Some(&Event::Released(0)));
    assert_eq!(seen.count(|event| matches!(event, Event::CallFailed(_))), 0);
}

/// The durations and outcomes of the jobs that a worker has run.
#[derive(Clone, Default)]
struct Details(Arc<Mutex<Vec<String>>>);

const WORK: Duration = Duration::from_millis(80);

const HOUR: Duration = Duration::from_secs(3600);

impl Observer for Details {
    fn claimed(&self, event: &Claimed) {
        assert!(event.took < LIMIT, "{event:?}");
    }

    fn started(&self, event: &Started<'_>) {
        assert!(event.waited < LIMIT, "{event:?}");
    }

    fn ended(&self, event: &Ended<'_>) {
        let ran = event.ran.expect("it was started");
        let is_right = (WORK..LIMIT).contains(&ran);
        let outcome = match event.outcome {
            JobOutcome::Retried { after, error } => format!("{after:?} {error}"),
            JobOutcome::Buried { error } => error.to_owned(),
            JobOutcome::Postponed { after } => format!("{after:?}"),
            other => other.name().to_owned(),
        };
        let payload = payload(event.job);
        self.0.lock().unwrap().push(format!("{payload}: {outcome}, {is_right}"));
    }
}

/// An observer that records how long ago each started job was pushed.
#[derive(Clone, Default)]
struct Ages(Arc<Mutex<Vec<Option<Duration>>>>);

impl Observer for Ages {
    fn started(&self, event: &Started<'_>) {
        self.0.lock().unwrap().push(event.since_push);
    }
}

/// R27: a handler sees when its job was pushed, in each attempt, and the start is told
/// with the time since then by the worker's clock.
pub(crate) async fn time_of_the_push_is_told(fixture: Fixture) {
    fixture.push("job").await;
    let all = PeekRequest::new(JobState::Ready, 1.try_into().unwrap());
    let pushed = fixture.queue.peek(&all).await.unwrap().jobs[0].enqueued_at;
    let (ages, seen) = (Ages::default(), Arc::new(Mutex::new(Vec::new())));
    let clock = PartingClock::default();
    clock.step_wall(HOUR);

    let worker = fixture.worker().environment(clock.environment());
    let worker = Running::start(worker.observe(ages.clone()), {
        let seen = Arc::clone(&seen);
        move |job: JobContext| {
            seen.lock().unwrap().push(job.enqueued_at());
            let is_last = job.is_redelivery();
            let again = Failure::retry_after(Duration::ZERO, "again");
            async move { if is_last { Ok(()) } else { Err(again) } }
        }
    });
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    assert!(pushed.is_some());
    assert_eq!(*seen.lock().unwrap(), [pushed, pushed]);
    let ages = ages.0.lock().unwrap().clone();
    // The backends that ask a server for the time may be wrong by a fraction of a second.
    let expected = HOUR - Duration::from_secs(5)..HOUR + LIMIT;
    assert!(ages.iter().flatten().all(|age| expected.contains(age)), "{ages:?}");
    assert_eq!(ages.iter().flatten().count(), 2, "{ages:?}");
}

/// An observer that records how long the parts of a job took.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<(&'static str, Duration)>>>);

impl Times {
    fn note(&self, part: &'static str, took: Duration) {
        self.0.lock().unwrap().push((part, took));
    }
}

impl Observer for Times {
    fn claimed(&self, event: &Claimed) {
        self.note("claimed", event.took);
    }

    fn started(&self, event: &Started<'_>) {
        self.note("started", event.waited);
    }

    fn ended(&self, event: &Ended<'_>) {
        self.note("ended", event.ran.expect("it was started"));
    }
}

/// Each event has the time of its own part: of the claim, of the wait for the start, and of the
/// handler. No other part counts for it, nor does the settlement.
pub(crate) async fn each_part_of_a_job_has_its_own_time(fixture: Fixture) {
    const CLAIM: Duration = Duration::from_secs(1000);
    const WORK: Duration = Duration::from_secs(500);
    const SETTLEMENT: Duration = Duration::from_secs(300);
    fixture.push("job").await;
    let (seen, clock) = (Times::default(), PartingClock::default());
    let takes = |time: Duration| {
        let clock = clock.clone();
        move |call: usize, _: usize| {
            let clock = clock.clone();
            let passes = move || clock.advance(time);
            (call == 0).then(|| Fault::Overtaken(Arc::new(passes)))
        }
    };
    let slow = Faulty::new(fixture.queue.clone())
        .on_claim(takes(CLAIM))
        .on_settle(takes(SETTLEMENT));

    let worker = worker_on(Arc::new(slow)).observe(seen.clone());
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, move |_: JobContext| {
        clock.advance(WORK);
        async { Ok::<_, Failure>(()) }
    });
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    let times = seen.0.lock().unwrap().clone();
    let expected = [("claimed", CLAIM), ("started", Duration::ZERO), ("ended", WORK)];
    let parts: Vec<_> = times.iter().map(|(part, _)| *part).collect();
    assert_eq!(parts, expected.map(|(part, _)| part), "{times:?}");
    for ((part, took), (_, time)) in times.into_iter().zip(expected) {
        assert!((time..time + LIMIT).contains(&took), "{part}: {took:?}, not {time:?}");
    }
}

/// The end of a job is told with how long its handler ran and with its error.
pub(crate) async fn end_is_told_with_time_and_error(fixture: Fixture) {
    for job in ["done", "retried", "buried", "discarded", "panics", "postponed"] {
        fixture.push(attempts(job, 2)).await;
    }
    let seen = Details::default();

    let worker = fixture.worker().observe(seen.clone());
    let worker = Running::start(worker, async |job: JobContext| {
        tokio::time::sleep(WORK).await;
        match &job.payload()[..] {
            b"done" => Ok(()),
            b"retried" => Err(Failure::retry_after(HOUR, "busy")),
            b"buried" => Err(Failure::dead("no such user")),
            b"postponed" => Err(Failure::postpone(HOUR, "closed")),
            b"discarded" => Err(Failure::discard("outdated")),
            _ if job.is_last_attempt() => panic!("boom"),
            _ => Err(Failure::retry_after(Duration::ZERO, "boom")),
        }
    });
    let all = |summary: &Summary| {
        let Summary { done, retried, dead, discarded, postponed, .. } = *summary;
        done + retried + dead + discarded + postponed == 7
    };
    worker.until(all).await;
    worker.stop().await;

    let mut details = seen.0.lock().unwrap().clone();
    details.sort();
    let expected = [
        "buried: no such user, true",
        "discarded: discarded, true",
        "done: done, true",
        "panics: 0ns boom, true",
        "panics: the handler panicked: boom, true",
        "postponed: 3600s, true",
        "retried: 3600s busy, true",
    ];
    assert_eq!(details, expected);
}

/// A job whose lease is lost while its handler runs is told as lost once, and ends once.
pub(crate) async fn lost_lease_is_told_once(fixture: Fixture) {
    fixture.push("contended").await;
    let id = WorkerId::new("loser").unwrap();
    let seen = Recorder::default();

    let time = BeatenTime::default();
    let worker = time.worker_on(fixture.queue.clone());
    let worker = worker.worker_id(id.clone()).observe(seen.clone());
    let worker = Running::start(worker, async |job: JobContext| {
        job.cancelled().await;
        Ok::<_, Failure>(())
    });
    worker.until_running(1).await;
    fixture.queue.pause().await.unwrap();
    assert_eq!(fixture.queue.release_worker(&id).await.unwrap().jobs, 1);
    time.pass_until(|| worker.progress.summary().lost == 1).await;
    worker.stop().await;

    let lost = Event::LeaseLost("contended".into(), 1);
    assert_eq!(seen.count(|event| *event == lost), 1);
    assert_eq!(seen.count(|event| *event == ended("contended", 1, "lost")), 1);
    assert_eq!(seen.of("contended").len(), 3, "{:?}", seen.events());
}

/// When no heartbeat succeeds, the worker tells the loss by its own clock, and each
/// failed call.
pub(crate) async fn unheard_heartbeats_are_told(fixture: Fixture) {
    fixture.push("cut off").await;
    let seen = Recorder::default();

    let deaf = Arc::new(
        Faulty::new(fixture.queue.clone()).on_extend(|_, _| Some(Fault::Unavailable)),
    );
    let (beats, first) = (Arc::clone(&deaf), Arc::new(OnceLock::new()));
    let ran = Arc::clone(&first);
    let worker = worker_on(deaf.clone()).lease(SHORT_LEASE).observe(seen.clone());
    let worker = Running::start(worker, move |job: JobContext| {
        // A machine that stands still may end a lease before its first heartbeat.
        let is_cut_off =
            ran.set(job.attempt()).is_ok() || beats.extensions.calls() == 0;
        async move {
            if is_cut_off {
                job.cancelled().await;
            }
            Ok::<_, Failure>(())
        }
    });
    worker.until(|summary| summary.lost >= 1 && summary.done == 1).await;
    eventually(|| seen.failed(Operation::Extend) > 0).await;
    worker.stop().await;

    let lost = Event::LeaseLost("cut off".into(), *first.get().unwrap());
    assert_eq!(seen.count(|event| *event == lost), 1);
    assert!((1..=deaf.extensions.calls()).contains(&seen.failed(Operation::Extend)));
}

/// A cancelled job ends as cancelled, and its lease is not told as lost.
pub(crate) async fn cancelled_job_is_told_as_cancelled(fixture: Fixture) {
    fixture.push("unwanted").await;
    let (seen, running) = (Recorder::default(), Arc::new(Mutex::new(None)));
    let started_id = Arc::clone(&running);

    let time = BeatenTime::default();
    let worker = time.worker_on(fixture.queue.clone()).observe(seen.clone());
    let worker = Running::start(worker, move |job: JobContext| {
        *started_id.lock().unwrap() = Some(job.id().clone());
        async move {
            job.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    eventually(|| running.lock().unwrap().is_some()).await;
    let id = running.lock().unwrap().clone().unwrap();
    fixture.queue.cancel(&id).await.unwrap();
    time.pass_until(|| worker.progress.summary().cancelled == 1).await;
    worker.stop().await;

    let expected = [started("unwanted", 1), ended("unwanted", 1, "cancelled")];
    assert_eq!(seen.of("unwanted"), expected);
}

/// Each failed call is told once, under the operation that failed.
pub(crate) async fn failed_calls_are_told_by_operation(fixture: Fixture) {
    fixture.push_many(3).await;
    let seen = Recorder::default();

    // A report opens a connection too, and its failure is no event.
    let flaky = Faulty::new(fixture.queue.clone())
        .listing_no_workers()
        .on_claim(|call, _| (call < 2).then_some(Fault::Unavailable))
        .on_settle(|call, _| (call < 3).then_some(Fault::Unavailable))
        .on_recover(|call, _| (call < 4).then_some(Fault::Unavailable))
        .on_extend(|call, _| (call < 1).then_some(Fault::Unavailable))
        .on_release(|call, _| (call < 1).then_some(Fault::Unavailable))
        .on_connect(|call, _| (call < 1).then_some(Fault::Unavailable));
    let flaky = Arc::new(flaky);
    let time = BeatenTime::default();
    let worker = time.worker_on(flaky.clone()).observe(seen.clone());
    let beats = Arc::clone(&flaky);
    let worker = Running::start(worker, move |_: JobContext| {
        let beats = Arc::clone(&beats);
        async move {
            eventually(|| beats.extensions.calls() > 1).await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(2).await;
    time.pass_until(|| flaky.extensions.calls() > 1).await;
    worker.until(|summary| summary.done == 3).await;
    eventually(|| flaky.recoveries.calls() > 4).await;
    worker.stop().await;

    let failed = [
        Operation::Claim,
        Operation::Settle,
        Operation::Recover,
        Operation::Extend,
        Operation::ReleaseWorker,
        Operation::Connect,
    ]
    .map(|operation| seen.failed(operation));
    assert_eq!(failed, [2, 3, 4, 1, 1, 1], "{:?}", seen.events());
    assert_eq!((seen.ended("done"), seen.claimed()), (3, 3));
}

/// An attempt begins before the check whether its work was done, so an observer hears of the
/// start first. If the check says that it was, the job ends as done.
pub(crate) async fn start_is_told_before_the_check_of_the_work(fixture: Fixture) {
    fixture.push("paid").await;
    let (seen, at_check) = (Recorder::default(), Arc::new(Mutex::new(Vec::new())));
    let (told, noted) = (seen.clone(), Arc::clone(&at_check));

    let worker = fixture.worker().observe(seen.clone()).check_every_delivery();
    let worker = worker.already_done(move |_: JobContext| {
        *noted.lock().unwrap() = told.of("paid");
        async { Ok::<_, Failure>(true) }
    });
    let worker = Running::start(worker, succeeds);
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    assert_eq!(*at_check.lock().unwrap(), [started("paid", 1)], "told at the check");
    assert_eq!(seen.of("paid"), [started("paid", 1), ended("paid", 1, "done")]);
}

/// A handler that blocks its thread at the end of the grace time cannot be stopped. The end of
/// its job is told once, as of one that was started.
pub(crate) async fn job_whose_handler_cannot_be_stopped_is_told(fixture: Fixture) {
    fixture.push("stubborn").await;
    let (seen, handlers) = (Recorder::default(), BlockingHandlers::new());

    let worker = fixture.worker().grace(Duration::ZERO).observe(seen.clone());
    let worker = Running::start(worker, handlers.handler());
    eventually(|| handlers.begun() == 1).await;
    worker.stop().await;
    let told = seen.of("stubborn");
    drop(handlers);

    assert_eq!(told, [started("stubborn", 1), ended("stubborn", 1, "lost")]);
}

/// A queue whose statistics cannot be read at first.
#[derive(Default)]
struct UnreadAtFirst(AtomicUsize);

#[async_trait::async_trait]
impl Override for UnreadAtFirst {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        if self.0.fetch_add(1, SeqCst) == 0 {
            let at = ErrorContext { backend: "unread", operation: Operation::Stats };
            let source = "as the test wants it".into();
            return Err(Error::Unavailable { at, source });
        }
        right.stats().await
    }
}

/// A worker that ends when no work is left reads the statistics of its queue for that. A
/// reading that fails is told like each other failed call.
pub(crate) async fn failed_reading_of_the_statistics_is_told(fixture: Fixture) {
    let (seen, environment) = (Recorder::default(), Environment::default());
    let right = Right { queue: fixture.queue.clone(), environment };
    let queue = OverriddenQueue::new(right, Arc::new(UnreadAtFirst::default()));

    let worker = fixture.worker().observe(seen.clone());
    let running = worker.run_until_empty(Arc::new(queue), HOUR, succeeds);
    let ended = tokio::time::timeout(LIMIT, running).await.expect("the worker ends");

    ended.unwrap();
    assert_eq!(seen.failed(Operation::Stats), 1, "{:?}", seen.events());
}

/// R9, R11: the jobs of a dead worker are told with how many of them were buried.
pub(crate) async fn recovery_is_told_with_its_dead_letters(fixture: Fixture) {
    fixture.push(attempts("last", 1)).await;
    fixture.push(attempts("again", 2)).await;
    let dead = WorkerId::new("dead").unwrap();
    let ask = ClaimRequest::new(dead, Duration::from_millis(1));
    let ask = ask.max(2.try_into().unwrap());
    assert_eq!(fixture.queue.claim(&ask).await.unwrap().len(), 2);
    let seen = Recorder::default();

    let worker = Running::start(fixture.worker().observe(seen.clone()), succeeds);
    worker.until(|summary| summary.done == 1).await;
    fixture.until(|stats| stats.dead == 1).await;
    let sum = || {
        seen.events().iter().fold((0, 0), |sum, event| match event {
            Event::Recovered { requeued, buried } => (sum.0 + requeued, sum.1 + buried),
            _ => sum,
        })
    };
    eventually(|| sum() == (1, 1)).await;
    worker.stop().await;

    assert_eq!(sum(), (1, 1));
    assert_eq!(seen.count(|event| matches!(event, Event::Buried(..))), 0);
    assert_eq!(seen.of("again"), [started("again", 2), ended("again", 2, "done")]);
}

/// R14: a recovery that makes due jobs ready is told, too. While all slots are in use, the
/// worker makes no claim that would do so.
pub(crate) async fn recovery_of_due_jobs_is_told(fixture: Fixture) {
    fixture.push("endless").await;
    let seen = Recorder::default();

    let worker = fixture.worker().concurrency(1.try_into().unwrap());
    let worker = Running::start(worker.observe(seen.clone()), never_ends);
    worker.until_running(1).await;
    fixture.push(NewJob::new("due").delay(Duration::from_millis(50))).await;
    let told = Event::Recovered { requeued: 0, buried: 0 };
    eventually(|| seen.count(|event| *event == told) > 0).await;
    worker.halt();
    worker.end().await.unwrap();

    assert_eq!(seen.claimed(), 1, "{:?}", seen.events());
}

/// R24: a job that is cut off at shutdown ends as given back. It was started, so it has a
/// time.
pub(crate) async fn job_given_back_at_shutdown_is_told(fixture: Fixture) {
    fixture.push("endless").await;
    let seen = Recorder::default();

    let environment = PartingClock::stopped().environment();
    let worker = fixture.worker().grace(Duration::ZERO).environment(environment);
    let worker = Running::start(worker.observe(seen.clone()), never_ends);
    worker.until_running(1).await;
    eventually(|| !seen.of("endless").is_empty()).await;
    worker.stop().await;

    let expected = [started("endless", 1), ended("endless", 1, "given_back")];
    assert_eq!(seen.of("endless"), expected);
    assert_eq!(seen.events().last(), Some(&Event::Released(0)));
}

/// R6: a job whose lease may have expired before the reply to its claim is given back. It
/// is told as claimed and ended, and has no time, because it did not start.
pub(crate) async fn late_job_is_told_without_a_start(fixture: Fixture) {
    fixture.push("late").await;
    let (seen, release) = (Recorder::default(), Arc::new(Notify::new()));
    let late = Arc::clone(&release);

    let slow = Arc::new(
        Faulty::new(fixture.queue.clone())
            .on_claim(move |call, _| (call == 0).then(|| Fault::Late(late.clone()))),
    );
    let worker = worker_on(slow.clone()).lease(SHORT_LEASE).observe(seen.clone());
    let worker = Running::start(worker, succeeds);
    eventually(|| slow.claims.answers() == 1).await;
    // The worker's reaper may take the job back as soon as its lease has ended.
    fixture.until(|stats| stats.leased == stats.overdue).await;
    release.notify_one();
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    // The heartbeat may notice the end of the lease before the claim loop gives the job up.
    let late = seen.of("late");
    let first = late.iter().find(|event| !matches!(event, Event::LeaseLost(..)));
    let is_unstarted = matches!(first, Some(Event::Ended(_, 1, _, false)));
    assert!(is_unstarted, "{:?}", seen.events());
    // A machine that stands still ends the short leases of later attempts, too.
    let starts = seen.count(|event| matches!(event, Event::Started(..)));
    assert_eq!(seen.count(|event| matches!(event, Event::Ended(.., true))), starts);
    assert!(seen.claimed() >= 2);
    assert_eq!(seen.ended("done"), 1);
}

/// A job whose settlement has no reply, and whose lease is gone when the settlement is
/// repeated, ends as uncertain.
pub(crate) async fn settlement_without_a_reply_is_told_as_uncertain(fixture: Fixture) {
    fixture.push("paid").await;
    let seen = Recorder::default();

    let flaky = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call == 0).then_some(Fault::AnswerLost));
    let worker = worker_on(Arc::new(flaky)).observe(seen.clone());
    let worker = Running::start(worker, succeeds);
    worker.until(|summary| summary.uncertain == 1).await;
    worker.stop().await;

    assert_eq!(seen.of("paid"), [started("paid", 1), ended("paid", 1, "uncertain")]);
    assert_eq!(seen.failed(Operation::Settle), 1);
}

/// An observer that panics at every event, and counts them.
#[derive(Clone, Default)]
struct Panicking(Arc<AtomicUsize>);

impl Panicking {
    fn panic(&self) {
        self.0.fetch_add(1, SeqCst);
        // `resume_unwind` panics without a message on standard error.
        std::panic::resume_unwind(Box::new("as the test wants it"));
    }
}

impl Observer for Panicking {
    fn claimed(&self, _: &Claimed) {
        self.panic();
    }

    fn started(&self, _: &Started<'_>) {
        self.panic();
    }

    fn ended(&self, _: &Ended<'_>) {
        self.panic();
    }

    fn buried(&self, _: &Buried<'_>) {
        self.panic();
    }

    fn lease_lost(&self, _: &LeaseLost<'_>) {
        self.panic();
    }

    fn recovered(&self, _: &Recovered) {
        self.panic();
    }

    fn released(&self, _: &Released) {
        self.panic();
    }

    fn call_failed(&self, _: &CallFailed<'_>) {
        self.panic();
    }
}

/// An observer that panics changes nothing: each job runs once, and the other observers
/// receive every event.
pub(crate) async fn panicking_observer_loses_no_job(fixture: Fixture) {
    fixture.push_many(10).await;
    fixture.push(attempts("broken", 1)).await;
    let (panicking, seen) = (Panicking::default(), Recorder::default());

    let flaky = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call == 0).then_some(Fault::Unavailable))
        .on_extend(|call, _| (call == 0).then_some(Fault::Unavailable));
    let flaky = Arc::new(flaky);
    let time = BeatenTime::default();
    let worker = time.worker_on(flaky.clone());
    let worker = worker.observe(panicking.clone()).observe(seen.clone());
    let calls = Arc::clone(&flaky);
    let worker = Running::start(worker, move |job: JobContext| {
        let beats = Arc::clone(&flaky);
        async move {
            eventually(|| beats.extensions.calls() > 0).await;
            if job.payload() == "broken" { Err("broken") } else { Ok(()) }
        }
    });
    worker.until_running(2).await;
    time.pass_until(|| calls.extensions.calls() > 0).await;
    worker.until(|summary| summary.done + summary.dead == 11).await;
    let summary = worker.stop().await;

    assert_eq!((summary.done, summary.dead, summary.lost), (10, 1, 0));
    assert_eq!((seen.claimed(), seen.ended("done")), (11, 10));
    assert_eq!(seen.failed(Operation::Extend), 1);
    assert_eq!(seen.events().last(), Some(&Event::Released(0)));
    assert_eq!(panicking.0.load(SeqCst), seen.events().len());
}
