//! Makes the victim's calls in this process, and calls a hook before and after each
//! step.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use relq_core::Error;
use tokio::time::sleep;

use super::{
    Embedded, Side, Watch,
    order::Spot,
    start::{Seed, open},
};
use crate::{
    proxy::VirtualClock,
    sweep::{Part, Scenario, Victim},
};

/// How long the victim must be idle before its clock is advanced.
const QUIET: Duration = Duration::from_millis(4);

/// The time limit for the calls of a victim, whatever fault hits it (R21).
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// The number of steps that a victim has begun.
#[derive(Clone, Default)]
pub(super) struct Count(Arc<AtomicUsize>);

impl Count {
    /// Returns how many steps have begun so far.
    pub(super) fn so_far(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Calls `at` before and after each step. A victim runs one step at a time, so the
    /// step that ends is always the one that began last.
    pub(super) fn watch(
        &self,
        at: impl Fn(Spot, &str) -> Result<(), i32> + Send + Sync + 'static,
    ) -> Watch {
        let count = self.0.clone();
        Arc::new(move |side, text| {
            let step = match side {
                Side::Before => count.fetch_add(1, Ordering::SeqCst),
                Side::After => count.load(Ordering::SeqCst) - 1,
            };
            at(Spot { step, side }, text)
        })
    }
}

/// Opens the store, makes the calls of the scenario on it, and returns their result.
pub(super) async fn act(
    subject: Embedded,
    scenario: &Scenario,
    (folder, clock): (&Path, &VirtualClock),
    part: Part,
    watch: Watch,
) -> Result<(), Error> {
    let queue = open(subject, folder, clock, Seed::Victim, Some(watch)).await?;
    let clock = clock.clone();
    scenario.act(Victim { queue, clock, part }).await
}

/// Advances the clock whenever the victim is idle, so that its waits end, and calls
/// `moved` each time.
pub(super) async fn pump(clock: &VirtualClock, count: &Count, moved: impl Fn()) {
    let mut seen = count.so_far();
    loop {
        sleep(QUIET).await;
        let now = count.so_far();
        if now == seen && clock.advance_to_next().is_some() {
            moved();
        }
        seen = now;
    }
}
