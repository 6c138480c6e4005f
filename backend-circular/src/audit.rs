//! Proving that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use bytes::Bytes;
use relq_core::{Audit, Error, Operation};
use relq_redis::bookkeeping::{self, Seen};

use crate::{ring, scripts::Store};

pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    bookkeeping::audit(|| Box::pin(read(store))).await
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    seen.read_scheduled(&store.bookkeeping).await?;
    read_ring(store, &mut seen).await?;
    seen.read_rest(&store.bookkeeping).await?;
    Ok(seen)
}

/// Every mark stands for one element in process.
async fn read_ring(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let marks = store.bookkeeping.scan("ZSCAN", &store.keys.marks).await?;
    let mut unseen: BTreeSet<Bytes> =
        marks.into_iter().map(|(token, _)| token).collect();
    let (mut tokens, mut passed) = (BTreeSet::new(), 0);
    loop {
        let page = ring::read(store, Operation::Audit, passed).await?;
        let count = page.len();
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
        if count < ring::PAGE {
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
