//! The leases that a worker holds, in groups of one length each.
//!
//! The claim loop adds and removes leases, several at a time; the heartbeat thread
//! extends them. A group sends a heartbeat every third of its lease, so that two
//! heartbeats in a row may fail. The group keeps the time of its next heartbeat while
//! it is empty, so that a worker that holds one job after another does not wake the
//! heartbeat thread for each.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{JobContext, context::LeaseEnd};

pub(crate) struct Held {
    groups: Mutex<BTreeMap<Duration, Group>>,
    changed: Notify,
    /// The lease of a backend with one lease for each worker: its heartbeats are sent
    /// even while the worker holds no job. `None` for other backends.
    always: Option<Duration>,
}

struct Group {
    jobs: HashMap<usize, JobContext>,
    next_beat: Duration,
}

/// Jobs that have leases of the same length and whose heartbeat is due.
pub(crate) struct Beat {
    pub(crate) lease: Duration,
    pub(crate) jobs: Vec<JobContext>,
}

impl Held {
    pub(crate) fn new(always: Option<Duration>, now: Duration) -> Self {
        let group = |_| Group { jobs: HashMap::new(), next_beat: now };
        let groups = always.map(|lease| (lease, group(lease))).into_iter().collect();
        Self { groups: Mutex::new(groups), changed: Notify::new(), always }
    }

    /// Adds the leases of jobs whose claim was sent at `sent`.
    pub(crate) fn add(&self, jobs: &[JobContext], sent: Duration) {
        let mut groups = self.lock();
        let mut is_sooner = false;
        for job in jobs {
            let due = sent.saturating_add(heartbeat_interval(job.lease()));
            let group = groups.entry(job.lease()).or_insert_with(|| {
                is_sooner = true;
                Group { jobs: HashMap::new(), next_beat: due }
            });
            is_sooner |= due < group.next_beat;
            group.next_beat = group.next_beat.min(due);
            group.jobs.insert(job.address(), job.clone());
        }
        drop(groups);
        if is_sooner {
            self.changed.notify_one();
        }
    }

    /// Removes the leases of jobs that are settled or whose lease has ended.
    pub(crate) fn remove<'a>(&self, jobs: impl IntoIterator<Item = &'a JobContext>) {
        let mut groups = self.lock();
        for job in jobs {
            if let Some(group) = groups.get_mut(&job.lease()) {
                group.jobs.remove(&job.address());
            }
        }
    }

    /// Completes when a new lease makes a heartbeat or the end of a lease due earlier
    /// than the heartbeat thread has planned.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// When the next heartbeat is due. `None` if no lease needs one.
    pub(crate) fn next_beat(&self) -> Option<Duration> {
        self.lock().values().map(|group| group.next_beat).min()
    }

    /// When the first of the held leases may expire. `None` if none is held.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        let groups = self.lock();
        groups
            .values()
            .flat_map(|group| group.jobs.values())
            .map(JobContext::until)
            .min()
    }

    /// Returns the groups whose heartbeat is due by `now`. Removes groups that are
    /// empty.
    pub(crate) fn due(&self, now: Duration) -> Vec<Beat> {
        let mut beats = Vec::new();
        self.lock().retain(|&lease, group| {
            if group.next_beat > now {
                return true;
            }
            if group.jobs.is_empty() && self.always != Some(lease) {
                return false;
            }
            group.next_beat = now.saturating_add(heartbeat_interval(lease));
            beats.push(Beat { lease, jobs: group.jobs.values().cloned().collect() });
            true
        });
        beats
    }

    /// Makes the next heartbeat of a group due no later than `at`, after a heartbeat of
    /// the group has failed.
    pub(crate) fn beat_by(&self, lease: Duration, at: Duration) {
        if let Some(group) = self.lock().get_mut(&lease) {
            group.next_beat = group.next_beat.min(at);
        }
    }

    /// Makes the next heartbeat of every group due no later than `at`.
    pub(crate) fn beat_all_by(&self, at: Duration) {
        for group in self.lock().values_mut() {
            group.next_beat = group.next_beat.min(at);
        }
    }

    /// Ends the leases that may have expired by `now`. Returns their jobs, except jobs
    /// that a pending call settles: the reply to that call reports their result.
    pub(crate) fn expire(&self, now: Duration) -> Vec<JobContext> {
        let mut over = Vec::new();
        for group in self.lock().values_mut() {
            over.extend(
                group.jobs.extract_if(|_, job| job.until() <= now).map(|(_, job)| job),
            );
        }
        over.retain(|job| job.end_lease(LeaseEnd::Lost) && !job.is_settling());
        over
    }

    /// Ends a lease that a heartbeat's reply reported as lost or cancelled. Returns
    /// whether the worker did not know this yet. A report about a job that was settled
    /// meanwhile changes nothing. Neither does a loss that is reported while a call
    /// settles the job: the reply to that call reports the job's result.
    pub(crate) fn end(&self, job: &JobContext, end: LeaseEnd) -> bool {
        if end == LeaseEnd::Lost && job.is_settling() {
            return false;
        }
        let mut groups = self.lock();
        let group = groups.get_mut(&job.lease());
        let was_held = group.and_then(|g| g.jobs.remove(&job.address())).is_some();
        drop(groups);
        was_held && job.end_lease(end)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Duration, Group>> {
        // A poisoned lock is safe to use: no code under it can panic in the middle of a
        // change.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time between two heartbeats: a third of the length of the lease.
fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / 3).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use futures_lite::future::poll_once;
    use relq_core::{Delivery, JobId, Receipt};

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const BEAT: Duration = Duration::from_secs(10);

    fn job(name: &str, lease: Duration, until: Duration) -> JobContext {
        let receipt = Receipt::new(JobId::new(name).unwrap(), 1, name.to_owned());
        JobContext::held_until(Delivery::new(receipt, "", lease), until)
    }

    fn lengths(beats: &[Beat]) -> Vec<(Duration, usize)> {
        beats.iter().map(|beat| (beat.lease, beat.jobs.len())).collect()
    }

    #[test]
    fn each_length_of_lease_beats_every_third_of_it() {
        let held = Held::new(None, Duration::ZERO);
        let (long, short) =
            (job("long", LEASE, LEASE), job("short", LEASE / 10, LEASE));
        held.add(&[long, short], Duration::ZERO);

        assert_eq!(held.next_beat(), Some(BEAT / 10));
        assert_eq!(lengths(&held.due(BEAT / 10)), [(LEASE / 10, 1)]);
        assert_eq!(held.next_beat(), Some(BEAT / 10 * 2));
        assert_eq!(lengths(&held.due(BEAT)), [(LEASE / 10, 1), (LEASE, 1)]);
    }

    /// If the reply to a claim takes longer than the heartbeat interval, the first
    /// heartbeat of its leases is due at once.
    #[test]
    fn a_late_answer_beats_at_once() {
        let held = Held::new(None, Duration::ZERO);
        let sent = Duration::ZERO;
        held.add(&[job("late", LEASE, BEAT * 5)], sent);
        assert_eq!(lengths(&held.due(BEAT * 2)), [(LEASE, 1)]);
    }

    #[test]
    fn a_group_without_jobs_is_forgotten_at_its_next_beat() {
        let held = Held::new(None, Duration::ZERO);
        let brief = job("brief", LEASE, LEASE);
        held.add(std::slice::from_ref(&brief), Duration::ZERO);
        held.remove([&brief]);

        assert_eq!(held.next_beat(), Some(BEAT));
        assert_eq!(lengths(&held.due(BEAT)), []);
        assert_eq!(held.next_beat(), None);
    }

    /// A worker with one lease for all its jobs sends heartbeats even while it is idle.
    #[test]
    fn a_shared_lease_beats_without_jobs() {
        let held = Held::new(Some(LEASE), Duration::ZERO);
        assert_eq!(lengths(&held.due(Duration::ZERO)), [(LEASE, 0)]);
        assert_eq!(held.next_beat(), Some(BEAT));
    }

    /// After a suspend, leases of each length may have expired. The store is asked about
    /// all of them at once.
    #[test]
    fn the_heartbeats_of_all_groups_can_be_due_sooner() {
        let held = Held::new(None, Duration::ZERO);
        let (long, short) =
            (job("long", LEASE, LEASE), job("short", LEASE / 10, LEASE));
        held.add(&[long, short], Duration::ZERO);
        let woken = Duration::from_millis(1);

        held.beat_all_by(woken);

        assert_eq!(lengths(&held.due(woken)), [(LEASE / 10, 1), (LEASE, 1)]);
    }

    /// The repetition of a failed heartbeat does not postpone the next one.
    #[test]
    fn a_heartbeat_can_be_due_sooner_and_never_later() {
        let held = Held::new(Some(LEASE), Duration::ZERO);
        held.due(Duration::ZERO);

        held.beat_by(LEASE, BEAT * 2);
        assert_eq!(held.next_beat(), Some(BEAT));
        held.beat_by(LEASE, BEAT / 2);
        assert_eq!(held.next_beat(), Some(BEAT / 2));
    }

    #[test]
    fn a_lease_ends_by_the_workers_clock_and_only_once() {
        let held = Held::new(None, Duration::ZERO);
        let (first, second) = (job("1", LEASE, BEAT), job("2", LEASE, BEAT));
        held.add(&[first.clone(), second.clone()], Duration::ZERO);
        second.extend_until(BEAT * 2);

        assert_eq!(held.expire(BEAT).len(), 1);
        assert_eq!(first.lease_end(), Some(LeaseEnd::Lost));
        assert_eq!((held.expire(BEAT).len(), second.lease_end()), (0, None));
    }

    /// The expiry of a lease is not reported while a call settles its job: the handler
    /// has ended, so the settlement's reply decides.
    #[test]
    fn an_expiry_during_a_settlement_is_not_reported() {
        let held = Held::new(None, Duration::ZERO);
        let job = job("settling", LEASE, BEAT);
        held.add(std::slice::from_ref(&job), Duration::ZERO);

        job.settling();

        assert!(held.expire(BEAT).is_empty());
        assert_eq!(job.lease_end(), Some(LeaseEnd::Lost));
    }

    /// A heartbeat's report about a job that was settled meanwhile changes nothing.
    #[test]
    fn a_report_about_a_settled_job_changes_nothing() {
        let held = Held::new(None, Duration::ZERO);
        let settled = job("settled", LEASE, LEASE);
        held.add(std::slice::from_ref(&settled), Duration::ZERO);
        held.remove([&settled]);

        assert!(!held.end(&settled, LeaseEnd::Lost));
        assert_eq!(settled.lease_end(), None);
    }

    /// A settlement ends a job, and a heartbeat reports the job as lost before the
    /// reply to the settlement arrives. The report changes nothing.
    #[test]
    fn a_loss_reported_during_a_settlement_changes_nothing() {
        let held = Held::new(None, Duration::ZERO);
        let job = job("settling", LEASE, LEASE);
        held.add(std::slice::from_ref(&job), Duration::ZERO);

        job.settling();
        assert!(!held.end(&job, LeaseEnd::Lost));
        job.settling_failed();
        assert!(held.end(&job, LeaseEnd::Lost));
    }

    /// The reply to an earlier claim may arrive later. The heartbeat thread has planned to
    /// wake too late for its leases. It is woken only then, so that a worker that claims one
    /// job after another does not wake it for each.
    #[tokio::test]
    async fn a_lease_of_an_earlier_claim_makes_the_heartbeat_due_earlier() {
        let held = Held::new(None, Duration::ZERO);
        let second = Duration::from_secs(1);
        for (name, sent, next, is_woken) in [
            ("first", 10, 20, true),
            ("sent earlier", 5, 15, true),
            ("sent at the same time", 5, 15, false),
            ("sent later", 12, 15, false),
        ] {
            held.add(&[job(name, LEASE, LEASE)], second * sent);

            assert_eq!(held.next_beat(), Some(second * next), "the job {name}");
            let woken = poll_once(held.changed()).await.is_some();
            assert_eq!(woken, is_woken, "whether the job {name} wakes the thread");
        }
    }

    /// The heartbeat thread wakes when the first of the leases may expire.
    #[test]
    fn the_lease_that_ends_first_is_the_next_end() {
        let held = Held::new(None, Duration::ZERO);
        assert_eq!(held.next_end(), None, "no lease is held");

        held.add(&[job("1", LEASE, BEAT * 2), job("2", LEASE, BEAT)], Duration::ZERO);

        assert_eq!(held.next_end(), Some(BEAT), "the end of the first lease");
    }
}
