//! The trait that a backend's author implements to have the backend judged.

use std::{io, sync::Arc};

use async_trait::async_trait;
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{harness::room::Room, proxy::FaultProxy, sweep::processes::Embedded};

/// The backend under test. Each case creates one of its own, by `Default`.
///
/// The suite owns the address: it starts the private server, or creates the private
/// directory, and passes each actor the endpoint to connect to. A backend that keeps
/// its jobs in memory keeps them in the subject.
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

    /// On Redis: the command, word by word, by which a client that does not use relq
    /// pushes `payload` (R20). By default `LPUSH queue payload`.
    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        vec![b"LPUSH".to_vec(), queue.as_str().into(), payload.to_vec()]
    }

    /// On Redis: whether a plain push wakes a waiting claim. If the command of the
    /// pattern's author notifies no client, the claim must find the job within the
    /// declared lateness.
    fn plain_pushes_wake(&self) -> bool {
        true
    }

    /// On Redis: how many queues one database can hold. If it is one, the suite gives
    /// each queue of a case a database of its own, and names it in the endpoint
    /// (`unix:///…?db=3`, `redis://…/3`).
    fn room(&self) -> Room {
        Room::ManyQueues
    }

    /// On Redis: whether a key belongs to `queue`. A case fails if it leaves a key that
    /// belongs to none of its queues, or changes a key that does not belong to them
    /// (NO-FOREIGN-KEYS, R19). By default, the queue's name itself and all keys that
    /// begin with `{queue}:` belong to it.
    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        let name = queue.as_str();
        key == name.as_bytes() || key.starts_with(format!("{{{name}}}:").as_bytes())
    }

    /// On Redis: the names of the backend's scripts, each the first word of the
    /// script's first comment. The suite reports the scripts that no act has reached.
    fn scripts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Embedded: how the backend's processes are killed at each step, if a report must
    /// inject faults into its acts as well.
    fn processes(&self) -> Option<Embedded> {
        None
    }
}

/// The kind of store that a backend uses, which decides which cases apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A Redis server behind a [proxy](crate::proxy): the suite sets its time, also for
    /// the clients. It has a clock of its own (R18) and accepts bare payloads from any
    /// client (R20).
    Redis,
    /// A Redis server without the proxy, in real time. A few cases run on it, to show
    /// that their results do not depend on the proxy.
    Bare,
    /// Embedded in the program. Its clock is the one in the environment, which the
    /// suite advances.
    Embedded,
}
