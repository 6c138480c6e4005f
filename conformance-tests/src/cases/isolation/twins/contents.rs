//! The contents of each of the queues: jobs in each state and with each option, jobs that
//! have ended, batches in each state, a schedule and a worker.

use std::time::Duration;

use relq_core::{
    Disposition, NewJob, Priority,
    batch::{BatchId, BatchPriority, NewBatch, OnComplete},
    schedule::ScheduleName,
};

use super::Twin;
use crate::harness::{
    checks::{dead, id, key, token},
    times::BRIEF,
};

/// The ids of most of the jobs.
pub(super) const IDS: [&str; 19] = [
    "frozen",
    "done",
    "discarded",
    "dead",
    "dead-2",
    "cancelled",
    "held",
    "leader",
    "leader-2",
    "follower",
    "follower-2",
    "lost",
    "lost-0",
    "lost-8",
    "due",
    "later",
    "urgent",
    "open-1",
    "sealed-1",
];

/// The ids of the batches. Most of their pieces have the names of their batches and a
/// number.
pub(super) const BATCHES: [&str; 4] = ["open", "sealed", "cancelling", "ended"];

/// A time that does not pass.
pub(super) const LONG: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The shortest time for which a batch is kept.
const SHORT: Duration = NewBatch::MIN_RETENTION;

pub(super) fn batch(name: &str) -> BatchId {
    BatchId::new(name).expect("a valid id")
}

pub(super) fn schedule() -> ScheduleName {
    ScheduleName::new("nightly").expect("a valid name")
}

/// A job with this id and payload, whose result is kept.
pub(super) fn named(name: &str) -> NewJob {
    NewJob::new(name.to_owned()).id(id(name)).keep_result(LONG)
}

impl Twin {
    pub(super) async fn fill(&mut self) {
        self.store_leased_and_ended().await;
        self.store_batches().await;
        self.store_waiting().await;
        let schedules = self.actor.schedule_queue().expect("it has schedules");
        let put = schedules.put_schedule(&schedule(), b"at night").await;
        let put = put.expect("answered");
        self.note("put_schedule", &put);
        self.look("the fill").await;
    }

    /// Stores jobs that are leased, dead, ended and cancelled. The lease of `frozen` is
    /// brief.
    async fn store_leased_and_ended(&mut self) {
        let actor = self.actor.clone();
        actor.report_running(actor.worker(), 3).await;
        let pushed = actor.push(&[named("frozen")], Some(&token("t"))).await;
        self.note("push", &pushed.expect("the push is taken"));
        actor.take_one_briefly().await;
        let names = ["done", "discarded", "dead", "dead-2", "cancelled", "held"];
        actor.store(names.map(named)).await;
        let taken = actor.take(6).await;
        let of = |name: &str| {
            let found = taken.iter().find(|one| one.payload == name);
            found.expect("R19: a claim gets the six jobs of this queue")
        };
        actor.finish(of("done")).await;
        actor.say(of("discarded"), Disposition::Discard).await;
        actor.say(of("dead"), dead("no")).await;
        actor.say(of("dead-2"), dead("no")).await;
        let cancelled = actor.cancel(of("cancelled").job()).await.expect("answered");
        self.held = ["cancelled", "held"].map(|name| of(name).receipt.clone()).to_vec();
        self.note("cancel", &cancelled);
    }

    /// Stores batches, if the backend has them: an open one, a sealed one, one that has
    /// ended and is soon removed, and a cancelled one with a leased piece. No other job is
    /// ready meanwhile.
    async fn store_batches(&mut self) {
        let queue = self.actor.queue();
        let Some(batches) = queue.batch_queue() else { return };
        for name in BATCHES {
            let is_first = name == "cancelling";
            let priority =
                if is_first { BatchPriority::HIGHEST } else { BatchPriority::NORMAL };
            let new = NewBatch::new(batch(name)).priority(priority).retention(SHORT);
            let new = new.on_complete(OnComplete::new(NewJob::new("complete")));
            let made = batches.create(&new).await.expect("answered");
            self.note("create", &made);
        }
        for name in ["open", "sealed", "cancelling"] {
            let pieces = [1, 2].map(|number| named(&format!("{name}-{number}")));
            let added = batches.add(&batch(name), &pieces, Some(&token("t"))).await;
            self.note("add", &added.expect("answered"));
        }
        let piece = self.actor.take_one().await;
        self.held.push(piece.receipt);
        let status = batches.cancel_batch(&batch("cancelling")).await;
        self.note("cancel_batch", &status.expect("answered"));
        for name in ["sealed", "ended"] {
            let status = batches.seal(&batch(name)).await.expect("answered");
            self.note("seal", &status);
        }
    }

    /// Stores leaders with followers, delayed jobs, one of which is due soon, and an urgent
    /// one.
    async fn store_waiting(&mut self) {
        let actor = self.actor.clone();
        actor.store(["leader", "leader-2", "lost"].map(named)).await;
        let followers = [
            named("follower").after(id("leader")),
            named("follower-2").after(id("leader-2")),
        ];
        actor.store(followers).await;
        // More than one step cancels, so that a recovery may have to cancel the last.
        let lost = (0..9).map(|number| named(&format!("lost-{number}")));
        actor.store(lost.map(|job| job.after(id("lost")))).await;
        let cancelled = actor.cancel(&id("lost")).await.expect("answered");
        self.note("cancel of a leader", &cancelled);
        let waiting = [
            named("due").delay(BRIEF),
            named("later").delay(LONG).unique(key("k")),
            named("urgent").priority(Priority::HIGHEST).header("name", "value"),
        ];
        actor.store(waiting).await;
    }
}
