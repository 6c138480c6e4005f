//! Reliable queues with pluggable backends: a claimed job is leased, and it comes back
//! if it is not settled while the lease runs.
//!
//! # In ten lines
//!
//! [`connect`] picks the backend by its URL. A producer pushes; a worker claims,
//! works and settles.
//!
//! ```
//! use std::time::Duration;
//! use relq::{ClaimRequest, QueueName, ReliableQueueExt, WorkerId};
//! use relq::{environment::Environment, outcome::Settled};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "sqlite-unbundled")]
//! # {
//! let queue = relq::connect("sqlite::memory:", &QueueName::new("emails")?).await?;
//! queue.push_one("welcome, anna".into()).await?;
//!
//! let me = WorkerId::of_this_process(Environment::default().random());
//! let ask = ClaimRequest::new(me, Duration::from_secs(30));
//! let job = queue.claim_one(&ask).await?.expect("one job was pushed");
//! assert_eq!(&job.payload[..], b"welcome, anna");
//! assert_eq!(queue.ack(&job.receipt).await?, Settled::Applied);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! An application rarely claims by hand: the [`worker`] does it, with slots,
//! heartbeats, retries and a clean shutdown.
//!
//! # How to
//!
//! The [`guide`] has a page for each task: [choose a backend](guide::choose),
//! [push](guide::push), [work](guide::work), [kinds of job](guide::kinds),
//! [layers of tower](guide::layers), [retry](guide::retry), [unique jobs](guide::unique),
//! [delays](guide::schedule), [recurring jobs](guide::cron), [batches](guide::batches),
//! [results and progress](guide::results), [jobs that follow others](guide::followers),
//! [events, metrics and traces](guide::observe), [tests](guide::test),
//! [deployment](guide::deploy), [coming from Sidekiq, asynq or apalis](guide::switch), and
//! [a backend of your own](guide::backend).
//!
//! # What is promised
//!
//! *At least once.* After a successful push the job is in the store until a worker
//! settles it, whichever process dies in between (R1). A job can run twice: when a
//! worker dies or stops after the work and before the settlement, or when a worker loses
//! its lease. So the work must be safe to repeat. The numbered rules are in the
//! documentation of `relq-core`.
//!
//! # Which backend
//!
//! A file (`sqlite`), or Redis in one of five patterns (`zset`, on by default,
//! `processing-list`, `stream`, `circular`, `keyspace`): each is a feature of this crate,
//! and the URL picks one. [Choose a backend](guide::choose) has the URLs and all features.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connect;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "redis")]
pub mod redis;
pub mod store;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;

#[doc(inline)]
pub use relq_core::*;

pub use connect::{ConnectError, backends, connect, connect_existing, connect_in};

/// The worker: it claims jobs, runs a handler for each, keeps their leases alive,
/// settles the jobs and retries them.
pub mod worker {
    #[doc(inline)]
    pub use relq_worker::*;
}

/// An observer of the worker that records its events as metrics, for any recorder of the
/// facade [`metrics`](https://docs.rs/metrics).
#[cfg(feature = "metrics")]
pub mod metrics {
    #[doc(inline)]
    pub use relq_metrics::*;
}

/// The trace of a job from its push to its attempts, for
/// [OpenTelemetry](https://opentelemetry.io).
#[cfg(feature = "otel")]
pub mod otel {
    #[doc(inline)]
    pub use relq_otel::*;
}

/// Schedules: jobs that are pushed at the times of a cron expression or in fixed intervals,
/// each tick once. With the feature `schedule` it has the scheduler and the definitions of
/// `relq-schedule` besides the trait of the backends.
#[cfg(feature = "schedule")]
#[cfg_attr(docsrs, doc(cfg(feature = "schedule")))]
pub mod schedule {
    #[doc(inline)]
    pub use relq_schedule::*;
}

/// One queue that consists of several queues, its parts, as `?partitions=3` in a URL on
/// Redis opens it.
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub mod partitions {
    #[doc(inline)]
    pub use relq_partitions::*;
}

/// The backend that stores a queue in a SQLite file, without a server.
#[cfg(feature = "sqlite-unbundled")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite {
    #[doc(inline)]
    pub use relq_sqlite::*;
}

/// The backend on Redis that stores a queue in one list, which claims rotate.
#[cfg(feature = "circular")]
pub mod circular {
    #[doc(inline)]
    pub use relq_circular::*;
}

/// The backend on Redis that moves each claimed job into a list of its worker.
#[cfg(feature = "processing-list")]
pub mod processing_list {
    #[doc(inline)]
    pub use relq_processing_list::*;
}

/// The backend on Redis that uses a whole database for a queue, with a key for each
/// job.
#[cfg(feature = "keyspace")]
pub mod keyspace {
    #[doc(inline)]
    pub use relq_keyspace::*;
}

/// The backend on Redis that stores a queue in a stream with a consumer group.
#[cfg(feature = "stream")]
pub mod stream {
    #[doc(inline)]
    pub use relq_stream::*;
}

/// The backend on Redis that stores ready jobs in a list and leased jobs in a sorted
/// set.
#[cfg(feature = "zset")]
pub mod zset {
    #[doc(inline)]
    pub use relq_zset::*;
}

/// Makes the tests compile the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
