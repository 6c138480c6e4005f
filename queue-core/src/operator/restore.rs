//! The call that stores jobs as they were in a queue (R34).

use async_trait::async_trait;

use super::JobView;
use crate::{Error, Operator, outcome::Pushed};

/// A queue that stores jobs as they were, in this queue or another one, of any backend
/// (R34).
///
/// [`Operator::restore_queue`] returns this trait for a queue of any type.
///
/// ```
/// use std::num::NonZeroU32;
/// use relq_core::{Error, Operator, operator::{JobState, PeekRequest, RestoreQueue}};
///
/// /// Copies the dead jobs of a queue that is at rest. If it was stopped, it is repeated.
/// async fn copy_dead(from: &dyn Operator, to: &dyn RestoreQueue) -> Result<(), Error> {
///     let hundred = NonZeroU32::new(100).expect("not zero");
///     let mut ask = PeekRequest::new(JobState::Dead, hundred);
///     loop {
///         let page = from.peek(&ask).await?;
///         to.restore(&page.jobs).await?;
///         let Some(next) = page.next else { return Ok(()) };
///         ask = ask.after(next);
///     }
/// }
/// ```
#[async_trait]
pub trait RestoreQueue: Operator {
    /// Stores jobs as [`Operator::peek`] shows them: ready, scheduled or dead, with their
    /// attempts and their last errors. Returns a result for each, in order. A job whose id
    /// is known is left as it is ([`Pushed::Duplicate`]), so the call can be repeated.
    ///
    /// A call of many or large jobs is done in steps (R21), each of which stores all of its
    /// jobs or none. After an error whose [`effect`](Error::effect) is not
    /// [`No`](crate::error::Effect::No), some jobs may be stored.
    ///
    /// # Errors
    /// Nothing was sent then: [`Error::Invalid`] for a job that cannot be restored (R34)
    /// or that breaks a limit, and for more jobs than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call);
    /// [`Error::Unsupported`] for an option that is not supported.
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error>;
}
