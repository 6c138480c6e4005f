//! Sends one command to a server on a new connection, without a Redis client library.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use tokio::{runtime::Builder, time::timeout};

use crate::proxy::{Address, Upstream};

const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long one PING may take. A server that is starting may leave a connection without
/// an answer, for example behind the forwarded port of a container; the next connection
/// is answered.
const PING_LIMIT: Duration = Duration::from_secs(1);

/// Sends one command of plain words and returns the raw reply.
pub(super) fn ask(to: &Address, args: &[&[u8]]) -> io::Result<Vec<u8>> {
    ask_within(ANSWER_LIMIT, to, args)
}

fn ask_within(limit: Duration, to: &Address, args: &[&[u8]]) -> io::Result<Vec<u8>> {
    match to {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(limit))?;
            exchange(stream, args, |stream| stream.shutdown(Shutdown::Write))
        }
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, limit)?;
            stream.set_read_timeout(Some(limit))?;
            exchange(stream, args, |stream| stream.shutdown(Shutdown::Write))
        }
        Address::Guarded(_) => ask_after_greeting(limit, to, args),
    }
}

/// Sends one command on a connection that needs TLS, a password or a database number.
/// Runs on a thread and a runtime of its own, so that a caller with or without a
/// runtime may use it.
fn ask_after_greeting(
    limit: Duration,
    to: &Address,
    args: &[&[u8]],
) -> io::Result<Vec<u8>> {
    let asking = async {
        let asked = async { Upstream::open(to).await?.ask(args).await };
        let answer = timeout(limit, asked).await;
        answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    };
    let answer = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(asking)
        });
        asking.join().expect("asking does not panic")
    });
    answer.map(Vec::from)
}

/// Returns whether the server answers a PING. A server that asks for a password is
/// ready too.
pub(super) fn is_ready(server: &Address) -> bool {
    let answer = ask_within(PING_LIMIT, server, &[b"PING"]).unwrap_or_default();
    answer == b"+PONG\r\n" || answer.starts_with(b"-NOAUTH")
}

fn exchange<S: Read + Write>(
    mut stream: S,
    args: &[&[u8]],
    end: impl FnOnce(&S) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend(format!("${}\r\n", arg.len()).into_bytes());
        request.extend(*arg);
        request.extend(b"\r\n");
    }
    stream.write_all(&request)?;
    // Close the writing side to find the end of the reply: the server sends the pending
    // reply and then closes.
    end(&stream)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}
