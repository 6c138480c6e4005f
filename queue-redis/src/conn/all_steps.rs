//! A call of several steps goes on when too few replicas confirm one of them in time
//! (`?replicas=N`).
//!
//! ```text
//!  step 1   done, and too few replicas have it   noted, and the call goes on
//!  step 2   done; it does not wait, because the call has failed already
//!  the end  NotReplicated: every step is done, as its message says
//! ```
//!
//! If the call ended at the first such step, a repetition would end there again for as
//! long as the replicas are away, and the later steps would never be taken.

use std::{cell::RefCell, future::Future};

use relq_core::{
    Error,
    error::{ErrorContext, Operation},
};

tokio::task_local! {
    /// Why a step of the call that this task makes is not confirmed; `None` if all are.
    static SHORTFALL: RefCell<Option<Shortfall>>;
}

/// Why a step is not confirmed, and the backend whose step it is.
struct Shortfall {
    backend: &'static str,
    why: String,
}

/// Takes all steps of a call of `operation`, also if too few replicas have one of them in
/// time. The steps must be sent by the task that awaits this future.
///
/// # Errors
/// The error of `steps`. [`Error::NotReplicated`] if all steps are done and one was not
/// confirmed.
pub async fn all_steps<T>(
    operation: Operation,
    steps: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let taking = async {
        let value = steps.await?;
        match SHORTFALL.with(RefCell::take) {
            None => Ok(value),
            Some(Shortfall { backend, why }) => {
                let at = ErrorContext { backend, operation };
                Err(Error::NotReplicated { at, source: why.into() })
            }
        }
    };
    SHORTFALL.scope(RefCell::default(), taking).await
}

/// Notes that a step of a call is done and not confirmed, so that the call goes on.
///
/// # Errors
/// The reason, if no [`all_steps`] is around the call: then it is the call's own error.
pub(super) fn note(backend: &'static str, why: String) -> Result<(), String> {
    if SHORTFALL.try_with(|_| ()).is_err() {
        return Err(why);
    }
    SHORTFALL.with(|shortfall| shortfall.replace(Some(Shortfall { backend, why })));
    Ok(())
}

/// Whether an earlier step of the call was not confirmed, so that the others need not
/// wait for replicas.
pub(super) fn has_shortfall() -> bool {
    SHORTFALL.try_with(|shortfall| shortfall.borrow().is_some()).unwrap_or(false)
}
