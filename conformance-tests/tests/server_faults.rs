//! Tests that the tests of server faults catch bugs: each mutant here fails in one of
//! them.

use std::{marker::PhantomData, sync::Arc};

use relq_conformance::{
    Subject, async_trait,
    overrides::{OverriddenQueue, Override, Right},
    own::{Stream, Zset},
    sweep::server_faults,
};
use relq_core::{
    Disposition, Error, JobId, NewJob, PushToken, Queue, QueueName, Receipt,
    Settlement,
    batch::{Added, BatchId},
    environment::Environment,
    outcome::{Pushed, Settled},
};

/// A healthy backend in which one call is replaced by a broken one.
#[derive(Default)]
struct With<T, S = Zset>(S, PhantomData<T>);

#[async_trait]
impl<T: Override + Default + 'static, S: Subject> Subject for With<T, S> {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let opened = self.0.connect(endpoint, queue, environment).await?;
        let right = Right { queue: opened, environment: environment.clone() };
        Ok(Arc::new(OverriddenQueue::new(right, Arc::new(T::default()))))
    }
}

#[derive(Default)]
struct PushesOneByOne;

#[async_trait]
impl Override for PushesOneByOne {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        _token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut pushed = Vec::new();
        for job in jobs {
            pushed.extend(right.push(std::slice::from_ref(job), None).await?);
        }
        Ok(pushed)
    }
}

#[test]
#[should_panic(expected = "R5, all or nothing")]
fn a_power_cut_reveals_a_push_in_parts() {
    server_faults::run::<With<PushesOneByOne>>("power::every_aof_prefix");
}

#[derive(Default)]
struct AddsOneByOne;

#[async_trait]
impl Override for AddsOneByOne {
    async fn add(
        &self,
        right: &Right,
        batch: &BatchId,
        pieces: &[NewJob],
        _token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        let mut pushed = Vec::new();
        for piece in pieces {
            let piece = std::slice::from_ref(piece);
            match right.batches().add(batch, piece, None).await? {
                Added::Stored(stored) => pushed.extend(stored),
                other => return Ok(other),
            }
        }
        Ok(Added::Stored(pushed))
    }
}

#[test]
#[should_panic(expected = "R5, all or nothing")]
fn a_power_cut_reveals_pieces_that_were_added_one_by_one() {
    server_faults::run::<With<AddsOneByOne, Stream>>("power::every_aof_prefix");
}

#[derive(Default)]
struct SaysNothingWhenFull;

#[async_trait]
impl Override for SaysNothingWhenFull {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        match right.push(jobs, token).await {
            Err(Error::Full { .. }) => {
                let id = JobId::new("nowhere").expect("a valid id");
                Ok(vec![Pushed::Stored(id); jobs.len()])
            }
            answer => answer,
        }
    }
}

#[test]
#[should_panic(expected = "there is no room")]
fn a_full_server_reveals_a_push_that_stores_nothing() {
    let fault = "memory::a_full_server_is_drained_and_refuses_pushes";
    server_faults::run::<With<SaysNothingWhenFull>>(fault);
}

/// A backend with a bug: it accepts only receipts that it has returned itself, and
/// refuses those of other connections.
#[derive(Default)]
struct KnowsItsOwnReceiptsOnly(std::sync::Mutex<Vec<Receipt>>);

#[async_trait]
impl Override for KnowsItsOwnReceiptsOnly {
    async fn claim(
        &self,
        right: &Right,
        ask: &relq_core::ClaimRequest,
    ) -> Result<Vec<relq_core::Delivery>, Error> {
        let taken = right.claim(ask).await?;
        let receipts = taken.iter().map(|one| one.receipt.clone());
        self.0.lock().expect("no holder of the lock panics").extend(receipts);
        Ok(taken)
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        for one in done {
            let is_own = self
                .0
                .lock()
                .expect("no holder of the lock panics")
                .contains(&one.receipt);
            settled.push(match is_own || one.disposition != Disposition::Done {
                true => right.settle(std::slice::from_ref(one)).await?[0],
                false => Settled::LeaseLost,
            });
        }
        Ok(settled)
    }
}

#[test]
#[should_panic(expected = "LeaseLost")]
fn a_promotion_reveals_receipts_that_are_kept_in_memory() {
    let fault = "replica::a_promoted_replica_goes_on";
    server_faults::run::<With<KnowsItsOwnReceiptsOnly>>(fault);
}
