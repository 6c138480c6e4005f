//! What a backend's author writes to have a backend judged.

use std::{io, sync::Arc};

use async_trait::async_trait;
use relq_core::{Environment, Error, Queue, QueueName};

use crate::{fault::FaultProxy, processes::Embedded, room::Room};

/// The backend under test. Each case makes one of its own, by `Default`.
///
/// The suite owns the address: it starts the private server, or makes the private
/// directory, and hands each actor the endpoint to connect to. A backend that keeps
/// its jobs in memory keeps them in the subject.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// Opens `queue` as an actor of its own (a producer, a worker, an operator),
    /// which shares no connection with another. Its time and randomness come from
    /// `environment` and nowhere else.
    ///
    /// `endpoint` is a URL for a backend on Redis (`unix:///…` or `redis://…`, the
    /// actor's own), and the path of the case's directory for one that is embedded.
    ///
    /// # Errors
    /// Those of the backend's own constructor.
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error>;

    /// On Redis: what is to be done at the proxy, or said to the server, before anyone
    /// connects. Only who wants a backend to be caught has anything to do here.
    ///
    /// # Errors
    /// When the server does not take it.
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let _ = proxy;
        Ok(())
    }

    /// On Redis: what a client that knows nothing of relq sends to push `payload`
    /// (R20), word by word. Unless written otherwise, `LPUSH queue payload`.
    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        vec![b"LPUSH".to_vec(), queue.as_str().into(), payload.to_vec()]
    }

    /// On Redis: whether a plain push wakes a claim that waits. Where the command of the
    /// pattern's author notifies nobody, the job is found within the declared lateness.
    fn plain_pushes_wake(&self) -> bool {
        true
    }

    /// On Redis: how many queues one database can hold. Where it is one, the suite
    /// gives each queue of a case a database of its own, and names it in the endpoint
    /// (`unix:///…?db=3`, `redis://…/3`).
    fn room(&self) -> Room {
        Room::ManyQueues
    }

    /// On Redis: whether a key is `queue`'s. What a case leaves behind that belongs to
    /// none of its queues is a failure, and so is a change of what does not belong to
    /// them (NO-FOREIGN-KEYS, R19). Unless written otherwise, the queue's name itself
    /// and what begins with `{queue}:`.
    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        let name = queue.as_str();
        key == name.as_bytes() || key.starts_with(format!("{{{name}}}:").as_bytes())
    }

    /// On Redis: the scripts that the backend has, each by the first word of its
    /// first comment, so that the suite can say which of them no act has reached.
    fn scripts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Embedded: how its processes are killed at each step, if a report is to strike
    /// its acts, too.
    fn processes(&self) -> Option<Embedded> {
        None
    }
}

/// What kind of store a backend is on, and so which cases concern it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A Redis server behind a [proxy](crate::fault): its time is the suite's, also
    /// for the clients. It has a clock of its own (R18) and takes bare payloads from
    /// any client (R20).
    Redis,
    /// A Redis server as it is, in real time: for the few cases that show that
    /// nothing of what was proved behind the proxy is the proxy's doing.
    Bare,
    /// Embedded in the program. Its clock is the one in the environment, which the
    /// suite moves.
    Embedded,
}
