//! The host names to which the page answers.

use axum::http::{HeaderMap, Uri, header::HOST};

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The host names that are served, in small letters and without ports.
#[derive(Debug, Clone)]
pub(crate) struct Hosts(Vec<String>);

impl Default for Hosts {
    fn default() -> Self {
        Self::new(LOOPBACK.map(str::to_owned))
    }
}

impl Hosts {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| normal(&name)).collect())
    }

    /// Whether a host with an optional port, as in the header `Host`, is served.
    pub(crate) fn has(&self, authority: &str) -> bool {
        let host = normal(without_port(authority));
        self.0.contains(&host)
    }
}

fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The host of `host:port` or `[address]:port`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// The host and port that a request names; `None` if it names none, or several.
pub(crate) fn authority<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let mut named = headers.get_all(HOST).iter();
    let first = named.next();
    if named.next().is_some() {
        return None;
    }
    match first {
        Some(host) => host.to_str().ok(),
        // HTTP/2 has the name in the address.
        None => uri.authority().map(axum::http::uri::Authority::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_served_by_default() {
        let hosts = Hosts::default();
        for served in
            ["localhost", "LOCALHOST:80", "localhost.:1", "127.0.0.1:8", "[::1]"]
        {
            assert!(hosts.has(served), "{served}");
        }
        for foreign in ["", "example.org", "localhost.example.org", "[::2]:80", "::1"] {
            assert!(!hosts.has(foreign), "{foreign}");
        }
        assert!(hosts.has("[::1]:80"));
    }

    #[test]
    fn the_given_names_replace_those_of_this_machine() {
        let hosts = Hosts::new(["Queues.example.org".to_owned()]);
        assert!(hosts.has("queues.example.org:443"));
        assert!(!hosts.has("localhost"));
    }
}
