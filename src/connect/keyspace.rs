//! Opens URLs of the form `keyspace+redis://…[?foreign=tolerate]`, and the same with
//! `rediss` and `unix`.

use relq_keyspace::KeyspaceConfig;

use super::{ConnectError, opening::bad_url, own_option};

const PREFIX: &str = "keyspace+";

on_redis!(relq_keyspace::connect, whole);

/// A queue of this backend has no parts, which `partitions.rs` has checked.
fn whole(config: KeyspaceConfig, _: relq_redis::Partition) -> KeyspaceConfig {
    config
}

fn config(url: &str) -> Result<KeyspaceConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    own_option::check(url, address, &["foreign"])?;
    let (address, foreign) = own_option::split(address, "foreign");
    let config = KeyspaceConfig::new(&address);
    let config = config.map_err(|error| bad_url(url, error.to_string()))?;
    match foreign.as_slice() {
        [] | ["refuse"] => Ok(config),
        ["tolerate"] => Ok(config.tolerate_foreign_keys()),
        _ => Err(bad_url(url, "the option foreign must be refuse or tolerate")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_keys_are_tolerated_where_the_url_says_so() {
        let set = |url| format!("{:?}", config(url).unwrap());
        for url in
            ["keyspace+redis://h/2", "keyspace+unix:///r.sock?db=1&foreign=refuse"]
        {
            assert!(set(url).contains("Refused"), "{url}");
        }
        for url in [
            "keyspace+redis://h/2?foreign=tolerate",
            "keyspace+unix:///r.sock?foreign=tolerate&db=1",
        ] {
            assert!(set(url).contains("Tolerated"), "{url}");
        }
        let at_database = set("keyspace+unix:///r.sock?foreign=tolerate&db=1");
        assert!(at_database.contains("/1"), "{at_database}");
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        let error =
            config("keyspace+redis://:s3cret@host/0?foreign=maybe").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("foreign must be refuse or tolerate"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        assert!(config("keyspace+redis://:s3cret@host/zero").is_err());
    }
}
