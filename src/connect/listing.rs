//! Lists the queues of the store that a URL names, and opens them.

#[cfg(feature = "sqlite-unbundled")]
use std::num::NonZeroU32;
use std::sync::Arc;

use relq_core::{Queue, environment::Environment, operator::PageCursor};

use super::{
    ConnectError, StoreKind, find_backend, open,
    opening::{MissingFile, Options},
};
use crate::store::{StoreQueue, StoreQueues};

/// The options of one backend, which are not of the server: the marker of a queue has them.
#[cfg(feature = "redis")]
const BACKEND_OPTIONS: [&str; 5] =
    ["finish", "mode", "partitions", "claim_from", "part"];

/// The option of keyspace that no marker has.
#[cfg(feature = "redis")]
const FOREIGN: &str = "foreign";

/// The number of queues of a file that one page lists.
#[cfg(feature = "sqlite-unbundled")]
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// Returns one page of the queues of the store at `url`.
pub(crate) async fn queues(
    url: &str,
    after: Option<&PageCursor>,
) -> Result<StoreQueues, ConnectError> {
    match find_backend(url)?.0.store {
        StoreKind::File => in_file(url, after).await,
        StoreKind::Redis => on_redis(url, after).await,
    }
}

/// Opens a queue that the store at `url` listed, with the user, the password and the options
/// of `url`.
pub(crate) async fn open_listed(
    url: &str,
    queue: &StoreQueue,
) -> Result<Arc<dyn Queue>, ConnectError> {
    let options = Options::new(Environment::default(), MissingFile::Refuse);
    match find_backend(url)?.0.store {
        StoreKind::File => open(url, &queue.name, options).await,
        StoreKind::Redis => open(&url_like(url, queue), &queue.name, options).await,
    }
}

#[cfg(feature = "sqlite-unbundled")]
async fn in_file(
    url: &str,
    after: Option<&PageCursor>,
) -> Result<StoreQueues, ConnectError> {
    use relq_core::QueueName;

    let config = super::sqlite::config(url)?;
    let name = |cursor: &PageCursor| {
        let name = std::str::from_utf8(&cursor.0).ok().map(QueueName::new);
        name.and_then(Result::ok).ok_or_else(foreign_cursor)
    };
    let after = after.map(name).transpose()?;
    let names = relq_sqlite::queues(config, after.as_ref(), PAGE).await?;
    let last = names.last().filter(|_| names.len() == PAGE.get() as usize);
    let next = last.map(|last| PageCursor(last.as_str().to_owned().into()));
    let queues = names.into_iter().map(|name| StoreQueue {
        backend: Some("sqlite".to_owned()),
        url: Some(url.to_owned()),
        ..StoreQueue::new(name)
    });
    Ok(StoreQueues { queues: queues.collect(), next })
}

#[cfg(feature = "sqlite-unbundled")]
fn foreign_cursor() -> relq_core::Error {
    let operation = relq_core::error::Operation::Connect;
    let at = relq_core::error::ErrorContext { backend: "sqlite", operation };
    let reason = "the cursor is not that of a page of this listing: begin with the first \
                  page";
    relq_core::Error::Invalid { at, reason: reason.to_owned() }
}

#[cfg(feature = "redis")]
async fn on_redis(
    url: &str,
    after: Option<&PageCursor>,
) -> Result<StoreQueues, ConnectError> {
    let page = crate::redis::queues(url, after).await?;
    let wholes = page.queues.into_iter().filter(|queue| !queue.is_later_part());
    let queues = wholes.map(|queue| StoreQueue {
        backend: queue.marker.as_ref().map(|marker| marker.backend().to_owned()),
        options: queue.marker.map(|it| it.options().to_vec()).unwrap_or_default(),
        url: queue.url,
        ..StoreQueue::new(queue.name)
    });
    Ok(StoreQueues { queues: queues.collect(), next: page.next })
}

/// The URL of a listed queue, with all that `url` says about the server.
#[cfg(feature = "redis")]
fn url_like(url: &str, queue: &StoreQueue) -> String {
    let Some(backend) = &queue.backend else { return url.to_owned() };
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let transport = super::split(scheme).1.unwrap_or(scheme);
    let (mut address, is_keyspace) = (rest.to_owned(), backend == "keyspace");
    for name in BACKEND_OPTIONS.into_iter().chain((!is_keyspace).then_some(FOREIGN)) {
        address = super::own_option::split(&address, name).0;
    }
    for option in &queue.options {
        let sign = if address.contains('?') { '&' } else { '?' };
        address = format!("{address}{sign}{option}");
    }
    format!("{backend}+{transport}:{address}")
}

#[cfg(not(feature = "sqlite-unbundled"))]
async fn in_file(_: &str, _: Option<&PageCursor>) -> Result<StoreQueues, ConnectError> {
    unreachable!("find_backend refuses a backend that is not compiled in")
}

#[cfg(not(feature = "redis"))]
async fn on_redis(
    _: &str,
    _: Option<&PageCursor>,
) -> Result<StoreQueues, ConnectError> {
    unreachable!("find_backend refuses a backend that is not compiled in")
}

#[cfg(not(feature = "redis"))]
fn url_like(url: &str, _: &StoreQueue) -> String {
    url.to_owned()
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use relq_core::QueueName;

    use super::*;

    #[test]
    fn a_listed_queue_is_opened_with_the_options_of_the_server() {
        for (url, backend, options, expected) in [
            ("redis://h", "zset", &[][..], "zset+redis://h"),
            (
                "zset+rediss://u:p@h/1?cacert=/a",
                "circular",
                &["finish=lrem"],
                "circular+rediss://u:p@h/1?cacert=/a&finish=lrem",
            ),
            (
                "circular+unix:///s?finish=lrem&db=1&partitions=2",
                "stream",
                &["partitions=3"],
                "stream+unix:///s?db=1&partitions=3",
            ),
            (
                "keyspace+redis://h?foreign=tolerate",
                "keyspace",
                &[],
                "keyspace+redis://h?foreign=tolerate",
            ),
            ("keyspace+redis://h?foreign=tolerate", "zset", &[], "zset+redis://h"),
        ] {
            let queue = StoreQueue {
                backend: Some(backend.to_owned()),
                options: options.iter().map(|it| String::from(*it)).collect(),
                ..StoreQueue::new(QueueName::new("q").unwrap())
            };
            assert_eq!(url_like(url, &queue), expected);
        }
    }

    /// Each option that only one backend has, or that a marker has, would be refused or would
    /// open another queue.
    #[test]
    fn no_option_of_another_queue_is_taken_over() {
        let queue = StoreQueue {
            backend: Some("stream".to_owned()),
            ..StoreQueue::new(QueueName::new("q").unwrap())
        };
        for option in [
            "finish=lrem",
            "mode=shared",
            "foreign=tolerate",
            "partitions=2",
            "claim_from=3",
            "part=1",
        ] {
            for options in [format!("{option}&db=1"), format!("db=1&{option}")] {
                let found = url_like(&format!("zset+unix:///s?{options}"), &queue);
                assert_eq!(found, "stream+unix:///s?db=1", "with {options}");
            }
        }
    }
}
