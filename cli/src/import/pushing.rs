//! Pushes the jobs of the file: first those that follow no other, then the followers.

use relq::{
    NewJob,
    outcome::{DuplicateOf, Pushed},
};

use super::{
    DeadJobs, Report,
    check::Checked,
    file::{ExportFile, Line},
    job_line::JobLine,
};
use crate::{
    failure::{CommandResult, Failure, explain},
    push::Sender,
};

/// How many jobs one call pushes at most, if the backend takes as many.
const JOBS: usize = 1000;

/// With how many bytes of jobs a call is full.
const BYTES: usize = 1 << 20;

/// Pushes the jobs, and counts what becomes of them.
pub(super) struct Pushing<'a> {
    sender: &'a Sender,
    dead: Option<DeadJobs>,
    most: usize,
    /// The jobs of the next call.
    call: Vec<NewJob>,
    bytes: usize,
    report: Report,
}

impl<'a> Pushing<'a> {
    pub(super) fn new(sender: &'a Sender, dead: Option<DeadJobs>) -> Self {
        let most = sender.capabilities().limits.max_jobs_per_call.get() as usize;
        let report = Report::default();
        Self { sender, dead, most: most.min(JOBS), call: Vec::new(), bytes: 0, report }
    }

    /// Pushes all jobs of the file.
    pub(super) async fn run(
        mut self,
        file: &mut ExportFile,
        checked: &Checked,
    ) -> CommandResult<Report> {
        file.rewind()?;
        // The head.
        file.next()?;
        for _ in 0..checked.jobs {
            let line = file.next()?;
            let line = line.ok_or_else(|| {
                file.unreadable("it became shorter during the import")
            })?;
            let job = self.read(file, &line)?;
            if let Some(job) = job.filter(|job| job.after.is_none()) {
                self.add(job).await?;
            }
        }
        self.send().await?;
        for place in &checked.followers {
            let line = file.line_at(place.offset, place.number)?;
            if let Some(job) = self.read(file, &line)? {
                // A leader is in an earlier call than its followers.
                let leader = job.after.clone();
                if self.call.iter().any(|pushed| pushed.id == leader) {
                    self.send().await?;
                }
                self.add(job).await?;
            }
        }
        self.send().await?;
        Ok(self.report)
    }

    /// Reads a job. `None` for a dead one that is skipped.
    fn read(
        &mut self,
        file: &ExportFile,
        line: &Line,
    ) -> CommandResult<Option<NewJob>> {
        let wrong = |why: String| file.wrong(line.number, &why);
        let job = JobLine::read(line).map_err(wrong)?;
        if job.is_dead() && self.dead == Some(DeadJobs::Skip) {
            self.report.skipped += 1;
            return Ok(None);
        }
        job.into_job(line).map(Some).map_err(wrong)
    }

    async fn add(&mut self, job: NewJob) -> CommandResult {
        let bytes = job.total_bytes();
        if self.call.len() >= self.most || self.bytes + bytes > BYTES {
            self.send().await?;
        }
        self.bytes += bytes;
        self.call.push(job);
        Ok(())
    }

    /// Pushes the jobs of the call.
    async fn send(&mut self) -> CommandResult {
        if self.call.is_empty() {
            return Ok(());
        }
        if self.sender.interrupts().any() {
            return Err(self.stopped("by a signal"));
        }
        let pushed = self.sender.send(&self.call).await;
        let pushed = pushed.map_err(|unsent| self.stopped(&explain(&unsent.error)))?;
        for (job, answer) in self.call.drain(..).zip(pushed) {
            match answer {
                Pushed::Stored(_) => self.report.stored += 1,
                Pushed::Duplicate { by: DuplicateOf::Id, .. } => self.report.known += 1,
                // A job of an earlier import that holds the key itself is known.
                Pushed::Duplicate { existing, .. }
                    if Some(&existing) == job.id.as_ref() =>
                {
                    self.report.known += 1;
                }
                Pushed::Duplicate { .. } => {
                    let id = job.id.map(|id| id.to_string());
                    self.report.key_held.extend(id);
                }
            }
        }
        self.bytes = 0;
        Ok(())
    }

    fn stopped(&self, why: &str) -> Failure {
        let Report { stored, known, .. } = &self.report;
        Failure::Failed(format!(
            "the import was stopped: {why}; {stored} jobs were stored and {known} were \
             there before"
        ))
    }
}
