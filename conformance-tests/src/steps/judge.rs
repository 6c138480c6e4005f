//! What is looked at after each run.

use std::num::NonZeroU32;

use bytes::Bytes;
use queue_core::{
    Delivery, Error, JobState, PeekRequest, Settled, Settlement, Verdict,
};

use super::{
    crew::{Crew, PAST_ALL, Stage, ask},
    outcome::{End, Outcome},
};

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
pub(crate) async fn take_over(
    crew: &Crew,
    stale: &[Delivery],
    late: Late,
) -> Result<Outcome, String> {
    crew.gate.heal().await.map_err(|error| format!("the gate: {error}"))?;
    if late == Late::AtOnce {
        release(crew).await?;
    }
    bring_back(crew).await?;
    if late == Late::AfterRecovery {
        release(crew).await?;
        bring_back(crew).await?;
    }
    settle_up(crew, stale).await
}

/// Makes everything ready that the dead held or stopped: one lease and one pass of
/// the reaper, which is the bound on recovery (R9).
pub(crate) async fn bring_back(crew: &Stage) -> Result<(), String> {
    audit(crew).await?;
    said("resume", crew.hand.resume().await)?;
    recover(crew).await
}

/// Finishes all that is left, and says what that was.
pub(crate) async fn settle_up(
    crew: &Stage,
    stale: &[Delivery],
) -> Result<Outcome, String> {
    let mut found = drain(crew, stale).await?;
    for dead in dead(crew).await? {
        found.add(dead, End::Dead);
    }
    audit(crew).await?;
    at_rest(crew).await?;
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
async fn drain(crew: &Stage, stale: &[Delivery]) -> Result<Outcome, String> {
    let mut found = Outcome::default();
    loop {
        let taken = crew.hand.claim(&ask(&crew.hand.worker, 100)).await;
        let taken = said("claim", taken)?;
        if taken.is_empty() {
            return Ok(found);
        }
        for late in said("settle", crew.hand.settle(&done(stale)).await)? {
            if late != Settled::LeaseLost {
                return Err("a receipt counts though its lease was lost".to_owned());
            }
        }
        let settled = said("settle", crew.hand.settle(&done(&taken)).await)?;
        if settled.iter().any(|one| *one != Settled::Applied) {
            return Err("a receipt is lost though its lease runs".to_owned());
        }
        for one in taken {
            found.add(one.payload, End::Delivered);
        }
    }
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
    if problems.is_empty() { Ok(()) } else { Err(format!("the audit: {problems:?}")) }
}

async fn at_rest(crew: &Stage) -> Result<(), String> {
    let stats = said("stats", crew.hand.stats().await)?;
    if stats.unfinished() == 0 {
        Ok(())
    } else {
        Err(format!("left behind: {stats:?}"))
    }
}

/// The hand is never struck: an error of its own is the backend's.
fn said<T>(what: &str, answer: Result<T, Error>) -> Result<T, String> {
    answer.map_err(|error| format!("{what} by a survivor: {}", error.full_message()))
}
