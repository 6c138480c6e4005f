//! Asks the store, with a bounded number of calls for each question.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    ConnectError, Error, JobId, Queue, QueueName, Stats, WorkerId,
    capabilities::Capability,
    operator::{
        DeadGroups, JobLookup, JobRecord, JobState, JobView, Page, PeekRequest,
        WorkerView, held_by_worker,
    },
};
use tokio::task::JoinSet;

use super::{
    asks::{
        Completeness, Counts, Filter, Found, JobsPage, NamesOf, PageOf, Position,
        Sample, WorkerRow,
    },
    changes::Change,
};
use crate::{printable::printable, source::StoreSource};

/// How many queues are read: the first ones by their names.
const MOST_QUEUES: usize = 200;

/// How many queues are read at once.
const AT_ONCE: usize = 4;

/// How many jobs a page has.
const PAGE: NonZeroU32 = NonZeroU32::new(50).expect("not zero");

/// How many jobs one call of a search looks at.
const SEARCHED: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// After which time a search makes no further call. Its answer says where it continues.
const SEARCH_FOR: Duration = Duration::from_millis(100);

/// How many workers, and how many leased jobs of theirs, are read.
const MOST_WORKERS: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// How many dead jobs are grouped by their errors.
const MOST_GROUPED: NonZeroU32 = NonZeroU32::new(2000).expect("not zero");

/// Reads the counts of all queues. It ends at the first queues that cannot be reached.
pub(super) async fn sample(
    source: Arc<StoreSource>,
    names: NamesOf,
) -> Result<Sample, String> {
    if names == NamesOf::NewList {
        source.forget_list().await;
    }
    let mut names = source.names().await.map_err(|error| Trouble::from(error).text)?;
    let mut sample = Sample { all: names.len(), queues: Vec::new() };
    names.truncate(MOST_QUEUES);
    for some in names.chunks(AT_ONCE) {
        let mut readings = JoinSet::new();
        for name in some.iter().cloned() {
            let source = source.clone();
            readings.spawn(async move {
                let counts = counts_of(&source, &name).await;
                (name, counts)
            });
        }
        for (name, counts) in readings.join_all().await {
            let counts: Counts = match counts {
                Err(trouble) if trouble.is_outage => return Err(trouble.text),
                counts => counts.map_err(|trouble| trouble.text),
            };
            sample.queues.push((name, counts));
        }
    }
    Ok(sample)
}

async fn counts_of(
    source: &StoreSource,
    name: &QueueName,
) -> Result<(&'static str, Stats), Trouble> {
    let queue = open(source, name).await?;
    Ok((queue.capabilities().backend, queue.stats().await?))
}

/// Reads what a page of a queue shows.
pub(super) async fn read(
    source: &StoreSource,
    name: &QueueName,
    page: PageOf,
) -> Result<Found, String> {
    let found = async {
        let queue = open(source, name).await?;
        Ok(match page {
            PageOf::Jobs(at, filter) => Found::Jobs(jobs(&*queue, &at, &filter).await?),
            PageOf::Errors => errors(&*queue).await?,
            PageOf::Workers => workers(&*queue).await?,
            PageOf::Job(id, seen) => job(&*queue, &id, &seen).await?,
        })
    };
    found.await.map_err(|trouble: Trouble| trouble.text)
}

/// Makes a change. Returns a sentence about its result.
pub(super) async fn change(
    source: &StoreSource,
    name: &QueueName,
    change: &Change,
) -> Result<String, String> {
    let changed = async {
        let queue = open(source, name).await?;
        Ok(change.make(&*queue).await?)
    };
    changed.await.map_err(|trouble: Trouble| trouble.text)
}

/// One page of a listing, newest first where the backend can. The cursors of a listing are
/// those of its order, which depends on the backend and the state alone.
async fn peek(
    queue: &dyn Queue,
    at: &Position,
    limit: NonZeroU32,
) -> Result<Page, Error> {
    let mut ask = PeekRequest::new(at.state, limit);
    let has_orders = queue.capabilities().supports(Capability::Inspect);
    if has_orders && at.state != JobState::Leased {
        ask = ask.newest_first();
    }
    ask.after.clone_from(&at.after);
    queue.peek(&ask).await
}

async fn jobs(
    queue: &dyn Queue,
    from: &Position,
    filter: &Filter,
) -> Result<JobsPage, Error> {
    let limit = if filter.is_empty() { PAGE } else { SEARCHED };
    let (began, mut found) = (Instant::now(), JobsPage::default());
    let mut at = from.clone();
    loop {
        let page = peek(queue, &at, limit).await?;
        found.looked_at += page.jobs.len();
        found.jobs.extend(page.jobs.into_iter().filter(|job| filter.fits(job)));
        found.next.clone_from(&page.next);
        let is_enough = found.jobs.len() >= PAGE.get() as usize;
        if page.next.is_none() || is_enough || began.elapsed() > SEARCH_FOR {
            return Ok(found);
        }
        at.after = page.next;
    }
}

async fn errors(queue: &dyn Queue) -> Result<Found, Error> {
    let mut dead = DeadGroups::new(MOST_GROUPED);
    while dead.read_page(queue).await? {}
    let groups = dead.groups().into_iter().map(Into::into).collect();
    Ok(Found::Errors(groups, completeness(dead.is_cut())))
}

async fn workers(queue: &dyn Queue) -> Result<Found, Error> {
    let (reported, has_more) = reported(queue).await?;
    let (mut held, is_cut) = held_by_worker(queue, MOST_WORKERS).await?;
    let row = |(worker, report): (WorkerId, WorkerView)| {
        let held = held.remove(&worker).unwrap_or_default();
        WorkerRow { worker, report: Some(report), held }
    };
    let mut rows: Vec<_> = reported.into_iter().map(row).collect();
    let unreported =
        held.into_iter().map(|(worker, held)| WorkerRow { worker, report: None, held });
    rows.extend(unreported);
    rows.sort_by(|one, other| one.worker.cmp(&other.worker));
    Ok(Found::Workers(rows, completeness(is_cut || has_more)))
}

/// The workers that have reported, and whether there are more. A worker may be on several
/// pages, and a page may be empty, so the pages are limited, too.
async fn reported(
    queue: &dyn Queue,
) -> Result<(BTreeMap<WorkerId, WorkerView>, bool), Error> {
    let mut workers = BTreeMap::new();
    let Some(inspect) = queue.inspect_queue() else { return Ok((workers, false)) };
    let (began, mut after) = (Instant::now(), None);
    loop {
        let page = inspect.workers(after.as_ref(), MOST_WORKERS).await?;
        let named = page.workers.into_iter().map(|view| (view.worker.clone(), view));
        workers.extend(named);
        after = page.next;
        let is_enough = workers.len() >= MOST_WORKERS.get() as usize;
        if after.is_none() || is_enough || began.elapsed() > SEARCH_FOR {
            return Ok((workers, after.is_some()));
        }
    }
}

/// Looks for a job: in the index, then on the page where it was seen, then on the first
/// page of each state.
async fn job(queue: &dyn Queue, id: &JobId, seen: &Position) -> Result<Found, Error> {
    use JobState::{Dead, Leased, Ready, Scheduled};
    let mut known_followers = Vec::new();
    if let Some(index) = queue.inspect_queue() {
        match index.job(id).await? {
            JobLookup::Stored(record) => return Ok(Found::Job(record)),
            JobLookup::Ended { was_done, .. } => {
                let how = if was_done { "is done" } else { "has ended, not done" };
                return Ok(Found::NoJob(format!(
                    "the job {how}: this is its last record"
                )));
            }
            JobLookup::MaybeReady { followers } => known_followers = followers,
            _ => {}
        }
    }
    let first = |state| Position { state, after: None };
    let places = [Ready, Leased, Scheduled, Dead].map(first);
    for place in std::iter::once(seen).chain(&places) {
        let page = peek(queue, place, SEARCHED).await?;
        let is_it = |job: &JobView| job.id.as_ref() == Some(id);
        if let Some(job) = page.jobs.into_iter().find(is_it) {
            return Ok(Found::Job(Box::new(JobRecord::new(job, known_followers))));
        }
    }
    Ok(Found::NoJob("the job is not where it was: this is its last record".to_owned()))
}

fn completeness(is_cut: bool) -> Completeness {
    if is_cut { Completeness::Cut } else { Completeness::Whole }
}

async fn open(
    source: &StoreSource,
    name: &QueueName,
) -> Result<Arc<dyn Queue>, Trouble> {
    let gone = || Trouble {
        text: format!("there is no queue {name} any more"),
        is_outage: false,
    };
    source.open_queue(name).await?.ok_or_else(gone)
}

/// Why the store did not answer.
struct Trouble {
    /// The error with its causes, on one printable line.
    text: String,
    /// Whether the store cannot be reached, so that no other queue can be read, either.
    is_outage: bool,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let is_outage = matches!(error, Error::Unavailable { .. });
        Self { text: printable(&error.full_message()), is_outage }
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Queue(error) => error.into(),
            error => Self { text: printable(&error.to_string()), is_outage: false },
        }
    }
}
