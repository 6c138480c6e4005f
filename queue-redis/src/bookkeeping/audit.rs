//! Audit: checks that each job is in exactly one place (R23).
//!
//! Everything is read page by page while the queue is in use, so one reading can see a
//! job twice or not at all. Only a problem that two readings in a row find is reported.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use relq_core::{Error, JobId, error::Operation, operator::Audit};

use super::{Bookkeeping, peek::text};
use crate::{
    Reply, command,
    entry::{Entry, id_of},
};

/// Number of elements read at once.
const PAGE: usize = 500;

/// Reads everything, and a second time if the first reading finds a problem.
///
/// `read` visits the keys in the order in which a job moves between them, so that it
/// sees a moving job at least once: [`Seen::read_scheduled`], the pattern's ready and
/// leased jobs, [`Seen::read_rest`].
///
/// # Errors
/// The errors of `read`.
pub async fn audit<'a>(
    read: impl Fn() -> BoxFuture<'a, Result<Seen, Error>>,
) -> Result<Audit, Error> {
    let (jobs, first) = read().await?.judge();
    if first.is_empty() {
        return Ok(Audit { jobs, problems: Vec::new() });
    }
    let (jobs, second) = read().await?.judge();
    Ok(Audit { jobs, problems: first.intersection(&second).cloned().collect() })
}

/// The result of one reading.
#[derive(Debug, Default)]
pub struct Seen {
    bare: u64,
    /// For each id, where jobs with that id are stored.
    places: BTreeMap<Bytes, Vec<EntryPlace>>,
    entries: BTreeSet<Bytes>,
    errors: BTreeSet<Bytes>,
    holders: BTreeMap<Bytes, Bytes>,
    bound_ids: BTreeSet<Bytes>,
    problems: BTreeSet<String>,
}

/// Where a job is stored, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPlace {
    /// The job has an entry in `jobs`.
    ById(&'static str),
    /// The element itself is the job's entry.
    Itself,
    /// Like `ById`, for a dead job.
    Dead,
}

impl Seen {
    /// Adds a job that has its entry in `jobs`.
    pub fn by_id(&mut self, id: Bytes, place: &'static str) {
        self.places.entry(id).or_default().push(EntryPlace::ById(place));
    }

    /// Adds a ready or leased job whose element is its entry.
    pub fn element(&mut self, element: &Bytes) {
        if Entry::decode(element).is_ok() {
            self.job(id_of(element));
        } else {
            self.bare += 1;
        }
    }

    /// Adds a ready or leased job with this id.
    pub fn job(&mut self, id: Bytes) {
        self.places.entry(id).or_default().push(EntryPlace::Itself);
    }

    /// Adds a problem.
    pub fn problem(&mut self, problem: String) {
        self.problems.insert(problem);
    }

    /// Reads the scheduled jobs.
    ///
    /// # Errors
    /// As [`Conn::call`](crate::Conn::call); the same for all readings here.
    pub async fn read_scheduled(
        &mut self,
        bookkeeping: &Bookkeeping,
    ) -> Result<(), Error> {
        for (id, _) in bookkeeping.scan("ZSCAN", &bookkeeping.keys.later).await? {
            self.by_id(id, "scheduled");
        }
        Ok(())
    }

    /// Reads the elements of a list.
    ///
    /// # Errors
    /// As `read_scheduled`.
    pub async fn read_list(
        &mut self,
        bookkeeping: &Bookkeeping,
        list: &str,
    ) -> Result<(), Error> {
        let mut pages = bookkeeping.list_pages(list, Operation::Audit);
        while let Some(page) = pages.next_page().await? {
            page.iter().for_each(|element| self.element(element));
        }
        Ok(())
    }

    /// Reads the dead jobs, and then the records that must each belong to a job.
    ///
    /// # Errors
    /// As `read_scheduled`.
    pub async fn read_rest(&mut self, bookkeeping: &Bookkeeping) -> Result<(), Error> {
        let keys = &bookkeeping.keys;
        for (id, _) in bookkeeping.scan("ZSCAN", &keys.dead).await? {
            self.places.entry(id).or_default().push(EntryPlace::Dead);
        }
        self.entries = names(bookkeeping.scan("HSCAN", &keys.jobs).await?);
        self.errors = names(bookkeeping.scan("HSCAN", &keys.errors).await?);
        self.holders =
            bookkeeping.scan("HSCAN", &keys.unique).await?.into_iter().collect();
        let ids = bookkeeping.scan("ZSCAN", &keys.ids).await?;
        self.bound_ids =
            names(ids.into_iter().filter(|(_, at)| &at[..] == b"inf").collect());
        Ok(())
    }

    /// The number of jobs, and the problems found.
    ///
    /// Ids are not compared between keys: two jobs may have the same id, and each
    /// lease, each list element and each field of `jobs` is a separate job.
    fn judge(mut self) -> (u64, BTreeSet<String>) {
        let mut problems = std::mem::take(&mut self.problems);
        let places = self.places.iter();
        problems.extend(places.filter_map(|(id, places)| self.misplaced(id, places)));
        for (what, ids) in
            [("entry", &self.entries), ("error", &self.errors), ("id", &self.bound_ids)]
        {
            let is_gone = |id: &&Bytes| !self.places.contains_key(*id);
            let lost = |id: &Bytes| format!("{what} {} belongs to no job", text(id));
            problems.extend(ids.iter().filter(is_gone).map(lost));
        }
        let unheld = |(key, holder)| self.unheld(key, holder);
        problems.extend(self.holders.iter().filter_map(unheld));
        let placed: usize = self.places.values().map(Vec::len).sum();
        (placed as u64 + self.bare, problems)
    }

    /// The problem with a job that is stored by its id, if it does not have exactly one
    /// entry.
    fn misplaced(&self, id: &Bytes, places: &[EntryPlace]) -> Option<String> {
        let count = places.iter().filter(|place| **place != EntryPlace::Itself).count();
        let entries = usize::from(self.entries.contains(id));
        (count != entries)
            .then(|| format!("job {} in {places:?} has {entries} entries", text(id)))
    }

    /// The problem with a unique key, if its holder does not exist.
    fn unheld(&self, key: &Bytes, holder: &Bytes) -> Option<String> {
        let space = holder.iter().position(|byte| *byte == b' ')?;
        let id = holder.slice(space + 1..);
        let is_waiting =
            |places: &Vec<_>| places.iter().any(|place| *place != EntryPlace::Dead);
        let is_alive = self.places.get(&id).is_some_and(is_waiting);
        (!is_alive).then(|| format!("unique key {} is held by no job", text(key)))
    }
}

impl Bookkeeping {
    /// All pairs of a hash (`HSCAN`) or sorted set (`ZSCAN`), page by page.
    ///
    /// # Errors
    /// As [`Conn::call`](crate::Conn::call).
    pub async fn scan(
        &self,
        scan: &'static str,
        key: &str,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.scan_matching(Operation::Audit, scan, key, "*").await
    }

    /// As [`scan`](Self::scan), for the names that match a glob pattern.
    ///
    /// # Errors
    /// As `scan`.
    pub async fn scan_matching(
        &self,
        operation: Operation,
        scan: &'static str,
        key: &str,
        pattern: &str,
    ) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let mut pairs = BTreeMap::new();
        let mut cursor = String::from("0");
        loop {
            let mut cmd = command(scan);
            cmd.arg(key).arg(&cursor).arg("MATCH").arg(pattern);
            cmd.arg("COUNT").arg(PAGE);
            let mut reply = self.conn.call(operation, &cmd).await?.list()?;
            let (Some(page), Some(next)) = (reply.pop(), reply.pop()) else {
                return Ok(pairs.into_iter().collect());
            };
            let mut page = page.list()?.into_iter().map(Reply::bytes);
            while let (Some(name), Some(value)) = (page.next(), page.next()) {
                pairs.insert(name?, value?);
            }
            cursor = next.text()?;
            if cursor == "0" {
                return Ok(pairs.into_iter().collect());
            }
        }
    }

    /// The leases of the sorted set `leased` whose names match a glob pattern, each with
    /// what `parse` reads in its name. Names that it cannot read are left out.
    ///
    /// # Errors
    /// As `scan`.
    pub async fn find_leases<L>(
        &self,
        operation: Operation,
        leased: &str,
        parse: impl Fn(&Bytes) -> Option<L>,
        glob: &str,
    ) -> Result<Vec<(Bytes, L)>, Error> {
        let leases = self.scan_matching(operation, "ZSCAN", leased, glob).await?;
        let read = |(name, _)| parse(&name).map(|lease| (name, lease));
        Ok(leases.into_iter().filter_map(read).collect())
    }

    /// The leases of `job` in the sorted set `leased`, by their names. Their names match a
    /// glob pattern, and `id_of` reads the id of the job in a name.
    ///
    /// # Errors
    /// As `scan`.
    pub async fn leases_of_job(
        &self,
        leased: &str,
        job: &JobId,
        glob: &str,
        id_of: impl Fn(&Bytes) -> Option<Bytes>,
    ) -> Result<Vec<Bytes>, Error> {
        let found = self.find_leases(Operation::Cancel, leased, id_of, glob).await?;
        let is_of_job = |(_, id): &(Bytes, Bytes)| id == job.as_str();
        Ok(found.into_iter().filter(is_of_job).map(|(name, _)| name).collect())
    }
}

fn names(pairs: Vec<(Bytes, Bytes)>) -> BTreeSet<Bytes> {
    pairs.into_iter().map(|(name, _)| name).collect()
}
