//! A producer process of the soak.

use std::{path::PathBuf, sync::Arc, time::Duration};

use relq_core::{
    Environment, Error, NewJob, PushToken, Pushed, Queue, QueueName, RetryAdvice,
};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

use super::{
    child, plan,
    record::{self, Kind, Recorder},
};
use crate::SuiteResult;

/// Numbers that one producer may give away.
const SHARE: u64 = 1_000_000_000_000;

/// Jobs of a call, at most.
const LARGEST_CALL: u64 = 40;

/// Ready jobs beyond which a producer waits.
const ENOUGH: u64 = 2_000;

const PAUSE: Duration = Duration::from_millis(10);

/// How long one call is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// Push the soak's jobs and write down what was answered
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(long)]
    queue: QueueName,

    /// Which producer: its jobs are numbered by it
    #[arg(long)]
    number: u64,

    /// The file to go on in
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
            producer.mean(&call)?;
            producer.push(&call).await?;
        }
        Ok(())
    }

    /// The next number to give away, and the call that a predecessor died in.
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

/// Jobs of neighbouring numbers, pushed together.
struct Call {
    first: u64,
    count: u64,
}

impl Call {
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.first..self.first + self.count
    }

    /// The same for a call that is repeated, whoever repeats it.
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
    fn mean(&self, call: &Call) -> SuiteResult<()> {
        let count = u32::try_from(call.count)?;
        Ok(self.recorder.write(Kind::Meant, call.first, count)?)
    }

    /// Pushes until it is answered, and writes the answers down.
    async fn push(&self, call: &Call) -> SuiteResult<()> {
        let capabilities = self.queue.capabilities();
        let jobs: Vec<_> =
            call.numbers().map(|number| plan::job(number, capabilities)).collect();
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
                Err(error) => self.bear(&error, give_up).await?,
            }
        }
    }

    /// Waits while there is more to do than the workers can.
    async fn wait_for_room(&self) -> SuiteResult<()> {
        let give_up = self.environment.clock().elapsed() + PATIENCE;
        loop {
            match self.queue.stats().await {
                Ok(stats) if stats.ready < ENOUGH => return Ok(()),
                Ok(_) => self.environment.clock().sleep(PAUSE).await,
                Err(error) => self.bear(&error, give_up).await?,
            }
        }
    }

    /// Waits a little when the call can be made again, as it can with its token.
    async fn bear(&self, error: &Error, give_up: Duration) -> SuiteResult<()> {
        let clock = self.environment.clock();
        if error.retry_advice() == RetryAdvice::Never || clock.elapsed() > give_up {
            return Err(error.full_message().into());
        }
        clock.sleep(PAUSE).await;
        Ok(())
    }
}
