//! The guard: the process that leads the process group of a command, and ends the group
//! when the worker has died.
//!
//! ```text
//! relq work ──── starts ────▶ command            in the guard's process group
//!     │                          ▲
//!     │ socket                   │ SIGTERM, SIGKILL
//!     └──────── orders ────▶ guard
//! ```
//!
//! A worker that is killed with SIGKILL cannot end its command. The job would then run
//! twice at once after the lease expires. However the worker dies, its end of the
//! socket closes, and the guard waits for that.
//!
//! The guard starts before its command, so the command is guarded at every moment.
//! While the worker starts a command, the new child process also holds the worker's end
//! of the socket open, and it closes the socket only after it has joined the group. The
//! worker is the command's parent, so it learns directly when the command ends.
//!
//! A guard outlives its command and serves another one, if its group is empty. The
//! guard leaves the group for this check, because otherwise it would find itself.

use std::{io, thread, time::Duration};

use rustix::{
    io::{Errno, retry_on_intr},
    process::{
        Pid, Signal, getpid, kill_process_group, setpgid, test_kill_process_group,
    },
};
use tokio::runtime;

use crate::{
    failure::{CommandResult, Failure},
    interrupts,
};

/// The time between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The byte with which the worker tells the guard that a command is about to start.
pub(super) const ARM: u8 = b'a';

/// The byte with which the worker tells the guard that the command has ended. Processes
/// that the command left running continue.
pub(super) const DISARM: u8 = b'd';

/// The byte with which the guard tells the worker that no other process is in its
/// group.
pub(super) const READY: u8 = b'r';

/// Lead the process group of a command of `relq work`
#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

/// Runs the guard: reads the worker's orders from standard input, a socket, until the
/// worker closes it.
pub(crate) fn run(_: Args) -> CommandResult {
    let cannot =
        |error| Failure::Failed(format!("a command cannot be guarded: {error}"));
    outlive_signals().map_err(cannot)?;
    serve(getpid()).map_err(|error| cannot(error.into()))
}

/// Handles the signals that are sent to the group, so that they do not end the guard.
fn outlive_signals() -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    for signal in interrupts::SIGNALS {
        // Dropping the receiver of the signal is correct: the handler stays installed,
        // so the signal does not end the process.
        drop(interrupts::handle(signal)?);
    }
    Ok(())
}

fn serve(group: Pid) -> Result<(), Errno> {
    let mut is_armed = false;
    say_ready()?;
    loop {
        match next_order() {
            Some(ARM) => is_armed = true,
            Some(DISARM) => {
                is_armed = false;
                if !is_alone_in(group)? {
                    return Ok(());
                }
                say_ready()?;
            }
            Some(_) | None if is_armed => return end(group),
            Some(_) | None => return Ok(()),
        }
    }
}

/// Reads the worker's next order. `None` if the worker has died or closed the socket.
fn next_order() -> Option<u8> {
    let mut order = [0];
    match retry_on_intr(|| rustix::io::read(io::stdin(), &mut order)) {
        Ok(1) => Some(order[0]),
        Ok(_) | Err(_) => None,
    }
}

fn say_ready() -> Result<(), Errno> {
    let said = retry_on_intr(|| rustix::io::write(io::stdin(), &[READY]));
    match said {
        // The worker has died; the next read of an order reports it.
        Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        said => said.map(drop),
    }
}

/// Whether no other process is in the guard's group. The guard leaves the group during
/// the check.
fn is_alone_in(group: Pid) -> Result<bool, Errno> {
    let has_left = group_of_worker().map(|other| setpgid(None, Some(other)));
    if !matches!(has_left, Some(Ok(()))) {
        // The worker has died, and its process group does not exist any more.
        return Ok(false);
    }
    let is_empty = test_kill_process_group(group) == Err(Errno::SRCH);
    if is_empty {
        setpgid(None, None)?;
    }
    Ok(is_empty)
}

/// Returns the process group of the worker. `None` if the kernel reports it as 0. This
/// happens in two cases: the worker has died and the kernel itself started the new
/// parent, or the worker's group is outside of this container.
fn group_of_worker() -> Option<Pid> {
    // Call nix here, because the same function of rustix does not accept a group of 0.
    let group = nix::unistd::getpgid(Some(nix::unistd::getppid())).ok()?;
    Pid::from_raw(group.as_raw())
}

/// Ends all processes of the group, including this guard: SIGTERM, then SIGKILL.
fn end(group: Pid) -> Result<(), Errno> {
    kill_process_group(group, Signal::TERM)?;
    thread::sleep(GRACE);
    kill_process_group(group, Signal::KILL)
}
