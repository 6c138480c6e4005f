//! Makes the victim's calls in this process, and calls a hook before and after each
//! step.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
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
const QUIET: Duration = Duration::from_millis(20);

/// How long a step counts as in progress if it does not end. A step that fails, because
/// the store is locked for example, never reports its end.
const LONGEST_STEP: Duration = Duration::from_millis(250);

/// The time limit for the calls of a victim, whatever fault hits it (R21).
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// The steps that a victim has begun.
#[derive(Clone, Default)]
pub(super) struct Count(Arc<Mutex<Steps>>);

#[derive(Default)]
struct Steps {
    /// How many steps have begun so far.
    begun: usize,
    /// When the last step began. `None` if it has ended.
    in_progress: Option<Instant>,
}

impl Count {
    /// Returns how many steps have begun so far. `None` while a step is in progress.
    fn at_rest(&self) -> Option<usize> {
        let Steps { begun, in_progress } = *self.steps();
        let is_short = |began: Instant| began.elapsed() < LONGEST_STEP;
        (!in_progress.is_some_and(is_short)).then_some(begun)
    }

    fn begin(&self) -> usize {
        let mut steps = self.steps();
        steps.begun += 1;
        steps.in_progress = Some(Instant::now());
        steps.begun - 1
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `at` before and after each step. A victim runs one step at a time, so the
    /// step that ends is always the one that began last.
    pub(super) fn watch(
        &self,
        at: impl Fn(Spot, &str) -> Result<(), i32> + Send + Sync + 'static,
    ) -> Watch {
        let count = self.clone();
        Arc::new(move |side, text| {
            let step = match side {
                Side::Before => count.begin(),
                Side::After => count.steps().begun - 1,
            };
            // The hook may stop here for ever, so the lock is not held.
            let result = at(Spot { step, side }, text);
            if side == Side::After || result.is_err() {
                count.steps().in_progress = None;
            }
            result
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
    let mut seen = count.at_rest();
    loop {
        let start = Instant::now();
        sleep(QUIET).await;
        // If this task was woken late, the victim may have had no time to go on either.
        let is_late = start.elapsed() > 2 * QUIET;
        let now = count.at_rest();
        let is_idle = now.is_some() && now == seen && !is_late;
        if is_idle && clock.advance_to_next().is_some() {
            moved();
        }
        seen = now;
    }
}
