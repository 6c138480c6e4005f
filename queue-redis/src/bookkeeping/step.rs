//! Calls that go step by step: a script handles at most
//! [`max_jobs_per_step`](relq_core::environment::Environment::max_jobs_per_step) jobs of
//! a call, and as many as fit into about [`ClaimRequest::MAX_BYTES`], or a single job. It
//! says how many these were. The server runs nothing else meanwhile, so a call about many
//! or large jobs takes several scripts.

use std::num::NonZeroU32;

use relq_core::{ClaimRequest, Error};

use crate::{PartialEffect, Reply};

/// The result of one script: how many of its jobs it handled, and the lost leases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// How many of the jobs it handled, from the first on.
    pub handled: usize,
    /// The positions of those whose lease was lost, from 0.
    pub lost: Vec<usize>,
}

impl Step {
    /// The step of a script that handled all `jobs`. `reply` has the positions of the
    /// lost leases.
    ///
    /// # Errors
    /// [`Error::Unreadable`]; the same for [`read`](Self::read).
    pub fn whole(jobs: usize, reply: Reply) -> Result<Self, Error> {
        Ok(Self { handled: jobs, lost: reply.positions()? })
    }

    /// The step of a script that replies {how many jobs were handled, {positions of the
    /// lost leases}}.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn read(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.parts()?;
        Ok(Self { handled: parts.part().handled()?, lost: parts.part().positions()? })
    }
}

/// The steps of one call, and what they have done so far.
#[derive(Debug)]
pub struct Steps {
    most: usize,
    handled: usize,
    /// The maximum number of jobs of the next step, if the last one did not handle all
    /// its jobs. The others need not be sent in vain.
    page: Option<usize>,
    lost: Vec<usize>,
    partial: PartialEffect,
}

impl Steps {
    /// No steps so far. Each has at most `most` jobs.
    pub fn of(most: NonZeroU32) -> Self {
        Self {
            most: most.get() as usize,
            handled: 0,
            page: None,
            lost: Vec::new(),
            partial: PartialEffect::default(),
        }
    }

    /// The jobs of the next step; `None` when all were handled. `bytes_of` is what a job
    /// takes in the script's arguments.
    pub fn next_page<'a, T>(
        &self,
        jobs: &'a [T],
        bytes_of: impl Fn(&T) -> usize,
    ) -> Option<&'a [T]> {
        let left = jobs.get(self.handled..).filter(|left| !left.is_empty())?;
        let mut bytes = 0;
        let fits = |job: &&T| {
            let has_room = bytes < ClaimRequest::MAX_BYTES;
            bytes += bytes_of(job);
            has_room
        };
        let most = self.page.unwrap_or(self.most).min(self.most);
        let count = left.iter().take(most).take_while(fits).count();
        Some(&left[..count])
    }

    /// Adds the result of a step with `page` jobs.
    ///
    /// # Errors
    /// The error of the step, as one of the whole call.
    pub fn add(&mut self, page: usize, step: Result<Step, Error>) -> Result<(), Error> {
        const GROWTH: usize = 2;
        let Step { handled, lost } = self.partial.then(step)?;
        self.lost.extend(lost.into_iter().map(|at| self.handled + at));
        self.handled += handled;
        self.page = (handled < page).then_some(handled * GROWTH);
        Ok(())
    }

    /// The positions of all lost leases among the jobs of the call.
    pub fn lost(self) -> Vec<usize> {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

    fn step(handled: usize, lost: &[usize]) -> Result<Step, Error> {
        Ok(Step { handled, lost: lost.to_vec() })
    }

    #[test]
    fn steps_go_over_all_jobs() {
        let (jobs, mut steps) = ([1, 2, 3, 4, 5, 6, 7], Steps::of(MOST));
        let next = |steps: &Steps| steps.next_page(&jobs, |_| 1).map(<[_]>::to_vec);

        assert_eq!(next(&steps).unwrap(), jobs);
        steps.add(7, step(2, &[1])).unwrap();
        assert_eq!(next(&steps).unwrap(), [3, 4, 5, 6]);
        steps.add(4, step(4, &[0, 3])).unwrap();
        assert_eq!(next(&steps).unwrap(), [7]);
        steps.add(1, step(1, &[])).unwrap();
        assert_eq!(next(&steps), None);
        assert_eq!(steps.lost(), [1, 2, 5]);
    }

    #[test]
    fn step_has_at_most_so_many_jobs() {
        let (jobs, mut steps) =
            ([1, 2, 3, 4, 5], Steps::of(NonZeroU32::new(2).unwrap()));
        let mut pages = Vec::new();
        while let Some(page) = steps.next_page(&jobs, |_| 1) {
            pages.push(page.to_vec());
            steps.add(page.len(), step(page.len(), &[])).unwrap();
        }
        assert_eq!(pages, [vec![1, 2], vec![3, 4], vec![5]]);
    }

    #[test]
    fn step_has_the_bytes_of_one_script_or_one_job() {
        let half = ClaimRequest::MAX_BYTES / 2;
        let (jobs, mut steps) = ([half, half, half, 3 * half, 1], Steps::of(MOST));
        let mut pages = Vec::new();
        while let Some(page) = steps.next_page(&jobs, |bytes| *bytes) {
            pages.push(page.len());
            steps.add(page.len(), step(page.len(), &[])).unwrap();
        }
        assert_eq!(pages, [2, 2, 1]);
    }
}
