//! The state that all requests share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    access::{Guarded, Hosts, Sessions},
    links::Links,
    notices::Notices,
    redact::Redaction,
    sampler::Sampler,
    source::QueueSource,
};

/// The settings of the page, and what it keeps in memory.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) source: Arc<dyn QueueSource>,
    pub(crate) guarded: Guarded,
    pub(crate) hosts: Hosts,
    pub(crate) links: Links,
    pub(crate) is_read_only: bool,
    pub(crate) is_https: bool,
    pub(crate) redaction: Redaction,
    /// How many bytes of a payload, and of the headers of a job together, are shown.
    pub(crate) max_shown: usize,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    pub(crate) sampler: Sampler,
    /// A permit for each stream of live counts.
    pub(crate) streams: Arc<Semaphore>,
}
