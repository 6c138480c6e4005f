//! Stores the jobs of the file: first those that follow no other, then the followers.

use std::collections::HashSet;

use relq::{
    JobId, NewJob,
    error::Effect,
    operator::JobView,
    outcome::{DuplicateOf, Pushed},
};

use super::{
    Report,
    check::Checked,
    ended_jobs::EndedJobs,
    file::{ExportFile, Line},
    job_line::{Choices, ToStore},
};
use crate::{
    failure::{CommandResult, Failure, explain},
    format::counted,
    push::{Sender, Unsent},
};

/// How many jobs one call stores at most, if the backend takes as many.
const JOBS: usize = 1000;

/// With how many bytes of jobs a call is full.
const BYTES: usize = 1 << 20;

/// Stores the jobs, and counts what becomes of them.
pub(super) struct Storing<'a> {
    sender: &'a Sender,
    choices: Choices,
    /// `None` for a resumed import, which counts each job that is known as stored.
    ended: Option<EndedJobs<'a>>,
    most: usize,
    /// The jobs of the next call, all of one kind.
    restored: Vec<JobView>,
    pushed: Vec<NewJob>,
    bytes: usize,
    /// The jobs that were not stored. Their followers are not stored either.
    left_out: HashSet<JobId>,
    report: Report,
}

impl<'a> Storing<'a> {
    pub(super) fn new(
        sender: &'a Sender,
        choices: Choices,
        ended: Option<EndedJobs<'a>>,
    ) -> Self {
        let most = sender.capabilities().limits.max_jobs_per_call.get() as usize;
        Self {
            sender,
            choices,
            ended,
            most: most.min(JOBS),
            restored: Vec::new(),
            pushed: Vec::new(),
            bytes: 0,
            left_out: HashSet::new(),
            report: Report::default(),
        }
    }

    /// Stores all jobs of the file.
    pub(super) async fn run(
        mut self,
        file: &mut ExportFile,
        checked: &Checked,
    ) -> CommandResult<Report> {
        file.rewind()?;
        // Skip the first line: it is the head, not a job.
        file.next()?;
        for _ in 0..checked.jobs {
            let line = file.next()?;
            let line = line.ok_or_else(|| {
                file.unreadable("it became shorter during the import")
            })?;
            let job = self.read(file, checked, &line)?;
            if let Some(job) = job.filter(|job| job.leader().is_none()) {
                self.add(job).await?;
            }
        }
        self.send().await?;
        for place in &checked.followers {
            let line = file.line_at(place.offset, place.number)?;
            if let Some(job) = self.read(file, checked, &line)? {
                // The job that this one follows must be stored by an earlier call.
                let leader = job.leader().cloned();
                if self.pushed.iter().any(|pushed| pushed.id == leader) {
                    self.send().await?;
                }
                if leader.is_some_and(|leader| self.left_out.contains(&leader)) {
                    self.leave_out(job.id(), |report| &mut report.followers);
                } else {
                    self.add(job).await?;
                }
            }
        }
        self.send().await?;
        self.report.repeated = checked.repeated.len() as u64;
        self.report.renamed =
            checked.renamed.values().map(ToString::to_string).collect();
        Ok(self.report)
    }

    /// Reads a job. `None` for one that an earlier line has, and for a dead one that is
    /// skipped.
    fn read(
        &mut self,
        file: &ExportFile,
        checked: &Checked,
        line: &Line,
    ) -> CommandResult<Option<ToStore>> {
        let wrong = |why: String| file.wrong(line.number, &why);
        let Some(job) = checked.job(line).map_err(wrong)? else { return Ok(None) };
        if job.is_skipped(self.choices) {
            self.report.skipped += 1;
            return Ok(None);
        }
        job.into_stored(line, self.choices).map(Some).map_err(wrong)
    }

    async fn add(&mut self, job: ToStore) -> CommandResult {
        let (bytes, jobs) = (job.bytes(), self.restored.len() + self.pushed.len());
        if jobs >= self.most || self.bytes + bytes > BYTES {
            self.send().await?;
        }
        self.bytes += bytes;
        match job {
            ToStore::AsItWas(job) => self.restored.push(*job),
            ToStore::Anew(job) => self.pushed.push(job),
        }
        Ok(())
    }

    /// Stores the jobs that were gathered.
    async fn send(&mut self) -> CommandResult {
        self.bytes = 0;
        let (restored, mut pushed) =
            (std::mem::take(&mut self.restored), std::mem::take(&mut self.pushed));
        if self.sender.interrupts().any() && !(restored.is_empty() && pushed.is_empty())
        {
            return Err(self.stopped("by a signal"));
        }
        if !restored.is_empty() {
            let answers = self.sender.restore(&restored).await;
            let answers = answers.map_err(|unsent| self.unsent(&unsent))?;
            let ids = restored.iter().map(|job| job.id.as_ref());
            self.count(ids, answers).await?;
        }
        self.sender.sort_by_part(&mut pushed);
        self.push(&pushed).await
    }

    /// Pushes the jobs, in one call for each part of the queue.
    async fn push(&mut self, mut jobs: &[NewJob]) -> CommandResult {
        while !jobs.is_empty() {
            let (call, after) = jobs.split_at(self.sender.jobs_of_one_call(jobs));
            let answers = self.sender.send(call).await;
            let answers = answers.map_err(|unsent| self.unsent(&unsent))?;
            self.count(call.iter().map(|job| job.id.as_ref()), answers).await?;
            jobs = after;
        }
        Ok(())
    }

    /// Counts what became of the jobs with these ids.
    async fn count<'j>(
        &mut self,
        ids: impl Iterator<Item = Option<&'j JobId>>,
        answers: Vec<Pushed>,
    ) -> CommandResult {
        for (id, answer) in ids.zip(answers) {
            match answer {
                Pushed::Stored(_) => self.report.stored += 1,
                Pushed::Duplicate { existing, by: DuplicateOf::Id } => {
                    self.count_known(&existing).await?;
                }
                // The job holds its unique key itself: an earlier import has stored it.
                Pushed::Duplicate { existing, .. } if Some(&existing) == id => {
                    self.report.known += 1;
                }
                Pushed::Duplicate { .. } => {
                    self.leave_out(id, |report| &mut report.key_held);
                }
            }
        }
        Ok(())
    }

    /// Counts a job whose id the store knows.
    async fn count_known(&mut self, id: &JobId) -> CommandResult {
        let has_ended = match &self.ended {
            None => Ok(false),
            Some(ended) => ended.have(id).await,
        };
        if has_ended.map_err(|unsent| self.unsent(&unsent))? {
            self.leave_out(Some(id), |report| &mut report.ended);
        } else {
            self.report.known += 1;
        }
        Ok(())
    }

    /// Notes in one of the lists of the report that a job was not stored.
    fn leave_out(
        &mut self,
        id: Option<&JobId>,
        list: fn(&mut Report) -> &mut Vec<String>,
    ) {
        list(&mut self.report).extend(id.map(ToString::to_string));
        self.left_out.extend(id.cloned());
    }

    /// The failure of an import whose last call was not repeated any more.
    fn unsent(&self, unsent: &Unsent) -> Failure {
        let stopped = self.stopped(&explain(&unsent.error));
        if unsent.happened == Effect::No {
            return stopped;
        }
        stopped.after("it is not known which jobs of the last call are stored")
    }

    fn stopped(&self, why: &str) -> Failure {
        let Report { stored, known, .. } = &self.report;
        Failure::Failed(format!(
            "the import was stopped: {why}; it stored {}, and {known} were there before",
            counted(*stored, "job")
        ))
    }
}

impl ToStore {
    fn id(&self) -> Option<&JobId> {
        match self {
            Self::AsItWas(job) => job.id.as_ref(),
            Self::Anew(job) => job.id.as_ref(),
        }
    }

    /// The job that this one follows.
    fn leader(&self) -> Option<&JobId> {
        match self {
            Self::AsItWas(_) => None,
            Self::Anew(job) => job.after.as_ref(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::AsItWas(job) => job.payload.len() + job.headers.total_bytes(),
            Self::Anew(job) => job.total_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt::Write as _,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, Ordering},
        },
    };

    use clap::Parser;
    use relq::{
        Error, PushToken,
        error::{ErrorContext, Operation},
    };
    use relq_conformance::{
        async_trait,
        overrides::{Override, Right},
    };

    use super::*;
    use crate::{
        import::{Args, job_line::Kept},
        interrupts::Interrupts,
        sample_queues::overridden_queue,
    };

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    /// Notes how many bytes the payloads of each call have.
    #[derive(Default)]
    struct Calls(Mutex<Vec<usize>>);

    impl Calls {
        fn note(&self, bytes: usize) {
            self.0.lock().expect("no test panics while it is held").push(bytes);
        }
    }

    #[async_trait]
    impl Override for Calls {
        async fn push(
            &self,
            right: &Right,
            jobs: &[NewJob],
            token: Option<&PushToken>,
        ) -> Result<Vec<Pushed>, Error> {
            self.note(jobs.iter().map(|job| job.payload.len()).sum());
            right.push(jobs, token).await
        }

        async fn restore(
            &self,
            right: &Right,
            jobs: &[JobView],
        ) -> Result<Vec<Pushed>, Error> {
            self.note(jobs.iter().map(|job| job.payload.len()).sum());
            right.restorer().restore(jobs).await
        }
    }

    /// Refuses each call, but carries out the first one without a reply if it is to lose
    /// that.
    struct Refuses {
        loses_reply: AtomicBool,
    }

    #[async_trait]
    impl Override for Refuses {
        async fn restore(
            &self,
            right: &Right,
            jobs: &[JobView],
        ) -> Result<Vec<Pushed>, Error> {
            let at = ErrorContext { backend: "mine", operation: Operation::Restore };
            let source = "the test says so".into();
            if self.loses_reply.swap(false, Ordering::Relaxed) {
                right.restorer().restore(jobs).await?;
                return Err(Error::Interrupted { at, source });
            }
            Err(Error::Denied { at, source })
        }
    }

    /// Carries out each call, and loses the reply to the first one.
    #[derive(Default)]
    struct LosesFirstReply(AtomicBool);

    #[async_trait]
    impl Override for LosesFirstReply {
        async fn restore(
            &self,
            right: &Right,
            jobs: &[JobView],
        ) -> Result<Vec<Pushed>, Error> {
            let restored = right.restorer().restore(jobs).await?;
            if self.0.swap(true, Ordering::Relaxed) {
                return Ok(restored);
            }
            let at = ErrorContext { backend: "mine", operation: Operation::Restore };
            Err(Error::Interrupted { at, source: "the test says so".into() })
        }
    }

    /// An export of seven jobs, of which three are more than a call has.
    fn export() -> String {
        let mut lines =
            "{\"relq\":1,\"queue\":\"q\",\"backend\":\"zset\"}\n".to_owned();
        let payload = "x".repeat(BYTES * 2 / 5);
        for number in 0..7 {
            let job = format!(
                "{{\"id\":\"j{number}\",\"state\":\"ready\",\"payload\":\"{payload}\",\
                 \"max_attempts\":3,\"priority\":5}}"
            );
            writeln!(lines, "{job}").expect("a text takes all");
        }
        lines + "{\"exported\":7}\n"
    }

    /// Stores the jobs of the export in a queue with these overrides.
    async fn import(overrides: Arc<dyn Override>, kept: Kept) -> CommandResult<Report> {
        let exported = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(exported.path(), export()).unwrap();
        let args = CommandLine::parse_from(["import"]).args;
        let queue = overridden_queue(overrides).await;
        let mut file = ExportFile::open(exported.path()).unwrap();
        let checked = Checked::read(&mut file, &*queue, &args).unwrap();
        let sender = Sender::new(Arc::clone(&queue), Interrupts::default());
        let ended = Some(EndedJobs::new(&sender, &*queue));
        let storing = Storing::new(&sender, Choices { kept, dead: None }, ended);
        storing.run(&mut file, &checked).await
    }

    /// R21: what the message says of the stored jobs is true, also when a reply was lost.
    #[tokio::test]
    async fn a_stopped_import_says_that_a_lost_call_may_have_stored_jobs() {
        for is_lost in [true, false] {
            let loses_reply = AtomicBool::new(is_lost);
            let overrides = Arc::new(Refuses { loses_reply });

            let failed = import(overrides, Kept::AsItWas).await.unwrap_err();

            let Failure::Failed(message) = &failed else { panic!("{failed:?}") };
            let stored = "it stored 0 jobs, and 0 were there before";
            assert!(message.contains(stored), "{message}");
            let words = "; it is not known which jobs of the last call are stored";
            assert_eq!(message.contains(words), is_lost, "{message}");
        }
    }

    /// R4, R34: a job whose id is known because of a call without a reply has not ended.
    #[tokio::test]
    async fn jobs_of_a_call_without_a_reply_are_stored() {
        let overrides = Arc::new(LosesFirstReply::default());

        let report = import(overrides, Kept::AsItWas).await.unwrap();

        assert_eq!((report.stored, report.known), (5, 2), "{report:?}");
        assert!(report.ended.is_empty(), "{report:?}");
    }

    /// A call that is too large would hold up the other clients of the store.
    #[tokio::test]
    async fn large_jobs_fill_a_call_by_their_bytes() {
        for kept in [Kept::AsItWas, Kept::Anew] {
            let calls = Arc::new(Calls::default());

            let report = import(calls.clone(), kept).await.unwrap();

            assert_eq!(report.stored, 7, "{kept:?}");
            let calls = calls.0.lock().unwrap().clone();
            assert_eq!(calls.len(), 4, "two jobs in each call: {calls:?}");
            let most = calls.iter().max();
            assert!(
                most <= Some(&BYTES),
                "{kept:?}, the bytes of the calls: {calls:?}"
            );
        }
    }
}
