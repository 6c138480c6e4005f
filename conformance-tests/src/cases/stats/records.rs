//! The records that jobs and workers leave in the store are removed after their time, and
//! by a purge.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Disposition, NewJob, WorkerId,
    capabilities::Capability,
    operator::{Selection, WorkerReport},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, key, retry_after, retry_now, settle_all, token},
        store::Store,
        times::HELD,
    },
};

/// A time after which all leases of these cases have expired, and no id or token is
/// remembered any more.
const PAST_MEMORY: Duration = Duration::from_secs(20 * 60);

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

/// A kind of record that a job or a worker leaves in the store for a time.
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
    // One step removes the records of the first round, but not all of the second round.
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
