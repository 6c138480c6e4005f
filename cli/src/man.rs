//! `relq man`: prints the manual pages of the program.

use std::{io, path::PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::{
    failure::{CommandResult, Failure},
    output::Output,
};

/// Print the manual page of relq or of one of its commands
///
/// A page is in the format of man: `relq man push | man -l -` shows it. With --folder the
/// pages of all commands are written to files, such as relq-push.1.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The command, such as `dead list`
    #[arg(value_name = "COMMAND", conflicts_with = "folder")]
    command: Vec<String>,

    /// Write the pages of all commands to this folder
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, program: Command) -> CommandResult {
        let program = program.disable_help_subcommand(true);
        if let Some(folder) = self.folder {
            return clap_mangen::generate_to(program, &folder).map_err(|error| {
                let folder = folder.display();
                Failure::Failed(format!(
                    "the folder {folder} cannot be written: {error}"
                ))
            });
        }
        let page = page(&find(program, &self.command)?)
            .map_err(|error| Failure::output(&error))?;
        let mut out = Output::new();
        out.text(&page)?;
        out.flush()
    }
}

/// Finds a command by its words, and names it by all of them, as `relq-dead-list`.
fn find(mut program: Command, words: &[String]) -> CommandResult<Command> {
    program.build();
    let mut command = &program;
    for word in words {
        command = command
            .find_subcommand(word)
            .filter(|found| !found.is_hide_set())
            .ok_or_else(|| {
                let words = words.join(" ");
                let problem =
                    format!("there is no command `relq {words}`: see `relq --help`");
                Failure::Usage(problem)
            })?;
    }
    Ok(command.clone())
}

fn page(command: &Command) -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
