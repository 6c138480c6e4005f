//! A client of HTTP that sends just the headers that it is told.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A request, as it is sent.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        let headers = vec![("host", "localhost".to_owned())];
        Self { method: "GET", path: path.into(), headers, body: String::new() }
    }

    /// A form that a page of the same host sends.
    pub(crate) fn post(path: impl Into<String>, body: impl Into<String>) -> Self {
        let form = "application/x-www-form-urlencoded".to_owned();
        Self { method: "POST", body: body.into(), ..Self::get(path) }
            .with("content-type", form)
            .with("origin", "http://localhost")
    }

    /// Sets a header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = self.body.len();
        format!(
            "{head}connection: close\r\ncontent-length: {length}\r\n\r\n{}",
            self.body
        )
        .into_bytes()
    }

    /// Sends the request, and leaves the connection to the caller.
    pub(crate) async fn open(&self, to: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(&self.bytes()).await.unwrap();
        stream
    }

    /// Sends the request, and reads the whole answer.
    pub(crate) async fn send(&self, to: SocketAddr) -> Answer {
        let (mut stream, mut read) = (self.open(to).await, Vec::new());
        // Some servers leave the connection open, so the stated length counts.
        while !is_whole(&read) && stream.read_buf(&mut read).await.unwrap() > 0 {}
        Answer::parse(std::str::from_utf8(&read).unwrap())
    }
}

/// Whether the answer is as long as it says. One that does not say ends with its
/// connection.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else {
        return false;
    };
    let lines = std::str::from_utf8(&answer[..head]).unwrap().lines();
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.is_some_and(|(_, bytes)| {
        answer.len() - head - 4 >= bytes.trim().parse::<usize>().unwrap()
    })
}

/// An answer of the page.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn parse(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head of HTTP");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The page, which must have been served.
    pub(crate) fn page(self) -> String {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }
}
