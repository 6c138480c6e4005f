//! A call on its way to the database thread and back.

use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::store::Store;

/// What the database thread can do. It may be run again from the start when the
/// transaction it ran in was undone, so it changes nothing but the store.
pub(crate) trait Call: Send + 'static {
    /// What the caller gets.
    type Answer: Send + 'static;

    /// Whether [`look`](Self::look) may answer it, so that an idle queue is not
    /// locked for writing.
    const LOOKS_FIRST: bool = false;

    /// About how many jobs it touches.
    fn weight(&self) -> usize {
        1
    }

    /// Answers from a read alone, or with nothing when it has to write.
    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        let _ = store;
        Ok(None)
    }

    /// Does it, inside a write transaction.
    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure>;

    /// What is to be done when nobody hears the answer any more (R22).
    fn unheard(answer: Self::Answer) -> Option<Box<dyn Pending>> {
        let _ = answer;
        None
    }
}

/// A call of any type that waits for its turn on the database thread.
pub(crate) trait Pending: Send {
    fn weight(&self) -> usize;
    fn looks_first(&self) -> bool;
    /// Whether its caller has gone before it was begun.
    fn is_abandoned(&self) -> bool;
    /// Tries to answer it from a read; says whether it is answered.
    fn look(&mut self, store: &Store<'_>) -> Result<bool, Failure>;
    /// Does it and keeps the answer until the commit.
    fn run(&mut self, store: &Store<'_>) -> Result<(), Failure>;
    /// Hands out the answer or the failure; says what that leaves to be done.
    fn finish(
        self: Box<Self>,
        outcome: Result<(), Failure>,
    ) -> Option<Box<dyn Pending>>;
}

/// Where a caller waits for its answer.
pub(crate) type Reply<T> = oneshot::Receiver<Result<T, Failure>>;

/// A call and where its answer goes.
struct Request<C: Call> {
    call: C,
    answer: Option<C::Answer>,
    /// None for what nobody waits for.
    reply: Option<oneshot::Sender<Result<C::Answer, Failure>>>,
}

/// Makes a call ready to be sent.
pub(crate) fn request<C: Call>(call: C) -> (Box<dyn Pending>, Reply<C::Answer>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Request { call, answer: None, reply: Some(reply) }), answer)
}

/// Makes a call ready whose answer nobody waits for.
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
                tracing::debug!(?failure, "a call failed that nobody waited for");
                None
            }
        }
    }
}

fn no_answer() -> Failure {
    Failure::interrupted("the call was done and left no answer")
}
