//! Audit: checks that each job is in exactly one place (R23).
//!
//! ```text
//!  pages of every key ---> records, sorted by id ---> judged id by id ---> problems
//! ```
//!
//! An audit reads all keys page by page while the queue is in use, so one reading can
//! see a job twice or not at all. Only a problem that two readings in a row find is
//! reported.
//!
//! The memory of an audit does not depend on the number of jobs. The records of a
//! reading are sorted, in a temporary file if they are many, so that the records of one
//! id follow each other. The ids themselves are compared, never hashes of them. Reading
//! the store several times, a part of the ids each time, would need no file. But it
//! would cost the server several readings, and compare records that are further apart
//! in time.

mod followers;
mod judge;
mod record;

use std::{io, mem};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use relq_core::{
    Error,
    error::{ErrorContext, Operation},
    operator::Audit,
};
use tokio::task::spawn_blocking;

use super::{Bookkeeping, Scanned};
use crate::{
    entry::{Entry, id_of},
    external_sort::ExternalSort,
};

use judge::{Judged, in_both};
use record::{Record, Source};

pub use judge::{Pair, PairRule};

/// How many bytes of records a reading keeps in memory before it writes them to a
/// temporary file.
const RECORD_BYTES: usize = 8 * 1024 * 1024;

/// How many bytes of problems a reading keeps in memory before it writes them to a
/// temporary file.
const PROBLEM_BYTES: usize = 1024 * 1024;

/// Reads all keys of a queue, and once more if the first reading finds a problem.
///
/// `read` visits the keys in the order in which a job moves between them, so that it
/// sees a moving job at least once: [`Seen::read_scheduled`], the pattern's ready and
/// leased jobs, [`Seen::read_rest`].
///
/// # Errors
/// The errors of `read`, and [`Error::Invalid`] if a temporary file is needed and
/// cannot be written.
pub async fn audit<'a>(
    bookkeeping: &Bookkeeping,
    read: impl Fn() -> BoxFuture<'a, Result<Seen, Error>>,
) -> Result<Audit, Error> {
    let at = bookkeeping.conn.at(Operation::Audit);
    let first = read().await?.judge().await?;
    if first.problems.is_empty() {
        return Ok(Audit { jobs: first.jobs, problems: Vec::new() });
    }
    let second = read().await?.judge().await?;
    let jobs = second.jobs;
    let problems =
        blocking(at, move || in_both(first.problems, second.problems)).await?;
    Ok(Audit { jobs, problems })
}

/// The jobs, records and problems that one reading of a queue has seen.
#[derive(Debug)]
pub struct Seen {
    at: ErrorContext,
    bare: u64,
    /// The names of the keys whose jobs have their entry in the hash `jobs`, in the
    /// order of the reading.
    places: Vec<&'static str>,
    records: ExternalSort,
    pair_rule: PairRule,
    problems: ExternalSort,
}

impl Seen {
    /// A reading that has seen nothing yet.
    pub fn new(bookkeeping: &Bookkeeping) -> Self {
        Self {
            at: bookkeeping.conn.at(Operation::Audit),
            bare: 0,
            places: Vec::new(),
            records: ExternalSort::new(RECORD_BYTES),
            pair_rule: |_| Vec::new(),
            problems: ExternalSort::new(PROBLEM_BYTES),
        }
    }

    /// Adds a job whose id is in the key `place` and whose entry is in the hash `jobs`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the temporary file cannot be written. All functions here
    /// that add something have this error.
    pub async fn by_id(&mut self, id: &[u8], place: &'static str) -> Result<(), Error> {
        let known = self.places.iter().position(|known| *known == place);
        let number = known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        });
        let number = u8::try_from(number).expect("a pattern has few places");
        self.add(Record::of_id(id, Source::ById, &[number])).await
    }

    /// Adds a ready or leased job that is an element of a list. The element is the
    /// job's entry. A list may have equal elements; each is a job of its own.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id).
    pub async fn element(&mut self, element: &Bytes) -> Result<(), Error> {
        if Entry::decode(element).is_err() {
            self.bare += 1;
            return Ok(());
        }
        self.add(Record::of_id(&id_of(element), Source::Element, b"")).await
    }

    /// Adds a ready or leased job with this id, which is stored under a name of its
    /// own. The same name may be added again, because a scan can return it twice.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id).
    pub async fn job(&mut self, id: &[u8], name: &[u8]) -> Result<(), Error> {
        self.add(Record::of_id(id, Source::Named, name)).await
    }

    /// Sets the function that finds the problems of a lease and its element.
    pub fn judge_pairs_by(&mut self, rule: PairRule) {
        self.pair_rule = rule;
    }

    /// Adds a lease, the `member` of a sorted set, to the pair of lease and element
    /// that `name` identifies. The same member may be added again.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id).
    pub async fn lease(&mut self, name: &[u8], member: &[u8]) -> Result<(), Error> {
        self.add(Record::of_pair(name, Source::Lease, member)).await
    }

    /// Adds a leased element to the pair of lease and element that `name` identifies.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id).
    pub async fn leased_element(&mut self, name: &[u8]) -> Result<(), Error> {
        self.add(Record::of_pair(name, Source::LeasedElement, b"")).await
    }

    /// Adds a problem that the reading has found, as a sentence.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id).
    pub async fn problem(&mut self, problem: &str) -> Result<(), Error> {
        self.problems.push(&[problem.as_bytes()]);
        spill_if_full(self.at, &mut self.problems).await
    }

    /// Reads the scheduled jobs.
    ///
    /// # Errors
    /// The errors of [`by_id`](Self::by_id) and of [`Conn::call`](crate::Conn::call).
    /// All functions here that read have these errors.
    pub async fn read_scheduled(
        &mut self,
        bookkeeping: &Bookkeeping,
    ) -> Result<(), Error> {
        self.read_by_id(bookkeeping, &bookkeeping.keys.later, "scheduled").await
    }

    /// Reads a sorted set of ids. The entries of the jobs are in the hash `jobs`.
    ///
    /// # Errors
    /// The errors of [`read_scheduled`](Self::read_scheduled).
    pub async fn read_by_id(
        &mut self,
        bookkeeping: &Bookkeeping,
        set: &str,
        place: &'static str,
    ) -> Result<(), Error> {
        let mut pages = bookkeeping.scan_pages(Scanned::SortedSet, set);
        while let Some(page) = pages.next_page().await? {
            for (id, _) in page {
                self.by_id(&id, place).await?;
            }
        }
        Ok(())
    }

    /// Reads a list whose elements are the entries of jobs.
    ///
    /// # Errors
    /// The errors of [`read_scheduled`](Self::read_scheduled).
    pub async fn read_list(
        &mut self,
        bookkeeping: &Bookkeeping,
        list: &str,
    ) -> Result<(), Error> {
        let mut pages = bookkeeping.list_pages(list, Operation::Audit);
        while let Some(page) = pages.next_page().await? {
            for element in &page {
                self.element(element).await?;
            }
        }
        Ok(())
    }

    /// Reads the dead jobs, and then the records that must each belong to a job.
    ///
    /// # Errors
    /// The errors of [`read_scheduled`](Self::read_scheduled).
    pub async fn read_rest(&mut self, bookkeeping: &Bookkeeping) -> Result<(), Error> {
        let keys = &bookkeeping.keys;
        let (set, hash) = (Scanned::SortedSet, Scanned::Hash);
        for (scanned, key, source) in [
            (set, &keys.dead, Source::Dead),
            (hash, &keys.jobs, Source::Entry),
            (hash, &keys.errors, Source::Error),
            (hash, &keys.unique, Source::Holder),
            (set, &keys.ids, Source::BoundId),
        ] {
            let mut pages = bookkeeping.scan_pages(scanned, key);
            while let Some(page) = pages.next_page().await? {
                for (name, value) in &page {
                    if let Some(record) = Record::in_key(source, name, value) {
                        self.add(record).await?;
                    }
                    if source == Source::Entry {
                        self.held(name, value).await?;
                    }
                }
            }
        }
        self.read_followers(bookkeeping).await
    }

    async fn add(&mut self, record: Record<'_>) -> Result<(), Error> {
        record.push_to(&mut self.records);
        spill_if_full(self.at, &mut self.records).await
    }

    /// Counts the jobs and finds the problems.
    ///
    /// Equal ids are not a problem: two jobs may have the same id, and each lease, each
    /// list element and each field of `jobs` is a separate job.
    async fn judge(self) -> Result<Judged, Error> {
        let Self { at, bare, places, records, pair_rule, problems } = self;
        let judging =
            move || judge::judge(records.into_sorted()?, &places, pair_rule, problems);
        let mut judged = blocking(at, judging).await?;
        judged.jobs += bare;
        Ok(judged)
    }
}

async fn spill_if_full(at: ErrorContext, sort: &mut ExternalSort) -> Result<(), Error> {
    if !sort.is_full() {
        return Ok(());
    }
    // While the records are written to the file, `sort` is empty. If the caller drops
    // this future meanwhile, it drops the whole reading, so that no record is missed.
    let mut full = mem::replace(sort, ExternalSort::new(0));
    *sort = blocking(at, move || full.spill().map(|()| full)).await?;
    Ok(())
}

/// Runs a function that reads or writes the temporary file, on a thread that may block.
async fn blocking<T: Send + 'static>(
    at: ErrorContext,
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = spawn_blocking(run).await.unwrap_or_else(|lost| Err(lost.into()));
    done.map_err(|error| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        let reason = format!(
            "the temporary file in {folder} that an audit of many jobs needs cannot be \
             used: {error}; free some space there, or name another folder in TMPDIR"
        );
        Error::Invalid { at, reason }
    })
}
