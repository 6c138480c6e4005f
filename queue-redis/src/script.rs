//! Lua scripts: called by digest, and sent only to a server that does not have them.
//!
//! ```text
//! it has the script     EVALSHA                          the call has no text
//! it may not have it    SCRIPT LOAD, EVALSHA in one      until a call has succeeded
//!                       write
//! it has lost it since  EVALSHA -> NOSCRIPT, then EVAL   after a SCRIPT FLUSH
//! ```
//!
//! A connection asks when it is opened which scripts its server has (`SCRIPT EXISTS`),
//! together with its other questions. It does not find out by a NOSCRIPT: the call
//! would be sent again behind the calls that were sent after it, and calls that are
//! sent together must run in their order. A settlement runs before the claim that
//! shares its round trip, and the dispositions of one settlement, the pushes of
//! concurrent producers and the steps of a recovery run as they were sent. So a script
//! is loaded before its first call and not after it. The connection keeps the order of
//! both, no call waits for the reply to another one, and the load costs no round trip.
//!
//! Only SCRIPT FLUSH makes a server lose a script while a connection is open. A restart
//! or a fail-over closes the connection, and the next one asks again. Redis 7.4 and
//! later evict scripts that EVAL has sent, but none that SCRIPT LOAD has. After a flush
//! a call may run behind calls that were sent after it, unless these need the same or
//! another lost script: they are then sent again behind it.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{Cmd, RedisError, RedisResult, ToRedisArgs, Value, from_redis_value};
use relq_core::{Error, error::Operation};

use crate::{
    Conn, Reply,
    conn::Failed,
    library::{Library, words},
};

/// The code of the error for a script that the server does not have.
const UNKNOWN_SCRIPT: &str = "NOSCRIPT";

/// A script and its digest.
pub struct Script {
    name: &'static str,
    source: String,
    script: redis::Script,
}

impl Script {
    /// Creates a script from the text of its file. `name` is the file's name without
    /// its ending, for messages.
    pub fn new(name: &'static str, source: &str) -> Self {
        Self { name, source: source.to_owned(), script: redis::Script::new(source) }
    }

    /// A script that calls functions of `library`. The functions it uses are inserted
    /// behind its first line, which has the flags and the name.
    ///
    /// # Panics
    /// When the head of the script does not name the library files that it uses.
    pub fn with_library(name: &'static str, library: &Library, source: &str) -> Self {
        let (flags, body) = source.split_once('\n').unwrap_or((source, ""));
        let used = library.pruned(body);
        let used = used.unwrap_or_else(|error| panic!("the script {name}.lua {error}"));
        Self::new(name, &format!("{flags}\n-- {name}\n{used}\n{body}"))
    }

    /// The name of the script's file, without its ending.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the script uses a function of its library, directly or through others.
    pub fn uses(&self, function: &str) -> bool {
        words(&self.source).any(|word| word == function)
    }

    /// The command that asks the server which of the given scripts it has.
    pub(crate) fn which_exist(scripts: &[&Self]) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("EXISTS");
        scripts.iter().for_each(|script| {
            cmd.arg(script.digest());
        });
        cmd
    }

    /// The command that loads the script into the server.
    pub(crate) fn loading(&self) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(&self.source);
        cmd
    }

    fn digest(&self) -> &str {
        self.script.get_hash()
    }

    /// Begins a call of the script with these keys, which are text or bytes.
    pub fn keys<K: ToRedisArgs>(&self, keys: &[K]) -> Call<'_> {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(self.digest()).arg(keys.len()).arg(keys);
        Call { script: self, cmd }
    }
}

/// Defines a struct of scripts, with one field for each file `<name>.lua` of a folder
/// whose path is relative to the calling file. The struct has a constructor, which
/// takes the library that the scripts share, and `all`, which lists the scripts.
#[macro_export]
macro_rules! scripts {
    (
        $(#[$doc:meta])*
        $visibility:vis struct $Scripts:ident in $folder:literal;
        $($name:ident),* $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        $visibility struct $Scripts { $(pub(crate) $name: $crate::Script),* }

        impl $Scripts {
            /// The scripts, each with the functions of `library` that it uses.
            $visibility fn new(library: &$crate::Library) -> Self {
                Self {
                    $($name: $crate::Script::with_library(
                        stringify!($name),
                        library,
                        include_str!(concat!($folder, stringify!($name), ".lua")),
                    )),*
                }
            }

            /// All scripts of this struct.
            $visibility fn all(&self) -> Vec<&$crate::Script> {
                vec![$(&self.$name),*]
            }
        }
    };
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({})", self.name)
    }
}

/// A call of a script, with its keys and arguments.
#[derive(Debug)]
pub struct Call<'a> {
    script: &'a Script,
    cmd: Cmd,
}

impl<'a> Call<'a> {
    /// Adds an argument and returns the call.
    #[must_use]
    pub fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.cmd.arg(arg);
        self
    }

    /// Adds an argument to the call in place.
    pub fn push_arg(&mut self, arg: impl ToRedisArgs) {
        self.cmd.arg(arg);
    }

    /// Sends the call by digest. If the server has lost the script, it has not run it,
    /// so the call is sent again with the script's text. This happens after a SCRIPT
    /// FLUSH, even while other calls are under way.
    ///
    /// # Errors
    /// The errors of [`Conn::call`].
    pub fn run<'c>(
        self,
        conn: &'c Conn,
        operation: Operation,
    ) -> BoxFuture<'c, Result<Reply, Error>>
    where
        'a: 'c,
    {
        let running = async move {
            match conn.run(operation, &self).await {
                Err(error) if code_of(&error) == Some(UNKNOWN_SCRIPT) => {
                    conn.call(operation, &self.in_full()).await
                }
                answer => answer,
            }
        };
        running.boxed()
    }

    /// Sends the call as [`run`](Self::run) does, for a script that does the work of
    /// two operations. The reply is read as one of the first operation.
    ///
    /// # Errors
    /// The errors of [`Conn::call`], one for each of the operations.
    pub fn run_both<'c>(
        self,
        conn: &'c Conn,
        operations: [Operation; 2],
    ) -> BoxFuture<'c, Result<Reply, [Error; 2]>>
    where
        'a: 'c,
    {
        let running = async move {
            let [first, _] = operations;
            let answer = match conn.try_run(first, &self).await {
                Err(Failed::AfterSend(error))
                    if error.code() == Some(UNKNOWN_SCRIPT) =>
                {
                    conn.send(first, &self.in_full()).await
                }
                answer => answer,
            };
            let answer = answer.map(|value| Reply::new(conn.at(first), value));
            answer
                .map_err(|failed| operations.map(|one| failed.clone().at(conn.at(one))))
        };
        running.boxed()
    }

    pub(crate) fn script(&self) -> &Script {
        self.script
    }

    /// The command that calls the script by its digest.
    pub(crate) fn by_digest(&self) -> &Cmd {
        &self.cmd
    }

    fn in_full(&self) -> Cmd {
        const COMMAND_AND_DIGEST: usize = 2;
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(&self.script.source);
        for arg in self.cmd.args_iter().skip(COMMAND_AND_DIGEST) {
            if let redis::Arg::Simple(bytes) = arg {
                cmd.arg(bytes);
            }
        }
        cmd
    }
}

/// The digests of the scripts that the server is known to have. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownScripts(Arc<Mutex<HashSet<String>>>);

impl KnownScripts {
    /// Reads the reply to [`Script::which_exist`] for these scripts. If the server
    /// refused that command, all of them count as unknown.
    pub(crate) fn learn(&self, scripts: &[&Script], reply: RedisResult<Value>) {
        let exist = reply.and_then(|reply| Ok(from_redis_value::<Vec<bool>>(reply)?));
        let exist = exist.unwrap_or_else(|error| {
            tracing::debug!(%error, "which scripts the server has is not known");
            Vec::new()
        });
        let known = scripts.iter().zip(exist).filter(|(_, exists)| *exists);
        self.digests().extend(known.map(|(script, _)| script.digest().to_owned()));
    }

    pub(crate) fn has(&self, script: &Script) -> bool {
        self.digests().contains(script.digest())
    }

    /// Updates the known scripts from the reply to a call of a script. If the server
    /// does not have that script, it was probably told to forget all scripts, so all of
    /// them count as unknown.
    pub(crate) fn heard(&self, script: &Script, reply: &RedisResult<Value>) {
        match reply {
            Ok(_) if self.has(script) => {}
            Ok(_) => {
                self.digests().insert(script.digest().to_owned());
            }
            Err(error) if error.code() == Some(UNKNOWN_SCRIPT) => {
                self.digests().clear();
            }
            Err(_) => {}
        }
    }

    fn digests(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error code at the start of the server's error reply.
pub fn code_of(error: &Error) -> Option<&str> {
    replies_in(error).find_map(RedisError::code)
}

/// The text after the error code in the server's error reply.
pub fn detail_of(error: &Error) -> Option<&str> {
    replies_in(error).find_map(RedisError::detail)
}

fn replies_in(error: &Error) -> impl Iterator<Item = &RedisError> {
    // relq's own explanation of a refusal may stand before the server's error.
    let sources =
        std::iter::successors(std::error::Error::source(error), |it| it.source());
    sources.filter_map(|it| it.downcast_ref::<RedisError>())
}
