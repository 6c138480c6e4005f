//! The statistics of a queue count every job exactly once (R23).

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, WorkerId,
    capabilities::Capability,
    operator::{Cancelled, Selection, WorkerReport},
    outcome::Settled,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, key, numbered, retry_after, retry_now, settle_all, token},
        store::Store,
        times::{BRIEF, HELD},
    },
};

/// A time after which all leases of these cases have expired, and no id or token is
/// remembered any more.
const PAST_MEMORY: Duration = Duration::from_secs(20 * 60);

case!(a_new_queue_is_empty: R23);
/// A new queue has no jobs.
async fn a_new_queue_is_empty(store: &Store) {
    let actor = store.actor("operator").await;

    assert_eq!(actor.figures().await, relq_core::Stats::new());

    assert_eq!(actor.audit().await.expect("answered").jobs, 0);
}

case!(every_state_is_counted: R23);
/// The stats have a count for each state, and for each way in which a job ends.
async fn every_state_is_counted(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(28)).await;
    let held = actor.take(21).await;
    settle_all(&actor, &held[..1], &Disposition::Done).await;
    settle_all(&actor, &held[1..3], &Disposition::Discard).await;
    settle_all(&actor, &held[3..6], &dead("no")).await;
    settle_all(&actor, &held[6..10], &retry_after(HELD)).await;
    for one in &held[10..15] {
        actor.cancel(one.job()).await.expect("answered");
    }

    let stats = actor.figures().await;

    assert_eq!((stats.finished, stats.discarded, stats.dead), (1, 2, 3));
    assert_eq!((stats.scheduled, stats.cancelled), (4, 5));
    assert_eq!((stats.leased, stats.ready, stats.overdue), (6, 7, 0));
}

case!(overdue_leases_are_counted: R23);
/// An expired lease is counted as overdue until a recovery handles it.
async fn overdue_leases_are_counted(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store(numbered(5)).await;
    actor.take(2).await;
    dying.take_briefly(3).await;
    store.outlast_brief_leases().await;

    let stats = actor.figures().await;
    actor.recover_all().await;

    assert_eq!((stats.leased, stats.overdue), (5, 3));
    let after = actor.figures().await;
    assert_eq!((after.leased, after.overdue, after.ready), (2, 0, 3));
}

case!(due_jobs_are_not_overdue: R23 R27 => Delay);
/// A scheduled job that is due is not counted as overdue, and an overdue lease does not
/// count as a job that waits.
async fn due_jobs_are_not_overdue(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store_one("held").await;
    dying.take_one_briefly().await;
    store.outlast_brief_leases().await;
    store.advance(HELD).await;

    let stats = actor.figures().await;
    assert_eq!((stats.leased, stats.overdue, stats.scheduled), (1, 1, 0));
    assert_eq!(stats.oldest_ready_age, None, "R27: a leased job waits for no worker");

    actor.store_one(NewJob::new("due").delay(BRIEF)).await;
    store.outlast_brief_leases().await;
    let stats = actor.figures().await;
    assert_eq!((stats.leased, stats.overdue), (1, 1));
    assert_eq!(stats.scheduled + stats.ready, 1);
}

case!(all_levels_are_counted: R23 => Priority);
/// Jobs of all priorities are counted together.
async fn all_levels_are_counted(store: &Store) {
    let actor = store.actor("producer").await;
    let levels: Vec<_> = actor.class().levels().collect();
    for level in &levels {
        actor.store_one(NewJob::new("job").priority(*level)).await;
    }

    assert_eq!(actor.figures().await.ready, levels.len() as u64);
}

case!(a_purge_removes_everything: R23 => Delay);
/// A purge removes every job in every state, resets the counts, and returns how
/// many jobs there were.
async fn a_purge_removes_everything(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(4)).await;
    actor.store_one(NewJob::new("later").delay(HELD)).await;
    let held = actor.take(3).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;
    actor.say(&actor.take_one().await, Disposition::Discard).await;
    let cancelled = actor.store_one("cancelled").await;
    actor.cancel(&cancelled).await.expect("answered");

    assert_eq!(actor.purge().await.expect("answered"), 3);

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0));
    assert_eq!((stats.finished, stats.discarded, stats.cancelled), (0, 0, 0));
    assert_eq!(actor.purge().await.expect("answered"), 0);
    assert_eq!(actor.say(&held[2], Disposition::Done).await, Settled::LeaseLost);
    assert_eq!(actor.figures().await.finished, 0);
}

case!(a_purged_queue_works: R23 R24);
/// After a purge the queue works like a new one.
async fn a_purged_queue_works(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(3)).await;
    actor.take(2).await;
    actor.purge().await.expect("answered");
    assert_eq!(actor.release_worker(actor.worker()).await.expect("answered").jobs, 0);
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 0);

    actor.store_one("after").await;

    let held = actor.take_one().await;
    assert_eq!((&held.payload[..], held.attempt()), (&b"after"[..], 1));
    actor.finish(&held).await;
}

case!(nothing_is_kept_for_ever: R23 => ClientIds PushTokens Unique @ counted);
/// After all jobs have ended and all records about them have expired, a queue is
/// no larger than before.
async fn nothing_is_kept_for_ever(store: &Store) {
    let actor = store.actor("worker").await;
    let mut sizes = Vec::new();
    for round in 0..3 {
        a_whole_life(&actor, round).await;
        store.advance(PAST_MEMORY).await;
        actor.recover_all().await;
        sizes.push(store.size().await);
    }

    assert_eq!(sizes[1], sizes[2], "{sizes:?}");
}

/// Pushes jobs with every option that leaves a record in the store, and ends all of
/// them.
async fn a_whole_life(actor: &Actor, round: usize) {
    let class = actor.class();
    let jobs = (0..6).map(|number| {
        let name = format!("{round}-{number}");
        let job = NewJob::new(name.clone()).id(id(&name)).unique(key(&name));
        class.fit(job.expires_in(2 * PAST_MEMORY))
    });
    let jobs: Vec<_> = jobs.collect();
    let call = token(&format!("call-{round}"));
    actor.push(&jobs, Some(&call)).await.expect("taken");
    let held = actor.take(6).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], Disposition::Discard).await;
    actor.say(&held[2], dead("no")).await;
    actor.cancel(held[3].job()).await.expect("answered");
    actor.say(&held[4], retry_after(HELD)).await;
    actor.cancel(held[4].job()).await.expect("answered");
    actor.say(&held[5], retry_now()).await;
    actor.recover_all().await;
    let again = actor.take(1).await;
    settle_all(actor, &again, &Disposition::Done).await;
    actor.purge_dead(&Selection::All).await.expect("answered");
}

/// What jobs or workers leave in the store for a time.
#[derive(Debug, Clone, Copy)]
enum Record {
    Id,
    UniqueKey,
    Result,
    PushToken,
    CancelledLease,
    Report,
}

impl Record {
    const ALL: [Self; 6] = [
        Self::Id,
        Self::UniqueKey,
        Self::Result,
        Self::PushToken,
        Self::CancelledLease,
        Self::Report,
    ];

    /// Leaves a record with this name, or none if the backend has no such records.
    async fn leave(self, actor: &Actor, name: &str) {
        let (mut job, mut call) = (NewJob::new("job"), None);
        match self {
            Self::Id => job = job.id(id(name)),
            Self::UniqueKey => job = job.unique(key(name)),
            Self::Result => job = job.keep_result(HELD),
            Self::PushToken => call = Some(token(name)),
            Self::CancelledLease => {}
            Self::Report => {
                let worker = WorkerId::new(name).expect("a valid name");
                let report = WorkerReport::new(worker, NonZeroU32::MIN);
                return actor.report_worker(&report).await.expect("answered");
            }
        }
        let call =
            call.filter(|_| actor.capabilities().supports(Capability::PushTokens));
        let jobs = [actor.class().fit(job)];
        actor.push(&jobs, call.as_ref()).await.expect("taken");
        let held = actor.take_one().await;
        if let Self::CancelledLease = self {
            actor.cancel(held.job()).await.expect("answered");
        } else {
            actor.finish(&held).await;
        }
    }
}

case!(each_record_is_forgotten_without_the_others: R23 @ counted);
/// When jobs leave records of one kind only, these are removed after their time, whatever
/// kind it is. If they are more than a step removes, the recovery says that there is more.
async fn each_record_is_forgotten_without_the_others(store: &Store) {
    // One step removes so many records, but not those of the second round.
    const FEW: u64 = 5;
    let actor = store.actor_in_steps("worker").await;
    for kind in Record::ALL {
        let mut sizes = Vec::new();
        // If the records stayed, there would be more of them after the second round.
        for (round, count) in [FEW, 2 * FEW].into_iter().enumerate() {
            for number in 0..count {
                kind.leave(&actor, &format!("{round}-{number}")).await;
            }
            store.advance(PAST_MEMORY).await;
            actor.recover_all().await;
            sizes.push(store.size().await);
        }
        // A backend on Redis keeps the ids of the last thousand results for its waiters.
        let has_ends = matches!(kind, Record::Result) && actor.result_queue().is_some();
        let ends = if has_ends && !store.is_embedded() { 2 * FEW } else { 0 };
        assert_eq!(sizes[0] + ends, sizes[1], "R23: records stay: {kind:?}");
    }
}

case!(a_purge_forgets_each_record: R23 R4 @ counted);
/// A purge removes at once what ended jobs and workers have left, whatever kind it is. The
/// queue is no larger than after a purge of fewer such records.
async fn a_purge_forgets_each_record(store: &Store) {
    let actor = store.actor("worker").await;
    for kind in Record::ALL {
        let mut sizes = Vec::new();
        for (round, count) in [1, 5].into_iter().enumerate() {
            for number in 0..count {
                kind.leave(&actor, &format!("{round}-{number}")).await;
            }
            actor.purge().await.expect("answered");
            sizes.push(store.size().await);
        }
        assert_eq!(sizes[0], sizes[1], "R23: a purge leaves records: {kind:?}");
    }
}

case!(a_purge_removes_thousands: R23);
/// A purge of many jobs removes all of them.
async fn a_purge_removes_thousands(store: &Store) {
    let actor = store.actor("worker").await;
    for batch in numbered(8_500).chunks(500) {
        actor.store(batch.to_vec()).await;
    }

    assert_eq!(actor.purge().await.expect("answered"), 8_500);

    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(stats_add_up_after_anything: R23 => Delay);
/// After any sequence of operations every job that was stored is in some state.
async fn stats_add_up_after_anything(store: &Store) {
    for seed in 1..=6 {
        let actor = store.actor_on("worker", &format!("seed {seed}")).await;
        let mut random_calls = RandomCalls::new(actor, seed);
        for _ in 0..120 {
            random_calls.step(store).await;
        }
        random_calls.adds_up().await;
    }
}

/// Makes random calls, and keeps the counts that the stats must show after them.
struct RandomCalls {
    actor: Actor,
    state: u64,
    held: Vec<Delivery>,
    stored: u64,
    purged: u64,
    cancelled: u64,
    finished: u64,
    discarded: u64,
}

impl RandomCalls {
    fn new(actor: Actor, state: u64) -> Self {
        let held = Vec::new();
        let (stored, purged, cancelled, finished, discarded) = (0, 0, 0, 0, 0);
        Self { actor, state, held, stored, purged, cancelled, finished, discarded }
    }

    /// The next number of a reproducible pseudo-random sequence (SplitMix64), below
    /// `below`.
    fn draw(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    async fn step(&mut self, store: &Store) {
        match self.draw(12) {
            0..=2 => self.push().await,
            3 | 4 => self.claim().await,
            5 | 6 => self.settle().await,
            7 => self.cancel().await,
            8 => self.release_worker().await,
            9 => self.recover(store).await,
            10 => drop(self.actor.redrive(&Selection::All).await.expect("answered")),
            _ => self.purge_some().await,
        }
    }

    async fn push(&mut self) {
        let count = 1 + self.draw(5);
        for _ in 0..count {
            let job = NewJob::new(self.stored.to_string());
            let job = match self.draw(3) {
                0 => job.delay(BRIEF),
                1 => job.max_attempts(std::num::NonZeroU16::MIN),
                _ => job,
            };
            self.actor.store_one(job).await;
            self.stored += 1;
        }
    }

    async fn claim(&mut self) {
        let taken = self.actor.take_briefly(3).await;
        self.held.extend(taken);
    }

    async fn settle(&mut self) {
        let Some(held) = self.held.pop() else { return };
        let disposition = match self.draw(5) {
            0 => Disposition::Done,
            1 => Disposition::Discard,
            2 => dead("no"),
            3 => retry_now(),
            _ => Disposition::GiveBack,
        };
        let settled = self.actor.say(&held, disposition.clone()).await;
        match (settled, disposition) {
            (Settled::Applied, Disposition::Done) => self.finished += 1,
            (Settled::Applied, Disposition::Discard) => self.discarded += 1,
            _ => {}
        }
    }

    async fn cancel(&mut self) {
        let Some(held) = self.held.pop() else { return };
        let cancelled = self.actor.cancel(held.job()).await.expect("answered");
        self.cancelled += u64::from(cancelled != Cancelled::NotFound);
    }

    async fn release_worker(&mut self) {
        self.actor.release_worker(self.actor.worker()).await.expect("answered");
    }

    async fn recover(&mut self, store: &Store) {
        store.outlast_brief_leases().await;
        self.actor.recover_all().await;
    }

    async fn purge_some(&mut self) {
        self.purged += self.actor.purge_dead(&Selection::All).await.expect("answered");
    }

    async fn adds_up(&self) {
        let stats = self.actor.figures().await;
        let ended = stats.finished + stats.discarded + stats.cancelled + self.purged;
        assert_eq!(
            stats.unfinished() + stats.dead + ended,
            self.stored,
            "R23: each stored job is in one state or has ended; {} were purged; {stats:?}",
            self.purged,
        );
        assert_eq!(stats.finished, self.finished, "R23: the finished jobs");
        assert_eq!(stats.discarded, self.discarded, "R23: the discarded jobs");
        assert_eq!(stats.cancelled, self.cancelled, "R23: the cancelled jobs");
    }
}
