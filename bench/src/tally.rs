//! Checks that each job was handled exactly once, and records its delivery time.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Counts how often each job was handled. The jobs are numbered from 0.
#[derive(Debug)]
pub(crate) struct Tally {
    began: Instant,
    runs: Vec<AtomicU8>,
    handled: AtomicU64,
    unknown_jobs: AtomicU64,
    latencies: Mutex<Vec<Duration>>,
}

/// The sizes, in bytes, of the two parts of a payload: the job's number, and the time
/// of its push.
const NUMBER: usize = 8;
const STAMP: usize = 8;

/// The smallest payload size, in bytes. It has room for the job's number and the time.
pub(crate) const LEAST_PAYLOAD: usize = NUMBER + STAMP;

impl Tally {
    pub(crate) fn new(jobs: u64) -> Self {
        Self {
            began: Instant::now(),
            runs: (0..jobs).map(|_| AtomicU8::new(0)).collect(),
            handled: AtomicU64::new(0),
            unknown_jobs: AtomicU64::new(0),
            latencies: Mutex::default(),
        }
    }

    /// Makes a payload of `bytes` bytes with the job's number and the present time.
    pub(crate) fn payload(&self, number: u64, bytes: usize) -> Vec<u8> {
        let mut payload = vec![b'x'; bytes.max(LEAST_PAYLOAD)];
        payload[..NUMBER].copy_from_slice(&number.to_be_bytes());
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        payload[NUMBER..LEAST_PAYLOAD].copy_from_slice(&now.to_be_bytes());
        payload
    }

    /// Records that a job was handled. Returns how many jobs were handled so far.
    pub(crate) fn handled(&self, payload: &[u8]) -> u64 {
        let run = number_at(payload, 0)
            .and_then(|number| self.runs.get(usize::try_from(number).ok()?));
        match run {
            Some(run) => run.fetch_add(1, Relaxed).into(),
            None => self.unknown_jobs.fetch_add(1, Relaxed),
        };
        self.handled.fetch_add(1, Relaxed) + 1
    }

    /// Does the same as [`handled`](Self::handled), and records the job's delivery
    /// time.
    pub(crate) fn arrived(&self, payload: &[u8]) -> u64 {
        let now = self.began.elapsed();
        if let Some(pushed) = number_at(payload, NUMBER) {
            let latency = now.saturating_sub(Duration::from_nanos(pushed));
            let latencies = self.latencies.lock();
            latencies.unwrap_or_else(PoisonError::into_inner).push(latency);
        }
        self.handled(payload)
    }

    /// How many jobs were handled so far.
    pub(crate) fn so_far(&self) -> u64 {
        self.handled.load(Relaxed)
    }

    /// Whether each of the first `jobs` jobs was handled exactly once, and no other job
    /// was.
    pub(crate) fn is_exact(&self, jobs: u64) -> bool {
        let once = self.runs.iter().zip(0..jobs).all(|(run, _)| run.load(Relaxed) == 1);
        once && self.so_far() == jobs && self.unknown_jobs.load(Relaxed) == 0
    }

    /// The delivery times of the jobs.
    pub(crate) fn latencies(&self) -> Vec<Duration> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn number_at(payload: &[u8], at: usize) -> Option<u64> {
    let bytes = payload.get(at..at + NUMBER)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_handled_twice_or_not_at_all_is_noticed() {
        let tally = Tally::new(2);
        let [first, second] = [0, 1].map(|number| tally.payload(number, 32));
        tally.handled(&first);
        assert!(!tally.is_exact(2), "one is missing");
        tally.handled(&second);
        assert!(tally.is_exact(2));
        tally.handled(&second);
        assert!(!tally.is_exact(2), "one came twice");
    }

    #[test]
    fn a_job_that_was_not_pushed_is_noticed() {
        let tally = Tally::new(1);
        tally.handled(&tally.payload(0, 16));
        tally.handled(b"short");
        assert!(!tally.is_exact(1));
    }
}
