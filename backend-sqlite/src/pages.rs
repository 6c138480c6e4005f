//! Calls of several transactions: one may be done though a later one is not (R21).

use crate::failure::Failure;

/// What became of the pages of one call, as far as the failure of one has to tell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Nothing was changed so far.
    #[default]
    Undone,
    /// One of them was committed.
    Begun,
}

impl Pages {
    /// Adds the next page, and tells its failure as that of the whole call: once begun,
    /// the call happened in part, whatever this page says of itself.
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
