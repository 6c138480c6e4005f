//! The exit code and the message for jobs whose results were asked for.

use relq::{JobId, results::JobResult};

use crate::{
    exit_codes::{DIED, LEFT, NO_RESULT},
    failure::{CommandResult, Failure},
};

/// The end of one job, as the exit code tells it.
#[derive(Debug)]
pub(super) struct Outcome {
    code: u8,
    message: String,
}

/// The exit code for a job of which nothing is recorded.
const UNKNOWN: u8 = 1;

/// The order in which the codes of several jobs count.
const GRAVEST_FIRST: [u8; 4] = [UNKNOWN, LEFT, DIED, NO_RESULT];

impl Outcome {
    pub(super) fn of((id, found): (&JobId, &Option<JobResult>)) -> Self {
        let (code, message) = match found {
            Some(JobResult::Done { .. }) => (0, format!("the job {id} is done")),
            Some(JobResult::Unfinished { .. }) => {
                (LEFT, format!("the job {id} has not ended"))
            }
            Some(JobResult::Dead { error }) => {
                (DIED, format!("the job {id} is dead: {error}"))
            }
            Some(JobResult::Purged) => {
                (DIED, format!("the job {id} died, and was purged"))
            }
            Some(JobResult::Cancelled { leader: None }) => {
                (NO_RESULT, format!("the job {id} was cancelled"))
            }
            Some(JobResult::Cancelled { leader: Some(leader) }) => {
                (NO_RESULT, format!("the job {id} was cancelled: it followed {leader}"))
            }
            Some(JobResult::Discarded) => {
                (NO_RESULT, format!("the job {id} was discarded by its worker"))
            }
            Some(other) => {
                (UNKNOWN, format!("the job {id} ended in a new way: {other:?}"))
            }
            None => (
                UNKNOWN,
                format!(
                    "nothing is known of the job {id}: it never was, keeps no result, or \
                     ended longer ago than its result is kept"
                ),
            ),
        };
        Self { code, message }
    }

    /// Fails unless all jobs are done.
    pub(super) fn judge(jobs: &[Self]) -> CommandResult {
        let not_done: Vec<_> = jobs.iter().filter(|job| job.code != 0).collect();
        let code = GRAVEST_FIRST
            .into_iter()
            .find(|code| not_done.iter().any(|job| job.code == *code));
        let Some(code) = code else { return Ok(()) };
        let message = match (&not_done[..], jobs.len()) {
            ([only], _) => only.message.clone(),
            (several, all) => format!("{} of {all} jobs are not done", several.len()),
        };
        Err(Failure::Unfinished { code, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(jobs: &[Option<JobResult>]) -> u8 {
        let id = JobId::new("job").unwrap();
        let outcomes: Vec<_> = jobs.iter().map(|job| Outcome::of((&id, job))).collect();
        match Outcome::judge(&outcomes) {
            Err(Failure::Unfinished { code, .. }) => code,
            _ => 0,
        }
    }

    #[test]
    fn the_gravest_outcome_decides_the_exit_code() {
        let done = || Some(JobResult::Done { result: "42".into() });
        let dead = || Some(JobResult::Dead { error: "no".into() });
        let left = || Some(JobResult::Unfinished { progress: None });
        assert_eq!(code(&[done(), done()]), 0, "done");
        let cancelled = |leader| Some(JobResult::Cancelled { leader });
        assert_eq!(code(&[done(), cancelled(None)]), NO_RESULT, "cancelled");
        let leader = JobId::new("leader").ok();
        assert_eq!(code(&[done(), cancelled(leader)]), NO_RESULT, "a follower");
        assert_eq!(code(&[Some(JobResult::Discarded)]), NO_RESULT, "discarded");
        assert_eq!(code(&[cancelled(None), dead()]), DIED, "dead");
        assert_eq!(code(&[Some(JobResult::Purged)]), DIED, "purged");
        assert_eq!(code(&[dead(), left()]), LEFT, "one has not ended");
        assert_eq!(code(&[left(), None]), UNKNOWN, "unknown");
    }
}
