//! A victim whose store fails at one step. The victim must survive that.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use relq_core::{
    Error,
    error::{Effect, RetryAdvice},
};
use tokio::{sync::watch, time::timeout};

use super::{
    Refusal,
    act::{Count, LIMIT, act, pump},
    killed::{Ran, again},
    order::Spot,
    start::{Start, VictimFault},
};
use crate::{
    proxy::VirtualClock,
    sweep::{
        Again, BoxFuture, Knowledge, StoreContents, Survivors, VictimObserver,
        bring_back, settle_up,
    },
};

/// Makes the victim's calls, of which the step at `spot` fails, and judges their result
/// and what is left.
pub(super) async fn run(start: &Start, spot: Spot, refusal: Refusal) -> Ran {
    let folder = start.lay_out();
    let fired = Arc::new(AtomicBool::new(false));
    let found = refuse(start, folder.path(), (spot, refusal), fired.clone()).await;
    Ran { steps: Vec::new(), fired: fired.load(Ordering::SeqCst), found }
}

async fn refuse(
    start: &Start,
    folder: &Path,
    (spot, refusal): (Spot, Refusal),
    fired: Arc<AtomicBool>,
) -> Result<StoreContents, String> {
    let (clock, count) = (start.clock(), Count::default());
    let watch = count.watch(move |at, _| {
        if at != spot {
            return Ok(());
        }
        fired.store(true, Ordering::SeqCst);
        Err(refusal.code)
    });
    let (part, place) = (start.part(), (folder, &clock));
    let ran = part.ran.clone();
    let acting = act(start.subject, start.scenario, place, part, watch);
    let patient = async {
        tokio::select! {
            said = acting => said,
            () = pump(&clock, &count, || ()) => unreachable!("the clock never stops"),
        }
    };
    let room = Box::pin(async {});
    let said =
        timeout(LIMIT, with_others(start, (folder, &clock), room, patient)).await;
    let said = said.map_err(|_| format!("the act did not end within {LIMIT:?}"))??;
    let survivors = start.survivors(folder, &clock).await?;
    let known = known(start, &survivors, refusal.is_told, said).await?;
    bring_back(&survivors).await?;
    let found = settle_up(&survivors, &start.part().newest_receipts()).await?;
    start.judge(found, (ran.payloads(), known, VictimFault::Some))
}

/// Makes the victim's calls while the other actors of the scenario make theirs.
pub(super) async fn with_others<T>(
    start: &Start,
    (folder, clock): (&Path, &VirtualClock),
    room: BoxFuture<'_, ()>,
    acting: impl Future<Output = T>,
) -> Result<T, String> {
    if !start.scenario.has_others() {
        return Ok(acting.await);
    }
    let survivors = start.survivors(folder, clock).await?;
    let (waiting, end) = (clock.clone(), watch::Sender::new(false));
    let mut ended = end.subscribe();
    let observer = VictimObserver {
        held: Box::pin(async move { waiting.asleep(1).await }),
        gone: Box::pin(async move {
            // An error means that the sender was dropped: the victim's calls have ended
            // as well.
            let _ = ended.wait_for(|it| *it).await;
        }),
        room,
        time_passes: watch::Sender::new(true),
    };
    let acting = async {
        let done = acting.await;
        end.send_replace(true);
        done
    };
    let (done, ()) =
        tokio::join!(acting, start.scenario.meanwhile(&survivors, observer));
    Ok(done)
}

/// Whether the victim's calls took effect. Checks that the error says correctly what
/// failed and whether the call took effect (R21), and repeats the calls if that is
/// allowed.
pub(super) async fn known(
    start: &Start,
    survivors: &Survivors,
    is_told: fn(&Error) -> bool,
    said: Result<(), Error>,
) -> Result<Knowledge, String> {
    let Err(error) = said else { return Ok(Knowledge::Done) };
    if !is_told(&error) {
        return Err(format!(
            "the error misreports what happened: {}",
            error.full_message()
        ));
    }
    let is_safe = error.retry_advice() == RetryAdvice::Safe;
    if is_safe && start.scenario.is_steady() && start.scenario.again != Again::Never {
        return again(start, survivors).await;
    }
    Ok(match error.effect() {
        Effect::No => Knowledge::Undone,
        Effect::Maybe | Effect::Yes => Knowledge::Unknown,
    })
}
