//! Failures of calls that take several transactions: an earlier one may be committed
//! when a later one fails (R21).

use crate::failure::Failure;

/// Whether an earlier page of a call was committed. If so, the error of a later page
/// must say that the call was done in part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    /// No page of the call was committed so far.
    #[default]
    Undone,
    /// At least one page of the call was committed.
    Begun,
}

impl Pages {
    /// Records the result of the next page. If this page failed after an earlier one
    /// was committed, the returned failure says that the call was done in part.
    pub(crate) fn then<T>(&mut self, page: Result<T, Failure>) -> Result<T, Failure> {
        match (page, *self) {
            (Ok(done), _) => {
                *self = Self::Begun;
                Ok(done)
            }
            (Err(failure), Self::Undone) => Err(failure),
            (Err(failure), Self::Begun) => Err(failure.in_part()),
        }
    }
}
