//! The data that every pattern stores in addition to its ready and leased jobs:
//! scheduled and dead jobs, unique keys, ids and push tokens to remember, totals.
//!
//! ```text
//!               push, promote, redrive         claim
//!  bookkeeping ------------------------> ready --------> leased
//!    ^                                     ^                |
//!    |                                     '-- give_back ---|
//!    '----------------- fail, bury, cancel -----------------'
//! ```
//!
//! Each pattern has a `pattern.lua` that defines how it stores ready and leased jobs,
//! by these functions. The bookkeeping's scripts call them, and the pattern's own
//! scripts may call them too:
//!
//! | function | what it does |
//! |---|---|
//! | `pattern_keys(first)` | the pattern's keys by name, from `KEYS[first]` on |
//! | `check_ready(keys)` | fails if a key of ready jobs has the wrong type |
//! | `append(keys, entries)` | makes new jobs of normal priority ready |
//! | `make_ready(keys, job, entry, direction)` | makes a job ready at the `'front'` or `'back'`; returns `'kept'` if its entry is in `jobs`; `job.is_kept` says that the entry is there already |
//! | `find_leased(keys, lease, position)` | the leased entry (`''` if it is missing) and when the lease ends (ms), or nil when the lease is lost |
//! | `drop_leased(keys, lease, position)` | removes the leased job |
//! | `find_kept_ready(keys, id)` | optional: whether a ready job has its entry in `jobs` under this id |
//! | `ready_among(keys, ids)` | optional: a set of those ids that a ready job has, which a client may have set without relq |
//!
//! `keys` are the bookkeeping's and the pattern's, `position` counts the leases of a call
//! from 1. A script writes where a job goes before it removes it from where it was, so
//! that a script that fails half way loses no job.

mod audit;
mod calls;
mod claim;
mod dead;
mod deliver;
mod extend;
mod inspect;
mod keys;
mod last_hint;
mod list;
mod listing;
mod members;
mod page_size;
mod peek;
mod push;
mod recover;
mod restore;
mod results;
mod scan;
mod schedules;
mod scripts;
mod settle;
mod step;

pub use audit::{Pair, PairRule, Seen, audit};
pub use calls::{Bookkeeping, Failure};
pub use claim::{
    ClaimPattern, ClaimRound, FinishedAndClaimed, WaitHint, WaitingPattern, claim,
    claim_now, settle_and_claim,
};
pub use deliver::{Undeliverable, bury_beside, delivery, read};
pub use extend::Beat;
pub use keys::BookkeepingKeys;
pub use last_hint::LastHint;
pub use list::ListPages;
pub use listing::{
    Look, SectionPart, SectionRequest, in_order, next_offset, offset_of,
};
pub use members::{Member, StoredJob, next_of, position};
pub use page_size::{PageSize, REPLY_BYTES};
pub use peek::cannot_be_read;
pub use push::{Stores, push, token_of_another_call};
pub(crate) use restore::Restored;
pub use scan::{ScanPages, Scanned};
pub use schedules::push_tick;
pub use scripts::{BookkeepingScripts, is_sent_by, library};
pub(crate) use settle::settle_counting;
pub use settle::{Ended, Finish, Settles, WITH_RESULTS, settle};
pub use step::{Step, Steps};
