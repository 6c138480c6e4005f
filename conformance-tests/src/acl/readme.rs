//! The README of a backend, which names the ACL user that the backend needs.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use super::{refusals::dangerous, trial::Trial, user::User};

/// The environment variable with which the tests write the user's commands to the
/// README in place of checking them.
const WRITE: &str = "RELQ_WRITE_ACL";

/// The README of a backend, which names the ACL user that the backend needs.
#[derive(Debug)]
pub struct Readme {
    path: PathBuf,
}

impl Readme {
    /// Refers to the README in the file at `path`. Later calls read the file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Reads the first user that the README names.
    ///
    /// # Panics
    /// When the README cannot be read, or names no user.
    pub fn user(&self) -> User {
        User::in_readme(&self.text()).expect("the README names a user")
    }

    /// Returns those of the user's commands that the server classifies as dangerous and
    /// for which the README gives no reason. The README gives a reason if it mentions
    /// the command outside of the user's rules.
    ///
    /// # Panics
    /// When the README cannot be read, or the server does not answer.
    pub fn unexplained(&self) -> Vec<String> {
        let mut dangerous = dangerous(&self.user());
        let text = self.text();
        dangerous.retain(|name| !text.contains(&format!("`{name}`")));
        dangerous
    }

    /// Runs the trial as the user, and compares the user's commands with those that the
    /// server ran. With `RELQ_WRITE_ACL` in the environment it writes the commands that
    /// the server ran to the README instead.
    ///
    /// # Panics
    /// When a case fails with the user's rights, or when the user's commands differ
    /// from those that the server ran. The message contains the right line.
    pub fn judge_commands(&self, trial: impl Fn(&User) -> Trial) {
        if env::var_os(WRITE).is_some() {
            return self.write(&right(&self.user(), &trial));
        }
        let user = self.user();
        let Trial { failures, commands } = trial(&user);
        if failures.is_empty() && commands_to_name(&commands) == user.commands() {
            return;
        }
        // A denied command hides the commands after it. So the right line is found by a
        // trial in which all commands are allowed.
        let right = right(&user, &trial);
        let words = [
            format!("failures: {failures:#?}"),
            format!("missing: {:?}", &right.commands() - &user.commands()),
            format!("superfluous: {:?}", &user.commands() - &right.commands()),
            format!("the right line, which {WRITE}=1 writes: {}", right.line()),
        ];
        panic!("{}: {}", self.path.display(), words.join("\n"));
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    fn write(&self, user: &User) {
        fs::write(&self.path, user.written_to(&self.text()))
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
    }
}

/// Returns the user with exactly the commands that it needs: those that the server ran
/// in a trial in which the user may run every command.
fn right(user: &User, trial: impl Fn(&User) -> Trial) -> User {
    let all = BTreeSet::from(["@all".to_owned()]);
    let Trial { failures, commands } = trial(&user.with_commands(&all));
    assert_eq!(failures, [""; 0], "with all commands and the keys of {}", user.line());
    user.with_commands(&commands_to_name(&commands))
}

/// Returns the commands of `run` that need a rule: all except `AUTH` and `HELLO`, which
/// every client may run.
fn commands_to_name(run: &BTreeSet<String>) -> BTreeSet<String> {
    let needs_a_rule = |name: &&String| !["auth", "hello"].contains(&name.as_str());
    run.iter().filter(needs_a_rule).cloned().collect()
}
