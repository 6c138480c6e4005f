//! Records the commands that a server runs for the clients of a proxy.
//!
//! The proxy reports the commands that the clients send, including those that `MONITOR`
//! does not show. `MONITOR` reports the commands that scripts call, which the proxy
//! cannot see. A command that a script names but has not called counts too: the user
//! needs it in branches that no case reaches. The suite's own commands do not pass
//! through the proxy, and its own scripts are recognised by
//! [their first line](SUITES_SCRIPT).

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use tokio::{runtime::Builder, sync::oneshot};

use super::commands::{Commands, LIST};
use crate::{
    harness::room::SUITES_SCRIPT,
    proxy::{Address, FaultProxy, Upstream, is_error},
};

/// The text that the suite sends to a recorded server as its last command. When
/// `MONITOR` shows this text, it has shown every command before it.
const LAST_WORD: &str = "nothing more is watched";

/// The names of the commands that the server has run. Clones share one set.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<BTreeSet<String>>>);

impl Seen {
    fn add(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    pub(super) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds to `seen` every command that the server runs for the proxy's clients, until the
/// returned monitor is dropped.
pub(super) async fn watch(proxy: &FaultProxy, seen: &Seen) -> io::Result<Monitor> {
    let commands = Commands::listed(&proxy.tell(&LIST).await?);
    let (listed, sent) = (commands.clone(), seen.clone());
    proxy.listen(move |request| {
        let (first, second) = (request.word(0), request.word(1));
        let source = match (first.as_str(), second.as_str()) {
            ("EVAL", _) => request.arg(1),
            ("SCRIPT", "LOAD") => request.arg(2),
            _ => None,
        };
        let source = String::from_utf8_lossy(source.unwrap_or_default());
        called_in(&source).for_each(|(name, of)| sent.add(listed.name_of(name, of)));
        sent.add(listed.name_of(&first, &second));
    });
    Monitor::start(proxy.server().clone(), commands, seen.clone()).await
}

/// Returns the commands that the text of a script calls, each with the word after it,
/// which may be a subcommand. A call that chooses between two commands returns both.
fn called_in(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let calls = source.split("redis.").filter_map(|call| {
        call.strip_prefix("call(").or_else(|| call.strip_prefix("pcall("))
    });
    calls.flat_map(|call| {
        let (first, rest) = call.split_once([',', ')']).unwrap_or((call, ""));
        let second = rest.trim_start().strip_prefix('\'').unwrap_or_default();
        let second = second.split('\'').next().unwrap_or_default();
        let words = first.split('\'').skip(1).step_by(2);
        let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase());
        words.filter(is_name).map(move |name| (name, second))
    })
}

/// A reader of the commands that scripts call on a server. Dropping it waits until it
/// has read every command that the server ran before the drop.
#[derive(Debug)]
pub(super) struct Monitor {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    async fn start(
        server: Address,
        commands: Commands,
        seen: Seen,
    ) -> io::Result<Self> {
        let (began, begin) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        // The reader has its own runtime, because the caller's may end before the
        // reader has read everything.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let read = async move {
            let mut reader = match Reader::open(&server, commands, seen).await {
                Ok(reader) => reader,
                Err(error) => return drop(began.send(Err(error))),
            };
            // The send fails if the case has already ended and dropped the receiver.
            drop(began.send(Ok(())));
            reader.read_until(stopped, &server).await;
        };
        let thread = std::thread::Builder::new().name("monitor".to_owned());
        let thread = thread.spawn(move || runtime.block_on(read))?;
        begin.await.map_err(io::Error::other)??;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the thread that watches a server panicked");
        }
    }
}

struct Reader {
    upstream: Upstream,
    commands: Commands,
    seen: Seen,
    /// Whether the script that runs now is one of the suite's own.
    is_suites: bool,
}

impl Reader {
    async fn open(to: &Address, commands: Commands, seen: Seen) -> io::Result<Self> {
        let mut upstream = Upstream::open(to).await?;
        let answer = upstream.ask(&["MONITOR"]).await?;
        if is_error(&answer) {
            return Err(io::Error::other(
                String::from_utf8_lossy(&answer).into_owned(),
            ));
        }
        Ok(Self { upstream, commands, seen, is_suites: false })
    }

    /// Reads until it is stopped and has read every earlier command, or until the
    /// server has ended.
    async fn read_until(&mut self, stopped: oneshot::Receiver<()>, server: &Address) {
        let reading = async {
            while let Ok(line) = self.upstream.next_reply().await {
                self.record_line(&line);
            }
        };
        tokio::select! {
            biased;
            () = reading => return,
            _ = stopped => {}
        }
        // If the server has ended, it sends nothing more, and the commands so far
        // count.
        if let Ok(mut other) = Upstream::open(server).await {
            drop(other.ask(&["ECHO", LAST_WORD]).await);
        }
        while let Ok(line) = self.upstream.next_reply().await {
            if String::from_utf8_lossy(&line).contains(LAST_WORD) {
                return;
            }
            self.record_line(&line);
        }
    }

    fn record_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let Some((client, words)) = read(&text) else { return };
        if client.ends_with(" lua") {
            let second = words.get(1).map_or("", String::as_str);
            if let Some(first) = words.first().filter(|_| !self.is_suites) {
                self.seen.add(self.commands.name_of(first, second));
            }
            return;
        }
        // `MONITOR` prints a script's calls directly after the call that runs the
        // script.
        let begin = SUITES_SCRIPT.trim_end();
        self.is_suites = words.get(1).is_some_and(|source| source.starts_with(begin));
    }
}

/// Returns the client that a line of `MONITOR` names, and the first two words of its
/// command.
fn read(line: &str) -> Option<(&str, Vec<String>)> {
    let (_, told) = line.split_once(" [")?;
    let (client, mut command) = told.split_once("] \"")?;
    let mut words = Vec::new();
    while words.len() < 2 {
        let end = end_of_word(command)?;
        words.push(command[..end].to_owned());
        match command[end..].strip_prefix("\" \"") {
            Some(more) => command = more,
            None => break,
        }
    }
    Some((client, words))
}

/// Returns the position of the quotation mark that ends a word. A quotation mark after
/// `\` does not end the word.
fn end_of_word(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_what_it_calls() {
        let source = "redis.call('GET', key)\n\
                      redis.pcall(at == 'back' and 'LPUSH' or 'RPUSH', key, 'x')\n\
                      redis.call('XGROUP', 'CREATE', key) return redis.call('TIME')[1]";

        let called: Vec<_> = called_in(source).collect();

        let expected = [
            ("GET", ""),
            ("LPUSH", ""),
            ("RPUSH", ""),
            ("XGROUP", "CREATE"),
            ("TIME", ""),
        ];
        assert_eq!(called, expected);
    }

    #[test]
    fn a_line_names_the_client_and_the_words() {
        let line = r#"+1.2 [0 lua] "XGROUP" "CREATE" "q""#;
        let words = ["XGROUP", "CREATE"].map(str::to_owned).to_vec();
        assert_eq!(read(line), Some(("0 lua", words)));

        let line = r#"+1.2 [3 unix:/tmp/x] "EVAL" "say \"a\" \\" "0""#;
        let words = ["EVAL", r#"say \"a\" \\"#].map(str::to_owned).to_vec();
        assert_eq!(read(line), Some(("3 unix:/tmp/x", words)));

        let words = vec!["TIME".to_owned()];
        assert_eq!(
            read(r#"+1.2 [0 127.0.0.1:1] "TIME""#),
            Some(("0 127.0.0.1:1", words))
        );
        assert_eq!(read("+OK"), None);
    }
}
