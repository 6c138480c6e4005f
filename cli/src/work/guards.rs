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

/// The hidden command that is a guard.
const COMMAND: &str = "lead-group";

/// What a list of processes calls a guard. It does not begin as the program's name does:
/// a guard must live on when all processes of that name are killed.
const NAME: &str = "job-guard";

/// Guards without a command. They are kept, since starting one takes as long as many a
/// command does.
#[derive(Debug, Default)]
pub(super) struct Guards(Mutex<Vec<Guard>>);

/// A process group for one command at a time, and the process that leads it.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    group: Pid,
    /// When this is closed, the guard ends the command that it was armed for.
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

    /// Ends those without a command.
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
        // A guard needs to know nothing, and no folder is in use because of it.
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        let process =
            command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        // The command holds their end of the socket open.
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

    /// From now on, what is in the group ends when the worker does. `false` when the
    /// guard has ended.
    pub(super) async fn arm(&mut self) -> bool {
        self.orders.write_all(&[ARM]).await.is_ok()
    }

    /// Whether it runs.
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

/// The program that runs, also when its file was replaced or removed meanwhile.
fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}
