//! How to do each task with relq, one page a task.
//!
//! Most pages can be read alone; [`push`] and [`work`] come first. The examples run on
//! SQLite in memory, and the same code runs on any backend: only the URL differs. The
//! code of a page is compiled and run with the tests.
//!
//! A number such as [R4](relq_core#no-loss-no-changes) is a rule of the contract, which
//! every backend keeps. The rules are on the front page of [`relq_core`].

// The pages contain only documentation. An application that depends on relq does not
// compile this module.

// The pages link to these names.
#[cfg(all(doc, feature = "json"))]
use crate::worker::{
    Enqueue, EnqueueError, FromContext, FromRef, Job, KIND_HEADER, Producer, Router,
    State,
};
#[cfg(doc)]
use crate::{
    ClaimRequest, Error, NewJob, Operator, Priority, PushToken, ReliableQueue,
    ReliableQueueExt,
    batch::{BatchPriority, BatchQueue, NewBatch, OnComplete},
    capabilities::{Capabilities, Capability},
    connect, connect_in,
    environment::{Clock, Environment},
    error::{Effect, RetryAdvice},
    followers::MAX_FOLLOWERS,
    outcome::Pushed,
    results::{JobHandle, JobResult, NoResult},
    unique::OnDuplicate,
    worker::{
        Failure, JobContext, ProgressError, Queues, RetryPolicy, SetResultError,
        Worker, observer::Observer,
    },
};

/// Defines a module whose documentation is the given file. The examples in the file run
/// with the tests if their features are on. (A condition on the module itself would
/// appear on its page.)
#[rustfmt::skip] // rustfmt would move the attribute away from its module.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[cfg_attr(
            any(
                not(doctest),
                all(
                    feature = "json",
                    feature = "push-in",
                    feature = "schedule",
                    feature = "sqlite-unbundled",
                    feature = "testing",
                    feature = "tower"
                )
            ),
            doc = include_str!($file)
        )]
        pub mod $name {}
    };
}

page!(choose, "guide/choose.md");
page!(push, "guide/push.md");
page!(work, "guide/work.md");
page!(kinds, "guide/kinds.md");
page!(layers, "guide/layers.md");
page!(retry, "guide/retry.md");
page!(unique, "guide/unique.md");
page!(schedule, "guide/schedule.md");
page!(cron, "guide/cron.md");
page!(batches, "guide/batches.md");
page!(results, "guide/results.md");
page!(followers, "guide/followers.md");
page!(observe, "guide/observe.md");
page!(test, "guide/test.md");
page!(deploy, "guide/deploy.md");
page!(switch, "guide/switch.md");
page!(backend, "guide/backend.md");
