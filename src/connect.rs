//! Opens the queue that a URL names. This module contains the list of all backends.

#[macro_use]
mod opening;
#[cfg(feature = "circular")]
mod circular;
mod error;
mod guess;
#[cfg(feature = "keyspace")]
mod keyspace;
mod listing;
#[cfg(feature = "redis")]
mod own_option;
#[cfg(feature = "redis")]
mod partitions;
#[cfg(feature = "processing-list")]
mod processing_list;
mod redact;
#[cfg(feature = "sqlite-unbundled")]
mod sqlite;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "zset")]
mod zset;

use std::sync::Arc;

use relq_core::{Queue, QueueName, environment::Environment};

pub use error::ConnectError;
pub(crate) use listing::{open_listed, queues};
#[cfg(feature = "redis")]
use opening::OwnerOf;
use opening::{MissingFile, Open, Options};
use redact::{redacted, scheme_of};

/// The backend that opens a plain `redis://` URL, which names no backend.
const PLAIN_REDIS: &str = "zset";

/// The ways to connect to Redis, as written in a URL's scheme: after `backend+`, or
/// alone.
const REDIS_TRANSPORTS: [&str; 7] = [
    "redis",
    "rediss",
    "unix",
    "redis-sentinel",
    "rediss-sentinel",
    "redis-cluster",
    "rediss-cluster",
];

/// One backend of relq. Its name is also the name of the cargo feature that enables it,
/// and the scheme of its URLs. The feature `sqlite` enables `sqlite-unbundled`, which
/// contains the code.
struct Backend {
    name: &'static str,
    store: StoreKind,
    /// The function that opens a queue; `None` when the backend's feature is off.
    open: Option<Open>,
    /// The function that reads, from a URL, the server and the backend that the URL
    /// names as the owner of a queue. `None` for a backend that is not on Redis or
    /// whose feature is off.
    #[cfg(feature = "redis")]
    owner: Option<OwnerOf>,
}

/// Where a backend stores its jobs. This decides the form of its URLs.
#[derive(Clone, Copy, PartialEq)]
enum StoreKind {
    File,
    Redis,
}

macro_rules! if_compiled_in {
    ($feature:literal, $open:expr) => {{
        #[cfg(feature = $feature)]
        {
            Some($open)
        }
        #[cfg(not(feature = $feature))]
        {
            None
        }
    }};
}

/// All backends, compiled in or not.
const BACKENDS: &[Backend] = &[
    Backend {
        name: "sqlite",
        store: StoreKind::File,
        open: if_compiled_in!("sqlite-unbundled", sqlite::open),
        #[cfg(feature = "redis")]
        owner: None,
    },
    Backend {
        name: "circular",
        store: StoreKind::Redis,
        open: if_compiled_in!("circular", circular::open),
        #[cfg(feature = "redis")]
        owner: if_compiled_in!("circular", circular::owner),
    },
    Backend {
        name: "processing-list",
        store: StoreKind::Redis,
        open: if_compiled_in!("processing-list", processing_list::open),
        #[cfg(feature = "redis")]
        owner: if_compiled_in!("processing-list", processing_list::owner),
    },
    Backend {
        name: "zset",
        store: StoreKind::Redis,
        open: if_compiled_in!("zset", zset::open),
        #[cfg(feature = "redis")]
        owner: if_compiled_in!("zset", zset::owner),
    },
    Backend {
        name: "stream",
        store: StoreKind::Redis,
        open: if_compiled_in!("stream", stream::open),
        #[cfg(feature = "redis")]
        owner: if_compiled_in!("stream", stream::owner),
    },
    Backend {
        name: "keyspace",
        store: StoreKind::Redis,
        open: if_compiled_in!("keyspace", keyspace::open),
        #[cfg(feature = "redis")]
        owner: if_compiled_in!("keyspace", keyspace::owner),
    },
];

/// The names of the backends that were compiled in.
pub fn backends() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().filter(|it| it.open.is_some()).map(|backend| backend.name)
}

/// Opens the queue `queue` on the backend that `url` names.
///
/// In `sqlite:PATH` the path is taken as it is, up to the first `?`; the URL accepts
/// the option `?synchronous=normal`. Redis URLs have the form that the `redis` crate
/// reads: `redis://[user][:password@]host[:port][/database]`,
/// `unix:///path[?db=…&pass=…]`. The name of the backend stands before them, as in
/// `stream+redis://host`. Three backends have an option of their own: `circular+…`
/// accepts `?finish=lrem`, `processing-list+…` accepts `?mode=shared`, and `keyspace+…`
/// accepts `?foreign=tolerate`. All backends on Redis except `keyspace` accept
/// `?partitions=3`, which makes one queue of three parts. `docs/urls.md` in the
/// repository describes sentinels, clusters and all other options.
///
/// The call connects to the store, and fails if the store is down. It creates a SQLite
/// file that does not exist, which [`connect_existing`] refuses. On Redis it writes
/// nothing. The queue must be opened and used on a tokio runtime.
///
/// ```
/// use relq::{ConnectError, QueueName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let emails = QueueName::new("emails")?;
/// let error = relq::connect("rediss+zset://host", &emails).await.unwrap_err();
/// assert!(matches!(error, ConnectError::UnknownScheme { .. }));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`]: the URL is not valid, its backend is not compiled in, or the store
/// cannot be reached or used.
pub async fn connect(
    url: &str,
    queue: &QueueName,
) -> Result<Arc<dyn Queue>, ConnectError> {
    connect_in(Environment::default(), url, queue).await
}

/// Does the same as [`connect`], with the clocks and the randomness of `environment`. On
/// SQLite a test can move the time of the queue by a [`Clock`] of its own. On Redis the
/// server keeps the time.
///
/// [`Clock`]: relq_core::environment::Clock
///
/// # Errors
/// The errors of [`connect`].
pub async fn connect_in(
    environment: Environment,
    url: &str,
    queue: &QueueName,
) -> Result<Arc<dyn Queue>, ConnectError> {
    open(url, queue, Options::new(environment, MissingFile::Create)).await
}

/// Does the same as [`connect`], but does not create a SQLite file that does not exist.
/// Programs that only read need this: in the wrong folder they would otherwise create
/// an empty file and find nothing in it.
///
/// ```
/// use relq::{ConnectError, Error, QueueName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "sqlite-unbundled")]
/// # {
/// let emails = QueueName::new("emails")?;
/// let missing = relq::connect_existing("sqlite:no-such-file.db", &emails).await;
/// assert!(matches!(missing, Err(ConnectError::Queue(Error::Unusable { .. }))));
/// # }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`connect`], and [`Error::Unusable`] for a file that is missing or
/// empty.
///
/// [`Error::Unusable`]: relq_core::Error::Unusable
pub async fn connect_existing(
    url: &str,
    queue: &QueueName,
) -> Result<Arc<dyn Queue>, ConnectError> {
    let environment = Environment::default();
    open(url, queue, Options::new(environment, MissingFile::Refuse)).await
}

async fn open(
    url: &str,
    queue: &QueueName,
    options: Options,
) -> Result<Arc<dyn Queue>, ConnectError> {
    let (backend, open) = find_backend(url)?;
    #[cfg(feature = "redis")]
    if backend.store == StoreKind::Redis {
        let (url, partition) = partitions::read(url, backend, queue)?;
        let options = Options { partition, ..options };
        return partitions::open((open, backend.owner), &url, queue, options).await;
    }
    #[cfg(not(feature = "redis"))]
    let _ = backend;
    open(url, queue.clone(), options).await
}

/// Returns the server that a URL names, and the URL's backend as the owner of the
/// queue.
#[cfg(feature = "redis")]
pub(crate) fn owner(
    url: &str,
    queue: &QueueName,
) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError> {
    let (backend, _) = find_backend(url)?;
    let Some(owner_of) = backend.owner else {
        let why = "a queue in a file has no marker: its schema names its owner";
        return Err(ConnectError::BadUrl {
            url: redacted(url),
            reason: why.to_owned(),
        });
    };
    let (url, partition) = partitions::read(url, backend, queue)?;
    owner_of(&url, queue.clone(), partition)
}

/// Returns the URL without the option that opens one part of a queue, for a call that is
/// about all queues.
#[cfg(feature = "redis")]
pub(crate) fn without_part(url: &str) -> String {
    own_option::split(url, partitions::PART).0
}

/// Returns the servers and the owners of the parts of a queue, without part 0.
#[cfg(feature = "redis")]
pub(crate) fn owners_of_parts(
    url: &str,
    queue: &QueueName,
) -> Result<Vec<(relq_redis::RedisConfig, relq_redis::Owner)>, ConnectError> {
    let (backend, _) = find_backend(url)?;
    let Some(owner) = backend.owner else { return Ok(Vec::new()) };
    let (url, partition) = partitions::read(url, backend, queue)?;
    partitions::owners(owner, &url, queue, partition)
}

/// Refuses to mark the queue for another number of parts than it has while a part that is
/// to be dropped has jobs or batches, and while a part that is to be dropped or added is
/// paused.
#[cfg(feature = "redis")]
pub(crate) async fn check_changed_parts(
    url: &str,
    queue: &QueueName,
    seen: &relq_redis::Seen,
) -> Result<(), ConnectError> {
    let (backend, open) = find_backend(url)?;
    let Some(owner) = backend.owner else { return Ok(()) };
    let (url, partition) = partitions::read(url, backend, queue)?;
    let options = Options::new(Environment::default(), MissingFile::Refuse);
    let options = Options { partition, ..options };
    partitions::check_changed_parts((open, owner), &url, queue, seen, options).await
}

fn find_backend(url: &str) -> Result<(&'static Backend, Open), ConnectError> {
    find_among(BACKENDS, cfg!(feature = "tls"), url)
}

/// Returns the backend that a URL names. Refuses a backend of `backends` that was not
/// compiled in, and a connection with TLS unless `has_tls`.
fn find_among<'a>(
    backends: &'a [Backend],
    has_tls: bool,
    url: &str,
) -> Result<(&'a Backend, Open), ConnectError> {
    let Some(scheme) = scheme_of(url) else {
        return Err(unknown_scheme(url, None));
    };
    let (name, transport) = split(scheme);
    let store = if transport.is_some() { StoreKind::Redis } else { StoreKind::File };
    let known = backends.iter().find(|it| it.name == name && it.store == store);
    let Some(backend) = known else {
        return Err(unknown_scheme(url, Some(scheme)));
    };
    let open = backend.open.ok_or_else(|| not_compiled_in(scheme, backend.name))?;
    let is_tls = transport.is_some_and(|transport| transport.starts_with("rediss"));
    if is_tls && !has_tls {
        return Err(not_compiled_in(scheme, "tls"));
    }
    Ok((backend, open))
}

/// Returns the name of the backend in a URL's scheme, and the transport to Redis if the
/// scheme names one.
fn split(scheme: &str) -> (&str, Option<&str>) {
    let is_transport = |word| REDIS_TRANSPORTS.contains(&word);
    match scheme.split_once('+') {
        Some((name, transport)) if is_transport(transport) => (name, Some(transport)),
        None if is_transport(scheme) => (PLAIN_REDIS, Some(scheme)),
        _ => (scheme, None),
    }
}

/// Returns the URL schemes of all backends, as a user writes them.
fn known_schemes() -> Vec<String> {
    let schemes = BACKENDS.iter().flat_map(|backend| match backend.store {
        StoreKind::File => vec![backend.name.to_owned()],
        StoreKind::Redis => {
            REDIS_TRANSPORTS.map(|by| format!("{}+{by}", backend.name)).into()
        }
    });
    schemes.chain(REDIS_TRANSPORTS.map(str::to_owned)).collect()
}

fn unknown_scheme(url: &str, scheme: Option<&str>) -> ConnectError {
    let guess = match scheme {
        Some(scheme) => guess::nearest(scheme, &known_schemes()),
        None => Some(format!("sqlite:{}", redacted(url))),
    };
    ConnectError::UnknownScheme {
        url: redacted(url),
        scheme: scheme.map(str::to_owned),
        guess,
    }
}

fn not_compiled_in(scheme: &str, feature: &'static str) -> ConnectError {
    ConnectError::NotCompiledIn { scheme: scheme.to_owned(), feature }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        find_backend(url).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_scheme_is_known_and_every_other_refused() {
        for scheme in known_schemes() {
            let error = refusal(&format!("{scheme}:rest"));
            assert!(
                error.is_empty() || error.contains("was not compiled in"),
                "{error}"
            );
        }
        for (url, words) in [
            ("sqllite:jobs.db", "did you mean sqlite?"),
            ("zset+sqlite:jobs.db", "no backend is called \"zset+sqlite\""),
            ("zset:jobs.db", "no backend is called \"zset\""),
            ("jobs.db", "did you mean sqlite:jobs.db?"),
            ("s3cret@host", "did you mean sqlite:***@host?"),
            ("s3cret@host:6379", "\"***@host:6379\" is not a URL"),
            ("/run/r.sock?pass=s3:cret", "\"/run/r.sock?***\" is not a URL"),
            ("", "\"\" is not a URL"),
        ] {
            let error = refusal(url);
            assert!(error.contains(words), "{url}: {error}");
        }
    }

    /// Every backend as it is when its feature is off.
    fn none_compiled_in() -> Vec<Backend> {
        let off = |backend: &Backend| Backend {
            name: backend.name,
            store: backend.store,
            open: None,
            #[cfg(feature = "redis")]
            owner: None,
        };
        BACKENDS.iter().map(off).collect()
    }

    #[test]
    fn a_missing_backend_names_its_feature() {
        let backends = none_compiled_in();
        for (url, feature) in [
            ("sqlite:jobs.db", "sqlite"),
            ("redis://host", "zset"),
            ("zset+rediss://host", "zset"),
            ("circular+redis://host?finish=lrem", "circular"),
            ("stream+redis://host", "stream"),
            ("keyspace+redis://host?foreign=tolerate", "keyspace"),
            ("processing-list+redis://host?mode=shared", "processing-list"),
        ] {
            let error = find_among(&backends, true, url).err().map(|it| it.to_string());
            let words = format!("build with `--features {feature}`");
            assert!(error.as_ref().is_some_and(|it| it.ends_with(&words)), "{error:?}");
        }
    }

    #[cfg(feature = "zset")]
    #[test]
    fn a_missing_tls_names_its_feature() {
        let refusal =
            |url: &str| find_among(BACKENDS, false, url).err().map(|it| it.to_string());
        for transport in REDIS_TRANSPORTS {
            let is_over_tls =
                ["rediss", "rediss-sentinel", "rediss-cluster"].contains(&transport);
            for url in
                [format!("{transport}://host"), format!("zset+{transport}://host")]
            {
                let error = refusal(&url).unwrap_or_default();
                assert_eq!(
                    error.contains("--features tls"),
                    is_over_tls,
                    "{url}: {error}"
                );
                assert_eq!(error.is_empty(), !is_over_tls, "{url}: {error}");
            }
        }
    }
}
