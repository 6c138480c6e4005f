//! Separates the options that belong to the backend, or to relq, from a URL. All other
//! options belong to the transport.

use relq_redis::RedisConfig;

use super::{ConnectError, opening::bad_url, partitions::OPTIONS};

/// Refuses a URL with an option that neither the backend nor its transport has. The
/// options of [`partitions`](super::partitions) were taken out before.
pub(super) fn check(
    url: &str,
    address: &str,
    own: &[&str],
) -> Result<(), ConnectError> {
    let known: Vec<_> = own.iter().chain(&OPTIONS).copied().collect();
    RedisConfig::check_options(address, &known)
        .map_err(|error| bad_url(url, error.to_string()))
}

/// Returns the URL without the option called `name`, and the values of that option.
pub(super) fn split<'a>(url: &'a str, name: &str) -> (String, Vec<&'a str>) {
    let Some((place, options)) = url.split_once('?') else {
        return (url.to_owned(), Vec::new());
    };
    let value =
        |option: &'a str| option.split_once('=').filter(|(key, _)| *key == name);
    let others: Vec<_> =
        options.split('&').filter(|option| value(option).is_none()).collect();
    let values = options.split('&').filter_map(value).map(|(_, value)| value);
    let rest = others.join("&");
    let rest = if rest.is_empty() { rest } else { format!("?{rest}") };
    (format!("{place}{rest}"), values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_taken_out_and_the_others_stay() {
        for (url, rest, values) in [
            ("redis://h/1", "redis://h/1", vec![]),
            ("redis://h?finish=lrem", "redis://h", vec!["lrem"]),
            ("unix:///s?db=1&finish=x&pass=y", "unix:///s?db=1&pass=y", vec!["x"]),
            ("redis://h?finished=1&finish", "redis://h?finished=1&finish", vec![]),
        ] {
            assert_eq!(split(url, "finish"), (rest.to_owned(), values));
        }
    }
}
