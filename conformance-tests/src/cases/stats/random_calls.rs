//! The stats add up after any sequence of calls.

use std::num::NonZeroU16;

use relq_core::{
    Delivery, Disposition, NewJob,
    operator::{Cancelled, Selection},
    outcome::Settled,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, retry_now},
        store::Store,
        times::BRIEF,
    },
};

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
                1 => job.max_attempts(NonZeroU16::MIN),
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
