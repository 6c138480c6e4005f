//! A call that is sent to the database thread, and the channel that returns its result.

use relq_core::environment::Environment;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::store::Store;

/// The weight of a call that handles a whole page: the maximum number of jobs in a
/// page.
pub(crate) const PAGE_WEIGHT: usize = Environment::MAX_JOBS_PER_STEP.get() as usize;

/// How many bytes weigh as much as one job.
const BYTES_PER_WEIGHT: usize = 1024;

/// A call that the database thread can run. If its transaction is rolled back, the
/// thread may run the call again from the start, so a call changes only the database.
pub(crate) trait Call: Send + 'static {
    /// The type of the result that the caller gets.
    type Answer: Send + 'static;

    /// Whether the thread tries [`look`](Self::look) before [`run`](Self::run), so that
    /// a call that finds nothing to do takes no write lock.
    const LOOKS_FIRST: bool = false;

    /// The approximate number of jobs that the call handles. It limits how many calls
    /// share one transaction.
    fn weight(&self) -> usize {
        1
    }

    /// The approximate size of the payloads and results that the call stores. Large ones
    /// weigh more than their number.
    fn bytes(&self) -> usize {
        0
    }

    /// Tries to compute the result by reading only. Returns `None` if the call must
    /// write.
    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        let _ = store;
        Ok(None)
    }

    /// Runs the call inside a write transaction.
    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure>;

    /// Returns the call that undoes this one if its caller was dropped before it
    /// received the result (R22). `None` if nothing has to be undone.
    fn unheard(answer: Self::Answer) -> Option<Box<dyn Pending>> {
        let _ = answer;
        None
    }
}

/// A queued call of any type, together with the channel that returns its result.
pub(crate) trait Pending: Send {
    /// The share of a group that the call takes, by its jobs or by its bytes.
    fn weight(&self) -> usize;
    fn looks_first(&self) -> bool;
    /// Whether the caller has stopped waiting for the result.
    fn is_abandoned(&self) -> bool;
    /// Tries to compute the result without writing. Returns true if that succeeded, and
    /// false if the call must run in a write transaction.
    fn look(&mut self, store: &Store<'_>) -> Result<bool, Failure>;
    /// Runs the call in the open transaction, and keeps the result until its commit.
    fn run(&mut self, store: &Store<'_>) -> Result<(), Failure>;
    /// Sends the result or the failure to the caller. If the caller is gone, returns
    /// the call that undoes this one, if it has one.
    fn finish(
        self: Box<Self>,
        outcome: Result<(), Failure>,
    ) -> Option<Box<dyn Pending>>;
}

/// The channel on which a caller waits for the result.
pub(crate) type Reply<T> = oneshot::Receiver<Result<T, Failure>>;

/// A call, and the channel for its result.
struct Request<C: Call> {
    call: C,
    answer: Option<C::Answer>,
    /// The channel for the result. `None` for a call that no caller waits for.
    reply: Option<oneshot::Sender<Result<C::Answer, Failure>>>,
}

/// Wraps a call with a new channel for its result.
pub(crate) fn request<C: Call>(call: C) -> (Box<dyn Pending>, Reply<C::Answer>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Request { call, answer: None, reply: Some(reply) }), answer)
}

/// Wraps a call whose result no caller waits for.
pub(crate) fn background_call<C: Call>(call: C) -> Box<dyn Pending> {
    Box::new(Request { call, answer: None, reply: None })
}

impl<C: Call> Pending for Request<C> {
    fn weight(&self) -> usize {
        self.call.weight().max(self.call.bytes() / BYTES_PER_WEIGHT)
    }

    fn looks_first(&self) -> bool {
        C::LOOKS_FIRST
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn look(&mut self, store: &Store<'_>) -> Result<bool, Failure> {
        self.answer = self.call.look(store)?;
        Ok(self.answer.is_some())
    }

    fn run(&mut self, store: &Store<'_>) -> Result<(), Failure> {
        self.answer = Some(self.call.run(store)?);
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        outcome: Result<(), Failure>,
    ) -> Option<Box<dyn Pending>> {
        let Self { answer, reply, .. } = *self;
        let answer = outcome.and_then(|()| answer.ok_or_else(no_answer));
        let unheard = match reply {
            Some(reply) => reply.send(answer).err()?,
            None => answer,
        };
        match unheard {
            Ok(answer) => C::unheard(answer),
            Err(failure) => {
                tracing::debug!(?failure, "a call without a waiting caller failed");
                None
            }
        }
    }
}

fn no_answer() -> Failure {
    Failure::interrupted("the call was sent, but its reply was lost")
}
