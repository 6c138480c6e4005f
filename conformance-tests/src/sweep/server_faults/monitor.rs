//! Records every script call that a queue sends, and the state in which it ran.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{harness::room::strings, server::Server};

/// How long it may take until MONITOR reports a command.
const REPORT_LIMIT: Duration = Duration::from_secs(20);

/// A script that returns each key of the database and its dump.
const DUMP_ALL: &[u8] = b"local all = {} \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
      all[#all + 1] = key all[#all + 1] = redis.call('DUMP', key) \
    end return all";

/// A script that empties the database and restores the keys that [`DUMP_ALL`] returned.
const RESTORE_ALL: &[u8] = b"redis.call('FLUSHALL') \
    for i = 1, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end";

/// The content of a server: the name and the dump of each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State(BTreeMap<Vec<u8>, Vec<u8>>);

impl State {
    pub(super) fn of(server: &Server) -> Self {
        let all = strings(&server.command(&[b"EVAL", DUMP_ALL, b"0"]));
        Self(
            all.chunks_exact(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect(),
        )
    }

    pub(super) fn put_on(&self, server: &Server) {
        let mut command: Vec<&[u8]> = vec![b"EVAL", RESTORE_ALL, b"0"];
        for (key, value) in &self.0 {
            command.extend([&key[..], &value[..]]);
        }
        let answer = server.command(&command);
        assert!(!answer.starts_with(b"-"), "{}", answer.escape_ascii());
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.keys()
    }

    /// The keys whose dumps differ between the two states, as text for a message.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let keys = self.0.keys().chain(other.0.keys());
        let mut changed: Vec<_> = keys
            .filter(|key| self.0.get(*key) != other.0.get(*key))
            .map(|key| key.escape_ascii().to_string())
            .collect();
        changed.sort();
        changed.dedup();
        changed
    }
}

/// A script call as the client sent it.
#[derive(Debug, Clone)]
pub(super) struct ScriptCall {
    pub(super) words: Vec<Vec<u8>>,
}

impl ScriptCall {
    pub(super) fn digest(&self) -> &[u8] {
        &self.words[1]
    }

    pub(super) fn keys(&self) -> &[Vec<u8>] {
        let count = std::str::from_utf8(&self.words[2]).ok();
        let count = count.and_then(|count| count.parse::<usize>().ok());
        &self.words[3..3 + count.expect("a script's count of keys")]
    }

    pub(super) fn send(&self, server: &Server) -> Vec<u8> {
        server.command(&self.words.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// The scripts that a client loaded, and the script calls that it sent.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// The text of each script that was loaded, or sent in full.
    pub(super) sources: Vec<Vec<u8>>,
    /// The script calls that name their script by its digest.
    pub(super) calls: Vec<ScriptCall>,
}

impl Scripts {
    fn of(commands: impl IntoIterator<Item = Vec<Vec<u8>>>) -> Self {
        let mut scripts = Self::default();
        for words in commands {
            match (is(&words, 0, b"SCRIPT"), is(&words, 1, b"LOAD")) {
                (true, true) => scripts.sources.extend(words.into_iter().nth(2)),
                _ if is(&words, 0, b"EVAL") => {
                    scripts.sources.extend(words.into_iter().nth(1));
                }
                _ if is(&words, 0, b"EVALSHA") => {
                    scripts.calls.push(ScriptCall { words });
                }
                _ => {}
            }
        }
        scripts
    }
}

/// Records every command that a server receives, by MONITOR.
pub(super) struct Monitor {
    heard: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
    marks: u64,
}

impl Monitor {
    pub(super) fn start(server: &Server) -> Self {
        let mut stream =
            UnixStream::connect(server.socket()).expect("the server listens");
        stream.write_all(b"MONITOR\r\n").expect("the server accepts commands");
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut String::new()).expect("the server begins to report");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        // The thread ends when the server closes the connection.
        thread::spawn(move || {
            for line in stream.split(b'\n').map_while(Result::ok) {
                let mut heard = hearing.lock().unwrap_or_else(PoisonError::into_inner);
                heard.push(words(&line));
            }
        });
        Self { heard, marks: 0 }
    }

    /// Returns the scripts that were loaded and called since the previous call of this
    /// method.
    pub(super) fn scripts(&mut self, server: &Server) -> Scripts {
        self.marks += 1;
        let mark = format!("mark {}", self.marks).into_bytes();
        server.command(&[b"ECHO", &mark]);
        let asked = Instant::now();
        loop {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.iter().any(|words| words.get(1) == Some(&mark)) {
                return Scripts::of(std::mem::take(&mut *heard));
            }
            drop(heard);
            assert!(asked.elapsed() < REPORT_LIMIT, "the server does not report");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is(words: &[Vec<u8>], at: usize, name: &[u8]) -> bool {
    words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name))
}

/// Splits a line of MONITOR into its words, which are in quotes and have escapes as in
/// C.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut bytes) = (Vec::new(), None::<Vec<u8>>, line.iter());
    while let Some(byte) = bytes.next() {
        match (&mut word, byte) {
            (None, b'"') => word = Some(Vec::new()),
            (None, _) => {}
            (Some(_), b'"') => words.extend(word.take()),
            (Some(word), b'\\') => word.push(unescaped(&mut bytes)),
            (Some(word), byte) => word.push(*byte),
        }
    }
    words
}

fn unescaped(bytes: &mut std::slice::Iter<'_, u8>) -> u8 {
    match bytes.next() {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'a') => 7,
        Some(b'b') => 8,
        Some(b'x') => {
            let digits: String =
                bytes.by_ref().take(2).map(|it| char::from(*it)).collect();
            u8::from_str_radix(&digits, 16).expect("two digits")
        }
        Some(other) => *other,
        None => b'\\',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_reported_command_are_read_back() {
        let line = br#"+1.2 [0 unix:/s] "EVALSHA" "\xf5RQ\x01\n" "a \"b\" \\""#;

        let read = words(line);

        assert_eq!(read, [&b"EVALSHA"[..], b"\xf5RQ\x01\n", b"a \"b\" \\"]);
    }
}
