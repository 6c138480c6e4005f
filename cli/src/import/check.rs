//! Reads the whole file before the first job is stored.

use std::collections::{BTreeMap, HashMap, HashSet};

use relq::{JobId, Queue};

use super::{
    Args,
    file::{ExportFile, Line},
    ids::{Earlier, Ids},
    job_line::{JobLine, Kept, ToStore},
};
use crate::{
    export::{End, Head, VERSION},
    failure::{CommandResult, explain},
    format::counted,
};

/// The result of reading the file before its first job is stored.
#[derive(Default)]
pub(super) struct Checked {
    /// The number of jobs in the file.
    pub(super) jobs: u64,
    /// The followers, each behind its leader.
    pub(super) followers: Vec<Place>,
    /// The numbers of the lines whose job an earlier line has.
    pub(super) repeated: HashSet<u64>,
    /// The new ids of the jobs whose id an earlier job has, by the numbers of their lines.
    pub(super) renamed: BTreeMap<u64, JobId>,
}

/// Where the line of a follower is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) number: u64,
}

/// The followers of the file with their leaders, while the file is read.
#[derive(Default)]
struct Followers {
    by_id: HashMap<JobId, (JobId, Place)>,
    /// The followed jobs that follow no other and that the import stores.
    leaders: HashSet<JobId>,
}

impl Checked {
    /// Checks all lines of the file.
    ///
    /// # Errors
    /// When the file is not an export, is cut off, or has a job that cannot be stored.
    pub(super) fn read(
        file: &mut ExportFile,
        queue: &dyn Queue,
        args: &Args,
    ) -> CommandResult<Self> {
        file.allow_jobs_of(&queue.capabilities().limits);
        check_head(file)?;
        let mut ids = Ids::read(file)?;
        file.rewind()?;
        check_head(file)?;
        let (mut checked, mut followers) = (Self::default(), Followers::default());
        while let Some(line) = file.next()? {
            if let Ok(End { exported }) = serde_json::from_str(&line.text) {
                check_end(file, checked.jobs, exported)?;
                let wrong =
                    |(place, why): (Place, String)| file.wrong(place.number, &why);
                followers.check_leaders(&ids).map_err(wrong)?;
                checked.followers = followers.in_order().map_err(wrong)?;
                return Ok(checked);
            }
            checked.jobs += 1;
            let job = checked.check(&line, queue, args, &mut ids);
            let job = job.map_err(|why| file.wrong(line.number, &why))?;
            if let Some(Job { id, leader }) = job
                && (leader.is_some() || ids.are_followed(&id))
            {
                let place = Place { offset: line.offset, number: line.number };
                followers.add(id, leader, place);
            }
        }
        Err(file.unreadable("its last line is missing, so the export was cut off"))
    }

    /// Reads the job of a line, with the id that the import gives it. `None` if an earlier
    /// line has the same job.
    pub(super) fn job(&self, line: &Line) -> Result<Option<JobLine>, String> {
        if self.repeated.contains(&line.number) {
            return Ok(None);
        }
        let mut job = JobLine::read(line)?;
        if self.renamed.contains_key(&line.number) {
            job.forget_id();
        }
        Ok(Some(job))
    }

    /// Checks the job of a line. `None` if it is not stored.
    fn check(
        &mut self,
        line: &Line,
        queue: &dyn Queue,
        args: &Args,
        ids: &mut Ids,
    ) -> Result<Option<Job>, String> {
        let mut job = JobLine::read(line)?;
        if job.batch.is_some() && !args.drop_batches {
            return Err(
                "the job is a piece of a batch, which an import cannot store: add \
                        --drop-batches to store the pieces as jobs"
                    .to_owned(),
            );
        }
        let (mut id, choices) = (job.id(line)?, args.choices(queue));
        if job.is_skipped(choices) {
            return Ok(None);
        }
        if job.is_dead() && (choices.dead, choices.kept) == (None, Kept::Anew) {
            return Err(no_dead_jobs(&id, queue));
        }
        match ids.compare(&id, &job) {
            Earlier::Nothing => {}
            Earlier::SameJob => {
                self.repeated.insert(line.number);
                return Ok(None);
            }
            Earlier::OtherJobs => {
                job.forget_id();
                id = job.id(line)?;
                self.renamed.insert(line.number, id.clone());
            }
        }
        let leader = job.leader()?;
        check_stored(job.into_stored(line, choices)?, queue)?;
        Ok(Some(Job { id, leader }))
    }
}

/// A job that is stored, and the one that it follows.
struct Job {
    id: JobId,
    leader: Option<JobId>,
}

/// Checks that the first line is that of an export.
pub(super) fn check_head(file: &mut ExportFile) -> CommandResult {
    let Some(line) = file.next()? else {
        return Err(file.unreadable("it is empty"));
    };
    match serde_json::from_str(&line.text) {
        Ok(Head { relq, .. }) if relq > VERSION => Err(file.unreadable(&format!(
            "it has version {relq} of the format, and this relq knows version {VERSION}: \
             use the newer relq that wrote it"
        ))),
        Ok(_) => Ok(()),
        Err(_) => Err(file.unreadable("its first line is not that of an export")),
    }
}

fn check_end(file: &mut ExportFile, jobs: u64, exported: u64) -> CommandResult {
    if jobs != exported {
        let jobs = counted(jobs, "job");
        let why = format!("it has {jobs}, and its last line says {exported}");
        return Err(file.unreadable(&why));
    }
    match file.next()? {
        Some(line) => Err(file.wrong(line.number, "it follows the last line")),
        None => Ok(()),
    }
}

/// Checks that the queue can store the job. If not, the reason says how the other jobs can
/// be imported.
fn check_stored(job: ToStore, queue: &dyn Queue) -> Result<(), String> {
    let can = queue.capabilities();
    let checked = match job {
        ToStore::Anew(job) => {
            let checked = can.check_push(std::slice::from_ref(&job), true);
            checked.and_then(|()| queue.part_of_job(&job).map(drop))
        }
        ToStore::AsItWas(job) => {
            can.check_restore(std::slice::from_ref(&job)).map(drop)
        }
    };
    checked.map_err(|error| {
        format!(
            "{}: to import the other jobs, delete this line from the file, and reduce the \
             number in its last line by one",
            explain(&error)
        )
    })
}

fn no_dead_jobs(id: &JobId, queue: &dyn Queue) -> String {
    format!(
        "the job {id} is dead, and an import cannot store it as a dead one on {}: add \
         --dead retry to make such jobs ready, or --dead skip to leave them out",
        queue.capabilities().backend
    )
}

impl Followers {
    fn add(&mut self, id: JobId, leader: Option<JobId>, place: Place) {
        match leader {
            Some(leader) => drop(self.by_id.insert(id, (leader, place))),
            None => drop(self.leaders.insert(id)),
        }
    }

    /// Refuses a follower of an id that several jobs have, and names it.
    fn check_leaders(&self, ids: &Ids) -> Result<(), (Place, String)> {
        let mut followers = self.by_id.iter();
        match followers.find(|(_, (leader, _))| ids.has_several_jobs(leader)) {
            None => Ok(()),
            Some((id, (leader, place))) => {
                let why = format!(
                    "the job {id} follows the job {leader}, and the file has several jobs \
                     with this id: give each of them an id of its own"
                );
                Err((*place, why))
            }
        }
    }

    /// The places of the followers, each behind its leader. The error names a follower
    /// whose leader is not stored.
    fn in_order(mut self) -> Result<Vec<Place>, (Place, String)> {
        let mut waiting: HashMap<JobId, Vec<(JobId, Place)>> = HashMap::new();
        for (id, (leader, place)) in self.by_id {
            waiting.entry(leader).or_default().push((id, place));
        }
        let mut ready: Vec<JobId> =
            waiting.keys().filter(|it| self.leaders.contains(it)).cloned().collect();
        let mut ordered = Vec::new();
        let mut level = Vec::new();
        while !ready.is_empty() {
            for leader in ready.drain(..) {
                level.extend(waiting.remove(&leader).into_iter().flatten());
            }
            // The followers of one job keep their order.
            level.sort_by_key(|(_, place)| place.offset);
            ordered.extend(level.iter().map(|(_, place)| *place));
            let next = level.drain(..).map(|(id, _)| id);
            ready.extend(next.filter(|id| waiting.contains_key(id)));
        }
        self.leaders.clear();
        match waiting.into_iter().next() {
            None => Ok(ordered),
            Some((leader, followers)) => {
                let (id, place) = &followers[0];
                let why = format!(
                    "the job {id} follows the job {leader}, which the import does not \
                     store; if that job has ended in the exported queue, run relq recover \
                     there, which cancels its followers, and export again"
                );
                Err((*place, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> JobId {
        JobId::new(name).unwrap()
    }

    /// The numbers of the followers in their order. Each job is given by its id and its
    /// leader, and its number is its place in the list.
    fn order(jobs: &[(&str, Option<&str>)]) -> Result<Vec<u64>, String> {
        let mut followers = Followers::default();
        for (number, (name, leader)) in (0..).zip(jobs) {
            let place = Place { offset: number, number };
            followers.add(id(name), leader.map(id), place);
        }
        let order = followers.in_order().map_err(|(_, why)| why)?;
        Ok(order.into_iter().map(|place| place.number).collect())
    }

    #[test]
    fn followers_come_after_their_leaders() {
        let jobs = [
            ("c", Some("b")),
            ("b", Some("a")),
            ("e", Some("d")),
            ("a", None),
            ("d", None),
            ("b2", Some("a")),
        ];
        assert_eq!(order(&jobs), Ok(vec![1, 2, 5, 0]));
        assert_eq!(order(&[("a", None)]), Ok(vec![]));
    }

    #[test]
    fn a_follower_without_its_leader_is_refused() {
        let error = order(&[("b", Some("a"))]).unwrap_err();
        assert!(error.contains("follows the job a"), "{error}");
        let error = order(&[("a", Some("b")), ("b", Some("a"))]).unwrap_err();
        assert!(error.contains("does not store"), "{error}");
    }
}
