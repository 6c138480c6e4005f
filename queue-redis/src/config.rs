//! Where the server is and how long to wait for it.

use std::{fmt, time::Duration};

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use relq_core::environment::Environment;

use crate::Marker;

/// How long a call waits on a silent connection unless configured otherwise. The client
/// library's default of 500 ms is shorter than a server's pause for a fork or an fsync.
const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening a connection may take unless configured otherwise.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The options that the URL of every transport takes.
const OPTIONS: [&str; 3] = ["response_timeout", "connect_timeout", "protocol"];

/// The options that only a URL `unix://…` takes.
const UNIX_OPTIONS: [&str; 3] = ["db", "user", "pass"];

/// A URL that does not name a Redis server, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a redis url: {reason}")]
pub struct InvalidUrl {
    reason: String,
}

/// A timeout of zero, with which no call could succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {setting} is zero: give at least a millisecond")]
pub struct InvalidTimeout {
    setting: &'static str,
}

/// Where the server is and how long to wait for it.
///
/// Its `Debug` and `Display` never show the password.
#[derive(Clone)]
pub struct RedisConfig {
    pub(crate) info: ConnectionInfo,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) environment: Environment,
}

impl RedisConfig {
    /// The server at `url`: `redis://[user:password@]host[:port][/database]`,
    /// `rediss://…` for TLS, or `unix:///path/of.sock[?db=n&user=…&pass=…]`.
    ///
    /// Each takes the options `response_timeout` and `connect_timeout`, as in
    /// `redis://host?response_timeout=30s&connect_timeout=500ms`: see
    /// [`response_timeout`](Self::response_timeout) and
    /// [`connect_timeout`](Self::connect_timeout).
    ///
    /// With TLS, the server's certificate must be issued by an authority that the
    /// system trusts, or by one in the PEM file that the environment variable
    /// `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// When the URL has none of these forms, it has an unknown option, a timeout is
    /// malformed or zero, the URL turns off the check of certificates (`#insecure`), or
    /// it asks for TLS and the crate was built without its feature `tls`.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        Self::check_options(url, &[])?;
        let (url, response_timeout) = take_time(url, "response_timeout")?;
        let (url, connect_timeout) = take_time(&url, "connect_timeout")?;
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
            response_timeout: response_timeout.unwrap_or(DEFAULT_RESPONSE_TIMEOUT),
            connect_timeout: connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            environment: Environment::default(),
        })
    }

    /// Checks that each option of the URL is one that [`new`](Self::new) reads, or one of
    /// `own`, the options of a backend.
    ///
    /// # Errors
    /// When the URL has another option. The error names it, and the options that there
    /// are.
    pub fn check_options(url: &str, own: &[&str]) -> Result<(), InvalidUrl> {
        let url = url.split('#').next().unwrap_or(url);
        let Some((place, options)) = url.split_once('?') else { return Ok(()) };
        let is_unix = place.split(':').next().is_some_and(|it| it.ends_with("unix"));
        let of_transport = if is_unix { &UNIX_OPTIONS[..] } else { &[] };
        let known = || own.iter().chain(of_transport).chain(&OPTIONS);
        let names = options.split('&').filter(|option| !option.is_empty());
        let mut names = names.filter_map(|option| option.split('=').next());
        let Some(name) = names.find(|name| !known().any(|it| it == name)) else {
            return Ok(());
        };
        // A password that contains a question mark looks like an option.
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let name = if is_name { name } else { "…" };
        let known: Vec<_> = known().copied().collect();
        let known = known.join(", ");
        Err(InvalidUrl { reason: format!("it has no option {name:?}, only {known}") })
    }

    /// The URL of a queue with this marker on the same server, without user and
    /// password.
    pub(crate) fn url_of(&self, marker: &Marker) -> String {
        let database = self.info.redis_settings().db();
        let at = match self.info.addr() {
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
        };
        let sign = if at.contains('?') { '&' } else { '?' };
        let options = marker.options().join("&");
        let options =
            if options.is_empty() { options } else { format!("{sign}{options}") };
        format!("{}+{at}{options}", marker.backend())
    }

    /// Sets how long the connection may be silent before the reply of a call counts as
    /// lost. As long as bytes of a reply arrive, the call waits for it, however large
    /// the reply and however slow the link.
    ///
    /// # Errors
    /// When the timeout is zero.
    pub fn response_timeout(self, timeout: Duration) -> Result<Self, InvalidTimeout> {
        let response_timeout = above_zero("response timeout", timeout)?;
        Ok(Self { response_timeout, ..self })
    }

    /// Sets how long opening a connection may take.
    ///
    /// # Errors
    /// When the timeout is zero.
    pub fn connect_timeout(self, timeout: Duration) -> Result<Self, InvalidTimeout> {
        let connect_timeout = above_zero("connect timeout", timeout)?;
        Ok(Self { connect_timeout, ..self })
    }

    /// Sets the time and randomness to run on.
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
    Ok(timeout)
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

/// The URL without the option of that name, and the option's value.
fn take_time(
    url: &str,
    name: &'static str,
) -> Result<(String, Option<Duration>), InvalidUrl> {
    let (rest, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let Some((place, options)) = rest.split_once('?') else {
        return Ok((url.to_owned(), None));
    };
    let is_it = |option: &&str| option.split('=').next() == Some(name);
    let (ours, others): (Vec<_>, Vec<_>) = options.split('&').partition(is_it);
    let time = match ours.as_slice() {
        [] => return Ok((url.to_owned(), None)),
        [option] => option.split_once('=').and_then(|(_, time)| {
            humantime::parse_duration(time).ok().filter(|time| !time.is_zero())
        }),
        _ => None,
    };
    let time = time.ok_or_else(|| InvalidUrl {
        reason: format!("{name} is one time above zero, as in {name}=30s or 500ms"),
    })?;
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{place}{mark}{}{fragment}", others.join("&")), Some(time)))
}

/// A host in the form that a URL needs.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl fmt::Display for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.info.addr(), self.info.redis_settings().db())
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
        let shared = Marker::new("processing-list", &["mode=shared"]);
        for (url, other) in [
            ("redis://me:secret@h:7/3", "redis://h:7/3?mode=shared"),
            ("redis://[::1]", "redis://[::1]:6379/0?mode=shared"),
            ("unix:///r.sock?pass=secret", "unix:///r.sock?mode=shared"),
            ("unix:///r.sock?db=1", "unix:///r.sock?db=1&mode=shared"),
        ] {
            let other = format!("processing-list+{other}");
            assert_eq!(RedisConfig::new(url).unwrap().url_of(&shared), other);
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_those_there_are() {
        for url in ["redis://h?finsh=lrem", "redis://h?db=1", "unix:///s?db=1&x"] {
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

    #[test]
    fn what_is_no_time_is_refused_by_its_name() {
        for option in ["=5", "=0s", "=-1s", "=", "", "=1s&response_timeout=2s"] {
            let url = format!("redis://h?response_timeout{option}");

            let error = RedisConfig::new(&url).unwrap_err();

            assert!(error.to_string().contains("response_timeout=30s"), "{error}");
        }
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
