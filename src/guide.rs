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

/// A module whose documentation is that file. Its examples run with the tests if their
/// features are on. (A condition of the module itself would appear on its page.)
#[rustfmt::skip] // It moves the attribute away from its module.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[cfg_attr(
            any(not(doctest), all(feature = "json", feature = "sqlite-unbundled")),
            doc = include_str!($file)
        )]
        pub mod $name {}
    };
}

page!(choose, "guide/choose.md");
page!(push, "guide/push.md");
page!(work, "guide/work.md");
page!(retry, "guide/retry.md");
page!(unique, "guide/unique.md");
page!(schedule, "guide/schedule.md");
page!(batches, "guide/batches.md");
page!(test, "guide/test.md");
page!(deploy, "guide/deploy.md");
page!(backend, "guide/backend.md");
