//! The queue of the command line, and the environment that passes it to a worker's
//! command.

use std::{env, ffi::OsString, path::absolute, sync::Arc};

use clap::{
    Args, Command,
    builder::{OsStr, Resettable},
};
use relq::{Queue, QueueName};

use crate::{
    failure::{CommandResult, Failure},
    store::{LEFT_OUT, PASSWORD_FILE, Store, URL, password_file},
    store_url,
};

const QUEUE: &str = "RELQ_QUEUE";

/// The queue of the command line.
#[derive(Args, Debug)]
#[command(next_help_heading = "Which queue")]
pub(crate) struct Target {
    #[command(flatten)]
    pub(crate) store: Store,

    /// The queue's name
    #[arg(
        short,
        long,
        value_name = "NAME",
        env = QUEUE,
        hide_env_values = true,
        default_value = "default",
        global = true
    )]
    pub(crate) queue: QueueName,
}

impl Target {
    /// Opens the queue. Creates a SQLite file that does not exist.
    pub(crate) async fn open(&self) -> CommandResult<Arc<dyn Queue>> {
        Ok(relq::connect(&self.store.url()?, &self.queue).await?)
    }

    /// Opens the queue in a store that must exist. In the wrong folder a command that
    /// reads would otherwise create an empty file and report zeros.
    pub(crate) async fn open_existing(&self) -> CommandResult<Arc<dyn Queue>> {
        Ok(relq::connect_existing(&self.store.url()?, &self.queue).await?)
    }

    /// The environment of a worker's command, so that a relq call inside it uses this
    /// queue.
    pub(crate) fn environment(
        &self,
        credentials: Credentials,
    ) -> CommandResult<Environment> {
        let whole = store_url::from_anywhere(&self.store.url()?)?;
        let file = password_file().map(absolute).transpose().map_err(|error| {
            Failure::Failed(format!("the file of {PASSWORD_FILE} has no path: {error}"))
        })?;
        let (url, left_out) = match credentials {
            Credentials::PassOn => (whole, None),
            Credentials::LeaveOut => {
                let bare = store_url::without_password(&whole);
                let is_missed = file.is_none() && store_url::has_password(&whole);
                (bare.clone(), is_missed.then_some(bare))
            }
        };
        Ok(Environment([
            (URL, Some(url.into())),
            (QUEUE, Some(self.queue.as_str().into())),
            (PASSWORD_FILE, file.map(Into::into)),
            (LEFT_OUT, left_out.map(Into::into)),
        ]))
    }
}

/// Whether the environment of a command gets the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    LeaveOut,
    PassOn,
}

/// The variables that a command gets, and the ones that it must not inherit.
#[derive(Debug)]
pub(crate) struct Environment([(&'static str, Option<OsString>); 4]);

impl Environment {
    pub(crate) fn variables(&self) -> &[(&'static str, Option<OsString>)] {
        &self.0
    }
}

/// Treats an empty `RELQ_QUEUE` as not set, like an empty `RELQ_URL`.
pub(crate) fn without_empty_queue(command: Command) -> Command {
    if env::var_os(QUEUE).is_some_and(|name| name.is_empty()) {
        return command.mut_arg("queue", |queue| queue.env(Resettable::<OsStr>::Reset));
    }
    command
}
