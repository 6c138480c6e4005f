//! Parses the text of an operation, which `text.rs` describes.

use std::{str::FromStr, time::Duration};

use relq_core::operator::JobState;

use super::{
    Act, BatchDraft, BatchWord, DispositionKind, Draft, DraftSettlement, InjectedFault,
    Operation, RestoreDraft, STATES, TickTime,
    text::{ACTORS, BATCH_WORDS, FAULTS, RESTORED_STATES, WORDS},
};

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
        ["push", jobs, token @ ..] => {
            Act::Push { jobs: items(jobs, draft)?, token: optional(token, "t")? }
        }
        ["repeat", token] => Act::Repeat { token: marked(token, "t")? },
        ["claim", max, lease, wait @ ..] => Act::Claim {
            max: max.parse().ok()?,
            lease: marked(lease, "l")?,
            wait: optional(wait, "w")?,
        },
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
        ["recover", page] => Act::Recover { page: page.parse().ok()? },
        ["advance", time] => advance(time)?,
        ["cancel", job] => Act::Cancel { job: job.parse().ok()? },
        ["redrive-one", job] => Act::RedriveOne { job: job.parse().ok()? },
        ["report", receipt, value] => {
            Act::Report { receipt: receipt.parse().ok()?, value: marked(value, "v")? }
        }
        ["result", job] => Act::Result { job: job.parse().ok()? },
        ["peek", state] => Act::Peek(peeked_state(state)?),
        ["newest", state] => Act::Newest(peeked_state(state)?),
        ["run", job] => Act::RunNow { job: job.parse().ok()? },
        ["show", job] => Act::Show { job: job.parse().ok()? },
        ["restore", jobs] => Act::Restore { jobs: items(jobs, restored)? },
        words => return schedule_act(words),
    })
}

/// Parses how far the clock moves: milliseconds, or the index of a step.
fn advance(time: &str) -> Option<Act> {
    let Some(ms) = time.strip_suffix("ms") else {
        return Some(Act::Advance(time.parse().ok()?));
    };
    Some(Act::AdvanceBy(Duration::from_millis(ms.parse().ok()?)))
}

/// Parses a call on a schedule.
fn schedule_act(words: &[&str]) -> Option<Act> {
    Some(match words {
        ["put", schedule, definition] => Act::PutSchedule {
            schedule: schedule.parse().ok()?,
            definition: marked(definition, "d")?,
        },
        ["remove-schedule", schedule] => {
            Act::RemoveSchedule { schedule: schedule.parse().ok()? }
        }
        ["tick", schedule, definition, at, job] => Act::Tick {
            schedule: schedule.parse().ok()?,
            definition: marked(definition, "d")?,
            at: tick_time(at)?,
            job: draft(job)?,
        },
        words => return batch_act(words),
    })
}

/// Parses a call on a batch, or an operation of one word.
fn batch_act(words: &[&str]) -> Option<Act> {
    Some(match words {
        ["create", batch, options] => Act::CreateBatch {
            batch: batch.parse().ok()?,
            options: batch_draft(options)?,
        },
        ["add", batch, jobs, token @ ..] => Act::Add {
            batch: batch.parse().ok()?,
            jobs: items(jobs, draft)?,
            token: optional(token, "t")?,
        },
        ["alter", batch, options] => Act::Batch {
            batch: batch.parse().ok()?,
            word: BatchWord::Alter(batch_draft(options)?),
        },
        [word, batch] => Act::Batch {
            batch: batch.parse().ok()?,
            word: value_in(&BATCH_WORDS, word)?,
        },
        [word] => WORDS.iter().find(|(_, name)| name == word)?.0.clone(),
        _ => return None,
    })
}

fn peeked_state(word: &str) -> Option<JobState> {
    STATES.into_iter().find(|state| state.as_str() == word)
}

fn items<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(item).collect()
}

/// The number of the last word of an operation. Zero if there is no such word.
fn optional(words: &[&str], mark: &str) -> Option<u8> {
    match words {
        [] => Some(0),
        [word] => marked(word, mark),
        _ => None,
    }
}

fn marked(word: &str, mark: &str) -> Option<u8> {
    word.strip_prefix(mark)?.parse().ok()
}

fn tick_time(word: &str) -> Option<TickTime> {
    let seconds = word.strip_prefix('s')?;
    match seconds.starts_with(['+', '-']) {
        true => seconds.parse().ok().map(TickTime::Now),
        false => seconds.parse().ok().map(TickTime::Since),
    }
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

/// Parses a job to restore, such as `dead2:jk1`.
fn restored(text: &str) -> Option<RestoreDraft> {
    let (past, job) = text.split_once(':')?;
    let attempt = past.find(|symbol: char| symbol.is_ascii_digit())?;
    let (state, attempt) = past.split_at(attempt);
    Some(RestoreDraft {
        state: value_in(&RESTORED_STATES, state)?,
        attempt: attempt.parse().ok()?,
        job: draft(job)?,
    })
}

fn batch_draft(text: &str) -> Option<BatchDraft> {
    let (priority, slots) = text.strip_prefix('p')?.split_once('s')?;
    let told_elsewhere = slots.strip_suffix('e');
    Some(BatchDraft {
        priority: priority.parse().ok()?,
        slots: told_elsewhere.unwrap_or(slots).parse().ok()?,
        is_told_elsewhere: told_elsewhere.is_some(),
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
        _ => marked(disposition, "R")
            .map(DispositionKind::Retry)
            .or_else(|| marked(disposition, "D").map(DispositionKind::DoneWith))
            .or_else(|| marked(disposition, "P").map(DispositionKind::Postpone))?,
    };
    Some(DraftSettlement { receipt: receipt.parse().ok()?, disposition })
}
