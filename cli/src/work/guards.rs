//! Starts guards for the commands of a worker, and keeps idle ones for reuse.

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

/// The idle guards of a worker. They are kept, because starting a guard takes as long
/// as a short command.
#[derive(Debug, Default)]
pub(super) struct Guards(Mutex<Vec<Guard>>);

/// The worker's handle of a guard process, which leads a process group. One command at
/// a time runs in the group.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    group: Pid,
    /// When this socket closes, the guard ends the command that it was armed for.
    orders: UnixStream,
}

/// A guard ended before it could serve. The system may have killed it, or had no file or
/// memory for it.
#[derive(Debug, thiserror::Error)]
#[error("its guard has ended")]
pub(super) struct GuardEnded;

impl Guards {
    /// Returns an idle guard, or starts one. No other process is in its group.
    pub(super) async fn take(&self) -> io::Result<Guard> {
        loop {
            let idle = self.idle().pop();
            let Some(mut guard) = idle else { return Guard::start().await };
            if guard.is_ready().await {
                return Ok(guard);
            }
        }
    }

    /// Keeps a guard whose command has ended by itself, for another command.
    pub(super) async fn give_back(&self, mut guard: Guard) {
        if guard.orders.write_all(&[DISARM]).await.is_ok() {
            self.idle().push(guard);
        }
    }

    /// Ends the guards that have no command.
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
        // A guard needs no relq variables. It runs in `/`, so that it keeps no folder
        // in use.
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        let process =
            command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        // Close this process's copy of the child's end of the socket, which `command`
        // holds.
        drop(command);
        ours.set_nonblocking(true)?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw).ok_or_else(has_ended)?;
        let mut guard = Self { process, group, orders: UnixStream::from_std(ours)? };
        if guard.is_ready().await { Ok(guard) } else { Err(has_ended()) }
    }

    /// Waits until the guard reports that its group is empty. Returns `false` if the
    /// guard has ended.
    async fn is_ready(&mut self) -> bool {
        matches!(self.orders.read_u8().await, Ok(READY))
    }

    /// Tells the guard that a command starts: from now on, the guard ends its group
    /// when the worker dies. Returns `false` if the guard has ended.
    pub(super) async fn arm(&mut self) -> bool {
        self.orders.write_all(&[ARM]).await.is_ok()
    }

    /// Whether the guard's process is running.
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
    io::Error::other(GuardEnded)
}

/// The path of the running program, valid even when its file was replaced or removed.
fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}
