//! Reads the jobs of a queue without changing them.

use futures_util::FutureExt;
use relq_core::{
    Error,
    error::Operation,
    operator::{JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::bookkeeping::Look;

use crate::{lease::Lease, scripts::Store};

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    store
        .bookkeeping
        .page(&[ask.state], ask, |state, look| {
            async move {
                match state {
                    JobState::Leased => leased(store, look).await,
                    _ => store.bookkeeping.peek_list(&store.keys.ready, look).await,
                }
            }
            .boxed()
        })
        .await
}

/// Returns the leased jobs. The job whose lease ends first comes first.
async fn leased(
    store: &Store,
    Look { offset, count }: Look,
) -> Result<Vec<JobView>, Error> {
    let leases =
        store.leases(Operation::Peek).await?.into_iter().skip(offset).take(count);
    let leases = leases.filter_map(|(until, name)| {
        let Lease { worker, since, .. } = Lease::parse(&name)?;
        Some((name, StateDetail::Leased { worker, since, until }))
    });
    let (names, details): (Vec<_>, Vec<_>) = leases.unzip();
    let items = store.bookkeeping.fields(&store.keys.held, &names).await?;
    let items = items.into_iter().map(Option::unwrap_or_default);
    store.bookkeeping.views_of(items.zip(details).collect()).await
}
