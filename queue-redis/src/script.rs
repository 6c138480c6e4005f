//! Lua scripts: called by digest, and sent only to a server that does not have them.
//!
//! ```text
//!  the server has it      EVALSHA                            no text is sent
//!  it may not have it     SCRIPT LOAD, EVALSHA together      until a call succeeded
//!  it has lost it since   EVALSHA -> NOSCRIPT, EVAL          after a SCRIPT FLUSH
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

use redis::{Cmd, RedisError, RedisResult, ToRedisArgs, Value, from_redis_value};
use relq_core::{Error, error::Operation};

use crate::{
    Conn, Reply,
    pruned_library::{LibraryFile, pruned_library},
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
    /// A script from the text of its file. `name` is the file's name, for messages.
    pub fn new(name: &'static str, source: &str) -> Self {
        Self { name, source: source.to_owned(), script: redis::Script::new(source) }
    }

    /// A script that calls functions of `library`. The functions it uses are inserted
    /// behind its first line, which has the flags and the name.
    ///
    /// # Panics
    /// When the head of the script does not name the files that it uses, or a file is
    /// no list of definitions.
    pub fn with_library(
        name: &'static str,
        library: &[LibraryFile],
        source: &str,
    ) -> Self {
        let (flags, body) = source.split_once('\n').unwrap_or((source, ""));
        let used = pruned_library(library, body);
        let used = used.unwrap_or_else(|error| panic!("the script {name}.lua {error}"));
        Self::new(name, &format!("{flags}\n-- {name}\n{used}\n{body}"))
    }

    /// The name of the script's file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The command that asks which of these scripts the server has.
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

    /// Begins a call with these keys, which are text or bytes.
    pub fn keys<K: ToRedisArgs>(&self, keys: &[K]) -> Call<'_> {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(self.digest()).arg(keys.len()).arg(keys);
        Call { script: self, cmd }
    }
}

/// Defines a struct of scripts, with one field for each file `<name>.lua` of a folder
/// whose path is relative to the calling file. The struct has a constructor, which
/// takes the shared library, and `all`, which lists the scripts.
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
            $visibility fn new(library: &[$crate::LibraryFile]) -> Self {
                Self {
                    $($name: $crate::Script::with_library(
                        stringify!($name),
                        library,
                        include_str!(concat!($folder, stringify!($name), ".lua")),
                    )),*
                }
            }

            /// All scripts.
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

/// A script with its keys and arguments, ready to be sent.
#[derive(Debug)]
pub struct Call<'a> {
    script: &'a Script,
    cmd: Cmd,
}

impl Call<'_> {
    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.cmd.arg(arg);
        self
    }

    /// Adds an argument in place.
    pub fn push_arg(&mut self, arg: impl ToRedisArgs) {
        self.cmd.arg(arg);
    }

    /// Sends the call by digest. A server that has lost the script has not run it, so
    /// the script is then sent in full. This happens after a SCRIPT FLUSH, also while
    /// other calls are under way.
    ///
    /// # Errors
    /// As [`Conn::call`].
    pub async fn run(self, conn: &Conn, operation: Operation) -> Result<Reply, Error> {
        match conn.run(operation, &self).await {
            Err(error) if code_of(&error) == Some(UNKNOWN_SCRIPT) => {
                conn.call(operation, &self.in_full()).await
            }
            answer => answer,
        }
    }

    pub(crate) fn script(&self) -> &Script {
        self.script
    }

    /// The call by the script's digest.
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

/// The scripts that a connection's server is known to have, by their digests. Clones
/// share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownScripts(Arc<Mutex<HashSet<String>>>);

impl KnownScripts {
    /// Reads the reply to [`Script::which_exist`] for these scripts. If the server
    /// refused the question, none of them counts as known.
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

    /// Learns from the reply to a call of a script. A server that does not have the
    /// script was probably told to forget all scripts, so none counts as known then.
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
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<RedisError>()?.code()
}
