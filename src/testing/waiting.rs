//! The jobs that a queue for tests holds.

use std::{
    num::NonZeroU32,
    pin::pin,
    task::{Context, Poll, Waker},
};

use relq_core::{
    Error, Operator as _,
    operator::{JobState, JobView, PeekRequest},
};

use super::TestQueue;

/// How many jobs one call reads.
const PAGE: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

impl TestQueue {
    /// The jobs that wait to run: first the ready jobs in the order in which they will
    /// run, then the scheduled ones by their due times.
    pub fn waiting(&self) -> Vec<JobView> {
        let mut jobs = self.all(JobState::Ready);
        jobs.extend(self.all(JobState::Scheduled));
        jobs
    }

    /// The dead letters, with the reason and the last error of each.
    pub fn dead(&self) -> Vec<JobView> {
        self.all(JobState::Dead)
    }

    fn all(&self, state: JobState) -> Vec<JobView> {
        let mut jobs = Vec::new();
        let mut ask = PeekRequest::new(state, PAGE);
        loop {
            let page = now(self.queue.peek(&ask));
            jobs.extend(page.jobs);
            let Some(next) = page.next else { return jobs };
            ask.after = Some(next);
        }
    }
}

/// Returns the result of a call to the queue in memory, which neither waits nor fails. So
/// an assertion need not be `async`, and its panic names the line of the test.
fn now<T>(call: impl Future<Output = Result<T, Error>>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.expect("a read in memory does not fail"),
        Poll::Pending => unreachable!("a read in memory does not wait"),
    }
}
