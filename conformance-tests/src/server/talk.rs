//! Sends one command to a server, over the simplest connection possible.

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

/// Sends one command of plain words and returns the raw reply.
pub(super) fn ask(to: &Address, args: &[&[u8]]) -> io::Result<Vec<u8>> {
    match to {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            exchange(stream, args, |stream| stream.shutdown(Shutdown::Write))
        }
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            exchange(stream, args, |stream| stream.shutdown(Shutdown::Write))
        }
        Address::Guarded(_) => ask_with_a_greeting(to, args),
    }
}

/// Runs on a thread and a runtime of its own, so that any caller may use it.
fn ask_with_a_greeting(to: &Address, args: &[&[u8]]) -> io::Result<Vec<u8>> {
    let asking = async {
        let asked = async { Upstream::open(to).await?.ask(args).await };
        let answer = timeout(ANSWER_LIMIT, asked).await;
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

/// A server with a password is ready when it asks for the password.
pub(super) fn is_ready(server: &Address) -> bool {
    let answer = ask(server, &[b"PING"]).unwrap_or_default();
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
