//! Reads the records of all workers, and counts lost and repeated jobs.

use std::{collections::HashSet, path::PathBuf};

use super::record::{self, Kind, Record};

/// The path of one worker's record file, and whether the demo killed that worker.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) records: PathBuf,
    pub(super) was_killed: bool,
}

/// The result of a demo: counts that are made from the records of all workers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    /// How many jobs ended at least once.
    pub(super) finished: u64,
    /// How many jobs never ended.
    pub(super) lost: u64,
    /// How many jobs were started more than once.
    pub(super) repeated: u64,
    /// How many workers were killed.
    pub(super) kills: u64,
    /// How many of the killed workers had started a job and not ended it.
    pub(super) kills_at_work: u64,
    /// A sentence for each record file that cannot be read, and for each record of a
    /// job that the demo never pushed.
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    starts: u32,
    ends: u32,
}

/// How many workers were killed.
pub(super) fn kills_of(evidence: &[Evidence]) -> u64 {
    evidence.iter().filter(|worker| worker.was_killed).count() as u64
}

/// Reads the records of all workers and counts finished, lost and repeated jobs. The
/// demo numbered its jobs from 0; `pushed` is how many there were.
pub(super) fn judge(pushed: u64, evidence: &[Evidence]) -> Judgement {
    let mut judgement = Judgement::default();
    let mut jobs = vec![Runs::default(); usize::try_from(pushed).unwrap_or(usize::MAX)];
    for worker in evidence {
        match record::read(&worker.records) {
            Ok(records) => judgement.worker(&records, worker.was_killed, &mut jobs),
            Err(problem) => judgement.problems.push(problem),
        }
    }
    let count = |which: fn(&Runs) -> bool| jobs.iter().filter(|&it| which(it)).count();
    judgement.finished = count(|runs| runs.ends > 0) as u64;
    judgement.lost = count(|runs| runs.ends == 0) as u64;
    judgement.repeated = count(|runs| runs.starts > 1) as u64;
    judgement
}

impl Judgement {
    fn worker(&mut self, records: &[Record], was_killed: bool, jobs: &mut [Runs]) {
        let mut open = HashSet::new();
        for Record { kind, job } in records {
            let Some(runs) = usize::try_from(*job).ok().and_then(|at| jobs.get_mut(at))
            else {
                self.problems.push(format!("job {job} was worked and never pushed"));
                continue;
            };
            match kind {
                Kind::Start => {
                    runs.starts += 1;
                    open.insert(job);
                }
                Kind::End => {
                    runs.ends += 1;
                    open.remove(job);
                }
            }
        }
        self.kills += u64::from(was_killed);
        self.kills_at_work += u64::from(was_killed && !open.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record::Recorder, *};

    #[test]
    fn lost_and_repeated_jobs_are_told_by_the_records_alone() {
        let folder = tempfile::tempdir().unwrap();
        let worker = |name, records: &[(Kind, u64)], was_killed| {
            let path = folder.path().join(name);
            let recorder = Recorder::create(&path).unwrap();
            for (kind, job) in records {
                recorder.write(*kind, *job).unwrap();
            }
            Evidence { records: path, was_killed }
        };
        let evidence = [
            worker("a", &[(Kind::Start, 0), (Kind::End, 0), (Kind::Start, 1)], true),
            worker("b", &[(Kind::Start, 1), (Kind::End, 1), (Kind::End, 7)], false),
            worker("c", &[(Kind::Start, 2)], true),
            worker("d", &[], true),
        ];
        let problems = vec!["job 7 was worked and never pushed".to_owned()];
        let expected = Judgement {
            finished: 2,
            lost: 1,
            repeated: 1,
            kills: 3,
            kills_at_work: 2,
            problems,
        };
        assert_eq!(judge(3, &evidence), expected);
    }
}
