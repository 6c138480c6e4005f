//! Every call of a queue. A note tells what each answered.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Disposition, Settlement,
    batch::{BatchPriority, Change},
    operator::{JobState, JobView, PeekRequest, Selection},
    schedule::Tick,
    unique::OnDuplicate,
};

use super::{
    Twin,
    contents::{LONG, batch, named, schedule},
};
use crate::{
    harness::{
        checks::{dead, drain, id, key, payloads, retry_after, token},
        times::HELD,
    },
    spec::operation::STATES,
};

impl Twin {
    /// Makes every call, and then fills the queue anew. In the end it is empty.
    pub(super) async fn call_all(&mut self, other: &Self) {
        let mut saved = self.actor.list(JobState::Ready, 100).await;
        saved.extend(self.actor.list(JobState::Dead, 100).await);
        saved.retain(|job| job.batch.is_none());

        self.look("the beginning").await;
        self.use_receipts_of(other).await;
        self.keep_leases().await;
        self.push_again().await;
        self.operate().await;
        self.work().await;
        self.change_batches().await;
        self.change_schedules().await;
        self.purge().await;

        self.peek_behind_pages_of(other).await;
        self.restore(&saved).await;
        self.purge().await;
        self.push_behind("done").await;
        self.fill().await;
        self.purge().await;
    }

    /// Uses the receipts of the other queue, which are not valid here.
    async fn use_receipts_of(&mut self, other: &Self) {
        let actor = self.actor.clone();
        let extended = actor.extend(actor.worker(), &other.held, HELD).await;
        self.note("extend of the other's", &extended.expect("answered"));
        let results = actor.result_queue().expect("the backend keeps results");
        for receipt in &other.held {
            let done = Settlement::new(receipt.clone(), Disposition::Done);
            let settled = actor.settle(&[done]).await.expect("answered");
            self.note("settle of the other's", &settled);
            let reported = results.report_progress(receipt, b"half").await;
            self.note("report of the other's", &reported.expect("answered"));
        }
    }

    async fn keep_leases(&mut self) {
        let actor = self.actor.clone();
        let results = actor.result_queue().expect("the backend keeps results");
        let held = self.held.clone();
        for receipt in &held {
            let reported = results.report_progress(receipt, b"half").await;
            self.note("report_progress", &reported.expect("answered"));
        }
        let extended = actor.extend(actor.worker(), &held, HELD).await;
        self.note("extend", &extended.expect("answered"));
        self.look("the heartbeat").await;
    }

    /// Pushes jobs whose tokens, ids, unique keys and leaders are known.
    async fn push_again(&mut self) {
        let actor = self.actor.clone();
        let again = actor.push(&[named("frozen")], Some(&token("t"))).await;
        self.note("push of the same token", &again.expect("answered"));
        let keyed = named("keyed").unique_or(key("k"), OnDuplicate::Reschedule);
        for job in [named("done"), named("later"), keyed.delay(LONG)] {
            let pushed = actor.offer(job).await;
            self.note("push of a duplicate", &pushed);
        }
        for leader in ["done", "discarded", "nobody"] {
            self.push_behind(leader).await;
        }
        self.look("the pushes").await;
    }

    /// Pushes a follower of a job that may have ended, or that may be unknown.
    async fn push_behind(&mut self, leader: &str) {
        let job = named(&format!("behind-{leader}")).after(id(leader));
        let pushed = self.actor.push(&[job], None).await;
        let pushed = pushed.map_err(|error| error.to_string());
        self.note("push of a follower", &pushed);
    }

    async fn operate(&mut self) {
        let actor = self.actor.clone();
        for name in ["later", "later", "follower", "due"] {
            let ran = actor.run_now(&id(name)).await;
            self.note("run_now", &ran);
        }
        for name in ["urgent", "urgent", "leader-2"] {
            let cancelled = actor.cancel(&id(name)).await.expect("answered");
            self.note("cancel", &cancelled);
        }
        for which in [Selection::Only(vec![id("dead")]), Selection::All] {
            let redriven = actor.redrive(&which).await.expect("answered");
            self.note("redrive", &redriven);
        }
        actor.pause().await.expect("answered");
        let taken = actor.take(1).await;
        self.note("claim in a pause", &payloads(&taken));
        assert_eq!(taken, [], "R23: a paused queue gives nothing");
        actor.resume().await.expect("answered");
        self.look("the calls of an operator").await;
    }

    async fn work(&mut self) {
        let actor = self.actor.clone();
        let recovered = actor.recover_all().await;
        self.note("recover", &recovered);
        let released = actor.release_worker(actor.worker()).await.expect("answered");
        self.note("release_worker", &released);
        self.look("the recovery").await;
        let taken = actor.take(4).await;
        self.note("claim", &payloads(&taken));
        let dispositions =
            [Disposition::Done, dead("no"), retry_after(LONG), Disposition::GiveBack];
        for (held, disposition) in taken.iter().zip(dispositions) {
            let settled = actor.say(held, disposition).await;
            self.note("settle", &settled);
        }
        let served = drain(&actor).await;
        self.note("drain", &payloads(&served));
        let purged = actor.purge_dead(&Selection::All).await.expect("answered");
        self.note("purge_dead", &purged);
        let results = actor.result_queue().expect("the backend keeps results");
        let result = results.wait_result(&id("done"), Duration::ZERO).await;
        self.note("wait_result", &result.expect("answered"));
        self.look("the work").await;
    }

    /// Changes the open batch, if the backend has batches, and ends it.
    async fn change_batches(&mut self) {
        let actor = self.actor.clone();
        let Some(batches) = actor.batch_queue() else { return };
        let open = batch("open");
        let change = Change::default().priority(BatchPriority::LOWEST);
        let status = batches.alter(&open, &change.limit(NonZeroU32::new(1))).await;
        self.note("alter", &status.expect("answered"));
        let pieces = ["open-3", "open-4"].map(named);
        let added = batches.add(&open, &pieces, None).await.expect("answered");
        self.note("add", &added);
        let taken = actor.take(2).await;
        self.note("claim of a piece", &payloads(&taken));
        let status = batches.seal(&open).await.expect("answered");
        self.note("seal", &status);
        let status = batches.cancel_batch(&open).await.expect("answered");
        self.note("cancel_batch", &status);
        for piece in &taken {
            let settled = actor.say(piece, Disposition::Done).await;
            self.note("settle of a piece", &settled);
        }
        let status = batches.wait_batch(&open, Duration::ZERO).await;
        self.note("wait_batch", &status.expect("answered"));
        self.look("the calls on batches").await;
    }

    async fn change_schedules(&mut self) {
        let actor = self.actor.clone();
        let schedules = actor.schedule_queue().expect("the backend has schedules");
        let found = schedules.schedules().await.expect("answered");
        let stored = found.schedules.first().expect("one schedule is stored");
        let tick = Tick::of(stored, found.now);
        for _ in 0..2 {
            let ticked = schedules.push_tick(&tick, named("tick")).await;
            self.note("push_tick", &ticked.expect("answered"));
        }
        let put = schedules.put_schedule(&schedule(), b"at noon").await;
        self.note("put_schedule", &put.expect("answered"));
        for _ in 0..2 {
            let removed = schedules.remove_schedule(&schedule()).await;
            self.note("remove_schedule", &removed.expect("answered"));
        }
        self.look("the calls on schedules").await;
    }

    /// Removes the jobs, and the schedule, which a purge leaves.
    async fn purge(&mut self) {
        let actor = self.actor.clone();
        let purged = actor.purge().await.expect("answered");
        self.note("purge", &purged);
        let schedules = actor.schedule_queue().expect("the backend has schedules");
        let removed = schedules.remove_schedule(&schedule()).await;
        self.note("remove_schedule", &removed.expect("answered"));
        self.look("a purge").await;
    }

    /// Lists the jobs of this queue, which is empty, from where pages of the other one end.
    /// A backend may also refuse such a cursor.
    async fn peek_behind_pages_of(&mut self, other: &Self) {
        let mut shown = Vec::new();
        for state in STATES {
            let first = PeekRequest::new(state, NonZeroU32::MIN);
            for mut ask in [first.clone(), first.newest_first()] {
                while let Some(next) =
                    other.actor.peek(&ask).await.expect("answered").next
                {
                    ask = ask.after(next);
                    if let Ok(page) = self.actor.peek(&ask).await {
                        shown.extend(page.jobs);
                    }
                }
            }
        }
        assert_eq!(shown, [], "R19: a page of an empty queue");
    }

    /// Restores jobs that this queue had, if the backend can.
    async fn restore(&mut self, saved: &[JobView]) {
        let actor = self.actor.clone();
        let Some(restorer) = actor.restore_queue() else { return };
        let restored = restorer.restore(saved).await;
        let restored = restored.map_err(|error| error.to_string());
        self.note("restore", &restored);
        self.look("the restore").await;
    }
}
