//! Connects relq's own backends to the suite, so that it can test them.

pub mod sqlite;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use relq::{ConnectError, connect_in};
use relq_core::{
    Error, Queue, QueueName,
    environment::Environment,
    error::{ErrorContext, Operation},
};

use crate::{Records, Room, Subject, own::sqlite::SQLITE, sweep::processes::Embedded};

macro_rules! on_redis {
    ($(#[$doc:meta])* $name:ident, $backend:literal, $option:literal, $scripts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name;

        #[async_trait]
        impl Subject for $name {
            async fn connect(
                &self,
                endpoint: &str,
                queue: &QueueName,
                environment: &Environment,
            ) -> Result<Arc<dyn Queue>, Error> {
                let url = url($backend, endpoint, $option);
                open($backend, &url, queue, environment).await
            }

            fn scripts(&self) -> Vec<String> {
                $scripts.map(str::to_owned).collect()
            }
        }
    };
}

on_redis!(
    /// The zset backend: a list of ready jobs and a sorted set of leased ones.
    Zset, "zset", "", relq::zset::testing::script_names()
);
on_redis!(
    /// The circular backend: one list that rotates. Finished jobs leave the list when a
    /// claim passes them.
    Circular, "circular", "", relq::circular::testing::script_names()
);
on_redis!(
    /// The circular backend with `finish=lrem`, which removes a job from the list as
    /// soon as it is done.
    CircularLrem, "circular", "finish=lrem", relq::circular::testing::script_names()
);
on_redis!(
    /// The processing-list backend with one processing list for each worker.
    ProcessingList, "processing-list", "", {
        relq::processing_list::testing::script_names(relq::processing_list::Mode::PerWorker)
    }
);
on_redis!(
    /// The processing-list backend with one processing list for all workers.
    ProcessingListShared, "processing-list", "mode=shared", {
        relq::processing_list::testing::script_names(relq::processing_list::Mode::Shared)
    }
);

/// The keyspace backend: one key per job, in a database of its own for each queue.
#[derive(Debug, Default)]
pub struct Keyspace {
    plain_pushes: AtomicU64,
}

#[async_trait]
impl Subject for Keyspace {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        open("keyspace", &url("keyspace", endpoint, ""), queue, environment).await
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

    fn scripts(&self) -> Vec<String> {
        relq::keyspace::testing::script_names().map(str::to_owned).collect()
    }
}

/// The stream backend: Redis Streams with a consumer group.
#[derive(Debug, Default)]
pub struct Stream;

#[async_trait]
impl Subject for Stream {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        open("stream", &url("stream", endpoint, ""), queue, environment).await
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        let words = [b"XADD", queue.as_str().as_bytes(), b"*", b"job", payload];
        words.map(<[u8]>::to_vec).into()
    }

    fn scripts(&self) -> Vec<String> {
        relq::stream::testing::script_names().map(str::to_owned).collect()
    }
}

/// The SQLite backend, which is embedded.
#[derive(Debug, Default)]
pub struct Sqlite;

#[async_trait]
impl Subject for Sqlite {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        // Power cuts are not tested here, so no write has to wait for the disk.
        let url = format!("sqlite:{endpoint}/jobs.db?synchronous=normal");
        open("sqlite", &url, queue, environment).await
    }

    fn records(&self) -> Option<Records<'_>> {
        Some(Box::new(sqlite::records))
    }

    fn processes(&self) -> Option<Embedded> {
        Some(SQLITE)
    }
}

/// Returns the URL by which a client opens a queue of that backend on that endpoint.
/// `option` is a query part such as `mode=shared`, or empty.
fn url(backend: &str, endpoint: &str, option: &str) -> String {
    let sign = match option {
        "" => "",
        _ if endpoint.contains('?') => "&",
        _ => "?",
    };
    format!("{backend}+{endpoint}{sign}{option}")
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
            let at = ErrorContext { backend, operation: Operation::Connect };
            Err(Error::Invalid { at, reason: other.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_stands_behind_those_of_the_endpoint() {
        assert_eq!(url("a", "unix:///s", ""), "a+unix:///s");
        assert_eq!(url("a", "unix:///s", "m=1"), "a+unix:///s?m=1");
        assert_eq!(url("a", "unix:///s?user=x", "m=1"), "a+unix:///s?user=x&m=1");
    }
}
