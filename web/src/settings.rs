//! The settings of the page.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use crate::{
    access::{Access, Guarded, Hosts, Sessions},
    app::App,
    links::Links,
    notices::Notices,
    redact::Redaction,
    routes,
    sampler::Sampler,
    source::QueueSource,
};

/// How often the counts of all queues are read.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// How many bytes of a payload, and of the headers of a job together, are shown.
const MAX_SHOWN: usize = 16 * 1024;

/// How many visitors get live counts at once.
const MAX_STREAMS: usize = 64;

/// The base path is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the base path {0:?} must begin with a slash, end with none, and hold only A-Z a-z \
     0-9 . _ - /"
)]
pub struct InvalidBasePath(String);

/// The web page of some queues. [`router`](Self::router) makes a router of it.
pub struct WebPage {
    source: Arc<dyn QueueSource>,
    access: Access,
    hosts: Hosts,
    base: String,
    is_read_only: bool,
    is_https: bool,
    redaction: Redaction,
    max_shown: usize,
    sample_every: Duration,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl WebPage {
    /// Creates the page of these queues, for the visitors that `access` allows. It answers
    /// only to the loopback names `localhost`, `127.0.0.1` and `[::1]`.
    pub fn new(source: impl QueueSource + 'static, access: Access) -> Self {
        Self {
            source: Arc::new(source),
            access,
            hosts: Hosts::default(),
            base: String::new(),
            is_read_only: false,
            is_https: false,
            redaction: Redaction::default(),
            max_shown: MAX_SHOWN,
            sample_every: SAMPLE_EVERY,
            stop: Box::pin(std::future::pending()),
        }
    }

    /// Sets the host names to which the page answers, without ports. They replace the
    /// loopback names.
    #[must_use]
    pub fn hosts<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.hosts = Hosts::new(names.into_iter().map(Into::into));
        self
    }

    /// Sets the path under which the visitors find the page, such as `/admin/queues`. All
    /// links begin with it. The router itself has no such prefix: nest it under the path,
    /// or let a proxy remove the path.
    ///
    /// # Errors
    /// [`InvalidBasePath`] if it is not a path.
    pub fn base_path(mut self, path: &str) -> Result<Self, InvalidBasePath> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
        let is_path = path.starts_with('/')
            && !path.ends_with('/')
            && !path.contains("//")
            && !path.split('/').any(|segment| matches!(segment, "." | ".."))
            && path.bytes().all(is_allowed);
        if !path.is_empty() && !is_path {
            return Err(InvalidBasePath(path.to_owned()));
        }
        path.clone_into(&mut self.base);
        Ok(self)
    }

    /// Refuses every change.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Marks the cookies as `Secure`, so that browsers send them only by HTTPS. A proxy
    /// that sets `X-Forwarded-Proto: https` has the same effect.
    #[must_use]
    pub fn https(mut self) -> Self {
        self.is_https = true;
        self
    }

    /// Sets what is hidden of the jobs. By default these are the headers that carry
    /// credentials ([`Redaction::default`]).
    #[must_use]
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Sets how many bytes of a payload, and of the headers of a job together, are shown. The
    /// default is 16 KiB.
    #[must_use]
    pub fn max_shown(mut self, bytes: usize) -> Self {
        self.max_shown = bytes;
        self
    }

    /// Sets how often the counts of all queues are read, for the charts and the live
    /// counts. The default is 5 seconds.
    #[must_use]
    pub fn sample_every(mut self, interval: Duration) -> Self {
        self.sample_every = interval;
        self
    }

    /// Ends the streams of live counts when `stop` completes, so that a graceful shutdown
    /// of the server does not wait for them.
    #[must_use]
    pub fn stop_on(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// Makes the router. It begins a task that reads the counts, which ends with the last
    /// clone of the router.
    ///
    /// # Panics
    /// Outside a runtime of tokio.
    pub fn router(self) -> axum::Router {
        let sampler = Sampler::start(self.source.clone(), self.sample_every, self.stop);
        routes::router(Arc::new(App {
            source: self.source,
            guarded: Guarded::new(self.access),
            hosts: self.hosts,
            links: Links::new(self.base),
            is_read_only: self.is_read_only,
            is_https: self.is_https,
            redaction: self.redaction,
            max_shown: self.max_shown,
            sessions: Sessions::default(),
            notices: Notices::default(),
            sampler,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }))
    }
}

impl fmt::Debug for WebPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebPage")
            .field("source", &self.source)
            .field("hosts", &self.hosts)
            .field("base", &self.base)
            .field("is_read_only", &self.is_read_only)
            .finish_non_exhaustive()
    }
}
