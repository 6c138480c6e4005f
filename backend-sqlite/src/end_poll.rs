//! Notices the ends of jobs in other processes, for the calls that wait for them.
//!
//! ```text
//!  an end in this process    -> the notifier wakes its calls, after the commit
//!  an end in another process -> one call looks for all calls of the handle, and the
//!                               notifier wakes those whose job has ended
//! ```
//!
//! If each call looked for itself, the handle's thread would spend its time on the looks of
//! a thousand calls, and would delay pushes and settlements. So the calls take turns: the
//! call that has the lock sleeps and looks, and the others wait for the lock.

use std::{pin::pin, time::Duration};

use tokio::sync::Mutex;

use crate::call::Call;
use crate::claim::Poll;
use crate::failure::Failure;
use crate::queue::SqliteQueue;
use crate::store::Store;
use crate::wake::{EndWaiter, Wakes};

/// The lock of the call that looks, and the `data_version` of the file before the last look;
/// `None` before the first.
#[derive(Debug, Default)]
pub(crate) struct EndPoll(Mutex<Option<i64>>);

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
        let mut woken = pin!(end.woken());
        let mut late = pin!(self.environment().clock().sleep(wait));
        loop {
            tokio::select! {
                () = &mut woken => return Ok(()),
                () = &mut late => return Ok(()),
                looked = self.look_in_turn() => looked?,
            }
        }
    }

    /// Looks once, after the looks of other calls, and wakes the calls whose job has ended.
    /// If the look is dropped before its end, the next one finds the same.
    async fn look_in_turn(&self) -> Result<(), Failure> {
        let mut last = self.end_poll().0.lock().await;
        self.environment().clock().sleep(self.poll_interval()).await;
        // The version is read first. So an end after it is found now or by the next look.
        let version = self.db_thread().call(Poll).await?;
        if *last != Some(version) {
            self.wake_those_that_ended().await?;
        }
        *last = Some(version);
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
