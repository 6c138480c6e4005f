//! The calls of a claim loop that are under way.
//!
//! At most one claims, and at most one settles; a turn does both. So a claim that
//! waits never holds back a settlement. The futures are polled where the loop runs:
//! an answer wakes the loop itself and not a task between.

use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use queue_core::{ClaimRequest, Delivery, Error, ReliableQueue, Settled, Turn};

use crate::settling::Batch;

pub(crate) struct Calls {
    queue: Arc<dyn ReliableQueue>,
    under_way: Vec<Call>,
}

struct Call {
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
    settles: bool,
    claims: bool,
}

/// What a call answered; each half is there if the call had it.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) settled: Option<(Batch, Result<Vec<Settled>, Error>)>,
    pub(crate) claimed: Option<Result<Vec<Delivery>, Error>>,
    /// When the call was sent, by the worker's steady clock.
    pub(crate) sent: Duration,
}

impl Calls {
    pub(crate) fn new(queue: Arc<dyn ReliableQueue>) -> Self {
        Self { queue, under_way: Vec::with_capacity(2) }
    }

    pub(crate) fn max_batch(&self) -> NonZeroU32 {
        self.queue.capabilities().limits.max_batch
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.under_way.iter().any(|call| call.settles)
    }

    pub(crate) fn is_claiming(&self) -> bool {
        self.under_way.iter().any(|call| call.claims)
    }

    pub(crate) fn turn(&mut self, batch: Batch, ask: ClaimRequest, sent: Duration) {
        let queue = Arc::clone(&self.queue);
        let answer = Box::pin(async move {
            let Turn { settled, claimed } = queue.turn(&batch.settlements, &ask).await;
            Answer { settled: Some((batch, settled)), claimed: Some(claimed), sent }
        });
        self.under_way.push(Call { answer, settles: true, claims: true });
    }

    pub(crate) fn settle(&mut self, batch: Batch, sent: Duration) {
        let queue = Arc::clone(&self.queue);
        let answer = Box::pin(async move {
            let settled = queue.settle(&batch.settlements).await;
            Answer { settled: Some((batch, settled)), claimed: None, sent }
        });
        self.under_way.push(Call { answer, settles: true, claims: false });
    }

    pub(crate) fn claim(&mut self, ask: ClaimRequest, sent: Duration) {
        let queue = Arc::clone(&self.queue);
        let answer = Box::pin(async move {
            let claimed = queue.claim(&ask).await;
            Answer { settled: None, claimed: Some(claimed), sent }
        });
        self.under_way.push(Call { answer, settles: false, claims: true });
    }

    /// The next answer; never when no call is under way.
    pub(crate) async fn next_answer(&mut self) -> Answer {
        poll_fn(|context| {
            for index in 0..self.under_way.len() {
                let call = &mut self.under_way[index];
                if let Poll::Ready(answer) = call.answer.as_mut().poll(context) {
                    self.under_way.swap_remove(index);
                    return Poll::Ready(answer);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Drops a claim that still waits. What it leased unseen is given back when the
    /// worker leaves.
    pub(crate) fn drop_waiting_claim(&mut self) {
        self.under_way.retain(|call| call.settles);
    }
}
