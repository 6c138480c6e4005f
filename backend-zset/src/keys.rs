//! The keys of a queue, and what is in them.
//!
//! ```text
//!  ready      LIST    Q itself: jobs of normal priority, oldest on the right
//!  handed     LIST    the few of them that a doorbell has moved; older
//!  ranked     ZSET    id -> rank: ready jobs of all other priorities
//!  later      ZSET    id -> due (ms): scheduled jobs
//!  leased     ZSET    lease -> end (ms): jobs in the hands of workers
//!  dead       ZSET    id -> since (ms): dead letters
//!  held       HASH    lease -> entry, of leased jobs
//!  jobs       HASH    id -> entry, of scheduled, ranked and dead jobs
//!  errors     HASH    id -> why it died or failed last
//!  unique     HASH    unique key -> when it expires (ms, 0 never), holder's id
//!  ids        ZSET    client-made id -> when it may be forgotten (ms)
//!  calls      ZSET    push token -> when it may be forgotten (ms)
//!  answers    HASH    push token -> the answer of its call
//!  cancelled  ZSET    lease of a cancelled job -> when it may be forgotten (ms)
//!  totals     HASH    finished, discarded, cancelled
//!  paused     STRING  there while claims are paused
//!  wake       LIST    at most one token, for the doorbells
//! ```
//!
//! A key is there only while something is in it. A ready job of normal priority
//! costs one list element and nothing else.

use queue_core::QueueName;
use queue_redis::KeyPrefix;

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) queue: QueueName,
    pub(crate) ready: String,
    pub(crate) handed: String,
    pub(crate) ranked: String,
    pub(crate) later: String,
    pub(crate) leased: String,
    pub(crate) dead: String,
    pub(crate) held: String,
    pub(crate) jobs: String,
    pub(crate) errors: String,
    pub(crate) unique: String,
    pub(crate) ids: String,
    pub(crate) calls: String,
    pub(crate) answers: String,
    pub(crate) cancelled: String,
    pub(crate) totals: String,
    pub(crate) paused: String,
    pub(crate) wake: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue.clone());
        Self {
            queue,
            ready: prefix.producer(),
            handed: prefix.part("handed"),
            ranked: prefix.part("ranked"),
            later: prefix.part("later"),
            leased: prefix.part("leased"),
            dead: prefix.part("dead"),
            held: prefix.part("held"),
            jobs: prefix.part("jobs"),
            errors: prefix.part("errors"),
            unique: prefix.part("unique"),
            ids: prefix.part("ids"),
            calls: prefix.part("calls"),
            answers: prefix.part("answers"),
            cancelled: prefix.part("cancelled"),
            totals: prefix.part("totals"),
            paused: prefix.part("paused"),
            wake: prefix.part("wake"),
        }
    }
}
