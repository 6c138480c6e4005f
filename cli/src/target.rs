//! The options that name the queue, and the environment variables that pass the queue
//! to a worker's command.

use std::{
    env,
    ffi::OsString,
    path::{PathBuf, absolute},
    sync::Arc,
};

use clap::{
    Args, Command,
    builder::{OsStr, Resettable},
};
use relq::{Queue, QueueName};

use crate::{
    failure::{CommandResult, Failure},
    sentinel_password::{self, SENTINEL_PASSWORD_FILE},
    store::{LEFT_OUT, PASSWORD_FILE, Store, URL, password_file},
    store_url,
};

pub(crate) const QUEUE: &str = "RELQ_QUEUE";

/// The options that name the store and the queue.
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
    /// The URL of the store, with the passwords from their files.
    pub(crate) fn url(&self) -> CommandResult<String> {
        sentinel_password::complete(self.store.url()?)
    }

    /// The same as [`url`](Self::url), or `None` if no URL is given.
    pub(crate) fn given_url(&self) -> CommandResult<Option<String>> {
        self.store.given_url()?.map(sentinel_password::complete).transpose()
    }

    /// Opens the queue. Creates a SQLite file that does not exist.
    pub(crate) async fn open(&self) -> CommandResult<Arc<dyn Queue>> {
        self.open_named(&self.queue).await
    }

    /// Opens the queue of this name in the store. Creates a SQLite file that does not
    /// exist.
    pub(crate) async fn open_named(
        &self,
        queue: &QueueName,
    ) -> CommandResult<Arc<dyn Queue>> {
        Ok(relq::connect(&self.url()?, queue).await?)
    }

    /// Opens the queue, and fails if its store does not exist. Otherwise a command that
    /// only reads, run in the wrong folder, would create an empty file and report
    /// zeros.
    pub(crate) async fn open_existing(&self) -> CommandResult<Arc<dyn Queue>> {
        self.open_existing_named(&self.queue).await
    }

    /// Opens the queue of this name, and fails if the store does not exist.
    pub(crate) async fn open_existing_named(
        &self,
        queue: &QueueName,
    ) -> CommandResult<Arc<dyn Queue>> {
        Ok(relq::connect_existing(&self.url()?, queue).await?)
    }

    /// The environment variables for a worker's command, so that a relq call inside the
    /// command uses `queue` of this store.
    pub(crate) fn environment(
        &self,
        queue: &QueueName,
        credentials: Credentials,
    ) -> CommandResult<Environment> {
        let whole = store_url::from_anywhere(&self.url()?)?;
        let file = from_anywhere(PASSWORD_FILE, password_file())?;
        let sentinel_file =
            from_anywhere(SENTINEL_PASSWORD_FILE, sentinel_password::file())?;
        let (url, left_out) = match credentials {
            Credentials::PassOn => (whole, None),
            Credentials::LeaveOut => {
                let bare = store_url::without_password(&whole);
                let is_missed = file.is_none() && store_url::has_password(&whole)
                    || sentinel_file.is_none()
                        && store_url::has_sentinel_password(&whole);
                (bare.clone(), is_missed.then_some(bare))
            }
        };
        Ok(Environment([
            (URL, Some(url.into())),
            (QUEUE, Some(queue.as_str().into())),
            (PASSWORD_FILE, file.map(Into::into)),
            (SENTINEL_PASSWORD_FILE, sentinel_file.map(Into::into)),
            (LEFT_OUT, left_out.map(Into::into)),
        ]))
    }
}

/// Whether the command of a worker gets the store's password in `RELQ_URL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    LeaveOut,
    PassOn,
}

/// Environment variables for a command: a value to set, or `None` to remove the
/// variable.
#[derive(Debug)]
pub(crate) struct Environment([(&'static str, Option<OsString>); 5]);

impl Environment {
    pub(crate) fn variables(&self) -> &[(&'static str, Option<OsString>)] {
        &self.0
    }
}

/// Makes the path that this variable names absolute, so that it names the same file in any
/// folder.
fn from_anywhere(
    variable: &str,
    file: Option<PathBuf>,
) -> CommandResult<Option<PathBuf>> {
    file.map(absolute).transpose().map_err(|error| {
        Failure::Failed(format!("{variable} names no usable path: {error}"))
    })
}

/// Treats an empty `RELQ_QUEUE` as not set, like an empty `RELQ_URL`.
pub(crate) fn without_empty_queue(command: Command) -> Command {
    if env::var_os(QUEUE).is_some_and(|name| name.is_empty()) {
        return command.mut_arg("queue", |queue| queue.env(Resettable::<OsStr>::Reset));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        target: Target,
    }

    /// The variables that name the store of this URL and the queue, and that say that a
    /// password was left out.
    fn variables(url: &str, credentials: Credentials) -> [Option<String>; 3] {
        let line = CommandLine::parse_from(["relq", "--url", url]);
        let queue = QueueName::new("letters").unwrap();
        let environment = line.target.environment(&queue, credentials).unwrap();
        [URL, QUEUE, LEFT_OUT].map(|wanted| {
            let variables = environment.variables().iter();
            let value = variables
                .filter(|(name, _)| *name == wanted)
                .find_map(|it| it.1.clone());
            value.map(|value| value.into_string().unwrap())
        })
    }

    /// A relq call in a command that lacks a password of the store or of its sentinels must
    /// say so. One that lacks none must not.
    #[test]
    fn a_password_that_is_left_out_is_told() {
        for (url, bare, is_missed) in [
            ("sqlite:/a.db", "sqlite:/a.db", false),
            ("zset+redis://h/0", "zset+redis://h/0", false),
            ("zset+redis://me:p@h/0", "zset+redis://me@h/0", true),
            ("redis-sentinel://a,b/main", "redis-sentinel://a,b/main", false),
            ("redis-sentinel://:p@a,b/main", "redis-sentinel://a,b/main", true),
            (
                "redis-sentinel://a,b/main?sentinel_password=s",
                "redis-sentinel://a,b/main",
                true,
            ),
            (
                "redis-sentinel://:p@a,b/main?sentinel_password=s",
                "redis-sentinel://a,b/main",
                true,
            ),
        ] {
            let told = is_missed.then_some(bare);
            let expected = [Some(bare), Some("letters"), told];
            let set = variables(url, Credentials::LeaveOut);
            assert_eq!(set.each_ref().map(Option::as_deref), expected, "without {url}");

            let expected = [Some(url), Some("letters"), None];
            let set = variables(url, Credentials::PassOn);
            assert_eq!(set.each_ref().map(Option::as_deref), expected, "with {url}");
        }
    }
}
