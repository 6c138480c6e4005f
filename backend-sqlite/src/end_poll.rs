//! Notices the ends of jobs in other processes, for the calls that wait for them.
//!
//! ```text
//!  an end in this process    -> the notifier wakes its calls, after the commit
//!  an end in another process -> the task of the handle polls the file for all calls,
//!                               and the notifier wakes those whose job has ended
//! ```
//!
//! One task polls for all calls of a handle. If each call polled the file by itself, a
//! thousand of them would keep the handle's thread busy, and would delay pushes and
//! settlements. If one call polled for all, the others would stop too when its future is
//! not awaited any more.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use relq_core::environment::Environment;
use tokio::task::JoinHandle;

use crate::call::Call;
use crate::claim::Poll;
use crate::db_thread::DbThread;
use crate::failure::Failure;
use crate::store::Store;
use crate::wake::{Notifier, Wakes};

/// Polls the file for the ends of jobs while calls of a handle wait for one.
#[derive(Debug, Default)]
pub(crate) struct EndPoll(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// How many calls wait.
    calls: usize,
    /// The task that polls. It ends when no call waits.
    task: Option<JoinHandle<()>>,
}

/// A call that waits. The task polls for it until this is dropped.
#[derive(Debug)]
pub(crate) struct Polled(Arc<Mutex<State>>);

/// The parts of the handle that the task uses.
pub(crate) struct PollContext {
    pub(crate) notifier: Notifier,
    pub(crate) db_thread: Arc<DbThread>,
    pub(crate) environment: Environment,
    pub(crate) poll_interval: Duration,
}

impl EndPoll {
    /// Begins to poll for a call that waits. The task runs on the runtime of the call that
    /// starts it.
    pub(crate) fn begin(&self, context: impl FnOnce() -> PollContext) -> Polled {
        let mut state = lock(&self.0);
        state.calls += 1;
        if state.task.as_ref().is_none_or(JoinHandle::is_finished) {
            let task = run(context(), Arc::clone(&self.0));
            state.task = Some(tokio::spawn(task.boxed()));
        }
        Polled(Arc::clone(&self.0))
    }
}

impl Drop for EndPoll {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.0).task.take() {
            task.abort();
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        lock(&self.0).calls -= 1;
    }
}

async fn run(context: PollContext, state: Arc<Mutex<State>>) {
    let mut last = None;
    loop {
        context.environment.clock().sleep(context.poll_interval).await;
        {
            let mut state = lock(&state);
            if state.calls == 0 {
                state.task = None;
                return;
            }
        }
        if let Err(failure) = context.poll(&mut last).await {
            tracing::debug!(?failure, "cannot look for the ends of jobs");
            // Wake all calls. Each reads the state of its job itself, and returns the
            // error if that fails too.
            context
                .notifier
                .notify(Wakes { all_ended: true.into(), ..Wakes::default() });
        }
    }
}

impl PollContext {
    /// Wakes the calls whose job has ended, if the file was changed since the last poll.
    async fn poll(&self, last: &mut Option<i64>) -> Result<(), Failure> {
        // Read the version first: a change after that is found by this poll or the next.
        let version = self.db_thread.call(Poll).await?;
        if *last != Some(version) {
            self.wake_those_that_ended().await?;
        }
        *last = Some(version);
        Ok(())
    }

    async fn wake_those_that_ended(&self) -> Result<(), Failure> {
        let page = self.environment.max_jobs_per_step().get() as usize;
        for jobs in self.notifier.awaited().chunks(page) {
            let ended = self.db_thread.call(Ended { jobs: jobs.to_vec() }).await?;
            self.notifier.notify(Wakes { ended: ended.into(), ..Wakes::default() });
        }
        Ok(())
    }
}

/// Finds those of these jobs that have ended, or were purged.
struct Ended {
    jobs: Vec<String>,
}

impl Call for Ended {
    type Answer = Vec<String>;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        let mut ended = Vec::new();
        for job in &self.jobs {
            if !store.is_pending(job)? {
                ended.push(job.clone());
            }
        }
        Ok(ended)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
