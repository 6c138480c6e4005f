//! The guards of a worker, as the worker sees them.

use std::{
    env, io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use rustix::process::Pid;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::{Child, Command},
};

use super::guard::{ARM, DISARM, READY};

/// The hidden command that runs a guard.
const COMMAND: &str = "lead-group";

/// The name of a guard in process lists. It does not begin with the program's name,
/// because a guard must survive when all processes of that name are killed.
const NAME: &str = "job-guard";

/// Guards without a command. They are kept, because starting a guard takes as long as a
/// short command.
#[derive(Debug, Default)]
pub(super) struct Guards(Mutex<Vec<Guard>>);

/// A process group for one command at a time, and the process that leads it.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    group: Pid,
    /// When this socket closes, the guard ends the command that it was armed for.
    orders: UnixStream,
}

impl Guards {
    /// A guard whose group is empty.
    pub(super) async fn take(&self) -> io::Result<Guard> {
        loop {
            let idle = self.idle().pop();
            let Some(mut guard) = idle else { return Guard::start().await };
            if guard.is_ready().await {
                return Ok(guard);
            }
        }
    }

    /// Takes back a guard whose command has ended.
    pub(super) async fn give_back(&self, mut guard: Guard) {
        if guard.orders.write_all(&[DISARM]).await.is_ok() {
            self.idle().push(guard);
        }
    }

    /// Ends the guards without a command.
    pub(super) fn end_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Guard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    async fn start() -> io::Result<Self> {
        let (ours, theirs) = Socket::pair()?;
        let mut command = Command::new(this_program()?);
        command.arg0(NAME).arg(COMMAND).current_dir("/").process_group(0);
        // A guard needs no relq variables, and it must not keep a folder in use.
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        let process =
            command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        // The command value holds the child's end of the socket open.
        drop(command);
        ours.set_nonblocking(true)?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw).ok_or_else(has_ended)?;
        let mut guard = Self { process, group, orders: UnixStream::from_std(ours)? };
        if guard.is_ready().await { Ok(guard) } else { Err(has_ended()) }
    }

    /// Waits until the group is empty; `false` when the guard has ended.
    async fn is_ready(&mut self) -> bool {
        matches!(self.orders.read_u8().await, Ok(READY))
    }

    /// From now on, the processes of the group end when the worker dies. Returns
    /// `false` when the guard has ended.
    pub(super) async fn arm(&mut self) -> bool {
        self.orders.write_all(&[ARM]).await.is_ok()
    }

    /// Whether the guard runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }
}

fn is_ours(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"RELQ_")
}

fn has_ended() -> io::Error {
    io::Error::other("its guard has ended")
}

/// The path of the running program, valid even when its file was replaced or removed.
fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}
