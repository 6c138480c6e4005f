//! The tables for the numbers in the text of an operation: times, jobs, batches.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use bytes::Bytes;
use relq_core::{
    Disposition, JobId, NewJob, QueueName,
    batch::{BatchPriority, NewBatch, OnComplete},
    schedule::ScheduleName,
    unique::{OnDuplicate, UniqueKey},
};

use super::{
    operation::{BatchDraft, DispositionKind, Draft},
    reference::Reference,
};
use crate::spec::class::Class;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The lengths of the leases of claims and heartbeats, which an operation names as 1
/// and 2.
const LEASES: [Duration; 2] = [ms(3_000), ms(30_000)];

/// The delays of pushes, retries and postponements, which an operation names by number.
/// Zero means no delay.
const DELAYS: [Duration; 3] = [ms(0), ms(2_000), ms(10_000)];

/// How long claims wait: not at all, for less time than the lateness of most backends,
/// and for more.
const WAITS: [Duration; 3] = [ms(0), ms(1_500), ms(4_000)];

/// The expiries of pushes, which an operation names by number.
const EXPIRIES: [Duration; 3] = [ms(4_000), ms(20_000), ms(600_000)];

/// How long results are kept, which an operation names by number: not past all leases, and
/// past all that an operation waits for but the time for which ids are remembered.
const KEPT: [Duration; 2] = [ms(20_000), ms(600_000)];

/// The priorities of batches, which an operation names by number.
const BATCH_PRIORITIES: [BatchPriority; 3] =
    [BatchPriority::NORMAL, BatchPriority::HIGHEST, BatchPriority::LOWEST];

/// The lease of a job that has a lease of its own.
const OWN_LEASE: Duration = ms(7_000);

/// The number that stands for an id or a key of the greatest length, or for many
/// headers.
const LONGEST: u8 = 9;

/// By how much `advance 1` to `advance 5` advance the clock: hardly at all, past the
/// short delays, past the short leases and expiries, past all of them, and past the
/// time for which ids are remembered.
const STEPS: [Duration; 5] = [ms(1), ms(2_100), ms(5_003), ms(31_007), ms(301_009)];

/// The errors of failed attempts: with an empty one, and with one that reads like what
/// the store adds to it.
const ERRORS: [&str; 3] = ["it failed", "", "attempt 1: \u{1f600}\nr4 e; "];

fn chosen<T: Copy>(table: &[T], number: u8) -> T {
    table[usize::from(number) % table.len()]
}

/// The lease of a claim or heartbeat. It is always the same for a backend whose
/// heartbeat extends all jobs of a worker at once.
pub(crate) fn lease(number: u8, class: &Class) -> Duration {
    let is_one = class.shares_heartbeat();
    chosen(&LEASES, if is_one { 0 } else { number })
}

/// The delay of a retry or postponement.
pub(crate) fn delay(number: u8) -> Duration {
    chosen(&DELAYS, number)
}

/// How long a claim waits.
pub(crate) fn wait(number: u8) -> Duration {
    chosen(&WAITS, number)
}

/// The disposition that a settlement names, and the delay of a retry or postponement.
pub(crate) fn disposition(kind: DispositionKind) -> (Disposition, Duration) {
    let error = || error(kind).to_owned();
    match kind {
        DispositionKind::Done => (Disposition::Done, Duration::ZERO),
        DispositionKind::DoneWith(number) => {
            (Disposition::DoneWith { result: value(number) }, Duration::ZERO)
        }
        DispositionKind::Discard => (Disposition::Discard, Duration::ZERO),
        DispositionKind::Bury => (Disposition::Dead { error: error() }, Duration::ZERO),
        DispositionKind::GiveBack => (Disposition::GiveBack, Duration::ZERO),
        DispositionKind::Retry(number) => {
            let after = delay(number);
            (Disposition::Retry { after, error: error() }, after)
        }
        DispositionKind::Postpone(number) => {
            let after = delay(number);
            (Disposition::Postpone { after }, after)
        }
    }
}

/// The error that a settlement reports. Empty if it reports none.
pub(crate) fn error(kind: DispositionKind) -> &'static str {
    match kind {
        DispositionKind::Bury => "it cannot be done",
        DispositionKind::Retry(number) => chosen(&ERRORS, number),
        _ => "",
    }
}

/// By how much the operation `advance` with that number advances the clock.
pub(crate) fn step(number: u8) -> Duration {
    chosen(&STEPS, number.wrapping_sub(1))
}

/// Whether `advance` with that number advances the clock so far that ids are forgotten.
pub(crate) fn outlasts_memory(number: u8) -> bool {
    step(number) > Duration::from_secs(5 * 60)
}

/// The job that a draft describes, without unsupported options.
pub(crate) fn job(draft: &Draft, payload: String, class: &Class) -> NewJob {
    let mut job = NewJob::new(payload);
    let chosen_if = |letter: char| Some(draft.option(letter)).filter(|it| *it > 0);
    if let Some(number) = chosen_if('d') {
        job = job.delay(delay(number));
    }
    if let Some(number) = chosen_if('e') {
        job = job.expires_in(chosen(&EXPIRIES, number - 1));
    }
    if let Some(number) = chosen_if('p') {
        let ends = [class.most_urgent(), class.least_urgent()];
        job = job.priority(chosen(&ends, number));
    }
    if let Some(number) = chosen_if('i') {
        job = job.id(client_id(number));
    }
    job = with_key(job, draft);
    if let Some(attempts) = NonZeroU16::new(u16::from(draft.option('m'))) {
        job = job.max_attempts(attempts);
    }
    if draft.option('o') > 0 {
        job = job.lease(OWN_LEASE);
    }
    if let Some(number) = chosen_if('v') {
        job = job.keep_result(chosen(&KEPT, number - 1));
    }
    // No job follows itself.
    if let Some(number) = chosen_if('f').filter(|it| *it != draft.option('i')) {
        job = job.after(client_id(number));
    }
    if let Some(number) = chosen_if('h') {
        job = headers(number)
            .into_iter()
            .fold(job, |job, (name, value)| job.header(name, value));
    }
    class.fit(job)
}

fn with_key(job: NewJob, draft: &Draft) -> NewJob {
    match (draft.option('k'), draft.option('r')) {
        (0, 0) => job,
        (number, 0) => job.unique(key(number)),
        (_, number) => job.unique_or(key(number), OnDuplicate::Reschedule),
    }
}

/// The jobs of one push. A job that follows one with a unique key of the same call would be
/// refused, and follows none here.
pub(crate) fn call(mut jobs: Vec<NewJob>) -> Vec<NewJob> {
    for at in 0..jobs.len() {
        let (earlier, later) = jobs.split_at_mut(at);
        let has_key = |it: &NewJob| it.id == later[0].after && it.unique.is_some();
        if later[0].after.is_some() && earlier.iter().any(has_key) {
            later[0].after = None;
        }
    }
    jobs
}

/// The job of a tick that a draft describes. It follows no other one.
pub(crate) fn ticked(draft: &Draft, payload: String, class: &Class) -> NewJob {
    let mut job = job(draft, payload, class);
    job.after = None;
    job
}

/// The piece that a draft describes, without options that only a plain job may have.
pub(crate) fn piece(draft: &Draft, payload: String, class: &Class) -> NewJob {
    let own = ['i', 'm', 'o', 'h', 'v'];
    let letters = Draft::LETTERS.iter().zip(draft.0);
    let kept = letters.map(|(letter, it)| if own.contains(letter) { it } else { 0 });
    let mut piece = Draft::default();
    piece.0.iter_mut().zip(kept).for_each(|(to, it)| *to = it);
    job(&piece, payload, class)
}

/// The priority and the limit of a batch.
pub(crate) fn batch(draft: BatchDraft) -> (BatchPriority, Option<NonZeroU32>) {
    let priority = chosen(&BATCH_PRIORITIES, draft.priority);
    (priority, NonZeroU32::new(u32::from(draft.slots)))
}

/// A new batch with that number. When it completes, it pushes the job `last`.
pub(crate) fn new_batch(number: u8, draft: BatchDraft, last: NewJob) -> NewBatch {
    let (priority, limit) = batch(draft);
    let mut on_complete = OnComplete::new(last);
    if draft.is_told_elsewhere {
        on_complete = on_complete.queue(elsewhere());
    }
    let new = NewBatch::new(Reference::batch_id(number));
    new.priority(priority).limit(limit).on_complete(on_complete)
}

/// The queue to which some batches push their completion jobs.
pub(crate) fn elsewhere() -> QueueName {
    QueueName::new("elsewhere").expect("a valid name")
}

pub(crate) fn schedule(number: u8) -> ScheduleName {
    ScheduleName::new(format!("schedule-{number}")).expect("a valid name")
}

/// The definition of a schedule.
pub(crate) fn definition(number: u8) -> Bytes {
    format!("definition {number}").into()
}

/// The progress or result with that number. It begins like what a store may write for a
/// job without one.
pub(crate) fn value(number: u8) -> Bytes {
    format!("u{number}").into()
}

fn client_id(number: u8) -> JobId {
    JobId::new(named("client", number, JobId::MAX_BYTES)).expect("a valid id")
}

fn key(number: u8) -> UniqueKey {
    UniqueKey::new(named("key", number, UniqueKey::MAX_BYTES)).expect("a valid key")
}

/// The name `word` with that number. With [`LONGEST`] it has as many bytes as allowed.
fn named(word: &str, number: u8, max_bytes: usize) -> String {
    let width = if number == LONGEST { max_bytes - word.len() - 1 } else { 1 };
    format!("{word}-{number:0>width$}")
}

/// One header, or for [`LONGEST`] many long ones, with empty and odd values among them.
fn headers(number: u8) -> Vec<(String, String)> {
    if number != LONGEST {
        return vec![("name".to_owned(), "value".to_owned())];
    }
    let odd = ["", " ", "\r\n$5\r\n", "\"}],{", "\u{0}", "7"];
    let long = (0..30).map(|at| (format!("{at:0>100}"), "v".repeat(at * 10)));
    odd.into_iter()
        .map(|text| (format!("odd {text}"), text.to_owned()))
        .chain(long)
        .collect()
}
