//! The check that comes before the first write to any part (R25). On Redis it writes the
//! marker of part 0, which holds the number of parts.
//!
//! After a call of a part has failed, that part may have connected again, and the check
//! is made again before the next write. If part 0 cannot be reached then, the other parts
//! go on, because the check has succeeded before, on this handle or on one from which it
//! was opened.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use relq_core::{Error, error::Effect};

use crate::health::Health;

/// A function that must have succeeded before anything is written to any part.
pub type BeforeFirstWrite =
    Arc<dyn Fn() -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

/// The part that the check is about.
const FIRST: usize = 0;

/// The check, and whether it is due.
pub(crate) struct WriteCheck {
    check: Option<BeforeFirstWrite>,
    /// Whether the check has ever succeeded on any of the handles.
    was_passed: Arc<AtomicBool>,
    is_due: AtomicBool,
}

/// A check that is not done. When the value is dropped, the check is due again, also if
/// the caller drops the future of its call (R22).
struct Unfinished<'a>(&'a WriteCheck);

impl WriteCheck {
    pub(crate) fn new(check: Option<BeforeFirstWrite>) -> Self {
        Self { check, was_passed: Arc::default(), is_due: AtomicBool::new(true) }
    }

    /// The same check for another handle, on which it is due.
    ///
    /// The handles share whether the check has ever succeeded. A worker opens its second
    /// handle before its first write, and must not lose the leases of the other parts if
    /// part 0 fails before the first heartbeat (R10).
    pub(crate) fn another(&self) -> Self {
        let was_passed = Arc::clone(&self.was_passed);
        Self { was_passed, ..Self::new(self.check.clone()) }
    }

    /// Requires the check again before the next write, because a call to a part, or the
    /// check itself, has failed.
    pub(crate) fn set_due(&self) {
        self.is_due.store(true, Ordering::Release);
    }

    /// Makes the check if it is due.
    ///
    /// # Errors
    /// The error of the check. The caller has not begun its own call then.
    pub(crate) async fn pass(&self, health: &Health) -> Result<(), Error> {
        let Some(check) = &self.check else { return Ok(()) };
        if !self.is_due.load(Ordering::Acquire) {
            return Ok(());
        }
        let was_passed = self.was_passed.load(Ordering::Acquire);
        if was_passed && !health.is_up(FIRST) {
            return Ok(());
        }
        // Before it has succeeded once, the check stays due, so that no other task writes
        // meanwhile.
        self.is_due.store(!was_passed, Ordering::Release);
        let unfinished = Unfinished(self);
        let began = health.now();
        let checked = check().await;
        if checked.is_ok() {
            std::mem::forget(unfinished);
            if !self.was_passed.swap(true, Ordering::AcqRel) {
                self.is_due.store(false, Ordering::Release);
            }
            return Ok(());
        }
        drop(unfinished);
        let took = health.now().saturating_sub(began);
        let is_outage = health.is_outage(FIRST, &checked, took);
        if is_outage && was_passed { Ok(()) } else { checked }
    }

    /// Whether it is unknown, after this error, whether the check was done.
    pub(crate) fn is_doubtful(error: &Error) -> bool {
        error.effect() != Effect::No
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.set_due();
    }
}

impl fmt::Debug for WriteCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteCheck")
            .field("is_due", &self.is_due)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::atomic::AtomicU32,
    };

    use futures_util::FutureExt as _;
    use relq_core::environment::Environment;

    use super::*;

    /// R25, R22: a worker gives up a call after a time limit, and an application may drop
    /// any future.
    #[test]
    fn a_check_whose_future_was_dropped_is_made_again() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        // The second call has no reply.
        let check: BeforeFirstWrite =
            Arc::new(move || match counted.fetch_add(1, Ordering::Relaxed) {
                1 => pending().boxed(),
                _ => ready(Ok(())).boxed(),
            });
        let check = WriteCheck::new(Some(check));
        let health = Health::new(1, Environment::default());
        let pass = || check.pass(&health).now_or_never();

        assert!(pass().is_some_and(|passed| passed.is_ok()), "the first write");
        check.set_due();
        assert!(pass().is_none(), "the check has no reply, and its future is dropped");
        assert!(pass().is_some_and(|passed| passed.is_ok()), "the next write");

        assert_eq!(calls.load(Ordering::Relaxed), 3);
    }

    /// R25: until the check has succeeded once, no task writes without it.
    #[test]
    fn a_task_does_not_write_while_another_makes_the_first_check() {
        let check: BeforeFirstWrite =
            Arc::new(|| pending::<Result<(), Error>>().boxed());
        let check = WriteCheck::new(Some(check));
        let health = Health::new(1, Environment::default());
        let mut first = Box::pin(check.pass(&health));
        assert!((&mut first).now_or_never().is_none(), "the first check has no reply");

        let second = check.pass(&health).now_or_never();

        assert!(
            second.is_none(),
            "R25: the second task writes before the check is made"
        );
    }
}
