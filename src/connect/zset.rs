//! Opens URLs of the form `zset+redis://…`, and the same with `rediss` and `unix`. The
//! prefix `zset+` may be left out.

use relq_zset::ZsetConfig;

use super::{ConnectError, opening::bad_url, own_option};

const PREFIX: &str = "zset+";

on_redis!(relq_zset::connect, ZsetConfig::partition);

fn config(url: &str) -> Result<ZsetConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    own_option::check(url, address, &[])?;
    ZsetConfig::new(address).map_err(|error| bad_url(url, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_may_be_left_out() {
        for url in ["redis://h", "zset+redis://:p@h:1/2", "zset+unix:///r.sock?db=1"] {
            assert!(config(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        for url in [
            "redis://:s3cret@host:port/0",
            "redis://:s3cret@host/zero",
            "redis://:s3cret@",
            "zset+redis:s3cret@host",
            "zset+unix://?pass=s3cret",
            "redis://host:1:s3cret@x/0/1",
        ] {
            let Err(error) = config(url) else { continue };
            let error = format!("{error} {error:?}");
            assert!(
                error.contains("not usable") || error.contains("BadUrl"),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
        let error = config("redis://:s3cret@host/zero").unwrap_err().to_string();
        assert!(error.contains("redis://***@host/zero"), "{error}");
    }
}
