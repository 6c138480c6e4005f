//! The calls that create, read and change batches. Each runs in its own transaction.

use relq_core::{
    batch::{Added, BatchId, BatchState, BatchStatus, Change, Created, NewBatch},
    outcome::Pushed,
};

use super::{completion, maintenance};
use crate::call::Call;
use crate::failure::Failure;
use crate::push::{Push, Target};
use crate::store::Store;

/// Creates an open batch.
pub(super) struct Create {
    pub(super) batch: NewBatch,
}

impl Call for Create {
    type Answer = Created;

    fn bytes(&self) -> usize {
        self.batch.on_complete.as_ref().map_or(0, |it| it.job.total_bytes())
    }

    fn run(&self, store: &Store<'_>) -> Result<Created, Failure> {
        let Some(key) = store.add_batch(&self.batch)? else {
            return Ok(Created::Exists);
        };
        if let Some(on_complete) = &self.batch.on_complete {
            store.add_completion(key, &completion::row(on_complete))?;
        }
        Ok(Created::Stored)
    }
}

/// Adds pieces to a batch. The caller has already validated the pieces.
pub(super) struct Add {
    pub(super) batch: BatchId,
    pub(super) push: Push,
}

impl Call for Add {
    type Answer = Added;

    fn weight(&self) -> usize {
        self.push.weight()
    }

    fn bytes(&self) -> usize {
        self.push.bytes()
    }

    /// Adds the pieces. A repeated call with the same token gets the results of the
    /// first one, even if the batch has completed since (R4).
    fn run(&self, store: &Store<'_>) -> Result<Added, Failure> {
        if let Some(answers) = self.push.first_answers(store, Some(&self.batch))? {
            return Ok(Added::Stored(answers));
        }
        match store.find_batch(&self.batch)? {
            None => Ok(Added::Unknown),
            Some((key, BatchState::Open)) => {
                let target = Target::Batch(key, &self.batch);
                let pushed = self.push.store_all(store, target)?;
                let is_new = |one: &&Pushed| matches!(one, Pushed::Stored(_));
                store.count_added(key, pushed.iter().filter(is_new).count())?;
                Ok(Added::Stored(pushed))
            }
            Some((_, state)) => Ok(Added::Closed(state)),
        }
    }
}

/// Seals a batch. After that, no pieces can be added to it.
pub(super) struct Seal {
    pub(super) batch: BatchId,
}

impl Call for Seal {
    type Answer = Option<BatchStatus>;

    fn run(&self, store: &Store<'_>) -> Result<Option<BatchStatus>, Failure> {
        store.seal_batch(&self.batch)?;
        maintenance::after_pieces_ended(store)?;
        store.read_batch(&self.batch)
    }
}

/// Reads the status of one batch.
pub(super) struct Read {
    pub(super) batch: BatchId,
}

impl Call for Read {
    type Answer = Option<BatchStatus>;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        store.read_batch(&self.batch).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        store.read_batch(&self.batch)
    }
}

/// Reads the status of one page of batches, in the order of their ids.
pub(super) struct List {
    pub(super) after: Option<BatchId>,
    pub(super) limit: u32,
}

impl Call for List {
    type Answer = Vec<BatchStatus>;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        store.list_batches(self.after.as_ref(), self.limit)
    }
}

/// Cancels a batch and drops one page of its waiting pieces.
pub(super) struct CancelBatch {
    pub(super) batch: BatchId,
}

/// The result of dropping one page of a cancelled batch's pieces.
pub(super) struct CancelPage {
    pub(super) status: Option<BatchStatus>,
    /// Whether the cancelled batch still has waiting pieces, which the next page drops.
    pub(super) more: bool,
}

impl Call for CancelBatch {
    type Answer = CancelPage;

    fn run(&self, store: &Store<'_>) -> Result<CancelPage, Failure> {
        store.cancel_batch(&self.batch)?;
        let dropped = maintenance::after_cancel(store)?;
        let status = store.read_batch(&self.batch)?;
        let has_waiting = status
            .as_ref()
            .is_some_and(|it| it.state == BatchState::Cancelling && it.waiting > 0);
        // If the count says that pieces wait, but none was dropped, the count is
        // damaged: stop here, because a repeated call would never end.
        let more = has_waiting && dropped > 0;
        Ok(CancelPage { status, more })
    }
}

/// Changes the priority or the slots of a batch that has not completed.
pub(super) struct Alter {
    pub(super) batch: BatchId,
    pub(super) change: Change,
}

impl Call for Alter {
    type Answer = Option<BatchStatus>;

    fn run(&self, store: &Store<'_>) -> Result<Option<BatchStatus>, Failure> {
        store.alter_batch(&self.batch, &self.change)?;
        store.wake_claims();
        store.read_batch(&self.batch)
    }
}

/// Reads the status of a batch and the file's `data_version`, for a caller that waits
/// until the batch completes.
pub(super) struct Watch {
    pub(super) batch: BatchId,
}

/// A look at a batch by a caller that waits for it: the status of the batch, and the
/// version of the file. If the batch is not complete, the caller waits until the file
/// changes.
pub(super) struct Seen {
    pub(super) status: Option<BatchStatus>,
    /// SQLite's `data_version`, which changes when another connection writes the file.
    pub(super) version: i64,
}

impl Call for Watch {
    type Answer = Seen;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Seen>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Seen, Failure> {
        let version = store.data_version()?;
        Ok(Seen { status: store.read_batch(&self.batch)?, version })
    }
}
