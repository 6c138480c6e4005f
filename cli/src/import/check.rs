//! Reads the whole file before the first job is stored.

use std::collections::{HashMap, HashSet};

use relq::{JobId, Queue};

use super::{
    Args, DeadJobs,
    file::{ExportFile, Line},
    job_line::{JobLine, Kept, ToStore},
};
use crate::{
    export::{End, Head, VERSION},
    failure::{CommandResult, explain},
    format::counted,
};

/// What a first reading of the file finds: how many jobs it has, and which of them follow
/// another one.
pub(super) struct Checked {
    /// The number of jobs in the file.
    pub(super) jobs: u64,
    /// The followers, each behind its leader.
    pub(super) followers: Vec<Place>,
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
    /// The jobs that follow no other and that the import stores.
    leaders: HashSet<JobId>,
}

impl Checked {
    /// Checks all lines of the file.
    ///
    /// # Errors
    /// When the file is no export, is cut off, or has a job that cannot be stored.
    pub(super) fn read(
        file: &mut ExportFile,
        queue: &dyn Queue,
        args: &Args,
    ) -> CommandResult<Self> {
        check_head(file)?;
        let mut followers = Followers::default();
        let mut jobs = 0;
        while let Some(line) = file.next()? {
            if let Ok(End { exported }) = serde_json::from_str(&line.text) {
                check_end(file, jobs, exported)?;
                let wrong =
                    |(place, why): (Place, String)| file.wrong(place.number, &why);
                let followers = followers.in_order().map_err(wrong)?;
                return Ok(Self { jobs, followers });
            }
            jobs += 1;
            let checked = check_job(&line, queue, args, &mut followers);
            checked.map_err(|why| file.wrong(line.number, &why))?;
        }
        Err(file.unreadable("its last line is missing, so the export was cut off"))
    }
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

fn check_job(
    line: &Line,
    queue: &dyn Queue,
    args: &Args,
    followers: &mut Followers,
) -> Result<(), String> {
    let job = JobLine::read(line)?;
    if job.batch.is_some() && !args.drop_batches {
        return Err(
            "the job is a piece of a batch, which an import cannot store: add \
                    --drop-batches to store the pieces as jobs"
                .to_owned(),
        );
    }
    let (id, choices) = (job.id(line)?, args.choices(queue));
    if job.is_dead() {
        match (choices.dead, choices.kept) {
            (None, Kept::Anew) => return Err(no_dead_jobs(&id, queue)),
            (Some(DeadJobs::Skip), _) => return Ok(()),
            _ => {}
        }
    }
    let leader = job.leader()?;
    let checked = match job.into_stored(line, choices)? {
        ToStore::Anew(job) => {
            let can = queue.capabilities();
            let checked = can.check_push(std::slice::from_ref(&job), true);
            checked.and_then(|()| queue.part_of_job(&job).map(drop))
        }
        ToStore::AsItWas(job) => {
            let checked =
                queue.capabilities().check_restore(std::slice::from_ref(&job));
            checked.map(drop)
        }
    };
    checked.map_err(|error| explain(&error))?;
    followers.add(id, leader, Place { offset: line.offset, number: line.number });
    Ok(())
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
                    "the job {id} follows the job {leader}, which the import does not store"
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
