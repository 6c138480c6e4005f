//! Detects whether the program was started with SIGHUP ignored, as `nohup` does.
//!
//! A process cannot query this without unsafe code. On Linux a file in `/proc` shows
//! it. On other systems a child process, which inherits ignored signals, sends itself
//! SIGHUP.

use std::{
    fs, io,
    process::{Command, Stdio},
};

use rustix::process::Signal;

pub(super) fn is_hangup_ignored() -> io::Result<bool> {
    match fs::read_to_string("/proc/self/status") {
        Ok(status) => match of_status(&status) {
            Some(is_ignored) => Ok(is_ignored),
            None => by_trying(),
        },
        Err(_) => by_trying(),
    }
}

/// Whether the text of Linux's `/proc/PID/status` shows that SIGHUP is ignored. SIGHUP
/// is signal 1, so it is the lowest bit of the mask of ignored signals. `None` if the
/// text has no such mask.
fn of_status(status: &str) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & (1 << (Signal::HUP.as_raw() - 1)) != 0)
}

/// Starts a shell that sends itself SIGHUP. If the shell survives, SIGHUP is ignored.
fn by_trying() -> io::Result<bool> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -HUP $$"]).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(shell.status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_lists_the_signals_it_ignores() {
        let status =
            |mask| of_status(&format!("Name:\trelq\nSigIgn:\t{mask}\nx:\t1\n"));
        assert_eq!(status("0000000000001000"), Some(false));
        assert_eq!(status("0000000000001001"), Some(true));
        assert_eq!(status("none"), None);
        assert_eq!(of_status(""), None);
    }

    #[test]
    fn a_trial_agrees_with_the_status_of_the_process() {
        assert_eq!(by_trying().unwrap(), is_hangup_ignored().unwrap());
    }
}
