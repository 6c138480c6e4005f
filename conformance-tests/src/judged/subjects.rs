//! relq's own backends, as the suite takes them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use conformance_tests::{
    Room, Subject, async_trait, processes::Embedded, sqlite::SQLITE,
};
use queue_core::{At, Environment, Error, Operation, Queue, QueueName};
use relq::{ConnectError, connect_in};

use crate::backend::Backend;

/// The backend on Redis with a sorted set of leased jobs.
#[derive(Default)]
pub(super) struct Zset;

/// The one with a list that turns.
#[derive(Default)]
pub(super) struct Circular;

/// The one with a list for each worker.
#[derive(Default)]
pub(super) struct ProcessingList;

/// The same with one list for all workers.
#[derive(Default)]
pub(super) struct ProcessingListShared;

/// The one whose queue is a whole database.
#[derive(Default)]
pub(super) struct Keyspace {
    plain_pushes: AtomicU64,
}

/// The one on Redis Streams.
#[derive(Default)]
pub(super) struct Stream;

/// The embedded backend.
#[derive(Default)]
pub(super) struct Sqlite;

macro_rules! on_redis {
    ($name:ident) => {
        #[async_trait]
        impl Subject for $name {
            async fn connect(
                &self,
                endpoint: &str,
                queue: &QueueName,
                environment: &Environment,
            ) -> Result<Arc<dyn Queue>, Error> {
                let backend = Backend::$name;
                open(backend.name(), &backend.on(endpoint), queue, environment).await
            }
        }
    };
}

on_redis!(Zset);
on_redis!(Circular);
on_redis!(ProcessingList);
on_redis!(ProcessingListShared);

#[async_trait]
impl Subject for Keyspace {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let backend = Backend::Keyspace;
        open(backend.name(), &backend.on(endpoint), queue, environment).await
    }

    fn plain_push(&self, _queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        let number = self.plain_pushes.fetch_add(1, Ordering::Relaxed);
        vec![b"SET".to_vec(), format!("item_{number}").into(), payload.to_vec()]
    }

    fn plain_pushes_wake(&self) -> bool {
        false
    }

    fn room(&self) -> Room {
        Room::OneQueue
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        let own = ["item_", "processing_", "relq:database", &format!("{{{queue}}}:")];
        own.iter().any(|prefix| key.starts_with(prefix.as_bytes()))
    }
}

#[async_trait]
impl Subject for Stream {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let backend = Backend::Stream;
        open(backend.name(), &backend.on(endpoint), queue, environment).await
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        let words = [b"XADD", queue.as_str().as_bytes(), b"*", b"job", payload];
        words.map(<[u8]>::to_vec).into()
    }
}

#[async_trait]
impl Subject for Sqlite {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        // Nobody cuts the power here, so that nothing has to wait for the disk.
        let url = format!("sqlite:{endpoint}/jobs.db?synchronous=normal");
        open("sqlite", &url, queue, environment).await
    }

    fn processes(&self) -> Option<Embedded> {
        Some(SQLITE)
    }
}

async fn open(
    backend: &'static str,
    url: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Result<Arc<dyn Queue>, Error> {
    match connect_in(environment.clone(), url, queue).await {
        Ok(queue) => Ok(queue),
        Err(ConnectError::Queue(error)) => Err(error),
        Err(other) => {
            let at = At { backend, operation: Operation::Connect };
            Err(Error::Invalid { at, reason: other.to_string() })
        }
    }
}
