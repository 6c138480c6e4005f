//! The audit of a queue: checks that each job is in exactly one state (R23).

use bytes::Bytes;
use relq_core::{Error, batch::BatchId, error::Operation};
use relq_redis::bookkeeping::{PageSize, Pair, Scanned, Seen};

use crate::{keys::Stream, lease::Lease, scripts::Store, streams::Range};

/// How many batches the audit reads with one script call.
const BATCHES: u32 = 500;

/// Reads every ready and leased job of the queue, and records it in `seen`.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    seen.judge_pairs_by(problems_of);
    for stream in store.streams(Operation::Audit).await? {
        read_stream(store, &stream, seen).await?;
    }
    read_leases(store, seen).await?;
    read_batches(store, seen).await
}

/// Reads the jobs of a stream: each entry is one job. An entry that was read but is not
/// pending would never be claimed, so it is reported.
async fn read_stream(
    store: &Store,
    stream: &Stream,
    seen: &mut Seen,
) -> Result<(), Error> {
    let last_read = store.last_read(stream).await?;
    let (mut after, mut size) = (Bytes::new(), PageSize::of_payloads());
    loop {
        let most = size.count();
        let range = Range::oldest_after(&after, most);
        let page = store.read_stream(Operation::Audit, stream, range).await?;
        for found in &page.entries {
            after = found.id.clone();
            seen.element(&found.element()).await?;
            match page.pending.get(&found.id) {
                Some(pending) if pending.is_leased => {
                    let name = place(stream, &text(&found.id));
                    seen.leased_element(name.as_bytes()).await?;
                }
                None if order(&found.id) <= order(&last_read) => {
                    let id = text(&found.id);
                    let problem = format!("entry {id} was read and is not pending");
                    seen.problem(&problem).await?;
                }
                _ => {}
            }
        }
        if page.entries.len() < most {
            return Ok(());
        }
        size.adapt(page.bytes());
    }
}

/// Records every lease in `seen`, under its job's stream and entry id. Each held entry
/// is recorded under the same name, so that the two can be compared.
async fn read_leases(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut pages =
        store.bookkeeping.scan_pages(Scanned::SortedSet, &store.keys.leased);
    while let Some(page) = pages.next_page().await? {
        for (member, _) in page {
            let place = Lease::parse(&member)
                .map(|it| place(&it.token.stream, &it.token.entry_id));
            let place = place.unwrap_or_else(|| text(&member));
            seen.lease(place.as_bytes(), &member).await?;
        }
    }
    Ok(())
}

/// Returns a problem for a lease whose entry is missing, and for a held entry that does
/// not have exactly one lease.
fn problems_of(pair: &Pair) -> Vec<String> {
    let others = pair.leases.iter().skip(1);
    let mut problems: Vec<_> = others
        .map(|lease| format!("the job of lease {} has another lease", text(lease)))
        .collect();
    if pair.is_broken() {
        let place = text(&pair.name);
        problems.push(format!("lease or entry {place} without the other"));
    }
    problems
}

/// Checks that the ended and the live pieces of a batch add up to all its pieces (B2).
async fn read_batches(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut after: Option<BatchId> = None;
    loop {
        let page =
            store.list_batches(Operation::Audit, after.as_ref(), BATCHES).await?;
        for batch in &page {
            if batch.total != batch.ended() + batch.leased + batch.waiting {
                let problem = format!(
                    "the counts of batch {} do not add up to its total",
                    batch.id
                );
                seen.problem(&problem).await?;
            }
        }
        match page.last() {
            Some(last) if page.len() == BATCHES as usize => {
                after = Some(last.id.clone());
            }
            _ => return Ok(()),
        }
    }
}

fn place(stream: &Stream, id: &str) -> String {
    format!("{}:{id}", stream.word())
}

/// Parses the id of an entry, such as `1700000000000-0`, into its two numbers.
fn order(id: &[u8]) -> (u64, u64) {
    let text = std::str::from_utf8(id).unwrap_or_default();
    let (ms, number) = text.split_once('-').unwrap_or_default();
    (ms.parse().unwrap_or(0), number.parse().unwrap_or(0))
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
