//! Where the server is and how long to wait for it.

use std::{fmt, time::Duration};

use queue_core::Environment;
use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

/// How long a call may take unless configured otherwise. The client library's own
/// default of 500 ms is shorter than a server's pause for a fork or an fsync.
const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening a connection may take unless configured otherwise.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A URL that does not name a Redis server, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a redis url: {reason}")]
pub struct InvalidUrl {
    reason: String,
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
    /// In TLS the server's certificate has to be of an authority that the system trusts,
    /// or that is in the PEM file which the environment variable `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// When the URL is none of these, or asks for TLS and the crate was built without
    /// its feature `tls`.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        let info = url.into_connection_info().map_err(|error| InvalidUrl {
            reason: error.detail().map_or_else(|| error.to_string(), str::to_owned),
        })?;
        if !info.addr().is_supported() {
            let reason = "this kind of connection is not compiled in: enable the \
                          feature `tls`";
            return Err(InvalidUrl { reason: reason.to_owned() });
        }
        // A closed connection is announced as a push message, which RESP2 lacks.
        let settings =
            info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        Ok(Self {
            info: info.set_redis_settings(settings),
            response_timeout: DEFAULT_RESPONSE_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            environment: Environment::default(),
        })
    }

    /// Sets how long a call may take before its answer counts as lost.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets how long opening a connection may take.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time and randomness to run on.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }
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
    fn a_typo_in_the_scheme_is_refused() {
        assert!(RedisConfig::new("redsi://localhost").is_err());
        assert!(RedisConfig::new("redis://localhost/not-a-number").is_err());
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_without_its_feature_names_the_feature() {
        let error = RedisConfig::new("rediss://localhost").unwrap_err();

        assert!(error.to_string().contains("feature"), "{error}");
    }
}
