//! Random orders of the commands of a few actors, played while the jobs of a soak flow.
//!
//! The soak kills whole processes at moments that nobody can repeat. This thread plays the
//! large scenes of the explorer on a store of its own, in orders and with deaths that
//! depend only on the seed, so that each failure can be played again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use relq_conformance::{
    Subject,
    explore::{self, Explored, Faults},
};

use crate::SuiteResult;

/// How many runs a scene gets with one seed and one server, before the next scene has its
/// turn.
const RUNS: u64 = 5;

/// The runs that were played, and those that broke a promise.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) runs: u64,
    pub(super) failures: Vec<String>,
}

/// A thread that plays the scenes until it is asked to end.
pub(super) struct RandomOrders {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Played, String>>,
}

impl RandomOrders {
    /// Begins to play the scenes in orders that depend only on `seed`.
    pub(super) fn start(subject: Arc<dyn Subject>, seed: u64) -> SuiteResult<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new()
            .name("random orders".to_owned())
            .spawn(move || play(&subject, seed, &ends))?;
        Ok(Self { is_over, thread })
    }

    /// Waits until the current scene has been played, and returns the results of all.
    pub(super) fn end(self) -> SuiteResult<Played> {
        self.is_over.store(true, Ordering::Relaxed);
        let played = self.thread.join().map_err(|_| "the random orders panicked")?;
        played.map_err(Into::into)
    }
}

fn play(
    subject: &Arc<dyn Subject>,
    seed: u64,
    is_over: &AtomicBool,
) -> Result<Played, String> {
    let mut played = Played::default();
    let seeds = (0..).map(|round| seed.wrapping_add(round * RUNS));
    let mut turns =
        seeds.flat_map(|seed| explore::large_scenes().map(move |it| (it, seed)));
    while let Some((scene, seed)) = turns.next()
        && !is_over.load(Ordering::Relaxed)
        && played.failures.is_empty()
    {
        let random = (seed, RUNS);
        let found = explore::explore_random(subject, scene, Faults::deaths(1), random)?;
        let Some(Explored { runs, failure, .. }) = found else { continue };
        played.runs += runs;
        played.failures.extend(failure.map(|failure| format!("{scene}: {failure}")));
    }
    Ok(played)
}
