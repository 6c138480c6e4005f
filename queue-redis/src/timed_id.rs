//! Ids that say when their job was pushed, so that most entries need no field for it
//! (R27).
//!
//! ```text
//!  1lkd0f3ap 6h0mqt2c -0      0-9a-v, five bits a digit, the most significant first
//!  |         |         '-- position of the job in the call
//!  |         '-- 8 random digits
//!  '-- 9 digits: the time of the push, ms since 1970
//! ```
//!
//! Two calls get the same ids only if they are made in the same millisecond and draw the
//! same 40 random bits. So only plain jobs have such ids, because a plain push stores a
//! job without looking for another one with its id. A push that looks for one would
//! refuse the job as a duplicate (R4): its ids have 80 random bits, or begin with the push
//! token.

use relq_core::{
    JobId, PushToken,
    environment::{Randomness, Timestamp},
};

const TIME_DIGITS: usize = 9;
const RANDOM_DIGITS: usize = 8;

/// Makes a token for the jobs of a call at `now`, from which their ids are derived.
pub(crate) fn token(now: Timestamp, random: &dyn Randomness) -> PushToken {
    PushToken::ordered(now, RANDOM_DIGITS, random)
}

/// The time in an id that relq made; `None` if the id has none.
pub(crate) fn time_of(id: &JobId) -> Option<Timestamp> {
    let id = id.as_str().as_bytes();
    let (token, rest) = id.split_at_checked(TIME_DIGITS + RANDOM_DIGITS)?;
    let (time, random) = token.split_at(TIME_DIGITS);
    let is_made = rest.first() == Some(&b'-')
        && random.iter().all(|digit| value_of(*digit).is_some());
    let ms = time.iter().try_fold(0, |ms, digit| Some(ms << 5 | value_of(*digit)?));
    ms.filter(|_| is_made).map(Timestamp::from_unix_ms)
}

fn value_of(digit: u8) -> Option<i64> {
    match digit {
        b'0'..=b'9' => Some(i64::from(digit - b'0')),
        b'a'..=b'v' => Some(i64::from(digit - b'a') + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use relq_core::environment::OsRandomness;

    use super::*;

    #[test]
    fn an_id_contains_the_time_that_it_was_made_from() {
        for ms in [0, 31, 1_800_000_000_123, (1 << 45) - 1] {
            let now = Timestamp::from_unix_ms(ms);
            let id = token(now, &OsRandomness).job_id(1000);

            assert_eq!(time_of(&id), Some(now), "{id}");
            let renamed = JobId::new(format!("{id}~2")).unwrap();
            assert_eq!(time_of(&renamed), Some(now), "{renamed}");
        }
    }

    #[test]
    fn other_ids_have_no_time() {
        for id in [
            "mine",
            "0123456789abcdef-0",
            "0123456789abcdefw-0",
            "w123456789abcdef0-0",
            "0123456789abcdef01-0",
            "0123456789abcdef0",
            "q1234567890-bare-1",
        ] {
            assert_eq!(time_of(&JobId::new(id).unwrap()), None, "{id}");
        }
    }
}
