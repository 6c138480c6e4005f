//! The connections that dead actors leave: some have commands that run late, and some the
//! server still considers alive.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use super::{
    command::Kind,
    request::Request,
    rewrite::{self, Session},
    shared::Shared,
    upstream::Upstream,
};

#[derive(Default)]
pub(crate) struct DeadConnections {
    ghosts: Mutex<Vec<Ghost>>,
    frozen: Mutex<Vec<Upstream>>,
}

/// The connection of a dead actor, with the commands on it that are to run late.
pub(crate) struct Ghost {
    pub(crate) upstream: Upstream,
    pub(crate) session: Session,
    pub(crate) requests: Vec<Request>,
}

impl DeadConnections {
    /// Keeps a dead actor's commands until they are released.
    pub(crate) fn keep_ghost(&self, ghost: Ghost) {
        self.ghosts.lock().unwrap_or_else(PoisonError::into_inner).push(ghost);
    }

    /// Keeps a connection open without reading from it, until [`Self::thaw`].
    pub(crate) fn freeze(&self, upstream: Upstream) {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).push(upstream);
    }

    /// Runs all kept commands, in the order of the deaths. Returns the number of
    /// commands.
    pub(crate) async fn release(&self, shared: &Shared) -> io::Result<usize> {
        let ghosts = take(&self.ghosts);
        let mut ran = 0;
        for ghost in ghosts {
            ran += ghost.run(shared).await?;
        }
        Ok(ran)
    }

    /// Closes all frozen connections.
    pub(crate) async fn thaw(&self) -> io::Result<()> {
        let frozen = take(&self.frozen);
        for upstream in frozen {
            upstream.close().await?;
        }
        Ok(())
    }
}

impl Ghost {
    /// Sends the kept commands to the server and closes the connection. For the server
    /// it is as if the last bytes of a dead client arrived. Returns the number of
    /// commands.
    async fn run(mut self, shared: &Shared) -> io::Result<usize> {
        for request in &self.requests {
            let kind = Kind::of(request);
            let (pieces, _) =
                rewrite::for_server(shared, &mut self.session, kind, request);
            self.upstream.writer.send(&pieces).await?;
        }
        self.upstream.close().await?;
        Ok(self.requests.len())
    }
}

fn take<T>(kept: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner))
}
