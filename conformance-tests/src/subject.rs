//! The trait that a backend's author implements to test the backend with this suite.

use std::{io, sync::Arc};

use async_trait::async_trait;
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{harness::room::Room, proxy::FaultProxy, sweep::processes::Embedded};

/// Returns how many records the store of an endpoint holds, of any kind and of all queues.
pub type Records<'a> = Box<dyn Fn(&str) -> u64 + Send + 'a>;

/// A backend that the suite tests. Each case creates a subject of its own, by
/// `Default`.
///
/// The suite owns the address: it starts the private server, or creates the private
/// directory, and passes each actor the endpoint to connect to. A backend that keeps
/// its jobs in memory keeps them in the subject.
///
/// Only [`connect`](Self::connect) must be written: the page of the [crate](crate) has a
/// whole test target. The other methods tell the suite more about a backend.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// Opens `queue` as an actor of its own (a producer, a worker, an operator), which
    /// shares no connection with any other actor. It must take its time and randomness
    /// from `environment` and from nowhere else.
    ///
    /// `endpoint` is a URL for a backend on Redis (`unix:///…` or `redis://…`,
    /// different for each actor), and the path of the case's directory for an embedded
    /// backend.
    ///
    /// # Errors
    /// The errors of the backend's own constructor.
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error>;

    /// On Redis: changes the proxy or the server before any actor connects. Only a
    /// subject that must fail, such as a mutant, needs this.
    ///
    /// # Errors
    /// When the server refuses a command.
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let _ = proxy;
        Ok(())
    }

    /// On Redis: returns the command, word by word, with which a client that does not
    /// use relq pushes `payload` (R20). By default `LPUSH queue payload`.
    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        vec![b"LPUSH".to_vec(), queue.as_str().into(), payload.to_vec()]
    }

    /// On Redis: returns whether a plain push, which is a push without relq, wakes a
    /// waiting claim. Returns `false` if the command of such a push notifies no client.
    /// The claim must then find the job within the declared lateness.
    fn plain_pushes_wake(&self) -> bool {
        true
    }

    /// On Redis: returns how many queues one database can hold. If it can hold one, the
    /// suite gives each queue of a case a database of its own, and names it in the
    /// endpoint (`unix:///…?db=3`, `redis://…/3`).
    fn room(&self) -> Room {
        Room::ManyQueues
    }

    /// On Redis: returns whether a key belongs to `queue`. A case fails if it leaves a
    /// key that belongs to none of its queues, or changes a key that does not belong to
    /// them (NO-FOREIGN-KEYS, R19). By default, the queue's name itself and all keys
    /// that begin with `{queue}:` belong to it.
    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        let name = queue.as_str();
        key == name.as_bytes() || key.starts_with(format!("{{{name}}}:").as_bytes())
    }

    /// On Redis: returns the names of the backend's scripts. A script's name is the
    /// first word of its first comment. The suite reports each script that none of the
    /// tested calls has executed.
    fn scripts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Embedded: returns how the suite counts the records of a store. The cases that check
    /// that nothing is kept for ever compare these numbers. If it returns `None`, these
    /// cases are listed as ignored. On Redis the suite counts the records itself.
    fn records(&self) -> Option<Records<'_>> {
        None
    }

    /// Embedded: returns how the suite starts processes of the backend and kills them
    /// at each step, and how it stops an actor at each step for
    /// [`explore`](crate::explore). If it returns `None`, no call is tested with faults,
    /// and no scene is explored.
    fn processes(&self) -> Option<Embedded> {
        None
    }
}

/// The kind of store that a backend uses, which decides which cases apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A Redis server behind a [proxy](crate::proxy). The suite sets its time, also for
    /// the clients. The server has a clock of its own (R18) and accepts bare payloads
    /// from any client (R20).
    Redis,
    /// A Redis server without the proxy, in real time. A few cases run on it, to show
    /// that their results do not depend on the proxy.
    Bare,
    /// Embedded in the program. Its clock is the one in the environment, which the
    /// suite advances.
    ///
    /// A backend on a server that is not Redis is tested as an embedded one, too. Its
    /// tests must make the server return the time of the environment's clock, for example
    /// by a function that the backend calls in place of `now()`. The cases in which
    /// clients have wrong clocks (R18) do not run: they cannot show that the backend
    /// ignores the clocks of its clients.
    Embedded,
}
