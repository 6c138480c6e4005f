//! Lua scripts: called by digest, and sent in full if the server does not know them.

use std::fmt;

use futures_util::future::try_join_all;
use redis::{Cmd, RedisError, ToRedisArgs};
use relq_core::{Error, error::Operation};

use crate::{
    Conn, Reply,
    pruned_library::{LibraryFile, pruned_library},
};

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

    /// Loads the script into the server.
    ///
    /// # Errors
    /// As [`Conn::call`].
    pub async fn load(&self, conn: &Conn) -> Result<(), Error> {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(&self.source);
        conn.call(Operation::Connect, &cmd).await.map(drop)
    }

    /// Loads scripts in one round trip. Calls that are sent together then run in their
    /// order, because none has to be sent a second time.
    ///
    /// # Errors
    /// As [`Conn::call`].
    pub async fn load_all(
        scripts: impl Iterator<Item = &Self>,
        conn: &Conn,
    ) -> Result<(), Error> {
        try_join_all(scripts.map(|script| script.load(conn))).await.map(drop)
    }

    /// The name of the script's file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Begins a call with these keys, which are text or bytes.
    pub fn keys<K: ToRedisArgs>(&self, keys: &[K]) -> Call<'_> {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(self.script.get_hash()).arg(keys.len()).arg(keys);
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

    /// Sends the call, by digest first. A server that does not know the script has not
    /// run it, so the script is then sent in full. This happens after a restart, a
    /// fail-over or a SCRIPT FLUSH, also while other calls are under way.
    ///
    /// # Errors
    /// As [`Conn::call`].
    pub async fn run(self, conn: &Conn, operation: Operation) -> Result<Reply, Error> {
        match conn.call(operation, &self.cmd).await {
            Err(error) if is_unknown_script(&error) => {
                conn.call(operation, &self.in_full()).await
            }
            answer => answer,
        }
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

fn is_unknown_script(error: &Error) -> bool {
    code_of(error) == Some("NOSCRIPT")
}

/// The error code at the start of the server's error reply.
pub fn code_of(error: &Error) -> Option<&str> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<RedisError>()?.code()
}
