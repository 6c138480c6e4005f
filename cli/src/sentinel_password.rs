//! Adds the password of the sentinels, which `RELQ_SENTINEL_PASSWORD_FILE` names, to the
//! URL of a store.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::failure::{CommandResult, Failure};

/// The environment variable that names a file with the password of the sentinels. It is
/// used if the URL names sentinels and has no `sentinel_password`.
pub(crate) const SENTINEL_PASSWORD_FILE: &str = "RELQ_SENTINEL_PASSWORD_FILE";

const OPTION: &str = "sentinel_password";

/// The path of the file. `None` if the variable is not set.
pub(crate) fn file() -> Option<PathBuf> {
    let name = env::var_os(SENTINEL_PASSWORD_FILE).filter(|name| !name.is_empty());
    name.map(PathBuf::from)
}

/// Returns the URL with the password from the file, if it may need one and has none.
pub(crate) fn complete(url: String) -> CommandResult<String> {
    match file() {
        Some(file) if lacks_password(&url) => Ok(with_password(&url, &read(&file)?)),
        _ => Ok(url),
    }
}

fn lacks_password(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let has_option = |query: &str| {
        query.split('&').any(|option| option.starts_with(&format!("{OPTION}=")))
    };
    scheme.ends_with("-sentinel")
        && !url.split_once('?').is_some_and(|(_, query)| has_option(query))
}

fn with_password(url: &str, password: &str) -> String {
    let mut escaped = String::new();
    for byte in password.bytes() {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{OPTION}={escaped}")
}

fn read(file: &Path) -> CommandResult<String> {
    let unusable = |why: &str| {
        let file = file.display();
        Failure::Failed(format!("the file {file} of {SENTINEL_PASSWORD_FILE} {why}"))
    };
    let bytes = fs::read(file)
        .map_err(|error| unusable(&format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("is not UTF-8"))?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(unusable("holds no password")),
        password => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sentinels_without_a_password_get_one() {
        for url in [
            "redis://h/0",
            "sqlite:a.db",
            "zset+redis-cluster://a,b",
            "redis-sentinel://a/main?sentinel_password=p",
            "redis-sentinel://a/main?replicas=1&sentinel_password=p",
        ] {
            assert!(!lacks_password(url), "{url}");
        }
        assert!(lacks_password("redis-sentinel://a,b/main"));
        assert!(lacks_password("zset+rediss-sentinel://a/main?sentinel_user=me"));
    }

    /// An editor adds a newline to the password, which does not belong to it.
    #[test]
    fn a_password_ends_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for text in ["p", "p\n", "p\r\n"] {
            fs::write(&file, text).unwrap();
            assert_eq!(read(&file).unwrap(), "p", "{text:?}");
        }
        for text in ["", "\n", "\r\n"] {
            fs::write(&file, text).unwrap();
            let Err(Failure::Failed(message)) = read(&file) else { panic!("{text:?}") };
            assert!(message.ends_with("holds no password"), "{message}");
        }
    }

    #[test]
    fn any_password_is_an_option_of_the_url() {
        assert_eq!(
            with_password("redis-sentinel://a/main", "p&ß"),
            "redis-sentinel://a/main?sentinel_password=p%26%C3%9F"
        );
        assert_eq!(
            with_password("redis-sentinel://a/main?replicas=1", "p"),
            "redis-sentinel://a/main?replicas=1&sentinel_password=p"
        );
    }
}
