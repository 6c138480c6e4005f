//! A call on its way to the database thread, and its result on the way back.

use relq_core::environment::Environment;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::store::Store;

/// The weight of a page, in jobs.
pub(crate) const PAGE_WEIGHT: usize = Environment::MAX_JOBS_PER_STEP.get() as usize;

/// A call that the database thread can run. It may run again from the start if its
/// transaction was rolled back, so it changes nothing but the store.
pub(crate) trait Call: Send + 'static {
    /// The result that the caller gets.
    type Answer: Send + 'static;

    /// Whether [`look`](Self::look) may return the result, so that an idle queue takes
    /// no write lock.
    const LOOKS_FIRST: bool = false;

    /// The approximate number of jobs that the call touches.
    fn weight(&self) -> usize {
        1
    }

    /// Returns the result from a read alone, or `None` if the call has to write.
    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        let _ = store;
        Ok(None)
    }

    /// Runs the call inside a write transaction.
    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure>;

    /// The call to run if the caller no longer waits for the result (R22).
    fn unheard(answer: Self::Answer) -> Option<Box<dyn Pending>> {
        let _ = answer;
        None
    }
}

/// A call of any type that waits for the database thread.
pub(crate) trait Pending: Send {
    fn weight(&self) -> usize;
    fn looks_first(&self) -> bool;
    /// Whether its caller was dropped before the call began.
    fn is_abandoned(&self) -> bool;
    /// Tries to get the result from a read. Returns whether it did.
    fn look(&mut self, store: &Store<'_>) -> Result<bool, Failure>;
    /// Runs the call and keeps the result until the commit.
    fn run(&mut self, store: &Store<'_>) -> Result<(), Failure>;
    /// Sends the result or the failure to the caller. Returns a follow-up call, if one
    /// is needed.
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
    /// `None` for a call without a waiting caller.
    reply: Option<oneshot::Sender<Result<C::Answer, Failure>>>,
}

/// Wraps a call, with a channel for its result.
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
        self.call.weight()
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
    Failure::interrupted("the call was done, but its answer was lost")
}
