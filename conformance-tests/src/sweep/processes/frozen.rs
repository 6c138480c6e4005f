//! A victim that freezes at one of its steps. Survivors treat it as dead and take over.
//! Then the victim continues.

use std::{
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

use relq_core::{Error, error::Effect};
use tokio::{sync::watch, time::timeout};

use super::{
    act::{Count, LIMIT, act},
    killed::Ran,
    order::Spot,
    start::{Start, VictimFault},
};
use crate::sweep::{Knowledge, StoreContents, Survivors, bring_back, settle_up};

/// Freezes the victim at `spot`, lets the survivors recover, lets the victim continue,
/// and judges what is left.
pub(super) async fn run(start: &Start, spot: Spot) -> Ran {
    let folder = start.lay_out();
    let frozen = watch::Sender::new(false);
    let found = timeout(LIMIT, freeze(start, folder.path(), spot, &frozen)).await;
    let found =
        found.unwrap_or_else(|_| Err(format!("the run did not end within {LIMIT:?}")));
    let fired = *frozen.borrow();
    Ran { steps: Vec::new(), fired, found }
}

async fn freeze(
    start: &Start,
    folder: &Path,
    spot: Spot,
    frozen: &watch::Sender<bool>,
) -> Result<StoreContents, String> {
    let clock = start.clock();
    let (thaw, thawed) = mpsc::channel::<()>();
    let (cold, thawed) = (frozen.clone(), Arc::new(Mutex::new(thawed)));
    let watch = Count::default().watch(move |at, _| {
        if at == spot {
            cold.send_replace(true);
            // An error means that the sender was dropped: the run has ended, and the
            // victim may continue as well.
            let thawed = thawed.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = thawed.recv();
        }
        Ok(())
    });
    let place = (folder, &clock);
    let part = start.part();
    let mut acting = pin!(act(start.subject, start.scenario, place, part, watch));
    let mut is_frozen = frozen.subscribe();
    tokio::select! {
        _ = &mut acting => return Err("the victim did not freeze".to_owned()),
        _ = is_frozen.wait_for(|it| *it) => {}
    }
    let survivors = start.survivors(folder, &clock).await?;
    let is_alone = take_over(&survivors).await?;
    drop(thaw);
    let said = acting.await;
    bring_back(&survivors).await?;
    let found = settle_up(&survivors, &start.part().newest_receipts()).await?;
    let known = known(start, is_alone, said)?;
    start.judge(found, (Vec::new(), known, VictimFault::Some))
}

/// Lets the survivors recover the jobs that the victim holds. Returns whether the
/// victim keeps the store locked. If it does, the survivors' calls must fail at once,
/// with an error that says so (R21).
async fn take_over(survivors: &Survivors) -> Result<bool, String> {
    match survivors.healthy.resume().await {
        Ok(()) => bring_back(survivors).await.map(|()| false),
        Err(error @ Error::Unavailable { .. }) if error.effect() == Effect::No => {
            Ok(true)
        }
        Err(error) => {
            Err(format!("the error misreports what happened: {}", error.full_message()))
        }
    }
}

/// Whether the victim's calls took effect. When the victim continues it must have lost
/// its leases, unless it kept the store locked.
fn known(
    start: &Start,
    is_alone: bool,
    said: Result<(), Error>,
) -> Result<Knowledge, String> {
    said.map_err(|error| format!("the frozen victim: {}", error.full_message()))?;
    let is_stale = start.scenario.is_by_receipt() && !is_alone;
    Ok(if is_stale { Knowledge::Undone } else { Knowledge::Done })
}
