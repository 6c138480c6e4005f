//! Changes to the URL of a store: add or remove its password, and make it valid in any
//! folder.

use std::path::{Path, PathBuf, absolute};

use url::{Url, form_urlencoded};

use crate::failure::{CommandResult, Failure};

/// The transports to Redis over TCP: the scheme of a URL, alone or after `backend+`.
const OVER_TCP: [&str; 2] = ["redis", "rediss"];
const OVER_SOCKET: &str = "unix";

/// The option that holds the password in the URL of a Unix socket.
const PASSWORD_OPTION: &str = "pass";

/// The URL of a store that may ask for a password; `None` for all other stores, and for
/// text that no backend accepts as a URL.
fn of_server(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let by = transport(&url);
    (OVER_TCP.contains(&by) || by == OVER_SOCKET).then_some(url)
}

fn transport(url: &Url) -> &str {
    let scheme = url.scheme();
    scheme.split_once('+').map_or(scheme, |(_backend, by)| by)
}

/// Whether the URL may need a password and has none.
pub fn lacks_password(url: &str) -> bool {
    of_server(url).is_some_and(|url| !holds_password(&url))
}

/// Whether the URL of a server holds a password.
pub fn has_password(url: &str) -> bool {
    of_server(url).is_some_and(|url| holds_password(&url))
}

fn holds_password(url: &Url) -> bool {
    if transport(url) == OVER_SOCKET {
        let mut options = url.query_pairs();
        options.any(|(name, value)| name == PASSWORD_OPTION && !value.is_empty())
    } else {
        url.password().is_some_and(|password| !password.is_empty())
    }
}

/// The URL of a server with this password.
pub fn with_password(url: &str, password: &str) -> String {
    let Some(mut with) = of_server(&without_password(url)) else {
        return url.to_owned();
    };
    if transport(&with) == OVER_SOCKET {
        with.query_pairs_mut().append_pair(PASSWORD_OPTION, password);
    } else if with.set_password(Some(&password.replace('%', "%25"))).is_err() {
        // The URL names no host, so it cannot be connected to.
        return url.to_owned();
    }
    with.into()
}

/// The URL without its password, wherever the password is.
pub fn without_password(url: &str) -> String {
    let Some(mut without) = of_server(url) else { return url.to_owned() };
    // The call fails if the URL has no host; then it has no password either.
    let _ = without.set_password(None);
    if let Some(query) = without.query() {
        let options = query.split('&').filter(|option| !is_password(option));
        let rest = options.collect::<Vec<_>>().join("&");
        without.set_query((!rest.is_empty()).then_some(&rest));
    }
    without.into()
}

fn is_password(option: &str) -> bool {
    let mut pairs = form_urlencoded::parse(option.as_bytes());
    pairs.any(|(name, _)| name == PASSWORD_OPTION)
}

/// The file of a SQLite store, if it does not exist.
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

/// The URL with an absolute path, so that it means the same store in any folder.
pub fn from_anywhere(url: &str) -> CommandResult<String> {
    let Some((path, options)) = of_file(url) else { return Ok(url.to_owned()) };
    if Path::new(path).is_absolute() {
        return Ok(url.to_owned());
    }
    let whole = absolute(path).map_err(|error| {
        Failure::Failed(format!("the folder of {path} cannot be told: {error}"))
    })?;
    let whole = whole.to_str().ok_or_else(|| {
        Failure::Usage(format!(
            "the folder of {path} has a name that is not UTF-8, so commands cannot be \
             told of it: give --url an absolute path"
        ))
    })?;
    Ok(format!("sqlite:{whole}{options}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(lacks_password(bare) && !lacks_password(full), "{bare}");
            assert_eq!(without_password(full), bare);
            assert_eq!(with_password(bare, "p@ss"), full);
        }
        assert_eq!(without_password("unix:///r?p%61ss=x&db=1"), "unix:///r?db=1");
        assert_eq!(without_password("redis://:p@ss@h/0"), "redis://h/0");
    }

    #[test]
    fn any_password_arrives() {
        for password in ["%41%", "a b", "ü/?#[]@:&=+'\"\\"] {
            for url in ["redis://h", "redis://me@h/1", "unix:///r.sock?db=1"] {
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
    fn what_needs_no_password_stays_as_it_is() {
        for url in
            ["sqlite:a b.db?x", "sqlite::memory:", "redis://", "foo://me:pw@h", "x"]
        {
            assert_eq!(with_password(url, "p"), url);
            assert_eq!(without_password(url), url);
        }
        assert!(!lacks_password("sqlite:a.db"));
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
    }
}
