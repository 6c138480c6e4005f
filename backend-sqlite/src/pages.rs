//! Calls that take several transactions, one for each step: how many jobs a step handles,
//! and what a failure says if an earlier step was committed (R21).

use relq_core::ClaimRequest;

use crate::failure::Failure;

/// How many of the jobs, counted from the first, one step of a call handles (R21): at most
/// `most`, and about as many bytes as a claim returns, or one job.
pub(crate) fn step_of<T>(
    jobs: &[T],
    most: usize,
    bytes_of: impl Fn(&T) -> usize,
) -> usize {
    let mut bytes = 0;
    let has_room = |job: &&T| {
        let had_room = bytes < ClaimRequest::MAX_BYTES;
        bytes += bytes_of(job);
        had_room
    };
    jobs.iter().take(most).take_while(has_room).count()
}

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
