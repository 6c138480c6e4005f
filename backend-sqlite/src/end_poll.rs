//! Notices the ends of jobs in other processes, for the calls that wait for them.
//!
//! ```text
//!  an end in this process    -> the notifier wakes its calls, after the commit
//!  an end in another process -> one call looks for all calls of the handle, and the
//!                               notifier wakes those whose job has ended
//! ```
//!
//! If each call looked for itself, the handle's thread would spend its time on the looks of
//! a thousand calls, and would delay pushes and settlements.

use std::{pin::pin, time::Duration};

use tokio::sync::Mutex;

use crate::call::Call;
use crate::claim::Poll;
use crate::failure::Failure;
use crate::queue::SqliteQueue;
use crate::store::Store;
use crate::wake::{EndWaiter, Wakes};

/// The last look of a handle; `None` before the first.
#[derive(Debug, Default)]
pub(crate) struct EndPoll(Mutex<Option<Look>>);

#[derive(Debug)]
struct Look {
    /// When it was, by the clock of the waiting calls.
    at: Duration,
    /// The `data_version` of the file before the look.
    version: i64,
}

/// Finds those of these jobs that have ended, or of which nothing is kept.
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

impl SqliteQueue {
    /// Waits until the job may have ended, or for `wait`.
    pub(crate) async fn wait_for_wake(
        &self,
        end: &mut EndWaiter,
        wait: Duration,
    ) -> Result<(), Failure> {
        let clock = self.environment().clock();
        let until = clock.elapsed().saturating_add(wait);
        let mut woken = pin!(end.woken());
        loop {
            let left = until.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                () = &mut woken => return Ok(()),
                () = clock.sleep(left.min(self.poll_interval())) => {}
            }
            self.wake_ended().await?;
        }
    }

    /// Wakes the calls whose job has ended in another process, unless another call did so a
    /// moment ago.
    async fn wake_ended(&self) -> Result<(), Failure> {
        let mut last = self.end_poll().0.lock().await;
        let now = self.environment().clock().elapsed();
        let half = self.poll_interval() / 2;
        if last.as_ref().is_some_and(|look| now.saturating_sub(look.at) < half) {
            return Ok(());
        }
        // The version is read first. So an end after it is found now or by the next look.
        let version = self.db_thread().call(Poll).await?;
        if last.as_ref().is_none_or(|look| look.version != version) {
            self.wake_those_that_ended().await?;
        }
        *last = Some(Look { at: now, version });
        Ok(())
    }

    async fn wake_those_that_ended(&self) -> Result<(), Failure> {
        let page = self.environment().max_jobs_per_step().get() as usize;
        for jobs in self.notifier().awaited().chunks(page) {
            let ended = self.db_thread().call(Ended { jobs: jobs.to_vec() }).await?;
            self.notifier().notify(Wakes { ended: ended.into(), ..Wakes::default() });
        }
        Ok(())
    }
}
