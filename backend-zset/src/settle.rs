//! Carrying out verdicts: one call for each kind of them, all in one round trip.

use queue_core::{
    DuplicateOf, Error, JobId, Operation, Pushed, Receipt, Settled, Settlement, Verdict,
};
use queue_redis::Reply;

use crate::{
    lease,
    queue::MAX_BATCH,
    scripts::{Ended, Failure, Store},
};

/// The longest error that is kept with a job, in bytes.
const MAX_ERROR: usize = 4096;

/// Carries out any number of verdicts and answers for each.
pub(crate) async fn settle(
    store: &Store,
    done: &[Settlement],
) -> Result<Vec<Settled>, Error> {
    let mut answers = Vec::with_capacity(done.len());
    for page in done.chunks(MAX_BATCH.get() as usize) {
        answers.extend(settle_page(store, page).await?);
    }
    Ok(answers)
}

/// The settlements of a page by what has to be called for them, each with its
/// position in the page.
#[derive(Default)]
struct Groups<'a> {
    finished: Vec<(usize, &'a Receipt)>,
    finished_tied: Vec<(usize, &'a Receipt)>,
    discarded: Vec<(usize, &'a Receipt)>,
    discarded_tied: Vec<(usize, &'a Receipt)>,
    failed: Vec<(usize, Failure<'a>)>,
    given_back: Vec<(usize, &'a Receipt)>,
}

impl<'a> Groups<'a> {
    fn of(page: &'a [Settlement]) -> Self {
        let mut groups = Self::default();
        for (at, Settlement { receipt, verdict }) in page.iter().enumerate() {
            let is_tied = lease::has_ties(receipt);
            match verdict {
                Verdict::Done if is_tied => groups.finished_tied.push((at, receipt)),
                Verdict::Done => groups.finished.push((at, receipt)),
                Verdict::Discard if is_tied => {
                    groups.discarded_tied.push((at, receipt))
                }
                Verdict::Discard => groups.discarded.push((at, receipt)),
                Verdict::GiveBack => groups.given_back.push((at, receipt)),
                Verdict::Retry { after, error } => {
                    groups.failed.push((at, failure(receipt, Some(*after), error)));
                }
                Verdict::Dead { error } => {
                    groups.failed.push((at, failure(receipt, None, error)));
                }
            }
        }
        groups
    }
}

async fn settle_page(
    store: &Store,
    page: &[Settlement],
) -> Result<Vec<Settled>, Error> {
    let groups = Groups::of(page);
    // Polled in this order, they are written to the connection together.
    let lost = tokio::try_join!(
        finish(store, &groups.finished, Ended::Finished),
        finish_tied(store, &groups.finished_tied, Ended::Finished),
        finish(store, &groups.discarded, Ended::Discarded),
        finish_tied(store, &groups.discarded_tied, Ended::Discarded),
        fail(store, groups.failed),
        give_back(store, &groups.given_back),
    )?;
    let mut answers = vec![Settled::Applied; page.len()];
    let (a, b, c, d, e, f) = lost;
    for at in [a, b, c, d, e, f].into_iter().flatten() {
        answers[at] = Settled::LeaseLost;
    }
    Ok(answers)
}

async fn finish(
    store: &Store,
    group: &[(usize, &Receipt)],
    how: Ended,
) -> Result<Vec<usize>, Error> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let lost = store.finish(&receipts(group), how).await?;
    Ok(in_page(group, &lost))
}

async fn finish_tied(
    store: &Store,
    group: &[(usize, &Receipt)],
    how: Ended,
) -> Result<Vec<usize>, Error> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let lost = store.finish_tied(&receipts(group), how).await?;
    Ok(in_page(group, &lost))
}

async fn fail(
    store: &Store,
    group: Vec<(usize, Failure<'_>)>,
) -> Result<Vec<usize>, Error> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let (positions, failures): (Vec<_>, Vec<_>) = group.into_iter().unzip();
    let lost = store.fail(Operation::Settle, &failures).await?;
    Ok(lost.into_iter().filter_map(|at| positions.get(at).copied()).collect())
}

async fn give_back(
    store: &Store,
    group: &[(usize, &Receipt)],
) -> Result<Vec<usize>, Error> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let lease =
        |(_, receipt): &(usize, &Receipt)| (lease::member(receipt), id(receipt));
    let leases: Vec<_> = group.iter().map(lease).collect();
    let lost = store.give_back(Operation::Settle, &leases).await?;
    Ok(in_page(group, &lost))
}

fn receipts<'a>(group: &[(usize, &'a Receipt)]) -> Vec<&'a Receipt> {
    group.iter().map(|(_, receipt)| *receipt).collect()
}

/// Positions in a group as positions in the page.
fn in_page(group: &[(usize, &Receipt)], lost: &[usize]) -> Vec<usize> {
    lost.iter().filter_map(|at| group.get(*at).map(|(in_page, _)| *in_page)).collect()
}

fn failure<'a>(
    receipt: &Receipt,
    after: Option<std::time::Duration>,
    error: &'a str,
) -> Failure<'a> {
    let lease = lease::member(receipt);
    Failure { lease, id: id(receipt), after, why: 'f', error: cut(error) }
}

fn id(receipt: &Receipt) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(receipt.job().as_str().as_bytes())
}

fn cut(error: &str) -> &str {
    &error[..error.floor_char_boundary(MAX_ERROR)]
}

/// What the push script says of a duplicate.
pub(crate) fn duplicate(
    store: &Store,
    by: Reply,
    existing: Reply,
) -> Result<Pushed, Error> {
    let by = if by.text()? == "id" { DuplicateOf::Id } else { DuplicateOf::UniqueKey };
    let existing = JobId::new(existing.text()?).map_err(|error| Error::Unreadable {
        at: store.conn.at(Operation::Push),
        source: Box::new(error),
    })?;
    Ok(Pushed::Duplicate { existing, by })
}
