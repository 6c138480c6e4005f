//! A worker's report on a job that it held: how the job ends or continues.

use std::time::Duration;

use crate::{Bytes, Receipt};

/// A worker's report on a job that it held: how the job ends or continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Proof of the job's lease.
    pub receipt: Receipt,
    /// How the job ends or continues.
    pub disposition: Disposition,
}

impl Settlement {
    /// Creates a settlement that applies `disposition` to the job of `receipt`.
    pub fn new(receipt: Receipt, disposition: Disposition) -> Self {
        Self { receipt, disposition }
    }
}

/// How a job that was delivered ends or continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The job succeeded and is removed (R8). The jobs that follow it become ready, or
    /// their delays begin (R30).
    Done,
    /// The job succeeded with a result. It is removed, and its result is stored in the
    /// same step, if the job keeps one (R29).
    DoneWith {
        /// The result: at most [`MAX_RESULT`](crate::results::MAX_RESULT) bytes.
        result: Bytes,
    },
    /// The job failed and is retried, or buried when this was its last attempt (R11).
    Retry {
        /// How long until the job is ready again. A delay above
        /// [`MAX_DURATION`](crate::limits::MAX_DURATION) is reduced to it, if the backend
        /// does not refuse it.
        after: Duration,
        /// Why the job failed; kept as its last error.
        error: String,
    },
    /// The job failed and is buried at once.
    Dead {
        /// Why the job failed; kept as its last error.
        error: String,
    },
    /// The job did not succeed, but it is removed anyway. The jobs that follow it are
    /// cancelled (R30).
    Discard,
    /// The job was not run, because it cannot be run now. It is scheduled, and the
    /// delivery is not counted as an attempt (R26). Its last error does not change.
    Postpone {
        /// How long until the job is ready again. A longer delay is reduced as that of
        /// [`Retry`](Self::Retry).
        after: Duration,
    },
    /// The job was not run. It goes back to the front of the queue, and the delivery is
    /// not counted as an attempt (R24).
    GiveBack,
}

impl Disposition {
    /// Whether this may make the job ready at once, so that a claim beside the settlement
    /// must run after it to find the job
    /// ([`settle_and_claim`](crate::ReliableQueue::settle_and_claim)).
    pub fn may_make_ready(&self) -> bool {
        match self {
            Self::Retry { .. } | Self::Postpone { .. } | Self::GiveBack => true,
            Self::Done | Self::DoneWith { .. } | Self::Dead { .. } | Self::Discard => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim beside a settlement that makes its job ready must find the job (R13).
    #[test]
    fn a_job_that_comes_back_may_be_ready_at_once() {
        let (after, error) = (Duration::ZERO, String::new);
        for (disposition, expected) in [
            (Disposition::Done, false),
            (Disposition::DoneWith { result: Bytes::new() }, false),
            (Disposition::Retry { after, error: error() }, true),
            (Disposition::Dead { error: error() }, false),
            (Disposition::Discard, false),
            (Disposition::Postpone { after }, true),
            (Disposition::GiveBack, true),
        ] {
            assert_eq!(disposition.may_make_ready(), expected, "{disposition:?}");
        }
    }
}
