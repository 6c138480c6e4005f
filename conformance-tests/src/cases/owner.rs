//! Only one backend may use a queue (R25). On Redis, a key of the queue, the marker,
//! names that backend.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    ClaimRequest, Error, JobId, NewJob, Queue,
    environment::Timestamp,
    operator::{JobState, PeekRequest, Selection},
    schedule::{ScheduleName, ScheduleQueue, Tick},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{delivers, eventually, id},
        room::SUITES_SCRIPT,
        store::Store,
        times::HELD,
    },
};

/// The value of a marker that names a backend which does not exist.
const ANOTHERS: &[u8] = b"relq 4 another mode=odd";

case!(the_first_write_marks_the_queue: R25 @ redis);
/// Reading calls write nothing, and the first write creates the marker.
async fn the_first_write_marks_the_queue(store: &Store) {
    let actor = store.actor("operator").await;
    look(&*actor).await;
    assert_eq!(store.contents().await, "", "something was written");

    actor.store_one("job").await;

    let marker = store.marker().await;
    let backend = actor.capabilities().backend;
    assert!(marker.starts_with(&format!("relq 4 {backend}")), "{marker}");
}

case!(each_kind_of_write_marks_the_queue: R25 @ redis);
/// Each kind of writing call creates the marker if it is the first write of the queue.
async fn each_kind_of_write_marks_the_queue(store: &Store) {
    for number in 0..WRITES {
        store.tell(&[b"FLUSHALL"]).await;
        let actor = store.actor("writer").await;

        write(&actor, number).await.expect("a new queue takes any call");

        assert!(store.marker().await.starts_with("relq 4 "), "write {number}");
    }
}

case!(a_queue_of_another_backend_is_refused: R25 @ redis);
/// A queue whose marker names another backend is refused, the error names that backend,
/// and nothing is changed.
async fn a_queue_of_another_backend_is_refused(store: &Store) {
    let owner = store.actor("owner").await;
    owner.store(["1", "2"]).await;
    let held = owner.take_one().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;

    let refused = store.refusal("stranger").await;

    assert!(refused.contains("another+") && refused.contains("mode=odd"), "{refused}");
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    store.actor("owner-again").await.finish(&held).await;
}

case!(a_write_raises_an_earlier_format: R25 @ redis);
/// A call that only reads leaves the marker of a queue of an earlier format. Each kind of
/// write first raises the format in the marker, and keeps the options that it names. A
/// recovery by a client that was connected before raises the format, too.
async fn a_write_raises_an_earlier_format(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    let earlier = own.replacen("relq 4 ", "relq 2 ", 1);
    store.mark(earlier.as_bytes()).await;

    actor.recover_all().await;
    assert_eq!(store.marker().await, own, "R25: a recovery raises the format");

    for number in 0..WRITES {
        store.mark(earlier.as_bytes()).await;
        let late = store.actor("late").await;
        assert_eq!(late.figures().await.overdue, 0);
        assert_eq!(store.marker().await, earlier, "a look changes nothing");

        write(&late, number).await.expect("the queue is its own");

        assert_eq!(store.marker().await, own, "R25: write {number} raises the format");
    }
}

case!(the_second_of_two_first_writers_is_refused: R25 @ redis);
/// Two clients open a new queue, and another backend writes first. From then on
/// each call of the other client is refused, and nothing is changed.
async fn the_second_of_two_first_writers_is_refused(store: &Store) {
    for number in 0..WRITES {
        store.tell(&[b"FLUSHALL"]).await;
        let late = store.actor("late").await;
        store.mark(ANOTHERS).await;
        let before = store.contents().await;

        let refused = write(&late, number).await;

        let refused = refused.expect_err("the queue is another backend's");
        assert_unusable(&refused, "another");
        assert_eq!(store.contents().await, before, "write {number} changed something");
    }
    store.tell(&[b"FLUSHALL"]).await;
}

case!(a_reconnect_looks_again: R25 @ redis);
/// After a client has reconnected, it reads the marker again before its first call.
async fn a_reconnect_looks_again(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;
    cut_connections(store).await;

    assert_unusable(&after_the_cut(&actor).await.expect_err("refused"), "another");
    for number in 0..WRITES {
        let refused = write(&actor, number).await.expect_err("the queue is another's");
        assert_unusable(&refused, "another");
    }

    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    delivers(&actor, ["job"]).await;
}

case!(a_waiting_claim_looks_again: R25 @ redis);
/// A waiting claim takes nothing from a queue that another backend took over while
/// the claim's connections were closed.
async fn a_waiting_claim_looks_again(store: &Store) {
    let actor = store.actor("worker").await;
    let wait = Duration::from_secs(20);
    let waiting =
        tokio::spawn(async move { actor.claim(&actor.ask(1).wait(wait)).await });
    store.settled().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    cut_connections(store).await;
    store.push_raw(b"job of another").await;
    let before = store.contents().await;

    let (claimed, _) = store.within(2 * wait, waiting).await;

    let claimed = claimed.expect("the claim ends").unwrap_or_default();
    assert!(claimed.is_empty(), "{claimed:?}");
    // What the claim started in the background must not meet the right marker.
    store.settled().await;
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
}

case!(recovery_looks_before_it_touches: R25 @ redis);
/// Recovery reads the marker before it changes anything.
async fn recovery_looks_before_it_touches(store: &Store) {
    let actor = store.actor("reaper").await;
    actor.store(["1", "2"]).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;

    let refused = actor.recover(many(10)).await.expect_err("the queue is another's");
    assert_unusable(&refused, "another");
    let pushed = actor.push(&["3".into()], None).await.expect_err("known by now");
    assert_unusable(&pushed, "another");

    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    actor.recover_all().await;
    delivers(&actor, ["1", "2"]).await;
}

case!(another_handle_looks_too: R25 @ redis);
/// When a second handle of a queue is opened, it also reads the marker.
async fn another_handle_looks_too(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;

    let refused = actor.open_another().await.expect_err("the queue is another's");

    assert_unusable(&refused, "another");
    store.mark(own.as_bytes()).await;
}

case!(a_flush_stops_no_running_client: R25 => ClientIds @ redis);
/// A client that has seen the marker writes it again if the store was emptied in
/// the meantime, so a flush does not stop a running worker.
async fn a_flush_stops_no_running_client(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("gone").await;
    let own = store.marker().await;
    store.tell(&[b"FLUSHALL"]).await;
    // The client-made id leaves a key of relq. The list of jobs alone would be no such
    // key, because any client may push to it (R20).
    actor.store_one(NewJob::new("kept").id(id("kept"))).await;
    cut_connections(store).await;
    after_the_cut(&actor).await.expect("the client knows the queue");

    actor.recover_all().await;

    assert_eq!(store.marker().await, own);
    delivers(&store.actor("newcomer").await, ["kept"]).await;
}

case!(keys_without_a_marker_are_refused: R25 @ redis);
/// Keys of relq without a marker are refused until an operator marks the queue. Either
/// they were written before markers existed, or the marker was deleted.
async fn keys_without_a_marker_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["1", "2"]).await;
    let held = actor.take_one().await;
    let own = store.marker().await;
    store.tell(&[b"DEL", b"{jobs}:marker"]).await;
    let before = store.contents().await;

    let refused = store.refusal("newcomer").await;

    assert!(refused.contains("relq marker set"), "{refused}");
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    store.actor("newcomer").await.finish(&held).await;
}

case!(what_a_newer_relq_wrote_is_refused: R25 @ redis);
/// A queue with a newer format or an unknown option is refused, and the error says that
/// a newer relq wrote it. A queue whose marker cannot be parsed is refused, too.
async fn what_a_newer_relq_wrote_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    let newer = own.replacen("relq 4 ", "relq 5 ", 1);
    for (marker, words) in [
        (newer, "newer relq"),
        (format!("{own} tenants=4"), "newer relq"),
        ("nonsense".to_owned(), "no marker"),
    ] {
        store.mark(marker.as_bytes()).await;
        let before = store.contents().await;

        let refused = store.refusal("newcomer").await;

        assert!(refused.contains(words), "{marker}: {refused}");
        assert_eq!(store.contents().await, before, "{marker}: something was changed");
    }
    store.mark(own.as_bytes()).await;
    delivers(&actor, ["job"]).await;
}

case!(a_purge_keeps_the_marker: R25 @ redis);
/// A purge keeps the marker, so the queue keeps its owner.
async fn a_purge_keeps_the_marker(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(["1", "2"]).await;
    let own = store.marker().await;

    actor.purge().await.expect("answered");

    assert_eq!(store.marker().await, own);
    store.actor("newcomer").await.store_one("next").await;
}

case!(plain_pushes_need_no_marker: R25 R20 @ redis);
/// A push of a client without relq writes no marker, so no backend owns the queue yet.
async fn plain_pushes_need_no_marker(store: &Store) {
    store.push_raw(b"123").await;
    let actor = store.actor("worker").await;
    look(&*actor).await;
    assert_eq!(store.marker().await, "");

    delivers(&actor, ["123"]).await;
}

impl Store {
    /// Returns the marker of the case's queue, or an empty string if there is none.
    async fn marker(&self) -> String {
        let answer = self.tell(&[b"GET", b"{jobs}:marker"]).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split("\r\n").nth(1).unwrap_or_default().to_owned()
    }

    async fn mark(&self, marker: &[u8]) {
        self.tell(&[b"SET", b"{jobs}:marker", marker]).await;
    }

    /// Returns the whole content of the database, byte for byte.
    async fn contents(&self) -> String {
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
    async fn refusal(&self, name: &str) -> String {
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

fn assert_unusable(error: &Error, words: &str) {
    let message = error.full_message();
    assert!(matches!(error, Error::Unusable { .. }), "{message}");
    assert!(message.contains(words), "{message}");
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

/// Makes each call that reads the queue and writes nothing.
async fn look(queue: &dyn Queue) {
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
const WRITES: usize = 13;

/// Makes one of the calls that write, chosen by `number`, which is less than [`WRITES`].
/// Returns the error if the call is refused.
async fn write(actor: &Actor, number: usize) -> Result<(), Error> {
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
async fn cut_connections(store: &Store) {
    store.tell(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]).await;
}

/// Waits until the actor, whose connection was closed, has a new one. Returns the
/// result of its first call on the new connection.
async fn after_the_cut(actor: &Actor) -> Result<(), Error> {
    eventually("an answer on a new connection", || async {
        match actor.stats().await {
            Err(Error::Interrupted { .. } | Error::Unavailable { .. }) => None,
            answer => Some(answer.map(drop)),
        }
    })
    .await
}
