//! A push of jobs that belong to no part in particular: any part may store them.

use relq_core::{Error, NewJob, ReliableQueue, error::Effect, outcome::Pushed};

use crate::Partitioned;

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Pushes to the part whose turn it is. If that part is down and has stored nothing,
    /// pushes to the next one. A part that is left out has its turn again when its time is
    /// over, so that a client which only pushes finds out that it is back.
    pub(crate) async fn push_in_turn(
        &self,
        jobs: &[NewJob],
    ) -> Result<Vec<Pushed>, Error> {
        let (mut first_error, mut left_out) = (None, Vec::new());
        for part in self.push_turn.order() {
            if !self.health.takes_push(part) {
                left_out.push(part);
                continue;
            }
            if let Some(answer) = self.try_push(part, jobs, &mut first_error).await {
                return answer;
            }
        }
        for part in left_out {
            if let Some(answer) = self.try_push(part, jobs, &mut first_error).await {
                return answer;
            }
        }
        Err(first_error.expect("the queue has a part, and each part has failed"))
    }

    /// Pushes to this part. `None` if it is down and has stored nothing: then `first_error`
    /// has an error.
    async fn try_push(
        &self,
        part: usize,
        jobs: &[NewJob],
        first_error: &mut Option<Error>,
    ) -> Option<Result<Vec<Pushed>, Error>> {
        let began = self.health.now();
        let pushed = self.parts[part].push(jobs, None).await;
        let is_outage = self.notice_since(began, part, &pushed);
        match pushed {
            Err(error) if is_outage && error.effect() == Effect::No => {
                first_error.get_or_insert(error);
                None
            }
            answer => Some(answer),
        }
    }
}
