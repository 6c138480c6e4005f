//! Has a restarted server write its append-only file anew.
//!
//! SIGKILL can end a write of the server in the middle of a script's transaction. At its
//! next start the server forgets that transaction, but its file may keep the first commands
//! of it. The start after that would then run these commands with the transaction that
//! was written next (reported in valkey-io/valkey#4342; Redis 7.0 and 8.0 do the same).

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::talk;
use crate::proxy::Address;

/// How long the server may take. The files of tests have a few megabytes.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the server has written its file anew. Does nothing for a server without one.
///
/// # Panics
/// When the server cannot write the file.
pub(super) fn rewrite_aof(server: &Address) {
    let start = Instant::now();
    let mut is_begun = false;
    loop {
        let info = info(server).expect("a server that has started answers");
        let has = |line: &str| info.contains(line);
        let is_idle =
            has("aof_rewrite_in_progress:0") && has("aof_rewrite_scheduled:0");
        if !has("aof_enabled:1")
            || is_idle && is_begun && has("aof_last_bgrewrite_status:ok")
        {
            return;
        }
        if is_idle {
            // A replica may begin to write the file by itself, and then refuses. The loop
            // waits for that, and asks again.
            let reply = talk::ask(server, &[b"BGREWRITEAOF"]).expect("it answers");
            is_begun = reply.starts_with(b"+");
        }
        assert!(start.elapsed() < LIMIT, "the file is not written: {info}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn info(server: &Address) -> io::Result<String> {
    let info = talk::ask(server, &[b"INFO", b"persistence"])?;
    Ok(String::from_utf8_lossy(&info).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write};

    use super::super::process::Process;

    /// What SIGKILL leaves of a transaction.
    const TORN: &[u8] =
        b"*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nRPUSH\r\n$1\r\nL\r\n$4\r\ntorn\r\n*3\r\n$5";

    /// Without the new file, the last start brings "torn" back.
    #[test]
    fn a_torn_transaction_does_not_come_back() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Process::start(&options, None);
        let push = |server: &Process, word: &str| {
            let script = "redis.call('RPUSH','L',ARGV[1])redis.call('INCR','N')";
            server.try_ask(&format!("EVAL {script} 0 {word}")).unwrap();
        };
        push(&server, "first");
        server.kill();
        let file = server.folder().join("appendonlydir/appendonly.aof.1.incr.aof");
        OpenOptions::new().append(true).open(file).unwrap().write_all(TORN).unwrap();
        server.restart();
        push(&server, "second");
        server.restart();

        let list = server.try_ask("LRANGE L 0 -1").unwrap();
        assert_eq!(list, "*2\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n");
    }
}
