//! `relq completion`: prints the completion script of a shell.

use clap::Command;
use clap_complete::{Shell, generate};

use crate::{failure::CommandResult, output::Output};

/// Print the script by which a shell completes the commands and options of relq
///
/// For Bash: relq completion bash > ~/.local/share/bash-completion/completions/relq
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self, program: &Command) -> CommandResult {
        let mut script = Vec::new();
        generate(self.shell, &mut without_hidden(program), "relq", &mut script);
        let mut out = Output::new();
        out.text(&String::from_utf8_lossy(&script))?;
        out.flush()
    }
}

/// The commands and options without those that relq starts itself.
fn without_hidden(program: &Command) -> Command {
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("relq")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments().cloned())
        .subcommands(shown.cloned())
}
