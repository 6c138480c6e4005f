//! Parses the option `--retry` of `relq work`.

use std::time::Duration;

use relq::worker::RetryPolicy;

use crate::values::positive_duration;

/// The longest wait before an attempt, if the option does not name one.
const MOST: Duration = Duration::from_secs(60 * 60);

/// Parses `FIRST..MOST` or `FIRST`, such as `5s..10m`.
pub(super) fn retry_policy(text: &str) -> Result<RetryPolicy, String> {
    let (first, most) = match text.split_once("..") {
        Some((first, most)) => (first, Some(most)),
        None => (text, None),
    };
    let first = positive_duration(first)?;
    let most = most.map(positive_duration).transpose()?.unwrap_or(MOST.max(first));
    RetryPolicy::exponential(first, most).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_longest_wait_are_read() {
        let policy = |first, most| {
            let seconds = Duration::from_secs;
            RetryPolicy::exponential(seconds(first), seconds(most)).unwrap()
        };
        assert_eq!(retry_policy("5s..10m"), Ok(policy(5, 600)));
        assert_eq!(retry_policy("5s"), Ok(policy(5, 3600)));
        assert_eq!(retry_policy("2h"), Ok(policy(7200, 7200)));
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for (text, words) in [
            ("5", "a duration is a number with its unit"),
            ("5s..", "a duration is"),
            ("0s", "at least 1ms"),
            ("10s..5s", "begins with a delay above its cap"),
            ("1s..101years", "longer than a hundred years"),
        ] {
            let error = retry_policy(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
