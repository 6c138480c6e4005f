//! The lines that a scheduler logs, and how often.

use std::{
    io,
    sync::{Arc, Mutex},
};

use relq_core::{Error, NewJob};
use relq_schedule::{Every, MAX_TICKS, Missed, ScheduleQueue, ScheduleSpec};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt;

use crate::{
    meddled::Meddling,
    world::{World, every, hours, name, seconds},
};

const START: &str = "2027-01-01T00:00:05Z";

/// The lines that were logged on this thread, on which all schedulers of a test run.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber =
            fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines that contain these words.
    fn lines(&self, words: &str) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }

    /// The only line that contains these words.
    #[track_caller]
    fn only(&self, words: &str) -> String {
        let mut lines = self.lines(words);
        assert_eq!(lines.len(), 1, "{words}: {lines:#?} of {:#?}", self.lines(""));
        lines.remove(0)
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

fn every_ten_seconds(payload: &'static str) -> ScheduleSpec {
    let job = NewJob::new(payload);
    ScheduleSpec::new(Every::new(seconds(10)).unwrap(), job).unwrap()
}

/// An operator who sees only the end of a log must see that the store fails.
#[tokio::test]
async fn a_store_that_fails_is_logged_each_minute() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.queue.refuse(Some(|at| Error::Unavailable { at, source: "away".into() }));
    world.start_many(1).await;

    world.advance(seconds(200)).await;

    let first = log.only("scheduling fails; trying again until it works");
    assert!(first.contains("WARN") && first.contains("away"), "{first}");
    let reminders = log.lines("scheduling still fails, for ");
    assert_eq!(reminders.len(), 3, "{reminders:#?}");
    assert!(reminders[0].contains("for 6") && reminders[0].contains("away"));
}

/// A person has a minute to repair the store, and must learn of it before.
#[tokio::test]
async fn a_refusal_is_logged_before_it_ends_the_scheduler() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.start_many(1).await;
    world.queue.refuse(Some(|at| Error::Denied { at, source: "no right".into() }));

    world.advance(seconds(80)).await;

    let line = log.only("scheduling is refused; giving up in 60s");
    assert!(line.contains("WARN") && line.contains("no right"), "{line}");
    assert_eq!(log.lines("the scheduler ends"), [""; 0]);
}

/// The application may wait for the worker beside the scheduler, which goes on without ticks.
#[tokio::test]
async fn the_end_of_a_refused_scheduler_is_logged() {
    let (log, _guard) = Log::begin();
    let world = World::starting(START);
    world.queue.refuse(Some(|at| Error::Denied { at, source: "no right".into() }));

    let ended = world.scheduler().run().await;

    assert!(ended.is_err());
    let line = log.only("the scheduler ends");
    assert!(line.contains("ERROR") && line.contains("no right"), "{line}");
}

/// A schedule whose job is refused or damaged pushes nothing, so an operator must learn of it.
#[tokio::test]
async fn a_failure_of_one_schedule_is_logged_once_for_each_definition() {
    for (payload, words) in [
        ("refused", "the job of a schedule is refused"),
        ("damaged", "a tick of a schedule failed"),
    ] {
        let (log, _guard) = Log::begin();
        let mut world = World::starting(START);
        world.put("poll", &every_ten_seconds(payload)).await;
        world.start_many(1).await;

        world.advance(seconds(300)).await;

        let line = log.only(words);
        assert!(line.contains("ERROR") && line.contains("schedule=poll"), "{line}");
        world.put("poll", &every_ten_seconds(payload).missed(Missed::Skip)).await;
        world.advance(seconds(300)).await;
        assert_eq!(log.lines(words).len(), 2, "{words}");
    }
}

#[tokio::test]
async fn an_unreadable_entry_is_logged_once() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    let entry = "\"a b\": not a name";
    world.queue.unreadable.lock().unwrap().push(entry.to_owned());
    world.put("poll", &every(seconds(60), Missed::Last)).await;
    world.start_many(1).await;

    world.advance(seconds(300)).await;

    let line = log.only("is not a schedule");
    assert!(line.contains("WARN") && line.contains("a b"), "{line}");
    assert_eq!(world.pushed("poll").await.len(), 5);
}

#[tokio::test]
async fn an_unreadable_definition_is_logged_once() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    let newer = br#"{"version":3,"cron":"* * * * *","zone":"UTC"}"#;
    world.queue.put_schedule(&name("newer"), newer).await.unwrap();
    world.start_many(1).await;

    world.advance(seconds(300)).await;

    let line = log.only("a schedule is left alone");
    assert!(line.contains("schedule=newer") && line.contains("version 3"), "{line}");
}

/// The store lost the schedule, or an operator removed it.
#[tokio::test]
async fn a_schedule_that_is_gone_is_logged_once() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::Last)).await;
    world.put("stays", &every(seconds(60), Missed::Last)).await;
    world.start_many(1).await;
    world.advance(seconds(100)).await;
    assert_eq!(log.lines("is gone"), [""; 0]);

    world.remove("poll").await;
    world.advance(seconds(300)).await;

    let line = log.only("is gone");
    assert!(line.contains("WARN") && line.contains("schedule=poll"), "{line}");
}

/// The schedule is lost between its storing and the first read.
#[tokio::test]
async fn a_stored_schedule_that_is_gone_before_the_first_read_is_logged() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    *world.queue.failing_reads.lock().unwrap() = 2;
    let scheduler = world.scheduler();
    world.start(scheduler.schedule(name("poll"), every_ten_seconds("poll"))).await;
    world.remove("poll").await;

    world.advance(seconds(300)).await;

    assert!(log.only("is gone").contains("schedule=poll"));
}

/// The store's clock was set back. A schedule whose last tick is in the future is silent.
#[tokio::test]
async fn a_last_tick_in_the_future_is_logged_once() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::Last)).await;
    world.start_many(1).await;
    world.advance(hours(3)).await;
    assert_eq!(log.lines("set back"), [""; 0]);
    world.stop_all().await;

    world.clock.set(seconds(60));
    world.start_many(1).await;
    world.advance(hours(1)).await;

    let line = log.only("set back");
    assert!(line.contains("WARN") && line.contains("schedule=poll"), "{line}");
    assert!(line.contains("until=\"2027-01-01T03:00:00Z\""), "{line}");
}

#[tokio::test]
async fn ticks_that_are_left_out_are_counted_once() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.put("often", &every(seconds(1), Missed::All)).await;
    world.advance(hours(1)).await;

    world.start_many(2).await;
    world.advance(seconds(300)).await;

    let line = log.only("of the missed ticks only the newest 1000 are pushed");
    assert!(line.contains("schedule=often left_out=2600"), "{line}");
}

/// While too few replicas answer, no tick of the first look is confirmed. The next read finds
/// these ticks, and can no longer count the ones before them.
#[tokio::test]
async fn ticks_left_out_before_an_unconfirmed_one_are_counted() {
    let (log, _guard) = Log::begin();
    let mut world = World::starting(START);
    world.put("often", &every(seconds(1), Missed::All)).await;
    world.advance(hours(1)).await;
    (0..MAX_TICKS).for_each(|_| world.queue.meddle(Meddling::Unconfirmed));

    world.start_many(1).await;

    let line = log.only("of the missed ticks only the newest 1000 are pushed");
    assert!(line.contains("schedule=often left_out=2600"), "{line}");
}
