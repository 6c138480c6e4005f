//! Which queue is meant, and what a command of a worker is told of it.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use clap::{
    Args, Command,
    builder::{OsStr, Resettable},
};
use relq::{Queue, QueueName};

use super::store_url;
use crate::failure::{Failure, Outcome};

/// Where jobs go when nobody says otherwise.
const DEFAULT_URL: &str = "sqlite:relq.db";

const URL: &str = "RELQ_URL";
const QUEUE: &str = "RELQ_QUEUE";

/// Names a file that holds the password of a URL that has none.
const PASSWORD_FILE: &str = "RELQ_PASSWORD_FILE";

/// The URL whose password a worker has left out, so that a command which uses it is
/// told so, and does not go on as another user or as nobody.
const LEFT_OUT: &str = "RELQ_PASSWORD_LEFT_OUT";

/// Which queue is meant.
#[derive(Args, Debug)]
#[command(next_help_heading = "Which queue")]
pub(crate) struct Target {
    /// The store that holds the queue [default: sqlite:relq.db]
    #[arg(long, env = URL, hide_env_values = true, global = true)]
    url: Option<String>,

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
    /// The URL of the command line or of `RELQ_URL`, with its password, if there is one.
    pub(crate) fn given_url(&self) -> Outcome<Option<String>> {
        let given = self.url.as_deref().filter(|url| !url.is_empty());
        given.map(complete).transpose()
    }

    /// The URL given, or the default one.
    pub(crate) fn url(&self) -> Outcome<String> {
        Ok(self.given_url()?.unwrap_or_else(|| DEFAULT_URL.to_owned()))
    }

    /// Opens the queue.
    pub(crate) async fn open(&self) -> Outcome<Arc<dyn Queue>> {
        Ok(relq::connect(&self.url()?, &self.queue).await?)
    }

    /// What a command is told, so that a call of the program in it means this queue.
    pub(crate) fn environment(&self, credentials: Credentials) -> Outcome<Environment> {
        let whole = store_url::from_anywhere(&self.url()?)?;
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

/// What becomes of the password in the environment of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    LeaveOut,
    PassOn,
}

/// Variables that a command gets, and those that it must not inherit.
#[derive(Debug)]
pub(crate) struct Environment([(&'static str, Option<OsString>); 4]);

impl Environment {
    pub(crate) fn variables(&self) -> &[(&'static str, Option<OsString>)] {
        &self.0
    }
}

/// The URL with a password, when it needs one that it does not have.
fn complete(url: &str) -> Outcome<String> {
    if !store_url::lacks_password(url) {
        return Ok(url.to_owned());
    }
    if let Some(file) = password_file() {
        return Ok(store_url::with_password(url, &read_password(&file)?));
    }
    if env::var_os(LEFT_OUT).is_some_and(|left_out| left_out == url) {
        return Err(Failure::Failed(format!(
            "this is a command of `relq work`, and the password of its URL was left out \
             of its environment: start the worker with {PASSWORD_FILE} set to the name \
             of a file that holds the password, or with --pass-credentials"
        )));
    }
    Ok(url.to_owned())
}

fn password_file() -> Option<PathBuf> {
    let name = env::var_os(PASSWORD_FILE).filter(|name| !name.is_empty());
    name.map(PathBuf::from)
}

/// The text of the file, without the newline at its end.
fn read_password(file: &Path) -> Outcome<String> {
    let unusable = |why: &str| {
        let file = file.display();
        Failure::Failed(format!("the file {file} of {PASSWORD_FILE} {why}"))
    };
    let bytes = fs::read(file)
        .map_err(|error| unusable(&format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("is not UTF-8"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    match line.strip_suffix('\r').unwrap_or(line) {
        "" => Err(unusable("holds no password")),
        password => Ok(password.to_owned()),
    }
}

/// The command line's own reading of `RELQ_QUEUE`: an empty one is none, as an empty
/// `RELQ_URL` is.
pub(super) fn without_empty_queue(command: Command) -> Command {
    if env::var_os(QUEUE).is_some_and(|name| name.is_empty()) {
        return command.mut_arg("queue", |queue| queue.env(Resettable::<OsStr>::Reset));
    }
    command
}
