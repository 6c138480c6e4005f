//! The text of an operation in a replay line. `parse.rs` reads it.
//!
//! ```text
//!  p push j,jd1k2 t1    a plain job, and one with delay 1 and unique key 2; token 1
//!  p push ji1,jf1       a job with client's id 1, and one that follows it
//!  a claim 3 l1         worker a claims up to three jobs, with lease 1
//!  a claim 1 l0 w2      worker a claims one job, and waits for it by wait 2
//!  a settle 0D,1R2      newest receipt: done; the one before: retry, delay 2
//!  a settle 0P1,1G      newest receipt: postpone, delay 1; the one before: give back
//!  a settle 0D2         newest receipt: done with result 2
//!  a report 0 v1        newest receipt: progress 1; result 0 reads of the newest job
//!  r recover 2 !after1  the reaper recovers a page of 2, and dies after its 1st step
//!  - advance 3          time passes
//!  p create 1 p1s2      batch 1 of priority 1, with 2 slots
//!  p add 1 j,j t1       two pieces of batch 1; token 1
//!  p create 1 p0s0e     its completion job goes to another queue
//!  p seal 1             also: cancel-batch 1, alter 1 p0s1; batch 1 and wait-batch 1
//!                       read a batch, and batches lists all
//!  p put 1 d2           schedule 1 with definition 2; also: remove-schedule 1
//!  p tick 1 d2 s5 jk1   its tick 5 s after the beginning; s+0, s+1 and s-1 count from
//!                       the last whole second; schedules lists all
//!  o peek dead          also: scheduled, ready, leased; stats; audit
//!  o newest dead        the same list, newest first
//!  o run 0              runs the newest job now; show 0 looks for it by its id
//!  o restore dead2:jk1  restores a dead job with two attempts; also ready1:j, and
//!                       scheduled0:jd1, due by delay 1
//!  a report             worker a reports that it runs; workers lists all that do
//! ```

use std::fmt;

use super::{
    Act, BatchDraft, BatchWord, DispositionKind, Draft, DraftSettlement, How,
    InjectedFault, Operation, RestoreDraft, RestoredAs, TickTime, Who,
};

pub(super) const ACTORS: [(Who, &str); 6] = [
    (Who::Producer, "p"),
    (Who::WorkerA, "a"),
    (Who::WorkerB, "b"),
    (Who::Operator, "o"),
    (Who::Reaper, "r"),
    (Who::Nobody, "-"),
];

pub(super) const FAULTS: [(How, &str); 7] = [
    (How::Before, "before"),
    (How::After, "after"),
    (How::Ghost, "ghost"),
    (How::CutBefore, "cut-before"),
    (How::CutAfter, "cut-after"),
    (How::Loading, "loading"),
    (How::OutOfMemory, "oom"),
];

/// The operations that are one word.
pub(super) static WORDS: [(Act, &str); 14] = [
    (Act::ReleaseWorker, "release-worker"),
    (Act::CancelUnknown, "cancel-unknown"),
    (Act::Pause, "pause"),
    (Act::Resume, "resume"),
    (Act::Redrive, "redrive"),
    (Act::PurgeDead, "purge-dead"),
    (Act::Purge, "purge"),
    (Act::Stats, "stats"),
    (Act::ReportWorker, "report"),
    (Act::Workers, "workers"),
    (Act::Audit, "audit"),
    (Act::ListBatches, "batches"),
    (Act::ListSchedules, "schedules"),
    (Act::Release, "release"),
];

/// The words for those calls on a batch that have no options.
pub(super) const BATCH_WORDS: [(BatchWord, &str); 4] = [
    (BatchWord::Read, "batch"),
    (BatchWord::Wait, "wait-batch"),
    (BatchWord::Seal, "seal"),
    (BatchWord::Cancel, "cancel-batch"),
];

pub(super) const RESTORED_STATES: [(RestoredAs, &str); 3] = [
    (RestoredAs::Ready, "ready"),
    (RestoredAs::Scheduled, "scheduled"),
    (RestoredAs::Dead, "dead"),
];

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", name_in(&ACTORS, self.who), self.act)?;
        match self.fault {
            None => Ok(()),
            Some(InjectedFault { how, step }) => {
                write!(f, " !{}{step}", name_in(&FAULTS, how))
            }
        }
    }
}

fn name_in<T: Copy + PartialEq>(names: &[(T, &'static str)], of: T) -> &'static str {
    names.iter().find(|(known, _)| *known == of).map_or("?", |(_, name)| name)
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push { jobs, token } => {
                write!(f, "push {}{}", list(jobs), optional_text("t", *token))
            }
            Self::Repeat { token } => write!(f, "repeat t{token}"),
            Self::Claim { max, lease, wait } => {
                write!(f, "claim {max} l{lease}{}", optional_text("w", *wait))
            }
            Self::Settle(words) => write!(f, "settle {}", list(words)),
            Self::SettleAndClaim { words, max, lease } => {
                write!(f, "settle-and-claim {} {max} l{lease}", list(words))
            }
            Self::Extend { receipts, lease } => {
                write!(f, "extend {} l{lease}", list(receipts))
            }
            Self::Recover { page } => write!(f, "recover {page}"),
            Self::AdvanceBy(time) => write!(f, "advance {}ms", time.as_millis()),
            Self::Advance(step) => write!(f, "advance {step}"),
            Self::Cancel { job } => write!(f, "cancel {job}"),
            Self::RedriveOne { job } => write!(f, "redrive-one {job}"),
            Self::Report { receipt, value } => write!(f, "report {receipt} v{value}"),
            Self::Result { job } => write!(f, "result {job}"),
            Self::Peek(state) => write!(f, "peek {}", state.as_str()),
            Self::Newest(state) => write!(f, "newest {}", state.as_str()),
            Self::RunNow { job } => write!(f, "run {job}"),
            Self::Show { job } => write!(f, "show {job}"),
            Self::Restore { jobs } => write!(f, "restore {}", list(jobs)),
            act => write_batch_act(act, f),
        }
    }
}

fn write_batch_act(act: &Act, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match act {
        Act::CreateBatch { batch, options } => write!(f, "create {batch} {options}"),
        Act::Add { batch, jobs, token } => {
            write!(f, "add {batch} {}{}", list(jobs), optional_text("t", *token))
        }
        Act::Batch { batch, word: BatchWord::Alter(options) } => {
            write!(f, "alter {batch} {options}")
        }
        Act::Batch { batch, word } => {
            write!(f, "{} {batch}", name_in(&BATCH_WORDS, *word))
        }
        act => write_schedule_act(act, f),
    }
}

fn write_schedule_act(act: &Act, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match act {
        Act::PutSchedule { schedule, definition } => {
            write!(f, "put {schedule} d{definition}")
        }
        Act::RemoveSchedule { schedule } => write!(f, "remove-schedule {schedule}"),
        Act::Tick { schedule, definition, at, job } => {
            write!(f, "tick {schedule} d{definition} {at} {job}")
        }
        word => {
            let known = WORDS.iter().find(|(known, _)| known == word);
            f.write_str(known.map_or("?", |(_, name)| name))
        }
    }
}

/// The number as the last word of an operation. No word if it is zero.
fn optional_text(mark: &str, number: u8) -> String {
    if number == 0 { String::new() } else { format!(" {mark}{number}") }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("j")?;
        let options = Self::LETTERS.iter().zip(self.0);
        options
            .filter(|(_, number)| *number > 0)
            .try_for_each(|(letter, number)| write!(f, "{letter}{number}"))
    }
}

impl fmt::Display for RestoreDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = name_in(&RESTORED_STATES, self.state);
        write!(f, "{state}{}:{}", self.attempt, self.job)
    }
}

impl fmt::Display for BatchDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elsewhere = if self.is_told_elsewhere { "e" } else { "" };
        write!(f, "p{}s{}{elsewhere}", self.priority, self.slots)
    }
}

impl fmt::Display for TickTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Since(seconds) => write!(f, "s{seconds}"),
            Self::Now(seconds) => write!(f, "s{seconds:+}"),
        }
    }
}

impl fmt::Display for DraftSettlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.receipt)?;
        match self.disposition {
            DispositionKind::Done => f.write_str("D"),
            DispositionKind::DoneWith(value) => write!(f, "D{value}"),
            DispositionKind::Discard => f.write_str("X"),
            DispositionKind::Bury => f.write_str("B"),
            DispositionKind::GiveBack => f.write_str("G"),
            DispositionKind::Retry(delay) => write!(f, "R{delay}"),
            DispositionKind::Postpone(delay) => write!(f, "P{delay}"),
        }
    }
}
