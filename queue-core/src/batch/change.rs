//! A change of the options of an existing batch.

use std::num::NonZeroU32;

use super::BatchPriority;

/// A change of a batch's options. Options that are not set stay as they are.
///
/// ```
/// use relq_core::batch::{BatchPriority, Change};
///
/// let change = Change::default().priority(BatchPriority::LOWEST).limit(None);
/// assert_eq!(change.limit, Some(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Change {
    /// The new priority.
    pub priority: Option<BatchPriority>,
    /// The new limit; `Some(None)` removes the limit. A lower limit does not revoke
    /// leases: it takes effect when enough pieces have ended (B3).
    pub limit: Option<Option<NonZeroU32>>,
}

impl Change {
    /// Sets the new priority.
    #[must_use]
    pub fn priority(mut self, priority: BatchPriority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the new limit; `None` removes the limit.
    #[must_use]
    pub fn limit(mut self, limit: Option<NonZeroU32>) -> Self {
        self.limit = Some(limit);
        self
    }
}
