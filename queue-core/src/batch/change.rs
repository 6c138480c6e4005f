//! What is to be different about a batch.

use std::num::NonZeroU32;

use super::BatchPriority;

/// What is to be different about a batch. What is not set stays.
///
/// ```
/// use relq_core::{BatchPriority, Change};
///
/// let change = Change::default().priority(BatchPriority::LOWEST).limit(None);
/// assert_eq!(change.limit, Some(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Change {
    /// The new priority.
    pub priority: Option<BatchPriority>,
    /// The new limit, of which `None` is that there is none. A lower one takes nobody's
    /// lease: it holds as soon as enough pieces have ended (B3).
    pub limit: Option<Option<NonZeroU32>>,
}

impl Change {
    /// Sets the new priority.
    #[must_use]
    pub fn priority(mut self, priority: BatchPriority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the new limit; `None` takes the limit away.
    #[must_use]
    pub fn limit(mut self, limit: Option<NonZeroU32>) -> Self {
        self.limit = Some(limit);
        self
    }
}
