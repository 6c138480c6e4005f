//! Changes the URL of a store: adds or removes its password, and makes its path
//! absolute.

use std::{
    net::IpAddr,
    path::{Path, PathBuf, absolute},
};

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode,
};
use url::{Position, Url, form_urlencoded};

use crate::failure::{CommandResult, Failure};

/// The schemes of Redis over TCP. In a URL they stand alone or after `backend+`.
const OVER_TCP: [&str; 6] = [
    "redis",
    "rediss",
    "redis-sentinel",
    "rediss-sentinel",
    "redis-cluster",
    "rediss-cluster",
];
const OVER_SOCKET: &str = "unix";

/// The option that holds the password in the URL of a Unix socket.
const PASSWORD_OPTION: &str = "pass";

/// The option that holds the password of the sentinels.
const SENTINEL_PASSWORD_OPTION: &str = "sentinel_password";

/// The options of a server that name files.
const FILE_OPTIONS: [&str; 3] = ["cacert", "cert", "key"];

/// What is encoded in the value of an option: all but what paths often have.
const IN_AN_OPTION: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// The URL of a Redis server, or of several servers.
struct ServerUrl {
    url: Url,
    /// The hosts with their ports, if there are several. In that case `url` has one
    /// placeholder host, because a URL with several hosts cannot be parsed.
    hosts: Option<String>,
}

impl ServerUrl {
    /// Parses the URL of a Redis store, which may have a password. Returns `None` for
    /// all other stores, and for text that no backend accepts as a URL.
    fn parse(url: &str) -> Option<Self> {
        // `unix:/path` has no place for hosts, and names the same socket as `unix:///path`.
        let parts = around_hosts(url);
        let several = parts.filter(|(_, hosts, _)| hosts.contains(','));
        let parsed = match several {
            Some((before, _, after)) => Url::parse(&format!("{before}host{after}")),
            None => Url::parse(url),
        };
        let parsed = parsed.ok()?;
        let is_server = match transport(&parsed) {
            OVER_SOCKET => true,
            by => parts.is_some() && OVER_TCP.contains(&by),
        };
        let hosts = several.map(|(_, hosts, _)| hosts.to_owned());
        is_server.then_some(Self { url: parsed, hosts })
    }

    fn into_text(self) -> String {
        let Some(hosts) = self.hosts else { return self.url.into() };
        let url = self.url;
        let (before, after) =
            (&url[..Position::BeforeHost], &url[Position::AfterHost..]);
        format!("{before}{hosts}{after}")
    }
}

/// Splits a URL into the text before its hosts, the hosts, and the text after them.
/// Returns `None` if it has no place for hosts.
fn around_hosts(url: &str) -> Option<(&str, &str, &str)> {
    let start = url.find("://")? + "://".len();
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    Some((&url[..start], &url[start..end], &url[end..]))
}

fn transport(url: &Url) -> &str {
    let scheme = url.scheme();
    scheme.split_once('+').map_or(scheme, |(_backend, by)| by)
}

/// Whether this is the URL of a server, and it has no password.
pub fn lacks_password(url: &str) -> bool {
    ServerUrl::parse(url).is_some_and(|server| !holds_password(&server.url))
}

/// Whether this is the URL of a server, and it has a password.
pub fn has_password(url: &str) -> bool {
    ServerUrl::parse(url).is_some_and(|server| holds_password(&server.url))
}

/// Whether this is the URL of a server, and it has a password for the sentinels.
pub fn has_sentinel_password(url: &str) -> bool {
    ServerUrl::parse(url).is_some_and(|server| {
        let mut options = server.url.query_pairs();
        options
            .any(|(name, value)| name == SENTINEL_PASSWORD_OPTION && !value.is_empty())
    })
}

fn holds_password(url: &Url) -> bool {
    if transport(url) == OVER_SOCKET {
        let mut options = url.query_pairs();
        options.any(|(name, value)| name == PASSWORD_OPTION && !value.is_empty())
    } else {
        url.password().is_some_and(|password| !password.is_empty())
    }
}

/// Returns the URL of a server with `password` instead of the password that it had.
pub fn with_password(url: &str, password: &str) -> String {
    let bare = without_options(url, |name| name == PASSWORD_OPTION);
    let Some(mut server) = ServerUrl::parse(&bare) else {
        return url.to_owned();
    };
    let with = &mut server.url;
    if transport(with) == OVER_SOCKET {
        with.query_pairs_mut().append_pair(PASSWORD_OPTION, password);
    } else if with.set_password(Some(&password.replace('%', "%25"))).is_err() {
        // A URL without a host cannot contain a password, and names no server.
        return url.to_owned();
    }
    server.into_text()
}

/// Returns the URL without its passwords, which may be before the host or among the
/// options.
pub fn without_password(url: &str) -> String {
    let is_password =
        |name: &str| [PASSWORD_OPTION, SENTINEL_PASSWORD_OPTION].contains(&name);
    let bare = without_options(url, is_password);
    let Some(mut server) = ServerUrl::parse(&bare) else { return url.to_owned() };
    // Ignore an error: it means that the URL has no host, and so no password there.
    let _ = server.url.set_password(None);
    server.into_text()
}

/// Returns the URL without the options that `is_chosen` accepts by name. If the store
/// is not a server, the URL is returned unchanged.
fn without_options(url: &str, is_chosen: impl Fn(&str) -> bool) -> String {
    let Some(mut server) = ServerUrl::parse(url) else { return url.to_owned() };
    let is_kept = |option: &&str| {
        let mut pairs = form_urlencoded::parse(option.as_bytes());
        !pairs.any(|(name, _)| is_chosen(&name))
    };
    if let Some(query) = server.url.query() {
        let rest = query.split('&').filter(is_kept).collect::<Vec<_>>().join("&");
        server.url.set_query((!rest.is_empty()).then_some(&rest));
    }
    server.into_text()
}

/// Whether this is the URL of a server on this machine: on a Unix socket, or on an address
/// that no other machine reaches.
pub fn is_on_this_machine(url: &str) -> bool {
    let Some(server) = ServerUrl::parse(url) else { return false };
    let hosts = match (&server.hosts, server.url.host_str()) {
        (Some(hosts), _) => hosts.as_str(),
        (None, Some(host)) => host,
        (None, None) => return true,
    };
    hosts.split(',').all(is_this_machine)
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns the path of a SQLite store if no file exists there. Returns `None` if the
/// file exists, and for other stores.
pub fn missing_file(url: &str) -> Option<PathBuf> {
    let (path, _options) = of_file(url)?;
    let file = absolute(path).ok()?;
    (!file.exists()).then_some(file)
}

/// The path of a SQLite store, and the options after it; `None` for other stores.
fn of_file(url: &str) -> Option<(&str, &str)> {
    let ("sqlite", rest) = url.split_once(':')? else { return None };
    let (path, options) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    let path = path.strip_prefix("//").unwrap_or(path);
    (path != ":memory:" && !path.is_empty()).then_some((path, options))
}

/// Returns the URL with absolute paths, so that it names the same store, and the same files of
/// certificates and keys, in any folder.
pub fn from_anywhere(url: &str) -> CommandResult<String> {
    let Some((path, options)) = of_file(url) else { return with_whole_files(url) };
    if Path::new(path).is_absolute() {
        return Ok(url.to_owned());
    }
    let whole = whole(path)?;
    if whole.contains('?') {
        return Err(Failure::Usage(format!(
            "the folder of {path} has a `?` in its name, where the options of a URL begin, \
             so commands cannot receive it: start relq in another folder"
        )));
    }
    Ok(format!("sqlite:{whole}{options}"))
}

/// Returns the URL of a server with absolute paths of the files that its options name.
fn with_whole_files(url: &str) -> CommandResult<String> {
    let Some((before, options)) = url.split_once('?') else {
        return Ok(url.to_owned());
    };
    let options = options.split('&').map(|option| match option.split_once('=') {
        Some((name, file)) if FILE_OPTIONS.contains(&name) && !file.is_empty() => {
            let file = percent_decode_str(file).decode_utf8_lossy();
            let whole = whole(&file)?;
            Ok(format!("{name}={}", utf8_percent_encode(&whole, IN_AN_OPTION)))
        }
        _ => Ok(option.to_owned()),
    });
    let options = options.collect::<CommandResult<Vec<_>>>()?;
    Ok(format!("{before}?{}", options.join("&")))
}

fn whole(path: &str) -> CommandResult<String> {
    let whole = absolute(path).map_err(|error| {
        Failure::Failed(format!("the folder of {path} is unknown: {error}"))
    })?;
    let whole = whole.to_str().ok_or_else(|| {
        Failure::Usage(format!(
            "the folder of {path} has a name that is not UTF-8, so commands cannot \
             receive it: give --url an absolute path"
        ))
    })?;
    Ok(whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passwords_of_the_store_and_of_its_sentinels_are_told_apart() {
        for (options, of_store, of_sentinels) in [
            ("a,b/main", false, false),
            ("a,b/main?sentinel_password=", false, false),
            (":pass@a,b/main", true, false),
            ("a,b/main?sentinel_password=x", false, true),
            (":pass@a,b/main?sentinel_password=x", true, true),
        ] {
            let url = format!("zset+redis-sentinel://{options}");
            let found = (has_password(&url), has_sentinel_password(&url));
            assert_eq!(found, (of_store, of_sentinels), "{url}");
        }
        assert!(!has_sentinel_password("sqlite:jobs.db?sentinel_password=x"));
    }

    #[test]
    fn a_password_is_taken_out_and_put_in_where_its_transport_has_it() {
        for (bare, full) in [
            ("redis://host/0", "redis://:p%40ss@host/0"),
            ("zset+rediss://me@host:1/2", "zset+rediss://me:p%40ss@host:1/2"),
            (
                "processing-list+redis://h?mode=shared",
                "processing-list+redis://:p%40ss@h?mode=shared",
            ),
            ("unix:///run/r.sock", "unix:///run/r.sock?pass=p%40ss"),
            ("zset+unix:///r?db=1&user=me", "zset+unix:///r?db=1&user=me&pass=p%40ss"),
            ("unix:/run/r.sock", "unix:/run/r.sock?pass=p%40ss"),
            ("zset+unix:/r?db=1", "zset+unix:/r?db=1&pass=p%40ss"),
            (
                "stream+redis-sentinel://me@a:1,[::1]:2/main/3",
                "stream+redis-sentinel://me:p%40ss@a:1,[::1]:2/main/3",
            ),
            ("redis-cluster://a,b:7", "redis-cluster://:p%40ss@a,b:7"),
        ] {
            assert!(lacks_password(bare) && !lacks_password(full), "{bare}");
            assert_eq!(without_password(full), bare);
            assert_eq!(with_password(bare, "p@ss"), full);
        }
        assert_eq!(without_password("unix:///r?p%61ss=x&db=1"), "unix:///r?db=1");
        assert_eq!(without_password("redis://:p@ss@h/0"), "redis://h/0");
        let sentinel = "redis-sentinel://a,b/main?sentinel_password=s&sentinel_user=u";
        let bare = "redis-sentinel://a,b/main?sentinel_user=u";
        assert_eq!(without_password(sentinel), bare);
        assert!(with_password(sentinel, "p").contains("sentinel_password=s"));
    }

    #[test]
    fn any_password_arrives() {
        for password in ["%41%", "a b", "ü/?#[]@:&=+'\"\\"] {
            for url in
                ["redis://h", "redis://me@h/1", "unix:///r.sock?db=1", "unix:/r.sock"]
            {
                let url = with_password(url, password);
                let read =
                    redis::IntoConnectionInfo::into_connection_info(url).unwrap();
                assert_eq!(read.redis_settings().password(), Some(password));
            }
        }
    }

    #[test]
    fn an_empty_password_is_none() {
        assert!(lacks_password("redis://:@h") && lacks_password("unix:///r?pass="));
        assert_eq!(with_password("unix:///r?pass=", "p"), "unix:///r?pass=p");
    }

    #[test]
    fn a_url_that_takes_no_password_is_not_changed() {
        for url in
            ["sqlite:a b.db?x", "sqlite::memory:", "redis://", "foo://me:pw@h", "x"]
        {
            assert_eq!(with_password(url, "p"), url);
            assert_eq!(without_password(url), url);
        }
        assert!(!lacks_password("sqlite:a.db"));
    }

    #[test]
    fn a_server_on_this_machine_is_known_by_its_address() {
        for url in [
            "redis://localhost",
            "zset+redis://me:p@127.0.0.1:6379/0",
            "rediss://[::1]/0",
            "stream+unix:///run/r.sock?db=1",
            "unix:/run/r.sock",
            "redis-cluster://127.0.0.1:7100,[::1]:7101,localhost",
        ] {
            assert!(is_on_this_machine(url), "{url}");
        }
        for url in [
            "redis://example.org",
            "redis://10.0.0.1:6379",
            "redis://localhost.example.org",
            "redis-sentinel://127.0.0.1:1,example.org/main",
            "sqlite:a.db",
        ] {
            assert!(!is_on_this_machine(url), "{url}");
        }
    }

    #[test]
    fn a_path_is_made_whole() {
        let folder = std::env::current_dir().unwrap();
        let folder = folder.display();
        let whole = |url| from_anywhere(url).unwrap();
        assert_eq!(whole("sqlite:a.db"), format!("sqlite:{folder}/a.db"));
        assert_eq!(whole("sqlite://a.db"), format!("sqlite:{folder}/a.db"));
        let options = "?synchronous=normal";
        let url = format!("sqlite:a b/c.db{options}");
        assert_eq!(whole(&url), format!("sqlite:{folder}/a b/c.db{options}"));
        for url in ["sqlite:/a.db", "sqlite:///a.db", "sqlite::memory:", "redis://h/0"]
        {
            assert_eq!(whole(url), url);
        }
        let url = "rediss://h?cacert=a%20b.pem&db=1&cert=/c.pem&key=/k.pem";
        let of_server = whole(url);
        let (before, after) = of_server.split_once("cacert=").unwrap();
        assert_eq!(before, "rediss://h?");
        let (file, after) = after.split_once('&').unwrap();
        let file = percent_decode_str(file).decode_utf8().unwrap();
        assert_eq!(file, format!("{folder}/a b.pem"));
        assert_eq!(after, "db=1&cert=/c.pem&key=/k.pem");
    }
}
