//! The options of a job and the results of its attempts, derived from the job's number
//! alone. So each process knows what another process must see.

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    Bytes, NewJob, Priority,
    capabilities::{Capabilities, Capability},
    unique::UniqueKey,
};

/// The `max_attempts` of a job that never succeeds.
const ATTEMPTS_OF_THE_HOPELESS: NonZeroU16 = NonZeroU16::new(2).expect("not zero");

/// The number of digits of the job's number at the start of a payload.
const DIGITS: usize = 18;

/// How the attempts of a job end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerPlan {
    /// This many attempts fail, and the next one succeeds.
    SucceedsAfter(u32),
    /// All attempts fail, until the job is buried.
    NeverSucceeds,
}

/// How the attempts of the job with that number end.
pub(super) fn plan(number: u64) -> HandlerPlan {
    match number % 20 {
        0 | 1 => HandlerPlan::SucceedsAfter(1),
        2 => HandlerPlan::SucceedsAfter(2),
        3 => HandlerPlan::NeverSucceeds,
        _ => HandlerPlan::SucceedsAfter(0),
    }
}

/// The job with that number as a producer pushes it, without unsupported options.
pub(super) fn job(number: u64, capabilities: &Capabilities) -> NewJob {
    let supports = |option| capabilities.supported.contains(&option);
    let mut job = NewJob::new(payload(number));
    if plan(number) == HandlerPlan::NeverSucceeds {
        job = job.max_attempts(ATTEMPTS_OF_THE_HOPELESS);
    }
    if number.is_multiple_of(7) && supports(Capability::Delay) {
        job = job.delay(Duration::from_millis(number * 37 % 1500));
    }
    if number.is_multiple_of(5) && supports(Capability::Priority) {
        let told_apart = &capabilities.priorities;
        let level = priority(number).clamp(*told_apart.start(), *told_apart.end());
        job = job.priority(level);
    }
    if number.is_multiple_of(11) && supports(Capability::Unique) {
        job = job.unique(key(number));
    }
    job
}

/// The payload of the job with that number: the number, then bytes of every value.
pub(super) fn payload(number: u64) -> Bytes {
    let mut payload = format!("{number:0DIGITS$}").into_bytes();
    let noise = (0..number % 300).map(|at| (number * 31 + at * 7).to_le_bytes()[0]);
    payload.extend(noise);
    payload.into()
}

/// The number of the job that has exactly this payload. `None` if no job has it.
pub(super) fn number(found: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(found.get(..DIGITS)?).ok()?;
    digits.parse().ok().filter(|&number| payload(number) == found)
}

fn priority(number: u64) -> Priority {
    let level = u8::try_from(number / 5 % 10).expect("below ten");
    Priority::new(level).expect("below ten")
}

/// The unique key of the job with that number: one of 20, so that many pushes find
/// their key held.
fn key(number: u64) -> UniqueKey {
    UniqueKey::new(format!("key-{}", number / 11 % 20)).expect("the key is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_a_number_and_a_changed_one_has_none() {
        for job in [0, 299, 1_000_000_123] {
            let mut payload = payload(job).to_vec();
            assert_eq!(number(&payload), Some(job));
            payload.push(0);
            assert_eq!(number(&payload), None);
        }
        assert_eq!(number(b"17"), None);
    }
}
