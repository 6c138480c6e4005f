//! The marker of the case's queue, and each kind of call that reads or writes the queue.

use std::num::NonZeroU32;

use relq_core::{
    ClaimRequest, Error, JobId, NewJob, Queue,
    environment::Timestamp,
    operator::{JobState, PeekRequest, Selection},
    schedule::{ScheduleName, ScheduleQueue, Tick},
};

use crate::harness::{
    actor::Actor, checks::eventually, room::SUITES_SCRIPT, store::Store, times::HELD,
};

/// The value of a marker that names a backend which does not exist.
pub(super) const ANOTHERS: &[u8] = b"relq 4 another mode=odd";

impl Store {
    /// Returns the marker of the case's queue, or an empty string if there is none.
    pub(super) async fn marker(&self) -> String {
        let answer = self.tell(&[b"GET", b"{jobs}:marker"]).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split("\r\n").nth(1).unwrap_or_default().to_owned()
    }

    pub(super) async fn mark(&self, marker: &[u8]) {
        self.tell(&[b"SET", b"{jobs}:marker", marker]).await;
    }

    /// Returns the whole content of the database, byte for byte.
    pub(super) async fn contents(&self) -> String {
        let script = "local keys, all = redis.call('KEYS', '*'), {} \
            table.sort(keys) for _, key in ipairs(keys) do \
            all[#all + 1] = key .. ' ' .. redis.call('DUMP', key) end \
            return table.concat(all, '\\n')";
        let script = format!("{SUITES_SCRIPT}{script}");
        let answer = self.tell(&[b"EVAL", script.as_bytes(), b"0"]).await;
        let text = answer.escape_ascii().to_string();
        text.strip_prefix("$0").map_or(text.clone(), |_| String::new())
    }

    /// Returns the error that a new actor gets when it opens the queue.
    pub(super) async fn refusal(&self, name: &str) -> String {
        let refused = self.try_actor(name).await.err();
        let refused = refused.expect("opening the queue must fail");
        assert!(
            matches!(refused, Error::Unusable { .. }),
            "{}",
            refused.full_message()
        );
        refused.full_message()
    }
}

pub(super) fn assert_unusable(error: &Error, words: &str) {
    let message = error.full_message();
    assert!(matches!(error, Error::Unusable { .. }), "{message}");
    assert!(message.contains(words), "{message}");
}

pub(super) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

/// Makes each call that reads the queue and writes nothing.
pub(super) async fn look(queue: &dyn Queue) {
    queue.stats().await.expect("answered");
    for state in
        [JobState::Ready, JobState::Scheduled, JobState::Leased, JobState::Dead]
    {
        queue.peek(&PeekRequest::new(state, many(10))).await.expect("answered");
    }
    queue.audit().await.expect("answered");
    if let Some(batches) = queue.batch_queue() {
        batches.list_batches(None, many(10)).await.expect("answered");
    }
    if let Some(scheduler) = queue.schedule_queue() {
        scheduler.schedules().await.expect("answered");
    }
}

/// The number of kinds of writing calls. The function [`write`] makes the one with a
/// given number.
pub(super) const WRITES: usize = 13;

/// Makes one of the calls that write, chosen by `number`, which is less than [`WRITES`].
/// Returns the error if the call is refused.
pub(super) async fn write(actor: &Actor, number: usize) -> Result<(), Error> {
    let ask = ClaimRequest::new(actor.worker().clone(), HELD);
    match number {
        0 => actor.push(&[NewJob::new("written")], None).await.map(drop),
        1 => actor.claim(&ask).await.map(drop),
        2 => actor.settle_and_claim(&[], &ask).await.claimed.map(drop),
        3 => actor.release_worker(actor.worker()).await.map(drop),
        4 => actor.recover(many(10)).await.map(drop),
        5 => actor.pause().await,
        6 => actor.resume().await,
        7 => actor.redrive(&Selection::All).await.map(drop),
        8 => actor.purge().await.map(drop),
        9 => {
            let nobody = JobId::new("nobody").expect("the id is valid");
            actor.cancel(&nobody).await.map(drop)
        }
        number => match actor.schedule_queue() {
            Some(scheduler) => write_schedule(scheduler, number).await,
            None => actor.push(&[NewJob::new("written")], None).await.map(drop),
        },
    }
}

/// Makes one of the calls that change schedules.
async fn write_schedule(
    scheduler: &dyn ScheduleQueue,
    number: usize,
) -> Result<(), Error> {
    let name = ScheduleName::new("written").expect("the name is valid");
    match number {
        10 => scheduler.put_schedule(&name, b"hourly").await.map(drop),
        11 => {
            let at = Timestamp::from_unix_ms(1);
            let tick = Tick { name, definition: "hourly".into(), at };
            scheduler.push_tick(&tick, NewJob::new("written")).await.map(drop)
        }
        _ => scheduler.remove_schedule(&name).await.map(drop),
    }
}

/// Closes every client's connection to the server.
pub(super) async fn cut_connections(store: &Store) {
    store.tell(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]).await;
}

/// Waits until the actor, whose connection was closed, has a new one. Returns the
/// result of its first call on the new connection.
pub(super) async fn after_the_cut(actor: &Actor) -> Result<(), Error> {
    eventually("an answer on a new connection", || async {
        match actor.stats().await {
            Err(Error::Interrupted { .. } | Error::Unavailable { .. }) => None,
            answer => Some(answer.map(drop)),
        }
    })
    .await
}
