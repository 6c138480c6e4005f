//! Calls that are split into several scripts, so that the server is not busy with one
//! script for long. Each script handles at most
//! [`max_jobs_per_step`](relq_core::environment::Environment::max_jobs_per_step) jobs,
//! and as many as fit into about [`ClaimRequest::MAX_BYTES`], or a single job. Its
//! reply says how many jobs it handled.

use std::num::NonZeroU32;

use relq_core::{ClaimRequest, Error, outcome::Settled};

use crate::{PartialEffect, Reply};

/// The most jobs of one script that retries, recovers or gives back jobs. Such a job
/// takes the server up to 30 us, twice as long as a job that ends.
const MAX_JOBS_PER_SLOW_STEP: NonZeroU32 = NonZeroU32::new(128).expect("not zero");

/// Returns the most jobs of a step that recovers jobs, if a step of any other call has
/// at most `most` jobs. Recovering a job takes longer than ending one.
pub(super) fn slow_step_of(most: NonZeroU32) -> NonZeroU32 {
    most.min(MAX_JOBS_PER_SLOW_STEP)
}

/// The result of one script: how many of its jobs it handled, and the lost leases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// How many of its jobs the script handled, counted from the first.
    pub handled: usize,
    /// The positions, from 0, of the jobs whose lease was lost.
    pub lost: Vec<usize>,
}

impl Step {
    /// Returns the step of a script that handled all `jobs`. `reply` contains the
    /// positions of the lost leases.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another form.
    pub fn whole(jobs: usize, reply: Reply) -> Result<Self, Error> {
        Ok(Self { handled: jobs, lost: reply.positions()? })
    }

    /// Reads the step of a script that replies {how many jobs were handled, {positions
    /// of the lost leases}}.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another form.
    pub fn read(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.parts()?;
        Ok(Self { handled: parts.part().handled()?, lost: parts.part().positions()? })
    }

    /// The result for each of the `jobs` of a call that took one step.
    pub(super) fn answers(&self, jobs: usize) -> Vec<Settled> {
        let mut answers = vec![Settled::Applied; jobs];
        for lost in &self.lost {
            if let Some(answer) = answers.get_mut(*lost) {
                *answer = Settled::LeaseLost;
            }
        }
        answers
    }
}

/// Splits one call into steps, and collects the results of the steps.
#[derive(Debug)]
pub struct Steps {
    most: usize,
    handled: usize,
    /// The maximum number of jobs to send with the next step, after a step that did not
    /// handle all of its jobs. `None` if the last step handled all of them.
    page: Option<usize>,
    lost: Vec<usize>,
    partial: PartialEffect,
}

impl Steps {
    /// Begins the steps of a call. Each step has at most `most` jobs.
    pub fn of(most: NonZeroU32) -> Self {
        Self {
            most: most.get() as usize,
            handled: 0,
            page: None,
            lost: Vec::new(),
            partial: PartialEffect::default(),
        }
    }

    /// Makes the steps smaller, for a call that retries jobs or gives them back. Such a
    /// job takes longer than one that ends.
    #[must_use]
    pub fn slow(self) -> Self {
        Self { most: self.most.min(MAX_JOBS_PER_SLOW_STEP.get() as usize), ..self }
    }

    /// The jobs of the next step; `None` when all were handled. `bytes_of` returns how
    /// many bytes a job takes in the script's arguments.
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
    /// The error of the step, as an error of the whole call: an earlier step may have
    /// changed the store.
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
    use relq_core::error::{Effect, ErrorContext, Operation};

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

    /// The unreadable reply would have said how many jobs the step handled, so later steps
    /// may be missing.
    #[test]
    fn call_that_ends_at_an_unreadable_step_may_have_happened() {
        let at = ErrorContext { backend: "mine", operation: Operation::Settle };
        let unreadable = Error::Unreadable { at, source: "not a number".into() };

        let error = Steps::of(MOST).add(1, Err(unreadable)).unwrap_err();

        assert_eq!(error.effect(), Effect::Maybe);
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
