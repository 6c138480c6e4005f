//! A web page for the queues of relq: it shows counts, jobs, workers, batches, schedules
//! and dead letters, and it can pause, run, cancel, retry and purge.
//!
//! [`WebPage`] makes an [`axum::Router`], which an application mounts beside its own
//! routes. The program `relq serve` serves the same page. The pages are HTML from the
//! server and work without JavaScript; only the live counts need it.
//!
//! ```
//! use std::sync::Arc;
//! use relq_core::{Queue, QueueName};
//! use relq_web::{Access, FixedQueues, WebPage};
//!
//! fn with_queues(
//!     app: axum::Router,
//!     emails: Arc<dyn Queue>,
//!     token: &str,
//! ) -> Result<axum::Router, Box<dyn std::error::Error>> {
//!     let queues = FixedQueues::new([(QueueName::new("emails")?, emails)]);
//!     let page = WebPage::new(queues, Access::token(token)?)
//!         .hosts(["queues.example.org"])
//!         .base_path("/admin/queues")?;
//!     Ok(app.nest("/admin/queues", page.router()))
//! }
//! ```
//!
//! # How a request is served
//!
//! ```text
//!  request --> host --> sign-in --> read-only? --> origin (POST) --> page
//!              421      401         403            403                |
//!                                                                     v
//!  sampler: stats of each queue, --> counts of the last hour --> charts,
//!  one task for all visitors         in memory                   events
//! ```
//!
//! A page makes a bounded number of calls to the store, whatever the size of the queue:
//! lists have pages, and a search ends after some 30 ms and offers to continue.
//!
//! # Security
//!
//! The page is closed by default. It serves only host names that it was told, so a foreign
//! name that resolves to its address is refused (DNS rebinding). It changes state only by
//! POST, and only for a request that its own pages sent. The module documentation of
//! `access` in the source has the details, and the README the parts that the application
//! must provide, such as TLS.
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod action;
mod app;
mod chart;
mod cursor;
mod fields;
mod jobs;
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
