//! Calls of several transactions: one may be committed although a later one is not
//! (R21).

use crate::failure::Failure;

/// Whether earlier pages of a call were committed. The failure of a later page must say
/// so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    /// No page was committed so far.
    #[default]
    Undone,
    /// A page was committed.
    Begun,
}

impl Pages {
    /// Adds the result of the next page. Returns its failure as a failure of the whole
    /// call: if an earlier page was committed, the call happened in part, whatever this
    /// failure says.
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
