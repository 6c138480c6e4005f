//! Finds the program of `--exec` before the worker claims any job.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use crate::failure::{CommandResult, Failure};

/// The path of the program to run, and its arguments.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

const NO_COMMAND: &str = "\
no command is given: name the one that runs on each job, as in `relq work -- CMD ARG…`";

impl Program {
    /// Finds the program that the first of `words` names, as a shell would. A program
    /// that does not exist is reported here, before it costs every job an attempt.
    pub(super) fn find(words: Vec<OsString>) -> CommandResult<Self> {
        let mut words = words.into_iter();
        let Some(name) = words.next() else {
            return Err(Failure::Usage(NO_COMMAND.to_owned()));
        };
        let path = search(&name).ok_or_else(|| not_found(&name))?;
        Ok(Self { path, arguments: words.collect() })
    }
}

fn search(name: &OsStr) -> Option<PathBuf> {
    if has_slash(name) {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let folders = env::var_os("PATH")?;
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| is_program(path))
}

fn has_slash(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

fn not_found(name: &OsStr) -> Failure {
    let why = if has_slash(name) {
        "is not a program that may be run"
    } else {
        "is not found in PATH"
    };
    Failure::Usage(format!("the command {name:?} {why}; no job was claimed"))
}
