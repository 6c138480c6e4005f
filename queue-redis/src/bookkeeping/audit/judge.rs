//! Compares the sorted records of a reading, id by id, and reports the problems: for
//! example, a job in two places or a lease without an element.

use std::{cmp::Ordering, io};

use bytes::Bytes;

use super::{
    followers::Following,
    record::{Record, Source},
};
use crate::{
    bookkeeping::peek::text,
    external_sort::{ExternalSort, Sorted},
};

/// A function of a pattern that checks a lease and its leased element. It returns one
/// sentence for each problem.
pub type PairRule = fn(&Pair) -> Vec<String>;

/// The leases and the leased elements that have the same name. In a queue without
/// problems, each name has one lease and one element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pair {
    /// The name that the leases and the elements have in common.
    pub name: Bytes,
    /// The leases, as members of their sorted set, sorted.
    pub leases: Vec<Bytes>,
    /// The number of leased elements.
    pub elements: u64,
}

impl Pair {
    /// Whether there is a lease without an element, or an element without a lease.
    pub fn is_broken(&self) -> bool {
        self.leases.is_empty() != (self.elements == 0)
    }
}

/// The result of one reading: the number of jobs, and the problems.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) jobs: u64,
    pub(super) problems: ExternalSort,
}

/// Where a job is stored, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryPlace {
    /// The job's id is in the key of this name, and its entry is in the hash `jobs`.
    ById(&'static str),
    /// The job is an element of a list, and the element is its entry.
    Itself,
    /// The job is dead, and its entry is in the hash `jobs`.
    Dead,
}

/// Counts the jobs of the sorted records of one reading, and adds the problems of these
/// jobs to `problems`. Blocks the thread.
pub(super) fn judge(
    mut records: Sorted,
    places: &[&'static str],
    pair_rule: PairRule,
    problems: ExternalSort,
) -> io::Result<Judged> {
    let mut judge = Judge { places, pair_rule, judged: Judged { jobs: 0, problems } };
    let (mut last, mut group) = (Vec::new(), Group::default());
    while let Some(bytes) = records.next()? {
        let record = readable(Record::read(bytes))?;
        if let Some(previous) = Record::read(&last) {
            if previous == record && !record.source.repeats() {
                continue;
            }
            if !previous.is_beside(&record) {
                judge.end(previous, std::mem::take(&mut group))?;
            }
        }
        judge.see(record, &mut group)?;
        last.clear();
        last.extend_from_slice(bytes);
    }
    if let Some(previous) = Record::read(&last) {
        judge.end(previous, group)?;
    }
    Ok(judge.judged)
}

/// Returns the problems that both readings found, sorted. Blocks the thread.
pub(super) fn in_both(
    first: ExternalSort,
    second: ExternalSort,
) -> io::Result<Vec<String>> {
    let (mut first, mut second) = (first.into_sorted()?, second.into_sorted()?);
    let (mut one, mut other) = (owned(&mut first)?, owned(&mut second)?);
    let mut both: Vec<String> = Vec::new();
    while let (Some(a), Some(b)) = (&one, &other) {
        match a.cmp(b) {
            Ordering::Less => one = owned(&mut first)?,
            Ordering::Greater => other = owned(&mut second)?,
            Ordering::Equal => {
                let problem = String::from_utf8_lossy(a);
                if both.last().is_none_or(|last| *last != problem) {
                    both.push(problem.into_owned());
                }
                one = owned(&mut first)?;
            }
        }
    }
    Ok(both)
}

fn owned(problems: &mut Sorted) -> io::Result<Option<Vec<u8>>> {
    Ok(problems.next()?.map(<[u8]>::to_vec))
}

/// The counts of the records with one id, or with one lease name, that the audit has
/// read so far.
#[derive(Debug, Default)]
struct Group {
    /// The names of the keys that contain the id, if the job's entry must be in the
    /// hash `jobs`.
    by_id: Vec<&'static str>,
    /// The number of list elements that are entries of jobs with the id.
    elements: u64,
    is_dead: bool,
    has_entry: bool,
    leases: Vec<Bytes>,
    leased_elements: u64,
    following: Following,
}

impl Group {
    /// Whether a job with the id is scheduled, ready or leased.
    fn is_alive(&self) -> bool {
        !self.by_id.is_empty() || self.elements > 0
    }

    fn has_job(&self) -> bool {
        self.is_alive() || self.is_dead
    }

    /// The number of jobs that must have an entry in the hash `jobs`.
    fn by_entry(&self) -> usize {
        self.by_id.len() + usize::from(self.is_dead)
    }

    /// The places where jobs with the id are stored, in the order of the reading.
    fn places(&self) -> Vec<EntryPlace> {
        let by_id = self.by_id.iter().map(|place| EntryPlace::ById(place));
        let elements = (0..self.elements).map(|_| EntryPlace::Itself);
        by_id.chain(elements).chain(self.is_dead.then_some(EntryPlace::Dead)).collect()
    }
}

struct Judge<'a> {
    places: &'a [&'static str],
    pair_rule: PairRule,
    judged: Judged,
}

impl Judge<'_> {
    /// Adds one record to `group`. The records of an id begin with its jobs, so that a
    /// record that must belong to a job can be checked at once.
    fn see(&mut self, record: Record<'_>, group: &mut Group) -> io::Result<()> {
        match record.source {
            Source::ById => {
                let place = record.value.first().map(|number| usize::from(*number));
                let place = place.and_then(|number| self.places.get(number));
                group.by_id.push(readable(place)?);
                self.judged.jobs += 1;
            }
            Source::Element | Source::Named => {
                group.elements += 1;
                self.judged.jobs += 1;
            }
            Source::Dead => {
                group.is_dead = true;
                self.judged.jobs += 1;
            }
            Source::Entry => {
                group.has_entry = true;
                self.check_job("entry", record, group)?;
            }
            Source::Error => self.check_job("error", record, group)?,
            Source::BoundId => {
                group.following.is_bound = true;
                self.check_job("id", record, group)?;
            }
            Source::Holder => self.check_holder(record, group)?,
            Source::Lease => group.leases.push(Bytes::copy_from_slice(record.value)),
            Source::LeasedElement => group.leased_elements += 1,
            Source::Held
            | Source::HeldBy
            | Source::Listed
            | Source::Follower
            | Source::FollowerBytes
            | Source::Orphan => group.following.see(record),
        }
        Ok(())
    }

    fn check_holder(&mut self, record: Record<'_>, group: &Group) -> io::Result<()> {
        if group.is_alive() {
            return Ok(());
        }
        let key = shown(record.value);
        self.report(&format!("unique key {key} is held by no job"))
    }

    fn check_job(
        &mut self,
        what: &str,
        record: Record<'_>,
        group: &Group,
    ) -> io::Result<()> {
        if group.has_job() {
            return Ok(());
        }
        self.report(&format!("{what} {} belongs to no job", shown(record.name)))
    }

    /// Reports the problems that are known only after the last record of an id or of a
    /// lease name.
    fn end(&mut self, last: Record<'_>, group: Group) -> io::Result<()> {
        let entries = usize::from(group.has_entry);
        if group.has_job() && group.by_entry() != entries {
            let (id, places) = (shown(last.name), group.places());
            self.report(&format!("job {id} in {places:?} has {entries} entries"))?;
        }
        let problems = group.following.problems(last.name);
        problems.iter().try_for_each(|problem| self.report(problem))?;
        let Group { leases, leased_elements: elements, .. } = group;
        if leases.is_empty() && elements == 0 {
            return Ok(());
        }
        let name = Bytes::copy_from_slice(last.name);
        let problems = (self.pair_rule)(&Pair { name, leases, elements });
        problems.iter().try_for_each(|problem| self.report(problem))
    }

    fn report(&mut self, problem: &str) -> io::Result<()> {
        let problems = &mut self.judged.problems;
        problems.push(&[problem.as_bytes()]);
        if problems.is_full() { problems.spill() } else { Ok(()) }
    }
}

fn shown(bytes: &[u8]) -> String {
    text(&Bytes::copy_from_slice(bytes))
}

/// Turns `None`, the result of a record that cannot be decoded, into an error: the
/// temporary file was changed after it was written.
fn readable<T>(read: Option<T>) -> io::Result<T> {
    read.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
