//! Lists, searches and finds jobs with a bounded number of calls.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use relq_core::{
    JobId, Queue,
    capabilities::Capability,
    operator::{
        JobLookup, JobRecord, JobState, PageCursor, PeekOrder, PeekRequest, Wanted,
    },
};

use crate::{
    page_error::PageError,
    redact::{Redaction, ShownJob},
};

/// How many jobs a list shows, at least, if there are as many.
const PAGE: NonZeroU32 = NonZeroU32::new(50).expect("not zero");

/// How many jobs one call of a search reads.
const SEARCHED: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// After which time a search makes no further call.
const SEARCH_FOR: Duration = Duration::from_millis(30);

/// The states in the order in which a job is looked for.
pub(crate) const STATES: [JobState; 4] =
    [JobState::Ready, JobState::Leased, JobState::Scheduled, JobState::Dead];

/// The state that a word names.
pub(crate) fn state(word: &str) -> Result<JobState, String> {
    let state = STATES.into_iter().find(|state| state.as_str() == word);
    state.ok_or_else(|| format!("there is no state {word:?}"))
}

/// A position in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) state: JobState,
    pub(crate) order: PeekOrder,
    pub(crate) after: Option<PageCursor>,
}

impl Position {
    /// The beginning of the listing of a state, with the newest jobs first where the backend
    /// can.
    pub(crate) fn begin(queue: &dyn Queue, state: JobState) -> Self {
        let order = if queue.capabilities().supports(Capability::Inspect)
            && state != JobState::Leased
        {
            PeekOrder::NewestFirst
        } else {
            PeekOrder::AsServed
        };
        Self { state, order, after: None }
    }

    fn request(&self, limit: NonZeroU32) -> PeekRequest {
        let mut ask = PeekRequest::new(self.state, limit);
        ask.order = self.order;
        ask.after = self.after.clone();
        ask
    }
}

/// A part of a listing.
pub(crate) struct Listed {
    /// Each job, with the position of the page on which it was.
    pub(crate) jobs: Vec<(ShownJob, Position)>,
    pub(crate) looked_at: usize,
    /// Where the listing continues.
    pub(crate) next: Option<Position>,
}

/// Lists the wanted jobs from a position. Jobs are wanted by what is shown of them, so that
/// a search does not find what is hidden.
pub(crate) async fn list(
    queue: &dyn Queue,
    from: Position,
    wanted: &Wanted,
    redaction: &Redaction,
) -> Result<Listed, PageError> {
    let limit = if *wanted == Wanted::default() { PAGE } else { SEARCHED };
    let began = Instant::now();
    let mut listed = Listed { jobs: Vec::new(), looked_at: 0, next: Some(from) };
    while let Some(at) = listed.next.take() {
        let page = queue.peek(&at.request(limit)).await?;
        listed.looked_at += page.jobs.len();
        let shown = page.jobs.into_iter().map(|job| redaction.apply(job));
        let fits = shown.filter(|shown| wanted.fits(&shown.job));
        listed.jobs.extend(fits.map(|shown| (shown, at.clone())));
        listed.next = page.next.map(|next| Position { after: Some(next), ..at });
        let is_enough = listed.jobs.len() >= PAGE.get() as usize;
        if is_enough || began.elapsed() > SEARCH_FOR {
            break;
        }
    }
    Ok(listed)
}

/// The answer to a search for a job by its id.
pub(crate) enum Found {
    /// The job and, if the backend has an index, its followers.
    Stored(Box<(ShownJob, Vec<JobId>)>),
    Ended {
        was_done: bool,
    },
    /// The search has not ended. It continues at this position.
    Searching {
        looked_at: usize,
        next: Position,
    },
    Unknown,
}

/// Looks for a job: in the index, then on the page where it was seen, then in all states or
/// from `from`.
pub(crate) async fn find(
    queue: &dyn Queue,
    job: &JobId,
    seen: Option<Position>,
    from: Option<Position>,
    redaction: &Redaction,
) -> Result<Found, PageError> {
    let mut states = &STATES[..];
    let mut following = Vec::new();
    if let Some(index) = queue.inspect_queue() {
        match index.job(job).await? {
            JobLookup::Stored(record) => {
                let JobRecord { job, followers, .. } = *record;
                return Ok(Found::Stored(Box::new((redaction.apply(job), followers))));
            }
            JobLookup::Ended { was_done, .. } => return Ok(Found::Ended { was_done }),
            JobLookup::MaybeReady { followers } => {
                (states, following) = (&STATES[..2], followers);
            }
            _ => return Ok(Found::Unknown),
        }
    }
    let search = Search { queue, job, following, redaction };
    if let Some(seen) = seen
        && let (Some(found), _, _) = search.page(&seen).await?
    {
        return Ok(found);
    }
    search.from(states, from).await
}

/// A search for one job.
struct Search<'a> {
    queue: &'a dyn Queue,
    job: &'a JobId,
    /// The followers that the index knows, if it has one.
    following: Vec<JobId>,
    redaction: &'a Redaction,
}

impl Search<'_> {
    async fn from(
        &self,
        states: &[JobState],
        from: Option<Position>,
    ) -> Result<Found, PageError> {
        let (began, mut looked_at) = (Instant::now(), 0);
        let first = from.as_ref().map_or(states[0], |from| from.state);
        let later = states.iter().copied().skip_while(|state| *state != first);
        let mut left = later.skip(1);
        let begin = |state| Position::begin(self.queue, state);
        let mut next = Some(from.unwrap_or_else(|| begin(first)));
        while let Some(at) = next {
            if looked_at > 0 && began.elapsed() > SEARCH_FOR {
                return Ok(Found::Searching { looked_at, next: at });
            }
            let (found, count, more) = self.page(&at).await?;
            if let Some(found) = found {
                return Ok(found);
            }
            looked_at += count;
            next = match more {
                Some(after) => Some(Position { after: Some(after), ..at }),
                None => left.next().map(begin),
            };
        }
        Ok(Found::Unknown)
    }

    /// Looks at one page. Returns the job if it is there, how many jobs the page has, and
    /// where the next page begins.
    async fn page(
        &self,
        at: &Position,
    ) -> Result<(Option<Found>, usize, Option<PageCursor>), PageError> {
        let page = self.queue.peek(&at.request(SEARCHED)).await?;
        let count = page.jobs.len();
        let is_it =
            |view: &&relq_core::operator::JobView| view.id.as_ref() == Some(self.job);
        let found = page.jobs.iter().find(is_it).map(|view| {
            let shown = self.redaction.apply(view.clone());
            Found::Stored(Box::new((shown, self.following.clone())))
        });
        Ok((found, count, page.next))
    }
}
