//! The counts of a scheduler.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use relq_core::{outcome::Pushed, schedule::Ticked};

/// The counts of a scheduler, which can be read while it runs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SchedulerProgress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    pushed: AtomicU64,
    duplicates: AtomicU64,
    of_others: AtomicU64,
    failed_calls: AtomicU64,
}

/// The counts of a scheduler's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SchedulerSummary {
    /// The ticks whose job this scheduler pushed. A tick that too few replicas have confirmed
    /// (`?replicas=N`) counts here and as a failed call, although another scheduler may have
    /// pushed its job.
    pub pushed: u64,
    /// The ticks that this scheduler recorded and that stored no job, because another
    /// job held the unique key.
    pub duplicates: u64,
    /// The ticks that another scheduler had pushed when this one tried.
    pub of_others: u64,
    /// The calls to the store that failed.
    pub failed_calls: u64,
}

impl SchedulerProgress {
    /// The counts so far.
    pub fn summary(&self) -> SchedulerSummary {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SchedulerSummary {
            pushed: read(&self.0.pushed),
            duplicates: read(&self.0.duplicates),
            of_others: read(&self.0.of_others),
            failed_calls: read(&self.0.failed_calls),
        }
    }

    pub(crate) fn ticked(&self, ticked: &Ticked) {
        let count = match ticked {
            Ticked::Pushed(Pushed::Stored(_)) => &self.0.pushed,
            Ticked::Pushed(Pushed::Duplicate { .. }) => &self.0.duplicates,
            Ticked::NotLater => &self.0.of_others,
            Ticked::NotDue(_) | Ticked::Changed => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a tick that too few replicas have.
    pub(crate) fn not_replicated(&self) {
        self.0.pushed.fetch_add(1, Ordering::Relaxed);
        self.call_failed();
    }

    pub(crate) fn call_failed(&self) {
        self.0.failed_calls.fetch_add(1, Ordering::Relaxed);
    }
}
