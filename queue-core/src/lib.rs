//! The contract of a reliable queue: one trait for workers, one for operators, the
//! types of their calls, and the rules that every backend keeps.
//!
//! This crate depends on no store and on no async runtime. A backend implements
//! [`ReliableQueue`] and [`Operator`]; applications call them through
//! [`ReliableQueueExt`] and the worker crate. A backend that has batches implements
//! [`BatchQueue`], too.
//!
//! ```text
//!  push            claim            settle: Done, Discard
//! ------> ready ----------> leased -----------------------> gone
//!    |      ^ ^               | |
//!    |      | | give back,    | | settle: Dead, or out of
//!    |      | | lease expired | | attempts
//!    |      | +---------------+ +-----------------------> dead
//!    v      | due             | settle: Retry                |
//!  scheduled <----------------+                              |
//!           ^ redrive                                        |
//!           +------------------------------------------------+
//! ```
//!
#![doc = include_str!("../CONTRACT.md")]

mod batch;
mod capabilities;
mod claim;
mod environment;
mod error;
mod ext;
mod job;
mod name;
mod operator;
mod outcome;
mod queue;
mod stats;

pub use bytes::Bytes;

pub use batch::{
    Added, BatchId, BatchOutcome, BatchPriority, BatchQueue, BatchState, BatchStatus,
    Change, Created, NewBatch, OnComplete,
};
pub use capabilities::{
    Capabilities, Capability, LeaseScope, Limits, MAX_JOBS_PER_CALL, Order,
    RecoveryBound,
};
pub use claim::{ClaimBytes, ClaimRequest, Delivery, Receipt, WorkerId};
pub use environment::{
    Clock, Environment, OsRandomness, Randomness, SystemClock, Timestamp,
};
pub use error::{BoxError, Effect, Error, ErrorContext, Operation, RetryAdvice};
pub use ext::ReliableQueueExt;
pub use job::{
    DEDUPLICATION_WINDOW, DEFAULT_MAX_ATTEMPTS, Headers, JobId, MAX_DURATION, NewJob,
    OnDuplicate, Priority, PushToken, Unique, UniqueKey,
};
pub use name::{InvalidName, QueueName};
pub use operator::{
    Audit, Cancelled, JobState, JobView, Operator, Page, PageCursor, PeekRequest,
    Queue, Redriven, Selection, StateDetail,
};
pub use outcome::{
    Disposition, DuplicateOf, Extended, MAX_ERROR_BYTES, Pushed, Recovered, Released,
    Settled, SettledAndClaimed, Settlement,
};
pub use queue::ReliableQueue;
pub use stats::Stats;
