//! The kinds that a process does not run for now.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// How long a job of a paused kind waits by default before a worker looks at it again.
pub const DEFAULT_PAUSED_DELAY: Duration = Duration::from_secs(10);

/// The kinds that the workers of one [`Router`](crate::Router) do not run for now, for
/// example while a service that their handlers call is down.
///
/// The pause holds for this process only, and ends with it: workers in other processes
/// go on to run the kind. ([`Operator::pause`](relq_core::Operator::pause) pauses a
/// whole queue for all workers.) Handlers that already run are not stopped.
///
/// A worker claims jobs of every kind. It postpones those of a paused kind, which counts
/// no attempt (R26), and claims them again after
/// [a delay](crate::Router::postpone_paused). So while a kind is paused, each of its jobs
/// costs the store a claim and a settlement per delay, and the jobs lose their order.
/// [`Worker::run_until_empty`](crate::Worker::run_until_empty) waits for postponed jobs
/// as for all scheduled jobs.
///
/// ```
/// use relq_worker::{Failure, Job, Router};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail { to: String }
///
/// impl Job for SendEmail {
///     const KIND: &'static str = "send-email";
/// }
///
/// let router: Router = Router::new().job(async |email: SendEmail| {
///     println!("to {}", email.to);
///     Ok::<_, Failure>(())
/// });
/// let paused = router.paused_kinds(); // for example for the pages of an administrator
/// paused.pause(SendEmail::KIND);
/// assert_eq!(paused.list(), ["send-email"]);
/// paused.resume(SendEmail::KIND);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PausedKinds(Arc<RwLock<BTreeSet<String>>>);

impl PausedKinds {
    /// Pauses the kind of this name. A kind without a handler may be paused too.
    pub fn pause(&self, kind: impl Into<String>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(kind.into());
    }

    /// Ends the pause of the kind. Jobs that were postponed run after their delay.
    pub fn resume(&self, kind: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(kind);
    }

    /// Whether the kind is paused.
    pub fn is_paused(&self, kind: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(kind)
    }

    /// The names of the paused kinds, in the order of the alphabet.
    pub fn list(&self) -> Vec<String> {
        let paused = self.0.read().unwrap_or_else(PoisonError::into_inner);
        paused.iter().cloned().collect()
    }
}
