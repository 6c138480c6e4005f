//! Reads the jobs of a queue without changing them.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error,
    error::Operation,
    operator::{JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::{
    Reply,
    bookkeeping::{Look, SectionPart, in_order, next_offset, offset_of},
    command,
};

use crate::{keys::id_in, lease::Lease, scripts::Store};

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    store
        .bookkeeping
        .list(&in_order(&[ask.state]), ask, |state, asked| {
            async move {
                let (offset, count) = (offset_of(&asked), asked.count);
                let look = Look { offset, count };
                let (jobs, read) = match state {
                    JobState::Leased => leased(store, look).await?,
                    _ => ready(store, look).await?,
                };
                let next = next_offset(&asked, offset, read);
                Ok(SectionPart { jobs, next, other_bytes: 0 })
            }
            .boxed()
        })
        .await
}

/// Reads ready jobs. Also returns how many elements of the list it has read.
async fn ready(
    store: &Store,
    Look { offset, count }: Look,
) -> Result<(Vec<JobView>, usize), Error> {
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
    let read = elements.len();
    let jobs = elements.into_iter().zip(bodies);
    let jobs =
        jobs.map(|(element, body)| (body.unwrap_or(element), StateDetail::Ready));
    Ok((store.bookkeeping.views_of(jobs.collect()).await?, read))
}

/// Returns the id in an element of the list. Returns an empty id for a bare payload,
/// because no body has an empty id.
fn id_of(element: &Bytes) -> Bytes {
    id_in(element).map_or_else(Bytes::new, |id| element.slice_ref(id))
}

async fn leased(store: &Store, look: Look) -> Result<(Vec<JobView>, usize), Error> {
    let members = store.bookkeeping.members(&store.keys.leased, look).await?;
    let leases = members.iter().filter_map(|(name, until)| {
        let Lease { worker, since, id, .. } = Lease::parse(name)?;
        Some((id, StateDetail::Leased { worker, since, until: *until }))
    });
    let (ids, details): (Vec<_>, Vec<_>) = leases.unzip();
    let bodies = store.bookkeeping.fields(&store.keys.bodies, &ids).await?;
    // A job that has ended since the leases were read has no body.
    let jobs = bodies.into_iter().zip(details);
    let jobs = jobs.filter_map(|(body, detail)| Some((body?, detail)));
    Ok((store.bookkeeping.views_of(jobs.collect()).await?, members.len()))
}
