//! A client that sends and receives raw bytes.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

/// The longest time that an expected event may take.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Client(pub(crate) UnixStream);

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        let path = url.strip_prefix("unix://").expect("a unix socket");
        Self(UnixStream::connect(path).await.expect("the proxy listens"))
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("the proxy reads");
    }

    /// Receives as many bytes as `bytes` has, and panics if they are different.
    pub(crate) async fn expect(&mut self, bytes: &[u8]) {
        let mut got = vec![0; bytes.len()];
        let mut have = 0;
        while have < got.len() {
            let read = timeout(LIMIT, self.0.read(&mut got[have..])).await;
            let read = read.unwrap_or_else(|_| {
                panic!("only got {:?}", String::from_utf8_lossy(&got[..have]))
            });
            match read.expect("the connection is sound") {
                0 => break,
                more => have += more,
            }
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&got[..have]), text(bytes));
        assert!(got == bytes, "the same text, but other bytes");
    }

    /// Receives all bytes until the connection ends.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = timeout(LIMIT, self.0.read_to_end(&mut rest)).await;
        match read.expect("the connection ends") {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            }
        }
        rest
    }

    /// Sends a command of plain words and receives exactly this reply.
    pub(crate) async fn ask(&mut self, words: &[&str], answer: &str) {
        self.send(&command(words)).await;
        self.expect(answer.as_bytes()).await;
    }

    /// Sends HELLO, which selects version `2` or `3` of the Redis protocol.
    pub(crate) async fn hello(&mut self, version: &str) {
        self.send(&command(&["HELLO", version])).await;
        while self.next_line().await != "modules" {}
        assert_eq!(self.next_line().await, "*0");
    }

    /// Sends a command and returns the first line of its reply, without the line end.
    pub(crate) async fn line(&mut self, words: &[&str]) -> String {
        self.send(&command(words)).await;
        self.next_line().await
    }

    /// Returns the next line that the server sends, without the line end.
    pub(crate) async fn next_line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let byte = timeout(LIMIT, self.0.read_u8()).await;
            line.push(byte.expect("a line comes").expect("the line is whole"));
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).expect("the line is text")
    }
}

pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

/// Encodes one `INCR` command for each of these keys, one after the other.
pub(crate) fn increments(keys: &[&str]) -> Vec<u8> {
    keys.iter().flat_map(|key| command(&["INCR", key])).collect()
}

pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
