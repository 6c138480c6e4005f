//! The limits that are the same for all backends.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use crate::environment::Timestamp;

/// The most jobs of one call, in every backend of this repository. A call of 1000 jobs
/// blocks other calls for some milliseconds. A Lua script can unpack about 8,000
/// values, which is enough for the arguments of 1000 jobs.
pub const MAX_JOBS_PER_CALL: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// The default number of attempts of a job, also for bare payloads. River has the same
/// default; Sidekiq and asynq retry a job 25 times.
pub const DEFAULT_MAX_ATTEMPTS: NonZeroU16 = NonZeroU16::new(25).expect("not zero");

/// The longest delay, expiry, lease or wait: a hundred years. If it is added to the
/// present time, the sum in milliseconds is still exact in a double, which is the type
/// of Redis scores.
pub const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long a push can be repeated (R4). A push token is remembered for this time after
/// its first call, and a client-made id for this time after its job ended.
pub const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(5 * 60);

/// The longest error text that is kept with a job, in bytes. A longer text is cut off.
pub const MAX_ERROR_BYTES: usize = 4096;

/// Returns the part of an error text that a backend keeps with a job: the first
/// [`MAX_ERROR_BYTES`], cut between two characters.
pub fn kept_error(error: &str) -> &str {
    &error[..error.floor_char_boundary(MAX_ERROR_BYTES)]
}

/// The longest last error of a job, in bytes, with the notes that leases have expired (R11).
/// A restored one (R34) may be longer, until a note is added to it.
pub const MAX_LAST_ERROR_BYTES: usize = 8192;

/// Returns the last error of a job whose lease has expired: `last`, the error that it
/// had, and a note that the lease of this attempt expired (R11). If that is longer than
/// [`MAX_LAST_ERROR_BYTES`], only the newest notes are kept.
///
/// ```
/// use relq_core::limits::with_lost_lease;
///
/// let error = with_lost_lease(Some("busy"), 2);
/// assert_eq!(error, "busy; attempt 2: lease ended, no heartbeat");
/// ```
pub fn with_lost_lease(last: Option<&str>, attempt: u32) -> String {
    let note = format!("attempt {attempt}: lease ended, no heartbeat");
    let Some(last) = last.filter(|last| !last.is_empty()) else { return note };
    let text = format!("{last}; {note}");
    if text.len() <= MAX_LAST_ERROR_BYTES {
        return text;
    }
    let kept = &text[text.ceil_char_boundary(text.len() - MAX_LAST_ERROR_BYTES)..];
    kept.split_once("; attempt ")
        .map_or(note, |(_, newest)| format!("attempt {newest}"))
}

/// The longest last error, and the longest reason of a dead letter, that can be restored,
/// in bytes (R34). Both are longer than [`MAX_ERROR_BYTES`] if relq has added to an error.
pub const MAX_RESTORED_ERROR_BYTES: usize = 64 * 1024;

/// The latest time that can be restored with a job (R34): the last millisecond of the year
/// 9999.
pub const MAX_TIMESTAMP: Timestamp = Timestamp::from_unix_ms(253_402_300_799_999);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_notes_fit_into_the_last_error() {
        let note = "attempt 7: lease ended, no heartbeat";
        assert_eq!(with_lost_lease(None, 7), note);
        assert_eq!(with_lost_lease(Some(""), 7), note);
        assert_eq!(with_lost_lease(Some("no"), 7), format!("no; {note}"));
        let room = MAX_LAST_ERROR_BYTES - "; ".len() - note.len();
        let fits = "x".repeat(room);
        assert_eq!(with_lost_lease(Some(&fits), 7), format!("{fits}; {note}"));
        assert_eq!(with_lost_lease(Some(&(fits + "x")), 7), note);
        let older = "attempt 6: lease ended, no heartbeat";
        let long = format!("{}; {older}", "\u{20ac}".repeat(room));
        assert_eq!(with_lost_lease(Some(&long), 7), format!("{older}; {note}"));
    }

    #[test]
    fn an_error_is_cut_between_two_characters() {
        assert_eq!(kept_error("short"), "short");
        for before in 0..4 {
            let long = "x".repeat(before) + &"\u{1f600}".repeat(MAX_ERROR_BYTES);

            let kept = kept_error(&long);

            let cut_off = (MAX_ERROR_BYTES - before) % 4;
            assert_eq!(kept.len(), MAX_ERROR_BYTES - cut_off);
            assert!(long.starts_with(kept));
        }
    }
}
