//! What every pattern keeps beside its ready and leased jobs: scheduled and dead jobs,
//! unique keys, ids and push tokens to remember, totals.
//!
//! ```text
//!            push, promote, redrive            claim
//!  bookkeeping  ---------------------------> ready --------> leased
//!    ^                                   ^                |
//!    |                                   '-- give_back ---|
//!    '---------------- fail, bury, cancel ----------------'
//! ```
//!
//! A pattern says in a `pattern.lua` of its own how it keeps ready and leased jobs, by
//! these functions; the bookkeeping's scripts call them, and so may its own:
//!
//! | function | what it does |
//! |---|---|
//! | `pattern_keys(first)` | the pattern's keys by name, from `KEYS[first]` on |
//! | `check_ready(keys)` | fails where a key of ready jobs has another type |
//! | `append(keys, entries)` | makes new jobs of normal priority ready |
//! | `make_ready(keys, job, entry, direction)` | makes a job ready at the `'front'` or `'back'`; answers `'kept'` when its entry is in `jobs`, where it is already if `job.is_kept` |
//! | `find_leased(keys, lease, position)` | the leased entry (`''` if it is missing) and when the lease ends (ms), or nil when the lease is lost |
//! | `drop_leased(keys, lease, position)` | takes it out of its place |
//! | `notify(keys)` | has an idle claim look again |
//! | `is_ready(keys, id)` | optional: whether a ready job has that id, which a client may have set without relq |
//!
//! `keys` are the bookkeeping's and the pattern's, `position` counts the leases of a call
//! from 1. A script writes where a job goes before it removes it from where it was, so
//! that one that fails half way has lost nothing.

mod audit;
mod calls;
mod claim;
mod dead;
mod deliver;
mod extend;
mod keys;
mod list;
mod peek;
mod push;
mod recover;
mod scripts;
mod settle;

pub use audit::{Seen, audit};
pub use calls::{Bookkeeping, Failure};
pub use claim::{
    ClaimPattern, ClaimRound, WaitHint, WaitingPattern, claim, claim_now,
    settle_and_claim,
};
pub use deliver::{Undeliverable, bury_beside, delivery, read};
pub use extend::Beat;
pub use keys::BookkeepingKeys;
pub use list::ListPages;
pub use peek::{Look, page};
pub use push::{is_plain, token_of_another_call};
pub use scripts::{BookkeepingScripts, library};
pub use settle::{Ended, Finish, Settles, settle};
