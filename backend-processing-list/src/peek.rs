//! Shows jobs without changing them.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error,
    environment::Timestamp,
    error::Operation,
    operator::{JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::{Reply, bookkeeping::Look, command};

use crate::{lease::Lease, scripts::Store, session::Site};

/// One of the keys that hold the jobs of a state. When a state has several keys, they
/// are shown in the order in which claims take their jobs.
#[derive(Debug, Clone, Copy)]
enum Section<'a> {
    Handed,
    Ready,
    Leased(&'a Site),
}

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let sites = match ask.state {
        JobState::Leased => store.sites(Operation::Peek).await?,
        _ => Vec::new(),
    };
    let sections = match ask.state {
        JobState::Ready => vec![Section::Handed, Section::Ready],
        JobState::Leased => sites.iter().map(Section::Leased).collect(),
        JobState::Scheduled | JobState::Dead => Vec::new(),
    };
    store
        .bookkeeping
        .page(&sections, ask, |section, look| look_at(store, section, look).boxed())
        .await
}

async fn look_at(
    store: &Store,
    section: Section<'_>,
    look: Look,
) -> Result<Vec<JobView>, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    match section {
        Section::Handed => bookkeeping.peek_list(&keys.handed, look).await,
        Section::Ready => bookkeeping.peek_list(&keys.ready, look).await,
        Section::Leased(site) => leased(store, site, look).await,
    }
}

/// Shows the jobs of one processing list, the oldest first: the oldest are at the right
/// end of the list.
async fn leased(store: &Store, site: &Site, look: Look) -> Result<Vec<JobView>, Error> {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let Look { offset, count } = look;
    let mut cmd = command("LRANGE");
    cmd.arg(store.keys.list(site))
        .arg(-signed(offset + count))
        .arg(-signed(offset + 1));
    let elements = store.conn.call(Operation::Peek, &cmd).await?.list()?;
    let elements = elements.into_iter().rev().map(Reply::bytes);
    let elements = elements.collect::<Result<Vec<_>, _>>()?;
    let leases: Vec<_> = elements.iter().map(Lease::parse).collect();
    let names: Vec<_> =
        leases.iter().flatten().map(|lease| lease.name.clone()).collect();
    let beats_until = beats_until(store, site).await?;
    let mut ends = ends(store, &names).await?.into_iter();
    let views = elements.into_iter().zip(leases).map(|(element, lease)| match lease {
        Some(Lease { worker, since, entry, .. }) => {
            let until = ends.next().flatten().unwrap_or(beats_until);
            (entry, StateDetail::Leased { worker, since, until })
        }
        None => (element, moved(site, beats_until)),
    });
    store.bookkeeping.views_of(views.collect()).await
}

/// The state of an element that a blocking move has put into a list and that no claim
/// has stamped. A move stores no time, so the end of the session stands for both times.
fn moved(site: &Site, until: Timestamp) -> StateDetail {
    match site {
        Site::Own(session) => {
            StateDetail::Leased { worker: session.worker(), since: until, until }
        }
        Site::Shared => StateDetail::Ready,
    }
}

/// When the session that owns the list ends. The Unix epoch if the session is not
/// registered, or the list is the shared one.
async fn beats_until(store: &Store, site: &Site) -> Result<Timestamp, Error> {
    let mut cmd = command("ZSCORE");
    cmd.arg(&store.keys.workers).arg(site.session());
    let end = store.conn.call(Operation::Peek, &cmd).await?.optional_number()?;
    Ok(Timestamp::from_unix_ms(end.unwrap_or(0)))
}

/// The end of each named lease. `None` for a lease that ends with its session.
async fn ends(store: &Store, names: &[Bytes]) -> Result<Vec<Option<Timestamp>>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut cmd = command("ZMSCORE");
    cmd.arg(&store.keys.leased);
    names.iter().for_each(|name| {
        cmd.arg(&name[..]);
    });
    let ends = store.conn.call(Operation::Peek, &cmd).await?.list()?.into_iter();
    let end = |end: Reply| Ok(end.optional_number()?.map(Timestamp::from_unix_ms));
    ends.map(end).collect()
}
