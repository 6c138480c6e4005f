//! The address of one of several servers.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

/// The host and the port of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`. `None` if the text has
    /// none of these forms.
    pub(crate) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (
                    host,
                    if port.is_empty() { None } else { Some(port.strip_prefix(':')?) },
                )
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = port.map_or(Some(default_port), |port| port.parse().ok())?;
        (!host.is_empty() && port > 0).then(|| Self { host: host.to_owned(), port })
    }

    /// Reads the address in a redirection, `HOST:PORT`. `None` if the sender does not
    /// know the host, which it leaves empty then.
    pub(crate) fn of_redirection(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let address = Self { host: host.to_owned(), port: port.parse().ok()? };
        (!is_unknown(host)).then_some(address)
    }

    /// Returns the address that `sender` reported. A server that does not know its own
    /// host leaves the host empty: then the address has the sender's host.
    pub(crate) fn told(host: &str, port: u16, sender: &Self) -> Self {
        let host = if is_unknown(host) { &sender.host } else { host };
        Self { host: host.to_owned(), port }
    }
}

fn is_unknown(host: &str) -> bool {
    host.is_empty() || host == "?"
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The servers that a client tries to connect to at the same time. Several servers may
/// name the same one.
#[derive(Default)]
pub(super) struct Tried(Mutex<Vec<Address>>);

impl Tried {
    /// Notes that the client tries this server. False if it did so before.
    pub(super) fn is_first(&self, server: &Address) -> bool {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !tried.contains(server);
        if is_first {
            tried.push(server.clone());
        }
        is_first
    }
}

/// The addresses, separated by commas, as in a URL.
pub(super) fn listed(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Option<Address> {
        Some(Address { host: host.to_owned(), port })
    }

    #[test]
    fn a_host_may_have_a_port() {
        for (text, address) in [
            ("h", at("h", 6379)),
            ("h:1", at("h", 1)),
            ("[::1]", at("::1", 6379)),
            ("[::1]:2", at("::1", 2)),
            ("", None),
            (":1", None),
            ("h:", None),
            ("h:0", None),
            ("h:65536", None),
            ("[::1", None),
            ("[::1]2", None),
        ] {
            assert_eq!(Address::parse(text, 6379), address, "{text}");
        }
    }

    #[test]
    fn a_redirection_without_a_host_has_no_address() {
        for (text, address) in [
            ("10.0.0.1:2", at("10.0.0.1", 2)),
            ("::1:2", at("::1", 2)),
            (":2", None),
            ("?:2", None),
            ("host", None),
        ] {
            assert_eq!(Address::of_redirection(text), address, "{text}");
        }
    }

    #[test]
    fn a_server_without_a_host_of_its_own_has_the_host_that_was_asked() {
        let sender = Address { host: "here".to_owned(), port: 1 };

        assert_eq!(Some(Address::told("", 2, &sender)), at("here", 2));
        assert_eq!(Some(Address::told("there", 2, &sender)), at("there", 2));
    }
}
