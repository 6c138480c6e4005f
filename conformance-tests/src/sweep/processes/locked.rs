//! A victim that acts while another process keeps the store locked.
//!
//! The lock holder is a child that stands still in the middle of a write. It is killed
//! when the victim has returned, or when the victim begins to wait for a retry.

use std::path::Path;

use relq_core::Error;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
    sync::watch,
    time::timeout,
};

use super::{
    Embedded,
    act::{Count, LIMIT, act, pump},
    child::{HIT, SAYS},
    killed::{self, spawn},
    order::{Order, Spot},
    refused::{known, with_others},
    start::{Start, VictimFault},
};
use crate::{
    proxy::VirtualClock,
    sweep::{Part, SCENARIOS, StoreContents, bring_back, settle_up},
};

/// The act by which a child locks the store.
const WRITES: &str = "push";

/// Where a child stands still to keep the store locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    scenario: usize,
    spot: Spot,
}

impl Holder {
    /// Stops before the last step of a push, which is its commit.
    pub(super) async fn find(subject: Embedded) -> Option<Self> {
        let scenario = SCENARIOS.iter().position(|act| act.name == WRITES)?;
        let start = Start::prepare(subject, scenario).await.ok()?;
        let step = killed::run(&start, None).await.steps.len().checked_sub(1)?;
        Some(Self { scenario, spot: Spot { step, ..Spot::FIRST } })
    }
}

/// Runs an act on a locked store, and judges its result and what is left.
pub(super) async fn run(
    start: &Start,
    holder: Holder,
) -> Result<StoreContents, String> {
    let folder = start.lay_out();
    let found = timeout(LIMIT, lock_out(start, folder.path(), holder)).await;
    found.unwrap_or_else(|_| Err(format!("the run did not end within {LIMIT:?}")))
}

async fn lock_out(
    start: &Start,
    folder: &Path,
    holder: Holder,
) -> Result<StoreContents, String> {
    let clock = start.clock();
    let part = start.part();
    let ran = part.ran.clone();
    let child = hold(start, folder, holder).await?;
    let said = act_on(start, (folder, &clock), part, child).await?;
    if start.scenario.name == WRITES && said.is_ok() {
        return Err("the store is not locked".to_owned());
    }
    let survivors = start.survivors(folder, &clock).await?;
    let known = known(start, &survivors, is_told, said).await?;
    bring_back(&survivors).await?;
    let found = settle_up(&survivors, &start.held).await?;
    start.judge(found, (ran.payloads(), known, VictimFault::Some))
}

/// Returns the victim's result while that child keeps the store locked.
async fn act_on(
    start: &Start,
    (folder, clock): (&Path, &VirtualClock),
    part: Part,
    child: Child,
) -> Result<Result<(), Error>, String> {
    let count = Count::default();
    let (free, freed) = (watch::Sender::new(false), watch::Sender::new(false));
    let mut is_free = freed.subscribe();
    let freeing = tokio::spawn(end(child, free.subscribe(), freed));
    let watched = count.watch(|_, _| Ok(()));
    let acting = act(start.subject, start.scenario, (folder, clock), part, watched);
    let give_up = || {
        free.send_replace(true);
    };
    let patient = async {
        tokio::select! {
            said = acting => said,
            () = pump(clock, &count, give_up) => unreachable!("the clock never stops"),
        }
    };
    let room = Box::pin(async move {
        // An error means that the sender is gone, so the lock is free as well.
        let _ = is_free.wait_for(|it| *it).await;
    });
    let said = with_others(start, (folder, clock), room, patient).await?;
    free.send_replace(true);
    freeing.await.map_err(|error| error.to_string())?;
    Ok(said)
}

/// Completes once a child stands still in the middle of its write.
async fn hold(start: &Start, folder: &Path, holder: Holder) -> Result<Child, String> {
    let said = |error: std::io::Error| format!("the holder: {error}");
    let Holder { scenario, spot } = holder;
    let (elapsed, spot) = (start.elapsed, Some(spot));
    let order = Order { scenario, elapsed, held: Vec::new(), spot };
    order.write(folder).map_err(said)?;
    let mut child = spawn(start, folder).map_err(said)?;
    let out = child.stdout.take().expect("the child's output is piped");
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await.map_err(said)? {
        if line.strip_prefix(SAYS) == Some(HIT) {
            return Ok(child);
        }
    }
    Err("the holder did not reach its write".to_owned())
}

/// Kills the lock holder on request, and reports that it did.
async fn end(
    mut child: Child,
    mut wanted: watch::Receiver<bool>,
    done: watch::Sender<bool>,
) {
    // An error means that the run has ended.
    let _ = wanted.wait_for(|it| *it).await;
    child.kill().await.expect("a child can be killed");
    done.send_replace(true);
}

fn is_told(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}
