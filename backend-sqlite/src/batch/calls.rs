//! The calls of batches, each in a transaction of its own.

use relq_core::{
    batch::{Added, BatchId, BatchState, BatchStatus, Change, Created, NewBatch},
    outcome::Pushed,
};

use super::{completion, maintenance};
use crate::call::Call;
use crate::failure::Failure;
use crate::push::{Push, Target};
use crate::store::Store;

/// Creates a batch.
pub(super) struct Create {
    pub(super) batch: NewBatch,
}

impl Call for Create {
    type Answer = Created;

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

/// Adds pieces, after they were checked.
pub(super) struct Add {
    pub(super) batch: BatchId,
    pub(super) push: Push,
}

impl Call for Add {
    type Answer = Added;

    fn weight(&self) -> usize {
        self.push.weight()
    }

    /// A repeated call gets the result of the first one, whatever happened to the batch
    /// since (R4).
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

/// Seals a batch: it gets no more pieces.
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

/// Reads the status of a batch.
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

/// Reads one page of batches.
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

/// The result of one page of a cancel.
pub(super) struct CancelPage {
    pub(super) status: Option<BatchStatus>,
    /// Whether there are pieces left to drop.
    pub(super) more: bool,
}

impl Call for CancelBatch {
    type Answer = CancelPage;

    fn run(&self, store: &Store<'_>) -> Result<CancelPage, Failure> {
        store.cancel_batch(&self.batch)?;
        let dropped = maintenance::after_pieces_ended(store)?;
        let status = store.read_batch(&self.batch)?;
        let has_waiting = status
            .as_ref()
            .is_some_and(|it| it.state == BatchState::Cancelling && it.waiting > 0);
        // If nothing was dropped, the count is damaged and includes pieces that do not
        // exist: stop, instead of repeating for ever.
        let more = has_waiting && dropped > 0;
        Ok(CancelPage { status, more })
    }
}

/// Changes a batch that has not completed.
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

/// Reads the status of a batch, and the version of the file.
pub(super) struct Watch {
    pub(super) batch: BatchId,
}

/// The state of a batch as a watcher read it.
pub(super) struct Seen {
    pub(super) status: Option<BatchStatus>,
    /// Changes when another connection changes the file.
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
