//! Opens URLs of the form `stream+redis://…`, and the same with `rediss` and `unix`.

use relq_stream::StreamConfig;

use super::{ConnectError, opening::bad_url, own_option};

const PREFIX: &str = "stream+";

on_redis!(relq_stream::connect, StreamConfig::partition);

fn config(url: &str) -> Result<StreamConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    own_option::check(url, address, &[])?;
    StreamConfig::new(address).map_err(|error| bad_url(url, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_url_is_refused_without_showing_its_password() {
        let error = config("stream+redis://:s3cret@host/zero").unwrap_err();
        let error = format!("{error} {error:?}");
        assert!(error.contains("not usable"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        assert!(config("stream+unix:///r.sock?db=1").is_ok());
    }
}
