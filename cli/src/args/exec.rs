//! Finds the end of the command of `relq work --exec`.
//!
//! The words after `--exec` belong to the command, up to the next relq flag or to the
//! end. A relq flag is any word that begins with two dashes, and `-q`. So `--exec sh -c
//! 'exit 1' --concurrency 8` is read as intended, and a mistyped `--concurency` is
//! refused instead of being passed to the command. After `--` all words belong to the
//! command.
//!
//! clap accepts either all words that begin with a dash as values, or none of them. So
//! clap receives each word of the command as `--exec=WORD`.

use std::ffi::{OsStr, OsString};

const EXEC: &str = "--exec";

/// Rewrites each word of the command as `--exec=WORD`, before clap reads the line.
pub(super) fn join_words(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined = Vec::new();
    let mut is_command = false;
    let mut line = line.peekable();
    while let Some(word) = line.next() {
        if word == "--" {
            joined.push(word);
            joined.extend(line);
            return joined;
        }
        let has_words = line.peek().is_some_and(|next| !is_flag(next));
        if word == EXEC && has_words {
            is_command = true;
            continue;
        }
        is_command &= !is_flag(&word);
        joined.push(if is_command { marked(&word) } else { word });
    }
    joined
}

fn is_flag(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"--") || word == "-q"
}

fn marked(word: &OsStr) -> OsString {
    let mut marked = OsString::from(EXEC);
    marked.push("=");
    marked.push(word);
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        join_words(words).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn the_command_ends_at_the_next_flag() {
        assert_eq!(
            joined("relq work --exec cat --concurrency 8 --until-empty"),
            "relq work --exec=cat --concurrency 8 --until-empty"
        );
        assert_eq!(
            joined("relq work -q in --exec sh -c x -q other"),
            "relq work -q in --exec=sh --exec=-c --exec=x -q other"
        );
    }

    #[test]
    fn after_two_dashes_all_is_the_command() {
        assert_eq!(
            joined("relq work --exec ls -- --color -q --exec x"),
            "relq work --exec=ls -- --color -q --exec x"
        );
        assert_eq!(joined("relq work --exec -- ls -l"), "relq work --exec -- ls -l");
    }

    #[test]
    fn a_payload_is_left_alone() {
        assert_eq!(joined("relq push -- --exec a"), "relq push -- --exec a");
        assert_eq!(joined("relq stats"), "relq stats");
    }
}
