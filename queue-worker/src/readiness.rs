//! Limits the claims of a worker to the jobs for which its handler is ready.
//!
//! ```text
//!  ready for     = wanted + asked + unstarted
//!  may be claimed = ready - asked - unstarted
//! ```
//!
//! `asked` jobs may be returned by pending claims, and `unstarted` jobs are held and not
//! passed to the handler yet. Both have a readiness of their own already.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
};

use tokio::sync::Notify;

use crate::{Failure, Handler, WorkerError, calls::slots};

/// The readiness of a worker's handler. Clones share it.
#[derive(Clone)]
pub(crate) struct Readiness {
    shared: Arc<Shared>,
    /// Wakes the claim loop.
    waker: Waker,
}

#[derive(Default)]
struct Shared {
    changed: Notify,
    unstarted: AtomicUsize,
    /// Whether the handler was not ready for all jobs that the worker wanted to claim.
    is_limiting: AtomicBool,
    failure: OnceLock<Failure>,
}

/// A job that was started and is not passed to the handler yet. The value is dropped when
/// the handler has the job, or will not get it.
pub(crate) struct Unstarted(Arc<Shared>);

impl Readiness {
    /// Makes `handler` ready, and returns how many of `wanted` jobs may be claimed.
    pub(crate) fn room<H: Handler>(
        &self,
        handler: &H,
        wanted: NonZeroU32,
        asked: usize,
    ) -> Option<NonZeroU32> {
        let room = self.ready(handler, wanted, asked);
        let is_limiting = room < Some(wanted);
        self.shared.is_limiting.store(is_limiting, SeqCst);
        if is_limiting {
            // A job that was passed on before the store above did not wake the loop.
            return self.ready(handler, wanted, asked);
        }
        room
    }

    /// Counts a job that is started.
    pub(crate) fn unstarted(&self) -> Unstarted {
        self.shared.unstarted.fetch_add(1, SeqCst);
        Unstarted(Arc::clone(&self.shared))
    }

    /// Waits until the handler may be ready for more jobs.
    pub(crate) async fn changed(&self) -> Result<(), WorkerError> {
        self.shared.changed.notified().await;
        let failure = self.shared.failure.get();
        failure.map_or(Ok(()), |failure| Err(WorkerError::NotReady(failure.clone())))
    }

    fn ready<H: Handler>(
        &self,
        handler: &H,
        wanted: NonZeroU32,
        asked: usize,
    ) -> Option<NonZeroU32> {
        let reserved = asked.saturating_add(self.shared.unstarted.load(SeqCst));
        let jobs = reserved.saturating_add(slots(wanted));
        let mut context = Context::from_waker(&self.waker);
        let ready = handler.ready_for(jobs, &mut context).unwrap_or_else(|failure| {
            self.shared.failure.get_or_init(|| failure);
            self.shared.changed.notify_one();
            0
        });
        let room = u32::try_from(ready.saturating_sub(reserved)).unwrap_or(u32::MAX);
        NonZeroU32::new(room.min(wanted.get()))
    }
}

impl Default for Readiness {
    fn default() -> Self {
        let shared = Arc::<Shared>::default();
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.changed.notify_one();
    }
}

impl Drop for Unstarted {
    fn drop(&mut self) {
        self.0.unstarted.fetch_sub(1, SeqCst);
        if self.0.is_limiting.load(SeqCst) {
            self.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::poll_once;

    use super::*;
    use crate::JobContext;

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
        let readiness = Readiness::default();
        let room =
            |asked| readiness.room(&ReadyFor(6), FIVE, asked).map(NonZeroU32::get);

        assert_eq!((room(0), room(2), room(6)), (Some(5), Some(4), None), "asked");
        let unstarted = readiness.unstarted();
        assert_eq!((room(2), room(5)), (Some(3), None), "unstarted");
        drop(unstarted);
        assert_eq!(room(2), Some(4), "passed on");
    }

    /// The claim loop may wait for the readiness that a job has used until now.
    #[tokio::test]
    async fn a_job_that_is_passed_on_wakes_a_limited_worker() {
        let readiness = Readiness::default();
        let unstarted = readiness.unstarted();
        assert_eq!(readiness.room(&ReadyFor(1), FIVE, 0), None);
        assert!(poll_once(readiness.changed()).await.is_none(), "nothing has changed");

        drop(unstarted);

        let changed = poll_once(readiness.changed()).await;
        assert!(changed.is_some_and(|ready| ready.is_ok()), "the loop is woken");
    }
}
