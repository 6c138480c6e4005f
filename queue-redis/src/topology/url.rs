//! Reads the URLs that name several servers.
//!
//! The client library reads URLs of one server only, so such a URL is divided: the
//! library gets a URL of its first server, with the user, the password, the database
//! and the options.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::{Address, Cluster, Sentinels, Topology};

/// The port of a server whose address in the URL names none.
const SERVER_PORT: u16 = 6379;

/// The port of a sentinel whose address in the URL names none.
const SENTINEL_PORT: u16 = 26_379;

/// Returns the URL of one server that stands for `url`, and the topology. The URL of
/// one server is returned as it is.
///
/// # Errors
/// The reason why the URL cannot be used, without its password.
pub(crate) fn read(url: &str) -> Result<(String, Topology), String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok((url.to_owned(), Topology::Server));
    };
    let (plain, kind) = scheme.split_once('-').unwrap_or((scheme, ""));
    let is_redis = matches!(plain, "redis" | "rediss");
    match kind {
        "sentinel" if is_redis => Parts::of(rest).sentinels(plain),
        "cluster" if is_redis => Parts::of(rest).cluster(plain),
        _ => Ok((url.to_owned(), Topology::Server)),
    }
}

/// The parts of a URL that follow its scheme.
struct Parts<'a> {
    /// The user and the password, including the `@` after them.
    user: &'a str,
    hosts: &'a str,
    /// The text between the hosts and the options, without its first slash.
    path: &'a str,
    options: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Self {
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(at);
        let options = options.split('&').filter(|option| !option.is_empty());
        Self { user, hosts, path, options: options.collect() }
    }

    fn sentinels(mut self, plain: &str) -> Result<(String, Topology), String> {
        let addresses = self.addresses(SENTINEL_PORT)?;
        let (service, database) = self.path.split_once('/').unwrap_or((self.path, "0"));
        if service.is_empty() {
            return Err(
                "it names no service: redis-sentinel://HOST:PORT/SERVICE, as in \
                        `sentinel monitor SERVICE …`"
                    .to_owned(),
            );
        }
        let user = self.take("sentinel_user")?;
        let password = self.take("sentinel_password")?;
        let url = self.of_one_server(plain, &addresses[0], database);
        let sentinels = Sentinels::new(addresses, service, user, password);
        Ok((url, Topology::Sentinels(Arc::new(sentinels))))
    }

    fn cluster(self, plain: &str) -> Result<(String, Topology), String> {
        let addresses = self.addresses(SERVER_PORT)?;
        if !matches!(self.path, "" | "0") {
            return Err("a cluster has only the database 0".to_owned());
        }
        let url = self.of_one_server(plain, &addresses[0], "0");
        Ok((url, Topology::Cluster(Arc::new(Cluster::new(addresses)))))
    }

    fn addresses(&self, default_port: u16) -> Result<Vec<Address>, String> {
        let read = |text| {
            let address = Address::parse(text, default_port);
            address.ok_or_else(|| {
                format!("{text:?} is not an address: give HOST:PORT,HOST:PORT,…")
            })
        };
        self.hosts.split(',').map(read).collect()
    }

    /// Removes an option and returns its value, in which percent signs have been decoded.
    fn take(&mut self, name: &str) -> Result<Option<String>, String> {
        let is_it = |option: &&str| option.split('=').next() == Some(name);
        let Some(at) = self.options.iter().position(is_it) else { return Ok(None) };
        let option = self.options.remove(at);
        match option.split_once('=') {
            Some((_, value)) if !value.is_empty() => {
                let value = percent_decode_str(value).decode_utf8();
                let value = value.map_err(|_| format!("{name} is not UTF-8"))?;
                Ok(Some(value.into_owned()))
            }
            _ => Err(format!("{name} has no value: {name}=…")),
        }
    }

    fn of_one_server(&self, plain: &str, address: &Address, database: &str) -> String {
        let mark = if self.options.is_empty() { "" } else { "?" };
        let (user, options) = (self.user, self.options.join("&"));
        format!("{plain}://{user}{address}/{database}{mark}{options}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_several_servers_is_divided() {
        for (url, plain, shown) in [
            ("redis://h/1", "redis://h/1", "Server"),
            (
                "unix:///run/redis-sentinel.sock",
                "unix:///run/redis-sentinel.sock",
                "Server",
            ),
            (
                "redis-sentinel://me:p@a,b:1/main/2?response_timeout=1s",
                "redis://me:p@a:26379/2?response_timeout=1s",
                "a:26379,b:1/main",
            ),
            ("rediss-cluster://[::1]:7,b", "rediss://[::1]:7/0", "[::1]:7,b:6379"),
            (
                "redis-sentinel://a/main?sentinel_user=u&sentinel_password=s3cret",
                "redis://a:26379/0",
                "a:26379/main",
            ),
        ] {
            let (one, topology) = read(url).unwrap();

            assert_eq!(one, plain, "{url}");
            let text = format!("{topology:?}");
            assert!(text.contains(shown) && !text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn an_invalid_url_is_refused_with_the_reason() {
        for (url, words) in [
            ("redis-sentinel://a", "names no service"),
            ("redis-sentinel:///main", "\"\" is not an address"),
            ("redis-sentinel://a,b:x/main", "\"b:x\" is not an address"),
            ("redis-sentinel://a/main?sentinel_password", "has no value"),
            ("redis-sentinel://a/main?sentinel_user=%FF", "is not UTF-8"),
            ("redis-cluster://a/1", "only the database 0"),
            ("redis-cluster://a,,b", "\"\" is not an address"),
        ] {
            let error = read(url).unwrap_err();
            assert!(error.contains(words), "{url}: {error}");
        }
    }
}
