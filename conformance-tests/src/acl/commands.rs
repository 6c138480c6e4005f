//! Reads which commands a Redis server has, and how each is called. The names are in
//! the form that ACL rules use, such as `client|id`.

use std::{collections::BTreeSet, io};

use crate::harness::room::strings;

/// The words of `COMMAND LIST`. Its reply lists the names of a server's commands.
pub(super) const LIST: [&str; 2] = ["COMMAND", "LIST"];

/// The names of a server's commands, including subcommands: `get`, `client|id`.
#[derive(Debug, Clone)]
pub(super) struct Commands(BTreeSet<String>);

impl Commands {
    /// Reads the names from a server's reply to [`LIST`].
    pub(super) fn listed(answer: &[u8]) -> Self {
        let names = strings(answer).into_iter().map(String::from_utf8);
        Self(names.filter_map(Result::ok).collect())
    }

    /// Returns the names of the commands that a client can run. A command that has
    /// subcommands, such as `client`, is left out: a client runs only the subcommands.
    pub(super) fn that_run(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().map(String::as_str);
        names.filter(|name| !self.has_subcommands(name))
    }

    /// Returns the name that ACL rules use for the command that begins with the words
    /// `first` and `second`: `client|id` for a subcommand, or `get`.
    pub(super) fn name_of(&self, first: &str, second: &str) -> String {
        let first = first.to_ascii_lowercase();
        if self.has_subcommands(&first) {
            return format!("{first}|{}", second.to_ascii_lowercase());
        }
        first
    }

    fn has_subcommands(&self, name: &str) -> bool {
        let prefix = format!("{name}|");
        let mut behind = self.0.range(prefix.clone()..);
        behind.next().is_some_and(|next| next.starts_with(&prefix))
    }
}

/// The description of one command in a reply to `COMMAND INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Description {
    /// The number of words in a call, including the command's name. If the number is
    /// negative, a call has at least that many words.
    arity: i64,
    first_key: i64,
    last_key: i64,
    key_step: i64,
    /// Whether the positions of the command's keys depend on its other arguments.
    has_movable_keys: bool,
    /// Whether a client may run the command before it has authenticated.
    pub(super) needs_no_user: bool,
}

impl Description {
    /// Reads the reply to `COMMAND INFO` for one command.
    ///
    /// # Errors
    /// When the reply is not a description of a command.
    pub(super) fn read(answer: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(answer);
        let has_flag = |flag: &str| text.lines().any(|line| line == format!("+{flag}"));
        // Each number is on a line that begins with `:`. The lines of the flags do not.
        let numbers =
            text.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok());
        let numbers: Vec<i64> = numbers.take(4).collect();
        let [arity, first_key, last_key, key_step] = numbers[..] else {
            return Err(io::Error::other(format!(
                "not a command's description: {text}"
            )));
        };
        let has_movable_keys = has_flag("movablekeys");
        let needs_no_user = has_flag("no_auth");
        Ok(Self {
            arity,
            first_key,
            last_key,
            key_step,
            has_movable_keys,
            needs_no_user,
        })
    }

    /// Returns the words of the shortest valid call of the command `name`.
    pub(super) fn shortest(&self, name: &str) -> Vec<String> {
        let mut words: Vec<_> = name.split('|').map(str::to_owned).collect();
        let length = usize::try_from(self.arity.abs()).unwrap_or(0);
        while words.len() < length {
            words.push("1".to_owned());
        }
        words
    }

    /// Returns calls of the command `name` that try each position at which it takes a
    /// key. A call has the key `foreign` at one position and the key `own` at all
    /// others. Returns no call if the command has no keys.
    pub(super) fn with_key(
        &self,
        name: &str,
        own: &str,
        foreign: &str,
    ) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        match name {
            "eval" | "eval_ro" | "evalsha" => vec![
                words(&[name, "x", "1", foreign]),
                words(&[name, "x", "2", own, foreign]),
            ],
            "xread" => vec![words(&[name, "STREAMS", foreign, "0"])],
            "xreadgroup" => {
                vec![words(&[name, "GROUP", "g", "c", "STREAMS", foreign, ">"])]
            }
            _ => {
                assert!(!self.has_movable_keys, "where are the keys of {name}?");
                self.with_key_in_place(name, own, foreign)
            }
        }
    }

    fn with_key_in_place(
        &self,
        name: &str,
        own: &str,
        foreign: &str,
    ) -> Vec<Vec<String>> {
        let [first, step] =
            [self.first_key, self.key_step].map(|it| usize::try_from(it).unwrap_or(0));
        if first == 0 || step == 0 {
            return Vec::new();
        }
        // A negative last position counts from the end of a list of any length.
        let (last, behind) = match usize::try_from(self.last_key) {
            Ok(last) => (last, 1),
            Err(_) => (first + step, usize::try_from(-self.last_key).unwrap_or(1)),
        };
        let mut call = self.shortest(name);
        call.resize(call.len().max(last + behind + step - 1), "1".to_owned());
        let places: Vec<_> = (first..=last).step_by(step).collect();
        places.iter().for_each(|place| own.clone_into(&mut call[*place]));
        let with_foreign = |place: &usize| {
            let mut call = call.clone();
            foreign.clone_into(&mut call[*place]);
            call
        };
        places.iter().map(with_foreign).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_by_as_many_words_as_it_has() {
        let listed =
            b"*4\r\n$3\r\nget\r\n$6\r\nclient\r\n$9\r\nclient|id\r\n$7\r\nclientx\r\n";
        let commands = Commands::listed(listed);

        assert_eq!(commands.name_of("GET", "x"), "get");
        assert_eq!(commands.name_of("client", "ID"), "client|id");
        assert_eq!(commands.name_of("CLIENT", "NEW"), "client|new");
        let that_run: Vec<_> = commands.that_run().collect();
        assert_eq!(that_run, ["clientx", "client|id", "get"]);
    }

    #[test]
    fn a_foreign_key_comes_in_each_place() {
        let answer = b"*1\r\n*10\r\n$8\r\nrenamenx\r\n:3\r\n*2\r\n+write\r\n+fast\r\n\
                       :1\r\n:2\r\n:1\r\n*0\r\n";

        let description = Description::read(answer).unwrap();

        let calls = description.with_key("renamenx", "own", "other");
        assert_eq!(calls, [["renamenx", "other", "own"], ["renamenx", "own", "other"]]);
        assert!(!description.needs_no_user);
        let blpop = b"*1\r\n*10\r\n$5\r\nblpop\r\n:-3\r\n*0\r\n:1\r\n:-2\r\n:1\r\n";
        let calls = Description::read(blpop).unwrap().with_key("blpop", "own", "other");
        let expected = [["blpop", "other", "own", "1"], ["blpop", "own", "other", "1"]];
        assert_eq!(calls, expected);
        assert!(Description::read(b"*1\r\n*-1\r\n").is_err());
    }
}
