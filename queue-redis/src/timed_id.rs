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
//! Two calls get the same id only if they are made in the same millisecond and draw the
//! same 40 random bits. Even then no job is lost (R4). The ids of a call with a push
//! token begin with the token, and earlier versions drew 16 random digits: such ids have
//! no time.

use relq_core::{
    JobId, PushToken,
    environment::{Randomness, Timestamp},
};

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
const TIME_DIGITS: usize = 9;
const RANDOM_DIGITS: usize = 8;

/// Makes a token for the jobs of a call at `now`, from which their ids are derived.
pub(crate) fn token(now: Timestamp, random: &dyn Randomness) -> PushToken {
    let ms = now.unix_ms().max(0).unsigned_abs();
    let digit = |place: usize| char::from(DIGITS[(ms >> (5 * place) & 31) as usize]);
    let time: String = (0..TIME_DIGITS).rev().map(digit).collect();
    PushToken::new(time + &random.text(RANDOM_DIGITS)).expect("few letters and digits")
}

/// The time in an id that relq made; `None` if the id has none.
pub(crate) fn time_of(id: &JobId) -> Option<Timestamp> {
    let (token, _) = id.as_str().split_once('-')?;
    if token.len() != TIME_DIGITS + RANDOM_DIGITS {
        return None;
    }
    let digit = |byte: u8| DIGITS.iter().position(|digit| *digit == byte);
    let digits: Option<Vec<usize>> = token.bytes().map(digit).collect();
    let time = digits?.into_iter().take(TIME_DIGITS);
    let ms = time.fold(0, |ms: i64, digit| ms << 5 | i64::try_from(digit).unwrap_or(0));
    Some(Timestamp::from_unix_ms(ms))
}

#[cfg(test)]
mod tests {
    use relq_core::environment::OsRandomness;

    use super::*;

    #[test]
    fn an_id_tells_the_time_that_it_was_made_of() {
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
        for id in
            ["mine", "0123456789abcdef-0", "0123456789abcdefw-0", "q1234567890-bare-1"]
        {
            assert_eq!(time_of(&JobId::new(id).unwrap()), None, "{id}");
        }
    }
}
