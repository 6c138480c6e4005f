//! Finds the jobs of the file that have the id of another one.
//!
//! A job that moves during `relq export --live` may be in the file twice. It is stored once.
//! But two jobs of a queue may have one id (R4), and so may the jobs of two files that were
//! joined. Then the first job keeps the id, and each other one gets an id of its line, like a
//! job without an id. So no job is lost, and an import that is repeated knows all of them.
//!
//! The ids of all jobs need not fit into memory. A first reading of the file keeps a hash of
//! 8 bytes for each id. The second one compares only the ids whose hash several lines have.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
};

use relq::JobId;
use serde::Deserialize;

use super::{file::ExportFile, job_line::JobLine};
use crate::failure::CommandResult;

/// The ids of the jobs of a file, as a first reading of the file finds them.
pub(super) struct Ids {
    hasher: RandomState,
    /// The hashes that more than one line has.
    repeated: HashSet<u64>,
    /// The jobs that other jobs follow.
    followed: HashSet<String>,
    /// The digests of the jobs that were compared, for each id whose hash is repeated.
    compared: HashMap<JobId, HashSet<[u8; 32]>>,
}

/// The jobs in the earlier lines that have the id of a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// No earlier line has the id.
    Nothing,
    /// One of these lines holds the same job.
    SameJob,
    /// All of these lines hold other jobs.
    OtherJobs,
}

/// The ids in a line of a job.
#[derive(Deserialize)]
struct IdsOfLine {
    id: Option<String>,
    after: Option<String>,
}

impl Ids {
    /// Reads all lines that are left.
    ///
    /// # Errors
    /// When the file cannot be read. A line that is not a job is passed over.
    pub(super) fn read(file: &mut ExportFile) -> CommandResult<Self> {
        let (hasher, mut hashes) = (RandomState::new(), Vec::new());
        let mut followed = HashSet::new();
        while let Some(line) = file.next()? {
            if let Ok(IdsOfLine { id, after }) = serde_json::from_str(&line.text) {
                hashes.extend(id.map(|id| hasher.hash_one(id.as_str())));
                followed.extend(after);
            }
        }
        hashes.sort_unstable();
        let repeated = hashes.windows(2).filter(|pair| pair[0] == pair[1]);
        let repeated = repeated.map(|pair| pair[0]).collect();
        Ok(Self { hasher, repeated, followed, compared: HashMap::new() })
    }

    /// Whether a job of the file follows the job with this id.
    pub(super) fn are_followed(&self, id: &JobId) -> bool {
        self.followed.contains(id.as_str())
    }

    /// Compares a job with the jobs of its id for which this was called before.
    pub(super) fn compare(&mut self, id: &JobId, job: &JobLine) -> Earlier {
        if !self.repeated.contains(&self.hasher.hash_one(id.as_str())) {
            return Earlier::Nothing;
        }
        let jobs = self.compared.entry(id.clone()).or_default();
        if !jobs.insert(job.digest()) {
            Earlier::SameJob
        } else if jobs.len() == 1 {
            Earlier::Nothing
        } else {
            Earlier::OtherJobs
        }
    }

    /// Whether several of the jobs that were compared have this id.
    pub(super) fn has_several_jobs(&self, id: &JobId) -> bool {
        self.compared.get(id).is_some_and(|jobs| jobs.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Earlier::{Nothing, OtherJobs, SameJob},
        *,
    };
    use crate::import::file::Line;

    fn line(id: &str, payload: &str, more: &str) -> String {
        format!(
            r#"{{"id":"{id}","state":"ready","payload":"{payload}","max_attempts":3,"priority":5{more}}}"#
        )
    }

    /// The earlier lines of each of these jobs, and the ids that were compared.
    fn compared(lines: &[String]) -> (Vec<Earlier>, Ids) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let mut ids = Ids::read(&mut ExportFile::open(file.path()).unwrap()).unwrap();
        let compare = |text: &String| {
            let line = Line { number: 1, offset: 0, text: text.clone() };
            let job = JobLine::read(&line).unwrap();
            ids.compare(&job.id(&line).unwrap(), &job)
        };
        let found = lines.iter().map(compare).collect();
        (found, ids)
    }

    /// A line whose job was moved, retried or redriven still holds the same job. A line
    /// with another payload, other headers or another time of the push holds another one.
    #[test]
    fn a_job_that_moved_is_told_from_another_job_of_its_id() {
        let moved = r#","attempt":2,"last_error":"no","unique":"k","expires_at_ms":9"#;
        let lines = [
            line("a", "x", ""),
            line("b", "x", ""),
            line("a", "y", ""),
            line("a", "x", moved).replace("ready", "leased"),
            line("a", "y", r#","reason":"no","since_ms":7"#).replace("ready", "dead"),
            line("a", "x", r#","headers":{"h":"1"}"#),
            line("a", "x", r#","enqueued_at_ms":5"#),
        ];

        let (found, ids) = compared(&lines);

        let expected =
            [Nothing, Nothing, OtherJobs, SameJob, SameJob, OtherJobs, OtherJobs];
        assert_eq!(found, expected);
        let has_several = |id: &str| ids.has_several_jobs(&JobId::new(id).unwrap());
        assert!(has_several("a") && !has_several("b"));
    }

    /// A file has more jobs than memory has room for their ids.
    #[test]
    fn ids_that_one_line_has_are_not_kept() {
        let mut lines: Vec<_> =
            (0..1000).map(|n| line(&n.to_string(), "x", "")).collect();
        lines.push(line("f", "x", r#","after":"7""#));

        let (_, ids) = compared(&lines);

        assert_eq!((ids.repeated.len(), ids.compared.len()), (0, 0));
        let followed = |id: &str| ids.are_followed(&JobId::new(id).unwrap());
        assert!(followed("7") && !followed("8") && !followed("f"));
    }
}
