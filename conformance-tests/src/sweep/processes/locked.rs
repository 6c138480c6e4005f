//! A victim that makes calls while another process keeps the store locked.
//!
//! The other process, the lock holder, is a child that has stopped in the middle of a
//! write. It is killed when the victim's calls have returned, or when the victim begins
//! to wait for a retry.

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

/// The name of the scenario in whose call the lock holder stops, after it has locked
/// the store.
const WRITES: &str = "push";

/// The scenario and the step at which a child stops, so that it keeps the store locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    scenario: usize,
    spot: Spot,
}

impl Holder {
    /// Returns a lock holder that stops before the last step of a push, which is the
    /// commit. `None` if the steps of a push cannot be counted.
    pub(super) async fn find(subject: Embedded) -> Option<Self> {
        let scenario = SCENARIOS.iter().position(|act| act.name == WRITES)?;
        let start = Start::prepare(subject, scenario).await.ok()?;
        let step = killed::run(&start, None).await.steps.len().checked_sub(1)?;
        Some(Self { scenario, spot: Spot { step, ..Spot::FIRST } })
    }
}

/// Runs a scenario on a locked store, and judges the result of its calls and what is
/// left.
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
    let found = settle_up(&survivors, &start.part().newest_receipts()).await?;
    start.judge(found, (ran.payloads(), known, VictimFault::Some))
}

/// Makes the victim's calls while `child` keeps the store locked, and returns their
/// result.
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
        // An error means that the sender was dropped: the lock holder has ended, and
        // the lock is free as well.
        let _ = is_free.wait_for(|it| *it).await;
    });
    let said = with_others(start, (folder, clock), room, patient).await?;
    free.send_replace(true);
    freeing.await.map_err(|error| error.to_string())?;
    Ok(said)
}

/// Starts a child, and returns it once it has stopped in the middle of its write.
async fn hold(start: &Start, folder: &Path, holder: Holder) -> Result<Child, String> {
    let said = |error: std::io::Error| format!("the holder: {error}");
    let Holder { scenario, spot } = holder;
    let (elapsed, spot) = (start.elapsed, Some(spot));
    let order = Order { scenario, elapsed, spot, ..Order::default() };
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

/// Kills the lock holder when that is requested, and reports that the lock is free.
async fn end(
    mut child: Child,
    mut wanted: watch::Receiver<bool>,
    done: watch::Sender<bool>,
) {
    // An error means that the sender was dropped: the run has ended, and the lock
    // holder is killed as well.
    let _ = wanted.wait_for(|it| *it).await;
    child.kill().await.expect("a child can be killed");
    done.send_replace(true);
}

fn is_told(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}
