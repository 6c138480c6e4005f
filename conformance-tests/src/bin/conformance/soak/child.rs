//! A child process of the soak: this program, started again with other arguments.

use std::{
    ffi::OsStr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use relq_core::{Queue, QueueName, environment::Environment};

use crate::SuiteResult;

/// The environment variable that passes the store's URL to a child. All users of the
/// machine could see an argument, and the URL may have a password.
const URL: &str = "RELQ_SOAK_URL";

/// How long a child tries to reach the store. [`PAUSE`] is the time between two
/// attempts.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// A running child process. It ends by itself when its standard input is closed, which
/// the system does when this process ends in any way.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    pub(super) fn start(
        command: &str,
        url: &str,
        queues: &[QueueName],
        arguments: &[(&str, &OsStr)],
    ) -> SuiteResult<Self> {
        let mut child = Command::new(std::env::current_exe()?);
        child.arg(command);
        for queue in queues {
            child.args(["--queue", queue.as_str()]);
        }
        for (name, value) in arguments {
            child.arg(name).arg(value);
        }
        let child = child.env(URL, url).stdin(Stdio::piped()).stdout(Stdio::null());
        Ok(Self(child.spawn()?))
    }

    /// Kills the child with SIGKILL.
    pub(super) fn kill(mut self) -> SuiteResult<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Lets the child finish its current work and end.
    pub(super) fn end(mut self) -> SuiteResult<ExitStatus> {
        drop(self.0.stdin.take());
        Ok(self.0.wait()?)
    }

    /// Fails if the child ended by itself.
    pub(super) fn check(&mut self) -> SuiteResult<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("a process ended by itself: {status}").into()),
        }
    }
}

/// In a child: connects to the store, and retries while the store is down.
pub(super) async fn connect(
    queue: &QueueName,
    environment: &Environment,
) -> SuiteResult<Arc<dyn Queue>> {
    let url = std::env::var(URL)?;
    let give_up = environment.clock().elapsed() + PATIENCE;
    loop {
        match relq::connect(&url, queue).await {
            Ok(queue) => return Ok(queue),
            Err(error) if environment.clock().elapsed() > give_up => {
                return Err(error.into());
            }
            Err(_) => environment.clock().sleep(PAUSE).await,
        }
    }
}

/// In a child: a receiver that completes when the parent wants the child to end.
pub(super) fn told_to_end() -> tokio::sync::oneshot::Receiver<()> {
    let (told, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // The end of the input and an error both mean that the parent wants the child
        // to end, or is gone.
        drop(std::io::Read::read(&mut std::io::stdin(), &mut [0]));
        // The send fails if the child has already ended by itself.
        let _ = told.send(());
    });
    end
}
