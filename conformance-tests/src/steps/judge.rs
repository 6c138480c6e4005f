//! What is looked at after each run.

use std::num::NonZeroU32;

use bytes::Bytes;
use queue_core::{
    BatchState, Delivery, Error, JobState, PeekRequest, Settled, Settlement, Verdict,
};

use super::{
    Check,
    crew::{Crew, Hand, PAST_ALL, Stage, ask},
    outcome::{End, Found},
};

/// How often the survivors claim at most.
const CLAIMS: usize = 20;

/// When commands of the dead run that were on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Right after the death.
    AtOnce,
    /// After the survivors have recovered what the dead held.
    AfterRecovery,
}

/// Lets the survivors take over, and says what they found. `stale` is what the victim
/// held: by then its receipts must be worth nothing.
///
/// What is wrong is noted and the rest is judged all the same, so that each check
/// speaks for itself. An error is what ends the run: the survivors cannot go on.
pub(crate) async fn take_over(
    crew: &Crew,
    stale: &[Delivery],
    late: Late,
) -> Result<Found, String> {
    let mut wrong = Vec::new();
    crew.gate.heal().await.map_err(|error| format!("the gate: {error}"))?;
    if late == Late::AtOnce {
        release(crew).await?;
    }
    note(bring_back(crew).await, &mut wrong)?;
    if late == Late::AfterRecovery {
        release(crew).await?;
        note(bring_back(crew).await, &mut wrong)?;
    }
    let mut found = settle_up(crew, stale).await?;
    found.wrong.append(&mut wrong);
    Ok(found)
}

/// What the audit found wrong hinders nobody.
fn note(done: Result<(), String>, wrong: &mut Vec<String>) -> Result<(), String> {
    match done {
        Err(how) if Check::Conserve.is_in(&how) => wrong.push(how),
        done => done?,
    }
    Ok(())
}

/// Makes everything ready that the dead held or stopped: one lease and one pass of
/// the reaper, which is the bound on recovery (R9).
pub(crate) async fn bring_back(crew: &Stage) -> Result<(), String> {
    let audited = audit(crew).await;
    said("resume", crew.hand.resume().await)?;
    recover(crew).await?;
    audited
}

/// Finishes all that is left, and says what that was.
pub(crate) async fn settle_up(
    crew: &Stage,
    stale: &[Delivery],
) -> Result<Found, String> {
    let mut found = Found::default();
    drain(crew, &crew.hand, stale, &mut found).await?;
    if let Some(elsewhere) = &crew.elsewhere {
        // Whatever was left to be forwarded is.
        let page = NonZeroU32::new(1000).expect("not zero");
        said("recover", crew.hand.recover(page).await)?;
        drain(crew, elsewhere, &[], &mut found).await?;
        batches_ended(&crew.hand, &mut found).await?;
    }
    for dead in dead(crew).await? {
        found.outcome.add(dead, End::Dead);
    }
    note(audit(crew).await, &mut found.wrong)?;
    at_rest(crew, &mut found).await?;
    Ok(found)
}

async fn release(crew: &Crew) -> Result<(), String> {
    let released = crew.gate.release_ghosts().await;
    released.map(drop).map_err(|error| format!("the gate: {error}"))
}

async fn recover(crew: &Stage) -> Result<(), String> {
    crew.clock.advance(PAST_ALL);
    let page = NonZeroU32::new(1000).expect("not zero");
    while said("recover", crew.hand.recover(page).await)?.more {}
    Ok(())
}

/// Claims and finishes until nothing is ready. While the new holder has them, the old
/// one's receipts change nothing (R7).
async fn drain(
    crew: &Stage,
    hand: &Hand,
    stale: &[Delivery],
    found: &mut Found,
) -> Result<(), String> {
    let (class, mut in_vain) = (crew.class(), 0);
    // No scenario has so many jobs: a backend that gives one out for ever is stopped.
    for _ in 0..CLAIMS {
        let taken = hand.claim(&ask(&hand.worker, 100)).await;
        let taken = said("claim", taken)?;
        if taken.is_empty() {
            let left = said("stats", hand.stats().await)?.unfinished();
            if in_vain == class.patience(left) {
                return Ok(());
            }
            in_vain += 1;
        }
        let late = said("settle", hand.settle(&done(stale)).await)?;
        if late.iter().any(|one| *one != Settled::LeaseLost) {
            found.is_wrong(Check::Fence, "a receipt counts though its lease was lost");
        }
        let settled = said("settle", hand.settle(&done(&taken)).await)?;
        if settled.iter().any(|one| *one != Settled::Applied) {
            found.is_wrong(Check::KeepLive, "a receipt is lost though its lease runs");
        }
        for one in taken {
            found.outcome.add(one.payload, End::Delivered);
        }
    }
    found.is_wrong(Check::DupBound, "the queue cannot be drained");
    Ok(())
}

/// Batches count each of their pieces, and those that get no more have completed (B2,
/// B5).
async fn batches_ended(hand: &Hand, found: &mut Found) -> Result<(), String> {
    let Some(batches) = hand.queue.batch_queue() else { return Ok(()) };
    let limit = NonZeroU32::new(100).expect("not zero");
    for batch in said("list", batches.list_batches(None, limit).await)? {
        if batch.total != batch.ended() + batch.leased + batch.waiting {
            found.is_wrong(Check::Conserve, &format!("miscounted: {batch:?}"));
        }
        let has_ended = batch.leased + batch.waiting == 0;
        let may_end = batch.state != BatchState::Open;
        if batch.state.is_completed() != (has_ended && may_end) {
            found.is_wrong(Check::RecoveryTime, &format!("not completed: {batch:?}"));
        }
    }
    Ok(())
}

fn done(held: &[Delivery]) -> Vec<Settlement> {
    held.iter().map(|one| Settlement::new(one.receipt.clone(), Verdict::Done)).collect()
}

async fn dead(crew: &Stage) -> Result<Vec<Bytes>, String> {
    let limit = NonZeroU32::new(100).expect("not zero");
    let ask = PeekRequest::new(JobState::Dead, limit);
    let page = said("peek", crew.hand.peek(&ask).await)?;
    Ok(page.jobs.into_iter().map(|job| job.payload).collect())
}

/// Each job in exactly one place, at every quiet moment (R23).
async fn audit(crew: &Stage) -> Result<(), String> {
    let problems = said("audit", crew.hand.audit().await)?.problems;
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{}: the audit: {problems:?}", Check::Conserve))
}

async fn at_rest(crew: &Stage, found: &mut Found) -> Result<(), String> {
    let stats = said("stats", crew.hand.stats().await)?;
    found.left_behind = stats.unfinished();
    if found.left_behind != 0 {
        found.is_wrong(Check::RecoveryTime, &format!("left behind: {stats:?}"));
    }
    Ok(())
}

/// The hand is never struck: an error of its own is the backend's.
fn said<T>(what: &str, answer: Result<T, Error>) -> Result<T, String> {
    answer.map_err(|error| {
        let check = Check::DrainAfterHeal;
        format!("{check}: {what} by a survivor: {}", error.full_message())
    })
}
