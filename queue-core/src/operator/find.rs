//! Finds a job by its id, with a search where the backend has no index.

use std::num::NonZeroU32;

use super::{
    InspectQueue, JobLookup, JobRecord, JobSearch, JobState, JobView, PeekRequest,
    StateDetail, Wanted,
};
use crate::{Error, JobId, Queue, capabilities::Capability};

/// How many jobs one page of a listing of held jobs has.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// Finds a job by its id in any state, on every backend (R31).
///
/// It asks [`InspectQueue::job`]. If a ready job may have the id, it then searches the
/// ready jobs, newest first, and the leased ones, and asks again. Without
/// [`Capability::Inspect`] it searches the jobs of all states. The search reads all of
/// these jobs, page by page; a caller that wants to show how far it is uses [`JobSearch`].
///
/// The record of a job that the search found has the held followers that the job had when
/// the search began. Without [`Capability::Inspect`] they are in the order in which they are
/// listed, which need not be that of their pushes.
///
/// [`JobLookup::Unknown`] then says that the search found no such job. It may miss a job
/// that moves between two states meanwhile; pause the queue first to be sure.
///
/// ```
/// use relq_core::{Error, JobId, Queue, operator::{JobLookup, find_job}};
///
/// async fn show(queue: &dyn Queue, id: &JobId) -> Result<(), Error> {
///     match find_job(queue, id).await? {
///         JobLookup::Stored(found) => println!("{id}: {:?}", found.job.detail),
///         JobLookup::Ended { was_done: true, .. } => println!("{id} is done"),
///         JobLookup::Ended { .. } => println!("{id} has ended without being done"),
///         _ => println!("{id} is not known"),
///     }
///     Ok(())
/// }
/// ```
///
/// # Errors
/// The errors of [`Operator::peek`](crate::Operator::peek) and [`InspectQueue::job`].
pub async fn find_job(queue: &dyn Queue, job: &JobId) -> Result<JobLookup, Error> {
    use JobState::{Dead, Leased, Ready, Scheduled};
    let Some(index) = queue.inspect_queue() else {
        return Ok(
            match search(queue, job, &[Scheduled, Ready, Leased, Dead]).await? {
                Some(found) => stored(found, listed_followers(queue, job).await?),
                None => JobLookup::Unknown,
            },
        );
    };
    let followers = match index.job(job).await? {
        JobLookup::MaybeReady { followers } => followers,
        found => return Ok(found),
    };
    match search(queue, job, &[Ready, Leased]).await? {
        Some(found) => Ok(stored(found, followers)),
        None => ask_again(index, job).await,
    }
}

/// Asks the index for a job that the search did not find: it may have moved meanwhile.
async fn ask_again(index: &dyn InspectQueue, job: &JobId) -> Result<JobLookup, Error> {
    Ok(match index.job(job).await? {
        JobLookup::MaybeReady { .. } => JobLookup::Unknown,
        found => found,
    })
}

async fn search(
    queue: &dyn Queue,
    job: &JobId,
    states: &[JobState],
) -> Result<Option<JobView>, Error> {
    for state in states {
        let wanted = Wanted::default().id(job.clone());
        let mut search = JobSearch::new(queue, *state, wanted);
        while let Some(page) = search.next_page().await? {
            if let Some(found) = page.jobs.into_iter().next() {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn stored(found: JobView, followers: Vec<JobId>) -> JobLookup {
    JobLookup::Stored(Box::new(JobRecord::new(found, followers)))
}

/// The held followers of a job, in the order in which the scheduled jobs are listed.
async fn listed_followers(queue: &dyn Queue, job: &JobId) -> Result<Vec<JobId>, Error> {
    let mut followers = Vec::new();
    if !queue.capabilities().supports(Capability::Followers) {
        return Ok(followers);
    }
    let mut ask = PeekRequest::new(JobState::Scheduled, PAGE).outline();
    loop {
        let page = queue.peek(&ask).await?;
        let of_job = page.jobs.into_iter().filter(|view| follows(view, job));
        followers.extend(of_job.filter_map(|view| view.id));
        let Some(next) = page.next else { return Ok(followers) };
        ask = ask.after(next);
    }
}

fn follows(view: &JobView, job: &JobId) -> bool {
    matches!(&view.detail, StateDetail::Following { leader, .. } if leader == job)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::listed::{Listed, at_once, job};
    use super::*;
    use crate::{WorkerId, environment::Timestamp};

    fn id(name: &str) -> JobId {
        JobId::new(name).unwrap()
    }

    /// A ready leader, and scheduled jobs: one with a due time, and three held ones, two of
    /// which follow it.
    fn jobs() -> Vec<JobView> {
        let held = |leader: &str| StateDetail::Following {
            leader: id(leader),
            delay: Duration::ZERO,
        };
        let due = Timestamp::from_unix_ms(0);
        vec![
            job("leader", StateDetail::Ready),
            job("due", StateDetail::Scheduled { due }),
            job("z", held("leader")),
            job("other", held("z")),
            job("a", held("leader")),
        ]
    }

    fn followers(found: &JobLookup) -> Vec<&str> {
        let JobLookup::Stored(found) = found else { panic!("not found: {found:?}") };
        found.followers.iter().map(JobId::as_str).collect()
    }

    /// The answer of an index that does not know the ready jobs.
    fn maybe_ready(followers: &[&str]) -> JobLookup {
        JobLookup::MaybeReady {
            followers: followers.iter().map(|name| id(name)).collect(),
        }
    }

    #[test]
    fn a_ready_job_is_found_with_the_followers_that_the_index_names() {
        let queue = Listed::new(jobs()).finding(maybe_ready(&["z", "a", "unlisted"]));

        let found = at_once(find_job(&queue, &id("leader"))).unwrap();

        assert_eq!(followers(&found), ["z", "a", "unlisted"]);
    }

    #[test]
    fn a_ready_job_is_found_with_its_followers_without_an_index() {
        let found = at_once(find_job(&Listed::new(jobs()), &id("leader"))).unwrap();

        assert_eq!(followers(&found), ["z", "a"]);
    }

    #[test]
    fn a_job_of_any_state_is_found_without_an_index() {
        let queue = Listed::new(jobs());

        let found = at_once(find_job(&queue, &id("z"))).unwrap();

        assert_eq!(followers(&found), ["other"]);
    }

    /// A search looks at the jobs of each state. With an index, only the ready jobs and the
    /// leased ones may lack in it.
    #[test]
    fn a_job_is_found_in_each_state_in_which_it_may_be() {
        let at = Timestamp::from_unix_ms(0);
        let worker = WorkerId::new("w").unwrap();
        for (detail, is_searched_with_an_index) in [
            (StateDetail::Ready, true),
            (StateDetail::Leased { worker, since: at, until: at }, true),
            (StateDetail::Scheduled { due: at }, false),
            (StateDetail::Following { leader: id("x"), delay: Duration::ZERO }, false),
            (StateDetail::Dead { reason: "no".to_owned(), since: at }, false),
        ] {
            let is_found = |queue: &Listed| {
                let found = at_once(find_job(queue, &id("wanted"))).unwrap();
                matches!(found, JobLookup::Stored(found) if found.job.detail == detail)
            };
            let jobs =
                || vec![job("other", detail.clone()), job("wanted", detail.clone())];
            assert!(is_found(&Listed::new(jobs())), "without an index: {detail:?}");
            let indexed = Listed::new(jobs()).finding(maybe_ready(&[]));
            let expected = is_searched_with_an_index;
            assert_eq!(is_found(&indexed), expected, "with an index: {detail:?}");
        }
    }

    /// A job may leave the ready ones before the search has come to it.
    #[test]
    fn a_job_that_ended_during_the_search_is_found_by_the_index() {
        let until = Timestamp::from_unix_ms(1);
        let ended = JobLookup::Ended { was_done: true, until };
        let mut queue = Listed::new(jobs()).finding(maybe_ready(&[]));
        queue.later = Some(ended.clone());

        let found = at_once(find_job(&queue, &id("moved"))).unwrap();

        assert_eq!(found, ended);
    }

    #[test]
    fn the_index_is_believed() {
        let until = Timestamp::from_unix_ms(1);
        for known in [JobLookup::Unknown, JobLookup::Ended { was_done: true, until }] {
            let queue = Listed::new(jobs()).finding(known.clone());

            assert_eq!(at_once(find_job(&queue, &id("leader"))).unwrap(), known);
        }
    }

    #[test]
    fn a_job_that_no_page_has_is_unknown() {
        for queue in
            [Listed::new(jobs()), Listed::new(jobs()).finding(maybe_ready(&[]))]
        {
            let found = at_once(find_job(&queue, &id("unknown"))).unwrap();

            assert_eq!(found, JobLookup::Unknown);
        }
    }
}
