//! The acts that faults are injected into: every call of a worker and of an operator.

mod batches;

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Disposition, Error, NewJob, PushToken, ReliableQueueExt, Settlement,
    environment::Clock,
    operator::{JobState, PeekRequest, Selection},
    unique::OnDuplicate,
};

use super::{
    BoxFuture,
    actors::{DELAY, LEASE, Survivors, VictimObserver, ask},
    scenes::{id, key, options, retry},
    victim::Victim,
};
use crate::spec::class::Class;

pub(super) use super::work::{stop_at_work, work};
pub(super) use batches::*;

type Done = Result<(), Error>;

pub(super) async fn push_one(victim: Victim) -> Done {
    victim.queue.push_one(NewJob::new("a")).await.map(drop)
}

pub(super) async fn push_many(victim: Victim) -> Done {
    let jobs = ["a", "b", "c"].map(NewJob::new);
    victim.queue.push(&jobs, None).await.map(drop)
}

pub(super) async fn push_options(victim: Victim) -> Done {
    let jobs = options(&Class::of(victim.queue.capabilities()));
    victim.queue.push(&jobs, None).await.map(drop)
}

pub(super) async fn push_token(victim: Victim) -> Done {
    let token = PushToken::new("call").expect("the token is valid");
    let jobs = ["a", "b", "c"].map(NewJob::new);
    victim.queue.push(&jobs, Some(&token)).await.map(drop)
}

pub(super) async fn claim_two(victim: Victim) -> Done {
    victim.queue.claim(&ask(&victim.worker, 2)).await.map(drop)
}

pub(super) async fn claim_waiting(victim: Victim) -> Done {
    let ask = ask(&victim.worker, 2).wait(LEASE);
    victim.queue.claim(&ask).await.map(drop)
}

/// How long a claim without a job waits.
const BRIEFLY: Duration = Duration::from_millis(100);

/// A job pushed after a claim has stopped waiting must be available to the next claim.
pub(super) async fn claim_in_vain(victim: Victim) -> Done {
    let briefly = ask(&victim.worker, 1).wait(BRIEFLY);
    victim.queue.claim(&briefly).await?;
    victim.clock.sleep(2 * BRIEFLY).await;
    let patiently = ask(&victim.worker, 1).wait(LEASE);
    victim.queue.claim(&patiently).await.map(drop)
}

/// Pushes once the victim's claim has given up.
pub(super) fn push_after_a_while<'a>(
    actors: &'a Survivors,
    victim: VictimObserver<'a>,
) -> BoxFuture<'a, ()> {
    // Do not count the time that the victim needs to connect: a job pushed before its
    // claim waits would be claimed at once.
    let given_up = async move {
        tokio::select! {
            () = victim.held => {}
            () = actors.clock.asleep(1) => {}
        }
        actors.clock.sleep(BRIEFLY + Duration::from_millis(1)).await;
    };
    Box::pin(async move {
        tokio::select! {
            () = victim.gone => {}
            () = given_up => {}
        }
        victim.room.await;
        actors.healthy.store_plain(&["a"]).await;
    })
}

/// Pushes once the victim's claim waits at the server, or the victim has died.
pub(super) fn push_once_held<'a>(
    actors: &'a Survivors,
    victim: VictimObserver<'a>,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        tokio::select! {
            () = victim.held => {}
            () = victim.gone => {}
            () = actors.clock.asleep(1) => {}
        }
        victim.room.await;
        actors.healthy.store_plain(&["a"]).await;
    })
}

pub(super) async fn settle_done(victim: Victim) -> Done {
    let done: Vec<_> = victim
        .held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done))
        .collect();
    victim.queue.settle(&done).await.map(drop)
}

pub(super) async fn settle_mixed(victim: Victim) -> Done {
    let dispositions = [
        Disposition::Done,
        retry(DELAY),
        Disposition::Dead { error: "no".to_owned() },
        Disposition::Discard,
        Disposition::GiveBack,
    ];
    let receipts = victim.held.iter().map(|one| one.receipt.clone());
    let mixed: Vec<_> =
        receipts.zip(dispositions).map(|(r, v)| Settlement::new(r, v)).collect();
    victim.queue.settle(&mixed).await.map(drop)
}

pub(super) async fn settle_and_claim(victim: Victim) -> Done {
    let done = [Settlement::new(victim.held[0].receipt.clone(), Disposition::Done)];
    let both = victim.queue.settle_and_claim(&done, &ask(&victim.worker, 1)).await;
    both.settled.map(drop)
}

pub(super) async fn extend(victim: Victim) -> Done {
    let held: Vec<_> = victim.held.iter().map(|one| one.receipt.clone()).collect();
    victim.queue.extend(&victim.worker, &held, LEASE).await.map(drop)
}

pub(super) async fn release_worker(victim: Victim) -> Done {
    victim.queue.release_worker(&victim.worker).await.map(drop)
}

pub(super) async fn recover(victim: Victim) -> Done {
    let page = NonZeroU32::new(100).expect("not zero");
    victim.queue.recover(page).await.map(drop)
}

pub(super) async fn redrive(victim: Victim) -> Done {
    victim.queue.redrive(&Selection::All).await.map(drop)
}

pub(super) async fn purge_dead(victim: Victim) -> Done {
    victim.queue.purge_dead(&Selection::All).await.map(drop)
}

pub(super) async fn purge(victim: Victim) -> Done {
    victim.queue.purge().await.map(drop)
}

pub(super) async fn pause(victim: Victim) -> Done {
    victim.queue.pause().await
}

pub(super) async fn resume(victim: Victim) -> Done {
    victim.queue.resume().await
}

pub(super) async fn cancel(victim: Victim) -> Done {
    victim.queue.cancel(&id("mine")).await.map(drop)
}

pub(super) async fn look(victim: Victim) -> Done {
    victim.queue.stats().await?;
    victim.queue.audit().await.map(drop)
}

pub(super) async fn redrive_one(victim: Victim) -> Done {
    victim.queue.redrive(&Selection::Only(vec![id("mine")])).await.map(drop)
}

pub(super) async fn push_that_moves(victim: Victim) -> Done {
    let later = NewJob::new("b").delay(DELAY / 2);
    let moving = later.unique_or(key("k"), OnDuplicate::Reschedule);
    victim.queue.push(&[moving], None).await.map(drop)
}

pub(super) async fn peek_at_each_state(victim: Victim) -> Done {
    let states =
        [JobState::Ready, JobState::Scheduled, JobState::Leased, JobState::Dead];
    for state in states {
        victim.queue.peek(&PeekRequest::new(state, NonZeroU32::MIN)).await?;
    }
    Ok(())
}
