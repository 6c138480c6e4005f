//! The contract of a reliable queue: one trait for workers, one for operators, the
//! types of their calls, and the rules that every backend keeps.
//!
//! This crate depends on no store and on no async runtime. A backend implements
//! [`ReliableQueue`] and [`Operator`]; applications call them through
//! [`ReliableQueueExt`] and the worker crate. A backend that has batches implements
//! [`BatchQueue`], too, one that has schedules
//! [`ScheduleQueue`](schedule::ScheduleQueue), one that keeps results of jobs
//! [`ResultQueue`](results::ResultQueue), one that finds jobs by their ids
//! [`InspectQueue`](operator::InspectQueue), and one that stores jobs as they were in another
//! queue [`RestoreQueue`](operator::RestoreQueue). A job can [follow](followers) another one.
//!
//! ```text
//!  push            claim            settle: Done, Discard
//! ------> ready ----------> leased -----------------------> gone
//!    |      ^ ^               | |
//!    |      | | give back,    | | settle: Dead, or out of
//!    |      | | lease expired | | attempts
//!    |      | +---------------+ +-----------------------> dead
//!    v      | due*            | settle: Retry, Postpone      |
//!  scheduled <----------------+                              |
//!           ^ redrive                                        |
//!           +------------------------------------------------+
//!  * or the job that it follows is done
//! ```
//!
#![doc = include_str!("../CONTRACT.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod batch;
pub mod capabilities;
mod claim;
pub mod environment;
pub mod error;
mod ext;
pub mod followers;
mod hash;
mod job;
pub mod limits;
mod name;
pub mod operator;
pub mod outcome;
mod queue;
mod queue_error;
pub mod results;
pub mod schedule;
mod settlement;
mod stats;
pub mod unique;

pub use bytes::Bytes;

// CONTRACT.md, which is this crate's documentation, links to these names.
#[cfg(doc)]
use crate::{
    batch::{BatchId, BatchPriority, BatchQueue},
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    environment::Environment,
    error::Effect,
    operator::{InspectQueue, JobLookup, RestoreQueue},
    outcome::{DuplicateOf, Extended, Pushed},
    results::{JobHandle, JobResult, ResultQueue},
    schedule::ScheduleQueue,
    unique::{OnDuplicate, UniqueKey},
};

pub use claim::{ClaimRequest, Delivery, Receipt, WorkerId};
pub use ext::ReliableQueueExt;
pub use hash::fnv1a;
pub use job::{Headers, JobId, NewJob, Priority, PushToken};
pub use name::QueueName;
pub use queue::{Operator, Queue, ReliableQueue};
pub use queue_error::Error;
pub use settlement::{Disposition, Settlement};
pub use stats::Stats;
