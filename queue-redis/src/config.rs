//! The address of the server, and the time limits of calls.

use std::{fmt, time::Duration};

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use relq_core::{environment::Environment, limits::MAX_DURATION};

use crate::{
    KeyPrefix, Marker, Partition,
    conn::Replication,
    topology::{self, Address, Cluster, Topology, slot_of},
    url_option::{TlsFiles, take_replication, take_time},
};

/// How long a call waits on a silent connection unless configured otherwise: 5 s. The
/// client library's default of 500 ms is shorter than a server's pause for a fork or an
/// fsync.
const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening a connection may take unless configured otherwise.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The options that a URL of every scheme may have.
const OPTIONS: [&str; 5] =
    ["response_timeout", "connect_timeout", "replicas", "replica_timeout", "protocol"];

/// The options that only a URL `unix://…` may have.
const UNIX_OPTIONS: [&str; 3] = ["db", "user", "pass"];

/// The options that only a URL `redis-sentinel://…` may have.
const SENTINEL_OPTIONS: [&str; 2] = ["sentinel_user", "sentinel_password"];

/// The options that only a URL over TLS may have.
const TLS_OPTIONS: [&str; 3] = ["cacert", "cert", "key"];

/// The error for a URL that does not name a Redis server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a redis url: {reason}")]
pub struct InvalidUrl {
    pub(crate) reason: String,
}

/// The error for a timeout of zero, with which no call could succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {setting} is zero: give at least a millisecond")]
pub struct InvalidTimeout {
    setting: &'static str,
}

/// The address of the server, and the time limits of calls.
///
/// Its `Debug` and `Display` never show the password. The configuration of each backend,
/// such as `ZsetConfig`, can be made of it with `from`.
///
/// ```
/// use std::time::Duration;
/// use relq_redis::RedisConfig;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = RedisConfig::new("redis://anna:secret@localhost:7000/3")?
///     .response_timeout(Duration::from_secs(30))?
///     .connect_timeout(Duration::from_secs(2))?;
/// assert_eq!(config.to_string(), "localhost:7000/3");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisConfig {
    /// The server's address, user, password and database. If the URL names several
    /// servers, the address is that of the first; the rest holds for all of them.
    pub(crate) info: ConnectionInfo,
    pub(crate) topology: Topology,
    /// The cluster slot of the queue's keys, which decides on which server of a cluster
    /// the queue is.
    pub(crate) slot: Option<u16>,
    pub(crate) partition: Partition,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// The files of a URL with TLS. All names are absent in other URLs.
    pub(crate) tls: TlsFiles,
    /// The replicas that pushes and settlements wait for, if the URL asks for them.
    pub(crate) replication: Option<Replication>,
    pub(crate) environment: Environment,
}

impl RedisConfig {
    /// The server at `url`: `redis://[user:password@]host[:port][/database]`,
    /// `rediss://…` for TLS, or `unix:///path/of.sock[?db=n&user=…&pass=…]`.
    ///
    /// Of several servers one serves the queue, and each connection finds it again:
    ///
    /// * `redis-sentinel://[user:password@]H1[:P1],H2[:P2],…/SERVICE[/database]`: the
    ///   master of SERVICE, by the sentinels at these addresses. User and password are
    ///   the master's; the options `sentinel_user` and `sentinel_password` are for the
    ///   sentinels.
    /// * `redis-cluster://[user:password@]H1[:P1],H2[:P2],…`: the master of the queue's
    ///   slot. Some of the cluster's nodes are enough.
    ///
    /// Both exist over TLS, too: `rediss-sentinel://…` and `rediss-cluster://…`.
    ///
    /// Each form takes the options `response_timeout` and `connect_timeout`, as in
    /// `redis://host?response_timeout=30s&connect_timeout=500ms`: see
    /// [`response_timeout`](Self::response_timeout) and
    /// [`connect_timeout`](Self::connect_timeout). With `replicas=2` a push or a
    /// settlement returns only when two replicas have it, and fails with
    /// [`NotReplicated`](relq_core::Error::NotReplicated) after `replica_timeout` (1 s
    /// if the URL does not set it).
    ///
    /// With TLS, the server's certificate must be issued by an authority that the
    /// system trusts, or by one in the PEM file that the option `cacert` or the
    /// environment variable `SSL_CERT_FILE` names. The options `cert` and `key` name the
    /// PEM files of a certificate of the client and its private key, for servers that
    /// ask for one.
    ///
    /// # Errors
    /// When the URL has none of these forms, it has an unknown option, a timeout is
    /// malformed or zero, the URL turns off the check of certificates (`#insecure`), or
    /// it asks for TLS and the crate was built without its feature `tls`.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        Self::check_options(url, &[])?;
        let (url, response_timeout) = take_time(url, "response_timeout")?;
        let (url, connect_timeout) = take_time(&url, "connect_timeout")?;
        let (url, replication) = take_replication(&url)?;
        let (url, tls) = TlsFiles::take(&url)?;
        let (url, topology) =
            topology::read(&url).map_err(|reason| InvalidUrl { reason })?;
        let info = url.as_str().into_connection_info().map_err(|error| InvalidUrl {
            reason: error.detail().map_or_else(|| error.to_string(), str::to_owned),
        })?;
        check_kind(info.addr())?;
        // `CLIENT SETINFO` is not sent: a server of version 7.0 does not know the
        // command, and a newer one would log a refusal for each connection of a user
        // with few rights.
        let settings = info.redis_settings().clone();
        let settings =
            settings.set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        Ok(Self {
            info: info.set_redis_settings(settings),
            topology,
            slot: None,
            partition: Partition::Whole,
            response_timeout: response_timeout.unwrap_or(DEFAULT_RESPONSE_TIMEOUT),
            connect_timeout: connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            tls,
            replication,
            environment: Environment::default(),
        })
    }

    /// Checks that each option of the URL is one that [`new`](Self::new) reads, or one
    /// of `own`, the options of a backend.
    ///
    /// # Errors
    /// When the URL has another option. The error names that option and all known
    /// options.
    pub fn check_options(url: &str, own: &[&str]) -> Result<(), InvalidUrl> {
        let url = url.split('#').next().unwrap_or(url);
        let Some((place, options)) = url.split_once('?') else { return Ok(()) };
        let of_transport = match place.split(':').next() {
            Some(scheme) if scheme.ends_with("unix") => &UNIX_OPTIONS[..],
            Some(scheme) if scheme.ends_with("-sentinel") => &SENTINEL_OPTIONS[..],
            _ => &[],
        };
        let scheme = place.split(':').next().unwrap_or(place);
        let is_tls =
            scheme.rsplit('+').next().is_some_and(|it| it.starts_with("rediss"));
        let of_tls = if is_tls { &TLS_OPTIONS[..] } else { &[] };
        let known = || own.iter().chain(of_transport).chain(of_tls).chain(&OPTIONS);
        let names = options.split('&').filter(|option| !option.is_empty());
        let mut names = names.filter_map(|option| option.split('=').next());
        let Some(name) = names.find(|name| !known().any(|it| it == name)) else {
            return Ok(());
        };
        // Text behind a question mark in a password looks like an option. The error
        // must not show it.
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let name = if is_name { name } else { "…" };
        let known: Vec<_> = known().copied().collect();
        let known = known.join(", ");
        Err(InvalidUrl { reason: format!("it has no option {name:?}, only {known}") })
    }

    /// Sets the queue for which connections are opened. In a cluster, the slot of its
    /// keys decides to which server they are opened.
    #[must_use]
    pub(crate) fn for_queue(mut self, keys: &KeyPrefix) -> Self {
        self.slot = Some(slot_of(keys.producer().as_bytes()));
        self
    }

    /// The configuration for calls that are not for one queue.
    pub(crate) fn anywhere(mut self) -> Self {
        self.slot = None;
        self
    }

    /// The configuration for calls to this server alone, one of those of the URL.
    pub(crate) fn on_server(&self, server: &Address) -> Self {
        let Address { host, port } = server.clone();
        let address = match self.info.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let info = self.info.clone().set_addr(address);
        Self { info, topology: Topology::Server, slot: None, ..self.clone() }
    }

    /// The cluster and the slot of the queue's keys, if the queue is in a cluster.
    pub(crate) fn cluster(&self) -> Option<(&Cluster, u16)> {
        match (&self.topology, self.slot) {
            (Topology::Cluster(cluster), Some(slot)) => Some((cluster, slot)),
            _ => None,
        }
    }

    /// Returns the URL that opens the queue with this marker on the same server,
    /// without user and password.
    pub(crate) fn url_of(&self, marker: &Marker) -> String {
        let database = self.info.redis_settings().db();
        let is_tls = matches!(self.info.addr(), ConnectionAddr::TcpTls { .. });
        let redis = if is_tls { "rediss" } else { "redis" };
        let at = match &self.topology {
            Topology::Sentinels(at) => format!("{redis}-sentinel://{at}/{database}"),
            Topology::Cluster(at) => format!("{redis}-cluster://{at}"),
            Topology::Server => self.url_of_server(database),
        };
        let sign = if at.contains('?') { '&' } else { '?' };
        let options = marker.options().join("&");
        let options =
            if options.is_empty() { options } else { format!("{sign}{options}") };
        format!("{}+{at}{options}", marker.backend())
    }

    fn url_of_server(&self, database: i64) -> String {
        match self.info.addr() {
            ConnectionAddr::TcpTls { host, port, .. } => {
                format!("rediss://{}:{port}/{database}", bracketed(host))
            }
            ConnectionAddr::Unix(path) if database == 0 => {
                format!("unix://{}", path.display())
            }
            ConnectionAddr::Unix(path) => {
                format!("unix://{}?db={database}", path.display())
            }
            ConnectionAddr::Tcp(host, port) => {
                format!("redis://{}:{port}/{database}", bracketed(host))
            }
            other => format!("redis://{other}/{database}"),
        }
    }

    /// Sets how long the connection may be silent before the reply of a call counts as
    /// lost; the default is 5 seconds. As long as bytes of a reply arrive, the call waits
    /// for it, however large the reply is and however slow the link is. A timeout above
    /// [`MAX_DURATION`] counts as that.
    ///
    /// # Errors
    /// When the timeout is zero.
    pub fn response_timeout(self, timeout: Duration) -> Result<Self, InvalidTimeout> {
        let response_timeout = above_zero("response timeout", timeout)?;
        Ok(Self { response_timeout, ..self })
    }

    /// Sets how long opening a connection may take; the default is 5 seconds. A timeout
    /// above [`MAX_DURATION`] counts as that.
    ///
    /// # Errors
    /// When the timeout is zero.
    pub fn connect_timeout(self, timeout: Duration) -> Result<Self, InvalidTimeout> {
        let connect_timeout = above_zero("connect timeout", timeout)?;
        Ok(Self { connect_timeout, ..self })
    }

    /// Says which part of a queue of several parts is opened.
    #[must_use]
    pub fn partition(self, partition: Partition) -> Self {
        Self { partition, ..self }
    }

    /// The part of a queue that is opened.
    pub fn opened_partition(&self) -> Partition {
        self.partition
    }

    /// Sets the sources of time and randomness of the queue.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }
}

fn above_zero(
    setting: &'static str,
    timeout: Duration,
) -> Result<Duration, InvalidTimeout> {
    if timeout.is_zero() {
        return Err(InvalidTimeout { setting });
    }
    // A longer time cannot be added to the present one.
    Ok(timeout.min(MAX_DURATION))
}

fn check_kind(address: &ConnectionAddr) -> Result<(), InvalidUrl> {
    let reason = match address {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            "certificates are always checked: leave #insecure out, and name the \
             authority in SSL_CERT_FILE"
        }
        ConnectionAddr::TcpTls { .. } if cfg!(not(feature = "tls")) => {
            "this kind of connection is not compiled in: enable the feature `tls`"
        }
        ConnectionAddr::Unix(_) if cfg!(not(unix)) => {
            "this system has no Unix sockets: use redis://"
        }
        _ => return Ok(()),
    };
    Err(InvalidUrl { reason: reason.to_owned() })
}

/// A host in the form that a URL needs: an IPv6 address in brackets.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl fmt::Display for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.info.redis_settings().db();
        match &self.topology {
            Topology::Server => write!(f, "{}/{database}", self.info.addr()),
            Topology::Sentinels(sentinels) => write!(f, "{sentinels}/{database}"),
            Topology::Cluster(cluster) => write!(f, "{cluster}/{database}"),
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisConfig({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let config = RedisConfig::new("redis://user:secret@localhost:7000/3").unwrap();

        assert_eq!(config.to_string(), "localhost:7000/3");
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn the_url_of_another_backend_leads_to_the_same_server() {
        let shared = Marker::new("processing-list", ["mode=shared"]);
        for (url, other) in [
            ("redis://me:secret@h:7/3", "redis://h:7/3?mode=shared"),
            ("redis://[::1]", "redis://[::1]:6379/0?mode=shared"),
            ("unix:///r.sock?pass=secret", "unix:///r.sock?mode=shared"),
            ("unix:///r.sock?db=1", "unix:///r.sock?db=1&mode=shared"),
            (
                "redis-sentinel://me:p@a,b:1/main/3?sentinel_password=p",
                "redis-sentinel://a:26379,b:1/main/3?mode=shared",
            ),
            ("redis-cluster://me:p@a:7,b", "redis-cluster://a:7,b:6379?mode=shared"),
        ] {
            let other = format!("processing-list+{other}");
            assert_eq!(RedisConfig::new(url).unwrap().url_of(&shared), other);
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_those_there_are() {
        for url in [
            "redis://h?finsh=lrem",
            "redis://h?db=1",
            "redis://h?sentinel_user=u",
            "redis-cluster://h?sentinel_password=p",
            "unix:///s?db=1&x",
        ] {
            let error = RedisConfig::new(url).unwrap_err().to_string();
            assert!(error.contains("has no option"), "{url}: {error}");
            assert!(error.contains("response_timeout, connect_timeout"), "{error}");
        }
        for url in ["redis://h?", "redis://h?protocol=resp3", "unix:///s?db=1&user=u"] {
            assert!(RedisConfig::new(url).is_ok(), "{url}");
        }
        let own = RedisConfig::check_options("redis://h?finish=x", &["finish"]);
        assert_eq!(own, Ok(()));
        let leaked = RedisConfig::new("redis://:sec?ret@h/1").unwrap_err().to_string();
        assert!(!leaked.contains("ret@"), "{leaked}");
    }

    #[test]
    fn a_typo_in_the_scheme_is_refused() {
        assert!(RedisConfig::new("redsi://localhost").is_err());
        assert!(RedisConfig::new("redis://localhost/not-a-number").is_err());
    }

    #[test]
    fn times_are_set_by_the_url() {
        let second = Duration::from_secs(1);
        for (url, response, connect) in [
            ("redis://h/1", DEFAULT_RESPONSE_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
            ("redis://h/1?response_timeout=1m", 60 * second, DEFAULT_CONNECT_TIMEOUT),
            (
                "unix:///s?response_timeout=1s&db=1&connect_timeout=500ms",
                second,
                second / 2,
            ),
        ] {
            let config = RedisConfig::new(url).unwrap();

            assert_eq!(config.response_timeout, response, "{url}");
            assert_eq!(config.connect_timeout, connect, "{url}");
            assert!(config.to_string().ends_with("/1"), "{config}");
        }
    }

    #[test]
    fn a_time_of_zero_is_refused() {
        let config = RedisConfig::new("redis://h").unwrap();

        let response = config.clone().response_timeout(Duration::ZERO).unwrap_err();
        let connect = config.connect_timeout(Duration::ZERO).unwrap_err();

        let words = "timeout is zero: give at least a millisecond";
        assert_eq!(response.to_string(), format!("the response {words}"));
        assert_eq!(connect.to_string(), format!("the connect {words}"));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn unchecked_certificates_are_refused() {
        let error = RedisConfig::new("rediss://localhost/#insecure").unwrap_err();

        assert!(error.to_string().contains("#insecure"), "{error}");
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_without_its_feature_names_the_feature() {
        let error = RedisConfig::new("rediss://localhost").unwrap_err();

        assert!(error.to_string().contains("feature"), "{error}");
    }
}
