//! Compares the store after each run with the promise of the scenario.

use std::num::NonZeroU32;

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, Error, JobId, Receipt, Settlement,
    batch::BatchState,
    operator::{JobState, JobView, PeekRequest, StateDetail},
    outcome::Settled,
};

use super::{
    Check,
    actors::{Actors, HealthyActor, PAST_ALL, Survivors, ask},
    promise::{End, Found},
};
use crate::spec::resulting::text_of;

/// How many claims the survivors make at most to drain the queue.
const CLAIMS: usize = 20;

/// When the proxy forwards the commands that the victim sent before it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Right after the victim's death.
    AtOnce,
    /// After the survivors have recovered the victim's jobs.
    AfterRecovery,
    /// While a survivor holds the recovered jobs.
    WhileHeld,
}

/// Lets the survivors take over, and returns what they found. `stale` are the
/// receipts of the victim. The victim has lost these leases by then, so the backend
/// must refuse its receipts.
///
/// A failed check is recorded and the run continues, so that each check judges on its
/// own. An error ends the run, because the survivors cannot continue.
pub(crate) async fn take_over(
    actors: &Actors,
    stale: &[Receipt],
    late: Late,
) -> Result<Found, String> {
    let mut wrong = Vec::new();
    actors.proxy.heal().await.map_err(|error| format!("the proxy: {error}"))?;
    if late == Late::AtOnce {
        release(actors).await?;
    }
    note(bring_back(actors).await, &mut wrong)?;
    let mut found = Found { wrong, ..Found::default() };
    if late == Late::WhileHeld {
        let taken = actors.healthy.claim(&ask(&actors.healthy.worker, 100)).await;
        let taken = said("claim", taken)?;
        release(actors).await?;
        finish(&actors.healthy, taken, &mut found).await?;
    }
    if late != Late::AtOnce {
        release(actors).await?;
        note(bring_back(actors).await, &mut found.wrong)?;
    }
    finish_all(actors, stale, &mut found).await?;
    Ok(found)
}

/// Adds the message of a failed audit to `wrong`, so that the run can continue. Returns
/// every other error.
fn note(done: Result<(), String>, wrong: &mut Vec<String>) -> Result<(), String> {
    match done {
        Err(how) if Check::Conserve.is_in(&how) => wrong.push(how),
        done => done?,
    }
    Ok(())
}

/// Advances the clock past every lease and delay, and recovers all jobs that the victim
/// held or blocked. One run of the reaper must be enough (R9).
pub(crate) async fn bring_back(actors: &Survivors) -> Result<(), String> {
    let audited = audit(actors).await;
    said("resume", actors.healthy.resume().await)?;
    recover(actors).await?;
    audited
}

/// Finishes all jobs that are left, and returns them and the schedules.
pub(crate) async fn settle_up(
    actors: &Survivors,
    stale: &[Receipt],
) -> Result<Found, String> {
    let mut found = Found::default();
    finish_all(actors, stale, &mut found).await?;
    Ok(found)
}

async fn finish_all(
    actors: &Survivors,
    stale: &[Receipt],
    found: &mut Found,
) -> Result<(), String> {
    drain(actors, &actors.healthy, stale, found).await?;
    if let Some(elsewhere) = &actors.elsewhere {
        // A recovery also pushes the completion jobs that the victim has not pushed to
        // the second queue.
        let page = NonZeroU32::new(1000).expect("not zero");
        said("recover", actors.healthy.recover(page).await)?;
        drain(actors, elsewhere, &[], found).await?;
        batches_ended(&actors.healthy, found).await?;
    }
    if let Some(scheduler) = actors.healthy.schedule_queue() {
        found.schedules = said("list", scheduler.schedules().await)?.schedules;
    }
    for (id, payload) in dead(actors).await? {
        found.seen.extend(id);
        found.promise.add(payload, End::Dead);
    }
    found.seen.extend(stale.iter().map(|one| one.job().clone()));
    told(&actors.healthy, found).await?;
    note(audit(actors).await, &mut found.wrong)?;
    at_rest(actors, found).await
}

async fn release(actors: &Actors) -> Result<(), String> {
    let released = actors.proxy.release_ghosts().await;
    released.map(drop).map_err(|error| format!("the proxy: {error}"))
}

async fn recover(actors: &Survivors) -> Result<(), String> {
    actors.clock.advance(PAST_ALL);
    let page = NonZeroU32::new(1000).expect("not zero");
    while said("recover", actors.healthy.recover(page).await)?.more {}
    Ok(())
}

/// Claims and finishes jobs until none is ready. While a survivor holds a job, checks
/// that the victim's receipt of it changes nothing (R7).
async fn drain(
    actors: &Survivors,
    healthy: &HealthyActor,
    stale: &[Receipt],
    found: &mut Found,
) -> Result<(), String> {
    let (class, mut in_vain) = (actors.class(), 0);
    // No scenario has so many jobs. The limit ends the loop if a broken backend
    // delivers the same job for ever.
    for _ in 0..CLAIMS {
        let taken = healthy.claim(&ask(&healthy.worker, 100)).await;
        let taken = said("claim", taken)?;
        if taken.is_empty() {
            let left = said("stats", healthy.stats().await)?.unfinished();
            if in_vain == class.patience(left) {
                return Ok(());
            }
            in_vain += 1;
        }
        let late = said("settle", healthy.settle(&done(stale)).await)?;
        if late.iter().any(|one| *one != Settled::LeaseLost) {
            found.is_wrong(Check::Fence, "a receipt counts though its lease was lost");
        }
        finish(healthy, taken, found).await?;
    }
    found.is_wrong(Check::DupBound, "the queue cannot be drained");
    Ok(())
}

/// Finishes jobs that a survivor holds, and adds them to what was found.
async fn finish(
    healthy: &HealthyActor,
    taken: Vec<Delivery>,
    found: &mut Found,
) -> Result<(), String> {
    let settled = healthy.settle(&done(taken.iter().map(|one| &one.receipt))).await;
    if said("settle", settled)?.iter().any(|one| *one != Settled::Applied) {
        found.is_wrong(Check::KeepLive, "a receipt is lost though its lease runs");
    }
    for one in taken {
        found.seen.insert(one.job().clone());
        found.promise.add(one.payload, End::Delivered);
    }
    Ok(())
}

/// Checks that each batch counts all of its pieces, and that a batch that gets no more
/// pieces has completed (B2, B5).
async fn batches_ended(
    healthy: &HealthyActor,
    found: &mut Found,
) -> Result<(), String> {
    let Some(batches) = healthy.queue.batch_queue() else { return Ok(()) };
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

fn done<'a>(held: impl IntoIterator<Item = &'a Receipt>) -> Vec<Settlement> {
    let done = |one: &Receipt| Settlement::new(one.clone(), Disposition::Done);
    held.into_iter().map(done).collect()
}

/// Reads what is told of each job that a survivor saw or that the victim held.
async fn told(healthy: &HealthyActor, found: &mut Found) -> Result<(), String> {
    let Some(results) = healthy.queue.result_queue() else { return Ok(()) };
    let ids: Vec<_> = found.seen.iter().cloned().collect();
    let told = said("read results", results.read_results(&ids).await)?;
    let told = ids.into_iter().zip(told);
    found.told.extend(told.filter_map(|(id, told)| Some((id, text_of(&told?)))));
    Ok(())
}

async fn dead(actors: &Survivors) -> Result<Vec<(Option<JobId>, Bytes)>, String> {
    let limit = NonZeroU32::new(100).expect("not zero");
    let ask = PeekRequest::new(JobState::Dead, limit);
    let page = said("peek", actors.healthy.peek(&ask).await)?;
    Ok(page.jobs.into_iter().map(|job| (job.id, job.payload)).collect())
}

/// Checks by the audit that each job is in exactly one place (R23). No call is running.
async fn audit(actors: &Survivors) -> Result<(), String> {
    let problems = said("audit", actors.healthy.audit().await)?.problems;
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{}: the audit: {problems:?}", Check::Conserve))
}

async fn at_rest(actors: &Survivors, found: &mut Found) -> Result<(), String> {
    let stats = said("stats", actors.healthy.stats().await)?;
    found.left_behind = stats.unfinished().saturating_sub(held(actors).await?);
    if found.left_behind != 0 {
        found.is_wrong(Check::RecoveryTime, &format!("left behind: {stats:?}"));
    }
    Ok(())
}

/// The number of jobs that a dead leader holds. They stay scheduled (R30).
async fn held(actors: &Survivors) -> Result<u64, String> {
    let limit = NonZeroU32::new(100).expect("not zero");
    let ask = PeekRequest::new(JobState::Scheduled, limit);
    let page = said("peek", actors.healthy.peek(&ask).await)?;
    let is_held = |job: &&JobView| matches!(job.detail, StateDetail::Following { .. });
    Ok(page.jobs.iter().filter(is_held).count() as u64)
}

/// Turns an error of a healthy actor into a failure: no fault hit it, so the backend is
/// wrong.
fn said<T>(what: &str, answer: Result<T, Error>) -> Result<T, String> {
    answer.map_err(|error| {
        let check = Check::DrainAfterHeal;
        format!("{check}: {what} by a survivor: {}", error.full_message())
    })
}
