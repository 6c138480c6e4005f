//! The calls of a submission. Each is repeated until its reply arrives. A repetition is safe,
//! because the batch's id and the token of each page are made before the first try.

use relq::{
    NewJob, PushToken,
    batch::{Added, BatchId, BatchQueue, Created, NewBatch},
    environment::Environment,
    error::Effect,
};

use super::known::known;
use crate::{
    failure::{CommandResult, Failure, explain},
    push::{Sender, Unsent},
};

const STAYS_OPEN: &str = "sealed, and stays open until `relq batch cancel`";

/// Creates a batch. Fails if a batch with its id exists already.
pub(super) async fn create(
    batches: &dyn BatchQueue,
    sender: &Sender,
    batch: &NewBatch,
) -> CommandResult {
    let id = &batch.id;
    let is_taken = || Failure::Failed(format!("there is a batch {id} already"));
    let found = sender.repeat(async || batches.batch(id).await).await;
    if found.map_err(|unsent| failed(id, "made", "made", &unsent))?.is_some() {
        return Err(is_taken());
    }
    // If the reply to a try was lost, a batch that exists now is the one of that try.
    let mut may_be_made = false;
    let made = sender.repeat(async || {
        let made = batches.create(batch).await;
        may_be_made |= matches!(&made, Err(error) if error.effect() != Effect::No);
        made
    });
    let made = made.await.map_err(|unsent| failed(id, "made", "made", &unsent))?;
    if made == Created::Exists && !may_be_made {
        return Err(is_taken());
    }
    Ok(())
}

/// Adds pieces to the batch, in one call.
pub(super) async fn add(
    batches: &dyn BatchQueue,
    sender: &Sender,
    id: &BatchId,
    pieces: &[NewJob],
) -> CommandResult {
    let token = PushToken::random(Environment::default().random());
    let added = sender.repeat(async || batches.add(id, pieces, Some(&token)).await);
    let added = added.await.map_err(|unsent| {
        let why = explain(&unsent.error);
        Failure::Failed(format!("the batch {id} was not {STAYS_OPEN}: {why}"))
    });
    match added? {
        Added::Stored(_) => Ok(()),
        Added::Closed(state) => Err(Failure::Failed(format!(
            "the batch {id} is {state} already: another client closed it"
        ))),
        Added::Unknown => known(id, None).map(drop),
    }
}

/// Seals the batch, which then has all of its pieces.
pub(super) async fn seal(
    batches: &dyn BatchQueue,
    sender: &Sender,
    id: &BatchId,
) -> CommandResult {
    let sealed = sender.repeat(async || batches.seal(id).await).await;
    let sealed = sealed.map_err(|unsent| failed(id, "sealed", STAYS_OPEN, &unsent));
    known(id, sealed?).map(drop)
}

/// The failure of a call that was not repeated any more. `what` would have happened to the
/// batch.
fn failed(id: &BatchId, what: &str, not: &str, unsent: &Unsent) -> Failure {
    let why = explain(&unsent.error);
    Failure::Failed(match unsent.happened {
        Effect::No => format!("the batch {id} was not {not}: {why}"),
        _ => format!(
            "it is not known whether the batch {id} was {what}: {why}; look with `relq \
             batch status {id}`"
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use relq::{
        Error, Queue,
        batch::BatchStatus,
        error::{ErrorContext, Operation},
    };
    use relq_conformance::{
        async_trait,
        overrides::{Override, Right},
    };

    use super::*;
    use crate::{interrupts::Interrupts, sample_queues::overridden_queue};

    /// Carries out each call, and loses the reply to the first one of each kind.
    #[derive(Default)]
    struct LosesFirstReplies(Mutex<Vec<Operation>>);

    impl LosesFirstReplies {
        fn reply<T>(&self, operation: Operation, reply: T) -> Result<T, Error> {
            let mut lost = self.0.lock().expect("no test panics while it is held");
            if lost.contains(&operation) {
                return Ok(reply);
            }
            lost.push(operation);
            let at = ErrorContext { backend: "mine", operation };
            Err(Error::Interrupted { at, source: "the test says so".into() })
        }
    }

    #[async_trait]
    impl Override for LosesFirstReplies {
        async fn batch(
            &self,
            right: &Right,
            batch: &BatchId,
        ) -> Result<Option<BatchStatus>, Error> {
            self.reply(Operation::ReadBatch, right.batches().batch(batch).await?)
        }

        async fn create(
            &self,
            right: &Right,
            batch: &NewBatch,
        ) -> Result<Created, Error> {
            self.reply(Operation::CreateBatch, right.batches().create(batch).await?)
        }

        async fn add(
            &self,
            right: &Right,
            batch: &BatchId,
            pieces: &[NewJob],
            token: Option<&PushToken>,
        ) -> Result<Added, Error> {
            let added = right.batches().add(batch, pieces, token).await?;
            self.reply(Operation::AddPieces, added)
        }

        async fn seal(
            &self,
            right: &Right,
            batch: &BatchId,
        ) -> Result<Option<BatchStatus>, Error> {
            self.reply(Operation::SealBatch, right.batches().seal(batch).await?)
        }
    }

    async fn queue(overrides: impl Override + 'static) -> (Arc<dyn Queue>, Sender) {
        let queue = overridden_queue(Arc::new(overrides)).await;
        (Arc::clone(&queue), Sender::new(queue, Interrupts::default()))
    }

    fn id() -> BatchId {
        BatchId::new("b").expect("it is an id")
    }

    /// B1, R4: each call of a submission loses its first reply, and the batch has each piece
    /// once and is sealed.
    #[tokio::test]
    async fn calls_without_a_reply_are_repeated_and_count_once() {
        let (queue, sender) = queue(LosesFirstReplies::default()).await;
        let batches = queue.batch_queue().expect("the backend has batches");

        create(batches, &sender, &NewBatch::new(id())).await.expect("it is created");
        add(batches, &sender, &id(), &["one".into(), "two".into()])
            .await
            .expect("they are added");
        seal(batches, &sender, &id()).await.expect("it is sealed");

        let status =
            batches.batch(&id()).await.expect("answered").expect("it is there");
        assert_eq!((status.total, status.state.as_str()), (2, "sealed"));
    }

    /// A batch that another client has created between the look and the call is not taken for
    /// that of an earlier try.
    #[tokio::test]
    async fn a_batch_of_another_client_is_not_taken() {
        /// Another client is faster than the first try, which certainly does nothing.
        #[derive(Default)]
        struct OvertakenOnce(Mutex<bool>);

        #[async_trait]
        impl Override for OvertakenOnce {
            async fn create(
                &self,
                right: &Right,
                batch: &NewBatch,
            ) -> Result<Created, Error> {
                let made = right.batches().create(batch).await?;
                let was_overtaken = std::mem::replace(
                    &mut *self.0.lock().expect("no test panics while it is held"),
                    true,
                );
                if was_overtaken {
                    return Ok(made);
                }
                let operation = Operation::CreateBatch;
                let at = ErrorContext { backend: "mine", operation };
                Err(Error::Unavailable { at, source: "the test says so".into() })
            }
        }
        let (queue, sender) = queue(OvertakenOnce::default()).await;
        let batches = queue.batch_queue().expect("the backend has batches");

        let created = create(batches, &sender, &NewBatch::new(id())).await;

        let Err(Failure::Failed(message)) = created else { panic!("{created:?}") };
        assert_eq!(message, "there is a batch b already");
    }

    /// R21: a call that may have taken effect is not reported as one that did nothing.
    #[test]
    fn a_call_that_may_have_happened_says_so() {
        for (happened, words) in [
            (Effect::No, "the batch b was not sealed, and stays open until"),
            (Effect::Maybe, "it is not known whether the batch b was sealed: "),
            (Effect::Yes, "it is not known whether the batch b was sealed: "),
        ] {
            let at = ErrorContext { backend: "mine", operation: Operation::SealBatch };
            let error = Error::Unavailable { at, source: "the test says so".into() };
            let failure =
                failed(&id(), "sealed", STAYS_OPEN, &Unsent { error, happened });
            let Failure::Failed(message) = failure else { panic!("{failure:?}") };
            assert!(message.starts_with(words), "{message}");
        }
    }
}
