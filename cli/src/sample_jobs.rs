//! Jobs for the tests of what is shown: no two properties of a job have the same value.

use std::{num::NonZeroU16, time::Duration};

use relq::{
    JobId, Priority, WorkerId,
    batch::BatchId,
    environment::Timestamp,
    operator::{JobView, StateDetail},
    unique::UniqueKey,
};

/// The time that is so many seconds after the begin of 1970.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(seconds * 1000)
}

/// The details of each state.
pub(crate) fn details() -> [StateDetail; 5] {
    let worker = WorkerId::new("mail-7:4711:nonce").unwrap();
    let leader = JobId::new("leader").unwrap();
    [
        StateDetail::Ready,
        StateDetail::Scheduled { due: at(11) },
        StateDetail::Following { leader, delay: Duration::from_secs(12) },
        StateDetail::Leased { worker, since: at(13), until: at(14) },
        StateDetail::Dead { reason: "it gave up".to_owned(), since: at(15) },
    ]
}

/// A job with all properties, in this state.
pub(crate) fn job(detail: StateDetail) -> JobView {
    let mut job = JobView::new(JobId::new("job-1").ok(), "the payload", detail);
    job.attempt = 2;
    job.max_attempts = NonZeroU16::new(7).unwrap();
    job.priority = Priority::new(8).unwrap();
    job.unique = UniqueKey::new("the-key").ok();
    job.expires_at = Some(at(21));
    job.enqueued_at = Some(at(22));
    job.headers = [("tenant", "acme")].into_iter().collect();
    job.last_error = Some("disk full".to_owned());
    job.batch = BatchId::new("nightly").ok();
    job.lease = Some(Duration::from_secs(23));
    job.keep_result = Some(Duration::from_secs(24));
    job
}
