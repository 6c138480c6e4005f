//! The keys of the bookkeeping, which mean the same in every pattern.
//!
//! ```text
//!  later      ZSET    id -> due (ms), place among those due then: scheduled jobs
//!  jobs       HASH    id -> entry, of scheduled and dead jobs; a pattern may keep
//!                     ready jobs there too
//!  dead       ZSET    id -> since (ms), place among those since then: dead letters
//!  errors     HASH    id -> a letter for why it died, and its last error; of a restored
//!                     dead job the letter r, the length of its reason as a decimal
//!                     number, a space, its reason, and its last error
//!  unique     HASH    unique key -> when it expires (ms, 0 never), holder's id
//!  ids        ZSET    client-made id -> when it may be forgotten (ms), plus a half if
//!                     the job has ended and was not done
//!  calls      ZSET    push token -> when it may be forgotten (ms)
//!  answers    HASH    push token -> the result of its call
//!  cancelled  ZSET    lease of a cancelled job -> when it may be forgotten (ms)
//!  totals     HASH    finished, discarded, cancelled
//!  paused     STRING  exists while claims are paused
//!  wake       LIST    at most one token, for the notifiers
//!
//!  schedules  HASH    name -> last tick (ms, 6 bytes), definition
//!
//!  results    HASH    id -> a letter for what became of the job, and its result
//!  kept       ZSET    id -> when its result is kept no longer (ms)
//!  ended      STREAM  the ids of the last jobs that ended, for clients that wait
//!
//!  followers  HASH    id of a leader -> size of its followers' entries (4 bytes), and
//!                     the id of each held follower (1 + n bytes), in push order
//!  orphans    ZSET    id of a held job to cancel -> when its leader ended (ms)
//!
//!  alive      ZSET    worker -> until when it is listed (ms)
//!  runs       HASH    worker -> its first report (ms, 6 bytes), its slots (4 bytes)
//! ```
//!
//! A score of `later` and `dead` is a time and a position. Its whole part is the time
//! in milliseconds. Its fraction orders the members of one millisecond: each new one is
//! the smallest step of a double behind the last. There are 4,096 steps in a
//! millisecond until the year 2039, and 2,048 until 2109; members beyond that share the
//! last step, and their order among each other is undefined. A queue that an earlier
//! version wrote has whole scores, which mean the same. A held job (R30) has no due time:
//! its score in `later` is infinite.
//!
//! The bookkeeping's scripts get the first twelve in this order, and then the pattern's
//! own.

use crate::KeyPrefix;

/// The names of the bookkeeping's keys.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the head of the module tells them all")]
pub struct BookkeepingKeys {
    pub later: String,
    pub jobs: String,
    pub dead: String,
    pub errors: String,
    pub unique: String,
    pub ids: String,
    pub calls: String,
    pub answers: String,
    pub cancelled: String,
    pub totals: String,
    pub paused: String,
    pub wake: String,
    pub schedules: String,
    pub results: String,
    pub kept: String,
    pub ended: String,
    pub followers: String,
    pub orphans: String,
    pub alive: String,
    pub runs: String,
}

impl BookkeepingKeys {
    /// The names of the bookkeeping's keys for one queue.
    pub fn new(prefix: &KeyPrefix) -> Self {
        Self {
            later: prefix.part("later"),
            jobs: prefix.part("jobs"),
            dead: prefix.part("dead"),
            errors: prefix.part("errors"),
            unique: prefix.part("unique"),
            ids: prefix.part("ids"),
            calls: prefix.part("calls"),
            answers: prefix.part("answers"),
            cancelled: prefix.part("cancelled"),
            totals: prefix.part("totals"),
            paused: prefix.part("paused"),
            wake: prefix.part("wake"),
            schedules: prefix.part("schedules"),
            results: prefix.part("results"),
            kept: prefix.part("kept"),
            ended: prefix.part("ended"),
            followers: prefix.part("followers"),
            orphans: prefix.part("orphans"),
            alive: prefix.part("alive"),
            runs: prefix.part("runs"),
        }
    }

    /// The twelve names that all of the bookkeeping's scripts receive, in this order.
    pub fn all(&self) -> [&str; 12] {
        [
            &self.later,
            &self.jobs,
            &self.dead,
            &self.errors,
            &self.unique,
            &self.ids,
            &self.calls,
            &self.answers,
            &self.cancelled,
            &self.totals,
            &self.paused,
            &self.wake,
        ]
    }
}
