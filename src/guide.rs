//! How to do each task with relq, one page a task.
//!
//! Most pages can be read alone; [`push`] and [`work`] come first. The examples run on
//! SQLite in memory, and the same code runs on any backend: only the URL differs. The
//! code of a page is compiled and run with the tests.
//!
//! A number such as [R4](relq_core#no-loss-no-changes) is a rule of the contract, which
//! every backend keeps. The rules are on the front page of [`relq_core`].

// The pages are documentation only: an application that depends on relq does not
// compile this module.

// The links of the pages.
#[cfg(doc)]
use crate::{
    ClaimRequest, Error, NewJob, Operator, Priority, PushToken, ReliableQueue,
    ReliableQueueExt,
    batch::{BatchPriority, BatchQueue, NewBatch, OnComplete},
    capabilities::{Capabilities, Capability},
    connect, connect_in,
    environment::{Clock, Environment},
    error::{Effect, RetryAdvice},
    outcome::Pushed,
    unique::OnDuplicate,
    worker::{Failure, JobContext, RetryPolicy, Worker},
};

#[doc = include_str!("guide/push.md")]
pub mod push {}

#[doc = include_str!("guide/work.md")]
pub mod work {}

#[doc = include_str!("guide/retry.md")]
pub mod retry {}

#[doc = include_str!("guide/unique.md")]
pub mod unique {}

#[doc = include_str!("guide/schedule.md")]
pub mod schedule {}

#[doc = include_str!("guide/batches.md")]
pub mod batches {}

#[doc = include_str!("guide/test.md")]
pub mod test {}

#[doc = include_str!("guide/deploy.md")]
pub mod deploy {}

#[doc = include_str!("guide/backend.md")]
pub mod backend {}
