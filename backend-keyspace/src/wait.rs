//! What wakes an idle claim: a notification and a recheck.
//!
//! ```text
//!  BLPOP {Q}:wake    a push, what comes back, an earlier due time, resume
//!  recheck           what some other client set by itself
//! ```
//!
//! Whoever makes a job ready leaves a token in the list, at most one. It wakes one
//! worker; a claim that leaves other jobs behind notifies again, so a push of ten jobs
//! wakes ten. A token waits for who is about to listen, so that no wake-up falls
//! between a claim that found nothing and its going to sleep.
//!
//! A message of PUBLISH would do none of that: it wakes every worker for one job, and
//! is lost on who is not listening just then. It also knows no databases, so that a
//! channel would have to name the database's number; a list is in its database.
//!
//! A bare `SET item_123 value` notifies nobody, and is found by the recheck. Who cannot
//! wait so long sends `LPUSH {Q}:wake 1` behind it.

use std::time::Duration;

/// How long a waiting claim sleeps at most before it tries again, whatever notifications
/// say. It bounds how late a bare SET is found, and what a waiter's death at the wrong
/// instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);
