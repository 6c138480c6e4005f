//! The acts on batches that faults are injected into.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Error, NewJob, PushToken,
    batch::{Added, BatchPriority, BatchQueue, Change},
};

use crate::sweep::{
    scenes::{batch, telling},
    victim::Victim,
};

type Done = Result<(), Error>;

fn batches(victim: &Victim) -> &dyn BatchQueue {
    victim.queue.batch_queue().expect("the backend supports batches")
}

/// All calls of a producer, which it may repeat from the start (B10).
pub(in crate::sweep) async fn submit_batch(victim: Victim) -> Done {
    batches(&victim).create(&telling()).await?;
    add(&victim).await?;
    batches(&victim).seal(&batch()).await.map(drop)
}

pub(in crate::sweep) async fn add_pieces(victim: Victim) -> Done {
    add(&victim).await
}

async fn add(victim: &Victim) -> Done {
    let token = PushToken::new("call").expect("the token is valid");
    let pieces = ["a", "b", "c"].map(NewJob::new);
    let added = batches(victim).add(&batch(), &pieces, Some(&token)).await?;
    assert!(matches!(added, Added::Stored(_)), "{added:?}");
    Ok(())
}

pub(in crate::sweep) async fn seal_batch(victim: Victim) -> Done {
    batches(&victim).seal(&batch()).await.map(drop)
}

pub(in crate::sweep) async fn cancel_batch(victim: Victim) -> Done {
    batches(&victim).cancel_batch(&batch()).await.map(drop)
}

pub(in crate::sweep) async fn alter_batch(victim: Victim) -> Done {
    let change = Change::default().priority(BatchPriority::HIGHEST).limit(None);
    batches(&victim).alter(&batch(), &change).await.map(drop)
}

pub(in crate::sweep) async fn look_at_batches(victim: Victim) -> Done {
    batches(&victim).batch(&batch()).await?;
    batches(&victim).list_batches(None, NonZeroU32::MIN).await?;
    batches(&victim).wait_batch(&batch(), Duration::ZERO).await.map(drop)
}
