//! `processing-list+redis://…[?mode=shared]`, and the same by `rediss` and `unix`.

use std::sync::Arc;

use backend_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
use queue_core::{Environment, QueueName};

use super::{ConnectError, Opening, bad_url};

const PREFIX: &str = "processing-list+";

/// The option that is this backend's own; all others are the transport's.
const MODE: &str = "mode=";

pub(super) fn open(
    url: &str,
    queue: QueueName,
    environment: Environment,
) -> Opening<'_> {
    Box::pin(async move {
        let config = config(url)?.environment(environment);
        let queue = ProcessingListQueue::connect(config, queue).await?;
        Ok(Arc::new(queue) as _)
    })
}

fn config(url: &str) -> Result<ProcessingListConfig, ConnectError> {
    let address = url.strip_prefix(PREFIX).unwrap_or(url);
    let (address, mode) = split_mode(address);
    let mode = match mode {
        None | Some("worker") => Mode::PerWorker,
        Some("shared") => Mode::Shared,
        Some(_) => return Err(bad_url(url, "mode is worker or shared")),
    };
    let config = ProcessingListConfig::new(&address);
    let config = config.map_err(|error| bad_url(url, error.to_string()))?;
    Ok(config.mode(mode))
}

/// The URL without the mode, and the mode.
fn split_mode(url: &str) -> (String, Option<&str>) {
    let Some((place, options)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let (modes, others): (Vec<_>, Vec<_>) =
        options.split('&').partition(|option| option.starts_with(MODE));
    let mode = modes.last().map(|option| &option[MODE.len()..]);
    if others.is_empty() {
        return (place.to_owned(), mode);
    }
    (format!("{place}?{}", others.join("&")), mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_taken_out_of_the_url() {
        for (url, address, mode) in [
            ("redis://h/1", "redis://h/1", None),
            ("redis://h?mode=shared", "redis://h", Some("shared")),
            (
                "unix:///s?db=1&mode=worker&pass=x",
                "unix:///s?db=1&pass=x",
                Some("worker"),
            ),
        ] {
            assert_eq!(split_mode(url), (address.to_owned(), mode));
        }
    }

    #[test]
    fn what_is_wrong_with_the_url_is_said_without_its_password() {
        for (url, why) in [
            ("processing-list+redis://:s3cret@h?mode=both", "worker or shared"),
            ("processing-list+redis://:s3cret@h/zero", "not usable"),
        ] {
            let error = config(url).unwrap_err();
            let error = format!("{error} {error:?}");
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
        assert!(config("processing-list+unix:///r.sock?db=1&mode=shared").is_ok());
    }
}
