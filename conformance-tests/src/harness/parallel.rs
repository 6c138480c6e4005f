//! Runs many tasks on several threads.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// How many cases run at the same time per processor. Most cases wait for servers and
/// clocks, so more can run than there are processors.
const CASES_A_PROCESSOR: usize = 2;

/// Calls `judge` for each task, on several threads. Returns the results in the order of
/// the tasks.
pub(crate) fn in_parallel<T: Sync, U: Send>(
    tasks: &[T],
    judge: impl Fn(&T) -> U + Sync,
) -> Vec<U> {
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(Vec::new());
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..processors * CASES_A_PROCESSOR {
            scope.spawn(|| {
                while let Some((at, task)) = {
                    let at = next.fetch_add(1, Relaxed);
                    tasks.get(at).map(|task| (at, task))
                } {
                    let one = judge(task);
                    judged
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((at, one));
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap_or_else(PoisonError::into_inner);
    judged.sort_unstable_by_key(|(at, _)| *at);
    judged.into_iter().map(|(_, one)| one).collect()
}
