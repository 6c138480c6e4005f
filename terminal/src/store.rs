//! Finds the URL of the store that a command uses: from `--url` or `RELQ_URL`, and from
//! the file with its password.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    failure::{CommandResult, Failure},
    store_url,
};

/// The URL of the store if neither `--url` nor `RELQ_URL` is given.
const DEFAULT_URL: &str = "sqlite:relq.db";

/// The environment variable that names the store if `--url` is not given.
pub const URL: &str = "RELQ_URL";

/// The environment variable that names a file with the password of the store. It is
/// used if the URL has no password.
pub const PASSWORD_FILE: &str = "RELQ_PASSWORD_FILE";

/// The environment variable that a worker sets for the command that it runs. It
/// contains the URL from which the worker has removed the password. If that command
/// calls relq with this URL, relq fails with a message instead of connecting without
/// the password.
pub const LEFT_OUT: &str = "RELQ_PASSWORD_LEFT_OUT";

/// The option of a command that names the store.
#[derive(Args, Debug)]
pub struct Store {
    /// The store that holds the queue [default: sqlite:relq.db]
    #[arg(long, env = URL, hide_env_values = true, global = true)]
    url: Option<String>,
}

impl Store {
    /// The URL of `--url` or `RELQ_URL`, with its password. `None` if neither is given.
    pub fn given_url(&self) -> CommandResult<Option<String>> {
        let given = self.url.as_deref().filter(|url| !url.is_empty());
        given.map(complete).transpose()
    }

    /// The URL of `--url` or `RELQ_URL`, or the default one.
    pub fn url(&self) -> CommandResult<String> {
        Ok(self.given_url()?.unwrap_or_else(|| DEFAULT_URL.to_owned()))
    }
}

/// Adds the password from the password file to a URL that may need one and has none.
fn complete(url: &str) -> CommandResult<String> {
    if !store_url::lacks_password(url) {
        return Ok(url.to_owned());
    }
    if let Some(file) = password_file() {
        return Ok(store_url::with_password(url, &read_password(&file)?));
    }
    if env::var_os(LEFT_OUT).is_some_and(|left_out| left_out == url) {
        return Err(Failure::Failed(format!(
            "this is a command of `relq work`, and the password of its URL was left out \
             of its environment: start the worker with {PASSWORD_FILE} (for sentinels \
             RELQ_SENTINEL_PASSWORD_FILE) set to the name of a file that holds the password, \
             or with --pass-credentials"
        )));
    }
    Ok(url.to_owned())
}

/// The path of the file that `RELQ_PASSWORD_FILE` names. `None` if it is not set.
pub fn password_file() -> Option<PathBuf> {
    let name = env::var_os(PASSWORD_FILE).filter(|name| !name.is_empty());
    name.map(PathBuf::from)
}

/// Reads the password from the file, without the newline at its end.
fn read_password(file: &Path) -> CommandResult<String> {
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
