//! The queue's marker on a connection: it is written before the first call that changes
//! the queue, and checked again before a recovery (R25).

use std::io;

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{ErrorKind, RedisError};
use relq_core::{Error, QueueName, error::Operation};

use super::{Conn, Inner};
use crate::{Owner, error, link::Link, topology::until_settled};

impl Conn {
    /// Checks the queue's marker again, and rewrites it if it is missing. A call that
    /// cleans up after other clients does this before it changes anything (R25).
    ///
    /// # Errors
    /// [`Error::Unusable`] when another backend has become the owner of the queue.
    pub async fn confirm_owner(&self, operation: Operation) -> Result<(), Error> {
        let Some(owner) = &self.0.owner else { return Ok(()) };
        let confirming = || async {
            let link = self.link().await?;
            self.mark(owner, link).await
        };
        let confirmed = until_settled(&self.0.config, confirming).await;
        confirmed.map_err(|failed| error::before_send(self.at(operation), failed))
    }

    /// Returns the connections for another queue of this backend. This backend becomes
    /// the owner of that queue, so that this client may change it: its marker is
    /// written, or checked (R25). In a cluster that queue may be on another node, so it
    /// gets connections of its own.
    ///
    /// # Errors
    /// [`Error::Unusable`] when another backend owns that queue, and the errors of
    /// [`Conn::open`].
    pub async fn for_queue(
        &self,
        operation: Operation,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let Some(owner) = &self.0.owner else { return Ok(self.clone()) };
        let owner = owner.of(queue);
        if self.0.config.cluster().is_some() {
            let Inner { backend, scripts, config, .. } = &*self.0;
            let (scripts, config) = (scripts.clone(), config.clone());
            return Self::open_with(backend, Some(owner), scripts, config).await;
        }
        let writing = async {
            let link = self.link().await?;
            self.write_marker(&owner, link).await
        };
        let written = writing.await;
        written.map_err(|failed| error::before_send(self.at(operation), failed))?;
        Ok(self.clone())
    }

    /// The connection of the current runtime for a call of `operation`. If the
    /// operation changes the queue, the marker is written first (R25).
    pub(crate) async fn link_for(
        &self,
        operation: Operation,
    ) -> Result<Link, RedisError> {
        let link = self.link().await?;
        if let Some(owner) = &self.0.owner
            && !operation.only_reads()
            && !link.is_marked()
        {
            self.mark(owner, link.clone()).await?;
        }
        Ok(link)
    }

    /// Writes the queue's marker, or checks it if it exists. If that fails, the next
    /// call tries again.
    async fn mark(&self, owner: &Owner, link: Link) -> Result<(), RedisError> {
        let marked = self.write_marker(owner, link.clone()).await;
        link.set_marked(marked.is_ok());
        marked
    }

    fn write_marker<'a>(
        &'a self,
        owner: &'a Owner,
        mut link: Link,
    ) -> BoxFuture<'a, Result<(), RedisError>> {
        let writing = async move {
            let Link { conn, progress, .. } = &mut link;
            let writing = owner.write(conn, &self.0.config);
            let written = progress.within(self.response_timeout(), writing).await;
            let written =
                written.unwrap_or_else(|late| Err(io::Error::from(late).into()));
            written.inspect_err(|failed| {
                let is_answer = failed.kind() == ErrorKind::InvalidClientConfig;
                if !is_answer {
                    link.heed(failed);
                }
            })
        };
        writing.boxed()
    }
}
