//! Opens a queue from a URL. This module has the one list of backends.

#[macro_use]
mod opening;
#[cfg(feature = "circular")]
mod circular;
mod error;
mod guess;
#[cfg(feature = "keyspace")]
mod keyspace;
#[cfg(any(feature = "circular", feature = "keyspace", feature = "processing-list"))]
mod own_option;
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
#[cfg(feature = "redis")]
use opening::OwnerOf;
use opening::{MissingFile, Open, Options};
use redact::redacted;

/// The Redis backend of a plain `redis://` URL.
const PLAIN_REDIS: &str = "zset";

/// The transports to Redis: the scheme after `backend+`, or the scheme alone.
const REDIS_TRANSPORTS: [&str; 3] = ["redis", TLS_TRANSPORT, "unix"];
const TLS_TRANSPORT: &str = "rediss";

/// A backend. Its name is also the name of the feature that users enable, and the
/// scheme of its URLs. The code of `sqlite` belongs to `sqlite-unbundled`, which
/// `sqlite` enables.
struct Backend {
    name: &'static str,
    store: StoreKind,
    /// `None` when its feature is off.
    open: Option<Open>,
    /// For a backend on Redis: the server of a URL, and the backend as owner of its
    /// queues. `None` when its feature is off.
    #[cfg(feature = "redis")]
    owner: Option<OwnerOf>,
}

/// Where a backend stores its jobs. This decides the form of its URLs.
#[derive(PartialEq)]
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
/// `unix:///path[?db=…&pass=…]`. Three backends accept an option: `circular+…` accepts
/// `?finish=lrem`, `processing-list+…` accepts `?mode=shared`, and `keyspace+…` accepts
/// `?foreign=tolerate`.
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

/// As [`connect`], with clocks and randomness of the caller.
///
/// # Errors
/// As [`connect`].
pub async fn connect_in(
    environment: Environment,
    url: &str,
    queue: &QueueName,
) -> Result<Arc<dyn Queue>, ConnectError> {
    open(url, queue, Options { environment, missing_file: MissingFile::Create }).await
}

/// As [`connect`], but does not create a SQLite file that does not exist. For programs
/// that read: in the wrong folder they would otherwise create an empty file and find
/// nothing in it.
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
/// As [`connect`]. A file that is missing or empty is [`Error::Unusable`].
///
/// [`Error::Unusable`]: relq_core::Error::Unusable
pub async fn connect_existing(
    url: &str,
    queue: &QueueName,
) -> Result<Arc<dyn Queue>, ConnectError> {
    let environment = Environment::default();
    open(url, queue, Options { environment, missing_file: MissingFile::Refuse }).await
}

async fn open(
    url: &str,
    queue: &QueueName,
    options: Options,
) -> Result<Arc<dyn Queue>, ConnectError> {
    find(url)?(url, queue.clone(), options).await
}

/// The server of that URL, and its backend as the owner of the queue.
#[cfg(feature = "redis")]
pub(crate) fn owner(
    url: &str,
    queue: &QueueName,
) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError> {
    let (backend, _) = find_backend(url)?;
    let Some(owner) = backend.owner else {
        let why = "a queue in a file has no marker: its schema names its owner";
        return Err(ConnectError::BadUrl {
            url: redacted(url),
            reason: why.to_owned(),
        });
    };
    owner(url, queue.clone())
}

fn find(url: &str) -> Result<Open, ConnectError> {
    find_backend(url).map(|(_, open)| open)
}

fn find_backend(url: &str) -> Result<(&'static Backend, Open), ConnectError> {
    let Some((scheme, _)) = url.split_once(':') else {
        return Err(unknown_scheme(url, None));
    };
    let (name, transport) = split(scheme);
    let store = if transport.is_some() { StoreKind::Redis } else { StoreKind::File };
    let known = BACKENDS.iter().find(|it| it.name == name && it.store == store);
    let Some(backend) = known else {
        return Err(unknown_scheme(url, Some(scheme)));
    };
    let open = backend.open.ok_or_else(|| not_compiled_in(scheme, backend.name))?;
    if transport == Some(TLS_TRANSPORT) && cfg!(not(feature = "tls")) {
        return Err(not_compiled_in(scheme, "tls"));
    }
    Ok((backend, open))
}

/// The backend's name, and the transport to Redis if the scheme names one.
fn split(scheme: &str) -> (&str, Option<&str>) {
    let is_transport = |word| REDIS_TRANSPORTS.contains(&word);
    match scheme.split_once('+') {
        Some((name, transport)) if is_transport(transport) => (name, Some(transport)),
        None if is_transport(scheme) => (PLAIN_REDIS, Some(scheme)),
        _ => (scheme, None),
    }
}

/// The schemes of all backends, as a user writes them.
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
        find(url).err().map(|error| error.to_string()).unwrap_or_default()
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
            ("", "is no URL"),
        ] {
            let error = refusal(url);
            assert!(error.contains(words), "{url}: {error}");
        }
    }

    #[cfg(not(feature = "sqlite-unbundled"))]
    #[test]
    fn a_missing_sqlite_names_its_feature() {
        assert!(refusal("sqlite:jobs.db").contains("--features sqlite"));
    }

    #[cfg(not(feature = "zset"))]
    #[test]
    fn a_missing_zset_names_its_feature() {
        assert!(refusal("redis://host").contains("--features zset"));
        assert!(refusal("zset+rediss://host").contains("--features zset"));
    }

    #[cfg(not(feature = "circular"))]
    #[test]
    fn a_missing_circular_names_its_feature() {
        let refusal = refusal("circular+redis://host?finish=lrem");
        assert!(refusal.contains("--features circular"), "{refusal}");
    }

    #[cfg(not(feature = "stream"))]
    #[test]
    fn a_missing_stream_names_its_feature() {
        let refusal = refusal("stream+redis://host");
        assert!(refusal.contains("--features stream"), "{refusal}");
    }

    #[cfg(not(feature = "keyspace"))]
    #[test]
    fn a_missing_keyspace_names_its_feature() {
        let refusal = refusal("keyspace+redis://host?foreign=tolerate");
        assert!(refusal.contains("--features keyspace"), "{refusal}");
    }

    #[cfg(not(feature = "processing-list"))]
    #[test]
    fn a_missing_processing_list_names_its_feature() {
        let refusal = refusal("processing-list+redis://host?mode=shared");
        assert!(refusal.contains("--features processing-list"), "{refusal}");
    }

    #[cfg(all(feature = "zset", not(feature = "tls")))]
    #[test]
    fn a_missing_tls_names_its_feature() {
        assert!(refusal("rediss://host").contains("--features tls"));
        assert_eq!(refusal("redis://host"), "");
    }
}
