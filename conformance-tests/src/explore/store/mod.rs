//! The store of a run. It stops each actor before each of its steps.

mod connections;
mod embedded;
mod parking;
mod redis;
mod transactions;

use std::sync::Arc;

use async_trait::async_trait;
use relq_core::{Queue, QueueName, environment::Environment};

pub(super) use self::connections::{Connections, Held};
pub use self::transactions::{Bound, Digest, Transactions};
use self::{embedded::EmbeddedStore, redis::RedisStore};
use crate::{
    Subject,
    proxy::{StepRecord, VirtualClock},
    server::Server,
    sweep::processes::Embedded,
};

/// An empty store whose actors' steps wait for decisions. A step is a command of
/// Redis, or a statement of an embedded store.
#[async_trait]
pub(super) trait SteppedStore: Send + Sync {
    /// The clock of the store and of its actors.
    fn clock(&self) -> &VirtualClock;

    /// Opens the queue as the actor of that name.
    async fn connect(
        &self,
        actor: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, String>;

    /// Makes each step of each actor wait from now on. The results that the actors have
    /// seen before do not count any more.
    fn park(&self);

    /// Returns the waiting steps, sorted by actor, as soon as there are at least
    /// `count`.
    async fn parked(&self, count: usize) -> Vec<StepRecord>;

    /// Whether the step can run now. It cannot if it needs a lock that another actor
    /// holds.
    fn can_run(&self, step: &StepRecord) -> bool {
        let _ = step;
        true
    }

    /// Whether the step is independent: its effect depends neither on steps of other
    /// actors nor on the time, and it affects no other step.
    fn is_independent(&self, step: &StepRecord) -> bool {
        let _ = step;
        false
    }

    /// Lets a waiting step run.
    fn pass(&self, step: &StepRecord) -> Result<(), String>;

    /// Ends the actor of a waiting step, as if its process had ended. Completes when
    /// only the data that the actor has written is left of it.
    async fn kill(&self, step: &StepRecord);

    /// Returns a digest of everything that decides what the actor does next.
    fn seen(&self, actor: &str) -> u64;

    /// Returns a digest of the data that the next step of any actor can read.
    async fn data(&self) -> Result<u64, String>;

    /// Lets all steps run from now on, without decisions.
    async fn heal(&self) -> Result<(), String>;

    /// The connections of the actors, if the store is a server.
    fn connections(&self) -> Option<&dyn Connections> {
        None
    }

    /// Fails if an error of the suite itself makes the run worthless.
    fn check(&self) -> Result<(), String>;
}

/// Where a search keeps the stores of its runs.
pub(super) enum Place {
    Server(Server),
    Folders(Embedded),
}

impl Place {
    pub(super) fn of(subject: &dyn Subject) -> Self {
        match subject.processes() {
            Some(embedded) => Self::Folders(embedded),
            None => Self::Server(Server::start()),
        }
    }

    /// Whether the store is a server.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Creates an empty store for the next run. The store of the previous run is gone.
    pub(super) async fn empty_store(
        &self,
        subject: &Arc<dyn Subject>,
    ) -> Result<Arc<dyn SteppedStore>, String> {
        Ok(match self {
            Self::Server(server) => Arc::new(RedisStore::empty(server, subject).await?),
            Self::Folders(embedded) => Arc::new(EmbeddedStore::empty(*embedded)?),
        })
    }
}
