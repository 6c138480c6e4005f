//! Numbers and times in few columns.

use std::time::Duration;

use relq::environment::Timestamp;

/// A duration in its two largest units, such as `850ms`, `12s`, `3m05s` or `2d04h`.
pub(super) fn short(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 => format!("{}ms", length.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// How long ago a time was. A time that is still to come is now: the clock of the store
/// may be ahead of ours.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    short(if at > now { Duration::ZERO } else { now.since(at) })
}

/// How long it is until a time.
pub(super) fn until(at: Timestamp, now: Timestamp) -> String {
    if at > now { short(at.since(now)) } else { "now".to_owned() }
}

/// A rate in at most six columns.
pub(super) fn rate(rate: f64) -> String {
    if rate < 1000.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (ms, shown) in [
            (0, "0ms"),
            (850, "850ms"),
            (12_999, "12s"),
            (185_000, "3m05s"),
            (3_599_000, "59m59s"),
            (7_260_000, "2h01m"),
            (187_200_000, "2d04h"),
        ] {
            assert_eq!(short(Duration::from_millis(ms)), shown);
        }
    }

    #[test]
    fn a_clock_that_is_ahead_is_no_error() {
        let at = Timestamp::from_unix_ms;
        assert_eq!(ago(at(5000), at(4000)), "0ms");
        assert_eq!(ago(at(4000), at(5000)), "1s");
        assert_eq!(until(at(4000), at(5000)), "now");
        assert_eq!(until(at(65_000), at(5000)), "1m00s");
    }

    #[test]
    fn rates_are_short() {
        assert_eq!(rate(0.04), "0.0");
        assert_eq!(rate(999.94), "999.9");
        assert_eq!(rate(12_345.6), "12346");
    }
}
