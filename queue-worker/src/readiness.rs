//! Limits the claims of a worker to the jobs for which its handler is ready.
//!
//! ```text
//!  ready for     = wanted + asked + unstarted
//!  may be claimed = ready - asked - unstarted
//! ```
//!
//! `asked` is the number of jobs that pending claims may return; a claim that is overdue does
//! not count. `unstarted` is the number of jobs that the worker holds and has not passed to
//! the handler yet. The handler was made ready for all of these before. The queues of a
//! worker share its handler, so both numbers are those of all queues.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
};

use tokio::sync::Notify;

use crate::{Failure, WorkerError, calls::slots, handler::DynHandler, panics};

/// The readiness of a worker's handler, as the claim loop of one queue uses it.
pub(crate) struct Readiness {
    shared: Arc<Shared>,
    /// Wakes the claim loops of all queues.
    waker: Waker,
    /// Wakes the claim loop of this queue.
    changed: Arc<Notify>,
    /// How many jobs the pending claims of this queue may return.
    asked: usize,
}

#[derive(Default)]
struct Shared {
    loops: Mutex<Vec<Arc<Notify>>>,
    asked: Mutex<usize>,
    unstarted: AtomicUsize,
    /// Whether the handler was not ready for all jobs that a queue wanted to claim.
    is_limiting: AtomicBool,
    failure: OnceLock<Failure>,
}

/// A job that was started and is not passed to the handler yet. The value is dropped when
/// the handler has the job, or will not get it.
pub(crate) struct Unstarted(Arc<Shared>);

/// Tells a claim loop when the readiness of the handler has changed.
pub(crate) struct Changes {
    shared: Arc<Shared>,
    changed: Arc<Notify>,
}

impl Readiness {
    /// The same readiness, for the claim loop of another queue.
    pub(crate) fn another(&self) -> Self {
        Self::of(Arc::clone(&self.shared))
    }

    /// Reports how many jobs the pending claims of the queue may return.
    pub(crate) fn report_asked(&mut self, asked: usize) {
        let before = std::mem::replace(&mut self.asked, asked);
        if asked != before {
            let mut all = self.shared.asked();
            *all = (*all + asked).saturating_sub(before);
        }
        if asked < before {
            self.shared.has_freed();
        }
    }

    /// Makes `handler` ready, and returns how many of `wanted` jobs may be claimed, or
    /// `None` if none may be. These jobs count as asked for at once.
    pub(crate) fn reserve(
        &mut self,
        handler: &dyn DynHandler,
        wanted: NonZeroU32,
    ) -> Option<NonZeroU32> {
        // The lock keeps another queue from reserving the same readiness.
        let mut asked = self.shared.asked();
        let mut room = self.room(handler, wanted, *asked);
        if room < Some(wanted) {
            self.shared.is_limiting.store(true, SeqCst);
            // Look again: if a readiness was freed before the flag was set, no claim loop
            // was woken.
            room = self.room(handler, wanted, *asked);
        }
        let reserved = room.map_or(0, slots);
        *asked += reserved;
        self.asked += reserved;
        room
    }

    /// Counts a job that is started, until the returned value is dropped.
    pub(crate) fn unstarted(&self) -> Unstarted {
        self.shared.unstarted.fetch_add(1, SeqCst);
        Unstarted(Arc::clone(&self.shared))
    }

    pub(crate) fn changes(&self) -> Changes {
        let (shared, changed) = (Arc::clone(&self.shared), Arc::clone(&self.changed));
        Changes { shared, changed }
    }

    fn of(shared: Arc<Shared>) -> Self {
        let changed = Arc::<Notify>::default();
        shared.loops().push(Arc::clone(&changed));
        let waker = Waker::from(Arc::clone(&shared));
        Self { shared, waker, changed, asked: 0 }
    }

    fn room(
        &self,
        handler: &dyn DynHandler,
        wanted: NonZeroU32,
        asked: usize,
    ) -> Option<NonZeroU32> {
        let Shared { unstarted, failure, .. } = &*self.shared;
        let reserved = asked.saturating_add(unstarted.load(SeqCst));
        let jobs = reserved.saturating_add(slots(wanted));
        let mut context = Context::from_waker(&self.waker);
        // After a panic the handler may be in any state, so the worker ends.
        let ready = panics::caught(|| handler.ready_for(jobs, &mut context));
        let ready = ready.unwrap_or_else(|panic| {
            Err(Failure::dead(format!("ready_for panicked: {panic}")))
        });
        let ready = ready.unwrap_or_else(|refusal| {
            failure.get_or_init(|| refusal);
            self.shared.wake_all();
            0
        });
        let room = u32::try_from(ready.saturating_sub(reserved)).unwrap_or(u32::MAX);
        NonZeroU32::new(room.min(wanted.get()))
    }
}

impl Changes {
    /// Waits until the handler may be ready for more jobs.
    ///
    /// # Errors
    /// When the handler will never be ready again.
    pub(crate) async fn next(&self) -> Result<(), WorkerError> {
        self.changed.notified().await;
        let failure = self.shared.failure.get();
        failure.map_or(Ok(()), |failure| Err(WorkerError::NotReady(failure.clone())))
    }
}

impl Shared {
    /// Wakes the claim loops if one of them waits for a readiness.
    fn has_freed(&self) {
        if self.is_limiting.swap(false, SeqCst) {
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        self.loops().iter().for_each(|changed| changed.notify_one());
    }

    fn asked(&self) -> MutexGuard<'_, usize> {
        // A poisoned number is complete: it changes in one step.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loops(&self) -> MutexGuard<'_, Vec<Arc<Notify>>> {
        // A poisoned list is complete, because no code under the lock can panic.
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.report_asked(0);
        self.shared.loops().retain(|changed| !Arc::ptr_eq(changed, &self.changed));
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

impl Drop for Unstarted {
    fn drop(&mut self) {
        self.0.unstarted.fetch_sub(1, SeqCst);
        self.0.has_freed();
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::poll_once;

    use super::*;
    use crate::{Handler, JobContext};

    const FIVE: NonZeroU32 = NonZeroU32::new(5).expect("not zero");

    /// A handler that is ready for this many jobs.
    struct ReadyFor(usize);

    impl Handler for ReadyFor {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn ready_for(&self, _: usize, _: &mut Context<'_>) -> Result<usize, Failure> {
            Ok(self.0)
        }
    }

    #[test]
    fn jobs_that_are_asked_for_or_not_started_use_up_the_readiness() {
        let mut readiness = Readiness::default();
        let room = |readiness: &mut Readiness, asked| {
            readiness.report_asked(asked);
            readiness.reserve(&ReadyFor(6), FIVE).map(NonZeroU32::get)
        };

        assert_eq!(room(&mut readiness, 0), Some(5), "none is asked for");
        assert_eq!(room(&mut readiness, 2), Some(4), "two are asked for");
        assert_eq!(room(&mut readiness, 6), None, "all are asked for");
        let unstarted = readiness.unstarted();
        assert_eq!(room(&mut readiness, 2), Some(3), "one is unstarted");
        drop(unstarted);
        assert_eq!(room(&mut readiness, 2), Some(4), "it is passed on");
    }

    /// A handler whose preparation panics.
    struct Panics;

    impl Handler for Panics {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn ready_for(&self, _: usize, _: &mut Context<'_>) -> Result<usize, Failure> {
            panic!("no connection");
        }
    }

    /// The worker settles what it holds, and ends with the message of the panic.
    #[tokio::test]
    async fn a_handler_that_panics_is_never_ready_again() {
        let mut readiness = Readiness::default();
        let changes = readiness.changes();

        assert_eq!(readiness.reserve(&Panics, FIVE), None);

        let error = changes.next().await.unwrap_err().to_string();
        assert!(error.ends_with("ready_for panicked: no connection"), "{error}");
    }

    /// The claim loop may wait for the readiness that a job has used until now.
    #[tokio::test]
    async fn a_job_that_is_passed_on_wakes_a_limited_worker() {
        let mut readiness = Readiness::default();
        let unstarted = readiness.unstarted();
        assert_eq!(readiness.reserve(&ReadyFor(1), FIVE), None);
        let changes = readiness.changes();
        assert!(poll_once(changes.next()).await.is_none(), "nothing has changed");

        drop(unstarted);

        let changed = poll_once(changes.next()).await;
        assert!(changed.is_some_and(|ready| ready.is_ok()), "the loop is woken");
    }

    /// A claim loop reports at each turn. If a report without a change woke it, it would
    /// never rest.
    #[tokio::test]
    async fn a_report_without_a_change_wakes_no_loop() {
        let mut readiness = Readiness::default();
        let changes = readiness.changes();
        assert_eq!(readiness.reserve(&ReadyFor(1), FIVE), NonZeroU32::new(1));

        readiness.report_asked(1);

        assert!(poll_once(changes.next()).await.is_none(), "the loop is woken");
    }

    /// A handler that is not ready, and the waker that it must wake when it is.
    #[derive(Default)]
    struct Busy(Mutex<Option<Waker>>);

    impl Handler for Busy {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn ready_for(
            &self,
            _: usize,
            context: &mut Context<'_>,
        ) -> Result<usize, Failure> {
            *self.0.lock().unwrap() = Some(context.waker().clone());
            Ok(0)
        }
    }

    #[tokio::test]
    async fn a_handler_that_becomes_ready_wakes_the_loop() {
        let (mut readiness, handler) = (Readiness::default(), Busy::default());
        assert_eq!(readiness.reserve(&handler, FIVE), None);
        let changes = readiness.changes();
        assert!(poll_once(changes.next()).await.is_none(), "nothing has changed");

        let waker = handler.0.lock().unwrap().take();
        waker.expect("the handler was asked").wake();

        let changed = poll_once(changes.next()).await;
        assert!(changed.is_some_and(|ready| ready.is_ok()), "the loop is woken");
    }

    /// A loop that got all that it wanted waits for nothing, and is not woken.
    #[tokio::test]
    async fn a_handler_that_is_ready_for_all_jobs_wakes_no_loop() {
        let mut readiness = Readiness::default();
        let changes = readiness.changes();
        assert_eq!(readiness.reserve(&ReadyFor(5), FIVE), Some(FIVE));

        readiness.report_asked(0);

        assert!(poll_once(changes.next()).await.is_none(), "the loop is woken");
    }

    /// A handler that becomes ready while it is asked.
    struct ReadyAtTheSecondLook(AtomicBool);

    impl Handler for ReadyAtTheSecondLook {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn ready_for(
            &self,
            jobs: usize,
            _: &mut Context<'_>,
        ) -> Result<usize, Failure> {
            Ok(if self.0.swap(true, SeqCst) { jobs } else { 0 })
        }
    }

    /// A readiness that was freed before the loop was known to wait woke no loop.
    #[test]
    fn a_handler_that_is_not_ready_is_asked_again() {
        let handler = ReadyAtTheSecondLook(AtomicBool::new(false));

        let reserved = Readiness::default().reserve(&handler, FIVE);

        assert_eq!(reserved, Some(FIVE), "it is not asked again");
    }

    /// Two queues would otherwise claim for the same readiness.
    #[tokio::test]
    async fn the_queues_of_a_worker_share_the_readiness() {
        let mut first = Readiness::default();
        let mut second = first.another();
        assert_eq!(first.reserve(&ReadyFor(1), FIVE), NonZeroU32::new(1));
        assert_eq!(second.reserve(&ReadyFor(1), FIVE), None, "the first has it");
        let changes = second.changes();
        assert!(poll_once(changes.next()).await.is_none(), "nothing has changed");

        drop(first);

        assert!(poll_once(changes.next()).await.is_some(), "the second is woken");
        assert_eq!(second.reserve(&ReadyFor(1), FIVE), NonZeroU32::new(1));
        second.report_asked(0);
        assert!(poll_once(changes.next()).await.is_some(), "it is woken again");
    }
}
