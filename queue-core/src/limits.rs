//! The limits that all backends share.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

/// The most jobs of one call, in every backend of this repository. A call of so many jobs
/// blocks other calls for some milliseconds, and a Lua script can unpack their arguments:
/// it can unpack about 8,000 values.
pub const MAX_JOBS_PER_CALL: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// The default number of attempts of a job, also for bare payloads. Sidekiq, asynq and
/// River have the same default.
pub const DEFAULT_MAX_ATTEMPTS: NonZeroU16 = NonZeroU16::new(25).expect("not zero");

/// The longest delay, expiry, lease or wait: a hundred years. The sum of it and a
/// present time is still exact in a double, the type of Redis scores.
pub const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long a push can be repeated: a client-made id is remembered for so long after its
/// job ended, and a push token after its first call (R4).
pub const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(5 * 60);

/// The longest error text that is kept with a job, in bytes; the rest is cut off.
pub const MAX_ERROR_BYTES: usize = 4096;
