//! What a backend's author writes to have a backend judged.

use std::sync::Arc;

use async_trait::async_trait;
use queue_core::{BoxError, Environment, Error, Queue, QueueName};

/// A private store of the backend under test, for one case.
///
/// Dropping it ends whatever it started.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Starts a store that is empty and that nobody else uses.
    ///
    /// A server that is missing or does not start is a panic that says what to
    /// install: a suite that did not run must not look as if it passed.
    async fn start() -> Self
    where
        Self: Sized;

    /// Opens `queue` as an actor of its own (a producer, a worker, an operator),
    /// which shares no connection with another. Its time and randomness come from
    /// `environment` and nowhere else.
    ///
    /// # Errors
    /// Those of the backend's own constructor.
    async fn connect(
        &self,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error>;

    /// Sends what a plain client of the store would send to push `payload`: on
    /// Redis, `LPUSH queue payload` (R20).
    ///
    /// # Errors
    /// When it could not be sent, or when the store has no plain clients, which is
    /// what a subject says that does not write this method.
    async fn push_raw(
        &self,
        queue: &QueueName,
        payload: &[u8],
    ) -> Result<(), BoxError> {
        let _ = payload;
        Err(format!("the store of {queue} takes no plain producers").into())
    }
}

/// What kind of store a backend is on, and so which cases concern it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A Redis server. It has a clock of its own (R18), which nobody moves, so that
    /// the suite waits; and it takes bare payloads from any client (R20).
    Redis,
    /// Embedded in the program. Its clock is the one in the environment, which the
    /// suite moves.
    Embedded,
}
