//! The form of an operation in a replay line.
//!
//! ```text
//!  p push j,jd1k2 t1    a plain job, and one with delay 1 and unique key 2; token 1
//!  a claim 3 l1         worker a claims up to three jobs, with lease 1
//!  a settle 0D,1R2      newest receipt: done; the one before: retry, delay 2
//!  r recover 2 !after1  the reaper recovers a page of 2, and dies after its 1st step
//!  - advance 3          time passes
//!  p create 1 p1s2      batch 1 of priority 1, with 2 slots
//!  p add 1 j,j t1       two pieces of batch 1; token 1
//!  p seal 1             so do cancel-batch 1, alter 1 p0s1 and batch 1, which reads it
//! ```

use std::{fmt, str::FromStr};

use relq_core::operator::JobState;

use super::{
    Act, BatchDraft, BatchWord, DispositionKind, Draft, DraftSettlement, How,
    InjectedFault, Operation, STATES, Who,
};

const ACTORS: [(Who, &str); 6] = [
    (Who::Producer, "p"),
    (Who::WorkerA, "a"),
    (Who::WorkerB, "b"),
    (Who::Operator, "o"),
    (Who::Reaper, "r"),
    (Who::Nobody, "-"),
];

const FAULTS: [(How, &str); 7] = [
    (How::Before, "before"),
    (How::After, "after"),
    (How::Ghost, "ghost"),
    (How::CutBefore, "cut-before"),
    (How::CutAfter, "cut-after"),
    (How::Loading, "loading"),
    (How::OutOfMemory, "oom"),
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
            Self::Push { jobs, token: 0 } => write!(f, "push {}", list(jobs)),
            Self::Push { jobs, token } => write!(f, "push {} t{token}", list(jobs)),
            Self::Repeat { token } => write!(f, "repeat t{token}"),
            Self::Claim { max, lease } => write!(f, "claim {max} l{lease}"),
            Self::Settle(words) => write!(f, "settle {}", list(words)),
            Self::SettleAndClaim { words, max, lease } => {
                write!(f, "settle-and-claim {} {max} l{lease}", list(words))
            }
            Self::Extend { receipts, lease } => {
                write!(f, "extend {} l{lease}", list(receipts))
            }
            Self::ReleaseWorker => f.write_str("release-worker"),
            Self::Recover { page } => write!(f, "recover {page}"),
            Self::Advance(step) => write!(f, "advance {step}"),
            Self::Cancel { job } => write!(f, "cancel {job}"),
            Self::CancelUnknown => f.write_str("cancel-unknown"),
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
            Self::Redrive => f.write_str("redrive"),
            Self::RedriveOne { job } => write!(f, "redrive-one {job}"),
            Self::PurgeDead => f.write_str("purge-dead"),
            Self::Purge => f.write_str("purge"),
            Self::CreateBatch { batch, options } => {
                write!(f, "create {batch} {options}")
            }
            Self::Add { batch, jobs, token: 0 } => {
                write!(f, "add {batch} {}", list(jobs))
            }
            Self::Add { batch, jobs, token } => {
                write!(f, "add {batch} {} t{token}", list(jobs))
            }
            Self::Batch { batch, word } => match word {
                BatchWord::Read => write!(f, "batch {batch}"),
                BatchWord::Seal => write!(f, "seal {batch}"),
                BatchWord::Cancel => write!(f, "cancel-batch {batch}"),
                BatchWord::Alter(options) => write!(f, "alter {batch} {options}"),
            },
            Self::Peek(state) => write!(f, "peek {}", state.as_str()),
            Self::Stats => f.write_str("stats"),
            Self::Release => f.write_str("release"),
        }
    }
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

impl fmt::Display for BatchDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}s{}", self.priority, self.slots)
    }
}

impl fmt::Display for DraftSettlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.receipt)?;
        match self.disposition {
            DispositionKind::Done => f.write_str("D"),
            DispositionKind::Discard => f.write_str("X"),
            DispositionKind::Bury => f.write_str("B"),
            DispositionKind::GiveBack => f.write_str("G"),
            DispositionKind::Retry(delay) => write!(f, "R{delay}"),
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is not an operation");
        let mut words = text.split_whitespace();
        let who = words.next().and_then(|word| value_in(&ACTORS, word));
        let mut rest: Vec<_> = words.collect();
        let fault = match rest.last().and_then(|word| word.strip_prefix('!')) {
            None => None,
            Some(word) => {
                rest.pop();
                Some(fault(word).ok_or_else(unknown)?)
            }
        };
        let act = act(&rest).ok_or_else(unknown)?;
        Ok(Self { who: who.ok_or_else(unknown)?, act, fault })
    }
}

fn value_in<T: Copy>(names: &[(T, &'static str)], text: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == text).map(|(value, _)| *value)
}

fn fault(word: &str) -> Option<InjectedFault> {
    let step = word.find(|symbol: char| symbol.is_ascii_digit())?;
    let (how, step) = word.split_at(step);
    Some(InjectedFault { how: value_in(&FAULTS, how)?, step: step.parse().ok()? })
}

fn act(words: &[&str]) -> Option<Act> {
    Some(match words {
        ["push", jobs] => Act::Push { jobs: items(jobs, draft)?, token: 0 },
        ["push", jobs, token] => {
            Act::Push { jobs: items(jobs, draft)?, token: marked(token, "t")? }
        }
        ["repeat", token] => Act::Repeat { token: marked(token, "t")? },
        ["claim", max, lease] => {
            Act::Claim { max: max.parse().ok()?, lease: marked(lease, "l")? }
        }
        ["settle", sent] => Act::Settle(items(sent, word)?),
        ["settle-and-claim", sent, max, lease] => Act::SettleAndClaim {
            words: items(sent, word)?,
            max: max.parse().ok()?,
            lease: marked(lease, "l")?,
        },
        ["extend", receipts, lease] => Act::Extend {
            receipts: items(receipts, |one| one.parse().ok())?,
            lease: marked(lease, "l")?,
        },
        ["release-worker"] => Act::ReleaseWorker,
        ["recover", page] => Act::Recover { page: page.parse().ok()? },
        ["advance", step] => Act::Advance(step.parse().ok()?),
        ["cancel", job] => Act::Cancel { job: job.parse().ok()? },
        ["cancel-unknown"] => Act::CancelUnknown,
        ["pause"] => Act::Pause,
        ["resume"] => Act::Resume,
        ["redrive"] => Act::Redrive,
        ["redrive-one", job] => Act::RedriveOne { job: job.parse().ok()? },
        ["purge-dead"] => Act::PurgeDead,
        ["purge"] => Act::Purge,
        ["create", batch, options] => Act::CreateBatch {
            batch: batch.parse().ok()?,
            options: batch_draft(options)?,
        },
        ["add", batch, jobs, token @ ..] => Act::Add {
            batch: batch.parse().ok()?,
            jobs: items(jobs, draft)?,
            token: match token {
                [] => 0,
                [token] => marked(token, "t")?,
                _ => return None,
            },
        },
        [word, batch, options @ ..] if batch_word(word, options).is_some() => {
            Act::Batch { batch: batch.parse().ok()?, word: batch_word(word, options)? }
        }
        ["peek", state] => Act::Peek(peeked_state(state)?),
        ["stats"] => Act::Stats,
        ["release"] => Act::Release,
        _ => return None,
    })
}

fn peeked_state(word: &str) -> Option<JobState> {
    STATES.into_iter().find(|state| state.as_str() == word)
}

fn items<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(item).collect()
}

fn marked(word: &str, mark: &str) -> Option<u8> {
    word.strip_prefix(mark)?.parse().ok()
}

fn draft(text: &str) -> Option<Draft> {
    let mut draft = Draft::default();
    let mut symbols = text.strip_prefix('j')?.chars();
    while let Some(letter) = symbols.next() {
        let at = Draft::LETTERS.iter().position(|known| *known == letter)?;
        draft.0[at] = u8::try_from(symbols.next()?.to_digit(10)?).ok()?;
    }
    Some(draft)
}

fn batch_draft(text: &str) -> Option<BatchDraft> {
    let (priority, slots) = text.strip_prefix('p')?.split_once('s')?;
    Some(BatchDraft { priority: priority.parse().ok()?, slots: slots.parse().ok()? })
}

fn batch_word(word: &str, options: &[&str]) -> Option<BatchWord> {
    Some(match (word, options) {
        ("batch", []) => BatchWord::Read,
        ("seal", []) => BatchWord::Seal,
        ("cancel-batch", []) => BatchWord::Cancel,
        ("alter", [options]) => BatchWord::Alter(batch_draft(options)?),
        _ => return None,
    })
}

fn word(text: &str) -> Option<DraftSettlement> {
    let disposition = text.find(|symbol: char| symbol.is_ascii_uppercase())?;
    let (receipt, disposition) = text.split_at(disposition);
    let disposition = match disposition {
        "D" => DispositionKind::Done,
        "X" => DispositionKind::Discard,
        "B" => DispositionKind::Bury,
        "G" => DispositionKind::GiveBack,
        _ => DispositionKind::Retry(marked(disposition, "R")?),
    };
    Some(DraftSettlement { receipt: receipt.parse().ok()?, disposition })
}
