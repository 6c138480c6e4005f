//! Reads the options of a URL that the client library does not know.

use std::{path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use relq_core::limits::MAX_DURATION;

use crate::{InvalidUrl, conn::Replication};

/// The PEM files that a URL over TLS names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsFiles {
    /// The authorities that may have issued the server's certificate.
    pub(crate) authority: Option<PathBuf>,
    /// The client's certificate and its private key.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Removes the options that name the files. Returns the URL without them, and the
    /// files.
    pub(crate) fn take(url: &str) -> Result<(String, Self), InvalidUrl> {
        let (url, authority) = take_file(url, "cacert")?;
        let (url, certificate) = take_file(&url, "cert")?;
        let (url, key) = take_file(&url, "key")?;
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                let reason = "cert and key belong together: name both files".to_owned();
                return Err(InvalidUrl { reason });
            }
        };
        Ok((url, Self { authority, client }))
    }
}

/// Removes an option that names a file. Returns the URL without it, and the file.
fn take_file(
    url: &str,
    name: &'static str,
) -> Result<(String, Option<PathBuf>), InvalidUrl> {
    let file = |text: &str| {
        let path = percent_decode_str(text).decode_utf8().ok()?;
        (!path.is_empty()).then(|| PathBuf::from(path.as_ref()))
    };
    take(url, name, "the path of one file", "/etc/redis/ca.pem", file)
}

/// How long a call waits for replicas unless configured otherwise: 1 s. A replica that
/// is up to date answers within a round trip.
const DEFAULT_REPLICA_TIMEOUT: Duration = Duration::from_secs(1);

/// Removes an option that is a time. Returns the URL without it, and its value, which is
/// at most [`MAX_DURATION`]: a longer time cannot be added to the present one.
pub(crate) fn take_time(
    url: &str,
    name: &'static str,
) -> Result<(String, Option<Duration>), InvalidUrl> {
    let time = |text: &str| {
        let time = humantime::parse_duration(text).ok()?.min(MAX_DURATION);
        (!time.is_zero()).then_some(time)
    };
    take(url, name, "one time above zero", "30s or 500ms", time)
}

/// Removes the options `replicas` and `replica_timeout`. Returns the URL without them,
/// and their values.
pub(crate) fn take_replication(
    url: &str,
) -> Result<(String, Option<Replication>), InvalidUrl> {
    let number = |text: &str| text.parse().ok();
    let (url, replicas) = take(url, "replicas", "one number above zero", "1", number)?;
    let (url, timeout) = take_time(&url, "replica_timeout")?;
    if replicas.is_none() && timeout.is_some() {
        let reason =
            "replica_timeout needs replicas=…, a number of replicas".to_owned();
        return Err(InvalidUrl { reason });
    }
    let timeout = timeout.unwrap_or(DEFAULT_REPLICA_TIMEOUT);
    Ok((url, replicas.map(|replicas| Replication { replicas, timeout })))
}

/// Removes the option `name` from the URL. Returns the URL without it, and its value as
/// `read` reads it. The error for a value that cannot be read, or for a second one, says
/// what the option `is`, with an example.
fn take<T>(
    url: &str,
    name: &'static str,
    is: &str,
    example: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<(String, Option<T>), InvalidUrl> {
    let (rest, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let Some((place, options)) = rest.split_once('?') else {
        return Ok((url.to_owned(), None));
    };
    let is_it = |option: &&str| option.split('=').next() == Some(name);
    let (ours, others): (Vec<_>, Vec<_>) = options.split('&').partition(is_it);
    let value = match ours.as_slice() {
        [] => return Ok((url.to_owned(), None)),
        [option] => option.split_once('=').and_then(|(_, value)| read(value)),
        _ => None,
    };
    let value = value.ok_or_else(|| InvalidUrl {
        reason: format!("{name} is {is}, as in {name}={example}"),
    })?;
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{place}{mark}{}{fragment}", others.join("&")), Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisConfig;

    #[test]
    fn the_files_of_tls_are_set_by_the_url() {
        let (rest, files) =
            TlsFiles::take("rediss://h?cacert=/a%20b/ca.pem&db=1&cert=c&key=k")
                .unwrap();
        assert_eq!(rest, "rediss://h?db=1");
        assert_eq!(files.authority, Some("/a b/ca.pem".into()));
        assert_eq!(files.client, Some(("c".into(), "k".into())));

        for (url, words) in [
            ("rediss://h?cert=c", "cert and key belong together"),
            ("rediss://h?key=k", "cert and key belong together"),
            ("rediss://h?cacert=", "cacert is the path of one file"),
            ("redis://h?cacert=c", "has no option \"cacert\""),
        ] {
            let error = RedisConfig::new(url).unwrap_err().to_string();
            assert!(error.contains(words), "{url}: {error}");
        }
    }

    #[test]
    fn replicas_are_set_by_the_url() {
        let replication = |url| RedisConfig::new(url).unwrap().replication;
        assert_eq!(replication("redis://h"), None);
        let two = replication("redis://h/1?replicas=2&replica_timeout=300ms").unwrap();
        assert_eq!((two.replicas.get(), two.timeout.as_millis()), (2, 300));
        let one = replication("redis-sentinel://h/main?replicas=1").unwrap();
        assert_eq!((one.replicas.get(), one.timeout), (1, DEFAULT_REPLICA_TIMEOUT));

        for (options, words) in [
            ("replicas=0", "replicas is one number above zero"),
            ("replicas=all", "as in replicas=1"),
            ("replicas=1&replicas=2", "replicas is one number"),
            ("replica_timeout=1s", "needs replicas="),
            ("replicas=1&replica_timeout=0s", "replica_timeout is one time"),
        ] {
            let error = RedisConfig::new(&format!("redis://h?{options}")).unwrap_err();
            assert!(error.to_string().contains(words), "{options}: {error}");
        }
    }

    #[test]
    fn an_invalid_time_is_refused_with_an_example() {
        for option in ["=5", "=0s", "=-1s", "=", "", "=1s&response_timeout=2s"] {
            let url = format!("redis://h?response_timeout{option}");

            let error = RedisConfig::new(&url).unwrap_err();

            assert!(error.to_string().contains("response_timeout=30s"), "{error}");
        }
    }
}
