//! Assertions on the jobs that wait in a queue for tests.

#[cfg(feature = "json")]
use std::fmt;

use relq_core::operator::{JobView, StateDetail};
#[cfg(feature = "json")]
use relq_worker::Job;
use relq_worker::KIND_HEADER;

use super::TestQueue;

/// How many waiting jobs a message lists.
const LISTED: usize = 20;

impl TestQueue {
    /// Panics unless a waiting job has this payload. The message lists the jobs that
    /// wait.
    ///
    /// # Panics
    /// If no job with this payload waits.
    #[track_caller]
    pub fn assert_pushed(&self, payload: impl AsRef<[u8]>) {
        let payload = payload.as_ref();
        let waiting = self.waiting();
        if !waiting.iter().any(|job| job.payload == payload) {
            let payload = payload.escape_ascii();
            panic!(
                "no waiting job has the payload \"{payload}\"{}",
                self.listed(&waiting)
            );
        }
    }

    /// Panics if a waiting job has this payload.
    ///
    /// # Panics
    /// If a job with this payload waits.
    #[track_caller]
    pub fn assert_not_pushed(&self, payload: impl AsRef<[u8]>) {
        let payload = payload.as_ref();
        let waiting = self.waiting();
        if waiting.iter().any(|job| job.payload == payload) {
            let payload = payload.escape_ascii();
            panic!(
                "a waiting job has the payload \"{payload}\"{}",
                self.listed(&waiting)
            );
        }
    }

    /// Panics if a job is ready or scheduled. The message lists these jobs.
    ///
    /// # Panics
    /// If a job waits.
    #[track_caller]
    pub fn assert_nothing_waits(&self) {
        let waiting = self.waiting();
        assert!(waiting.is_empty(), "the queue is not empty{}", self.listed(&waiting));
    }

    /// Returns the waiting jobs of the kind `K`, in the order in which they will run.
    ///
    /// ```
    /// use relq::testing::TestQueue;
    /// use relq::worker::{Enqueue, Job};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    /// struct SendEmail { to: String }
    ///
    /// impl Job for SendEmail {
    ///     const KIND: &'static str = "send-email";
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = TestQueue::new();
    /// queue.queue().enqueue(&SendEmail { to: "anna".into() }).await?;
    ///
    /// assert_eq!(queue.pushed::<SendEmail>(), [SendEmail { to: "anna".into() }]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the payload of a job of this kind cannot be decoded.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    #[track_caller]
    pub fn pushed<K: Job>(&self) -> Vec<K> {
        let waiting = self.waiting();
        let of_kind = waiting.iter().filter(|job| kind(job) == Some(K::KIND));
        of_kind.map(decoded).collect()
    }

    /// Panics unless a waiting job of the kind `K` equals `expected`. The message lists
    /// the jobs that wait.
    ///
    /// # Panics
    /// If no such job waits, and if the payload of a job of this kind cannot be decoded.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    #[track_caller]
    pub fn assert_pushed_job<K: Job + PartialEq + fmt::Debug>(&self, expected: &K) {
        let pushed = self.pushed::<K>();
        if !pushed.contains(expected) {
            let waiting = self.waiting();
            let kind = K::KIND;
            panic!(
                "no waiting job of the kind {kind:?} is {expected:?}{}",
                self.listed(&waiting)
            );
        }
    }
}

#[cfg(feature = "json")]
#[track_caller]
fn decoded<K: Job>(job: &JobView) -> K {
    match serde_json::from_slice(&job.payload) {
        Ok(value) => value,
        Err(error) => panic!(
            "a waiting job of the kind {:?} cannot be decoded: {error}: {:?}",
            K::KIND,
            job.payload,
        ),
    }
}

fn kind(job: &JobView) -> Option<&str> {
    job.headers.get(KIND_HEADER)
}

impl TestQueue {
    /// The end of a message: the jobs, one in each line.
    fn listed(&self, jobs: &[JobView]) -> String {
        let mut lines = match jobs.len() {
            0 => return "; no job waits".to_owned(),
            1 => vec!["; one job waits:".to_owned()],
            count => vec![format!("; {count} jobs wait:")],
        };
        lines.extend(jobs.iter().take(LISTED).map(|job| self.line(job)));
        if jobs.len() > LISTED {
            lines.push(format!("  and {} more", jobs.len() - LISTED));
        }
        lines.join("\n")
    }

    fn line(&self, job: &JobView) -> String {
        let state = job.detail.state().as_str();
        let payload = job.payload.escape_ascii();
        let kind = kind(job).map(|kind| format!(" of the kind {kind:?}"));
        let due = match &job.detail {
            StateDetail::Scheduled { due } => {
                format!(", due in {:?}", due.since(self.now()))
            }
            StateDetail::Following { leader, .. } => format!(", after \"{leader}\""),
            _ => String::new(),
        };
        format!("  {state}{}: \"{payload}\"{due}", kind.unwrap_or_default())
    }
}
