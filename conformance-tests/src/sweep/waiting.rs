//! Claims of a victim that wait, and the pushes that another actor makes meanwhile.

use std::time::Duration;

use relq_core::{Error, environment::Clock};

use super::{
    BoxFuture,
    actors::{LEASE, Survivors, VictimObserver, ask},
    victim::Victim,
};

/// The payload of the job that is pushed while the victim's claim waits.
pub(super) const PUSHED: &str = "meanwhile";

/// How long the first of two claims waits, which finds no job.
const BRIEFLY: Duration = Duration::from_millis(100);

pub(super) async fn claim_waiting(victim: Victim) -> Result<(), Error> {
    let ask = ask(&victim.worker, 2).wait(LEASE);
    victim.queue.claim(&ask).await.map(drop)
}

/// Pushes a job once the victim's claim waits at the server, or the victim has died.
pub(super) fn push_once_held<'a>(
    actors: &'a Survivors,
    victim: VictimObserver<'a>,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        tokio::select! {
            () = victim.held => {}
            () = victim.gone => {}
        }
        victim.room.await;
        actors.healthy.store(PUSHED).await;
        victim.time_passes.send_replace(true);
    })
}

/// Waits without a claim until a job may be ready, and claims it, as a worker on several
/// queues does.
pub(super) async fn wait_and_claim(victim: Victim) -> Result<(), Error> {
    let ask = ask(&victim.worker, 2);
    victim.queue.claim(&ask).await?;
    victim.queue.wait_for_jobs(LEASE).await?;
    victim.queue.claim(&ask).await.map(drop)
}

/// Makes a claim that finds no job, and a second claim after a job was pushed. The
/// first claim must not keep that job from the second.
pub(super) async fn claim_in_vain(victim: Victim) -> Result<(), Error> {
    let briefly = ask(&victim.worker, 1).wait(BRIEFLY);
    victim.queue.claim(&briefly).await?;
    victim.clock.sleep(2 * BRIEFLY).await;
    let patiently = ask(&victim.worker, 1).wait(LEASE);
    victim.queue.claim(&patiently).await.map(drop)
}

/// Pushes a job after the victim's claim has stopped waiting.
pub(super) fn push_after_a_while<'a>(
    actors: &'a Survivors,
    victim: VictimObserver<'a>,
) -> BoxFuture<'a, ()> {
    // The pause before the push begins when the victim's claim waits, and not when the
    // victim connects, because the claim must not find the job.
    victim.time_passes.send_replace(true);
    let given_up = async move {
        victim.held.await;
        actors.clock.sleep(BRIEFLY + Duration::from_millis(1)).await;
    };
    Box::pin(async move {
        tokio::select! {
            () = victim.gone => {}
            () = given_up => {}
        }
        victim.room.await;
        actors.healthy.store(PUSHED).await;
    })
}
