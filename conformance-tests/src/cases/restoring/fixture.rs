//! The jobs that the cases of restoring use.

use std::time::Duration;

use relq_core::{
    environment::Timestamp,
    operator::{JobState, JobView, StateDetail},
};

use crate::{
    cases::times::now,
    harness::{
        actor::Actor,
        checks::{attempts, id, key},
        restorer::but,
        store::Store,
    },
};

/// How long before the case the jobs were in another queue.
const DAY: Duration = Duration::from_secs(86_400);

/// A moment of the day before, by the store's clock.
pub(super) fn yesterday(store: &Store) -> Timestamp {
    let ago = i64::try_from(DAY.as_millis()).expect("a small number");
    Timestamp::from_unix_ms(now(store).unix_ms() - ago)
}

/// A ready job whose payload is its id. It was never delivered.
pub(super) fn was_ready(name: &str) -> JobView {
    JobView::new(Some(id(name)), name.to_owned(), StateDetail::Ready)
}

/// A job that is scheduled until that time, and otherwise like [`was_ready`].
pub(super) fn was_scheduled(name: &str, due: Timestamp) -> JobView {
    but(was_ready(name), |it| it.detail = StateDetail::Scheduled { due })
}

/// A job that died at that time after two attempts.
pub(in crate::cases) fn was_dead(name: &str, since: Timestamp) -> JobView {
    let reason = format!("{name} was too hard");
    let mut job = but(was_ready(name), |it| {
        it.detail = StateDetail::Dead { reason, since };
        it.attempt = 2;
    });
    job.last_error = Some(format!("{name} failed"));
    job
}

/// The same job with every field that a backend with all options keeps.
pub(super) fn with_all(job: JobView, store: &Store) -> JobView {
    let mut job = job;
    job.attempt = 3;
    job.max_attempts = attempts(7);
    job.unique = job.id.as_ref().map(|id| key(id.as_str()));
    job.expires_at = Some(now(store).plus(DAY));
    job.enqueued_at = Some(yesterday(store));
    job.headers.set("name", "value");
    job.headers.set("a", "");
    job.last_error = Some("it failed: é\u{0}\r\n$5\r\n".to_owned());
    job.lease = Some(2 * DAY);
    job.keep_result = Some(DAY);
    job
}

impl Actor {
    /// Asserts that the store lists exactly these jobs in a state, in this order.
    pub(super) async fn lists(&self, state: JobState, wanted: &[JobView]) {
        assert_eq!(self.list(state, 100).await, wanted, "R34");
    }
}
