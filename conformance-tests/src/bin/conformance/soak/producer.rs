//! A producer process of the soak.

use std::{path::PathBuf, sync::Arc, time::Duration};

use relq_core::{
    Error, NewJob, PushToken, Queue, QueueName,
    capabilities::{Capabilities, Order},
    environment::Environment,
    error::RetryAdvice,
    outcome::Pushed,
};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

use super::{
    child, plan,
    record::{self, Kind, Recorder},
};
use crate::SuiteResult;

/// How many job numbers belong to one producer. No two producers use the same.
const SHARE: u64 = 1_000_000_000_000;

/// The largest number of jobs that a producer pushes in one call.
const LARGEST_CALL: u64 = 40;

/// A producer waits while more jobs than this are ready.
const ENOUGH: u64 = 2_000;

const PAUSE: Duration = Duration::from_millis(10);

/// How long a producer repeats one call before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Push the soak's jobs and record the replies
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(long)]
    queue: QueueName,

    /// The producer's number, from which its jobs' numbers derive
    #[arg(long)]
    number: u64,

    /// The file of records, which may already hold those of a killed producer
    #[arg(long)]
    records: PathBuf,
}

impl Args {
    pub(crate) async fn run(self) -> SuiteResult<()> {
        let mut end = child::told_to_end();
        let (mut next, unanswered) = self.read_on()?;
        let environment = Environment::default();
        let producer = Producer {
            queue: child::connect(&self.queue, &environment).await?,
            recorder: Recorder::open(&self.records)?,
            environment,
        };
        if let Some(call) = unanswered {
            producer.push(&call).await?;
        }
        while is_open(&mut end) {
            producer.wait_for_room().await?;
            let call = Call { first: next, count: next / 3 % LARGEST_CALL + 1 };
            next += call.count;
            producer.record_intent(&call)?;
            producer.push(&call).await?;
        }
        Ok(())
    }

    /// Reads the records so far. Returns the next unused job number, and the call
    /// during which an earlier producer was killed, if there is one.
    fn read_on(&self) -> SuiteResult<(u64, Option<Call>)> {
        let (mut next, mut unanswered) = (self.number * SHARE, None);
        for record in record::read(&self.records)? {
            match record.kind {
                Kind::Meant => {
                    let call = Call { first: record.job, count: record.count.into() };
                    next = call.first + call.count;
                    unanswered = Some(call);
                }
                Kind::Answered => unanswered = None,
                _ => {}
            }
        }
        Ok((next, unanswered))
    }
}

fn is_open(end: &mut Receiver<()>) -> bool {
    end.try_recv() == Err(TryRecvError::Empty)
}

/// Jobs with consecutive numbers, pushed in one call.
struct Call {
    first: u64,
    count: u64,
}

impl Call {
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.first..self.first + self.count
    }

    /// The jobs of the call. On a queue of several parts only the first job with a
    /// unique key keeps it: other keys may lead to other parts, and such a call is
    /// refused.
    fn jobs(&self, capabilities: &Capabilities) -> Vec<NewJob> {
        let mut jobs: Vec<_> =
            self.numbers().map(|number| plan::job(number, capabilities)).collect();
        if capabilities.order == Order::ByPart {
            let keys = jobs.iter_mut().map(|job| &mut job.unique);
            keys.filter(|key| key.is_some()).skip(1).for_each(|key| *key = None);
        }
        jobs
    }

    /// The push token of the call. A producer that repeats the call uses the same
    /// token.
    fn token(&self) -> PushToken {
        PushToken::new(format!("soak-{}", self.first)).expect("the token is valid")
    }
}

struct Producer {
    queue: Arc<dyn Queue>,
    recorder: Recorder,
    environment: Environment,
}

impl Producer {
    fn record_intent(&self, call: &Call) -> SuiteResult<()> {
        let count = u32::try_from(call.count)?;
        Ok(self.recorder.write(Kind::Meant, call.first, count)?)
    }

    /// Repeats the call until it returns results, and records them.
    async fn push(&self, call: &Call) -> SuiteResult<()> {
        let jobs = call.jobs(self.queue.capabilities());
        let answers = self.push_until_answered(&jobs, &call.token()).await?;
        for (number, answer) in call.numbers().zip(&answers) {
            let kind = match answer {
                Pushed::Stored(_) => Kind::Stored,
                Pushed::Duplicate { .. } => Kind::Refused,
            };
            self.recorder.write(kind, number, 0)?;
        }
        Ok(self.recorder.write(Kind::Answered, call.first, 0)?)
    }

    async fn push_until_answered(
        &self,
        jobs: &[NewJob],
        token: &PushToken,
    ) -> SuiteResult<Vec<Pushed>> {
        let give_up = self.environment.clock().elapsed() + PATIENCE;
        loop {
            match self.queue.push(jobs, Some(token)).await {
                Ok(answers) => return Ok(answers),
                Err(error) => self.pause_after(&error, give_up).await?,
            }
        }
    }

    /// Waits until fewer than [`ENOUGH`] jobs are ready.
    async fn wait_for_room(&self) -> SuiteResult<()> {
        let give_up = self.environment.clock().elapsed() + PATIENCE;
        loop {
            match self.queue.stats().await {
                Ok(stats) if stats.ready < ENOUGH => return Ok(()),
                Ok(_) => self.environment.clock().sleep(PAUSE).await,
                Err(error) => self.pause_after(&error, give_up).await?,
            }
        }
    }

    /// Pauses before a call is repeated. Fails if the error allows no repetition, or if
    /// the call has been repeated until `give_up`.
    async fn pause_after(&self, error: &Error, give_up: Duration) -> SuiteResult<()> {
        let clock = self.environment.clock();
        if error.retry_advice() == RetryAdvice::Never || clock.elapsed() > give_up {
            return Err(error.full_message().into());
        }
        clock.sleep(PAUSE).await;
        Ok(())
    }
}
