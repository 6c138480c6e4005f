//! A search for jobs, page by page, on every backend.

use std::num::NonZeroU32;

use bytes::Bytes;

use super::{JobState, JobView, PageCursor, PeekRequest, StateDetail};
use crate::{Error, JobId, Queue, WorkerId, batch::BatchId, capabilities::Capability};

/// How many jobs one page of a search looks at, at most.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// A search for jobs of one state, which the caller continues page by page (R31).
///
/// Each page is one call of [`peek`](crate::Operator::peek), so a search never keeps the
/// store busy for long, and the caller decides how many pages it looks at. A search in
/// the leased jobs begins with the lease that expires first, any other one with the
/// newest jobs. Without [`Capability::Inspect`] it begins with the jobs that are served
/// first.
///
/// ```
/// use relq_core::{Error, Queue, operator::{JobSearch, JobState, Wanted}};
///
/// /// The ids of the ready jobs whose payload, headers or errors contain `text`.
/// async fn ids_of(queue: &dyn Queue, text: &str) -> Result<Vec<String>, Error> {
///     let wanted = Wanted::default().text(text.to_owned());
///     let mut search = JobSearch::new(queue, JobState::Ready, wanted);
///     let mut ids = Vec::new();
///     while let Some(page) = search.next_page().await? {
///         ids.extend(page.jobs.into_iter().filter_map(|job| job.id).map(|id| id.to_string()));
///     }
///     Ok(ids)
/// }
/// ```
#[derive(Debug)]
pub struct JobSearch<'a> {
    queue: &'a dyn Queue,
    /// The request for the next page; `None` after the last page.
    ask: Option<PeekRequest>,
    wanted: Wanted,
}

impl<'a> JobSearch<'a> {
    /// Creates a search in the jobs of `state`. This makes no call.
    pub fn new(queue: &'a dyn Queue, state: JobState, wanted: Wanted) -> Self {
        let mut ask = PeekRequest::new(state, PAGE);
        let has_orders = queue.capabilities().supports(Capability::Inspect);
        if has_orders && state != JobState::Leased {
            ask = ask.newest_first();
        }
        Self { queue, ask: Some(ask), wanted }
    }

    /// Begins the search at `at`, the [`next`](SearchPage::next) of an earlier search
    /// for the same state.
    #[must_use]
    pub fn from(mut self, at: PageCursor) -> Self {
        self.ask = self.ask.map(|ask| ask.after(at));
        self
    }

    /// Looks at one page. Returns `None` after the last page. A page may have no match,
    /// so that a caller can show how far the search is.
    ///
    /// If the future is dropped or fails, the next call looks at the same page.
    ///
    /// # Errors
    /// The errors of [`Operator::peek`](crate::Operator::peek).
    pub async fn next_page(&mut self) -> Result<Option<SearchPage>, Error> {
        let Some(ask) = &self.ask else { return Ok(None) };
        let page = self.queue.peek(ask).await?;
        let next = page.next.clone();
        self.ask = self.ask.take().zip(page.next).map(|(ask, at)| ask.after(at));
        let looked_at = u32::try_from(page.jobs.len()).unwrap_or(u32::MAX);
        let jobs = page.jobs.into_iter().filter(|job| self.wanted.fits(job)).collect();
        Ok(Some(SearchPage { jobs, looked_at, next }))
    }
}

/// One page of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPage {
    /// The jobs of the page that are wanted.
    pub jobs: Vec<JobView>,
    /// The number of jobs on the page.
    pub looked_at: u32,
    /// The position where the next page begins; `None` when this is the last page.
    pub next: Option<PageCursor>,
}

/// The conditions of a search. A job has to fit all that are set; the default fits all
/// jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Wanted {
    /// The job has these bytes in one of the [`places`](Self::places). The bytes are not a
    /// pattern, and upper and lower case differ.
    pub text: Option<Bytes>,
    /// The job has this id.
    pub id: Option<JobId>,
    /// This worker holds the job.
    pub worker: Option<WorkerId>,
    /// The job is a piece of this batch.
    pub batch: Option<BatchId>,
    /// Where the text is looked for.
    pub places: Places,
}

/// The places where a search looks for a text. The default is all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Places {
    /// The payload.
    pub payload: bool,
    /// The name and the value of each header.
    pub headers: bool,
    /// The last error, and the reason why a job is dead.
    pub errors: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self { payload: true, headers: true, errors: true }
    }
}

impl Wanted {
    /// Looks for jobs with these bytes in one of the [`places`](Self::places).
    #[must_use]
    pub fn text(mut self, text: impl Into<Bytes>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Looks for the job with this id.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Looks for jobs that this worker holds.
    #[must_use]
    pub fn worker(mut self, worker: WorkerId) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Looks for pieces of this batch.
    #[must_use]
    pub fn batch(mut self, batch: BatchId) -> Self {
        self.batch = Some(batch);
        self
    }

    /// Looks for the text only in these places.
    #[must_use]
    pub fn places(mut self, places: Places) -> Self {
        self.places = places;
        self
    }

    /// Whether the job is wanted.
    pub fn fits(&self, job: &JobView) -> bool {
        let holder = match &job.detail {
            StateDetail::Leased { worker, .. } => Some(worker),
            _ => None,
        };
        is_met(self.id.as_ref(), job.id.as_ref())
            && is_met(self.worker.as_ref(), holder)
            && is_met(self.batch.as_ref(), job.batch.as_ref())
            && self.text.as_ref().is_none_or(|text| self.places.hold(text, job))
    }
}

fn is_met<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
    wanted.is_none() || wanted == found
}

impl Places {
    fn hold(self, text: &[u8], job: &JobView) -> bool {
        let reason = match &job.detail {
            StateDetail::Dead { reason, .. } => Some(reason),
            _ => None,
        };
        let in_header = |(name, value): (&str, &str)| {
            contains(name.as_bytes(), text) || contains(value.as_bytes(), text)
        };
        let in_error = |error: &String| contains(error.as_bytes(), text);
        (self.payload && contains(&job.payload, text))
            || (self.headers && job.headers.iter().any(in_header))
            || (self.errors && job.last_error.iter().chain(reason).any(in_error))
    }
}

/// Whether `bytes` contain `text`. The first byte is looked for first, because almost all
/// places of a large payload are excluded by it.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some((first, _)) = text.split_first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(text) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::super::listed::{Listed, at_once, ids, job};
    use super::super::{JobLookup, StateDetail};
    use super::*;
    use crate::environment::Timestamp;

    fn five() -> Vec<JobView> {
        ["a1", "a2", "b1", "b2", "a3"].map(|it| job(it, StateDetail::Ready)).into()
    }

    /// The ids of all jobs that a search in the ready jobs finds, and how many it looked
    /// at.
    fn found(queue: &Listed, wanted: Wanted) -> (Vec<String>, u32) {
        let mut search = JobSearch::new(queue, JobState::Ready, wanted);
        let (mut all, mut looked_at) = (Vec::new(), 0);
        while let Some(page) = at_once(search.next_page()).expect("a page") {
            all.extend(ids(&page.jobs).into_iter().map(str::to_owned));
            looked_at += page.looked_at;
        }
        (all, looked_at)
    }

    #[test]
    fn a_search_goes_over_all_pages() {
        let queue = Listed::new(five());
        let wanted = || Wanted::default().text("a");

        let (all, looked_at) = found(&queue, wanted());

        assert_eq!((all, looked_at), (["a1", "a2", "a3"].map(str::to_owned).into(), 5));
        let newest =
            Listed::new(five()).finding(JobLookup::MaybeReady { followers: vec![] });
        assert_eq!(found(&newest, wanted()).0, ["a3", "a2", "a1"], "newest first");
    }

    #[test]
    fn a_search_goes_on_at_a_page() {
        let queue = Listed::new(five());
        let new = || JobSearch::new(&queue, JobState::Ready, Wanted::default());
        let first = at_once(new().next_page()).unwrap().unwrap();

        let at = first.next.expect("there are more pages");
        let second = at_once(new().from(at).next_page()).unwrap().unwrap();

        assert_eq!(ids(&second.jobs), ["b1", "b2"]);
    }

    #[test]
    fn a_page_that_failed_is_read_again() {
        let queue = Listed::new(five());
        let mut search = JobSearch::new(&queue, JobState::Ready, Wanted::default());
        queue.is_down.store(true, SeqCst);

        assert!(at_once(search.next_page()).is_err());

        let page = at_once(search.next_page()).unwrap().unwrap();
        assert_eq!(ids(&page.jobs), ["a1", "a2"]);
    }

    #[test]
    fn leased_jobs_are_searched_as_served() {
        let (worker, since) = (WorkerId::new("w").unwrap(), Timestamp::from_unix_ms(0));
        let detail =
            || StateDetail::Leased { worker: worker.clone(), since, until: since };
        let jobs = ["one", "two", "three"].map(|it| job(it, detail()));
        let queue = Listed::new(jobs.into())
            .finding(JobLookup::MaybeReady { followers: vec![] });
        let mut search = JobSearch::new(
            &queue,
            JobState::Leased,
            Wanted::default().worker(worker.clone()),
        );

        let page = at_once(search.next_page()).unwrap().unwrap();

        assert_eq!(ids(&page.jobs), ["one", "two"]);
    }

    #[test]
    fn a_text_is_looked_for_in_the_places() {
        let since = Timestamp::from_unix_ms(0);
        let reason = "it expired".to_owned();
        let mut dead = job("job", StateDetail::Dead { reason, since });
        dead.payload = Bytes::from_static(b"\xff pay\0load");
        dead.headers = [("name", "value")].into_iter().collect();
        dead.last_error = Some("broken pipe".to_owned());
        let nowhere = Places { payload: false, headers: false, errors: false };
        let payload = Places { payload: true, ..nowhere };
        let headers = Places { headers: true, ..nowhere };
        let errors = Places { errors: true, ..nowhere };

        for (text, place) in [
            (&b"\xff pay"[..], payload),
            (b"y\0l", payload),
            (b"nam", headers),
            (b"alue", headers),
            (b"expired", errors),
            (b"ken pip", errors),
        ] {
            for places in [payload, headers, errors, nowhere] {
                let wanted = Wanted::default().text(text.to_vec()).places(places);
                assert_eq!(wanted.fits(&dead), places == place, "{text:?} {places:?}");
            }
        }
        assert!(!Wanted::default().text("PAY").fits(&dead), "the case counts");
    }

    /// A job that differs in one thing that is wanted is not found.
    #[test]
    fn a_job_fits_only_if_it_has_all_that_is_wanted() {
        let since = Timestamp::from_unix_ms(0);
        let (worker, other) =
            (WorkerId::new("w").unwrap(), WorkerId::new("other").unwrap());
        let held_by = |worker| StateDetail::Leased { worker, since, until: since };
        let mut right = job("job", held_by(worker.clone()));
        right.batch = Some(BatchId::new("b").unwrap());
        let with = |change: fn(&mut JobView)| {
            let mut changed = right.clone();
            change(&mut changed);
            changed
        };
        let wrong = [
            with(|job| job.id = Some(JobId::new("other").unwrap())),
            with(|job| job.id = None),
            JobView { detail: held_by(other), ..right.clone() },
            with(|job| job.detail = StateDetail::Ready),
            with(|job| job.batch = Some(BatchId::new("other").unwrap())),
            with(|job| job.batch = None),
            with(|job| job.payload = Bytes::from_static(b"other")),
        ];

        let wanted = Wanted::default()
            .id(right.id.clone().unwrap())
            .worker(worker)
            .batch(right.batch.clone().unwrap())
            .text("job");

        assert!(wanted.fits(&right));
        for job in wrong {
            assert!(!wanted.fits(&job), "it is found: {job:?}");
            assert!(Wanted::default().fits(&job), "a search for all: {job:?}");
        }
    }

    #[test]
    fn a_text_is_found_after_a_part_of_it() {
        assert!(contains(b"aaab", b"aab"));
        assert!(contains(b"ab", b""));
        assert!(!contains(b"ab", b"abc"));
        assert!(!contains(b"", b"a"));
    }
}
