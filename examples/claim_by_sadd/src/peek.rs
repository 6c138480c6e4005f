//! Reads the jobs of a queue without changing them.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error,
    error::Operation,
    operator::{JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::{Reply, bookkeeping::Look, command};

use crate::{keys::id_in, lease::Lease, scripts::Store};

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    store
        .bookkeeping
        .page(&[ask.state], ask, |state, look| {
            async move {
                match state {
                    JobState::Leased => leased(store, look).await,
                    _ => ready(store, look).await,
                }
            }
            .boxed()
        })
        .await
}

async fn ready(
    store: &Store,
    Look { offset, count }: Look,
) -> Result<Vec<JobView>, Error> {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut cmd = command("LRANGE");
    cmd.arg(&store.keys.ready)
        .arg(-signed(offset.saturating_add(count)))
        .arg(-signed(offset.saturating_add(1)));
    let elements = store.conn.call(Operation::Peek, &cmd).await?.list()?;
    let elements = elements.into_iter().rev().map(Reply::bytes);
    let elements = elements.collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<_> = elements.iter().map(id_of).collect();
    let bodies = store.bookkeeping.fields(&store.keys.bodies, &ids).await?;
    let jobs = elements.into_iter().zip(bodies);
    let jobs =
        jobs.map(|(element, body)| (body.unwrap_or(element), StateDetail::Ready));
    store.bookkeeping.views_of(jobs.collect()).await
}

/// Returns the id in an element of the list. Returns an empty id for a bare payload,
/// because no body has an empty id.
fn id_of(element: &Bytes) -> Bytes {
    id_in(element).map_or_else(Bytes::new, |id| element.slice_ref(id))
}

async fn leased(store: &Store, look: Look) -> Result<Vec<JobView>, Error> {
    let members = store.bookkeeping.members(&store.keys.leased, look).await?;
    let leases = members.iter().filter_map(|(name, until)| {
        let Lease { worker, since, id, .. } = Lease::parse(name)?;
        Some((id, StateDetail::Leased { worker, since, until: *until }))
    });
    let (ids, details): (Vec<_>, Vec<_>) = leases.unzip();
    let bodies = store.bookkeeping.fields(&store.keys.bodies, &ids).await?;
    let bodies = bodies.into_iter().map(Option::unwrap_or_default);
    store.bookkeeping.views_of(bodies.zip(details).collect()).await
}
