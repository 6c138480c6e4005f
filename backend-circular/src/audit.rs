//! Audit: checks that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use bytes::Bytes;
use relq_core::{Error, error::Operation};
use relq_redis::bookkeeping::{PageSize, Seen};

use crate::{ring, scripts::Store};

/// Notes every ready and leased job. Every mark stands for one element in process.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let marks = store.bookkeeping.scan("ZSCAN", &store.keys.marks).await?;
    let mut unseen: BTreeSet<Bytes> =
        marks.into_iter().map(|(token, _)| token).collect();
    let (mut tokens, mut passed) = (BTreeSet::new(), 0);
    let mut size = PageSize::of_payloads();
    loop {
        let most = size.count();
        let page = ring::read(store, Operation::Audit, passed, most).await?;
        let count = page.len();
        size.adapt(page.iter().map(ring::Seen::bytes).sum());
        for one in page {
            if let Some(token) = one.token() {
                unseen.remove(token);
                if !tokens.insert(token.clone()) {
                    seen.problem(format!("lease {} of two elements", text(token)));
                }
            }
            if let Some((element, _)) = one.job() {
                seen.element(&element);
            }
        }
        passed += count;
        if count < most {
            break;
        }
    }
    for token in unseen {
        seen.problem(format!("lease {} of no element", text(&token)));
    }
    Ok(())
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
