//! The words in which a log names the jobs of a call.

use std::time::Duration;

use relq_core::{ClaimRequest, Disposition, NewJob, Settlement, operator::Selection};

/// How many of a call's jobs the log names. It only counts the others.
pub(super) const NAMED: usize = 3;

/// How many bytes of a payload the log shows.
const SHOWN: usize = 24;

/// The payloads of the first jobs, and the number of the others.
pub(super) fn pushed(jobs: &[NewJob]) -> String {
    some_of(jobs.iter().map(|job| {
        let shown = &job.payload[..job.payload.len().min(SHOWN)];
        let cut = if job.payload.len() > SHOWN { "..." } else { "" };
        format!("`{}{cut}`", shown.escape_ascii())
    }))
}

pub(super) fn claimed(ask: &ClaimRequest) -> String {
    let wait = match ask.wait {
        Duration::ZERO => String::new(),
        wait => format!(", and waits up to {wait:?} for the first"),
    };
    format!("claims up to {} jobs as {}{wait}", ask.max, ask.worker)
}

pub(super) fn settled(done: &[Settlement]) -> String {
    let jobs = some_of(done.iter().map(|Settlement { receipt, disposition }| {
        let end = match disposition {
            Disposition::Done => "done",
            Disposition::DoneWith { .. } => "done with a result",
            Disposition::Retry { .. } => "to retry",
            Disposition::Dead { .. } => "dead",
            Disposition::Discard => "discarded",
            Disposition::Postpone { .. } => "postponed",
            Disposition::GiveBack => "given back",
        };
        format!("{} as {end}", receipt.job())
    }));
    format!("settles {jobs}")
}

pub(super) fn selected(which: &Selection) -> String {
    match which {
        Selection::All => "all dead jobs".to_owned(),
        Selection::Only(jobs) => {
            format!("dead jobs {}", some_of(jobs.iter().map(ToString::to_string)))
        }
    }
}

/// The first of the names, and the number of the others.
pub(super) fn some_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let others = names.len().saturating_sub(NAMED);
    let shown = names.take(NAMED).collect::<Vec<_>>().join(", ");
    match others {
        0 if shown.is_empty() => "nothing".to_owned(),
        0 => shown,
        _ => format!("{shown} and {others} more"),
    }
}
