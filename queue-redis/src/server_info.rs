//! The server's INFO, read when a connection is opened: whether relq can work on the
//! server.

use redis::Cmd;
use relq_core::{Error, error::ErrorContext};

/// The oldest major version with everything that the scripts need (`allow-oom`, 7.0).
const MINIMUM_MAJOR_VERSION: u32 = 7;

const SENTINEL: &str = "the server is a Redis Sentinel, which keeps no data; name \
    the master that it watches by redis-sentinel://HOST:PORT/SERVICE";

/// The fields of INFO that relq uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerInfo<'a> {
    version: Option<&'a str>,
    mode: Option<&'a str>,
    eviction_policy: Option<&'a str>,
}

impl<'a> ServerInfo<'a> {
    /// Returns the INFO command, whose reply [`read`](Self::read) parses.
    pub(crate) fn asking() -> Cmd {
        let mut cmd = redis::cmd("INFO");
        cmd.arg("server").arg("memory");
        cmd
    }

    /// Reads the reply to `INFO server memory`.
    pub(crate) fn read(info: &'a str) -> Self {
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        Self {
            version: field("redis_version"),
            mode: field("redis_mode"),
            eviction_policy: field("maxmemory_policy"),
        }
    }

    /// Refuses a server on which relq does not work.
    ///
    /// A node of a cluster is accepted. A node that serves all slots works, and any
    /// other node returns an error when a call uses a key.
    pub(crate) fn check(&self, at: ErrorContext) -> Result<(), Error> {
        if self.mode == Some("sentinel") {
            return Err(Error::WrongServer { at, source: SENTINEL.into() });
        }
        let version = self.version.unwrap_or("unknown");
        let major: u32 =
            version.split('.').next().and_then(|part| part.parse().ok()).unwrap_or(0);
        if major < MINIMUM_MAJOR_VERSION {
            let source =
                format!("the server's version is {version}, and 7.0 is the oldest");
            return Err(Error::Unusable { at, source: source.into() });
        }
        Ok(())
    }

    /// Whether the server is a node of a cluster.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.mode == Some("cluster")
    }

    /// The server's eviction policy, if it may evict jobs; `None` for `noeviction`.
    pub(crate) fn evicts_by(&self) -> Option<&'a str> {
        self.eviction_policy.filter(|policy| *policy != "noeviction")
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::Operation;

    use super::*;

    fn checked(info: &str) -> Result<(), Error> {
        ServerInfo::read(info)
            .check(ErrorContext { backend: "test", operation: Operation::Connect })
    }

    #[test]
    fn a_server_older_than_7_is_refused_by_its_version() {
        let error = checked("redis_version:6.2.14\r\n").unwrap_err();

        assert!(matches!(error, Error::Unusable { .. }));
        assert!(error.full_message().contains("6.2.14"), "{}", error.full_message());
    }

    #[test]
    fn newer_servers_are_taken() {
        for version in ["7.0.0", "7.0.15", "8.6.3", "10.0.0"] {
            let info = format!("redis_version:{version}\r\nredis_mode:standalone\r\n");
            assert!(checked(&info).is_ok(), "{version}");
        }
    }

    #[test]
    fn a_sentinel_is_refused_and_a_node_of_a_cluster_is_not() {
        let of_mode = |mode| format!("redis_version:7.0.15\r\nredis_mode:{mode}\r\n");

        let error = checked(&of_mode("sentinel")).unwrap_err();

        assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
        assert!(checked(&of_mode("cluster")).is_ok());
        let is_in_cluster = |mode| ServerInfo::read(&of_mode(mode)).is_in_cluster();
        assert!(is_in_cluster("cluster") && !is_in_cluster("standalone"));
    }

    #[test]
    fn a_policy_that_evicts_is_reported() {
        let policy = |info| ServerInfo::read(info).evicts_by();

        assert_eq!(policy("maxmemory_policy:allkeys-lru\r\n"), Some("allkeys-lru"));
        assert_eq!(policy("maxmemory_policy:noeviction\r\n"), None);
        assert_eq!(policy(""), None);
    }
}
