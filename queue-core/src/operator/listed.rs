//! A queue that only lists jobs, for the tests of the calls that read it page by page.

use std::{
    borrow::Cow,
    fmt,
    num::NonZeroU32,
    pin::pin,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;

use super::*;
use crate::{
    ClaimRequest, Delivery, Error, NewJob, Operator, PushToken, Receipt, ReliableQueue,
    Settlement, Stats,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    error::{ErrorContext, Operation},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};

/// A queue with these jobs, which lists at most two of them on a page.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(super) jobs: Vec<JobView>,
    /// The answer to a look-up. `None` for a backend without an index.
    pub(super) look_up: Option<JobLookup>,
    /// The answer to the second and later look-ups. `None` if it is that of the first.
    pub(super) later: Option<JobLookup>,
    looked_up: AtomicBool,
    pub(crate) capabilities: Capabilities,
    /// Whether the next page fails.
    pub(super) is_down: AtomicBool,
    pub(super) pages: AtomicU32,
}

impl Listed {
    /// A queue of a backend that has no index.
    pub(crate) fn new(jobs: Vec<JobView>) -> Self {
        let capabilities = Capabilities {
            backend: "listed",
            supported: Cow::Borrowed(&[Capability::Followers]),
            priorities: Priority::NORMAL..=Priority::NORMAL,
            lateness: Duration::ZERO,
            order: Order::Fifo,
            lease_scope: LeaseScope::Job,
            recovery: RecoveryBound::LeaseAndReaper,
            limits: Limits::DEFAULT,
        };
        Self {
            jobs,
            look_up: None,
            later: None,
            looked_up: AtomicBool::new(false),
            capabilities,
            is_down: AtomicBool::new(false),
            pages: AtomicU32::new(0),
        }
    }

    /// Gives the queue an index, whose look-ups return this.
    pub(super) fn finding(mut self, look_up: JobLookup) -> Self {
        self.look_up = Some(look_up);
        self.capabilities.supported.to_mut().push(Capability::Inspect);
        self
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }
}

/// The result of a future that does not wait.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the future waits"),
    }
}

/// A view of the job `name` in this state. Its payload is its name.
pub(super) fn job(name: &str, detail: StateDetail) -> JobView {
    let id = JobId::new(name).expect("a valid id");
    JobView::new(Some(id), name.to_owned(), detail)
}

pub(super) fn ids(jobs: &[JobView]) -> Vec<&str> {
    jobs.iter().filter_map(|job| job.id.as_ref()).map(JobId::as_str).collect()
}

const NOT_LISTED: &str = "the calls under test only read pages";

#[async_trait]
impl Operator for Listed {
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.capabilities.check_peek(ask)?;
        self.pages.fetch_add(1, SeqCst);
        if self.is_down.swap(false, SeqCst) {
            let at = ErrorContext { backend: "listed", operation: Operation::Peek };
            return Err(Error::Unavailable { at, source: "down".into() });
        }
        let of_state = |job: &&JobView| job.detail.state() == ask.state;
        let mut jobs: Vec<_> = self.jobs.iter().filter(of_state).cloned().collect();
        if ask.order == PeekOrder::NewestFirst {
            jobs.reverse();
        }
        let from = ask.after.as_ref().map_or(0, |after| usize::from(after.0[0]));
        let to = jobs.len().min(from + 2.min(ask.limit.get() as usize));
        let next = (to < jobs.len())
            .then(|| PageCursor(vec![u8::try_from(to).expect("few jobs")].into()));
        Ok(Page { jobs: jobs[from..to].to_vec(), next })
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        self.look_up.as_ref().map(|_| self as &dyn InspectQueue)
    }

    async fn stats(&self) -> Result<Stats, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn redrive(&self, _: &Selection) -> Result<Redriven, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn purge_dead(&self, _: &Selection) -> Result<u64, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn purge(&self) -> Result<u64, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn cancel(&self, _: &JobId) -> Result<Cancelled, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn pause(&self) -> Result<(), Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn resume(&self) -> Result<(), Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn audit(&self) -> Result<Audit, Error> {
        unreachable!("{NOT_LISTED}")
    }
}

#[async_trait]
impl InspectQueue for Listed {
    async fn job(&self, _: &JobId) -> Result<JobLookup, Error> {
        let later = self.later.as_ref().filter(|_| self.looked_up.load(SeqCst));
        self.looked_up.store(true, SeqCst);
        Ok(later.or(self.look_up.as_ref()).expect("it has an index").clone())
    }

    async fn run_now(&self, _: &JobId) -> Result<RunNow, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn workers(
        &self,
        _: Option<&PageCursor>,
        _: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        unreachable!("{NOT_LISTED}")
    }
}

#[async_trait]
impl ReliableQueue for Listed {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn push(
        &self,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn claim(&self, _: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn extend(
        &self,
        _: &WorkerId,
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn recover(&self, _: NonZeroU32) -> Result<Recovered, Error> {
        unreachable!("{NOT_LISTED}")
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        unreachable!("{NOT_LISTED}")
    }
}
