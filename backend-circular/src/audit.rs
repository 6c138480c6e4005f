//! Audit: checks that each job is in exactly one place (R23).

use relq_core::{Error, error::Operation};
use relq_redis::bookkeeping::{PageSize, Pair, Scanned, Seen};

use crate::{ring, scripts::Store};

/// Adds every ready and leased job to `seen`. In a sound queue, each mark belongs to
/// exactly one leased element.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    seen.judge_pairs_by(problems_of);
    let mut marks = store.bookkeeping.scan_pages(Scanned::SortedSet, &store.keys.marks);
    while let Some(page) = marks.next_page().await? {
        for (token, _) in page {
            seen.lease(&token, b"").await?;
        }
    }
    let (mut passed, mut size) = (0, PageSize::of_payloads());
    loop {
        let most = size.count();
        let page = ring::read(store, Operation::Audit, passed, most).await?;
        let (count, mut bytes) = (page.len(), 0);
        for one in page {
            bytes += one.bytes();
            if let Some(token) = one.token() {
                seen.leased_element(token).await?;
            }
            if let Some((element, _)) = one.job() {
                seen.element(&element).await?;
            }
        }
        passed += count;
        if count < most {
            return Ok(());
        }
        size.adapt(bytes);
    }
}

fn problems_of(pair: &Pair) -> Vec<String> {
    let token = String::from_utf8_lossy(&pair.name);
    match pair.elements {
        0 => vec![format!("lease {token} of no element")],
        1 => Vec::new(),
        _ => vec![format!("lease {token} of two elements")],
    }
}
