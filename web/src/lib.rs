//! A web page for the queues of relq: it shows counts, jobs, workers, batches, schedules
//! and dead letters, and it can pause, run, cancel, retry and purge.
//!
//! [`WebPage`] makes an [`axum::Router`], which an application mounts beside its own
//! routes. The program `relq serve` serves the same page. The pages are HTML from the
//! server and work without JavaScript; only the live counts need it.
//!
//! # How a request is served
//!
//! ```text
//!  request --> host --> sign-in --> read-only? --> origin (POST) --> page
//!              421    401, 429      403            403                |
//!                                                                     v
//!  sampler: stats of each queue, --> counts of the last hour --> charts,
//!  one task for all visitors         in memory                   events
//! ```
//!
//! A page makes a bounded number of calls to the store, whatever the size of the queue:
//! lists have pages, and a search ends after some 30 ms and offers to continue.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod action;
mod app;
mod chart;
mod cursor;
mod fields;
mod group_name;
mod jobs;
mod json_text;
mod links;
mod live;
mod notices;
mod page_error;
mod pages;
mod redact;
mod response_headers;
mod routes;
mod sampler;
mod settings;
mod source;
mod text;
mod view;

pub use access::{Access, Actor, InvalidSecret};
pub use redact::{InvalidRule, Redaction};
pub use settings::{InvalidBasePath, WebPage};
pub use source::{FixedQueues, QueueSource};
